//! Tables without a client: what owners get, who is woken, and what is left when one goes.

use super::*;
use crate::contract::agent::CreateSession;
use crate::contract::{Method, Operation};
use crate::wire::Expected;

const FIRST: OwnerNo = OwnerNo(1);
const SECOND: OwnerNo = OwnerNo(2);
const THIRD: OwnerNo = OwnerNo(3);
const LATE: Millis = 1_000;

fn request() -> Request {
    Request {
        method: Method::Post,
        url: String::new(),
        headers: Vec::new(),
        body: Vec::new(),
        timeout_ms: 30_000,
        send_before: LATE,
        max_body: 1,
        expects: Expected::of(CreateSession::ENDPOINT, 1),
    }
}

fn call() -> StoreCall {
    StoreCall::Release { names: None }
}

/// Two callers that wait, the first for command 1 and the second for command 2. The first one keeps the time.
fn waiting() -> Turns {
    let mut turns = Turns::new(false);
    for (owner, command) in [(FIRST, 1), (SECOND, 2)] {
        turns.enter(owner, OwnerKind::Sending, Place::THREADS, Some(CommandId(command)));
        assert_eq!(turns.next(owner, 0), NextTurn::Wait(None));
    }
    assert_eq!(turns.take_nudges(), []);
    turns
}

/// The turn of an owner that has just gone on.
fn turn(turns: &mut Turns, owner: OwnerNo) -> String {
    turns.go_on(owner);
    match turns.next(owner, 0) {
        NextTurn::Ask { step, .. } => format!("ask {}", step.0),
        NextTurn::Send { step, is_here, patience, .. } => {
            format!("send {}{}{}", step.0, if is_here { " here" } else { "" }, if patience.is_some() { " once vouched for" } else { "" })
        }
        NextTurn::Wait(until) => until.map_or_else(|| "wait".to_owned(), |until| format!("wait until {until}")),
        NextTurn::Ended => "ended".to_owned(),
        NextTurn::Done => "done".to_owned(),
    }
}

#[test]
fn a_step_goes_to_the_owner_that_waits_for_it_and_wakes_it() {
    let mut turns = waiting();
    turns.go_on(FIRST);
    turns.give_send(StepId(7), CommandId(2), request(), FIRST);
    turns.give_ask(StepId(8), Some(CommandId(2)), call(), FIRST);
    turns.give_ask(StepId(9), None, call(), FIRST);
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)], "once");
    assert_eq!(turn(&mut turns, FIRST), "ask 9", "what nobody waits for is of whose turn it is");
    assert_eq!(turn(&mut turns, SECOND), "ask 8", "the store first");
    assert_eq!(turn(&mut turns, SECOND), "send 7 here");
}

#[test]
fn an_owner_is_done_once_its_result_was_taken_and_its_calls_of_the_store_were_answered() {
    let mut turns = waiting();
    assert!(!turns.complete(CommandId(1), SECOND));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(FIRST)]);
    turns.go_on(FIRST);
    assert_eq!((turns.begin_reading(FIRST), turns.begin_reading(FIRST), turns.begin_reading(SECOND)), (Some(CommandId(1)), None, None));
    turns.give_ask(StepId(3), Some(CommandId(1)), call(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "ask 3");
    assert_eq!(turn(&mut turns, FIRST), "wait", "another thread makes the call");
    turns.stored(StepId(3));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(FIRST)]);
    assert_eq!(turn(&mut turns, FIRST), "ended");
    turns.taken(FIRST);
    assert_eq!(turn(&mut turns, FIRST), "done");
}

#[test]
fn what_is_given_to_an_owner_that_sends_is_done_by_whose_turn_it_is_or_left() {
    let mut turns = waiting();
    turns.give_send(StepId(1), CommandId(1), request(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "send 1 here");
    assert!(turns.is_exchanging());
    turns.go_on(SECOND);
    turns.give_ask(StepId(2), Some(CommandId(1)), call(), SECOND);
    turns.give_send(StepId(3), CommandId(1), request(), SECOND);
    assert_eq!(turn(&mut turns, SECOND), "ask 2");
    assert_eq!(turn(&mut turns, SECOND), "send 3", "not of its own command, so not by itself");
    assert_eq!(turns.answered(StepId(1)), Some(true));
    assert!(!turns.is_exchanging());
    assert_eq!(turns.answered(StepId(1)), None, "an answer that comes twice");
}

#[test]
fn the_work_of_one_that_leaves_is_handed_on() {
    let mut turns = waiting();
    turns.go_on(FIRST);
    turns.give_ask(StepId(1), Some(CommandId(1)), call(), FIRST);
    turns.give_ask(StepId(2), Some(CommandId(1)), call(), FIRST);
    turns.give_send(StepId(3), CommandId(1), request(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "ask 1");
    assert!(!turns.leave(FIRST));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)]);
    assert_eq!(turn(&mut turns, SECOND), "ask 1", "a call that was interrupted may or may not have been made");
    turns.stored(StepId(1));
    assert_eq!(turn(&mut turns, SECOND), "ask 2");
    turns.stored(StepId(2));
    assert_eq!(turn(&mut turns, SECOND), "send 3");
}

#[test]
fn what_the_last_one_leaves_is_done_by_the_background() {
    let mut turns = Turns::new(false);
    turns.enter(FIRST, OwnerKind::Sending, Place::THREADS, Some(CommandId(1)));
    turns.give_ask(StepId(1), Some(CommandId(1)), call(), FIRST);
    turns.give_send(StepId(2), CommandId(1), request(), FIRST);
    assert!(!turns.leave(FIRST));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(OwnerNo::BACKGROUND), Nudge::Look(0)]);
    assert!(turns.go_on_in_background(1));
    assert_eq!(turns.unwanted(), [StepId(2)], "nobody waits for its answer");
    assert_eq!(turns.break_off(StepId(2), FailureKind::Aborted), Some(false));
    assert_eq!(turns.next_of_background(0), NextTurn::Ask { step: StepId(1), call: call() });
    turns.stored(StepId(1));
    assert!(turns.go_on_in_background(1));
    assert_eq!(turns.next_of_background(0), NextTurn::Done);
    assert!(turns.complete(CommandId(1), OwnerNo::BACKGROUND), "nobody takes its result");
    assert!(turns.is_at_rest() && !turns.has_background());
}

#[test]
fn an_interrupted_owner_takes_back_what_surely_was_not_done() {
    // Whether the store must vouch first, whether the owner had begun to send, and whether the send is to be broken off.
    for (vouching, is_sent, breaks_off) in [(false, true, true), (false, false, false), (true, true, false), (true, false, false)] {
        let mut turns = Turns::new(vouching);
        turns.enter(FIRST, OwnerKind::Sending, Place::THREADS, Some(CommandId(1)));
        turns.give_ask(StepId(1), Some(CommandId(1)), call(), FIRST);
        turns.give_send(StepId(2), CommandId(1), request(), FIRST);
        assert_eq!(turn(&mut turns, FIRST), "ask 1");
        assert_eq!(turns.take_back(FIRST, is_sent), None);
        assert_eq!(turn(&mut turns, FIRST), "ask 1", "once more");
        turns.stored(StepId(1));
        assert!(turn(&mut turns, FIRST).starts_with("send 2 here"));
        assert_eq!(turns.take_back(FIRST, is_sent), breaks_off.then_some(StepId(2)));
        if !breaks_off {
            assert_eq!(turns.send_of(StepId(2)), Some((CommandId(1), false)), "nothing of it was sent");
            assert!(!turns.is_exchanging() && turn(&mut turns, FIRST).starts_with("send 2 here"));
        }
    }
}

#[test]
fn one_that_gives_up_leaves_its_sends_to_others_and_ends_the_one_that_it_sends_itself() {
    let mut turns = waiting();
    turns.give_send(StepId(1), CommandId(1), request(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "send 1 here");
    assert_eq!(turns.give_up(FIRST), Some(StepId(1)));
    assert_eq!(turns.break_off(StepId(1), FailureKind::Aborted), Some(true));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND), Nudge::Over(StepId(1), FailureKind::Aborted, true)]);
    // Others wait for the same, so it is sent again.
    turns.go_on(FIRST);
    turns.give_send(StepId(2), CommandId(1), request(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "wait", "an owner that gave up sends nothing");
    assert_eq!(turn(&mut turns, SECOND), "send 2");
    // Its calls of the store it makes all the same.
    turns.give_ask(StepId(3), Some(CommandId(1)), call(), SECOND);
    assert_eq!(turn(&mut turns, FIRST), "ask 3");
}

#[test]
fn one_owner_keeps_the_time_for_all() {
    let mut turns = Turns::new(false);
    for owner in [FIRST, SECOND] {
        turns.enter(owner, OwnerKind::Sending, Place::THREADS, Some(CommandId(owner.0 as u32)));
    }
    turns.set_due(Some(500));
    assert_eq!((turn(&mut turns, FIRST), turn(&mut turns, SECOND)), ("wait until 500".into(), "wait".into()));
    turns.set_due(Some(300));
    assert_eq!(turn(&mut turns, SECOND), "wait");
    assert_eq!(turns.take_nudges(), [Nudge::Wake(FIRST)], "the time has come nearer");
    assert_eq!(turn(&mut turns, FIRST), "wait until 300");
    turns.leave(FIRST);
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)], "its keeper has left");
    assert_eq!(turn(&mut turns, SECOND), "wait until 300");
}

#[test]
fn the_deadline_of_a_send_is_kept_by_who_waits_or_by_the_background() {
    let over = 30_000 + 200;
    let mut turns = waiting();
    turns.give_send(StepId(1), CommandId(1), request(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "send 1 here");
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)]);
    assert_eq!(turn(&mut turns, SECOND), format!("wait until {over}"));
    assert_eq!((turns.expired(over - 1), turns.expired(over)), (vec![], vec![StepId(1)]));
    turns.leave(SECOND);
    assert_eq!(turns.take_nudges(), [Nudge::Look(over)], "everybody else sends");
    assert_eq!(turns.answered(StepId(1)), Some(true));
    assert_eq!(turns.expired(over), []);
    assert!(!turns.go_on_in_background(1), "a caller is back");
}

#[test]
fn a_send_is_late_or_waits_for_its_store() {
    let mut turns = Turns::new(true);
    turns.enter(FIRST, OwnerKind::Sending, Place::THREADS, Some(CommandId(1)));
    turns.give_send(StepId(1), CommandId(1), request(), FIRST);
    let NextTurn::Send { patience, .. } = turns.next(FIRST, 400) else { panic!("not a send") };
    assert_eq!((patience, turns.send_of(StepId(1))), (Some(600), Some((CommandId(1), false))));
    assert_eq!((turns.is_late(StepId(1), LATE), turns.is_late(StepId(1), LATE + 1)), (false, true));
    assert_eq!(turns.unsure(), [StepId(1)], "claims may end meanwhile");
    turns.begin(StepId(1), Some(FIRST), LATE);
    assert_eq!((turns.is_late(StepId(1), LATE + 1), turns.unsure()), (false, vec![]), "once it has begun nothing is late");
}

#[test]
fn a_send_that_was_broken_off_is_handed_out_no_more() {
    let mut turns = waiting();
    turns.give_send(StepId(1), CommandId(1), request(), FIRST);
    turns.give_send(StepId(2), CommandId(1), request(), FIRST);
    turns.break_off(StepId(1), FailureKind::Late);
    assert_eq!(turn(&mut turns, FIRST), "send 2 here");
}

#[test]
fn the_background_works_for_pools_beside_callers_and_else_only_without_them() {
    for carries in [false, true] {
        let mut turns = waiting();
        if carries {
            turns.carry(true);
            assert_eq!(turns.take_nudges(), [Nudge::Look(0)]);
        }
        assert_eq!(turns.go_on_in_background(1), carries);
        turns.give_send(StepId(1), CommandId(9), request(), OwnerNo::BACKGROUND);
        assert!(turns.take_nudges().contains(&Nudge::Wake(FIRST)), "callers that are present send first");
        if carries {
            let given = turns.next_of_background(0);
            assert!(matches!(given, NextTurn::Send { step: StepId(1), is_here: false, .. }), "{given:?}");
        } else {
            assert_eq!(turn(&mut turns, FIRST), "send 1");
        }
    }
}

#[test]
fn a_closed_client_is_to_be_finished_by_the_last_one_in_it() {
    let mut turns = waiting();
    turns.close();
    assert_eq!(turns.take_nudges(), [Nudge::Wake(OwnerNo::BACKGROUND), Nudge::Wake(FIRST), Nudge::Wake(SECOND)]);
    assert_eq!((turns.leave(FIRST), turns.leave(SECOND), turns.is_at_rest()), (false, true, true));
    assert!(!turns.go_on_in_background(1), "its thread ends, too");
}

#[test]
fn the_end_of_claims_is_looked_at_by_one_who_waits_or_by_the_background() {
    let mut turns = waiting();
    turns.rouse();
    assert_eq!(turns.take_nudges(), [Nudge::Wake(FIRST)]);
    turns.leave(FIRST);
    turns.leave(SECOND);
    turns.take_nudges();
    turns.rouse();
    assert_eq!(turns.take_nudges(), [Nudge::Wake(OwnerNo::BACKGROUND), Nudge::Look(0)]);
}

/// Two callers in event loops of their own, and one thread, which all wait.
fn in_three_places() -> Turns {
    let mut turns = Turns::new(false);
    for (owner, place) in [(FIRST, Place(7)), (SECOND, Place(8)), (THIRD, Place::THREADS)] {
        turns.enter(owner, OwnerKind::Sending, place, Some(CommandId(owner.0 as u32)));
        assert_eq!(turns.next(owner, 0), NextTurn::Wait(None));
    }
    turns.take_nudges();
    turns
}

#[test]
fn each_place_keeps_the_time_by_itself() {
    let mut turns = in_three_places();
    turns.set_due(Some(500));
    assert_eq!(turn(&mut turns, SECOND), "wait until 500");
    assert_eq!(turns.take_nudges(), [Nudge::Wake(THIRD), Nudge::Wake(FIRST)], "another event loop may stand still");
    // The first one's loop does: nobody depends on it.
    assert_eq!(turn(&mut turns, THIRD), "wait until 500");
    turns.set_due(Some(300));
    assert_eq!(turn(&mut turns, THIRD), "wait until 300");
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)]);
}

#[test]
fn each_place_hears_of_new_work() {
    let mut turns = in_three_places();
    turns.wake_one(Some(CommandId(2)));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND), Nudge::Wake(THIRD), Nudge::Wake(FIRST)]);
    turns.wake_one(Some(CommandId(2)));
    assert_eq!(turns.take_nudges(), [], "all are awake");
    assert_eq!(turn(&mut turns, SECOND), "wait");
    turns.leave(FIRST);
    turns.leave(THIRD);
    turns.wake_one(None);
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)]);
}

#[test]
fn a_keeper_that_knew_no_time_hands_on_the_one_that_came_meanwhile() {
    let mut turns = waiting();
    turns.set_due(Some(500));
    assert_eq!(turn(&mut turns, SECOND), "wait");
    assert_eq!(turns.take_nudges(), [Nudge::Wake(FIRST)]);
    turns.leave(FIRST);
    assert_eq!(turns.take_nudges(), [Nudge::Wake(SECOND)]);
    assert_eq!(turn(&mut turns, SECOND), "wait until 500");
}

#[test]
fn one_thread_works_in_the_background_even_if_two_were_started() {
    let mut turns = Turns::new(false);
    turns.carry(true);
    assert_eq!(turns.take_nudges(), [Nudge::Look(0)]);
    assert!(turns.go_on_in_background(11));
    assert!(!turns.go_on_in_background(12) && turns.has_background(), "the other one ends");
    turns.carry(false);
    assert!(turns.go_on_in_background(11));
    assert_eq!(turns.next_of_background(0), NextTurn::Done);
    assert!(!turns.go_on_in_background(12), "none was started");
    turns.carry(true);
    assert!(turns.go_on_in_background(12));
}

#[test]
fn what_an_interrupted_background_had_is_done_again() {
    for is_sent in [false, true] {
        let mut turns = Turns::new(false);
        turns.carry(true);
        turns.give_ask(StepId(1), None, call(), OwnerNo::BACKGROUND);
        turns.give_send(StepId(2), CommandId(1), request(), OwnerNo::BACKGROUND);
        assert!(turns.go_on_in_background(1));
        assert_eq!(turns.next_of_background(0), NextTurn::Ask { step: StepId(1), call: call() });
        assert_eq!(turns.take_back(OwnerNo::BACKGROUND, is_sent), None);
        assert!(turns.go_on_in_background(1));
        assert_eq!(turns.next_of_background(0), NextTurn::Ask { step: StepId(1), call: call() });
        turns.stored(StepId(1));
        assert!(turns.go_on_in_background(1));
        let given = turns.next_of_background(0);
        assert!(matches!(given, NextTurn::Send { step: StepId(2), .. }), "{given:?}");
        assert_eq!(turns.take_back(OwnerNo::BACKGROUND, is_sent), is_sent.then_some(StepId(2)));
        if !is_sent {
            assert!(turns.go_on_in_background(1));
            assert!(matches!(turns.next_of_background(0), NextTurn::Send { step: StepId(2), .. }));
        }
    }
}

#[test]
fn the_deadline_of_a_send_is_kept_while_others_stand_still_in_a_call_of_the_store() {
    let over = 30_000 + 200;
    let mut turns = waiting();
    turns.give_send(StepId(1), CommandId(1), request(), FIRST);
    assert_eq!(turn(&mut turns, FIRST), "send 1 here");
    turns.give_ask(StepId(2), Some(CommandId(2)), call(), FIRST);
    turns.take_nudges();
    assert_eq!(turn(&mut turns, SECOND), "ask 2");
    assert_eq!(turns.take_nudges(), [Nudge::Look(over)]);
    assert!(turns.go_on_in_background(1));
    assert_eq!(turns.next_of_background(0), NextTurn::Wait(Some(over)));
    // A call of the background is made by another thread, so the background stands still in none.
    turns.give_ask(StepId(3), None, call(), OwnerNo::BACKGROUND);
    assert_eq!(turns.next_of_background(0), NextTurn::Ask { step: StepId(3), call: call() });
    assert!(turns.go_on_in_background(1));
    assert_eq!(turns.next_of_background(0), NextTurn::Wait(Some(over)));
    turns.stored(StepId(3));
    assert!(turns.take_nudges().contains(&Nudge::Wake(OwnerNo::BACKGROUND)));
}

#[test]
fn a_closed_client_is_finished_once_the_background_has_its_answer() {
    let mut turns = Turns::new(false);
    turns.carry(true);
    turns.give_ask(StepId(1), None, call(), OwnerNo::BACKGROUND);
    assert!(turns.go_on_in_background(1));
    assert_eq!(turns.next_of_background(0), NextTurn::Ask { step: StepId(1), call: call() });
    turns.close();
    assert!(!turns.is_empty() && turns.go_on_in_background(1));
    assert_eq!(turns.next_of_background(0), NextTurn::Wait(None));
    turns.take_nudges();
    turns.stored(StepId(1));
    assert_eq!(turns.take_nudges(), [Nudge::Wake(OwnerNo::BACKGROUND)]);
    assert!(!turns.go_on_in_background(1) && turns.is_empty());
}
