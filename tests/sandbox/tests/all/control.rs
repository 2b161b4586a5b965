//! The control API, CORS, and the target site.

use crate::agent_harness::{DAY, DYNAMIC};
use crate::live::{Live, send};

#[test]
fn a_wrong_control_body_gets_a_clear_400() {
    let live = Live::new();
    for (path, body, says) in [
        ("/faults", "", "EOF"),
        ("/faults", r#"{"fault":{"kind":"meteor"}}"#, "unknown variant `meteor`"),
        ("/faults", r#"{"fault":{"kind":"delay"}}"#, "missing field `ms`"),
        ("/faults", r#"{"fault":{"kind":"drop_before","ms":1}}"#, "unknown field `ms`"),
        ("/faults", r#"{"fault":{"kind":"error","code":"TEAPOT"}}"#, "needs a status"),
        ("/faults", r#"{"fault":{"kind":"html","status":99}}"#, "from 200 to 599"),
        ("/faults", r#"{"fault":{"kind":"answer","status":99}}"#, "from 200 to 599"),
        ("/faults", r#"{"fault":{"kind":"answer","status":302,"headers":{"a b":"c"}}}"#, "names and values of HTTP"),
        ("/faults", r#"{"operation":"fly","fault":{"kind":"drop_before"}}"#, "operation fly"),
        ("/faults", r#"{"times":0,"fault":{"kind":"drop_before"}}"#, "at least 1"),
        ("/clock", r#"{"advance_ms":"1"}"#, "invalid type"),
        ("/balance", r#"{"amount":"-1"}"#, "at least 0"),
        ("/price", r#"{"product_no":"none","price":"1"}"#, "no product none"),
        ("/target", r#"{"block":"here"}"#, "IP address"),
    ] {
        let answer = live.control("POST", path, body);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(answer.status() == 400 && error.contains(says), "{body}: {error}");
    }
}

#[test]
fn clock_balance_and_price_are_set_and_shown() {
    let live = Live::new();
    assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).status(), 202);
    assert_eq!(live.control("POST", "/balance", r#"{"amount":"7.25"}"#).status(), 200);
    assert_eq!(live.control("POST", "/price", r#"{"product_no":"dynamic-world","price":"5"}"#).status(), 200);
    assert_eq!(live.call("POST", "/sessions", Some("k2"), DYNAMIC).json()["error"]["code"], "PRICE_MISMATCH");
    let before = live.state();
    assert_eq!(live.control("POST", "/clock", &format!(r#"{{"advance_ms":{DAY}}}"#)).status(), 200);
    let after = live.state();
    assert!(after["now_ms"].as_i64().unwrap() - before["now_ms"].as_i64().unwrap() >= DAY);
    assert_eq!(after["balance"].to_string(), "7.25");
    assert_eq!((&after["charges"][0]["key"], &after["charges"][0]["amount"]), (&"k".into(), &4.into()));
    assert_eq!(after["executions"]["create_session"], 2);
    assert_eq!(after["sessions"][0]["status"], "active");
    live.call("GET", "/products", None, "");
    assert_eq!(live.call("POST", "/sessions", Some("k"), DYNAMIC).status(), 202);
    assert_eq!(live.charges(), 2);
}

#[test]
fn the_state_shows_no_credentials() {
    let live = Live::new();
    let (_, proxy) = live.buy("socks5");
    let state = live.state().to_string();
    for secret in [proxy["username"].as_str().unwrap(), proxy["password"].as_str().unwrap(), &live.ready().api_key] {
        assert!(!state.contains(secret));
    }
}

#[test]
fn a_preflight_allows_the_headers_it_asks_for_and_answers_can_be_read() {
    let live = Live::new();
    let headers = "Origin: http://localhost:3000\r\nAccess-Control-Request-Method: POST\r\n\
                   Access-Control-Request-Headers: x-api-key,idempotency-key\r\n";
    let preflight = send(&live.api(), "OPTIONS", "/v1/sessions", headers, "");
    assert_eq!(preflight.status(), 200);
    assert!(preflight.head().contains("access-control-allow-origin: *"));
    assert!(preflight.head().contains("access-control-allow-headers: x-api-key,idempotency-key"));
    let answer = live.call("GET", "/billing/balance", None, "");
    assert!(answer.head().contains("access-control-allow-origin: *"));
    assert!(answer.head().contains("access-control-expose-headers: *"));
}

#[test]
fn the_openapi_document_is_served_without_a_key_and_names_this_server() {
    let live = Live::new();
    let below = send(&live.api(), "GET", "/v1/openapi.json", "", "");
    assert_eq!((below.status(), below.json()["openapi"].as_str()), (200, Some("3.1.0")));
    assert_eq!(below.json()["servers"][0]["url"], live.ready().agent_url);
    assert_eq!(send(&live.api(), "GET", "/openapi.json", "", "").body(), below.body());
    let backend = send(&live.api(), "GET", "/api/openapi.json", "", "");
    assert_eq!((backend.status(), &backend.json()["servers"][0]["url"]), (200, &live.ready().backend_url.as_str().into()));
    assert_eq!(live.state()["executions"], serde_json::json!({}));
}

#[test]
fn whatever_is_no_route_is_answered_in_the_envelope() {
    let live = Live::new();
    let answer = send(&live.api(), "GET", "/nowhere", "", "");
    assert_eq!((answer.status(), answer.json()["error"]["details"]["path"].clone()), (404, "/nowhere".into()));
}
