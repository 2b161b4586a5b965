//! Budgets: limits, the pause, thresholds, and the UTC day.

use crate::desk::{Answer, DAY, DYNAMIC, Desk, START, STATIC};

const NEXT_DAY: i64 = (START / DAY + 1) * DAY;

fn exceeded(answer: &Answer, limit: &str) {
    assert_eq!(answer.refusal(), (402, "BUDGET_EXCEEDED"), "{}", answer.json);
    assert_eq!(answer.json["error"]["details"]["limit"], limit);
}

#[test]
fn a_fresh_key_has_no_limits() {
    let mut desk = Desk::new();
    let budget = desk.get("/account/budget");
    let expected = serde_json::json!({
        "key_limit_usd": null, "daily_limit_usd": null, "pause_on_exceed": false, "alert_thresholds": [80, 100], "paused": false,
        "spent_usd": 0, "spent_today_usd": 0, "next_reset_at": "2023-11-15T00:00:00.000Z", "currency": "USD",
    });
    assert_eq!((budget.status, budget.data()), (200, &expected));
}

#[test]
fn absent_null_and_a_value_are_three_things() {
    let mut desk = Desk::new();
    let set = desk.put_budget(r#"{"key_limit_usd":20.10,"daily_limit_usd":5,"alert_thresholds":[90,50,90],"pause_on_exceed":true}"#);
    assert_eq!(set.status, 200);
    assert_eq!((set.data()["key_limit_usd"].to_string(), set.data()["daily_limit_usd"].to_string()), ("20.1".into(), "5".into()));
    assert_eq!(set.data()["alert_thresholds"], serde_json::json!([50, 90]));
    let lifted = desk.put_budget(r#"{"daily_limit_usd":null}"#);
    assert!(lifted.data()["daily_limit_usd"].is_null());
    assert_eq!(lifted.data()["key_limit_usd"].to_string(), "20.1");
    let kept = desk.put_budget("{}");
    assert_eq!(kept.data(), lifted.data());
    assert_eq!(desk.put_budget("").data(), lifted.data());
    assert_eq!(desk.get("/account/budget").data(), lifted.data());
}

#[test]
fn a_change_that_breaks_a_rule_changes_nothing() {
    let mut desk = Desk::new();
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
        assert_eq!(desk.put_budget(body).field(), field, "{body}");
    }
    assert_eq!(desk.get("/account/budget").data()["paused"], false);
}

#[test]
fn a_purchase_that_would_pass_the_key_limit_is_refused_and_reserves_nothing() {
    let mut desk = Desk::with(|config| config.session_limit = 3);
    desk.put_budget(r#"{"key_limit_usd":7.99}"#);
    desk.buy(DYNAMIC);
    let refused = desk.keyed("/sessions", "k", DYNAMIC);
    exceeded(&refused, "key");
    let details = &refused.json["error"]["details"];
    assert_eq!([&details["limit_usd"], &details["spent_usd"], &details["required_usd"]].map(ToString::to_string), ["7.99", "4", "4"]);
    assert_eq!((desk.service.sessions(desk.now).len(), desk.balance().as_str()), (1, "96"));
    desk.put_budget(r#"{"key_limit_usd":8}"#);
    exceeded(&desk.keyed("/sessions", "k", DYNAMIC), "key");
    assert_eq!(desk.keyed("/sessions", "k2", DYNAMIC).status, 202);
    desk.now += 400 * DAY;
    exceeded(&desk.call("POST", "/sessions", DYNAMIC), "key");
}

#[test]
fn the_daily_limit_begins_anew_with_the_utc_day() {
    let mut desk = Desk::new();
    desk.put_budget(r#"{"daily_limit_usd":4}"#);
    desk.buy(DYNAMIC);
    desk.now = NEXT_DAY - 1;
    exceeded(&desk.call("POST", "/sessions", DYNAMIC), "daily");
    desk.now = NEXT_DAY;
    desk.buy(DYNAMIC);
    let budget = desk.get("/account/budget");
    assert_eq!((&budget.data()["spent_usd"], &budget.data()["spent_today_usd"]), (&8.into(), &4.into()));
    assert_eq!(budget.data()["next_reset_at"], "2023-11-16T00:00:00.000Z");
}

#[test]
fn a_renewal_counts_and_is_limited_like_a_purchase() {
    let mut desk = Desk::new();
    let id = desk.buy(STATIC);
    desk.put_budget(r#"{"key_limit_usd":20}"#);
    let renew = format!("/sessions/{id}/renew");
    assert_eq!(desk.call("POST", &renew, r#"{"duration":1}"#).status, 200);
    exceeded(&desk.call("POST", &renew, r#"{"duration":1}"#), "key");
    assert_eq!(desk.get("/account/budget").data()["spent_usd"], 20);
}

#[test]
fn a_paused_key_buys_nothing_and_may_do_the_rest() {
    let mut desk = Desk::new();
    let (dynamic, fixed) = (desk.buy(DYNAMIC), desk.buy(STATIC));
    desk.put_budget(r#"{"paused":true}"#);
    exceeded(&desk.call("POST", "/sessions", DYNAMIC), "paused");
    assert_eq!(desk.call("POST", &format!("/sessions/{dynamic}/rotate"), "").status, 200);
    assert_eq!(desk.call("POST", &format!("/sessions/{fixed}/renew"), r#"{"duration":1}"#).status, 200);
    desk.buy(r#"{"session_type":"static","product_no":"static-us","provisioning_mode":"existing"}"#);
    assert_eq!(desk.get("/account/usage-alerts").data()["paused"], true);
    desk.put_budget(r#"{"paused":false}"#);
    desk.buy(DYNAMIC);
}

#[test]
fn pause_on_exceed_is_kept_and_pauses_nothing() {
    let mut desk = Desk::new();
    desk.put_budget(r#"{"key_limit_usd":3,"pause_on_exceed":true}"#);
    exceeded(&desk.call("POST", "/sessions", DYNAMIC), "key");
    let budget = desk.get("/account/budget");
    assert_eq!((&budget.data()["pause_on_exceed"], &budget.data()["paused"]), (&true.into(), &false.into()));
    desk.put_budget(r#"{"key_limit_usd":4}"#);
    desk.buy(DYNAMIC);
}

#[test]
fn thresholds_that_were_crossed_are_listed() {
    let mut desk = Desk::new();
    desk.put_budget(r#"{"key_limit_usd":10,"daily_limit_usd":8,"alert_thresholds":[40,50,100]}"#);
    let none = serde_json::json!({"alerts": [], "paused": false});
    assert_eq!(desk.get("/account/usage-alerts").data(), &none);
    desk.buy(DYNAMIC);
    let crossed = |desk: &mut Desk| -> Vec<String> {
        let answer = desk.get("/account/usage-alerts");
        let alerts = answer.data()["alerts"].as_array().unwrap();
        alerts.iter().map(|alert| format!("{} {}", alert["limit"].as_str().unwrap(), alert["threshold_percent"])).collect()
    };
    assert_eq!(crossed(&mut desk), ["key 40", "daily 40", "daily 50"]);
    desk.buy(DYNAMIC);
    assert_eq!(crossed(&mut desk), ["key 40", "key 50", "daily 40", "daily 50", "daily 100"]);
    desk.now = NEXT_DAY;
    assert_eq!(crossed(&mut desk), ["key 40", "key 50"]);
}

#[test]
fn a_change_is_replayed_under_its_key_and_conflicts_with_another() {
    let mut desk = Desk::new();
    let key = desk.service.config().api_key.clone();
    let headers = [("X-API-Key", key.as_str()), ("Idempotency-Key", "k")];
    let first = desk.send("PUT", "/account/budget", &headers, r#"{"paused":true}"#);
    desk.put_budget(r#"{"paused":false}"#);
    let again = desk.send("PUT", "/account/budget", &headers, r#"{"paused":true}"#);
    assert_eq!((again.status, &again.bytes), (200, &first.bytes));
    assert_eq!(desk.get("/account/budget").data()["paused"], false);
    let other = desk.send("PUT", "/account/budget", &headers, r#"{"paused":false}"#);
    assert_eq!(other.refusal(), (409, "IDEMPOTENCY_CONFLICT"));
}

#[test]
fn a_key_has_its_own_budget() {
    let mut desk = Desk::new();
    let (_, key) = desk.register("Ann");
    desk.put_budget(r#"{"paused":true}"#);
    assert_eq!(desk.as_account(&key, "GET", "/account/budget", "").data()["paused"], false);
}
