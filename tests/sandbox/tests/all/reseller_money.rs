//! Balances, consumption, top-ups in USDT, and the figures of the dashboard.

use serde_json::json;

use crate::desk::DAY;
use crate::office::Office;

const SPENT: &str = "/open/app/user/transactions";

#[test]
fn consumption_is_filtered_by_everything_the_contract_names() {
    let mut office = Office::new();
    let (ann, bob) = (office.user("ann", 40), office.user("bob", 20));
    let number = office.place(ann, "");
    office.granted("POST", "/open/app/static/order/renew", &format!(r#"{{"order_no":"{number}"}}"#));
    office.pass(DAY);
    office.granted("POST", "/open/app/order/create/v2", &format!(r#"{{"poolId":"dynamic-us","trafficAmount":1,"userId":{bob}}}"#));
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
        assert_eq!(office.list(&format!("{SPENT}?{query}")).len(), count, "{query}");
    }
    for (query, field) in [
        ("order_type=other", "order_type"),
        ("start_date=2023-11-14T00:00:00Z", "start_date"),
        ("end_date=tomorrow", "end_date"),
        ("target_user_id=x", "target_user_id"),
        ("page_size=101", "page_size"),
    ] {
        assert_eq!(office.get(&format!("{SPENT}?{query}")).wrong(), field);
    }
    assert_eq!(office.get(&format!("{SPENT}?target_user_id=7")).refused(), 403);
    let newest = &office.list(SPENT)[0];
    assert_eq!(
        (&newest["username"], &newest["type"], newest["amount"].to_string()),
        (&"bob".into(), &"purchase".into(), "-4.25".to_owned())
    );
}

#[test]
fn a_users_totals_follow_its_orders_and_its_money() {
    let mut office = Office::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = office.user("ann", 40);
    office.place(ann, "");
    office.desk.service.fail_orders(1);
    office.place(ann, "");
    office.desk.now += 1000;
    let user = office.list("/open/app/agent/sub-users")[0].clone();
    assert_eq!((&user["balance"], &user["total_recharge"], &user["total_consumption"]), (&30.into(), &40.into(), &10.into()));
}

#[test]
fn no_money_is_made_or_lost_between_a_reseller_its_users_and_their_orders() {
    let mut office = Office::new();
    let ann = office.user("ann", 60);
    office.place(ann, r#","ipCount":2"#);
    office.granted("POST", &format!("/open/app/agent/sub-users/{ann}/balance"), r#"{"amount":-15.5,"remark":"back"}"#);
    let view = office.view();
    let spent: rust_decimal::Decimal = view.static_orders.iter().map(|order| order.total_amount).sum();
    assert_eq!(office.desk.service.balance() + view.users[0].balance + spent, 100.into());
}

#[test]
fn a_usdt_order_is_paid_when_its_transfer_is_found_by_reading_its_status() {
    let mut office = Office::new();
    let wallet = office.granted("GET", "/usdt/wallet-info", "");
    assert_eq!((&wallet["network"], wallet["exchange_rate"].to_string()), (&"TRC20".into(), "7.2".to_owned()));
    let order = office.granted("POST", "/usdt/create-order", r#"{"amount":12.5}"#);
    assert_eq!(
        (&order["status"], &order["wallet_address"], &order["orderNo"]),
        (&"pending".into(), &wallet["wallet_address"], &order["order_no"])
    );
    let number = order["order_no"].as_str().unwrap();
    let check = format!("/usdt/check-status?order_no={number}");
    assert_eq!(office.granted("GET", &check, "")["status"], "pending");
    assert!(office.desk.service.pay(number, office.desk.now));
    assert_eq!((&office.list("/usdt/orders")[0]["status"], office.desk.balance()), (&"pending".into(), "100".to_owned()));
    for _ in 0..2 {
        assert_eq!((&office.granted("GET", &check, "")["status"], office.desk.balance()), (&"paid".into(), "112.5".to_owned()));
    }
    assert!(!office.desk.service.pay(number, office.desk.now));
    assert_eq!(office.list("/transaction/agent/transactions")[0]["order_no"], number);
    assert_eq!(office.call("POST", "/usdt/cancel-order", &format!(r#"{{"order_no":"{number}"}}"#)).refused(), 422);
}

#[test]
fn an_unpaid_usdt_order_can_be_cancelled_once_and_a_paid_one_is_found_instead() {
    let mut office = Office::new();
    let mut create = || office.granted("POST", "/usdt/create-order", r#"{"amount":5}"#)["order_no"].as_str().unwrap().to_owned();
    let (first, second) = (create(), create());
    let cancel = |number: &str| format!(r#"{{"orderNo":"{number}"}}"#);
    assert_eq!(office.granted("POST", "/usdt/cancel-order", &cancel(&first))["status"], "cancelled");
    assert_eq!(office.call("POST", "/usdt/cancel-order", &cancel(&first)).refused(), 422);
    assert!(!office.desk.service.pay(&first, office.desk.now) && office.desk.service.pay(&second, office.desk.now));
    assert_eq!(office.call("POST", "/usdt/cancel-order", &cancel(&second)).refused(), 422);
    assert_eq!(office.desk.balance(), "105");
}

#[test]
fn a_usdt_order_is_its_owners_only_and_its_requests_are_checked() {
    let mut office = Office::new();
    let ann = office.user("ann", 0);
    let token = office.login("ann", "secret-1").token();
    let number = office.call_as(&token, "POST", "/usdt/create-order", r#"{"amount":3}"#).data()["order_no"].as_str().unwrap().to_owned();
    assert_eq!(office.get(&format!("/usdt/check-status?orderNo={number}")).refused(), 404);
    office.desk.service.pay(&number, office.desk.now);
    assert_eq!(office.call_as(&token, "GET", &format!("/usdt/check-status?orderNo={number}"), "").data()["status"], "paid");
    assert_eq!(office.balance_of(ann), "3");
    for body in ["{}", r#"{"amount":0}"#, r#"{"amount":"5"}"#] {
        assert_eq!(office.call("POST", "/usdt/create-order", body).wrong(), "amount");
    }
    assert_eq!(office.get("/usdt/check-status").wrong(), "order_no");
    assert_eq!(office.get("/usdt/check-status?order_no=a&orderNo=b").wrong(), "order_no");
    assert_eq!(office.call("POST", "/usdt/cancel-order", "{}").wrong(), "order_no");
}

#[test]
fn the_dashboard_counts_the_caller_and_whoever_belongs_to_it() {
    let mut office = Office::new();
    let ann = office.user("ann", 40);
    office.place(ann, "");
    office.granted("POST", "/open/app/order/create/v2", r#"{"poolId":"dynamic-world","trafficAmount":2.5}"#);
    let expected = json!({
        "balance": 50, "currency": "USD",
        "resources": {"static_orders": 3, "static_ips": 3, "dynamic_orders": 1, "dynamic_remaining_gb": 2.5},
        "overview": {"sub_users": {"active": 1, "disabled": 0}, "consumption_today": 20, "consumption_total": 20},
    });
    assert_eq!(office.granted("GET", "/open/app/dashboard/info/v2", ""), expected);
}
