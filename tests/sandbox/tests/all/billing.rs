//! Prices, recharges and transactions.

use crate::agent_harness::{AgentHarness, DYNAMIC, STATIC};

#[test]
fn pricing_states_where_prices_begin() {
    let answer = AgentHarness::new().get("/billing/pricing");
    assert_eq!(answer.status, 200);
    assert_eq!(answer.data()["dynamic"], serde_json::json!({"from_usd": 4, "unit": "GB"}));
    assert_eq!(answer.data()["static"], serde_json::json!({"from_usd": 10, "unit": "month"}));
    assert_eq!((&answer.data()["minimum_topup_usd"], &answer.data()["session_management_usd"]), (&10.into(), &0.into()));
}

#[test]
fn a_recharge_is_ordered_shown_and_credited_once_it_is_paid() {
    let mut agent = AgentHarness::new();
    let order = agent.call("POST", "/billing/recharge", r#"{"amount_usd":12.5,"currency":"USDT"}"#);
    assert_eq!((order.status, &order.data()["status"]), (201, &"pending".into()));
    let sums = ["amount_usd", "amount_usdt", "amount_cny", "exchange_rate"].map(|field| order.data()[field].to_string());
    assert_eq!(sums, ["12.5", "12.5", "90", "7.2"]);
    let wallet = order.data()["wallet_address"].as_str().unwrap();
    assert!(order.data()["wallet_explorer_url"].as_str().unwrap().ends_with(wallet));
    assert_eq!((agent.balance().as_str(), agent.service.orders()[0].status), ("100", "pending"));
    let id = order.data()["order_id"].as_str().unwrap();
    assert!(agent.service.pay(id, agent.now));
    assert_eq!((agent.balance().as_str(), agent.service.orders()[0].status), ("112.5", "paid"));
    assert!(!agent.service.pay(id, agent.now) && !agent.service.pay("none", agent.now));
    assert_eq!(agent.balance(), "112.5");
}

#[test]
fn a_recharge_of_less_than_ten_or_of_nothing_is_refused() {
    let mut agent = AgentHarness::new();
    for (body, field) in [
        ("", "amount"),
        ("{}", "amount"),
        (r#"{"amount":9.99}"#, "amount"),
        (r#"{"amount_usd":9.99}"#, "amount_usd"),
        (r#"{"amount":10,"amount_usd":9}"#, "amount_usd"),
        (r#"{"amount":10,"amount_usd":11}"#, "amount"),
        (r#"{"amount":"10"}"#, "amount"),
        (r#"{"amount":null}"#, "amount"),
        (r#"{"amount":7e28}"#, "amount"),
        (r#"{"amount":10,"currency":"USD"}"#, "currency"),
    ] {
        assert_eq!(agent.call("POST", "/billing/recharge", body).field(), field, "{body}");
    }
    assert!(agent.service.orders().is_empty());
    for body in [r#"{"amount":10}"#, r#"{"amount_usd":10.00}"#, r#"{"amount":10,"amount_usd":10.0}"#] {
        assert_eq!(agent.call("POST", "/billing/recharge", body).status, 201, "{body}");
    }
}

#[test]
fn a_recharge_is_ordered_once_a_key() {
    let mut agent = AgentHarness::new();
    let first = agent.keyed("/billing/recharge", "k", r#"{"amount":10}"#);
    assert_eq!(agent.keyed("/billing/recharge", "k", r#"{"amount":10}"#).bytes, first.bytes);
    assert_eq!(agent.keyed("/billing/recharge", "k", r#"{"amount":11}"#).refusal(), (409, "IDEMPOTENCY_CONFLICT"));
    assert_eq!(agent.service.orders().len(), 1);
}

#[test]
fn transactions_list_charges_credits_and_refunds_the_newest_first() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(STATIC);
    agent.now += 1_000;
    agent.call("POST", &format!("/sessions/{id}/renew"), r#"{"duration":1}"#);
    let order = agent.call("POST", "/billing/recharge", r#"{"amount":10}"#);
    let order = order.data()["order_id"].as_str().unwrap();
    agent.service.pay(order, agent.now);
    assert!(agent.service.refund(&id, "15.5".parse().unwrap(), agent.now));
    assert!(!agent.service.refund(&id, 5.into(), agent.now), "more than was charged");
    let answer = agent.get("/billing/transactions");
    assert_eq!((answer.status, &answer.data()["total"]), (200, &4.into()));
    let items = answer.data()["items"].as_array().unwrap();
    let told: Vec<String> =
        items.iter().map(|item| format!("{} {} {}", item["type"], item["amount_usd"], item["reference"]).replace('"', "")).collect();
    assert_eq!(told, [format!("refund 15.5 {id}"), format!("recharge 10 {order}"), format!("charge -10 {id}"), format!("charge -10 {id}")]);
    assert_eq!(items[2]["operation"], "renew_session");
    assert_eq!(items[2]["created_at"], "2023-11-14T22:13:21.000Z");
    assert_eq!(agent.balance(), "105.5");
}

#[test]
fn a_trial_credit_is_the_first_transaction_of_its_account_only() {
    let mut agent = AgentHarness::new();
    agent.send("POST", "/account/request-api-key", &[], r#"{"email":"ann@example.com"}"#);
    let key = agent.service.mails()[0].api_key.clone();
    let theirs = agent.as_account(&key, "GET", "/billing/transactions", "");
    assert_eq!((&theirs.data()["total"], &theirs.data()["items"][0]["type"]), (&1.into(), &"trial_credit".into()));
    assert_eq!(agent.get("/billing/transactions").data()["total"], 0);
}

#[test]
fn sums_are_exact() {
    let mut agent = AgentHarness::new();
    for _ in 0..3 {
        agent.buy(r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.025}"#);
    }
    assert_eq!(agent.balance(), "99.7");
    agent.buy(DYNAMIC);
    assert_eq!(agent.get("/billing/balance").data()["balance"].to_string(), "95.7");
}
