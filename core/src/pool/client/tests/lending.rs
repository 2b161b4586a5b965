//! Who gets which session, what is seen through it, and what callers are told.

use super::*;

#[test]
fn a_lease_whose_caller_is_gone_goes_back() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let (first, second) = (host.acquire(pool), host.acquire(pool));
    host.pass(1000);
    assert!(host.client.lease_of(first).is_some() && host.client.is_pending(second));
    assert!(host.client.abandon(first, host.now));
    host.pass(1000);
    assert!(host.client.lease_of(second).is_some());
    // A caller that gives up waiting gets none.
    let third = host.acquire(pool);
    host.pass(1);
    host.client.cancel(third, host.now);
    assert_eq!(host.client.take_answer(third).expect("has completed").expect_err("is cancelled").kind, Kind::Cancelled);
    assert_eq!((host.bought, host.client.status(pool).map(|status| status.waiting)), (1, Some(0)));
}

#[test]
fn what_a_target_says_changes_exits_by_its_reason_and_costs_nothing() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { idle_release_ms: Some(60_000), ..shop() }).expect("can be opened");
    for (seen, reason) in [(Seen::Status(403), "http_403"), (Seen::Captcha, "captcha"), (Seen::Block, "block")] {
        let lease = host.lease(pool);
        host.pass(60_000);
        (0..3).for_each(|_| assert_eq!(host.see(&lease, Seen::Status(200)), Some("keep")));
        assert_eq!(host.see(&lease, seen), Some("give_back"));
        host.client.give_back(&lease, host.now);
        host.pass(20_000);
        assert_eq!(host.log.last(), Some(&format!("POST /sessions/s-1/rotate \"{reason}\"")));
        assert_eq!(host.see(&lease, Seen::Status(200)), None, "it was given back");
    }
    let generation = host.status(pool).slots.first().and_then(|slot| slot.generation);
    assert_eq!((host.bought, generation, host.sessions.len()), (1, Some(4), 1));
}

#[test]
fn a_session_that_fails_at_one_target_where_another_works_is_replaced_only_where_that_is_asked() {
    for (replace, targets, ended) in [
        (None, ["shop"; 3], false),
        (Some(PoolReplace::Failing), ["shop"; 3], true),
        (Some(PoolReplace::Failing), ["shop-0", "shop-1", "shop-2"], false),
    ] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { size: 2, replace, keep_ready: Some(2), ..shop() }).expect("can be opened");
        host.pass(60_000);
        for target in targets {
            let asked = || AcquireLease { pool, target: Some(target.into()), ..AcquireLease::default() };
            let commands = [0; 2].map(|_| host.client.acquire(asked()).command);
            host.pass(20_000);
            for command in commands {
                let (lease, granted) = host.granted(command);
                match granted.session_id.as_str() {
                    "s-1" => _ = host.see(&lease, Seen::Status(403)),
                    _ => (0..3).for_each(|_| _ = host.see(&lease, Seen::Status(200))),
                }
                host.client.give_back(&lease, host.now);
            }
            host.pass(20_000);
        }
        let was_ended = host.log.iter().any(|sent| sent == "DELETE /sessions/s-1");
        assert_eq!((was_ended, host.bought), (ended, if ended { 3 } else { 2 }), "{:?}", host.log);
    }
}

#[test]
fn a_session_is_ended_for_its_proxy_only_where_that_of_another_works() {
    for works in [false, true] {
        let mut host = Host::new(Some(100));
        let open = OpenPool { size: 2, replace: Some(PoolReplace::Failing), keep_ready: Some(2), ..shop() };
        let pool = host.try_open(open).expect("can be opened");
        let mut resting = 0;
        for _ in 0..1200 {
            let commands = [0; 2].map(|_| host.acquire_for(pool, 500));
            host.pass(1000);
            for command in commands {
                let (lease, granted) = match host.client.lease_of(command) {
                    Some(_) => host.granted(command),
                    None => continue,
                };
                host.see(&lease, Seen::Status(if works && granted.session_id != "s-1" { 200 } else { 407 }));
                host.client.give_back(&lease, host.now);
            }
            resting += host.status(pool).resting;
        }
        assert_eq!(host.bought, if works { 3 } else { 2 }, "{:?}", host.log);
        // Their rests get longer meanwhile.
        assert!(works || resting > 2000, "{resting}");
    }
}

#[test]
fn whoever_is_to_wait_is_told_for_how_long() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let at_shop = || AcquireLease { pool, target: Some("shop".into()), timeout_ms: Some(300_000), ..AcquireLease::default() };
    let mut advice = Vec::new();
    for _ in 0..4 {
        let command = host.client.acquire(at_shop()).command;
        host.pass(120_000);
        let (lease, _) = host.granted(command);
        advice.push(host.see(&lease, Seen::Status(403)));
        let retry_at = host.client.retry_at(&lease).expect("is known");
        assert!((0..=60_000).contains(&(retry_at - host.now.unix)), "{retry_at}");
        host.client.give_back(&lease, host.now);
        assert_eq!(host.client.retry_at(&lease), None);
    }
    assert_eq!(advice, [Some("give_back"), Some("give_back"), Some("wait"), Some("wait")]);
    assert_eq!(host.status(pool).blocked_everywhere, ["shop"]);
}

#[test]
fn ten_leases_that_see_one_block_or_one_timeout_are_one_observation() {
    for (seen, is_static, rest, rotated) in [
        (Seen::Status(403), true, 60_000, 0),
        (Seen::Status(403), false, 0, 1),
        (Seen::Status(429), false, 30_000, 0),
        (Seen::Timeout, false, 0, 0),
        (Seen::Status(407), false, 0, 0),
    ] {
        let mut host = Host::new(Some(100));
        host.is_static = is_static;
        let session_type = if is_static { SessionType::Static } else { SessionType::Dynamic };
        let pool = host.try_open(OpenPool { session_type, leases_per_session: Some(10), ..shop() }).expect("can be opened");
        let leases = [0; 10].map(|_| host.lease(pool));
        host.pass(60_000);
        leases.iter().for_each(|lease| _ = host.see(lease, seen));
        leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
        let since = host.now.monotonic;
        let command = host.acquire_for(pool, 3_600_000);
        while host.client.is_pending(command) {
            host.pass(100);
        }
        let waited = host.now.monotonic - since;
        assert!((rest..rest + 5000).contains(&waited), "{seen:?}: {waited}");
        assert_eq!(host.sessions[0].1, rotated, "{seen:?}");
    }
}

#[test]
fn the_third_failure_in_a_row_that_may_be_anybodys_reads_the_session() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(shop()).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(60_000);
    host.sessions[0].0 = "terminated";
    let advice = [Seen::Unknown; 3].map(|seen| host.see(&lease, seen));
    assert_eq!(advice, [Some("keep"), Some("keep"), Some("give_back")]);
    host.pass(1000);
    assert!(!host.client.is_valid(&lease), "its session is over");
}

#[test]
fn an_exit_is_changed_at_its_age_but_never_under_a_lease() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { rotate_after_ms: Some(300_000), keep_ready: Some(1), ..shop() }).expect("can be opened");
    // Within a tenth of that.
    host.pass(268_000);
    assert_eq!(host.log.len(), 1);
    host.pass(64_000);
    assert_eq!(host.log.last().map(String::as_str), Some("POST /sessions/s-1/rotate \"scheduled\""));
    let lease = host.lease(pool);
    host.pass(900_000);
    assert_eq!(host.log.len(), 2, "{:?}", host.log);
    host.client.give_back(&lease, host.now);
    // While its leases do not come back, the change is tried now and then only.
    host.pass(31_000);
    assert_eq!((host.log.len(), host.sessions[0].1), (3, 2));
}

#[test]
fn a_target_that_blocks_exits_withholds_no_session_from_others() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 2, keep_ready: Some(1), ..shop() }).expect("can be opened");
    let results = scrape(&mut host, pool, &[("a", 3), ("b", u32::MAX)], 1_200_000);
    // Nearly each second; the other target has three answers of each exit, and a change takes 5 s.
    assert!(results[1].0 > 1100 && results[1].1 <= 1500, "{results:?}");
    assert!(results[0].0 > 350, "{results:?}");
    assert_eq!(host.bought, 2);
}

#[test]
fn an_exit_for_each_lease_is_what_the_service_can_give_and_no_limit_of_leases() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 5, rotate_after_uses: Some(1), ..shop() }).expect("can be opened");
    let results = scrape(&mut host, pool, &[("a", u32::MAX), ("b", u32::MAX), ("c", u32::MAX)], 1_200_000);
    assert!(results.iter().all(|(good, wait)| *good > 1100 && *wait <= 1500), "{results:?}");
    let rotated: u32 = host.sessions.iter().map(|session| session.1).sum();
    assert!(rotated > 500, "{rotated}");
}

#[test]
fn exits_that_get_old_together_are_changed_in_turn_and_their_sessions_stay_lent() {
    let mut host = Host::new(Some(100));
    let open = OpenPool { size: 20, keep_ready: Some(20), rotate_after_ms: Some(60_000), ..shop() };
    let pool = host.try_open(open).expect("can be opened");
    host.pass(20_000);
    let mut least = 20;
    for _ in 0..600 {
        host.pass(1000);
        least = least.min(host.status(pool).ready);
    }
    assert!(least >= 16, "{least}");
    assert!(host.sessions.iter().all(|session| (9..=12).contains(&session.1)), "{:?}", host.sessions);
}

#[test]
fn a_session_that_has_expired_as_its_exit_was_to_change_is_not_lent() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.rotation = Some((410, r#"{"success":false,"error":{"code":"SESSION_EXPIRED","message":"no"}}"#));
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    host.pass(20_000);
    assert_eq!((host.status(pool).ready, host.bought), (0, 1));
    // The next one takes its place.
    host.rotation = None;
    let lease = host.lease(pool);
    assert!(host.client.is_valid(&lease) && host.bought == 2);
}

#[test]
fn a_session_whose_reads_fail_is_lent_as_it_was_read_last_however_long_ago() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.reads_fail = true;
    host.see(&lease, Seen::Status(407));
    host.client.give_back(&lease, host.now);
    for _ in 0..20 {
        let lease = host.lease(pool);
        host.pass(58_000);
        host.client.give_back(&lease, host.now);
    }
    assert!(host.reads >= 20, "{}", host.reads);
    // The session does not go back to the store, where nobody could read it.
    host.pass(120_000);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    // A session that is known to be over is not lent.
    host.reads_fail = false;
    host.pass(60_000);
    let lease = host.lease(pool);
    host.is_forgetful = true;
    host.see(&lease, Seen::Status(407));
    host.pass(10_000);
    assert!(!host.client.is_valid(&lease));
}

#[test]
fn a_lease_that_does_not_come_back_is_told_of_and_taken_back_where_that_is_asked() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { max_lease_ms: Some(1_200_000), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    let waits = host.acquire_for(pool, 6_000_000);
    host.pass(598_000);
    assert!(host.events.is_empty());
    host.pass(2000);
    assert_eq!(host.events, ["lease_leaked"]);
    assert!(host.client.is_valid(&lease));
    host.pass(600_000);
    assert!(!host.client.is_valid(&lease) && host.lease_of(waits).is_ok());
    assert!(!host.client.give_back(&lease, host.now), "it was taken back");
    assert_eq!(host.bought, 1);
}

#[test]
fn whoever_waits_for_ready_sessions_is_told_when_they_are_and_why_they_are_not() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 3, keep_ready: Some(3), ..shop() }).expect("can be opened");
    let error = host.run("wait_ready", &format!(r#"{{"pool":{pool},"count":4}}"#)).expect_err("are never ready");
    assert_eq!((error.kind, error.field.as_deref()), (Kind::Invalid, Some("count")));
    let ready = host.run("wait_ready", &format!(r#"{{"pool":{pool},"count":3}}"#)).expect("are ready");
    assert_eq!((ready.ready, host.bought, ready.spent_today_usd.to_string()), (3, 3, "3".to_owned()));
    host.answer = Some(refused("INSUFFICIENT_BALANCE"));
    let lease = host.lease(pool);
    host.sessions.iter_mut().for_each(|session| session.0 = "terminated");
    host.see(&lease, Seen::Status(407));
    host.pass(60_000);
    let waits = host.client.start_json("wait_ready", &format!(r#"{{"pool":{pool},"count":3,"timeout_ms":5000}}"#), CallOptions::default());
    host.pass(6000);
    let error = host.client.take_answer(waits).expect("has completed").expect_err("are not ready");
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.to_string().contains("only 2 of 3 sessions") && error.to_string().contains("the balance is too low"), "{error}");
}

#[test]
fn an_exit_used_up_while_its_session_is_read_is_changed_once_the_lease_is_back() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { rotate_after_uses: Some(1), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(60_000);
    host.see(&lease, Seen::Status(407));
    // The read is under way.
    host.client.give_back(&lease, host.now);
    host.pass(60_000);
    host.lease(pool);
    assert_eq!((host.bought, host.sessions[0].1), (1, 1), "{:?}", host.log);
}

#[test]
fn an_exit_is_not_changed_under_a_lease_where_its_session_could_not_be_read() {
    for replace in [None, Some(PoolReplace::Failing)] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { replace, idle_release_ms: Some(3_600_000), ..shop() }).expect("can be opened");
        let lease = host.lease(pool);
        host.pass(60_000);
        (0..3).for_each(|_| _ = host.see(&lease, Seen::Block));
        host.reads_fail = true;
        host.see(&lease, Seen::Status(407));
        host.pass(600_000);
        assert!(host.client.is_valid(&lease) && host.log.len() == 1, "{:?}", host.log);
        host.client.give_back(&lease, host.now);
        host.reads_fail = false;
        host.pass(120_000);
        assert_eq!(host.log.len(), 2, "{:?}", host.log);
    }
}

#[test]
fn debug_output_of_a_pool_has_no_password() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.lease(pool);
    let text = format!("{:?}", host.client);
    assert!(!text.contains(r#""w""#) && !text.contains(r#"\"w\""#), "{text}");
}

#[test]
fn a_session_that_rests_for_whoever_waits_is_no_reason_to_buy() {
    // A second lease under a key waits for the session of the first.
    let mut host = Host::new(Some(100));
    let pool = host.open(5);
    let keyed = || AcquireLease { pool, key: Some("account".into()), ..AcquireLease::default() };
    let first = host.client.acquire(keyed()).command;
    host.pass(1000);
    let lease = host.lease_of(first).expect("is bought");
    let second = host.client.acquire(keyed()).command;
    host.pass(20_000);
    assert_eq!((host.bought, host.client.is_pending(second)), (1, true));
    host.client.give_back(&lease, host.now);
    host.pass(1);
    host.lease_of(second).expect("is the same session");
    // A target that asks to wait; and one that blocks a static session.
    for (is_static, seen) in [(false, Seen::Status(429)), (true, Seen::Status(403))] {
        let mut host = Host::new(Some(100));
        host.is_static = is_static;
        let session_type = if is_static { SessionType::Static } else { SessionType::Dynamic };
        let pool = host.try_open(OpenPool { size: 5, session_type, keep_ready: Some(1), ..shop() }).expect("can be opened");
        let at_shop = || AcquireLease { pool, target: Some("shop".into()), timeout_ms: Some(300_000), ..AcquireLease::default() };
        let first = host.client.acquire(at_shop()).command;
        host.pass(1000);
        let lease = host.lease_of(first).expect("is bought");
        let before = host.bought;
        host.see(&lease, seen);
        host.client.give_back(&lease, host.now);
        let again = host.client.acquire(at_shop()).command;
        host.pass(120_000);
        assert_eq!((host.lease_of(again).is_ok(), host.bought), (true, before), "{seen:?}");
    }
}

#[test]
fn whoever_does_not_wait_at_all_gets_what_is_free() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { keep_ready: Some(1), ..shop() }).expect("can be opened");
    host.pass(10_000);
    let at_once = || AcquireLease { pool, timeout_ms: Some(0), ..AcquireLease::default() };
    let [first, second] = [host.client.acquire(at_once()).command, host.client.acquire(at_once()).command];
    host.pass(1);
    assert!(host.lease_of(first).is_ok());
    assert_eq!((host.lease_of(second).expect_err("is lent").kind, host.bought), (Kind::Unavailable, 1));
}

#[test]
fn a_session_is_not_ended_under_a_lease_while_leases_are_waited_for() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.reads_fail = true;
    host.see(&lease, Seen::Status(407));
    host.pass(1000);
    host.reads_fail = false;
    host.drain(pool, r#","grace_ms":120000"#);
    host.pass(90_000);
    assert!(host.client.is_valid(&lease) && host.log.len() == 1, "{:?}", host.log);
    host.pass(40_000);
    assert_eq!(host.log.last().map(String::as_str), Some("DELETE /sessions/s-1"));
}

#[test]
fn one_who_asks_after_a_quiet_time_has_one_session_read() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 20, keep_ready: Some(20), ..shop() }).expect("can be opened");
    host.pass(1_200_000);
    assert_eq!(host.status(pool).ready, 20);
    let before = host.reads;
    host.lease(pool);
    assert_eq!((host.reads - before, host.bought), (1, 20));
}

#[test]
fn what_cannot_be_read_when_it_is_taken_over_is_not_read_all_the_time() {
    let mut host = Host::left();
    host.reads_fail = true;
    let pool = host.open(1);
    let command = host.acquire_for(pool, 600_000);
    let before = host.reads;
    host.pass(120_000);
    assert!(host.reads - before < 200, "{} reads in two minutes", host.reads - before);
    host.reads_fail = false;
    host.pass(120_000);
    assert_eq!((host.lease_of(command).is_ok(), host.bought), (true, 1));
}

#[test]
fn a_session_fails_by_its_exits_and_not_by_what_is_seen_through_one() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { replace: Some(PoolReplace::Failing), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(60_000);
    (0..5).for_each(|_| _ = host.see(&lease, Seen::Status(403)));
    host.client.give_back(&lease, host.now);
    host.pass(20_000);
    assert_eq!(host.log.last().map(String::as_str), Some("POST /sessions/s-1/rotate \"http_403\""));
}

#[test]
fn a_doubt_that_somebody_settles_as_a_session_is_lent_within_a_minute() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some(refused("INTERNAL_ERROR"));
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(command).is_err());
    host.sessions.push(("active", 0));
    let ticket = host.client.saved(None);
    host.pass(1);
    let saved = host.client.take(ticket).expect("has completed").expect("is read").entries;
    let ticket = host.client.settle(&saved.first().expect("is in doubt").record, Settlement::Became("s-1".into()));
    host.pass(1);
    assert!(host.client.take(ticket).expect("has completed").is_ok());
    host.pass(61_000);
    host.lease(pool);
    assert_eq!(host.bought, 1);
    // No caller takes a purchase away from the pool.
    let command = host.client.resume_intent("pool/shop/0#1", CallOptions::default());
    assert_eq!(host.client.take_answer(command).expect("has completed").expect_err("is refused").kind, Kind::Invalid);
}

#[test]
fn a_free_session_is_read_and_lent_while_a_purchase_takes_long() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 2, idle_release_ms: Some(3_600_000), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    // It is read again before it is lent.
    host.pass(600_000);
    host.answer = Some((
        202,
        r#"{"success":true,"data":{"session_id":"s-2","session_type":"dynamic","status":"creating","estimated_charge_usd":1}}"#,
    ));
    host.sessions.push(("creating", 0));
    let first = host.acquire(pool);
    host.pass(15_000);
    assert_eq!((host.bought, host.client.is_pending(first)), (2, true));
    host.client.give_back(&lease, host.now);
    host.pass(5000);
    assert!(host.client.lease_of(first).is_some(), "{:?}", host.status(pool));
}

#[test]
fn whoever_waits_through_a_hold_gets_the_session_of_its_trial() {
    for (size, code) in [(4, "BACKEND_ERROR"), (2, "BACKEND_ERROR"), (2, "PRODUCT_OUT_OF_STOCK"), (1, "INSUFFICIENT_BALANCE")] {
        let mut host = Host::new(Some(100));
        let pool = host.open(size);
        host.answer = Some(refused(code));
        let first = host.acquire_for(pool, 5000);
        host.pass(120);
        assert!(host.lease_of(first).is_err());
        host.answer = None;
        let waits = host.acquire_for(pool, 80_000);
        host.pass(36_000);
        assert!(host.client.lease_of(waits).is_some(), "{code}, size {size}: {:?}", host.status(pool));
    }
}

#[test]
fn each_key_gets_a_session_of_its_own_where_there_is_room_and_shares_one_where_there_is_none() {
    let mut host = Host::new(Some(100));
    let pool = host.open(8);
    let used = use_keys(&mut host, pool, 8, 60);
    let sessions: std::collections::BTreeSet<&String> = used.iter().flat_map(|(sessions, _)| sessions).collect();
    assert_eq!((host.bought, sessions.len()), (8, 8), "{used:?}");
    assert!(used.iter().all(|(sessions, leases)| sessions.len() == 1 && *leases >= 50), "{used:?}");
    // No room.
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let used = use_keys(&mut host, pool, 4, 60);
    assert_eq!(host.bought, 2);
    assert!(used.iter().all(|(sessions, leases)| sessions.len() == 1 && *leases >= 25), "{used:?}");
    // Room, and nothing to be had for it.
    let mut host = Host::new(Some(1));
    let pool = host.open(8);
    let used = use_keys(&mut host, pool, 2, 60);
    assert_eq!((host.bought, host.status(pool).hold.map(|hold| hold.reason.as_str())), (1, Some("cap")));
    assert!(used.iter().all(|(_, leases)| *leases >= 25), "{used:?}");
}

#[test]
fn a_retry_gets_another_session_than_the_one_that_it_avoids_or_none() {
    let mut host = Host::new(Some(1));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    let retry = |host: &mut Host| {
        let asked = AcquireLease { pool, avoid: Some("s-1".into()), timeout_ms: Some(10_000), ..AcquireLease::default() };
        host.client.acquire(asked).command
    };
    // None can come, by the day's cap.
    let command = retry(&mut host);
    host.pass(11_000);
    assert_eq!(host.lease_of(command).expect_err("no other one comes").kind, Kind::Unavailable);
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    let command = retry(&mut host);
    host.pass(2000);
    assert_eq!((host.granted(command).1.session_id.as_str(), host.bought), ("s-2", 2));
    // A session that this client does not have is avoided anyway.
    let asked = AcquireLease { pool, avoid: Some("s-9".into()), ..AcquireLease::default() };
    let command = host.client.acquire(asked).command;
    host.pass(1000);
    assert_eq!(host.granted(command).1.session_id, "s-1");
}

#[test]
fn no_more_callers_wait_than_may() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { max_waiters: Some(2), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    let commands = [0; 3].map(|_| host.acquire(pool));
    host.pass(1);
    let error = host.lease_of(commands[2]).expect_err("is one too many");
    assert!(error.kind == Kind::Unavailable && error.reason == Some(PoolReason::Waiters), "{error}");
    let words = "was refused, since `max_waiters` is 2 and so many callers wait already; 1 session: 1 is lent, for ";
    assert!(error.what.starts_with(words), "{error}");
    host.client.give_back(&lease, host.now);
    host.pass(1);
    assert!(host.lease_of(commands[0]).is_ok() && host.client.is_pending(commands[1]));
    // Whoever finds a free session does not wait.
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { max_waiters: Some(0), keep_ready: Some(1), ..shop() }).expect("can be opened");
    host.pass(1000);
    host.lease(pool);
    let command = host.acquire(pool);
    host.pass(1);
    assert!(host.lease_of(command).is_err());
}

#[test]
fn a_session_that_a_caller_discards_is_not_lent_again() {
    use PoolReplace::{Ended, Failing, Never};
    for (is_static, replace, ended, bought) in [
        (false, None, true, 2),
        (false, Some(Failing), true, 2),
        (false, Some(Never), true, 1),
        (true, None, false, 1),
        (true, Some(Ended), true, 2),
    ] {
        let mut host = Host::new(Some(100));
        host.is_static = is_static;
        let session_type = if is_static { SessionType::Static } else { SessionType::Dynamic };
        let open = OpenPool { session_type, replace, leases_per_session: Some(2), ..shop() };
        let pool = host.try_open(open).expect("can be opened");
        let leases = [0; 2].map(|_| host.lease(pool));
        assert!(host.client.discard(&leases[0], host.now));
        host.client.give_back(&leases[0], host.now);
        assert!(!host.client.discard(&leases[0], host.now), "it was given back");
        let command = host.acquire_for(pool, 20_000);
        host.pass(10_000);
        assert!(host.client.is_pending(command) && host.client.is_valid(&leases[1]) && host.log.len() == 1, "{:?}", host.log);
        host.client.give_back(&leases[1], host.now);
        host.pass(60_000);
        let is_other = host.client.lease_of(command).map(|_| host.granted(command).1.session_id != "s-1");
        let was_ended = host.log.iter().any(|sent| sent == "DELETE /sessions/s-1");
        assert_eq!((was_ended, host.bought, is_other), (ended, bought, (bought > 1).then_some(true)), "{is_static} {replace:?}");
        let closed = host.close(pool);
        host.pass(20_000);
        assert!(host.client.take_answer(closed).is_some_and(|closed| closed.is_ok()) && !host.client.follows("s-1"));
    }
}

#[test]
fn what_was_seen_of_an_exit_and_the_callers_data_outlive_its_release_and_a_crash() {
    let target = || Some("shop.example".to_owned());
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = || OpenPool { session_type: SessionType::Static, ..shop() };
    let pool = host.try_open(fixed()).expect("can be opened");
    let ask = |host: &mut Host, pool, target, timeout| {
        let asked = AcquireLease { pool, target, timeout_ms: Some(timeout), ..AcquireLease::default() };
        let command = host.client.acquire(asked).command;
        host.pass(timeout);
        let data = host.client.result(command).and_then(|result| result.as_ref().ok()).map(|given| given.raw.text().to_owned());
        (host.lease_of(command), data.unwrap_or_default())
    };
    let (lease, data) = ask(&mut host, pool, target(), 1000);
    let lease = lease.expect("is free");
    assert!(data.contains(r#""data":{}"#), "{data}");
    for (data, field) in [("[]", Some("data")), ("nonsense", Some("data"))] {
        assert_eq!(host.client.set_lease_data(&lease, data, host.now).expect_err("is refused").field.as_deref(), field);
    }
    host.client.set_lease_data(&lease, r#"{"cookies":["a"]}"#, host.now).expect("is kept");
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    assert_eq!(host.client.set_lease_data(&lease, "{}", host.now).expect_err("was given back").kind, Kind::Misuse);
    // It is let go of after five seconds, and rests for a minute all the same.
    host.pass(20_000);
    assert_eq!(host.status(pool).ready, 0);
    let (denied, _) = ask(&mut host, pool, target(), 10_000);
    assert_eq!(denied.expect_err("it rests").kind, Kind::Unavailable);
    let (other, data) = ask(&mut host, pool, None, 1000);
    let other = other.expect("it rests for one target only");
    assert!(data.contains(r#""data":{"cookies":["a"]}"#), "{data}");
    host.client.set_lease_data(&other, r#"{"cookies":["b"]}"#, host.now).expect("is kept");
    host.client.give_back(&other, host.now);
    host.pass(1000);
    // The program dies, and another one takes over.
    let mut next = host.died();
    let pool = next.try_open(fixed()).expect("can be opened");
    next.pass(70_000);
    let (_, data) = ask(&mut next, pool, target(), 40_000);
    assert!(data.contains(r#""data":{"cookies":["b"]}"#) && next.bought == 0, "{data}");
}

#[test]
fn what_was_noted_of_an_exit_ends_with_it_also_where_the_program_dies() {
    let (mut host, pool) = Host::blocked_with(r#"{"cookies":["a"]}"#, None);
    // The new exit is lent, and nothing more is noted of it when the program dies.
    let (_, granted) = host.granted_now(pool);
    assert_eq!((granted.data.text(), granted.generation), ("{}", 2));
    let mut next = host.died();
    let pool = next.open(1);
    let (_, granted) = next.granted_now(pool);
    assert_eq!((granted.data.text(), granted.generation, next.bought), ("{}", 2, 0));
}

#[test]
fn what_was_noted_of_an_exit_stays_where_its_change_is_refused_and_the_program_dies() {
    let data = r#"{"cookies":["a"]}"#;
    let (host, _) = Host::blocked_with(data, Some(refused("INVALID_REQUEST")));
    assert_eq!(host.sessions[0].1, 0, "{:?}", host.log);
    let mut next = host.died();
    let pool = next.open(1);
    let (_, granted) = next.granted_now(pool);
    assert_eq!((granted.data.text(), next.bought), (data, 0));
}

#[test]
fn whoever_cannot_be_served_is_told_at_once_with_counts_reason_and_time() {
    // A static session that its target has blocked rests for that target, and for no other.
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed.clone()).expect("can be opened");
    let acquire = AcquireLease { pool, target: Some("shop.example".into()), ..AcquireLease::default() };
    let command = host.client.acquire(acquire).command;
    host.pass(1000);
    let lease = host.lease_of(command).expect("is lent");
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    let error = told_at_once(&mut host, pool, "shop.example", 30_000);
    assert_eq!((error.kind, error.effect, error.reason), (Kind::Unavailable, Effect::None, Some(PoolReason::Resting)), "{error}");
    assert!(error.what.starts_with("no session is free; 1 session: 1 rests for shop.example until 2"), "{error}");
    let rests = error.retry_at.expect("is known") - host.now.unix;
    assert!((50_000..=60_000).contains(&rests), "{rests}");
    let other = AcquireLease { pool, target: Some("other.example".into()), ..AcquireLease::default() };
    let command = host.client.acquire(other).command;
    host.pass(1000);
    let lease = host.lease_of(command).expect("it rests for one target alone");
    host.client.give_back(&lease, host.now);
    // A caller with more time gets it.
    let patient = AcquireLease { pool, target: Some("shop.example".into()), timeout_ms: Some(90_000), ..AcquireLease::default() };
    let command = host.client.acquire(patient).command;
    host.pass(70_000);
    let lease = host.lease_of(command).expect("it has rested");
    // A lease that is out may come back at any moment, so that its caller waits, and is told for how long it has been out.
    let command = host.acquire_for(pool, 5000);
    host.pass(4000);
    assert!(host.client.is_pending(command));
    host.pass(2000);
    let error = host.lease_of(command).expect_err("is lent");
    assert_eq!(error.reason, Some(PoolReason::Leased), "{error}");
    assert!(error.what.starts_with("no session was free in time; 1 session: 1 is lent, for "), "{error}");
    host.client.give_back(&lease, host.now);
    // What another client has.
    host.close(pool);
    host.pass(1000);
    let pool = host.try_open(fixed).expect("can be opened");
    host.taken = Some(host.client.slot_name("shop/0"));
    let command = host.acquire_for(pool, 5000);
    host.pass(6000);
    let error = host.lease_of(command).expect_err("another client has it");
    assert_eq!(error.reason, Some(PoolReason::WithOthers), "{error}");
    assert!(error.what.contains("1 session: 1 with another client"), "{error}");
    assert_eq!(host.status(pool).with_others, 1);
}

#[test]
fn a_caller_who_gives_up_is_told_that_what_is_being_bought_goes_on() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some((
        202,
        r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"creating","estimated_charge_usd":1}}"#,
    ));
    host.sessions.push(("creating", 0));
    let command = host.acquire(pool);
    host.pass(2000);
    host.client.cancel(command, host.now);
    let error = host.client.take_answer(command).expect("has completed").expect_err("is cancelled");
    assert_eq!(error.what, "was cancelled before a session was free, and what is being bought goes on");
    assert_eq!(error.kind, Kind::Cancelled);
}

#[test]
fn a_session_whose_exit_may_have_changed_is_lent_with_a_new_generation_though_it_cannot_be_read() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    (host.rotation, host.reads_fail) = (Some((503, "")), true);
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    let command = host.acquire_for(pool, 300_000);
    host.pass(120_000);
    let (lease, granted) = host.granted(command);
    assert_eq!((granted.session_id.as_str(), granted.generation), ("s-1", 2));
    // Further reads are made beside that.
    let reads = host.reads;
    host.client.give_back(&lease, host.now);
    for _ in 0..120 {
        let command = host.acquire_for(pool, 500);
        host.pass(1000);
        let lease = host.lease_of(command).expect("is lent meanwhile");
        host.client.give_back(&lease, host.now);
    }
    assert!(host.reads > reads, "{reads}");
    host.reads_fail = false;
    host.pass(61_000);
    assert_eq!((host.granted_now(pool).1.generation, host.bought), (2, 1));
}

#[test]
fn a_target_with_a_login_is_shown_without_it() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { idle_release_ms: Some(60_000), ..shop() }).expect("can be opened");
    for _ in 0..4 {
        let target = Some("https://user:secret@shop.example/?token=secret".to_owned());
        let command = host.client.acquire(AcquireLease { pool, target, timeout_ms: Some(90_000), ..AcquireLease::default() }).command;
        host.pass(91_000);
        let Ok(lease) = host.lease_of(command) else { continue };
        host.see(&lease, Seen::Status(403));
        host.client.give_back(&lease, host.now);
        host.pass(10_000);
    }
    let status = json_of(&host.status(pool));
    assert!(status.contains("shop.example") && !status.contains("secret"), "{status}");
}

#[test]
fn who_does_not_wait_any_more_is_not_bought_for() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 8, keep_ready: Some(1), ..shop() }).expect("can be opened");
    host.pass(10_000);
    assert_eq!(host.bought, 1);
    // Eight slots are claimed; before the record was read, seven of the callers are gone.
    host.taken = Some(host.client.pool_name("shop"));
    host.pass(2000);
    let lease = host.lease(pool);
    let waiting: Vec<CommandId> = (0..7).map(|_| host.acquire_for(pool, 60_000)).collect();
    host.pass(300);
    for command in &waiting {
        host.client.cancel(*command, host.now);
    }
    host.taken = None;
    host.pass(10_000);
    host.client.give_back(&lease, host.now);
    assert_eq!(host.bought, 2, "one is kept ready beside the one that is lent");
}

#[test]
fn a_static_session_that_a_person_has_renewed_is_lent_and_no_other_is_bought_in_its_place() {
    for (is_renewed, bought) in [(true, 1), (false, 2)] {
        let mut host = Host::new(Some(100));
        host.is_static = true;
        let fixed = OpenPool { session_type: SessionType::Static, replace: Some(PoolReplace::Ended), ..shop() };
        let pool = host.try_open(fixed).expect("can be opened");
        let lease = host.lease(pool);
        host.sessions[0].0 = "expired";
        host.see(&lease, Seen::Status(407));
        host.pass(20_000);
        assert!(!host.client.is_valid(&lease) && host.bought == 1);
        host.sessions[0].0 = if is_renewed { "active" } else { "expired" };
        let command = host.acquire(pool);
        host.pass(20_000);
        let session = host.granted(command).1.session_id;
        assert_eq!((host.bought, session.as_str()), (bought, if is_renewed { "s-1" } else { "s-2" }));
    }
}

#[test]
fn whoever_discards_session_after_session_without_a_good_answer_does_not_buy_without_end() {
    for (seen, bought) in [(None, 6..=9), (Some(Seen::Status(200)), 60..=61)] {
        let mut host = Host::new(Some(100));
        let pool = host.open(1);
        for _ in 0..60 {
            let command = host.acquire_for(pool, 50_000);
            host.pass(60_000);
            let Ok(lease) = host.lease_of(command) else { continue };
            seen.into_iter().for_each(|seen| _ = host.see(&lease, seen));
            assert!(host.client.discard(&lease, host.now));
            host.client.give_back(&lease, host.now);
        }
        assert!(bought.contains(&host.bought), "{seen:?}: {}", host.bought);
    }
}
