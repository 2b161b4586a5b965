//! Drives the class as Kotlin and Swift do.

use super::*;
use crate::{Sent, StoreAnswer};

const ALONE: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
const STORED: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary","store":true}"#;
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p-1","quantity":1}"#;
const SESSION: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}"#;
const NOW: i64 = 1_700_000_000_000;

fn client(options: &str, needs_vouching: bool) -> std::sync::Arc<Client> {
    Client::driven(options, vec![7; 16], needs_vouching).expect("the options are sound")
}

fn drive(client: &Client, owner: u64, what: Move, at: i64) -> Driven {
    client.drive(owner, what, b"", NOW + at, at)
}

fn start(operation: &str, params: &str) -> Move {
    let [operation, params, options] = [operation, params, "{}"].map(str::to_owned);
    Move::Start { operation, params, options }
}

fn respond(client: &Client, step: u32, status: u16, body: &[u8], at: i64) -> Driven {
    client.drive(0, Move::Respond { step, status, headers: Vec::new(), truncated: false }, body, NOW + at, at)
}

fn sent(driven: &Driven) -> Vec<(u32, Option<u64>, Option<i64>)> {
    let of = |work: &Work| if let Work::Send { step, owner, patience, .. } = work { Some((*step, *owner, *patience)) } else { None };
    driven.work.iter().filter_map(of).collect()
}

fn asked(driven: &Driven) -> Vec<(u32, StoreCall)> {
    let of = |work: &Work| if let Work::Ask { step, call, .. } = work { Some((*step, call.clone())) } else { None };
    driven.work.iter().filter_map(of).collect()
}

/// Of each owner that has ended, the kinds of its results, and whether it has left.
fn ended(driven: &Driven) -> Vec<(u64, Vec<bool>, bool)> {
    let is_answer = |taken: &Taken| matches!(taken, Taken::Answered { .. });
    let of = |work: &Work| match work {
        Work::Ended { owner, results, is_over } => Some((*owner, results.iter().map(is_answer).collect(), *is_over)),
        _ => None,
    };
    driven.work.iter().filter_map(of).collect()
}

fn broken_off(driven: &Driven) -> Vec<u32> {
    driven.work.iter().filter_map(|work| if let Work::BreakOff { step } = work { Some(*step) } else { None }).collect()
}

fn is_finished(driven: &Driven) -> bool {
    driven.work.iter().any(|work| matches!(work, Work::Finish))
}

/// Answers each call of the store as one that holds everything.
fn stored(client: &Client, mut driven: Driven, at: i64) -> Driven {
    while let [(step, call), ..] = &asked(&driven)[..] {
        let answer = match call {
            StoreCall::Claim { names, .. } => {
                StoreAnswer::Claimed { names: names.iter().map(|name| crate::ClaimedName { name: name.clone(), data: None }).collect() }
            }
            StoreCall::List { .. } => StoreAnswer::Listed { entries: Vec::new(), more: false },
            StoreCall::Spend { .. } => StoreAnswer::Granted { day: 19_675 },
            _ => StoreAnswer::Done,
        };
        let next = drive(client, 0, Move::Stored { step: *step, answer }, at);
        let rest =
            driven.work.into_iter().filter(|work| !matches!(work, Work::Ask { step: asked, .. } if asked == step)).collect::<Vec<_>>();
        driven = Driven { work: rest.into_iter().chain(next.work).collect(), ..next };
    }
    driven
}

#[test]
fn a_read_is_two_calls_and_a_purchase_is_kept_until_its_caller_has_it() {
    let client = client(ALONE, false);
    let begun = drive(&client, 1, start("get_balance", "{}"), 0);
    assert!(matches!(begun.answer, MoveAnswer::Command { .. }));
    let [(step, Some(1), None)] = sent(&begun)[..] else { panic!("one send") };
    assert!(begun.until.is_some_and(|until| until > 0), "the deadline of the send");
    let over = respond(&client, step, 200, br#"{"success":true,"data":{"balance":1}}"#, 10);
    assert_eq!(ended(&over), [(1, vec![true], true)]);
    let [(step, Some(2), None)] = sent(&drive(&client, 2, start("create_session", BUY), 20))[..] else { panic!("one send") };
    assert_eq!(ended(&respond(&client, step, 202, SESSION, 30)), [(2, vec![true], false)]);
    assert!(drive(&client, 2, Move::Leave { has_heard: true }, 40).work.is_empty());
    assert!(is_finished(&drive(&client, 0, Move::Close { ends_at: None }, 50)));
    assert!(matches!(drive(&client, 3, start("get_balance", "{}"), 60).answer, MoveAnswer::Closed));
}

#[test]
fn a_caller_that_is_gone_leaves_its_purchase_in_the_store() {
    for gone_before in [true, false] {
        let client = client(STORED, false);
        let begun = stored(&client, drive(&client, 1, start("create_session", BUY), 0), 0);
        let [(step, ..)] = sent(&begun)[..] else { panic!("one send") };
        if gone_before {
            let given_up = drive(&client, 1, Move::GiveUp, 10);
            assert_eq!(broken_off(&given_up), [step]);
            let over = stored(&client, given_up, 10);
            assert_eq!(ended(&over), [(1, vec![false], true)], "cancelled, and its effect is not known");
            assert!(respond(&client, step, 202, SESSION, 20).work.is_empty(), "it is over");
        } else {
            let answered = stored(&client, respond(&client, step, 202, SESSION, 10), 10);
            assert_eq!(ended(&answered), [(1, vec![true], false)]);
            stored(&client, drive(&client, 1, Move::Leave { has_heard: false }, 20), 20);
        }
        let page = stored(&client, drive(&client, 2, Move::Saved { after: None }, 30), 30);
        assert_eq!(ended(&page).len(), 1, "nothing is stuck");
        assert!(is_finished(&drive(&client, 0, Move::Close { ends_at: None }, 40)));
    }
}

#[test]
fn a_send_that_needs_vouching_begins_by_a_word_of_its_own() {
    let client = client(STORED, true);
    let begun = stored(&client, drive(&client, 1, start("create_session", BUY), 0), 0);
    let [(step, _, Some(patience))] = sent(&begun)[..] else { panic!("one send with patience") };
    assert!(patience > 0);
    let unsure = drive(&client, 0, Move::Begin { step, is_sure: false }, 10);
    assert!(matches!(unsure.answer, MoveAnswer::Was { so: false }));
    let again = stored(&client, unsure, 10);
    let [(step, ..)] = sent(&again)[..] else { panic!("one more send") };
    // Claims end before it begins: it is not sent.
    let lost = drive(&client, 0, Move::Lost { names: None }, 20);
    assert_eq!(broken_off(&lost), [step]);
    assert!(matches!(drive(&client, 0, Move::Begin { step, is_sure: true }, 20).answer, MoveAnswer::Was { so: false }));
}

#[test]
fn a_send_without_an_answer_is_broken_off_at_its_deadline() {
    let client = client(ALONE, false);
    let begun = drive(&client, 1, start("create_session", BUY), 0);
    let [(step, ..)] = sent(&begun)[..] else { panic!("one send") };
    let until = begun.until.expect("has a deadline");
    assert!(broken_off(&drive(&client, 0, Move::Go, until - 1)).is_empty());
    assert_eq!(broken_off(&drive(&client, 0, Move::Go, until)), [step]);
}

#[test]
fn closing_gives_up_at_its_time() {
    let client = client(STORED, false);
    let begun = drive(&client, 1, start("create_session", BUY), 0);
    assert_eq!(asked(&begun).len(), 1, "its record is put, and the store does not answer");
    let closing = drive(&client, 0, Move::Close { ends_at: Some(1000) }, 10);
    assert!(ended(&closing).is_empty() && closing.until.is_some_and(|until| until <= 1000));
    let late = drive(&client, 0, Move::Go, 1000);
    assert_eq!(ended(&late).len(), 1);
    let left = drive(&client, 1, Move::Leave { has_heard: true }, 1010);
    assert!(is_finished(&late) || is_finished(&left));
}

#[test]
fn nothing_is_asked_or_sent_during_a_pause() {
    let client = client(STORED, true);
    drive(&client, 0, Move::Pause, 0);
    let buy = Move::Start { operation: "create_session".to_owned(), params: BUY.to_owned(), options: r#"{"intent":"job-17"}"#.to_owned() };
    assert!(drive(&client, 1, buy, 10).work.is_empty());
    assert!(drive(&client, 0, Move::Lost { names: None }, 20).work.is_empty());
    let gone_on = asked(&drive(&client, 0, Move::GoOn, 30));
    assert!(matches!(&gone_on[..], [(_, StoreCall::Claim { .. })]));
}

#[test]
fn what_needs_no_answer_of_the_service_ends_once_the_store_has_it() {
    let client = client(STORED, false);
    let released = drive(&client, 1, Move::ReleaseSession { session_id: "s-1".to_owned() }, 0);
    assert!(matches!(released.answer, MoveAnswer::Was { so: false }));
    assert_eq!(ended(&released), [(1, Vec::new(), true)]);
    let odd = Move::Observe { session_id: "s-1".to_owned(), seen: "odd".to_owned() };
    let odd = drive(&client, 2, odd, 10);
    assert!(matches!(odd.answer, MoveAnswer::Refused { .. }) && ended(&odd).is_empty());
}

#[test]
fn a_failure_is_told_as_it_was() {
    let client = client(ALONE, false);
    let [(step, ..)] = sent(&drive(&client, 1, start("create_session", BUY), 0))[..] else { panic!("one send") };
    let failed = drive(&client, 0, Move::Fail { step, kind: FailureKind::Closed, sent: Sent::Maybe }, 10);
    assert!(!ended(&failed).is_empty() || failed.until.is_some(), "it is sent again, or in doubt");
}

#[test]
fn a_cancelled_command_keeps_its_result_for_its_caller() {
    let client = client(ALONE, false);
    let begun = drive(&client, 1, start("create_session", BUY), 0);
    let MoveAnswer::Command { command } = begun.answer else { panic!("is a command") };
    let [(step, ..)] = sent(&begun)[..] else { panic!("one send") };
    let cancelled = drive(&client, 0, Move::Cancel { command }, 10);
    assert_eq!((broken_off(&cancelled), ended(&cancelled)), (vec![step], vec![(1, vec![false], true)]));
}
