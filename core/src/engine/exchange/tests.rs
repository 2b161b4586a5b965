use super::super::testing::*;
use super::*;
use crate::contract::endpoint;
use crate::wire;
use crate::wire::OWN_HEADERS;

const BALANCE: &str = "send GET /billing/balance";
const USERS: &str = "send GET /open/app/agent/sub-users";

/// A read of the reseller API whose token was refused, and the token that a login then brings.
fn refused_once(given: &mut Given) -> crate::engine::call::Call {
    let mut call = given.read("list_sub_users", "{}");
    let said = given.tell(&mut call, [due(), failure("401", 401), due()]);
    assert_eq!(said[1..], ["wake", "need a token"], "{said:?}");
    given.shared.tokens.take_from(r#"{"token":"token-2"}"#, START);
    call
}

#[test]
fn a_request_carries_the_key_the_callers_headers_and_the_idempotency_key() {
    let mut given = Given::agent();
    let mut exchange = given.exchange("create_session", r#"{"session_type":"dynamic","product_no":"p-1"}"#);
    exchange.headers = vec![("x-trace".to_owned(), "7".to_owned())];
    let action = exchange.send(Some("k-1"), 300, &given.cx());
    given.say(action);
    let names: Vec<&str> = given.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["accept", "x-api-key", "content-type", "x-trace", "idempotency-key"]);
    assert!(names.iter().all(|name| *name == "x-trace" || OWN_HEADERS.contains(name)), "callers could replace one");
    assert_eq!((given.header("x-api-key"), given.send_before), (Some("the-api-key"), 300));
    assert_eq!(given.body, r#"{"session_type":"dynamic","product_no":"p-1"}"#);
}

#[test]
fn a_public_endpoint_is_shown_no_key_and_a_bearer_gets_the_token() {
    let mut given = Given::agent();
    let mut call = given.read("list_public_products", "{}");
    given.tell(&mut call, [due()]);
    assert_eq!((given.header("x-api-key"), given.header("content-type")), (None, None));
    let mut given = Given::reseller();
    let mut call = given.read("list_sub_users", "{}");
    assert!(given.tell_one(&mut call, due()).starts_with("send GET"));
    assert_eq!(given.header("authorization"), Some("Bearer token-1"));
    assert!(given.headers.iter().all(|(name, _)| OWN_HEADERS.contains(&name.as_str())), "callers could replace one");
}

#[test]
fn a_host_that_came_too_late_sends_again_at_once_and_that_is_no_attempt_but_not_for_ever() {
    let mut given = Given::agent();
    let mut call = given.read("get_balance", "{}");
    given.tell(&mut call, [due()]);
    for _ in 0..8 {
        assert_eq!(given.tell(&mut call, [late(), due()]), ["wake", BALANCE]);
        assert_eq!(given.subject.attempts, 1);
    }
    assert_eq!(given.notes(), [""; 0]);
    given.tell(&mut call, [late(), due()]);
    assert_eq!((given.notes(), given.subject.attempts), (vec!["event repeating".to_owned()], 2));
}

#[test]
fn only_the_service_itself_throttles_the_client() {
    let rows = [
        (failure("RATE_LIMIT_EXCEEDED", 429).retry_after(30), 30_000),
        (failure("RATE_LIMIT_EXCEEDED", 200).retry_after(30), 30_000),
        (failure("SESSION_LIMIT_REACHED", 429).retry_after(30), Millis::MIN),
        (page(429).retry_after(30), Millis::MIN),
        (failure("INTERNAL_ERROR", 500).retry_after(30), Millis::MIN),
    ];
    for (answer, until) in rows {
        let mut given = Given::agent();
        let mut call = given.read("get_balance", "{}");
        given.tell(&mut call, [due(), answer]);
        assert_eq!(given.shared.gate.until(), until);
    }
    let mut given = Given::reseller();
    let mut call = given.read("list_sub_users", "{}");
    given.tell(&mut call, [due(), failure("1", 429).retry_after(7)]);
    assert_eq!(given.shared.gate.until(), 7000);
}

#[test]
fn only_a_read_in_the_envelope_tells_the_services_time() {
    let (success, page): (&[u8], &[u8]) = (br#"{"success":true,"data":{}}"#, b"<html>");
    for (operation, params, body, knows) in [
        ("get_balance", "{}", success, true),
        ("get_balance", "{}", page, false),
        ("terminate_session", r#"{"session_id":"s-1"}"#, success, false),
    ] {
        let mut given = Given::agent();
        let mut exchange = given.exchange(operation, params);
        let headers = [("date", "Wed, 15 Nov 2023 00:00:00 GMT")];
        let received = wire::Received { status: 200, headers: &headers, body, truncated: false };
        exchange.take_in(SendResult::Response(received), &mut given.cx());
        assert_eq!(given.shared.clock.knows_server(), knows, "{operation}");
    }
}

#[test]
fn an_answer_about_the_account_tells_whether_it_can_buy() {
    let register = r#"{"email":"a@b.example","name":"n"}"#;
    let ready = || success(r#"{"backend_ready":false}"#);
    let note = vec!["backend ready false".to_owned()];
    let mut given = Given::agent();
    let mut call = given.read("get_account", "{}");
    given.tell(&mut call, [due(), ready()]);
    assert_eq!(given.notes(), note);
    // Another account is registered, unless this client has none.
    for (has_key, notes) in [(true, Vec::new()), (false, note)] {
        let mut given = Given::agent();
        given.service.key = given.service.key.filter(|_| has_key);
        let exchange = Exchange::new(endpoint("register_account").expect(register), Built::at("/register"), Vec::new(), 1);
        let mut write = crate::engine::write::Write::new(
            exchange,
            given.service.retry,
            crate::policy::Ledger::new(None, false),
            crate::engine::cost::Terms::default(),
        );
        given.tell(&mut write, [due(), stored(), ready()]);
        assert_eq!(given.notes(), notes);
    }
}

#[test]
fn what_the_service_writes_otherwise_is_kept_as_it_came_and_shown_under_the_names_of_the_table() {
    for (data, view) in [(r#"{"list":[{"id":1}]}"#, Some(r#"{"items":[{"id":1}]}"#)), (r#"{"items":[{"id":1}]}"#, None)] {
        let mut given = Given::reseller();
        let mut call = given.read("list_sub_users", "{}");
        given.tell(&mut call, [due(), success(data)]);
        let answered = given.answered.expect("it was answered");
        assert_eq!((answered.raw.text(), answered.view().as_deref()), (data, view));
    }
}

#[test]
fn two_spellings_with_two_values_are_reported() {
    let mut given = Given::reseller();
    let mut call = given.read("list_sub_users", "{}");
    given.tell(&mut call, [due(), success(r#"{"items":[{"id":1}],"list":[{"id":2}]}"#)]);
    assert_eq!(given.notes(), ["event differing"]);
}

#[test]
fn a_call_whose_token_was_refused_goes_on_with_another_once() {
    let mut given = Given::reseller();
    let mut call = refused_once(&mut given);
    assert_eq!(given.tell(&mut call, [granted(), due()]), ["wake", USERS]);
    assert_eq!((given.header("authorization"), given.subject.attempts), (Some("Bearer token-2"), 2));
    assert_eq!(given.tell(&mut call, [failure("401", 401)]), ["end: Refused None Reauthenticate"]);
}

#[test]
fn a_refusal_of_an_older_token_leaves_the_newer_one_in_use() {
    let mut given = Given::reseller();
    let mut call = given.read("list_sub_users", "{}");
    given.tell(&mut call, [due()]);
    given.shared.tokens.take_from(r#"{"token":"token-2"}"#, START);
    assert_eq!(given.tell(&mut call, [failure("401", 401), due()]), ["wake", USERS]);
    assert_eq!(given.header("authorization"), Some("Bearer token-2"));
}

#[test]
fn a_write_is_sent_again_only_after_a_refusal_of_its_token_in_the_envelope_below_500() {
    let doubt = "doubt: InDoubt Unknown Reconcile";
    for (answer, asks) in [
        (failure("1", 401), "wake"),
        (failure("401", 200), "wake"),
        (failure("401", 500), doubt),
        (page(401), doubt),
        (failure("1", 403), "erase: Refused None Stop"),
    ] {
        let mut given = Given::reseller();
        let mut write = given.write("delete_sub_user", r#"{"user_id":1}"#);
        assert_eq!(given.tell(&mut write, [due(), stored(), answer])[2], asks);
    }
    // A read changes nothing, so the sender of the answer does not matter.
    let mut given = Given::reseller();
    let mut call = given.read("list_sub_users", "{}");
    assert_eq!(given.tell(&mut call, [due(), page(401), due()])[1..], ["wake", "need a token"]);
}

#[test]
fn without_a_password_or_a_second_attempt_no_token_is_fetched() {
    let mut given = Given::reseller();
    given.shared.tokens.credentials = None;
    let mut call = given.read("list_sub_users", "{}");
    assert_eq!(given.tell(&mut call, [due(), failure("401", 401)])[1], "end: Refused None Reauthenticate");
    assert!(given.shared.tokens.token().is_some());
    let mut given = Given::reseller();
    given.service.retry.attempts = 1;
    let mut call = given.read("list_sub_users", "{}");
    assert_eq!(given.tell(&mut call, [due(), failure("401", 401)])[1], "end: Refused None Reauthenticate");
}

#[test]
fn a_login_is_refused_by_what_was_sent_and_not_by_a_service_that_failed_at_it() {
    let says_no = r#"{"code":1001,"message":"no"}"#;
    let [busy, failed] = [r#"{"code":-1,"message":"busy"}"#, r#"{"code":50000,"message":"busy"}"#];
    let rows = [
        (400, says_no, true),
        (500, says_no, false),
        (429, says_no, false),
        (409, says_no, false),
        (200, busy, false),
        (200, failed, false),
        (401, "<html>", true),
        (403, "<html>", false),
    ];
    for (status, body, is_refusal) in rows {
        let mut given = Given::reseller();
        let mut exchange = given.exchange("login", r#"{"username":"u","password":"p"}"#);
        let received = SendResult::Response(wire::Received { status, headers: &[], body: body.as_bytes(), truncated: false });
        let ExchangeResult::Failure(failing) = exchange.take_in(received, &mut given.cx()) else { panic!("{status} is a failure") };
        assert_eq!(failing.is_refusal(), is_refusal, "{status} {body}");
    }
}

#[test]
fn no_error_repeats_a_key_a_token_or_a_header_of_the_callers_own() {
    let said =
        r#"{"success":false,"error":{"code":"INVALID_REQUEST","message":"THE-API-KEY and own-secret","details":{"k":"the-api-key"}}}"#;
    for answer in [response(400, said), response(400, "the-api-key own-secret")] {
        let mut given = Given::agent();
        let mut call = given.read("get_balance", "{}");
        call.exchange.headers = vec![("x-mine".to_owned(), "own-secret".to_owned())];
        given.tell(&mut call, [due(), answer]);
        let error = given.error.expect("it failed");
        let shown = crate::contract::json_of(&error).to_lowercase();
        assert!(shown.contains("[redacted]") && !shown.contains("the-api-key") && !shown.contains("own-secret"), "{shown}");
    }
    // A text that is not a JSON string can't be cleaned: then there are no details, unless the secret is so short that it is part of any
    // text.
    for (key, details) in [("987654321", None), ("98765", Some(r#"{"k":987654321}"#))] {
        let mut given = Given::agent();
        given.service.key = Some(Secret::new(key));
        let mut call = given.read("get_balance", "{}");
        let said = r#"{"success":false,"error":{"code":"INVALID_REQUEST","message":"no","details":{"k":987654321}}}"#;
        given.tell(&mut call, [due(), response(400, said)]);
        let shown = given.error.and_then(|error| error.into_fields().details);
        assert_eq!(shown.as_ref().map(|details| details.text()), details);
    }
    let mut given = Given::reseller();
    let mut call = refused_once(&mut given);
    given.tell(&mut call, [granted(), due(), response(400, r#"{"code":7,"message":"token-1 token-2 the-password the-username"}"#)]);
    let text = given.error.and_then(|error| error.into_fields().text);
    assert_eq!(text.as_deref(), Some("[redacted] [redacted] [redacted] [redacted]"));
}
