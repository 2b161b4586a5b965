//! The table of the client and the service, which were written apart, speak of the same operations and codes.

use std::collections::BTreeSet;

use hopline::contract::{Api, Auth, Safety, endpoints};
use hopline::policy::CODES as OF_THE_CLIENT;
use hopline_sandbox::{BACKEND_OPERATIONS, CODES, Config, OPERATIONS, Service};

use crate::agent_harness::{AgentHarness, Answer, DYNAMIC, START};

#[test]
fn the_client_knows_the_same_codes_with_the_same_statuses() {
    let of_the_client: BTreeSet<(&str, u16)> = OF_THE_CLIENT.iter().map(|row| (row.code, row.status)).collect();
    assert_eq!(of_the_client, CODES.iter().copied().collect());
    assert_eq!(CODES.len(), 21);
}

#[test]
fn every_operation_of_the_table_is_a_route_of_that_name() {
    for (api, base, operations) in [(Api::Agent, "/v1", &OPERATIONS[..]), (Api::Reseller, "/api", &BACKEND_OPERATIONS[..])] {
        let mut seen = BTreeSet::new();
        for endpoint in endpoints().filter(|endpoint| endpoint.api == api) {
            let path = endpoint.path.replace(['{', '}'], "");
            let request = http::Request::builder().method(endpoint.method.as_str()).uri(format!("{base}{path}")).body(Vec::new()).unwrap();
            assert_eq!(Service::operation(&request), Some(endpoint.name));
            let answer = Service::new(Config::new(1)).handle(&request, START);
            assert_eq!(answer.status() == 401, endpoint.auth != Auth::Public, "{}", endpoint.name);
            seen.insert(endpoint.name);
        }
        assert_eq!(seen, operations.iter().copied().collect());
    }
}

#[test]
fn the_operations_that_the_table_calls_keyed_read_an_idempotency_key() {
    for endpoint in endpoints().filter(|endpoint| endpoint.auth == Auth::Key) {
        let mut agent = AgentHarness::new();
        let key = agent.service.config().api_key.clone();
        let path = endpoint.path.replace("{session_id}", "some");
        let answer = agent.send(endpoint.method.as_str(), &path, &[("X-API-Key", &key), ("Idempotency-Key", "a b")], "{}");
        let is_read = answer.json["error"]["details"]["field"] == "Idempotency-Key";
        assert_eq!(is_read, endpoint.safety == Safety::Keyed, "{}", endpoint.name);
    }
}

#[test]
fn every_code_is_answered_with_its_status() {
    let key_of_another = |agent: &mut AgentHarness| agent.keyed("/billing/recharge", "k", r#"{"amount":11}"#);
    let mut seen: Vec<(String, u16)> = Vec::new();
    let mut add = |answer: Answer| seen.push((answer.code().to_owned(), answer.status));
    let mut agent = AgentHarness::with(|config| (config.session_limit, config.requests_per_minute) = (1, 40));
    add(agent.send("GET", "/account/info", &[], ""));
    add(agent.send("GET", "/account/info", &[("Authorization", "Bearer x")], ""));
    add(agent.send("POST", "/account/register", &[], r#"{"name":"Ann","referral_code":"?"}"#));
    add(agent.get("/nowhere"));
    add(agent.get("/products?limit=0"));
    add(agent.get("/sessions/none"));
    agent.keyed("/billing/recharge", "k", r#"{"amount":10}"#);
    add(key_of_another(&mut agent));
    for email in ["ann@example.com", "ann+1@example.com"] {
        add(agent.send("POST", "/account/request-api-key", &[], &format!(r#"{{"email":"{email}"}}"#)));
    }
    add(agent.call("POST", "/sessions", r#"{"session_type":"dynamic","product_no":"none"}"#));
    add(agent.call("POST", "/sessions", r#"{"session_type":"static","product_no":"static-soldout"}"#));
    agent.service.set_price("dynamic-world", 5.into());
    add(agent.call("POST", "/sessions", DYNAMIC));
    agent.service.set_price("dynamic-world", 4.into());
    agent.put_budget(r#"{"paused":true}"#);
    add(agent.call("POST", "/sessions", DYNAMIC));
    agent.put_budget(r#"{"paused":false}"#);
    agent.service.set_balance(3.into());
    add(agent.call("POST", "/sessions", DYNAMIC));
    agent.service.set_balance(50.into());
    let id = agent.buy(DYNAMIC);
    add(agent.call("POST", "/sessions", DYNAMIC));
    agent.call("DELETE", &format!("/sessions/{id}"), "");
    add(agent.call("POST", &format!("/sessions/{id}/rotate"), ""));
    let own = agent.service.agent_id();
    agent.service.set_unready(own, Some("closed"));
    add(agent.get("/products"));
    for code in ["BACKEND_TIMEOUT", "INTERNAL_ERROR"] {
        agent.error(code, true, false);
        add(agent.get("/products"));
    }
    agent.service.set_denied(own, ["get_account".to_owned()].into());
    add(agent.get("/account/info"));
    while agent.get("/billing/pricing").status == 200 {}
    add(agent.get("/billing/pricing"));
    agent.service.set_active(own, false);
    add(agent.get("/account/info"));
    let seen: BTreeSet<(&str, u16)> =
        seen.iter().filter(|(code, _)| !code.is_empty()).map(|(code, status)| (code.as_str(), *status)).collect();
    assert_eq!(seen, CODES.iter().copied().collect());
}
