//! Budgets: limits, the pause, thresholds, and the UTC day.

use crate::agent_harness::{AgentHarness, Answer, DAY, DYNAMIC, START, STATIC};

const NEXT_DAY: i64 = (START / DAY + 1) * DAY;

fn exceeded(answer: &Answer, limit: &str) {
    assert_eq!(answer.refusal(), (402, "BUDGET_EXCEEDED"), "{}", answer.json);
    assert_eq!(answer.json["error"]["details"]["limit"], limit);
}

#[test]
fn a_fresh_key_has_no_limits() {
    let mut agent = AgentHarness::new();
    let budget = agent.get("/account/budget");
    let expected = serde_json::json!({
        "key_limit_usd": null, "daily_limit_usd": null, "pause_on_exceed": false, "alert_thresholds": [80, 100], "paused": false,
        "spent_usd": 0, "spent_today_usd": 0, "next_reset_at": "2023-11-15T00:00:00.000Z", "currency": "USD",
    });
    assert_eq!((budget.status, budget.data()), (200, &expected));
}

#[test]
fn absent_null_and_a_value_are_three_things() {
    let mut agent = AgentHarness::new();
    let set = agent.put_budget(r#"{"key_limit_usd":20.10,"daily_limit_usd":5,"alert_thresholds":[90,50,90],"pause_on_exceed":true}"#);
    assert_eq!(set.status, 200);
    assert_eq!((set.data()["key_limit_usd"].to_string(), set.data()["daily_limit_usd"].to_string()), ("20.1".into(), "5".into()));
    assert_eq!(set.data()["alert_thresholds"], serde_json::json!([50, 90]));
    let lifted = agent.put_budget(r#"{"daily_limit_usd":null}"#);
    assert!(lifted.data()["daily_limit_usd"].is_null());
    assert_eq!(lifted.data()["key_limit_usd"].to_string(), "20.1");
    let kept = agent.put_budget("{}");
    assert_eq!(kept.data(), lifted.data());
    assert_eq!(agent.put_budget("").data(), lifted.data());
    assert_eq!(agent.get("/account/budget").data(), lifted.data());
}

#[test]
fn a_change_that_breaks_a_rule_changes_nothing() {
    let mut agent = AgentHarness::new();
    for (body, field) in [
        (r#"{"paused":true,"key_limit_usd":-0.01}"#, "key_limit_usd"),
        (r#"{"paused":true,"daily_limit_usd":"5"}"#, "daily_limit_usd"),
        (r#"{"paused":true,"alert_thresholds":[0]}"#, "alert_thresholds"),
        (r#"{"paused":true,"alert_thresholds":[101]}"#, "alert_thresholds"),
        (r#"{"paused":true,"alert_thresholds":[1.5]}"#, "alert_thresholds"),
        (r#"{"paused":true,"alert_thresholds":null}"#, "alert_thresholds"),
        (r#"{"paused":true,"pause_on_exceed":1}"#, "pause_on_exceed"),
        (r#"{"paused":null}"#, "paused"),
        ("[]", "body"),
    ] {
        assert_eq!(agent.put_budget(body).field(), field, "{body}");
    }
    assert_eq!(agent.get("/account/budget").data()["paused"], false);
}

#[test]
fn a_purchase_that_would_pass_the_key_limit_is_refused_and_reserves_nothing() {
    let mut agent = AgentHarness::with(|config| config.session_limit = 3);
    agent.put_budget(r#"{"key_limit_usd":7.99}"#);
    agent.buy(DYNAMIC);
    let refused = agent.keyed("/sessions", "k", DYNAMIC);
    exceeded(&refused, "key");
    let details = &refused.json["error"]["details"];
    assert_eq!([&details["limit_usd"], &details["spent_usd"], &details["required_usd"]].map(ToString::to_string), ["7.99", "4", "4"]);
    assert_eq!((agent.service.sessions(agent.now).len(), agent.balance().as_str()), (1, "96"));
    agent.put_budget(r#"{"key_limit_usd":8}"#);
    exceeded(&agent.keyed("/sessions", "k", DYNAMIC), "key");
    assert_eq!(agent.keyed("/sessions", "k2", DYNAMIC).status, 202);
    agent.now += 400 * DAY;
    exceeded(&agent.call("POST", "/sessions", DYNAMIC), "key");
}

#[test]
fn the_daily_limit_begins_anew_with_the_utc_day() {
    let mut agent = AgentHarness::new();
    agent.put_budget(r#"{"daily_limit_usd":4}"#);
    agent.buy(DYNAMIC);
    agent.now = NEXT_DAY - 1;
    exceeded(&agent.call("POST", "/sessions", DYNAMIC), "daily");
    agent.now = NEXT_DAY;
    agent.buy(DYNAMIC);
    let budget = agent.get("/account/budget");
    assert_eq!((&budget.data()["spent_usd"], &budget.data()["spent_today_usd"]), (&8.into(), &4.into()));
    assert_eq!(budget.data()["next_reset_at"], "2023-11-16T00:00:00.000Z");
}

#[test]
fn a_renewal_counts_and_is_limited_like_a_purchase() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(STATIC);
    agent.put_budget(r#"{"key_limit_usd":20}"#);
    let renew = format!("/sessions/{id}/renew");
    assert_eq!(agent.call("POST", &renew, r#"{"duration":1}"#).status, 200);
    exceeded(&agent.call("POST", &renew, r#"{"duration":1}"#), "key");
    assert_eq!(agent.get("/account/budget").data()["spent_usd"], 20);
}

#[test]
fn a_paused_key_buys_nothing_and_may_do_the_rest() {
    let mut agent = AgentHarness::new();
    let (dynamic, fixed) = (agent.buy(DYNAMIC), agent.buy(STATIC));
    agent.put_budget(r#"{"paused":true}"#);
    exceeded(&agent.call("POST", "/sessions", DYNAMIC), "paused");
    assert_eq!(agent.call("POST", &format!("/sessions/{dynamic}/rotate"), "").status, 200);
    assert_eq!(agent.call("POST", &format!("/sessions/{fixed}/renew"), r#"{"duration":1}"#).status, 200);
    agent.buy(r#"{"session_type":"static","product_no":"static-us","provisioning_mode":"existing"}"#);
    assert_eq!(agent.get("/account/usage-alerts").data()["paused"], true);
    agent.put_budget(r#"{"paused":false}"#);
    agent.buy(DYNAMIC);
}

#[test]
fn pause_on_exceed_is_kept_and_pauses_nothing() {
    let mut agent = AgentHarness::new();
    agent.put_budget(r#"{"key_limit_usd":3,"pause_on_exceed":true}"#);
    exceeded(&agent.call("POST", "/sessions", DYNAMIC), "key");
    let budget = agent.get("/account/budget");
    assert_eq!((&budget.data()["pause_on_exceed"], &budget.data()["paused"]), (&true.into(), &false.into()));
    agent.put_budget(r#"{"key_limit_usd":4}"#);
    agent.buy(DYNAMIC);
}

#[test]
fn thresholds_that_were_crossed_are_listed() {
    let mut agent = AgentHarness::new();
    agent.put_budget(r#"{"key_limit_usd":10,"daily_limit_usd":8,"alert_thresholds":[40,50,100]}"#);
    let none = serde_json::json!({"alerts": [], "paused": false});
    assert_eq!(agent.get("/account/usage-alerts").data(), &none);
    agent.buy(DYNAMIC);
    let crossed = |agent: &mut AgentHarness| -> Vec<String> {
        let answer = agent.get("/account/usage-alerts");
        let alerts = answer.data()["alerts"].as_array().unwrap();
        alerts.iter().map(|alert| format!("{} {}", alert["limit"].as_str().unwrap(), alert["threshold_percent"])).collect()
    };
    assert_eq!(crossed(&mut agent), ["key 40", "daily 40", "daily 50"]);
    agent.buy(DYNAMIC);
    assert_eq!(crossed(&mut agent), ["key 40", "key 50", "daily 40", "daily 50", "daily 100"]);
    agent.now = NEXT_DAY;
    assert_eq!(crossed(&mut agent), ["key 40", "key 50"]);
}

#[test]
fn a_change_is_replayed_under_its_key_and_conflicts_with_another() {
    let mut agent = AgentHarness::new();
    let key = agent.service.config().api_key.clone();
    let headers = [("X-API-Key", key.as_str()), ("Idempotency-Key", "k")];
    let first = agent.send("PUT", "/account/budget", &headers, r#"{"paused":true}"#);
    agent.put_budget(r#"{"paused":false}"#);
    let again = agent.send("PUT", "/account/budget", &headers, r#"{"paused":true}"#);
    assert_eq!((again.status, &again.bytes), (200, &first.bytes));
    assert_eq!(agent.get("/account/budget").data()["paused"], false);
    let other = agent.send("PUT", "/account/budget", &headers, r#"{"paused":false}"#);
    assert_eq!(other.refusal(), (409, "IDEMPOTENCY_CONFLICT"));
}

#[test]
fn a_key_has_its_own_budget() {
    let mut agent = AgentHarness::new();
    let (_, key) = agent.register("Ann");
    agent.put_budget(r#"{"paused":true}"#);
    assert_eq!(agent.as_account(&key, "GET", "/account/budget", "").data()["paused"], false);
}
