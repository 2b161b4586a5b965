//! The pool's record, pauses, other clients and other requests, and the status.

use super::*;
use crate::contract::pools::PoolHoldReason;

#[test]
fn what_the_request_itself_is_refused_for_is_not_tried_before_the_next_opening() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some(refused("PRODUCT_NOT_FOUND"));
    let command = host.acquire(pool);
    host.pass(7_200_000);
    assert!(host.lease_of(command).is_err());
    let command = host.acquire(pool);
    host.pass(7_200_000);
    assert_eq!((host.lease_of(command).expect_err("does not buy").kind, host.bought), (Kind::Unavailable, 1));
    host.answer = None;
    assert!(host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).is_ok_and(|status| status.hold.is_none()));
    host.lease(pool);
    assert_eq!(host.bought, 2);
}

#[test]
fn a_pause_lasts_until_somebody_resumes_it_over_openings_too() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.run("pause_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is paused");
    let command = host.acquire(pool);
    host.pass(31_000);
    let error = host.lease_of(command).expect_err("nothing is bought");
    assert!(error.to_string().contains("since it is paused"), "{error}");
    host.client.give_back(&lease, host.now);
    let lease = host.lease(pool);
    assert!(host.client.is_valid(&lease), "what there is is lent");
    let closed = host.close(pool);
    host.pass(11_000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.open(2);
    let hold = host.status(pool).hold.expect("is paused still");
    assert_eq!((hold.reason.as_str(), hold.needs.as_str(), host.bought), ("paused", "caller", 1));
}

#[test]
fn a_pool_with_another_request_is_refused_or_takes_its_place() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let other = OpenPool { country_code: Some("DE".into()), size: 2, ..shop() };
    let error = host.try_open(other.clone()).expect_err("is another pool");
    assert_eq!((error.kind, error.field.as_deref()), (Kind::Invalid, Some("name")));
    assert!(error.to_string().contains("another `country_code`"), "{error}");
    let more = OpenPool { quantity: "2".parse().ok(), size: 3, ..shop() };
    let pool = host.try_open(more).expect("how much is bought is each client's own");
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.try_open(OpenPool { on_change: Some(PoolOnChange::Replace), ..other }).expect("takes its place");
    let command = host.acquire(pool);
    host.pass(10_000);
    let lease = host.lease_of(command).expect("is bought");
    assert!(host.client.is_valid(&lease));
    assert_eq!((host.bought, host.sessions.first().map(|session| session.0)), (2, Some("terminated")), "{:?}", host.log);
}

#[test]
fn a_store_says_what_other_clients_have_where_that_is_asked() {
    let mut host = Host::new(Some(100));
    let pool = host.open(4);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    host.pass(120_000);
    let status = host.status(pool);
    assert_eq!((status.size, status.free_in_store, status.unknown, status.empty), (4, 1, 3, 0));
    let everywhere = host.run("pool_status", &format!(r#"{{"pool":{pool},"everywhere":true}}"#)).expect("is read");
    assert_eq!((everywhere.free_in_store, everywhere.unknown, everywhere.empty), (1, 0, 3));
}

#[test]
fn a_pool_that_could_not_be_opened_can_be_opened_again_at_once() {
    let mut host = Host::new(Some(100));
    host.store_fails = true;
    for _ in 0..3 {
        let error = host.try_open(OpenPool { size: 1, ..shop() }).expect_err("the store fails");
        assert_eq!(error.kind, Kind::Store, "{error}");
    }
    host.store_fails = false;
    let pool = host.open(1);
    host.lease(pool);
}

#[test]
fn while_the_store_is_away_the_status_and_those_who_wait_are_told_so_and_what_is_held_is_lent() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let lease = host.lease(pool);
    host.store_fails = true;
    let command = host.acquire(pool);
    host.pass(29_000);
    let hold = host.status(pool).hold.expect("nothing can be bought");
    assert_eq!((hold.reason, hold.retry_at), (PoolHoldReason::Store, None), "it is asked again all the time");
    host.pass(2000);
    let error = host.lease_of(command).expect_err("is not served");
    assert_eq!((error.reason, error.advice), (Some(PoolReason::Store), Advice::MendStore), "{error}");
    assert!(error.to_string().contains("3 sessions: 1 is lent, for "), "{error}");
    assert!(error.to_string().contains("the pool does not buy since the store fails"), "{error}");
    host.client.give_back(&lease, host.now);
    let lease = host.lease(pool);
    host.store_fails = false;
    // Names that may be this client's are let go of first, which is tried again within a minute.
    host.pass(60_000);
    let command = host.acquire(pool);
    host.pass(10_000);
    assert!(host.lease_of(command).is_ok() && host.status(pool).hold.is_none() && host.bought == 2);
    assert!(host.client.is_valid(&lease));
}

#[test]
fn nothing_is_sent_for_a_doubt_while_the_pool_is_paused() {
    for retry_paid in [None, Some(true)] {
        for answer in [(503, ""), refused("BACKEND_ERROR")] {
            let mut host = Host::new(Some(100));
            let pool = host.try_open(OpenPool { retry_paid, ..shop() }).expect("can be opened");
            host.answer = Some(answer);
            host.acquire(pool);
            host.pass(400_000);
            host.run("pause_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is paused");
            let sent = host.bought;
            host.answer = None;
            host.pass(7_200_000);
            assert_eq!(host.bought, sent, "retry_paid {retry_paid:?}, {answer:?}");
        }
    }
}

#[test]
fn nothing_is_renewed_while_the_pool_is_paused() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, renew_duration: Some(30), expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed).expect("can be opened");
    let lease = host.lease(pool);
    host.run("pause_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is paused");
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.pass(600_000);
    assert_eq!(host.log.len(), 1, "{:?}", host.log);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.pass(70_000);
    assert_eq!(host.log.last().map(String::as_str), Some("POST /sessions/s-1/renew"));
}

#[test]
fn a_pause_is_told_of_as_other_holds_are() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let of_pool = format!(r#"{{"pool":{pool}}}"#);
    host.run("pause_pool", &of_pool).expect("is paused");
    host.run("pause_pool", &of_pool).expect("is paused still");
    host.run("resume_pool", &of_pool).expect("is resumed");
    assert_eq!(host.events, ["pool_held", "pool_freed"]);
}

#[test]
fn a_status_says_of_each_slot_which_purchase_it_is_and_why_it_is_not_lent() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { idle_release_ms: Some(3_600_000), ..shop() }).expect("can be opened");
    let slot = |host: &Host| host.status(pool).slots.first().map(|slot| (slot.purchase, slot.reason.map(|reason| reason.as_str())));
    let lease = host.lease(pool);
    assert_eq!(slot(&host), Some((Some(1), None)));
    host.sessions[0].0 = "terminated";
    host.see(&lease, Seen::Status(407));
    host.pass(60_000);
    let lease = host.lease(pool);
    assert_eq!(slot(&host), Some((Some(2), None)));
    host.see(&lease, Seen::Block);
    host.reads_fail = true;
    // A read that fails changes nothing, however long ago the last good one was.
    for _ in 0..2 {
        host.see(&lease, Seen::Status(407));
        host.pass(1000);
        assert_eq!(slot(&host), Some((Some(2), None)));
        host.pass(600_000);
    }
    host.client.give_back(&lease, host.now);
    host.reads_fail = false;
    host.pass(120_000);
    assert_eq!((slot(&host), host.events.as_slice()), (Some((Some(2), None)), ["lease_leaked", "pool_rotated"].as_slice()));
}

#[test]
fn a_trial_that_finds_no_slot_lets_others_change_the_record_meanwhile() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some(refused("PRODUCT_OUT_OF_STOCK"));
    let first = host.acquire_for(pool, 20_000);
    host.pass(1000);
    assert!(host.lease_of(first).is_err());
    host.answer = None;
    // Another client has the only slot.
    host.taken = Some(host.client.slot_name("shop/0"));
    let waits = host.acquire_for(pool, 3_600_000);
    let (mut free, mut owned) = (0, 0);
    for _ in 0..600 {
        host.pass(100);
        match host.has_record {
            true => owned += 1,
            false => free += 1,
        }
    }
    assert!(host.client.is_pending(waits) && free > 10 * owned, "{free} {owned}");
}

#[test]
fn a_client_with_an_older_request_touches_nothing_of_the_pool_any_more() {
    let mut host = Host::new(Some(100));
    let old = host.open(2);
    let lease = host.lease(old);
    host.client.give_back(&lease, host.now);
    // Another program opens it with another request, and lets go of a session.
    let record = host.client.pool_name("shop");
    let StoreAnswer::Claimed(kept) = host.disk.call(StoreCall::Claim { names: vec![record.clone()], most: 1 }, 0, 0) else {
        panic!("is free")
    };
    let text = String::from_utf8(kept[0].1.clone().expect("is there")).expect("is text").replace("\\\"p\\\"", "\\\"q\\\"");
    let put = StoreCall::Put { name: record, data: text.into_bytes(), new: false, keep_for: None, release: true };
    assert_eq!(host.disk.call(put, 0, 0), StoreAnswer::Done);
    host.pass(180_000);
    let command = host.acquire(old);
    host.pass(31_000);
    let error = host.lease_of(command).expect_err("is not this client's any more");
    assert!(error.to_string().contains("another client has opened it with another request"), "{error}");
    assert_eq!((host.bought, host.log.len(), host.events.last()), (1, 1, Some(&"pool_held")), "{:?}", host.log);
}

#[test]
fn a_pool_record_of_another_version_is_left_as_it_is() {
    let mut host = Host::new(Some(100));
    let record = host.client.pool_name("shop");
    let data = br#"{"hopline":9,"new":true}"#.to_vec();
    let put = StoreCall::Put { name: record.clone(), data: data.clone(), new: true, keep_for: None, release: true };
    assert_eq!(host.disk.call(put, 0, 0), StoreAnswer::Done);
    let command = host.client.open_pool(OpenPool { size: 2, ..shop() }).command;
    host.pass(10_000);
    let error = host.client.take_answer(command).expect("has completed").expect_err("can't be read");
    assert!(error.kind == Kind::Store && error.to_string().contains("another version"), "{error}");
    let StoreAnswer::Claimed(kept) = host.disk.call(StoreCall::Claim { names: vec![record], most: 1 }, 0, 0) else { panic!("is free") };
    assert_eq!(kept[0].1.as_ref(), Some(&data));
}

#[test]
fn what_was_bought_since_the_pool_was_opened_anew_is_not_ended_by_whoever_hears_late() {
    let mut host = Host::new(Some(100));
    // Another pool's session that lies free: as one that a newer client has let go of.
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    host.client.give_back(&leases[0], host.now);
    host.close(pool);
    host.pass(20_000);
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.pass(1000);
    change_elsewhere(&mut host, &RecordChange::Drained { include_static: false });
    change_elsewhere(&mut host, &RecordChange::Opened);
    host.pass(70_000);
    host.client.give_back(&lease, host.now);
    host.pass(70_000);
    let left = host.sessions.iter().filter(|session| session.0 == "active").count();
    assert!(host.client.status(pool).is_none());
    assert_eq!(left, 1, "its own was ended, and what the new ones have let go of was not: {:?}", host.log);
}

#[test]
fn an_error_says_what_purchases_are_refused_for_and_a_higher_cap_counts_at_the_next_opening() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    host.answer = Some(refused("INSUFFICIENT_BALANCE"));
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    let error = host.lease_of(command).expect_err("nothing is bought");
    let cause = error.cause.as_ref().and_then(|cause| cause.code.as_deref());
    assert_eq!((cause, error.advice), (Some("INSUFFICIENT_BALANCE"), Advice::Recharge), "{error}");
    // A possible purchase is reported, too.
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.answer = Some(refused("INTERNAL_ERROR"));
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    let error = host.lease_of(command).expect_err("nothing is bought");
    assert!(error.to_string().contains("2 sessions: 1 in doubt") && error.reason == Some(PoolReason::Backend), "{error}");

    let mut host = Host::new(None);
    let capped = |usd: &str| OpenPool { size: 2, daily_cap_usd: usd.parse().ok(), ..shop() };
    let pool = host.try_open(capped("1")).expect("can be opened");
    host.lease(pool);
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(command).expect_err("is capped").to_string().contains("the day's cap is reached"));
    host.client.close_pool(ClosePool { pool, grace_ms: Some(0) });
    host.pass(10_000);
    let pool = host.try_open(capped("2")).expect("can be opened");
    (0..2).for_each(|_| _ = host.lease(pool));
    assert_eq!(host.bought, 2);
}

#[test]
fn a_status_of_everywhere_that_is_not_waited_for_any_more() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let command = host.client.start_json("pool_status", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    let Step::Store { id, call, .. } = host.client.poll(host.now) else { panic!("the store is asked") };
    host.client.cancel(command, host.now);
    assert!(!host.client.is_pending(command), "it is cancelled");
    let answer = host.stored(call);
    host.client.resolve(id, Outcome::Store(answer), host.now).expect("is answered once");
    host.pass(1000);
    assert_eq!(host.client.take_answer(command).expect("has completed").map(|_| ()).map_err(|error| error.kind), Err(Kind::Cancelled));
}

#[test]
fn nothing_is_renewed_once_another_client_has_paused_the_pool() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed_of(1)).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(5000);
    change_elsewhere(&mut host, &RecordChange::Paused(true));
    // A record that was read within the last second is taken as it was.
    host.pass(1500);
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.pass(10_000);
    assert!(!host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
    change_elsewhere(&mut host, &RecordChange::Paused(false));
    host.pass(130_000);
    assert!(host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
}

#[test]
fn two_versions_that_begin_in_turn_do_not_end_each_others_sessions_each_time() {
    let mut host = Host::new(Some(100));
    let versions =
        ["DE", "FR"].map(|country| OpenPool { country_code: Some(country.into()), on_change: Some(PoolOnChange::Replace), ..shop() });
    let (mut refused, mut last) = (0, None);
    for version in versions.iter().cycle().take(12) {
        match host.try_open(version.clone()) {
            Ok(pool) => {
                host.lease(pool);
                host.close(pool);
                last = version.country_code.clone();
            }
            Err(error) => {
                assert!(error.what.contains("replaced less than 10 min ago"), "{error}");
                refused += 1;
            }
        }
        host.pass(60_000);
    }
    assert!(host.bought <= 3 && refused >= 5, "{} bought, {refused} refused", host.bought);
    // Whoever waits replaces it.
    host.pass(600_000);
    let other = versions.into_iter().find(|version| version.country_code != last).expect("is the other one");
    let pool = host.try_open(other).expect("takes its place");
    host.lease(pool);
}

#[test]
fn a_record_that_could_not_be_let_go_of_is_let_go_of_soon() {
    for closes in [false, true] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { idle_release_ms: Some(3_600_000), ..shop() }).expect("can be opened");
        host.pass(10_000);
        host.is_record_stuck = true;
        match closes {
            true => _ = host.close(pool),
            false => host.pass(60_000),
        }
        host.pass(1000);
        assert!(host.has_record, "{closes}");
        host.is_record_stuck = false;
        host.pass(9000);
        assert!(!host.has_record, "{closes}");
    }
}
