//! Envelopes, keys, routes, validation and limits.

use crate::agent_harness::{AgentHarness, DYNAMIC, START};

#[test]
fn a_success_carries_data_and_meta_and_a_date() {
    let mut agent = AgentHarness::new();
    let answer = agent.get("/billing/balance");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json["success"], true);
    assert_eq!(answer.data()["balance"], 100);
    assert_eq!(answer.json["meta"]["timestamp"], "2023-11-14T22:13:20.000Z");
    assert!(answer.json["meta"]["request_id"].as_str().is_some_and(|id| id.starts_with("req_")));
    assert_eq!(answer.headers["date"], "Tue, 14 Nov 2023 22:13:20 GMT");
    assert_eq!(answer.headers["content-type"], "application/json");
}

#[test]
fn a_failure_carries_null_data_a_code_a_message_and_meta() {
    let answer = AgentHarness::new().get("/sessions/none");
    assert_eq!((answer.status, answer.code()), (404, "SESSION_NOT_FOUND"));
    assert_eq!(answer.json["success"], false);
    assert!(answer.json["data"].is_null());
    assert!(answer.json["error"]["message"].is_string());
    assert!(answer.json["meta"]["request_id"].is_string());
    assert!(answer.headers.contains_key("date"));
}

#[test]
fn every_request_has_its_own_request_id() {
    let mut agent = AgentHarness::new();
    let first = agent.get("/billing/balance").json["meta"]["request_id"].clone();
    assert_ne!(first, agent.get("/billing/balance").json["meta"]["request_id"]);
}

#[test]
fn a_missing_or_wrong_key_is_refused_on_all_but_the_public_list() {
    let mut agent = AgentHarness::new();
    for headers in [&[][..], &[("X-API-Key", "wrong")]] {
        let answer = agent.send("GET", "/billing/balance", headers, "");
        assert_eq!((answer.status, answer.code()), (401, "AUTH_INVALID_KEY"));
        let answer = agent.send("POST", "/sessions", headers, DYNAMIC);
        assert_eq!((answer.status, answer.code()), (401, "AUTH_INVALID_KEY"));
        assert_eq!(agent.send("GET", "/public/products", headers, "").status, 200);
    }
}

#[test]
fn an_unknown_method_or_path_is_named_in_the_details() {
    let mut agent = AgentHarness::new();
    for (method, path) in [("PUT", "/sessions"), ("GET", "/nowhere"), ("GET", "/sessions/"), ("GET", "/sessions/a/b/c")] {
        let answer = agent.send(method, path, &[], "");
        assert_eq!((answer.status, answer.code()), (404, "ROUTE_NOT_FOUND"));
        assert_eq!(answer.json["error"]["details"]["method"], method);
        assert_eq!(answer.json["error"]["details"]["path"], format!("/v1{path}"));
    }
}

#[test]
fn an_absolute_uri_is_understood() {
    let mut agent = AgentHarness::new();
    let key = agent.service.config().api_key.clone();
    let request = http::Request::get("http://127.0.0.1:1/v1/billing/balance").header("x-api-key", key);
    let response = agent.service.handle(&request.body(Vec::new()).unwrap(), START);
    assert_eq!(response.status(), 200);
}

#[test]
fn a_create_request_is_refused_with_the_field_and_the_rule() {
    let with = |more: &str| format!(r#"{{"session_type":"dynamic","product_no":"dynamic-world",{more}}}"#);
    let cases = [
        ("", "session_type"),
        ("[]", "body"),
        ("{", "body"),
        (r#"{"product_no":"dynamic-world"}"#, "session_type"),
        (r#"{"session_type":"weekly","product_no":"x"}"#, "session_type"),
        (r#"{"session_type":"dynamic"}"#, "product_no"),
        (r#"{"session_type":"dynamic","product_no":7}"#, "product_no"),
        (r#"{"session_type":"dynamic","product_no":"static-us"}"#, "session_type"),
        (r#"{"session_type":"static","product_no":"static-us","quantity":1.5}"#, "quantity"),
        (r#"{"session_type":"static","product_no":"static-shared-us"}"#, "project_id"),
        (r#"{"session_type":"static","product_no":"static-shared-us","project_id":"none"}"#, "project_id"),
        (r#"{"session_type":"static","product_no":"static-gb","protocol":"http"}"#, "protocol"),
        (&with(r#""quantity":0"#), "quantity"),
        (&with(r#""quantity":-1"#), "quantity"),
        (&with(r#""quantity":"1""#), "quantity"),
        (&with(r#""quantity":7e28"#), "quantity"),
        (&with(r#""quantity":1e29"#), "quantity"),
        (&with(r#""duration":0"#), "duration"),
        (&with(r#""duration":1.5"#), "duration"),
        (&with(r#""protocol":"ftp""#), "protocol"),
        (&with(r#""provisioning_mode":"rent""#), "provisioning_mode"),
        (&with(r#""rotation_mode":"never""#), "rotation_mode"),
        (&with(r#""rotation_interval_sec":"60""#), "rotation_interval_sec"),
        (&with(r#""country_code":1"#), "country_code"),
    ];
    let mut agent = AgentHarness::new();
    for (body, field) in cases {
        assert_eq!(agent.call("POST", "/sessions", body).field(), field, "{body}");
    }
    assert!(agent.service.charges().is_empty());
}

#[test]
fn a_whole_number_may_be_written_with_a_point_and_a_text_may_be_empty() {
    let mut agent = AgentHarness::new();
    agent.buy(r#"{"session_type":"static","product_no":"static-us","quantity":2.0,"duration":1.0,"country_code":""}"#);
    assert_eq!(agent.put_budget(r#"{"alert_thresholds":[13.0]}"#).data()["alert_thresholds"], serde_json::json!([13]));
    let empty = agent.call("POST", "/sessions", r#"{"session_type":"dynamic","product_no":""}"#);
    assert_eq!(empty.refusal(), (404, "PRODUCT_NOT_FOUND"));
}

#[test]
fn include_credentials_takes_true_and_false_in_the_query_of_reads_and_rotations_only() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(r#"{"session_type":"dynamic","product_no":"dynamic-world","include_credentials":"yes"}"#);
    assert_eq!(agent.get(&format!("/sessions/{id}?include_credentials=1")).field(), "include_credentials");
    assert_eq!(agent.get(&format!("/sessions/{id}?include_credentials=")).field(), "include_credentials");
    let query_of_create = agent.call("POST", "/sessions?include_credentials=true", DYNAMIC);
    assert_eq!(query_of_create.field(), "include_credentials");
    let rotated = agent.call("POST", &format!("/sessions/{id}/rotate"), r#"{"include_credentials":true}"#);
    assert_eq!(rotated.status, 200);
    assert!(rotated.data()["proxy"].get("password").is_none());
}

#[test]
fn the_request_after_the_last_of_a_minute_is_told_how_long_to_wait() {
    let mut agent = AgentHarness::with(|config| config.requests_per_minute = 2);
    agent.now = START - START.rem_euclid(60_000) + 20_500;
    assert_eq!(agent.get("/billing/balance").status, 200);
    assert_eq!(agent.get("/billing/balance").status, 200);
    let refused = agent.get("/billing/balance");
    assert_eq!((refused.status, refused.code()), (429, "RATE_LIMIT_EXCEEDED"));
    assert_eq!(refused.json["error"]["details"]["retry_after"], 40);
    assert_eq!(refused.headers["retry-after"], "40");
    assert_eq!(agent.get_public().status, 200);
    agent.now += 40_000;
    assert_eq!(agent.get("/billing/balance").status, 200);
}

impl AgentHarness {
    fn get_public(&mut self) -> crate::agent_harness::Answer {
        self.send("GET", "/public/products", &[], "")
    }
}
