//! Closing and draining, here and everywhere.

use super::*;

#[test]
fn a_closed_pool_gives_its_sessions_to_whoever_comes_next() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let command = host.acquire(pool);
    host.pass(1000);
    let lease = host.client.lease_of(command).expect("is granted");
    let waits = host.acquire(pool);
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.is_pending(closed) && !host.client.is_pending(waits) && host.client.is_valid(&lease));
    host.client.give_back(&lease, host.now);
    host.pass(1000);
    assert!(!host.client.is_pending(closed) && host.client.status(pool).is_none() && !host.client.follows("s-1"));
    let late = host.acquire(pool);
    host.pass(1);
    assert_eq!(host.client.take_answer(late).expect("has completed").expect_err("is refused").kind, Kind::Misuse);
    let again = host.open(1);
    let command = host.acquire(again);
    host.pass(1000);
    assert!(host.client.lease_of(command).is_some() && host.bought == 1);
}

#[test]
fn draining_ends_what_this_client_has_and_everywhere_what_nobody_has() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let leases = [0; 3].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    // Two of them are nobody's by now.
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.open(3);
    host.lease(pool);
    let drained = host.run("drain_pool", &format!(r#"{{"pool":{pool},"grace_ms":0}}"#)).expect("is drained");
    assert_eq!((drained.ready + drained.leased, host.log.iter().filter(|sent| sent.starts_with("DELETE")).count()), (0, 1));
    let pool = host.open(3);
    let command = host.drain(pool, r#","everywhere":true"#);
    host.pass(10_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
    assert!(host.client.status(pool).is_none());
    // The pool can be opened again, and resumed.
    let pool = host.open(3);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.lease(pool);
    assert_eq!(host.bought, 4);
}

#[test]
fn what_a_client_lets_go_of_before_it_hears_that_the_pool_is_drained_is_ended_too() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 3, idle_release_ms: Some(5000), ..shop() }).expect("can be opened");
    let leases = [0; 3].map(|_| host.lease(pool));
    drain_elsewhere(&mut host);
    leases[..2].iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.pass(6000);
    let status = host.status(pool);
    assert_eq!((status.leased, status.ready, status.empty), (1, 0, 2));
    host.pass(70_000);
    assert!(host.client.status(pool).is_none(), "it has heard of it");
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn a_client_that_closes_a_pool_hears_whether_it_is_drained_meanwhile() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    let _ = host.client.give_back(&leases[0], host.now);
    let closed = host.close(pool);
    host.pass(1000);
    drain_elsewhere(&mut host);
    let _ = host.client.give_back(&leases[1], host.now);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok() && host.client.status(pool).is_none());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn a_pool_that_is_being_closed_keeps_nobody_from_opening_it_again() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.close(pool);
    host.pass(1);
    assert!(host.client.is_valid(&lease), "it is waited for");
    let again = host.open(2);
    let other = host.lease(again);
    assert_eq!((host.bought, host.client.is_valid(&lease), host.client.is_valid(&other)), (2, true, true));
    host.client.give_back(&lease, host.now);
    host.pass(1000);
    assert!(host.client.status(pool).is_none() && host.client.is_valid(&other));
}

#[test]
fn a_pool_of_other_programs_can_be_listed_joined_paused_and_drained() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { country_code: Some("DE".into()), size: 3, ..shop() }).expect("can be opened");
    let leases = [0; 2].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.close(pool);
    host.pass(1000);
    let held = |pool: &KnownPool| pool.hold.as_ref().map(|hold| hold.reason.as_str());
    let list = |host: &mut Host| {
        let ticket = host.client.list_pools();
        host.pass(1);
        host.client.take(ticket).expect("has completed").expect("is read").pools
    };
    let join = |host: &mut Host, name: &str| {
        let ticket = host.client.join_pool(JoinPool { name: name.to_owned() });
        host.pass(1000);
        host.client.take(ticket).expect("has completed").map(|opened| opened.pool)
    };
    let known = list(&mut host);
    let first = known.first().expect("there is one");
    assert_eq!(
        (known.len(), first.name.as_str(), first.size, first.free_in_store, first.in_doubt, held(first)),
        (1, "shop", 3, 2, 0, None)
    );
    let error = join(&mut host, "nosuch").expect_err("there is none");
    assert_eq!((error.kind, error.operation, error.field.as_deref()), (Kind::Invalid, "join_pool", Some("name")), "{error}");
    let joined = join(&mut host, "shop").expect("is joined");
    let command = host.acquire(joined);
    host.pass(1);
    assert_eq!(host.lease_of(command).expect_err("lends nothing").kind, Kind::Misuse);
    host.run("pause_pool", &format!(r#"{{"pool":{joined}}}"#)).expect("is paused");
    assert!(list(&mut host).first().is_some_and(|pool| held(pool) == Some("paused")));
    let everywhere = host.run("pool_status", &format!(r#"{{"pool":{joined},"everywhere":true}}"#)).expect("is read");
    assert_eq!((everywhere.free_in_store, everywhere.with_others, everywhere.empty), (2, 0, 1));
    host.run("resume_pool", &format!(r#"{{"pool":{joined}}}"#)).expect("is resumed");
    let command = host.drain(joined, r#","everywhere":true"#);
    host.pass(20_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
    assert_eq!(
        (host.bought, list(&mut host).first().map(|pool| (pool.mine + pool.with_others + pool.free_in_store, held(pool)))),
        (2, Some((0, Some("draining"))))
    );
    // A client that opens it finds it as it was, and paused: a supervisor that starts a program again buys nothing.
    let pool = host.try_open(OpenPool { country_code: Some("DE".into()), size: 3, ..shop() }).expect("is the same pool");
    let command = host.acquire(pool);
    host.pass(3000);
    assert_eq!((host.lease_of(command).expect_err("is paused").reason, host.bought), (Some(PoolReason::Paused), 2));
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.lease(pool);
    assert_eq!(host.bought, 3);
}

#[test]
fn whoever_asks_a_pool_that_is_closing_is_told_so_and_whoever_closes_it_again_waits_too() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 3, keep_ready: Some(1), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    let closed = host.close(pool);
    host.pass(1);
    let waits = host.client.start_json("wait_ready", &format!(r#"{{"pool":{pool},"timeout_ms":1}}"#), CallOptions::default());
    host.pass(100);
    assert_eq!(host.client.take_answer(waits).expect("has completed").expect_err("is closed").kind, Kind::Misuse);
    // Closed a second time, and drained everywhere: what either says holds, and both wait for the lease.
    let drained = host.drain(pool, r#","everywhere":true"#);
    let status = host.client.start_json("pool_status", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    host.pass(100);
    assert!(host.client.is_pending(closed) && host.client.is_pending(drained) && host.client.is_valid(&lease));
    assert!(host.client.take_answer(status).expect("has completed").is_ok());
    host.client.give_back(&lease, host.now);
    host.pass(20_000);
    for command in [closed, drained] {
        assert!(host.client.take_answer(command).expect("has completed").is_ok());
    }
    assert!(host.sessions.iter().all(|session| session.0 == "terminated") && host.client.status(pool).is_none(), "{:?}", host.sessions);
}

#[test]
fn a_store_that_fails_for_a_moment_keeps_no_session_from_being_drained() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let leases = [0; 3].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.close(pool);
    host.pass(1000);
    let pool = host.open(3);
    let drained = host.drain(pool, r#","everywhere":true,"grace_ms":30000"#);
    host.store_fails = true;
    host.pass(3000);
    host.store_fails = false;
    host.pass(60_000);
    assert!(host.client.take_answer(drained).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn draining_everywhere_ends_what_could_not_be_read_before() {
    let mut host = Host::left();
    host.reads_fail = true;
    let pool = host.open(1);
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(command).is_err());
    host.reads_fail = false;
    let command = host.drain(pool, r#","everywhere":true"#);
    host.pass(120_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn a_drain_everywhere_comes_back_to_what_is_being_let_go_of_at_that_moment() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let leases = [0; 3].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    // One is let go of, since nobody uses it, and the store takes its time.
    host.late = Some(Vec::new());
    host.pass(61_000);
    assert!(!host.late.as_ref().expect("is late").is_empty());
    let drained = host.drain(pool, r#","everywhere":true,"grace_ms":20000"#);
    host.pass(5);
    host.catch_up();
    host.pass(30_000);
    assert!(host.client.take_answer(drained).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn a_drain_that_follows_a_closing_at_once_would_end_nothing_and_is_refused() {
    for is_lent in [false, true] {
        let mut host = Host::new(Some(100));
        let pool = host.open(1);
        let lease = host.lease(pool);
        if !is_lent {
            host.client.give_back(&lease, host.now);
        }
        let closed = host.client.start_json("close_pool", &format!(r#"{{"pool":{pool},"grace_ms":0}}"#), CallOptions::default());
        while host.client.is_pending(closed) {
            host.pass(1);
        }
        let drained = host.drain(pool, r#","everywhere":true"#);
        host.pass(1000);
        assert_eq!(host.client.take_answer(drained).expect("has completed").expect_err("is closed").kind, Kind::Misuse);
        assert_eq!(host.sessions[0].0, "active");
    }
}

#[test]
fn a_drain_ends_within_its_grace_and_says_what_still_lives_and_of_a_closed_pool_it_is_refused() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    // The service ends nothing.
    host.ends_fail = true;
    let drained = host.drain(pool, "");
    host.pass(10_000);
    let error = host.client.take_answer(drained).expect("has completed in time").expect_err("sessions live");
    assert_eq!((error.kind, error.effect, error.operation), (Kind::Unavailable, Effect::Unknown, "drain_pool"), "{error}");
    assert!(error.what.contains("s-1, s-2 still live"), "{error}");
    // It goes on without anybody who waits, and the pool is paused for whoever opens it.
    host.ends_fail = false;
    host.pass(80_000);
    assert!(host.client.status(pool).is_none() && host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
    let error = host.run("drain_pool", &format!(r#"{{"pool":{pool}}}"#)).expect_err("is closed");
    assert_eq!(error.kind, Kind::Misuse);
    let closed = host.close(pool);
    host.pass(1);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok(), "closing twice does no harm");
    let pool = host.open(2);
    let command = host.acquire(pool);
    host.pass(3000);
    assert_eq!((host.lease_of(command).expect_err("is paused").reason, host.bought), (Some(PoolReason::Paused), 2));
}
