use super::super::testing::*;
use super::*;

const SEND: &str = "send GET /billing/balance";

fn balance(given: &mut Given) -> Call {
    given.read("get_balance", "{}")
}

/// The reaction to each answer to a read.
#[test]
fn a_read_is_made_again_after_what_may_be_over_soon_and_ends_with_the_rest() {
    let rows = [
        (success("{}"), "end: done"),
        (lost(), "wake"),
        (unreachable(), "wake"),
        (broken_off(), "wake"),
        (page(502), "wake"),
        (page(429), "wake"),
        (page(200), "end: Protocol None CheckBaseUrl"),
        (page(404), "end: Protocol None CheckBaseUrl"),
        (failure("RATE_LIMIT_EXCEEDED", 429), "wake"),
        (failure("BACKEND_ERROR", 502), "wake"),
        (failure("BACKEND_TIMEOUT", 504), "wake"),
        (failure("INTERNAL_ERROR", 500), "wake"),
        (failure("IDEMPOTENCY_CONFLICT", 409), "end: Refused None RetryLater"),
        (failure("AUTH_INVALID_KEY", 401), "end: Refused None Stop"),
        (failure("AUTH_EXPIRED_TOKEN", 401), "end: Refused None Reauthenticate"),
        (failure("ROUTE_NOT_FOUND", 404), "end: Refused None CheckBaseUrl"),
        (failure("INVALID_REQUEST", 400), "end: Refused None ChangeRequest"),
        (failure("SESSION_NOT_FOUND", 404), "end: Refused None ChangeRequest"),
        (failure("SESSION_EXPIRED", 410), "end: Refused None ReadSession"),
        (failure("SOMETHING_ELSE", 400), "end: Refused None ChangeRequest"),
        (failure("SOMETHING_ELSE", 503), "end: Unavailable None RetryLater"),
        (unsendable(), "end: Invalid None ChangeRequest"),
    ];
    for (answer, asks) in rows {
        let mut given = Given::agent();
        let mut call = balance(&mut given);
        assert_eq!(given.tell(&mut call, [due(), answer]), [SEND, asks]);
    }
}

#[test]
fn attempts_that_are_used_up_end_it_with_the_first_failure_as_the_cause() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut call = balance(&mut given);
    let said = given.tell(&mut call, [due(), lost(), due(), page(502)]);
    assert_eq!(said, [SEND, "wake", SEND, "end: Protocol None RetryLater"]);
    let error = given.error.expect("it failed");
    assert_eq!((error.attempts, error.cause.as_ref().map(|cause| cause.what.as_str())), (2, Some("no answer came in time")));
}

#[test]
fn a_failure_is_not_its_own_cause() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut call = balance(&mut given);
    given.tell(&mut call, [due(), lost(), due(), lost()]);
    assert!(given.error.is_some_and(|error| error.cause.is_none()));
}

#[test]
fn a_throttle_within_the_window_is_waited_for_and_a_longer_one_is_said_now() {
    let mut given = Given::agent();
    given.shared.gate.close(60_000, 0);
    let mut call = balance(&mut given);
    assert_eq!(given.tell(&mut call, [due()]), ["wake"]);
    assert_eq!(given.wait(), 60_000);
    assert_eq!(given.tell(&mut call, [due()]), [SEND]);
    let mut given = Given::agent();
    given.shared.gate.close(60_001, 0);
    let mut call = balance(&mut given);
    assert_eq!(given.tell(&mut call, [due()]), ["end: Unavailable None Wait"]);
    assert_eq!(given.error.and_then(|error| error.retry_at), Some(START + 60_001));
    assert_eq!(given.subject.attempts, 0);
}

#[test]
fn a_throttle_that_outlasts_the_window_ends_it_with_what_came_of_the_last_send() {
    let mut given = Given::agent();
    let mut call = balance(&mut given);
    given.tell(&mut call, [due(), page(502)]);
    given.shared.gate.close(90_000, 0);
    assert_eq!(given.tell(&mut call, [due()]), ["end: Protocol None RetryLater"]);
    assert_eq!(given.error.and_then(|error| error.retry_at), Some(START + 90_000));
}

#[test]
fn a_read_whose_window_is_over_when_its_time_comes_ends_with_what_came_of_the_last_send() {
    let mut given = Given::agent();
    let mut call = balance(&mut given);
    assert_eq!(given.tell(&mut call, [due(), lost(), due().after(60_001)])[2], "end: Unavailable None RetryLater");
}

#[test]
fn a_sleep_is_told_by_the_time_of_the_send_and_not_by_how_long_the_client_has_lived() {
    let mut given = Given::agent();
    given.service.retry.window_ms = 1000;
    given.pass(3_600_000);
    let mut write = given.write("rotate_session", r#"{"session_id":"s-1"}"#);
    assert_eq!(given.tell(&mut write, [due(), stored(), lost().after(20_000)])[2], "doubt: InDoubt Unknown Resume");
}

#[test]
fn what_nobody_waits_for_any_more_is_not_sent_and_its_answer_still_counts() {
    for (sent, input, says) in [
        (false, due(), "unwanted"),
        (false, granted(), "unwanted"),
        (true, success("{}"), "end: done"),
        (true, lost(), "unwanted"),
        (true, failure("INVALID_REQUEST", 400), "unwanted"),
        (true, unsendable(), "unwanted"),
        (true, late(), "unwanted"),
    ] {
        let mut given = Given::agent();
        let mut call = balance(&mut given);
        if sent {
            given.tell(&mut call, [due()]);
        }
        given.wanted = false;
        assert_eq!(given.tell(&mut call, [input]), [says]);
    }
}

#[test]
fn what_can_not_be_sent_at_all_is_no_attempt_and_names_the_headers() {
    let mut given = Given::agent();
    let mut call = balance(&mut given);
    given.tell(&mut call, [due(), unsendable()]);
    let error = given.error.expect("it failed");
    assert_eq!((error.attempts, error.field.as_deref(), error.what.as_str()), (0, Some("headers"), "`headers` must not be odd"));
}

#[test]
fn a_call_without_a_login_says_why_there_is_none() {
    for (kind, what) in [
        (Kind::Refused, "was not sent, because the login was refused: no"),
        (Kind::Unavailable, "was not sent, because the login failed: no"),
    ] {
        let mut given = Given::reseller();
        given.shared.tokens.drop();
        let mut call = given.read("list_sub_users", "{}");
        assert_eq!(given.tell(&mut call, [due()]), ["need a token"]);
        given.tell(&mut call, [denied(kind, "no")]);
        let error = given.error.expect("it failed");
        assert_eq!((error.kind, error.what.as_str(), error.cause.is_some()), (kind, what, true));
    }
}

#[test]
fn what_is_done_twice_at_most_has_two_attempts_whatever_the_caller_would_like() {
    let mut given = Given::agent();
    let mut write = given.write("request_api_key", r#"{"email":"a@b.example"}"#);
    let said = given.tell(&mut write, [due(), stored(), lost(), due(), stored(), lost()]);
    assert_eq!(said[5], "doubt: InDoubt Unknown Resume");
    write.take_options(Vec::new(), given.service.retry, None, None);
    assert_eq!(write.call.attempts.policy.attempts, 2);
}

#[test]
fn a_call_that_is_begun_anew_has_all_of_its_attempts() {
    let mut given = Given::agent();
    given.service.retry.attempts = 1;
    let mut call = balance(&mut given);
    assert_eq!(given.tell(&mut call, [due(), lost()])[1], "end: Unavailable None RetryLater");
    given.pass(100_000);
    call.begin_anew(&mut given.cx());
    assert_eq!(given.tell(&mut call, [due(), success("{}")]), [SEND, "end: done"]);
    assert_eq!(given.subject.attempts, 1);
}
