//! The idempotency store, and the faults of the service that play on it.

use hopline_sandbox::{ErrorFault, Fault, InProgress, RetryAfter};

use crate::agent_harness::{AgentHarness, DAY, DYNAMIC, STATIC};

#[test]
fn the_same_request_with_the_same_key_is_answered_with_the_same_bytes_and_charged_once() {
    let mut agent = AgentHarness::new();
    let first = agent.keyed("/sessions", "k", DYNAMIC);
    agent.now += 5_000;
    let again = agent.keyed("/sessions", "k", DYNAMIC);
    assert_eq!((again.status, &again.bytes), (202, &first.bytes));
    assert_ne!(again.headers["date"], first.headers["date"]);
    assert_eq!(agent.service.charges().len(), 1);
    assert_eq!(agent.service.charges()[0].key.as_deref(), Some("k"));
    assert_eq!(agent.service.executions()["create_session"], 1);
}

#[test]
fn the_same_key_with_another_body_or_path_is_a_conflict() {
    let mut agent = AgentHarness::new();
    let id = agent.keyed("/sessions", "k", DYNAMIC).session_id();
    for answer in [agent.keyed("/sessions", "k", STATIC), agent.keyed(&format!("/sessions/{id}/rotate"), "k", DYNAMIC)] {
        assert_eq!((answer.status, answer.code()), (409, "IDEMPOTENCY_CONFLICT"));
    }
    assert_eq!(agent.service.charges().len(), 1);
}

#[test]
fn errors_are_replayed_even_when_their_cause_is_gone() {
    let mut agent = AgentHarness::new();
    agent.service.set_balance(0.into());
    let refused = agent.keyed("/sessions", "k", DYNAMIC);
    assert_eq!(refused.code(), "INSUFFICIENT_BALANCE");
    agent.service.set_balance(50.into());
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).bytes, refused.bytes);
    assert_eq!(agent.keyed("/sessions", "k2", DYNAMIC).status, 202);
}

#[test]
fn an_answer_is_kept_for_a_day() {
    let mut agent = AgentHarness::new();
    let first = agent.keyed("/sessions", "k", DYNAMIC);
    agent.now += DAY - 1;
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).bytes, first.bytes);
    agent.now += 1;
    assert_ne!(agent.keyed("/sessions", "k", DYNAMIC).session_id(), first.session_id());
    assert_eq!(agent.service.charges().len(), 2);
}

#[test]
fn a_key_has_1_to_64_visible_ascii_characters() {
    let mut agent = AgentHarness::new();
    assert_eq!(agent.keyed("/sessions", &"k".repeat(64), DYNAMIC).status, 202);
    for key in [&"k".repeat(65), "", "a b", "clé"] {
        assert_eq!(agent.keyed("/sessions", key, DYNAMIC).field(), "Idempotency-Key");
    }
}

#[test]
fn what_stands_before_the_store_is_not_stored() {
    let mut agent = AgentHarness::with(|config| config.requests_per_minute = 1);
    let refused = agent.send("POST", "/sessions", &[("Idempotency-Key", "k")], DYNAMIC);
    assert_eq!(refused.code(), "AUTH_INVALID_KEY");
    agent.get("/billing/balance");
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).code(), "RATE_LIMIT_EXCEEDED");
    agent.now += 60_000;
    agent.error("RATE_LIMIT_EXCEEDED", false, false);
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).code(), "RATE_LIMIT_EXCEEDED");
    agent.now += 60_000;
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).status, 202);
}

#[test]
fn a_stored_error_is_replayed_whether_or_not_the_supplier_sold() {
    for (sold, charges) in [(false, 0), (true, 1)] {
        let mut agent = AgentHarness::new();
        agent.error("BACKEND_TIMEOUT", true, sold);
        let first = agent.keyed("/sessions", "k", DYNAMIC);
        assert_eq!((first.status, first.code()), (504, "BACKEND_TIMEOUT"));
        assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).bytes, first.bytes);
        assert_eq!(agent.service.charges().len(), charges);
        assert_eq!(agent.service.sessions(agent.now).len(), charges);
    }
}

#[test]
fn an_error_that_sold_and_is_not_stored_sells_again() {
    let mut agent = AgentHarness::new();
    agent.error("BACKEND_ERROR", false, true);
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).status, 502);
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).status, 202);
    assert_eq!(agent.service.charges().len(), 2);
}

#[test]
fn a_write_in_progress_conflicts_until_it_completes_and_is_then_replayed() {
    let mut agent = AgentHarness::new();
    agent.fault(Fault::InProgress { ms: 3_000, error: None });
    let first = start(&mut agent);
    assert_eq!(first.ends_at, agent.now + 3_000);
    agent.now += 2_999;
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).refusal(), (409, "IDEMPOTENCY_CONFLICT"));
    assert_eq!((agent.service.charges().len(), agent.service.finish(first, agent.now).is_none()), (0, true));
    agent.now += 1;
    let replayed = agent.keyed("/sessions", "k", DYNAMIC);
    assert_eq!(agent.service.charges().len(), 1, "the work is done at its end");
    assert_eq!(agent.service.finish(first, agent.now).expect("an answer").body(), &replayed.bytes);
    assert!(agent.service.finish(first, agent.now).is_none(), "an answer is given once");
    assert_eq!(agent.service.charges()[0].at_ms, first.ends_at);
}

/// Starts a purchase that takes its time.
fn start(agent: &mut AgentHarness) -> InProgress {
    let key = agent.service.config().api_key.clone();
    let request = http::Request::post("/v1/sessions").header("X-API-Key", key).header("Idempotency-Key", "k");
    let response = agent.service.handle(&request.body(DYNAMIC.into()).unwrap(), agent.now);
    *response.extensions().get().expect("it takes its time")
}

#[test]
fn a_write_in_progress_may_fail_at_its_end_and_what_is_refused_then_is_its_answer() {
    let mut agent = AgentHarness::new();
    for (stored, after) in [(true, (504, "BACKEND_TIMEOUT")), (false, (202, ""))] {
        let error = ErrorFault { code: "BACKEND_TIMEOUT".into(), stored, ..ErrorFault::default() };
        agent.fault(Fault::InProgress { ms: 3_000, error: Some(error) });
        let first = start(&mut agent);
        agent.now += 3_000;
        assert_eq!(agent.service.finish(first, agent.now).expect("an answer").status(), 504);
        assert!(agent.service.charges().is_empty());
        assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).refusal(), after, "a failure that is not kept frees its key");
        agent = AgentHarness::new();
    }
    agent.fault(Fault::InProgress { ms: 3_000, error: None });
    let first = start(&mut agent);
    agent.service.set_balance(0.into());
    agent.now += 3_000;
    assert_eq!(agent.service.finish(first, agent.now).expect("an answer").status(), 402);
}

#[test]
fn a_fault_may_have_any_code_and_tell_how_long_to_wait() {
    let mut agent = AgentHarness::new();
    let fault = ErrorFault { code: "TEAPOT".into(), status: Some(418), retry_after: Some(9.into()), ..ErrorFault::default() };
    agent.fault(Fault::Error(fault));
    let answer = agent.get("/billing/balance");
    assert_eq!((answer.status, answer.code()), (418, "TEAPOT"));
    assert_eq!(answer.headers["retry-after"], "9");
    assert_eq!(agent.get("/billing/balance").status, 200);
}

#[test]
fn a_fault_chooses_where_it_says_how_long_to_wait() {
    let mut agent = AgentHarness::new();
    for (retry_after, header, details) in [
        (RetryAfter::Each { header: Some(3), details: None }, Some("3"), None),
        (RetryAfter::Each { header: None, details: Some(4) }, None, Some(4)),
        (RetryAfter::Each { header: Some(3), details: Some(4) }, Some("3"), Some(4)),
    ] {
        let code = "RATE_LIMIT_EXCEEDED".into();
        agent.fault(Fault::Error(ErrorFault { code, retry_after: Some(retry_after), ..ErrorFault::default() }));
        let answer = agent.get("/billing/balance");
        assert_eq!(answer.headers.get("retry-after").map(|value| value.to_str().unwrap()), header);
        assert_eq!(answer.json["error"]["details"]["retry_after"].as_u64(), details);
    }
}

#[test]
fn a_clone_is_a_branch_of_its_own() {
    let mut agent = AgentHarness::new();
    agent.keyed("/sessions", "k", DYNAMIC);
    let branch = agent.service.clone();
    agent.keyed("/sessions", "k2", DYNAMIC);
    assert_eq!((branch.charges().len(), agent.service.charges().len()), (1, 2));
}
