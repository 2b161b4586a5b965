//! Each fault shows what it claims, on a raw socket.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use crate::agent_harness::DYNAMIC;
use crate::live::{Live, connect, read_all};

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

/// A connection on which a purchase was sent.
fn asked(address: &str, key: &str) -> TcpStream {
    let mut stream = connect(address);
    let length = DYNAMIC.len();
    let request = format!("POST /v1/sessions HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Length: {length}\r\n\r\n{DYNAMIC}");
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

#[test]
fn a_connection_is_reset_before_or_after_the_effect_or_before_the_request_is_read() {
    let was_reset = |mut stream: TcpStream| stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::ConnectionReset);
    let live = Live::new();
    for (after, charges) in [(false, 0), (true, 1)] {
        live.fault(&rule(&format!(r#"{{"kind":"reset","after":{after}}}"#)));
        assert!(was_reset(asked(&live.api(), &live.ready().api_key)));
        assert_eq!(live.charges(), charges);
    }
    let broken = live.ready().reset_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    assert!(was_reset(asked(&broken, &live.ready().api_key)));
    assert_eq!(live.charges(), 1);
}

#[test]
fn an_answer_that_stalls_or_drips_leaves_the_connection_open() {
    let whole = Live::new().call("POST", "/sessions", None, DYNAMIC).bytes.len();
    for (fault, least) in [
        (r#"{"kind":"stall"}"#, 200),
        (r#"{"kind":"drip","ms":0}"#, whole / 2),
        (r#"{"kind":"drip","ms":0,"head":true}"#, whole / 2),
        (r#"{"kind":"drip","ms":3600000}"#, 100),
        (r#"{"kind":"drip","ms":3600000,"head":true}"#, 0),
    ] {
        let live = Live::new();
        live.fault(&rule(fault));
        let mut stream = asked(&live.api(), &live.ready().api_key);
        let mut part = vec![0; least];
        stream.read_exact(&mut part).unwrap();
        stream.set_nonblocking(true).unwrap();
        while live.charges() == 0 {}
        // The rest of the body does not come, and the server does not say so.
        if !fault.contains(r#""ms":0"#) {
            let more = stream.read_to_end(&mut part).unwrap_err();
            assert_eq!(more.kind(), ErrorKind::WouldBlock, "{fault}");
            assert!(part.len() < whole, "{fault}");
            assert_eq!(fault.contains("head"), part.is_empty(), "{fault}");
        }
    }
}

#[test]
fn an_answer_after_which_the_connection_closes_does_not_say_so() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"hang_up"}"#));
    let raw = read_all(asked(&live.api(), &live.ready().api_key));
    assert_eq!((raw.status(), raw.body().len()), (202, raw.content_length()));
    assert!(!raw.head().contains("connection:"));
    assert!(raw.json()["success"] == true);
}

#[test]
fn what_came_is_told_with_its_connection() {
    let live = Live::new();
    live.fault(&rule(r#"{"kind":"drop_before"}"#));
    live.call("POST", "/sessions", Some("k"), DYNAMIC);
    live.call("GET", "/products?type=dynamic", None, "");
    let told = live.control("GET", "/requests", "").json();
    let [bought, read] = told["requests"].as_array().unwrap().as_slice() else { panic!("{told}") };
    assert_eq!((&bought["method"], &bought["path"], &bought["body"]), (&"POST".into(), &"/v1/sessions".into(), &DYNAMIC.into()));
    assert!(bought["headers"].as_array().unwrap().contains(&serde_json::json!(["idempotency-key", "k"])));
    assert_eq!((&read["method"], &read["path"]), (&"GET".into(), &"/v1/products?type=dynamic".into()));
    assert_eq!(bought["version"], "HTTP/1.1");
    assert_ne!(bought["connection"], read["connection"]);
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
    live.fault(r#"{"fault":{"kind":"huge","silent":true}}"#);
    let mut stream = connect(&live.api());
    stream.write_all(request.as_bytes()).unwrap();
    stream.read_exact(&mut bytes).unwrap();
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    assert!(!head.contains("content-length") && !head.contains("transfer-encoding"));
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
