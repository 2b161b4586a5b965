//! Balances, consumption, top-ups in USDT, and the figures of the dashboard.

use serde_json::json;

use crate::agent_harness::DAY;
use crate::reseller_harness::ResellerHarness;

const SPENT: &str = "/open/app/user/transactions";

#[test]
fn consumption_is_filtered_by_everything_the_contract_names() {
    let mut reseller = ResellerHarness::new();
    let (ann, bob) = (reseller.user("ann", 40), reseller.user("bob", 20));
    let number = reseller.place(ann, "");
    reseller.granted("POST", "/open/app/static/order/renew", &format!(r#"{{"order_no":"{number}"}}"#));
    reseller.pass(DAY);
    reseller.granted("POST", "/open/app/order/create/v2", &format!(r#"{{"poolId":"dynamic-us","trafficAmount":1,"userId":{bob}}}"#));
    for (query, count) in [
        (String::new(), 3),
        ("page=2&page_size=2".to_owned(), 1),
        ("type=renewal".to_owned(), 1),
        ("type=adjustment".to_owned(), 0),
        ("order_type=static".to_owned(), 2),
        ("order_type=dynamic".to_owned(), 1),
        ("start_date=2023-11-15".to_owned(), 1),
        ("end_date=2023-11-14".to_owned(), 2),
        ("start_date=2023-11-14&end_date=2023-11-15".to_owned(), 3),
        ("username=ann".to_owned(), 2),
        ("username=an".to_owned(), 0),
        (format!("order_no={number}"), 2),
        ("keyword=RENEW".to_owned(), 1),
        ("keyword=bo".to_owned(), 1),
        (format!("target_user_id={bob}"), 1),
        ("target_user_id=1001".to_owned(), 0),
    ] {
        assert_eq!(reseller.list(&format!("{SPENT}?{query}")).len(), count, "{query}");
    }
    for (query, field) in [
        ("order_type=other", "order_type"),
        ("start_date=2023-11-14T00:00:00Z", "start_date"),
        ("end_date=tomorrow", "end_date"),
        ("target_user_id=x", "target_user_id"),
        ("page_size=101", "page_size"),
    ] {
        assert_eq!(reseller.get(&format!("{SPENT}?{query}")).wrong(), field);
    }
    assert_eq!(reseller.get(&format!("{SPENT}?target_user_id=7")).refused(), 403);
    let newest = &reseller.list(SPENT)[0];
    assert_eq!(
        (&newest["username"], &newest["type"], newest["amount"].to_string()),
        (&"bob".into(), &"purchase".into(), "-4.25".to_owned())
    );
}

#[test]
fn a_users_totals_follow_its_orders_and_its_money() {
    let mut reseller = ResellerHarness::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = reseller.user("ann", 40);
    reseller.place(ann, "");
    reseller.agent.service.fail_orders(1);
    reseller.place(ann, "");
    reseller.agent.now += 1000;
    let user = reseller.list("/open/app/agent/sub-users")[0].clone();
    assert_eq!((&user["balance"], &user["total_recharge"], &user["total_consumption"]), (&30.into(), &40.into(), &10.into()));
}

#[test]
fn no_money_is_made_or_lost_between_a_reseller_its_users_and_their_orders() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 60);
    reseller.place(ann, r#","ipCount":2"#);
    reseller.granted("POST", &format!("/open/app/agent/sub-users/{ann}/balance"), r#"{"amount":-15.5,"remark":"back"}"#);
    let view = reseller.view();
    let spent: rust_decimal::Decimal = view.static_orders.iter().map(|order| order.total_amount).sum();
    assert_eq!(reseller.agent.service.balance() + view.users[0].balance + spent, 100.into());
}

#[test]
fn a_usdt_order_is_paid_when_its_transfer_is_found_by_reading_its_status() {
    let mut reseller = ResellerHarness::new();
    let wallet = reseller.granted("GET", "/usdt/wallet-info", "");
    assert_eq!((&wallet["network"], wallet["exchange_rate"].to_string()), (&"TRC20".into(), "7.2".to_owned()));
    let order = reseller.granted("POST", "/usdt/create-order", r#"{"amount":12.5}"#);
    assert_eq!(
        (&order["status"], &order["wallet_address"], &order["orderNo"]),
        (&"pending".into(), &wallet["wallet_address"], &order["order_no"])
    );
    let number = order["order_no"].as_str().unwrap();
    let check = format!("/usdt/check-status?order_no={number}");
    assert_eq!(reseller.granted("GET", &check, "")["status"], "pending");
    assert!(reseller.agent.service.pay(number, reseller.agent.now));
    assert_eq!((&reseller.list("/usdt/orders")[0]["status"], reseller.agent.balance()), (&"pending".into(), "100".to_owned()));
    for _ in 0..2 {
        assert_eq!((&reseller.granted("GET", &check, "")["status"], reseller.agent.balance()), (&"paid".into(), "112.5".to_owned()));
    }
    assert!(!reseller.agent.service.pay(number, reseller.agent.now));
    assert_eq!(reseller.list("/transaction/agent/transactions")[0]["order_no"], number);
    assert_eq!(reseller.call("POST", "/usdt/cancel-order", &format!(r#"{{"order_no":"{number}"}}"#)).refused(), 422);
}

#[test]
fn an_unpaid_usdt_order_can_be_cancelled_once_and_a_paid_one_is_found_instead() {
    let mut reseller = ResellerHarness::new();
    let mut create = || reseller.granted("POST", "/usdt/create-order", r#"{"amount":5}"#)["order_no"].as_str().unwrap().to_owned();
    let (first, second) = (create(), create());
    let cancel = |number: &str| format!(r#"{{"orderNo":"{number}"}}"#);
    assert_eq!(reseller.granted("POST", "/usdt/cancel-order", &cancel(&first))["status"], "cancelled");
    assert_eq!(reseller.call("POST", "/usdt/cancel-order", &cancel(&first)).refused(), 422);
    assert!(!reseller.agent.service.pay(&first, reseller.agent.now) && reseller.agent.service.pay(&second, reseller.agent.now));
    assert_eq!(reseller.call("POST", "/usdt/cancel-order", &cancel(&second)).refused(), 422);
    assert_eq!(reseller.agent.balance(), "105");
}

#[test]
fn a_usdt_order_is_its_owners_only_and_its_requests_are_checked() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 0);
    let token = reseller.login("ann", "secret-1").token();
    let number = reseller.call_as(&token, "POST", "/usdt/create-order", r#"{"amount":3}"#).data()["order_no"].as_str().unwrap().to_owned();
    assert_eq!(reseller.get(&format!("/usdt/check-status?orderNo={number}")).refused(), 404);
    reseller.agent.service.pay(&number, reseller.agent.now);
    assert_eq!(reseller.call_as(&token, "GET", &format!("/usdt/check-status?orderNo={number}"), "").data()["status"], "paid");
    assert_eq!(reseller.balance_of(ann), "3");
    for body in ["{}", r#"{"amount":0}"#, r#"{"amount":"5"}"#] {
        assert_eq!(reseller.call("POST", "/usdt/create-order", body).wrong(), "amount");
    }
    assert_eq!(reseller.get("/usdt/check-status").wrong(), "order_no");
    assert_eq!(reseller.get("/usdt/check-status?order_no=a&orderNo=b").wrong(), "order_no");
    assert_eq!(reseller.call("POST", "/usdt/cancel-order", "{}").wrong(), "order_no");
}

#[test]
fn the_dashboard_counts_the_caller_and_whoever_belongs_to_it() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 40);
    reseller.place(ann, "");
    reseller.granted("POST", "/open/app/order/create/v2", r#"{"poolId":"dynamic-world","trafficAmount":2.5}"#);
    let expected = json!({
        "balance": 50, "currency": "USD",
        "resources": {"static_orders": 3, "static_ips": 3, "dynamic_orders": 1, "dynamic_remaining_gb": 2.5},
        "overview": {"sub_users": {"active": 1, "disabled": 0}, "consumption_today": 20, "consumption_total": 20},
    });
    assert_eq!(reseller.granted("GET", "/open/app/dashboard/info/v2", ""), expected);
}
