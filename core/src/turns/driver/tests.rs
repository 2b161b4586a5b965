//! A client with its turns, told one thing after the other.

use super::*;
use crate::client::ClientOptions;
use crate::state::{Memory, StoreCall};

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
    assert!(!driver.close(at(20)), "three owners are in it");
    let (nudges, _) = driver.take_news();
    assert!(nudges.contains(&Nudge::Over(buying, FailureKind::Aborted, true)), "{nudges:?}");
    assert!(!nudges.iter().any(|nudge| matches!(nudge, Nudge::Over(step, ..) if *step == going)), "{nudges:?}");
    assert_eq!(driver.turn(THREE, at(20)), NextTurn::Done);
    assert_eq!(ended(&driver, THREE), "cancelled unknown");
    assert!(!driver.leave(THREE, at(20)));
    answer(&mut driver, going, 200, ENDED, at(30));
    assert_eq!((driver.turn(TWO, at(30)), ended(&driver, TWO)), (NextTurn::Done, "done".to_owned()));
    assert!(!driver.leave(TWO, at(30)));
    assert!(matches!(driver.turn(ONE, at(30)), NextTurn::Wait(_)), "woken by the closing");
    let (once_more, method) = sent(driver.turn(ONE, at(again)));
    assert_eq!(method, "DELETE");
    answer(&mut driver, once_more, 200, ENDED, at(again));
    assert_eq!((driver.turn(ONE, at(again)), ended(&driver, ONE)), (NextTurn::Done, "done".to_owned()));
    assert!(driver.leave(ONE, at(again)), "the last one finishes the client");
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
            NextTurn::Done => break,
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
    driver.leave(ONE, at(now));
    driver.close(at(now));
    // The service refuses the termination for two minutes.
    let (mut ends, over) = (0, now + 120_000);
    while now < over {
        match driver.turn(TWO, at(now)) {
            NextTurn::Done => break,
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
        driver.leave(ONE, at(0));
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
                NextTurn::Send { .. } => panic!("nobody wants it"),
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
                NextTurn::Done => break,
                NextTurn::Wait(until) => panic!("{left_at}: waits until {until:?}"),
            }
        }
        assert_eq!(ended(&driver, TWO), "done", "{left_at}");
        driver.leave(TWO, at(10));
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
    driver.leave(TWO, at(6));
    driver.take_news();
    assert!(driver.turns().is_at_rest());
}
