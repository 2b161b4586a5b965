//! The two sides of one account: sessions are orders here, and orders are resources there.

use crate::desk::{DAY, DYNAMIC, STATIC};
use crate::office::Office;

fn existing(number: &str) -> String {
    format!(r#"{{"session_type":"static","product_no":"static-us","provisioning_mode":"existing","resource_id":"{number}"}}"#)
}

#[test]
fn a_session_is_an_order_of_the_reseller_under_its_own_id() {
    let mut office = Office::new();
    let (fixed, moving) = (office.desk.buy(STATIC), office.desk.buy(DYNAMIC));
    let order = office.order(&fixed);
    assert_eq!((&order["status"], &order["user_id"], &order["total_amount"]), (&"active".into(), &1001.into(), &10.into()));
    let session = office.desk.get(&format!("/sessions/{fixed}?include_credentials=true"));
    assert_eq!(order["instances"][0]["username"], session.data()["proxy"]["username"]);
    assert_eq!(office.granted("GET", &format!("/dynamic/order-info/{moving}"), "")["traffic_gb"], 1);
    let spent = office.list("/open/app/user/transactions?order_type=dynamic");
    assert_eq!((spent.len(), &spent[0]["order_no"], &spent[0]["amount"]), (1, &moving.clone().into(), &(-4).into()));
    office.desk.call("DELETE", &format!("/sessions/{fixed}"), "");
    assert_eq!(office.order(&fixed)["status"], "cancelled");
}

#[test]
fn a_sessions_order_is_renewed_and_ended_on_the_agent_side() {
    let mut office = Office::new();
    let id = office.desk.buy(STATIC);
    assert_eq!(office.call("POST", &format!("/open/app/static/order/{id}/cancel"), "").refused(), 422);
    assert_eq!(office.call("POST", "/open/app/static/order/renew", &format!(r#"{{"order_no":"{id}"}}"#)).refused(), 422);
    assert_eq!(office.desk.status(&id), "active");
}

#[test]
fn a_static_order_of_the_account_or_its_user_serves_an_existing_session_while_it_is_active() {
    let mut office = Office::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = office.user("ann", 40);
    let number = office.place(ann, "");
    assert_eq!(office.desk.call("POST", "/sessions", &existing(&number)).refusal(), (422, "INVALID_REQUEST"));
    office.desk.now += 1000;
    let id = office.desk.buy(&existing(&number));
    assert_eq!(office.desk.call("POST", "/sessions", &existing(&number)).refusal(), (422, "INVALID_REQUEST"));
    office.desk.call("DELETE", &format!("/sessions/{id}"), "");
    office.desk.buy(&existing(&number));
    let other = office.place(ann, "");
    office.desk.now += 1000;
    office.granted("POST", &format!("/open/app/static/order/{other}/cancel"), "");
    assert_eq!(office.desk.call("POST", "/sessions", &existing(&other)).refusal(), (422, "INVALID_REQUEST"));
    let orders = office.list("/open/app/static/order/list/v2");
    assert_eq!(orders.len(), 4, "a session on an existing order is no order of its own");
}

#[test]
fn an_existing_session_ends_with_its_order() {
    let mut office = Office::new();
    let ann = office.user("ann", 40);
    let (cancelled, expiring) = (office.place(ann, ""), office.place(ann, r#","duration":1,"cycleTimes":1"#));
    let sessions: Vec<String> = [&cancelled, &expiring].map(|number| office.desk.buy(&existing(number))).into();
    let renew = |id: &str| format!("/sessions/{id}/renew");
    office.granted("POST", &format!("/open/app/static/order/{cancelled}/cancel"), "");
    assert_eq!(office.desk.status(&sessions[0]), "expired");
    assert_eq!(office.desk.call("POST", &renew(&sessions[0]), r#"{"duration":1}"#).refusal(), (422, "INVALID_REQUEST"));
    assert_eq!(office.desk.status(&sessions[1]), "active");
    office.pass(DAY);
    assert_eq!(office.desk.status(&sessions[1]), "expired");
    office.granted("POST", "/open/app/static/order/renew", &format!(r#"{{"order_no":"{expiring}"}}"#));
    assert_eq!(office.desk.status(&sessions[1]), "expired");
    assert_eq!(office.desk.call("POST", &renew(&sessions[1]), r#"{"duration":1}"#).status, 200);
    assert_eq!(office.desk.status(&sessions[1]), "active");
}

#[test]
fn the_first_accounts_resources_are_static_orders_here() {
    let mut office = Office::new();
    let order = office.order("SO-1001");
    assert_eq!(
        (&order["status"], &order["expires_at"], &order["product_no"]),
        (&"active".into(), &serde_json::Value::Null, &"static-us".into())
    );
    office.granted("POST", "/open/app/static/order/SO-1001/cancel", "");
    assert_eq!(office.desk.call("POST", "/sessions", &existing("SO-1001")).refusal(), (422, "INVALID_REQUEST"));
}

#[test]
fn what_the_backend_took_from_the_account_is_among_its_transactions() {
    let mut office = Office::new();
    office.user("ann", 40);
    let told = office.desk.get("/billing/transactions");
    let item = &told.data()["items"][0];
    assert_eq!((&item["type"], &item["amount_usd"]), (&"adjustment".into(), &(-40).into()));
    assert_eq!(office.desk.get("/billing/balance").data()["balance"], 60);
}
