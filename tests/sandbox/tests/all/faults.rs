//! Each fault shows what it claims, on a raw socket.

use std::io::{Read, Write};

use crate::desk::DYNAMIC;
use crate::live::{Live, connect};

fn rule(fault: &str) -> String {
    format!(r#"{{"operation":"create_session","fault":{fault}}}"#)
}

/// A sandbox with one fault for the next purchase, and that purchase.
fn bought(fault: &str) -> (Live, crate::live::Raw) {
    let live = Live::new();
    live.fault(&rule(fault));
    let raw = live.call("POST", "/sessions", Some("k"), DYNAMIC);
    (live, raw)
}

#[test]
fn a_drop_closes_the_connection_without_an_answer_before_or_after_the_effect() {
    for (kind, charges) in [("drop_before", 0), ("drop_after", 1)] {
        let (live, raw) = bought(&format!(r#"{{"kind":"{kind}"}}"#));
        assert!(raw.bytes.is_empty(), "{kind}");
        assert_eq!(live.charges(), charges, "{kind}");
        assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).status(), 202);
        assert_eq!(live.charges(), 1, "{kind}");
    }
}

#[test]
fn a_delayed_answer_is_late_and_its_effect_is_not() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"delay","ms":60000}"#));
    std::thread::scope(|scope| {
        let late = scope.spawn(|| live.call("POST", "/sessions", Some("k"), DYNAMIC));
        while live.charges() == 0 {}
        assert!(!late.is_finished());
        assert_eq!(live.control("POST", "/clock", r#"{"advance_ms":60000}"#).status(), 200);
        assert_eq!(late.join().unwrap().status(), 202);
    });
}

#[test]
fn a_duplicate_is_two_purchases_without_a_key_and_one_with_it() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"duplicate"}"#));
    assert_eq!(live.call("POST", "/sessions", None, DYNAMIC).status(), 202);
    assert_eq!(live.charges(), 2);
    live.fault(&rule(r#"{"kind":"duplicate"}"#));
    assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).status(), 202);
    assert_eq!(live.charges(), 3);
}

#[test]
fn a_truncated_answer_breaks_off_in_the_middle() {
    let (live, raw) = bought(r#"{"kind":"truncate"}"#);
    assert_eq!(raw.status(), 202);
    assert_eq!(raw.body().len(), raw.content_length() / 2);
    assert!(raw.body().starts_with(b"{\"success\":true"));
    assert_eq!(live.charges(), 1);
}

#[test]
fn any_answer_can_be_given() {
    for (after, charges) in [(false, 0), (true, 1)] {
        let fault = r#"{"kind":"answer","status":302,"headers":{"Location":"/elsewhere"},"body":"gone","after":AFTER}"#;
        let (live, raw) = bought(&fault.replace("AFTER", &after.to_string()));
        assert_eq!((raw.status(), raw.body(), live.charges()), (302, b"gone".as_slice(), charges));
        assert!(raw.head().contains("location: /elsewhere"));
    }
}

#[test]
fn a_gateway_page_is_html_with_the_status_asked_for() {
    for (after, charges) in [(false, 0), (true, 1)] {
        let (live, raw) = bought(&format!(r#"{{"kind":"html","status":502,"after":{after}}}"#));
        assert_eq!(raw.status(), 502);
        assert!(raw.head().contains("content-type: text/html"));
        assert!(raw.body().starts_with(b"<html>"));
        assert_eq!(live.charges(), charges);
    }
}

#[test]
fn a_huge_answer_claims_100_mb_and_keeps_coming() {
    let live = Live::new();
    live.fault(r#"{"fault":{"kind":"huge"}}"#);
    let mut stream = connect(&live.api());
    let request = format!("GET /v1/billing/balance HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\n\r\n", live.ready().api_key);
    stream.write_all(request.as_bytes()).unwrap();
    let mut bytes = vec![0; 1024 * 1024];
    stream.read_exact(&mut bytes).unwrap();
    assert!(String::from_utf8_lossy(&bytes).to_ascii_lowercase().contains("content-length: 104857600\r\n"));
}

#[test]
fn a_bad_utf8_answer_is_not_utf8_and_a_deep_one_is_deep() {
    let (_, raw) = bought(r#"{"kind":"bad_utf8"}"#);
    assert!(raw.status() == 200 && std::str::from_utf8(raw.body()).is_err());
    let (_, raw) = bought(r#"{"kind":"deep"}"#);
    assert_eq!(raw.body().iter().filter(|byte| **byte == b'[').count(), 100_000);
    assert_eq!(raw.body().len(), raw.content_length());
}

#[test]
fn an_error_is_answered_as_asked_for_and_only_as_often() {
    let live = Live::new();
    live.fault(r#"{"operation":null,"times":2,"fault":{"kind":"error","code":"RATE_LIMIT_EXCEEDED","retry_after":2}}"#);
    for _ in 0..2 {
        let raw = live.call("GET", "/products", None, "");
        assert_eq!((raw.status(), raw.json()["error"]["details"]["retry_after"].as_u64()), (429, Some(2)));
        assert!(raw.head().contains("retry-after: 2"));
    }
    live.fault(r#"{"fault":{"kind":"error","code":"RATE_LIMIT_EXCEEDED","retry_after":{"header":2,"details":5}}}"#);
    let raw = live.call("GET", "/products", None, "");
    assert_eq!((raw.json()["error"]["details"]["retry_after"].as_u64(), raw.head().contains("retry-after: 2")), (Some(5), true));
    assert_eq!(live.call("GET", "/products", None, "").status(), 200);
    let (live, raw) = bought(r#"{"kind":"error","code":"BACKEND_TIMEOUT","stored":true,"sold":true}"#);
    assert_eq!((raw.status(), live.charges()), (504, 1));
    assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).body(), raw.body());
}

#[test]
fn a_write_in_progress_answers_late_and_conflicts_meanwhile() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"in_progress","ms":60000}"#));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| live.call("POST", "/sessions", Some("k"), DYNAMIC));
        while live.state()["in_progress"] == 0 {}
        let conflict = live.call("POST", "/sessions", Some("k"), DYNAMIC);
        assert_eq!(conflict.json()["error"]["code"], "IDEMPOTENCY_CONFLICT");
        assert_eq!((first.is_finished(), live.charges()), (false, 0));
        assert_eq!(live.control("POST", "/clock", r#"{"advance_ms":60000}"#).status(), 200);
        let first = first.join().unwrap();
        assert_eq!(first.status(), 202);
        assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).body(), first.body());
    });
}

#[test]
fn a_write_in_progress_fails_at_its_end_when_asked_to() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"in_progress","ms":60000,"error":{"code":"BACKEND_TIMEOUT","stored":true}}"#));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| live.call("POST", "/sessions", Some("k"), DYNAMIC));
        while live.state()["in_progress"] == 0 {}
        live.control("POST", "/clock", r#"{"advance_ms":60000}"#);
        let first = first.join().unwrap();
        assert_eq!((first.status(), live.charges()), (504, 0));
        assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).body(), first.body());
    });
}

#[test]
fn two_sends_of_a_key_at_a_time_conflict() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"duplicate"}"#));
    live.fault(&rule(r#"{"kind":"in_progress","ms":60000}"#));
    std::thread::scope(|scope| {
        let first = scope.spawn(|| live.call("POST", "/sessions", Some("k"), DYNAMIC));
        while live.state()["in_progress"] == 0 {}
        assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).status(), 409);
        live.control("POST", "/clock", r#"{"advance_ms":60000}"#);
        assert_eq!(first.join().unwrap().status(), 202);
        assert_eq!(live.charges(), 1, "the duplicate met its original in progress");
    });
}

#[test]
fn faults_can_be_forgotten() {
    let live = Live::new();
    live.fault(r#"{"times":9,"fault":{"kind":"drop_before"}}"#);
    live.fault(r#"{"times":9,"fault":{"kind":"error","code":"INTERNAL_ERROR"}}"#);
    assert_eq!(live.control("DELETE", "/faults", "").status(), 200);
    assert_eq!(live.call("GET", "/billing/balance", None, "").status(), 200);
}
