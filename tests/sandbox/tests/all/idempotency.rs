//! The idempotency store, and the faults of the service that play on it.

use hopline_sandbox::{ErrorFault, Fault, InProgress, RetryAfter};

use crate::desk::{DAY, DYNAMIC, Desk, STATIC};

#[test]
fn the_same_request_with_the_same_key_is_answered_with_the_same_bytes_and_charged_once() {
    let mut desk = Desk::new();
    let first = desk.keyed("/sessions", "k", DYNAMIC);
    desk.now += 5_000;
    let again = desk.keyed("/sessions", "k", DYNAMIC);
    assert_eq!((again.status, &again.bytes), (202, &first.bytes));
    assert_ne!(again.headers["date"], first.headers["date"]);
    assert_eq!(desk.service.charges().len(), 1);
    assert_eq!(desk.service.charges()[0].key.as_deref(), Some("k"));
    assert_eq!(desk.service.executions()["create_session"], 1);
}

#[test]
fn the_same_key_with_another_body_or_path_is_a_conflict() {
    let mut desk = Desk::new();
    let id = desk.keyed("/sessions", "k", DYNAMIC).session_id();
    for answer in [desk.keyed("/sessions", "k", STATIC), desk.keyed(&format!("/sessions/{id}/rotate"), "k", DYNAMIC)] {
        assert_eq!((answer.status, answer.code()), (409, "IDEMPOTENCY_CONFLICT"));
    }
    assert_eq!(desk.service.charges().len(), 1);
}

#[test]
fn errors_are_replayed_even_when_their_cause_is_gone() {
    let mut desk = Desk::new();
    desk.service.set_balance(0.into());
    let refused = desk.keyed("/sessions", "k", DYNAMIC);
    assert_eq!(refused.code(), "INSUFFICIENT_BALANCE");
    desk.service.set_balance(50.into());
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).bytes, refused.bytes);
    assert_eq!(desk.keyed("/sessions", "k2", DYNAMIC).status, 202);
}

#[test]
fn an_answer_is_kept_for_a_day() {
    let mut desk = Desk::new();
    let first = desk.keyed("/sessions", "k", DYNAMIC);
    desk.now += DAY - 1;
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).bytes, first.bytes);
    desk.now += 1;
    assert_ne!(desk.keyed("/sessions", "k", DYNAMIC).session_id(), first.session_id());
    assert_eq!(desk.service.charges().len(), 2);
}

#[test]
fn a_key_has_1_to_64_visible_ascii_characters() {
    let mut desk = Desk::new();
    assert_eq!(desk.keyed("/sessions", &"k".repeat(64), DYNAMIC).status, 202);
    for key in [&"k".repeat(65), "", "a b", "clé"] {
        assert_eq!(desk.keyed("/sessions", key, DYNAMIC).field(), "Idempotency-Key");
    }
}

#[test]
fn what_stands_before_the_store_is_not_stored() {
    let mut desk = Desk::with(|config| config.requests_per_minute = 1);
    let refused = desk.send("POST", "/sessions", &[("Idempotency-Key", "k")], DYNAMIC);
    assert_eq!(refused.code(), "AUTH_INVALID_KEY");
    desk.get("/billing/balance");
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).code(), "RATE_LIMIT_EXCEEDED");
    desk.now += 60_000;
    desk.error("RATE_LIMIT_EXCEEDED", false, false);
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).code(), "RATE_LIMIT_EXCEEDED");
    desk.now += 60_000;
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).status, 202);
}

#[test]
fn a_stored_error_is_replayed_whether_or_not_the_supplier_sold() {
    for (sold, charges) in [(false, 0), (true, 1)] {
        let mut desk = Desk::new();
        desk.error("BACKEND_TIMEOUT", true, sold);
        let first = desk.keyed("/sessions", "k", DYNAMIC);
        assert_eq!((first.status, first.code()), (504, "BACKEND_TIMEOUT"));
        assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).bytes, first.bytes);
        assert_eq!(desk.service.charges().len(), charges);
        assert_eq!(desk.service.sessions(desk.now).len(), charges);
    }
}

#[test]
fn an_error_that_sold_and_is_not_stored_sells_again() {
    let mut desk = Desk::new();
    desk.error("BACKEND_ERROR", false, true);
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).status, 502);
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).status, 202);
    assert_eq!(desk.service.charges().len(), 2);
}

#[test]
fn a_write_in_progress_conflicts_until_it_completes_and_is_then_replayed() {
    let mut desk = Desk::new();
    desk.fault(Fault::InProgress { ms: 3_000, error: None });
    let first = start(&mut desk);
    assert_eq!(first.ends_at, desk.now + 3_000);
    desk.now += 2_999;
    assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).refusal(), (409, "IDEMPOTENCY_CONFLICT"));
    assert_eq!((desk.service.charges().len(), desk.service.finish(first, desk.now).is_none()), (0, true));
    desk.now += 1;
    let replayed = desk.keyed("/sessions", "k", DYNAMIC);
    assert_eq!(desk.service.charges().len(), 1, "the work is done at its end");
    assert_eq!(desk.service.finish(first, desk.now).expect("an answer").body(), &replayed.bytes);
    assert!(desk.service.finish(first, desk.now).is_none(), "an answer is given once");
    assert_eq!(desk.service.charges()[0].at_ms, first.ends_at);
}

/// Starts a purchase that takes its time.
fn start(desk: &mut Desk) -> InProgress {
    let key = desk.service.config().api_key.clone();
    let request = http::Request::post("/v1/sessions").header("X-API-Key", key).header("Idempotency-Key", "k");
    let response = desk.service.handle(&request.body(DYNAMIC.into()).unwrap(), desk.now);
    *response.extensions().get().expect("it takes its time")
}

#[test]
fn a_write_in_progress_may_fail_at_its_end_and_what_is_refused_then_is_its_answer() {
    let mut desk = Desk::new();
    for (stored, after) in [(true, (504, "BACKEND_TIMEOUT")), (false, (202, ""))] {
        let error = ErrorFault { code: "BACKEND_TIMEOUT".into(), stored, ..ErrorFault::default() };
        desk.fault(Fault::InProgress { ms: 3_000, error: Some(error) });
        let first = start(&mut desk);
        desk.now += 3_000;
        assert_eq!(desk.service.finish(first, desk.now).expect("an answer").status(), 504);
        assert!(desk.service.charges().is_empty());
        assert_eq!(desk.keyed("/sessions", "k", DYNAMIC).refusal(), after, "a failure that is not kept frees its key");
        desk = Desk::new();
    }
    desk.fault(Fault::InProgress { ms: 3_000, error: None });
    let first = start(&mut desk);
    desk.service.set_balance(0.into());
    desk.now += 3_000;
    assert_eq!(desk.service.finish(first, desk.now).expect("an answer").status(), 402);
}

#[test]
fn a_fault_may_have_any_code_and_tell_how_long_to_wait() {
    let mut desk = Desk::new();
    let fault = ErrorFault { code: "TEAPOT".into(), status: Some(418), retry_after: Some(9.into()), ..ErrorFault::default() };
    desk.fault(Fault::Error(fault));
    let answer = desk.get("/billing/balance");
    assert_eq!((answer.status, answer.code()), (418, "TEAPOT"));
    assert_eq!(answer.headers["retry-after"], "9");
    assert_eq!(desk.get("/billing/balance").status, 200);
}

#[test]
fn a_fault_chooses_where_it_says_how_long_to_wait() {
    let mut desk = Desk::new();
    for (retry_after, header, details) in [
        (RetryAfter::Each { header: Some(3), details: None }, Some("3"), None),
        (RetryAfter::Each { header: None, details: Some(4) }, None, Some(4)),
        (RetryAfter::Each { header: Some(3), details: Some(4) }, Some("3"), Some(4)),
    ] {
        let code = "RATE_LIMIT_EXCEEDED".into();
        desk.fault(Fault::Error(ErrorFault { code, retry_after: Some(retry_after), ..ErrorFault::default() }));
        let answer = desk.get("/billing/balance");
        assert_eq!(answer.headers.get("retry-after").map(|value| value.to_str().unwrap()), header);
        assert_eq!(answer.json["error"]["details"]["retry_after"].as_u64(), details);
    }
}

#[test]
fn a_clone_is_a_branch_of_its_own() {
    let mut desk = Desk::new();
    desk.keyed("/sessions", "k", DYNAMIC);
    let branch = desk.service.clone();
    desk.keyed("/sessions", "k2", DYNAMIC);
    assert_eq!((branch.charges().len(), desk.service.charges().len()), (1, 2));
}
