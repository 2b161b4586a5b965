//! Purchases, renewals, holds, doubts and caps.

use super::*;

#[test]
fn a_pool_needs_a_cap_and_buys_nothing_before_somebody_asks() {
    let mut host = Host::new(None);
    for (open, field) in [
        (OpenPool { session_type: SessionType::Other(String::new()), ..shop() }, "session_type"),
        (OpenPool { size: 0, ..shop() }, "size"),
        (OpenPool { name: "a#1".into(), ..shop() }, "name"),
        (OpenPool { name: "a/b".into(), ..shop() }, "name"),
        (OpenPool { keep_ready: Some(2), ..shop() }, "keep_ready"),
        (shop(), "daily_cap_usd"),
    ] {
        let error = host.try_open(open).expect_err("is refused");
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
    }
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    host.pass(3_600_000);
    assert_eq!(host.bought, 0);
    let command = host.acquire(pool);
    host.pass(1000);
    let lease = host.client.lease_of(command).expect("is granted");
    assert!(host.client.take_answer(command).expect("has completed").is_ok() && host.client.is_valid(&lease));
    assert_eq!((host.bought, host.client.status(pool).expect("is open").leased), (1, 1));
    // A session that nobody used for a minute is let go of; the next one who asks finds it.
    assert!(host.client.give_back(&lease, host.now) && !host.client.give_back(&lease, host.now));
    host.pass(120_000);
    assert_eq!(host.client.status(pool).map(|status| (status.ready, status.free_in_store, status.unknown)), Some((0, 1, 1)));
    let command = host.acquire(pool);
    host.pass(1000);
    assert_eq!((host.bought, host.client.lease_of(command).is_some()), (1, true));
}

#[test]
fn a_session_whose_product_was_chosen_is_taken_over_again() {
    let mut host = Host::new(Some(100));
    let product = Some(Cheapest::of(&SessionType::Dynamic));
    let pool = host.try_open(OpenPool { product_no: String::new(), product, size: 2, ..shop() }).expect("can be opened");
    for _ in 0..2 {
        let lease = host.lease(pool);
        host.client.give_back(&lease, host.now);
        host.pass(120_000);
        assert_eq!((host.bought, host.status(pool).free_in_store), (1, 1));
    }
}

#[test]
fn a_doubt_that_somebody_settles_is_no_reason_to_buy() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some((503, ""));
    let command = host.acquire(pool);
    host.pass(400_000);
    let error = host.client.take_answer(command).expect("has completed").expect_err("nothing was free");
    assert_eq!((error.kind, host.client.status(pool).map(|status| status.in_doubt)), (Kind::Unavailable, Some(1)), "{error}");
    let ticket = host.client.saved(None);
    host.pass(1);
    let saved = host.client.take(ticket).expect("has completed").expect("is read").entries;
    let record: &RecordId = &saved.first().expect("is in doubt").record;
    let ticket = host.client.settle(record, Settlement::NotHappened { early: true });
    host.pass(1);
    assert_eq!(host.client.take(ticket).expect("has completed").map_err(|error| error.to_string()), Ok(true));
    let sent = host.bought;
    host.answer = None;
    host.pass(7_200_000);
    assert_eq!((host.bought, host.client.status(pool).map(|status| status.in_doubt)), (sent, Some(0)));
    let command = host.acquire(pool);
    host.pass(60_000);
    assert!(host.client.lease_of(command).is_some() && host.bought == sent + 1);
}

#[test]
fn a_pool_has_a_cap_of_its_own_beside_that_of_its_client() {
    // A session costs 1 USD by its quote.
    for (of_client, of_pool, bought, whose) in [
        (Some(10), Some(2), 2, "the pool's daily cap"),
        (None, Some(1), 1, "the pool's daily cap"),
        (Some(1), Some(5), 1, "of the daily cap"),
    ] {
        let mut host = Host::new(of_client);
        let daily_cap_usd = of_pool.map(|usd: i64| usd.to_string().parse().expect("is a number"));
        let pool = host.try_open(OpenPool { size: 4, daily_cap_usd, ..shop() }).expect("can be opened");
        for lent in 0..4 {
            let command = host.acquire(pool);
            host.pass(120_000);
            assert_eq!(host.client.lease_of(command).is_some(), lent < bought, "{of_client:?} {of_pool:?} {lent}");
        }
        let hold = host.client.status(pool).and_then(|status| status.hold).expect("does not buy");
        assert_eq!((host.bought, hold.reason.as_str()), (bought, "cap"), "{whose}");
        // At the next UTC day it goes on.
        let midnight = 86_400_000 - START.unix % 86_400_000;
        let command = host.acquire_for(pool, 2 * 86_400_000);
        host.pass(midnight - host.now.monotonic - 1000);
        assert_eq!(host.bought, bought);
        host.pass(10_000);
        assert_eq!((host.bought, host.client.lease_of(command).is_some()), (bought + 1, true));
    }
}

#[test]
fn where_a_session_is_over_another_is_bought_or_its_slot_stays_empty() {
    for (replace, bought) in [(None, 2), (Some(PoolReplace::Never), 1)] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { replace, ..shop() }).expect("can be opened");
        let lease = host.lease(pool);
        host.pass(60_000);
        host.sessions[0].0 = "terminated";
        assert_eq!(host.see(&lease, Seen::Status(407)), Some("give_back"));
        host.pass(1000);
        assert!(!host.client.is_valid(&lease), "its session is over");
        let command = host.acquire(pool);
        host.pass(31_000);
        assert_eq!((host.lease_of(command).is_ok(), host.bought), (bought > 1, bought));
        let status = host.status(pool);
        assert_eq!((status.empty, status.leased), if bought > 1 { (0, 1) } else { (1, 0) });
    }
}

#[test]
fn a_slot_that_stays_empty_is_looked_at_each_minute_as_its_session_may_be_renewed_by_hand() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed).expect("can be opened");
    let lease = host.lease(pool);
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.client.give_back(&lease, host.now);
    let command = host.acquire(pool);
    host.pass(3000);
    let error = host.lease_of(command).expect_err("nothing comes by itself");
    assert_eq!((error.reason, host.status(pool).empty), (Some(PoolReason::Over), 1), "{error}");
    assert!(error.what.contains("1 session: 1 empty, and `replace` is `never`"), "{error}");
    host.sessions[0].0 = "active";
    host.pass(60_000);
    let command = host.acquire(pool);
    host.pass(3000);
    assert_eq!((host.lease_of(command).is_ok(), host.bought), (true, 1));
}

#[test]
fn an_expired_static_session_is_renewed_and_keeps_its_address() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, renew_duration: Some(30), expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed.clone()).expect("can be opened");
    let lease = host.lease(pool);
    host.sessions[0].0 = "expired";
    assert_eq!(host.see(&lease, Seen::Status(407)), Some("give_back"));
    host.pass(5000);
    host.client.give_back(&lease, host.now);
    let lease = host.lease(pool);
    assert_eq!((host.bought, host.log.last().map(String::as_str)), (1, Some("POST /sessions/s-1/renew")));
    // So is one that expired while nobody had it.
    host.client.give_back(&lease, host.now);
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    host.sessions[0].0 = "expired";
    let pool = host.try_open(fixed).expect("can be opened");
    let command = host.acquire(pool);
    host.pass(10_000);
    assert!(host.lease_of(command).is_ok());
    assert_eq!((host.bought, host.log.iter().filter(|sent| sent.ends_with("/renew")).count()), (1, 2), "{:?}", host.log);
}

#[test]
fn a_hold_is_kept_for_all_and_one_purchase_is_tried_when_its_time_has_come() {
    let mut host = Host::new(Some(100));
    let pool = host.open(4);
    host.answer = Some(refused("PRODUCT_OUT_OF_STOCK"));
    let soon = AcquireLease { pool, timeout_ms: Some(20_000), ..AcquireLease::default() };
    let commands = [0; 3].map(|_| host.client.acquire(soon.clone()).command);
    host.pass(1000);
    assert_eq!((host.bought, host.events.as_slice()), (1, ["pool_held"].as_slice()));
    let error = host.lease_of(commands[0]).expect_err("no session is there");
    assert_eq!((error.kind, error.retry_at.is_some()), (Kind::Unavailable, true), "{error}");
    // Another client of the pool, such as this one after it was closed, finds the hold.
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.open(4);
    assert_eq!(host.status(pool).hold.map(|hold| hold.reason.as_str()), Some("out_of_stock"));
    let waits = host.acquire_for(pool, 3_600_000);
    host.pass(20_000);
    assert_eq!(host.bought, 1);
    host.pass(20_000);
    assert_eq!(host.bought, 2, "the trial");
    host.answer = None;
    host.pass(61_000);
    assert!(host.lease_of(waits).is_ok());
    assert_eq!((host.bought, host.status(pool).hold), (3, None));
    assert_eq!(host.events.last(), Some(&"pool_freed"));
}

#[test]
fn what_could_not_be_asked_for_is_asked_for_again_to_end_it() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.close(pool);
    host.pass(1000);
    let pool = host.open(2);
    host.store_fails = true;
    let command = host.drain(pool, r#","everywhere":true,"grace_ms":60000"#);
    host.pass(20_000);
    assert!(host.client.is_pending(command));
    host.store_fails = false;
    host.pass(20_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn a_call_of_a_pool_takes_no_options_of_a_request_and_says_what_is_wrong_with_its_own() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let refused = |host: &mut Host, operation: &str, params: &str, options: &str| {
        let command = host.client.start_text(operation, params, options);
        host.pass(1);
        let error = host.client.take_answer(command).expect("has completed").expect_err("is refused");
        (error.kind, error.operation, error.field.clone().unwrap_or_default())
    };
    let acquire = format!(r#"{{"pool":{pool}}}"#);
    assert_eq!(refused(&mut host, "acquire", &acquire, r#"{"attempts":1}"#), (Kind::Invalid, "acquire", "options".to_owned()));
    assert_eq!(refused(&mut host, "acquire", "{}", "{}"), (Kind::Invalid, "acquire", "pool".to_owned()));
    assert_eq!(refused(&mut host, "acquire", r#"{"pool":9}"#, "{}"), (Kind::Misuse, "acquire", String::new()));
    assert_eq!(refused(&mut host, "acquire", r#"{"pool":1,"timeout":1}"#, "{}"), (Kind::Invalid, "acquire", "timeout".to_owned()));
    assert_eq!(refused(&mut host, "open_pool", r#"{"name":"x"}"#, "{}").0, Kind::Invalid);
    assert!(host.client.observe_lease_text(&LeaseRef { pool, lease: 0 }, "\"nonsense\"", None, host.now).is_err());
    assert_eq!(host.client.observe_lease_text(&LeaseRef { pool, lease: 7 }, "\"block\"", None, host.now), Ok(None));
}

#[test]
fn sessions_that_are_over_when_they_are_sold_are_not_bought_one_after_the_other() {
    for held in [false, true] {
        let mut host = Host::new(Some(100));
        let pool = host.open(2);
        let waits =
            |host: &mut Host| _ = host.client.acquire(AcquireLease { pool, timeout_ms: Some(3_600_000), ..AcquireLease::default() });
        if held {
            host.answer = Some(refused("PRODUCT_OUT_OF_STOCK"));
            waits(&mut host);
            host.pass(1000);
            host.answer = None;
        }
        host.stillborn = true;
        waits(&mut host);
        host.pass(600_000);
        assert!(host.bought <= 8, "held: {held}, {} purchases in 10 minutes", host.bought);
    }
}

#[test]
fn during_a_hold_a_doubt_is_looked_at_by_the_trial_alone() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 4, ..shop() }).expect("can be opened");
    host.answer = Some((503, ""));
    let command = host.acquire_for(pool, 1000);
    host.pass(100_000);
    assert!(host.lease_of(command).is_err());
    // Refusals that a person has to end: no trial is due any more, whatever is in doubt.
    host.answer = Some(refused("PRODUCT_NOT_FOUND"));
    host.pass(1_200_000);
    let sent = host.bought;
    assert_eq!(host.status(pool).hold.map(|hold| hold.reason.as_str()), Some("request"));
    host.pass(3_600_000);
    assert_eq!(host.bought, sent, "{:?}", host.status(pool));
}

#[test]
fn the_cap_of_a_pool_is_forgotten_with_it() {
    let mut host = Host::new(Some(100));
    for round in 0..20 {
        let name = format!("shop-{round}");
        let pool = host.try_open(OpenPool { name, daily_cap_usd: "5".parse().ok(), ..shop() }).expect("can be opened");
        host.lease(pool);
        host.client.close_pool(ClosePool { pool, grace_ms: Some(0) });
        host.pass(120_000);
    }
    assert_eq!(host.client.pool_caps(), 0);
}

#[test]
fn a_session_that_the_service_has_forgotten_gives_its_slot_to_the_next() {
    let mut host = Host::left();
    host.is_forgetful = true;
    let pool = host.open(1);
    let command = host.acquire_for(pool, 300_000);
    host.pass(20_000);
    host.is_forgetful = false;
    host.pass(60_000);
    assert_eq!((host.lease_of(command).is_ok(), host.bought), (true, 2));
    assert!(host.reads < 100, "{}", host.reads);
}

#[test]
fn a_renewal_that_nobody_knows_of_is_not_made_again_and_one_sessions_refusal_stops_nothing() {
    let fixed = || OpenPool {
        session_type: SessionType::Static,
        renew_duration: Some(30),
        expected_charge_usd: "5".parse().ok(),
        size: 2,
        ..shop()
    };
    for (code, renewals) in [("BACKEND_ERROR", 1), ("SESSION_NOT_FOUND", 1)] {
        let mut host = Host::new(Some(100));
        host.is_static = true;
        let pool = host.try_open(fixed()).expect("can be opened");
        let lease = host.lease(pool);
        host.sessions[0].0 = "expired";
        host.renewal = Some(refused(code));
        host.see(&lease, Seen::Status(407));
        host.client.give_back(&lease, host.now);
        host.pass(3_600_000);
        let renewed = host.log.iter().filter(|sent| sent.ends_with("/renew")).count();
        let hold = host.status(pool).hold.map(|hold| hold.reason.as_str());
        assert_eq!((renewed, hold), (renewals, (code == "BACKEND_ERROR").then_some("backend")), "{code} {:?}", host.log);
    }
    // Nor is anything renewed while purchases are held back for a person.
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed()).expect("can be opened");
    let lease = host.lease(pool);
    host.answer = Some(refused("ACCOUNT_DISABLED"));
    let other = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(other).is_err());
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.pass(600_000);
    assert!(!host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.pass(61_000);
    assert!(host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
}

#[test]
fn a_client_with_pools_is_driven_with_its_pools() {
    struct Still(Memory, Millis);
    impl crate::client::Host for Still {
        fn now(&mut self) -> Now {
            Now { unix: START.unix + self.1, monotonic: self.1 }
        }
        fn send(&mut self, _: &crate::wire::Request) -> crate::client::Responded {
            panic!("nothing is sent to open a pool")
        }
        fn sleep(&mut self, ms: Millis) {
            self.1 += ms;
        }
        fn store(&mut self, call: &StoreCall) -> StoreAnswer {
            self.0.call(call.clone(), START.unix + self.1, self.1)
        }
    }
    let mut host = Host::new(Some(100));
    let ticket = host.client.open_pool(OpenPool { size: 2, ..shop() });
    let opened = crate::client::drive(&mut host.client, ticket, &mut Still(Memory::default(), 0)).expect("can be opened");
    assert_eq!(host.client.status(opened.pool).map(|status| status.unknown), Some(2));
}

#[test]
fn renewals_that_are_refused_are_tried_ever_less_often() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed_of(3)).expect("can be opened");
    let leases = [0; 3].map(|_| host.lease(pool));
    host.sessions.iter_mut().for_each(|session| session.0 = "expired");
    host.renewal = Some(refused("INSUFFICIENT_BALANCE"));
    leases.iter().for_each(|lease| _ = host.see(lease, Seen::Status(407)));
    host.pass(3_600_000);
    let renewed = host.log.iter().filter(|sent| sent.ends_with("/renew")).count();
    assert!(renewed < 15, "{renewed} {:?}", host.status(pool).hold);
    host.renewal = None;
    host.pass(1_200_000);
    assert!(host.sessions.iter().all(|session| session.0 == "active"), "{:?}", host.sessions);
}

#[test]
fn sessions_that_several_share_are_bought_for_as_many() {
    let mut host = Host::new(Some(100));
    let pool =
        host.try_open(OpenPool { size: 20, leases_per_session: Some(3), idle_release_ms: Some(1), ..shop() }).expect("can be opened");
    // So many may be bought at a time by then.
    let mut leases: Vec<LeaseRef> = (0..9).map(|_| host.lease(pool)).collect();
    assert_eq!(host.bought, 3);
    let commands = [0; 3].map(|_| host.acquire(pool));
    host.pass(10_000);
    leases.extend(commands.map(|command| host.lease_of(command).expect("is lent")));
    assert_eq!(host.bought, 4);
}

#[test]
fn a_doubt_beyond_its_own_size_leaves_a_small_pool_its_own_slots() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    host.answer = Some(refused("INTERNAL_ERROR"));
    host.taken = Some(host.client.slot_name("shop/0"));
    let command = host.acquire_for(pool, 1000);
    host.pass(20_000);
    host.taken = None;
    assert!(host.lease_of(command).is_err());
    let doubt = host.status(pool).slots.iter().find(|slot| slot.state.as_str() == "in_doubt").map(|slot| slot.slot);
    assert!(doubt > Some(0));
    host.close(pool);
    host.pass(20_000);
    host.answer = None;
    let pool = host.open(1);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    let command = host.acquire_for(pool, 200_000);
    host.pass(210_000);
    assert!(host.lease_of(command).is_ok(), "{doubt:?} {:?}", host.status(pool));
}

#[test]
fn a_renewal_in_doubt_of_one_session_holds_back_no_purchase() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed_of(2)).expect("can be opened");
    let lease = host.lease(pool);
    host.renewal = Some(refused("BACKEND_TIMEOUT"));
    let options = CallOptions { expected_charge_usd: "1".parse().ok(), ..CallOptions::default() };
    let by_hand = host.client.start_json("renew_session", r#"{"session_id":"s-1","duration":1}"#, options);
    host.pass(100_000);
    assert!(host.client.take_answer(by_hand).expect("has ended").is_err());
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.client.give_back(&lease, host.now);
    host.pass(120_000);
    assert_eq!(host.status(pool).hold, None);
    let other = host.acquire_for(pool, 600_000);
    host.pass(700_000);
    assert!(host.lease_of(other).is_ok());
}

#[test]
fn a_session_that_rests_for_the_only_caller_is_no_reason_to_buy_though_it_was_let_go_of() {
    for keep_ready in [None, Some(1)] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { size: 4, keep_ready, ..shop() }).expect("can be opened");
        for _ in 0..8 {
            let asked = AcquireLease { pool, target: Some("shop.example".into()), timeout_ms: Some(4000), ..AcquireLease::default() };
            let command = host.client.acquire(asked).command;
            host.pass(4000);
            if let Ok(lease) = host.lease_of(command) {
                host.client.observe_lease(&lease, Seen::Status(429), Some(60_000), host.now);
                host.client.give_back(&lease, host.now);
            }
            host.pass(7000);
        }
        let expected = if keep_ready.is_some() { 2 } else { 1 };
        assert!(host.bought <= expected, "{keep_ready:?}: {} bought, {:?}", host.bought, host.log);
    }
}
