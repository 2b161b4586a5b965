//! The two sides of one account: sessions are orders here, and orders are resources there.

use crate::agent_harness::{DAY, DYNAMIC, STATIC};
use crate::reseller_harness::ResellerHarness;

fn existing(number: &str) -> String {
    format!(r#"{{"session_type":"static","product_no":"static-us","provisioning_mode":"existing","resource_id":"{number}"}}"#)
}

#[test]
fn a_session_is_an_order_of_the_reseller_under_its_own_id() {
    let mut reseller = ResellerHarness::new();
    let (fixed, moving) = (reseller.agent.buy(STATIC), reseller.agent.buy(DYNAMIC));
    let order = reseller.order(&fixed);
    assert_eq!((&order["status"], &order["user_id"], &order["total_amount"]), (&"active".into(), &1001.into(), &10.into()));
    let session = reseller.agent.get(&format!("/sessions/{fixed}?include_credentials=true"));
    assert_eq!(order["instances"][0]["username"], session.data()["proxy"]["username"]);
    assert_eq!(reseller.granted("GET", &format!("/dynamic/order-info/{moving}"), "")["traffic_gb"], 1);
    let spent = reseller.list("/open/app/user/transactions?order_type=dynamic");
    assert_eq!((spent.len(), &spent[0]["order_no"], &spent[0]["amount"]), (1, &moving.clone().into(), &(-4).into()));
    reseller.agent.call("DELETE", &format!("/sessions/{fixed}"), "");
    assert_eq!(reseller.order(&fixed)["status"], "cancelled");
}

#[test]
fn a_sessions_order_is_renewed_and_ended_on_the_agent_side() {
    let mut reseller = ResellerHarness::new();
    let id = reseller.agent.buy(STATIC);
    assert_eq!(reseller.call("POST", &format!("/open/app/static/order/{id}/cancel"), "").refused(), 422);
    assert_eq!(reseller.call("POST", "/open/app/static/order/renew", &format!(r#"{{"order_no":"{id}"}}"#)).refused(), 422);
    assert_eq!(reseller.agent.status(&id), "active");
}

#[test]
fn a_static_order_of_the_account_or_its_user_serves_an_existing_session_while_it_is_active() {
    let mut reseller = ResellerHarness::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = reseller.user("ann", 40);
    let number = reseller.place(ann, "");
    assert_eq!(reseller.agent.call("POST", "/sessions", &existing(&number)).refusal(), (422, "INVALID_REQUEST"));
    reseller.agent.now += 1000;
    let id = reseller.agent.buy(&existing(&number));
    assert_eq!(reseller.agent.call("POST", "/sessions", &existing(&number)).refusal(), (422, "INVALID_REQUEST"));
    reseller.agent.call("DELETE", &format!("/sessions/{id}"), "");
    reseller.agent.buy(&existing(&number));
    let other = reseller.place(ann, "");
    reseller.agent.now += 1000;
    reseller.granted("POST", &format!("/open/app/static/order/{other}/cancel"), "");
    assert_eq!(reseller.agent.call("POST", "/sessions", &existing(&other)).refusal(), (422, "INVALID_REQUEST"));
    let orders = reseller.list("/open/app/static/order/list/v2");
    assert_eq!(orders.len(), 4, "a session on an existing order is no order of its own");
}

#[test]
fn an_existing_session_ends_with_its_order() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 40);
    let (cancelled, expiring) = (reseller.place(ann, ""), reseller.place(ann, r#","duration":1,"cycleTimes":1"#));
    let sessions: Vec<String> = [&cancelled, &expiring].map(|number| reseller.agent.buy(&existing(number))).into();
    let renew = |id: &str| format!("/sessions/{id}/renew");
    reseller.granted("POST", &format!("/open/app/static/order/{cancelled}/cancel"), "");
    assert_eq!(reseller.agent.status(&sessions[0]), "expired");
    assert_eq!(reseller.agent.call("POST", &renew(&sessions[0]), r#"{"duration":1}"#).refusal(), (422, "INVALID_REQUEST"));
    assert_eq!(reseller.agent.status(&sessions[1]), "active");
    reseller.pass(DAY);
    assert_eq!(reseller.agent.status(&sessions[1]), "expired");
    reseller.granted("POST", "/open/app/static/order/renew", &format!(r#"{{"order_no":"{expiring}"}}"#));
    assert_eq!(reseller.agent.status(&sessions[1]), "expired");
    assert_eq!(reseller.agent.call("POST", &renew(&sessions[1]), r#"{"duration":1}"#).status, 200);
    assert_eq!(reseller.agent.status(&sessions[1]), "active");
}

#[test]
fn the_first_accounts_resources_are_static_orders_here() {
    let mut reseller = ResellerHarness::new();
    let order = reseller.order("SO-1001");
    assert_eq!(
        (&order["status"], &order["expires_at"], &order["product_no"]),
        (&"active".into(), &serde_json::Value::Null, &"static-us".into())
    );
    reseller.granted("POST", "/open/app/static/order/SO-1001/cancel", "");
    assert_eq!(reseller.agent.call("POST", "/sessions", &existing("SO-1001")).refusal(), (422, "INVALID_REQUEST"));
}

#[test]
fn what_the_backend_took_from_the_account_is_among_its_transactions() {
    let mut reseller = ResellerHarness::new();
    reseller.user("ann", 40);
    let told = reseller.agent.get("/billing/transactions");
    let item = &told.data()["items"][0];
    assert_eq!((&item["type"], &item["amount_usd"]), (&"adjustment".into(), &(-40).into()));
    assert_eq!(reseller.agent.get("/billing/balance").data()["balance"], 60);
}
