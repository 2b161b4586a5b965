mod cost;

use super::super::testing::*;
use super::*;
use crate::engine::key::{Age, SavedAge};
use crate::policy::KEY_WINDOW;
use crate::time::At;

const DYNAMIC: &str = r#"{"session_type":"dynamic","product_no":"p-1","quantity":2}"#;
const ORDER: &str = r#"{"poolId":"7","userId":1,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}"#;
const BOUGHT: &str = r#"{"session_id":"s-1","status":"creating","estimated_charge_usd":7.90}"#;
const LIST: &str = "send GET /products?type=dynamic&in_stock=false&limit=100";
const SEND_1: &str = "send POST /sessions key 1";
const SEND_2: &str = "send POST /sessions key 2";
/// The end of a purchase whose effect is not known, and whose key can be sent again.
const DOUBT: &str = "doubt: InDoubt Unknown Resume";

fn purchase(given: &mut Given) -> Write {
    given.write("create_session", DYNAMIC)
}

fn at_4() -> Tell {
    success(r#"{"items":[{"product_no":"p-1","price":4.00,"currency":"USD"}]}"#)
}

#[test]
fn a_purchase_is_put_before_each_send_and_ends_with_its_answer() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    assert_eq!(given.tell(&mut write, [due(), stored(), lost()]), ["put", SEND_1, "wake"]);
    assert_eq!(given.tell(&mut write, [due(), stored(), success(BOUGHT)]), ["put", SEND_1, "end: done"]);
    assert_eq!(given.notes(), ["event repeating", "event charged"]);
    assert!(write.was_resent());
}

#[test]
fn whatever_spends_is_told_once_and_what_only_fills_an_account_is_not() {
    let order = r#"{"poolId":"7","userId":1,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}"#;
    for (operation, params, told) in [
        ("create_session", r#"{"session_type":"dynamic","product_no":"p"}"#, true),
        ("renew_session", r#"{"session_id":"s-1","duration":1}"#, true),
        ("create_static_order", order, true),
        ("adjust_sub_user_balance", r#"{"user_id":7,"amount":5,"remark":"x"}"#, true),
        ("create_recharge", r#"{"amount_usd":10}"#, false),
        ("rotate_session", r#"{"session_id":"s-1"}"#, false),
    ] {
        let mut given = Given::agent();
        if crate::contract::endpoint(operation).is_some_and(|endpoint| endpoint.api == crate::contract::Api::Reseller) {
            given = Given::reseller();
        }
        let mut write = given.write(operation, params);
        given.tell(&mut write, [due(), stored(), success(r#"{"session_id":"s-1","order_id":"o-1","estimated_charge_usd":4.5}"#)]);
        assert_eq!(given.notes(), if told { vec!["event charged"] } else { vec![] }, "{operation}");
    }
}

#[test]
fn nothing_is_sent_that_the_store_does_not_have() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    assert_eq!(given.tell(&mut write, [due(), not_stored()]), ["put", "erase: Store None MendStore"]);
    let mut write = purchase(&mut given);
    let said = given.tell(&mut write, [due(), stored(), lost(), due(), not_stored()]);
    assert_eq!(said[4], "doubt: Store Unknown MendStore");
}

#[test]
fn a_put_that_is_answered_while_the_client_is_throttled_waits_and_is_made_again() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    assert_eq!(given.tell(&mut write, [due()]), ["put"]);
    given.shared.gate.close(5000, 0);
    assert_eq!(given.tell(&mut write, [stored(), due()]), ["wake", "wake"]);
    assert_eq!(given.wait(), 5000);
    assert_eq!(given.tell(&mut write, [due(), stored()]), ["put", SEND_1]);
}

#[test]
fn a_key_that_grew_too_old_while_it_was_put_is_not_sent() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    assert_eq!(given.tell(&mut write, [due(), stored().after(KEY_WINDOW)]), ["put", "erase: Unavailable None RetryLater"]);
    let mut write = purchase(&mut given);
    let said = given.tell(&mut write, [due(), stored().after(KEY_WINDOW - 1), lost(), due(), stored().after(1)]);
    assert_eq!(said, ["put", "send POST /sessions key 2", "wake", "put", "doubt: InDoubt Unknown CheckAccount"]);
}

#[test]
fn a_send_may_be_held_back_no_longer_than_its_key_may_be_used() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), stored()]);
    assert_eq!(given.send_before, 20_000);
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), stored().after(KEY_WINDOW - 700)]);
    assert_eq!(given.send_before - given.shared.clock.monotonic(), 700);
}

/// The reaction to the first answer to a purchase, and to the same answer after a send that had none: the table of codes.
#[test]
fn what_follows_from_each_answer_to_a_purchase() {
    let rows = [
        ("AUTH_INVALID_KEY", 401, "erase: Refused None Stop", DOUBT),
        ("AUTH_EXPIRED_TOKEN", 401, "erase: Refused None Reauthenticate", DOUBT),
        ("AUTH_INSUFFICIENT_PERMISSION", 403, "erase: Refused None Stop", DOUBT),
        ("ACCOUNT_DISABLED", 403, "erase: Refused None Stop", DOUBT),
        ("ROUTE_NOT_FOUND", 404, "erase: Refused None CheckBaseUrl", DOUBT),
        ("INVALID_REQUEST", 400, "erase: Refused None ChangeRequest", "erase: Refused None ChangeRequest"),
        ("INSUFFICIENT_BALANCE", 402, "erase: Refused None Recharge", "erase: Refused None Recharge"),
        ("BUDGET_EXCEEDED", 402, "erase: Refused None RaiseBudget", "erase: Refused None RaiseBudget"),
        ("PRODUCT_NOT_FOUND", 404, "erase: Refused None ChangeRequest", "erase: Refused None ChangeRequest"),
        ("PRODUCT_OUT_OF_STOCK", 409, "erase: Refused None ChangeRequest", "erase: Refused None ChangeRequest"),
        ("PRICE_MISMATCH", 409, "erase: Refused None ReadPrices", "erase: Refused None ReadPrices"),
        ("SESSION_LIMIT_REACHED", 429, "erase: Refused None TerminateSession", "erase: Refused None TerminateSession"),
        ("RATE_LIMIT_EXCEEDED", 429, "wake", "wake"),
        ("IDEMPOTENCY_CONFLICT", 409, "wake", "wake"),
        ("BACKEND_ERROR", 502, "end: InDoubt Unknown CheckAccount", "end: InDoubt Unknown CheckAccount"),
        ("BACKEND_TIMEOUT", 504, "end: InDoubt Unknown CheckAccount", "end: InDoubt Unknown CheckAccount"),
        ("INTERNAL_ERROR", 500, "end: InDoubt Unknown CheckAccount", "end: InDoubt Unknown CheckAccount"),
        ("SOMETHING_ELSE", 422, DOUBT, DOUBT),
        ("INVALID_REQUEST", 422, "erase: Refused None ChangeRequest", "erase: Refused None ChangeRequest"),
        ("INVALID_REQUEST", 403, "erase: Refused None ChangeRequest", DOUBT),
    ];
    for (code, status, first, after_lost) in rows {
        let mut given = Given::agent();
        let mut write = purchase(&mut given);
        assert_eq!(given.tell(&mut write, [due(), stored(), failure(code, status)])[2], first, "{code} {status}");
        let mut write = purchase(&mut given);
        let said = given.tell(&mut write, [due(), stored(), lost(), due(), stored(), failure(code, status)]);
        assert_eq!(said[5], after_lost, "{code} {status} after a lost answer");
    }
}

#[test]
fn what_follows_from_a_response_without_the_envelope_and_from_none() {
    let rows =
        [(page(502), "wake"), (page(200), "wake"), (page(404), DOUBT), (broken_off(), "wake"), (lost(), "wake"), (unreachable(), "wake")];
    for (answer, asks) in rows {
        let mut given = Given::agent();
        let mut write = purchase(&mut given);
        assert_eq!(given.tell(&mut write, [due(), stored(), answer])[2], asks);
        // The same key is sent again in every case.
        if asks == "wake" {
            assert_eq!(given.tell(&mut write, [due(), stored()]), ["put", SEND_1]);
        }
    }
}

#[test]
fn attempts_that_are_used_up_leave_a_purchase_in_doubt_with_the_time_to_resume_it() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut write = purchase(&mut given);
    let throttled = failure("RATE_LIMIT_EXCEEDED", 429).retry_after(30);
    assert_eq!(given.tell(&mut write, [due(), stored(), throttled.clone()]), ["put", SEND_1, "wake"]);
    assert_eq!(given.wait(), 30_000);
    assert_eq!(given.tell(&mut write, [due(), stored(), throttled]), ["put", SEND_1, DOUBT]);
    assert_eq!(given.error.and_then(|error| error.retry_at), Some(START + 60_000));
}

#[test]
fn a_stored_429_gives_way_to_a_new_key_unless_a_send_is_unanswered_or_the_caller_gave_the_key() {
    let throttled = || failure("RATE_LIMIT_EXCEEDED", 429).request_id("r");
    let twice = |write: &mut Write, given: &mut Given| {
        let said = given.tell(write, [due(), stored(), throttled(), due(), stored(), throttled(), due(), stored()]);
        said[7].clone()
    };
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    assert_eq!(twice(&mut write, &mut given), SEND_2);
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), stored(), lost()]);
    assert_eq!(twice(&mut write, &mut given), SEND_1);
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    write.call.ledger = Ledger::new(write.call.ledger.key.clone(), true);
    assert_eq!(twice(&mut write, &mut given), SEND_1);
}

#[test]
fn a_conflict_is_asked_about_with_the_same_key_for_two_minutes() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), stored()]);
    let mut waits = Vec::new();
    while given.tell_one(&mut write, failure("IDEMPOTENCY_CONFLICT", 409)) == "wake" {
        waits.push(given.wait());
        assert_eq!(given.tell(&mut write, [due(), stored()]), ["put", SEND_1]);
    }
    assert_eq!(waits[..6], [1000, 2000, 4000, 8000, 10_000, 10_000]);
    assert_eq!(waits.iter().sum::<i64>(), 115_000);
    assert_eq!(given.error.map(|error| (error.kind, error.effect)), Some((Kind::InDoubt, Effect::Unknown)));
}

#[test]
fn a_failure_of_the_supplier_is_bought_again_only_if_the_caller_asked_for_it() {
    let mut given = Given::agent();
    given.service.retry.retry_paid = true;
    let mut write = purchase(&mut given);
    let said =
        given.tell(&mut write, [due(), stored(), failure("BACKEND_TIMEOUT", 504), due(), stored(), failure("INSUFFICIENT_BALANCE", 402)]);
    // The first key may have bought all the same, so the refusal of the second does not decide the purchase.
    assert_eq!(said, ["put", SEND_1, "wake", "put", SEND_2, "end: InDoubt Unknown CheckAccount"]);
    let mut write = purchase(&mut given);
    write.call.ledger = Ledger::new(Some("mine-9".to_owned()), true);
    let said = given.tell(&mut write, [due(), stored(), failure("BACKEND_TIMEOUT", 504)]);
    assert_eq!(said, ["put", "send POST /sessions key 9", "end: InDoubt Unknown CheckAccount"]);
    assert!(given.what().ends_with("the key that the caller gave is never replaced"), "{}", given.what());
}

#[test]
fn what_may_have_been_bought_under_an_intent_stays_until_it_is_settled() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    given.subject.named = true;
    let said = given.tell(&mut write, [due(), stored(), failure("INTERNAL_ERROR", 500)]);
    assert_eq!(said[2], "doubt: InDoubt Unknown CheckAccount");
    assert!(write.key.settled && !write.can_resume(Rules::default()));
    let action = write.resume(&mut given.cx());
    assert_eq!(given.say(action), "rest: InDoubt Unknown CheckAccount");
}

#[test]
fn a_purchase_that_nobody_wants_any_more_ends_by_what_it_knows_at_every_stage() {
    const NEVER_SENT: &str = "erase: Cancelled None Nothing";
    const PERHAPS_SENT: &str = "doubt: Cancelled Unknown Resume";
    let before: [(usize, Tell, &str); 13] = [
        (0, due(), NEVER_SENT),
        (1, at_4(), NEVER_SENT),
        (1, lost(), NEVER_SENT),
        (2, due(), NEVER_SENT),
        (3, counted(), NEVER_SENT),
        (3, denied(Kind::Cancelled, "nobody wants it"), NEVER_SENT),
        (4, stored(), NEVER_SENT),
        (5, unreachable(), NEVER_SENT),
        (5, lost(), PERHAPS_SENT),
        (5, failure("INSUFFICIENT_BALANCE", 402), NEVER_SENT),
        // A key that was answered is not sent again.
        (5, failure("BACKEND_TIMEOUT", 504), "end: Cancelled Unknown CheckAccount"),
        (5, success(BOUGHT), "end: done"),
        (6, due(), PERHAPS_SENT),
    ];
    for (stage, input, ends) in before {
        let mut given = Given::agent();
        given.day = Some(TODAY);
        let mut write = purchase(&mut given);
        for input in [due(), at_4(), due(), counted(), stored(), lost()].into_iter().take(stage) {
            given.tell_one(&mut write, input);
        }
        given.wanted = false;
        assert_eq!(given.tell_one(&mut write, input), ends, "at stage {stage}");
    }
}

#[test]
fn a_restored_key_is_sent_only_when_its_age_is_known_and_young_enough() {
    let hour = 3_600_000;
    // By the record the key was an hour old; the service's time shows how long ago that was.
    for (gap, asks) in
        [(20 * hour, "put"), (21 * hour, "doubt: InDoubt Unknown CheckAccount"), (-hour, "doubt: InDoubt Unknown CheckAccount")]
    {
        let mut given = Given::agent();
        let mut write = purchase(&mut given);
        write.call.ledger = Ledger::restored(write.call.ledger.key.clone(), false, false);
        (write.restored, write.key.age) = (true, Age::Saved(SavedAge { ms: hour, at: At { unix: START - gap, client: 77, elapsed: 0 } }));
        let action = write.resume(&mut given.cx());
        assert_eq!(given.say(action), "need the time");
        given.shared.clock.observe_server_time(START);
        let said = given.tell_one(&mut write, granted());
        let said = if said == "wake" { given.tell_one(&mut write, due()) } else { said };
        assert_eq!(said, asks, "{gap}");
    }
}

#[test]
fn a_restored_key_stays_in_doubt_where_the_services_time_can_not_be_read() {
    for (wanted, ends) in [(true, DOUBT), (false, "doubt: Cancelled Unknown Resume")] {
        let mut given = Given::agent();
        let mut write = purchase(&mut given);
        write.call.ledger = Ledger::restored(write.call.ledger.key.clone(), false, false);
        (write.restored, write.key.age) = (true, Age::Saved(SavedAge { ms: 0, at: At { unix: START, client: 77, elapsed: 0 } }));
        write.resume(&mut given.cx());
        given.wanted = wanted;
        assert_eq!(given.tell(&mut write, [denied(Kind::Unavailable, "no answer came in time")]), [ends]);
    }
}

#[test]
fn what_has_no_key_is_not_sent_again_once_it_may_have_been_done() {
    for (answer, ends) in [
        (lost(), "doubt: InDoubt Unknown Reconcile"),
        (page(502), "doubt: InDoubt Unknown Reconcile"),
        (failure("1001", 500), "doubt: InDoubt Unknown Reconcile"),
        (failure("500", 200), "doubt: InDoubt Unknown Reconcile"),
        (failure("1001", 400), "erase: Refused None ChangeRequest"),
        (failure("1001", 429), "doubt: InDoubt Unknown Reconcile"),
        (failure("-1", 200), "doubt: InDoubt Unknown Reconcile"),
        (unreachable(), "wake"),
    ] {
        let mut given = Given::reseller();
        let mut write = given.write("create_static_order", ORDER);
        assert_eq!(given.tell(&mut write, [due(), stored(), answer])[2], ends);
        if ends.starts_with("doubt") {
            let action = write.resume(&mut given.cx());
            assert_eq!(given.say(action), "rest: InDoubt Unknown Reconcile");
        }
    }
}

#[test]
fn a_write_whose_token_went_while_it_was_put_fetches_another_first() {
    let mut given = Given::reseller();
    let mut write = given.write("create_static_order", ORDER);
    assert_eq!(given.tell(&mut write, [due()]), ["put"]);
    given.shared.tokens.drop();
    assert_eq!(given.tell(&mut write, [stored(), due()]), ["wake", "need a token"]);
    assert_eq!(given.tell(&mut write, [denied(Kind::Refused, "no")]), ["erase: Refused None Stop"]);
    assert!(given.what().contains("the login was refused"), "{}", given.what());
}

#[test]
fn a_key_that_this_client_wrote_down_itself_needs_no_time_of_the_services() {
    let mut given = Given::agent();
    let mut write = purchase(&mut given);
    write.call.ledger = Ledger::restored(write.call.ledger.key.clone(), false, false);
    (write.restored, write.key.age) = (true, Age::Saved(SavedAge { ms: 0, at: given.shared.clock.at() }));
    let action = write.resume(&mut given.cx());
    assert_eq!(given.say(action), "wake");
    assert_eq!(given.tell(&mut write, [due(), stored()]), ["put", SEND_1]);
}
