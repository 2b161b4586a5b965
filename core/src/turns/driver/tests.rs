//! A client with its turns, told one thing after the other.

use super::*;
use crate::client::ClientOptions;
use crate::contract::Api;
use crate::state::{Memory, Space, StoreCall};

const ONE: OwnerNo = OwnerNo(1);
const TWO: OwnerNo = OwnerNo(2);
const THREE: OwnerNo = OwnerNo(3);
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p"}"#;
const SESSION: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}"#;
const ENDED: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"terminated"}}"#;

fn at(monotonic: Millis) -> Now {
    Now { unix: 1_700_000_000_000 + monotonic, monotonic }
}

fn driver(store: bool) -> Driver {
    let options = ClientOptions { base_url: "https://api.example/v1".into(), store, ..ClientOptions::default() };
    Driver::new(PoolClient::new(options, [7; 16]).expect("the options are sound"), false)
}

fn enter(driver: &mut Driver, owner: OwnerNo, operation: &str, params: &str, options: &str) {
    let entered = driver.enter(owner, OwnerKind::Sending, Place::THREADS, |client| Some(client.start_text(operation, params, options)));
    assert!(entered.is_some(), "the client is open");
}

fn resume_all(driver: &mut Driver, owner: OwnerNo) {
    let entered = driver.enter(owner, OwnerKind::Delegating, Place::THREADS, |client| Some(client.resume_all_text("{}")));
    assert!(entered.is_some(), "the client is open");
}

fn sent(turn: NextTurn) -> (StepId, String) {
    match turn {
        NextTurn::Send { step, request: Some(request), .. } => (step, request.method.as_str().to_owned()),
        other => panic!("no send: {other:?}"),
    }
}

fn answer(driver: &mut Driver, step: StepId, status: u16, body: &[u8], now: Now) {
    let answer = Outcome::Response { status, headers: &[], body, truncated: false };
    assert_eq!(driver.answered(step, answer, now), Some(true));
}

/// The turn of an owner, which has heard its results if there are any.
fn last_turn(driver: &mut Driver, owner: OwnerNo, now: Now) -> NextTurn {
    match driver.turn(owner, now) {
        NextTurn::Ended => driver.heard(owner, now),
        turn => turn,
    }
}

/// Does the work of an owner, or of the background, over that disk. Every purchase is answered. Returns the turn that ends it.
fn worked(driver: &mut Driver, owner: OwnerNo, disk: &mut Memory, now: Now) -> NextTurn {
    for _ in 0..100 {
        let turn = if owner == OwnerNo::BACKGROUND { driver.tend(5, now) } else { driver.turn(owner, now) };
        match turn {
            NextTurn::Ask { step, call } => {
                let answer = disk.call(call, now.unix, 0);
                assert!(driver.stored(step, answer, now));
            }
            NextTurn::Send { step, .. } => answer(driver, step, 202, SESSION, now),
            turn => return turn,
        }
    }
    panic!("has no end");
}

/// The effect of the result of an owner's command, or "done".
fn ended(driver: &Driver, owner: OwnerNo) -> String {
    match driver.results(owner) {
        [(_, Ok(_))] => "done".to_owned(),
        [(_, Err(error))] => format!("{} {}", error.kind.as_str(), error.effect.as_str()),
        other => format!("{} results", other.len()),
    }
}

#[test]
fn closing_cancels_what_is_under_way_and_still_sends_the_terminations_that_were_asked_for() {
    let mut driver = driver(false);
    enter(&mut driver, ONE, "terminate_session", r#"{"session_id":"s-1"}"#, "{}");
    enter(&mut driver, TWO, "terminate_session", r#"{"session_id":"s-2"}"#, "{}");
    enter(&mut driver, THREE, "create_session", BUY, "{}");
    let (failing, method) = sent(driver.turn(ONE, at(0)));
    let (going, _) = sent(driver.turn(TWO, at(0)));
    let (buying, _) = sent(driver.turn(THREE, at(0)));
    assert_eq!(method, "DELETE");
    // The first one waits, to be sent again; the second is out.
    answer(&mut driver, failing, 503, b"", at(10));
    let NextTurn::Wait(Some(again)) = driver.turn(ONE, at(10)) else { panic!("does not wait") };
    driver.take_news();
    assert!(!driver.close(None, at(20)), "three owners are in it");
    let (nudges, _) = driver.take_news();
    assert!(nudges.contains(&Nudge::Over(buying, FailureKind::Aborted, true)), "{nudges:?}");
    assert!(!nudges.iter().any(|nudge| matches!(nudge, Nudge::Over(step, ..) if *step == going)), "{nudges:?}");
    assert_eq!(last_turn(&mut driver, THREE, at(20)), NextTurn::Done);
    assert_eq!(ended(&driver, THREE), "cancelled unknown");
    assert!(!driver.leave(THREE, true, at(20)));
    answer(&mut driver, going, 200, ENDED, at(30));
    assert_eq!((last_turn(&mut driver, TWO, at(30)), ended(&driver, TWO)), (NextTurn::Done, "done".to_owned()));
    assert!(!driver.leave(TWO, true, at(30)));
    assert!(matches!(driver.turn(ONE, at(30)), NextTurn::Wait(_)), "woken by the closing");
    let (once_more, method) = sent(driver.turn(ONE, at(again)));
    assert_eq!(method, "DELETE");
    answer(&mut driver, once_more, 200, ENDED, at(again));
    assert_eq!((last_turn(&mut driver, ONE, at(again)), ended(&driver, ONE)), (NextTurn::Done, "done".to_owned()));
    assert!(driver.leave(ONE, true, at(again)), "the last one finishes the client");
    assert!(driver.enter(ONE, OwnerKind::Sending, Place::THREADS, |_| None).is_none());
}

#[test]
fn beside_a_termination_a_closed_client_sends_nothing_for_its_pools() {
    let mut driver = driver(false);
    let pool = r#"{"name":"shop","size":2,"session_type":"dynamic","product_no":"p"}"#;
    enter(&mut driver, ONE, "open_pool", pool, "{}");
    driver.turns().carry(true);
    enter(&mut driver, TWO, "terminate_session", r#"{"session_id":"s-1"}"#, "{}");
    let mut now = 0;
    // Its pool is open and buys.
    loop {
        match driver.turn(ONE, at(now)) {
            NextTurn::Ended | NextTurn::Done => break,
            NextTurn::Send { step, .. } => {
                let body =
                    br#"{"success":true,"data":{"items":[{"product_no":"p","type":"dynamic","price":1,"currency":"USD","unit":"GB"}]}}"#;
                answer(&mut driver, step, 200, body, at(now));
            }
            NextTurn::Wait(until) => now = until.unwrap_or(now + 1000),
            NextTurn::Ask { .. } => panic!("without a store"),
        }
        assert!(now < 60_000, "the pool does not open");
    }
    driver.leave(ONE, true, at(now));
    driver.close(None, at(now));
    // The service refuses the termination for two minutes.
    let (mut ends, over) = (0, now + 120_000);
    while now < over {
        match driver.turn(TWO, at(now)) {
            NextTurn::Ended | NextTurn::Done => break,
            NextTurn::Send { step, request, .. } => {
                assert_eq!(request.map(|request| request.method.as_str()), Some("DELETE"));
                ends += 1;
                answer(&mut driver, step, 503, b"", at(now));
            }
            NextTurn::Wait(until) => now = until.unwrap_or(over),
            NextTurn::Ask { .. } => panic!("without a store"),
        }
    }
    assert!(ends > 1, "{ends}");
}

#[test]
fn the_result_of_a_command_whose_owner_has_left_is_nobodys_and_its_intent_is_free() {
    let mut disk = Memory::default();
    // The owner leaves while the store has its claim, or its put, or once its request is out.
    for left_at in 0..4 {
        let mut driver = driver(true);
        let intent = r#"{"intent":"job-1"}"#;
        enter(&mut driver, ONE, "create_session", BUY, intent);
        let mut asks: Vec<(StepId, StoreCall)> = Vec::new();
        for _ in 0..left_at {
            match driver.turn(ONE, at(0)) {
                NextTurn::Ask { step, call } => {
                    let answer = disk.call(call, at(0).unix, 0);
                    driver.stored(step, answer, at(0));
                }
                NextTurn::Send { step, .. } => answer(&mut driver, step, 202, SESSION, at(0)),
                other => panic!("{other:?}"),
            }
        }
        if let NextTurn::Ask { step, call } = driver.turn(ONE, at(0)) {
            asks.push((step, call));
        }
        // Interrupted twice.
        driver.leave(ONE, true, at(0));
        for (step, call) in asks {
            let answer = disk.call(call, at(0).unix, 0);
            driver.stored(step, answer, at(0));
        }
        for _ in 0..100 {
            match driver.tend(5, at(0)) {
                NextTurn::Ask { step, call } => {
                    let answer = disk.call(call, at(0).unix, 0);
                    driver.stored(step, answer, at(0));
                }
                NextTurn::Done => break,
                NextTurn::Wait(_) => {}
                NextTurn::Send { .. } | NextTurn::Ended => panic!("nobody wants it"),
            }
        }
        assert!(driver.turns().is_at_rest(), "{left_at}");
        enter(&mut driver, TWO, "create_session", BUY, intent);
        loop {
            match driver.turn(TWO, at(10)) {
                NextTurn::Ask { step, call } => {
                    let answer = disk.call(call, at(0).unix, 0);
                    driver.stored(step, answer, at(10));
                }
                NextTurn::Send { step, .. } => answer(&mut driver, step, 202, SESSION, at(10)),
                NextTurn::Ended | NextTurn::Done => break,
                NextTurn::Wait(until) => panic!("{left_at}: waits until {until:?}"),
            }
        }
        assert_eq!(ended(&driver, TWO), "done", "{left_at}");
        driver.leave(TWO, true, at(10));
        disk = Memory::default();
    }
}

#[test]
fn an_owner_whose_event_loop_is_closed_leaves_what_it_has_to_others() {
    let mut driver = driver(false);
    for (owner, place) in [(ONE, Place(7)), (TWO, Place(8))] {
        let start = |client: &mut PoolClient| Some(client.start_text("get_balance", "{}", "{}"));
        assert!(driver.enter(owner, OwnerKind::Delegating, place, start).is_some());
    }
    let (step, _) = sent(driver.turn(ONE, at(0)));
    driver.desert(ONE, at(5));
    assert_eq!(driver.turns().send_of(step), None, "nobody waits for its answer");
    let (step, _) = sent(driver.turn(TWO, at(5)));
    let balance = br#"{"success":true,"data":{"balance":1,"currency":"USD"}}"#;
    answer(&mut driver, step, 200, balance, at(6));
    assert_eq!(driver.turn(TWO, at(6)), NextTurn::Done);
    driver.leave(TWO, true, at(6));
    driver.take_news();
    assert!(driver.turns().is_at_rest());
}

/// Returns true if the background was to look.
fn looks(driver: &mut Driver) -> bool {
    driver.take_news().0.iter().any(|nudge| matches!(nudge, Nudge::Wake(OwnerNo::BACKGROUND) | Nudge::Look(_)))
}

/// A purchase without an intent, which was answered and read by its owner.
fn bought(disk: &mut Memory) -> Driver {
    let mut driver = driver(true);
    enter(&mut driver, ONE, "create_session", BUY, "{}");
    assert_eq!(worked(&mut driver, ONE, disk, at(0)), NextTurn::Ended);
    assert_eq!(ended(&driver, ONE), "done");
    assert_eq!(names(disk), 1, "its record is there until the caller has its result");
    driver
}

fn names(disk: &mut Memory) -> usize {
    match disk.call(StoreCall::List { space: Space::of(Api::Agent, ""), after: None, open: false }, at(0).unix, 0) {
        StoreAnswer::Listed { entries, .. } => entries.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_record_of_a_result_is_deleted_by_its_owner_or_after_it_has_left() {
    let mut disk = Memory::default();
    let mut driver = bought(&mut disk);
    let NextTurn::Ask { step, call } = driver.heard(ONE, at(1)) else { panic!("nothing is deleted") };
    assert!(matches!(call, StoreCall::Delete { .. }));
    let gone = disk.call(call, at(1).unix, 0);
    assert!(driver.stored(step, gone, at(1)));
    assert_eq!((worked(&mut driver, ONE, &mut disk, at(1)), names(&mut disk)), (NextTurn::Done, 0));
    assert!(!driver.leave(ONE, true, at(1)) && driver.turns().is_at_rest());

    let mut driver = bought(&mut disk);
    assert!(!driver.leave(ONE, true, at(1)));
    assert_eq!(names(&mut disk), 1);
    assert!(looks(&mut driver));
    worked(&mut driver, OwnerNo::BACKGROUND, &mut disk, at(1));
    assert!(names(&mut disk) == 0 && driver.turns().is_at_rest());
}

#[test]
fn the_result_of_a_caller_that_is_cancelled_on_its_way_back_stays_in_the_store() {
    for gives_up in [false, true] {
        let mut disk = Memory::default();
        let mut driver = bought(&mut disk);
        if gives_up {
            driver.give_up(ONE, at(1));
            assert_eq!(worked(&mut driver, ONE, &mut disk, at(1)), NextTurn::Done);
            assert_eq!(ended(&driver, ONE), "done", "it is there to be told");
        }
        assert!(!driver.leave(ONE, false, at(1)));
        worked(&mut driver, OwnerNo::BACKGROUND, &mut disk, at(1));
        assert!(names(&mut disk) == 1 && driver.turns().is_at_rest());
    }
}

#[test]
fn so_do_the_results_of_a_resumption_of_all() {
    for has_heard in [false, true] {
        let mut disk = Memory::default();
        let mut driver = driver(true);
        enter(&mut driver, ONE, "create_session", BUY, "{}");
        while let NextTurn::Ask { step, call } = driver.turn(ONE, at(0)) {
            let answer = disk.call(call, at(0).unix, 0);
            driver.stored(step, answer, at(0));
        }
        // Its request is out, and stays in doubt.
        driver.give_up(ONE, at(1));
        assert_eq!(worked(&mut driver, ONE, &mut disk, at(1)), NextTurn::Done);
        assert_eq!(ended(&driver, ONE), "cancelled unknown");
        driver.leave(ONE, true, at(1));
        resume_all(&mut driver, TWO);
        assert_eq!(worked(&mut driver, TWO, &mut disk, at(2)), NextTurn::Ended);
        assert!(matches!(driver.results(TWO), [(_, Ok(_)), (_, Ok(_))]), "the resumption, and the purchase");
        driver.leave(TWO, has_heard, at(2));
        worked(&mut driver, OwnerNo::BACKGROUND, &mut disk, at(2));
        assert!(names(&mut disk) == usize::from(!has_heard) && driver.turns().is_at_rest());
    }
}

#[test]
fn a_closed_client_is_finished_once_what_its_last_owner_left_was_deleted() {
    let mut disk = Memory::default();
    let mut driver = bought(&mut disk);
    driver.close(None, at(1));
    assert!(!driver.leave(ONE, true, at(1)), "its record is there");
    assert!(looks(&mut driver));
    assert_eq!(worked(&mut driver, OwnerNo::BACKGROUND, &mut disk, at(1)), NextTurn::Done);
    assert!(names(&mut disk) == 0 && driver.turns().is_empty());

    // Where there can be no background, nobody waits for it.
    let mut driver = bought(&mut disk);
    driver.leave(ONE, true, at(1));
    driver.turns().background_failed();
    assert!(!driver.close(None, at(1)));
    assert!(looks(&mut driver));
    driver.turns().background_failed();
    assert!(driver.turns().is_empty());
}

#[test]
fn what_a_closed_client_still_does_is_given_up_at_its_end() {
    let mut driver = driver(true);
    let mut disk = Memory::default();
    enter(&mut driver, ONE, "terminate_session", r#"{"session_id":"s-1"}"#, "{}");
    let ending = loop {
        match driver.turn(ONE, at(0)) {
            NextTurn::Ask { step, call } => {
                let answer = disk.call(call, at(0).unix, 0);
                driver.stored(step, answer, at(0));
            }
            NextTurn::Send { step, .. } => break step,
            other => panic!("{other:?}"),
        }
    };
    enter(&mut driver, TWO, "create_session", BUY, r#"{"intent":"job-1"}"#);
    let NextTurn::Ask { step: asking, .. } = driver.turn(TWO, at(0)) else { panic!("claims nothing") };
    assert!(!driver.close(Some(100), at(10)));
    driver.take_news();
    assert_eq!(driver.tend(5, at(99)), NextTurn::Wait(Some(100)), "the store and the service may answer");
    assert!(!driver.close(Some(200), at(50)), "the earlier time holds");
    driver.tend(5, at(100));
    assert!(driver.take_news().0.contains(&Nudge::Over(ending, FailureKind::Aborted, true)));
    assert_eq!((last_turn(&mut driver, ONE, at(101)), ended(&driver, ONE)), (NextTurn::Done, "cancelled unknown".to_owned()));
    assert_eq!((last_turn(&mut driver, TWO, at(101)), ended(&driver, TWO)), (NextTurn::Done, "cancelled unknown".to_owned()));
    // What comes later is nobody's.
    let late = Outcome::Response { status: 200, headers: &[], body: ENDED, truncated: false };
    assert_eq!(driver.answered(ending, late, at(102)), None);
    assert!(driver.stored(asking, StoreAnswer::Done, at(102)));
    assert!(!driver.leave(ONE, true, at(102)) && driver.leave(TWO, true, at(102)));
}

#[test]
fn during_a_pause_nothing_is_sent_and_no_store_is_called() {
    let mut driver = driver(true);
    let mut disk = Memory::default();
    enter(&mut driver, ONE, "create_session", BUY, r#"{"intent":"job-1"}"#);
    let NextTurn::Ask { step, call } = driver.turn(ONE, at(0)) else { panic!("claims nothing") };
    driver.pause(at(1));
    assert!(!driver.turns().is_store_idle(), "a call is being made");
    let answer = disk.call(call, at(2).unix, 0);
    assert!(driver.stored(step, answer, at(2)));
    assert!(matches!(driver.turn(ONE, at(2)), NextTurn::Wait(_)));
    assert!(driver.turns().is_store_idle());
    // The host has released all names.
    disk.call(StoreCall::Release { names: None }, at(2).unix, 0);
    driver.lost(None, at(2));
    driver.take_news();
    assert!(matches!(driver.turn(ONE, at(3)), NextTurn::Wait(_)));
    driver.resume();
    assert!(driver.take_news().0.contains(&Nudge::Wake(ONE)));
    assert_eq!(worked(&mut driver, ONE, &mut disk, at(4)), NextTurn::Done);
    assert_eq!(ended(&driver, ONE), "done");

    // A client that is closed ends what waited.
    enter(&mut driver, TWO, "create_session", BUY, r#"{"intent":"job-2"}"#);
    driver.pause(at(5));
    assert!(matches!(driver.turn(TWO, at(5)), NextTurn::Wait(_)));
    driver.close(None, at(6));
    assert_eq!(worked(&mut driver, TWO, &mut disk, at(6)), NextTurn::Done);
    assert!(ended(&driver, TWO).starts_with("cancelled"));
}
