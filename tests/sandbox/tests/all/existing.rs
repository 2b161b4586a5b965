//! Sessions on resources that the account already has.

use crate::agent_harness::{AgentHarness, DAY};

fn existing(product_no: &str, more: &str) -> String {
    format!(r#"{{"session_type":"static","product_no":"{product_no}","provisioning_mode":"existing"{more}}}"#)
}

#[test]
fn an_existing_resource_is_used_by_one_session_at_a_time_and_costs_nothing() {
    let mut agent = AgentHarness::new();
    agent.service.set_balance(0.into());
    let body = existing("static-us", "");
    let accepted = agent.call("POST", "/sessions", &body);
    assert_eq!((accepted.status, accepted.data()["estimated_charge_usd"].to_string()), (202, "0".to_owned()));
    assert_eq!(accepted.data()["provisioning_mode"], "existing");
    for body in [body.clone(), existing("static-us", r#","resource_id":"SO-1001""#)] {
        assert_eq!(agent.call("POST", "/sessions", &body).refusal(), (422, "INVALID_REQUEST"));
    }
    agent.call("DELETE", &format!("/sessions/{}", accepted.session_id()), "");
    agent.buy(&body);
    assert!(agent.service.charges().is_empty());
}

#[test]
fn a_resource_is_named_or_any_usable_one_is_taken() {
    let mut agent = AgentHarness::new();
    assert!(agent.service.add_resource("SO-7", "static-us", agent.now));
    agent.buy(&existing("static-us", r#","resource_id":"SO-7""#));
    agent.buy(&existing("static-us", ""));
    assert_eq!(agent.call("POST", "/sessions", &existing("static-us", "")).status, 422);
    assert!(!agent.service.add_resource("SO-8", "dynamic-world", agent.now) && !agent.service.add_resource("SO-8", "none", agent.now));
}

#[test]
fn a_resource_that_the_account_does_not_have_is_invalid() {
    let mut agent = AgentHarness::new();
    for body in [
        existing("static-us", r#","resource_id":"SO-9999""#),
        existing("static-us", r#","resource_id":"SO-1002""#),
        existing("static-us", r#","resource_id":7"#),
    ] {
        assert_eq!(agent.call("POST", "/sessions", &body).field(), "resource_id", "{body}");
    }
    let dynamic = r#"{"session_type":"dynamic","product_no":"dynamic-world","provisioning_mode":"existing"}"#;
    assert_eq!(agent.call("POST", "/sessions", dynamic).field(), "provisioning_mode");
}

#[test]
fn another_account_has_resources_of_its_own() {
    let mut agent = AgentHarness::new();
    let (_, key) = agent.register("Ann");
    assert_eq!(agent.as_account(&key, "POST", "/sessions", &existing("static-us", "")).refusal(), (422, "INVALID_REQUEST"));
    agent.buy(&existing("static-us", ""));
}

#[test]
fn an_existing_session_has_as_many_addresses_as_its_resource() {
    let mut agent = AgentHarness::new();
    for more in [r#","resource_id":"SO-1001","quantity":50"#, r#","resource_id":"SO-1001","quantity":2"#] {
        assert_eq!(agent.call("POST", "/sessions", &existing("static-us", more)).field(), "quantity", "{more}");
    }
    assert_eq!(agent.call("POST", "/sessions", &existing("static-us", r#","quantity":2"#)).refusal(), (422, "INVALID_REQUEST"));
    agent.buy(&existing("static-us", r#","resource_id":"SO-1001","quantity":1"#));
}

#[test]
fn renewing_an_existing_session_costs_nothing() {
    let mut agent = AgentHarness::new();
    agent.service.set_balance(0.into());
    let id = agent.buy(&existing("static-us", ""));
    let end = agent.get(&format!("/sessions/{id}")).data()["expires_at"].clone();
    let renewed = agent.call("POST", &format!("/sessions/{id}/renew"), r#"{"duration":1}"#);
    assert_eq!((renewed.status, renewed.data()["estimated_charge_usd"].to_string()), (200, "0".to_owned()));
    assert_ne!(renewed.data()["expires_at"], end);
    assert!(agent.service.charges().is_empty());
}

#[test]
fn an_expired_existing_session_is_renewed_while_nobody_else_uses_its_resource() {
    let mut agent = AgentHarness::new();
    let body = existing("static-us", "");
    let first = agent.buy(&body);
    agent.now += 30 * DAY;
    let second = agent.buy(&body);
    let renew = format!("/sessions/{first}/renew");
    assert_eq!(agent.call("POST", &renew, r#"{"duration":1}"#).refusal(), (422, "INVALID_REQUEST"));
    agent.call("DELETE", &format!("/sessions/{second}"), "");
    assert_eq!(agent.call("POST", &renew, r#"{"duration":1}"#).status, 200);
    assert_eq!(agent.status(&first), "active");
}

#[test]
fn the_answer_422_is_stored_like_any_other() {
    let mut agent = AgentHarness::new();
    let body = existing("static-us", "");
    let id = agent.buy(&body);
    let refused = agent.keyed("/sessions", "k", &body);
    assert_eq!(refused.status, 422);
    agent.call("DELETE", &format!("/sessions/{id}"), "");
    assert_eq!(agent.keyed("/sessions", "k", &body).bytes, refused.bytes);
}
