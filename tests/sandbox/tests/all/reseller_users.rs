//! Sub-users: opened, found, funded, edited, disabled and deleted.

use crate::reseller_harness::{PLACE, ResellerHarness, order};

const USERS: &str = "/open/app/agent/sub-users";

#[test]
fn a_created_user_has_every_field_of_the_contract_and_no_password() {
    let mut reseller = ResellerHarness::new();
    let body = r#"{"username":"ann lee","password":"secret-1","email":"a@example.com","phone":"13800138000","remark":"vip","balance":2.5}"#;
    let user = reseller.granted("POST", "/open/app/user/v2", body);
    let expected = serde_json::json!({
        "id": 200_001, "username": "ann lee", "email": "a@example.com", "phone": "13800138000", "remark": "vip", "status": "active",
        "balance": 2.5, "vendora_balance": 0, "vendorb_balance": 0, "total_recharge": 2.5, "total_consumption": 0, "agent_id": 1001,
        "created_at": "2023-11-14T22:13:20.000Z", "updated_at": "2023-11-14T22:13:20.000Z",
    });
    assert_eq!(user, expected);
}

#[test]
fn a_create_request_is_refused_with_the_field_and_the_rule() {
    let mut reseller = ResellerHarness::new();
    let long = "x".repeat(51);
    let cases = [
        ("", "username"),
        ("{", "body"),
        (r#"{"username":"ann"}"#, "password"),
        (r#"{"username":"an","password":"secret-1"}"#, "username"),
        (&format!(r#"{{"username":"{long}","password":"secret-1"}}"#), "username"),
        (r#"{"username":"ann","password":"12345"}"#, "password"),
        (&format!(r#"{{"username":"ann","password":"{long}"}}"#), "password"),
        (r#"{"username":"ann","password":"secret-1","phone":"1380013800"}"#, "phone"),
        (r#"{"username":"ann","password":"secret-1","phone":"1380013800x"}"#, "phone"),
        (r#"{"username":"ann","password":"secret-1","email":1}"#, "email"),
        (r#"{"username":"ann","password":"secret-1","balance":-1}"#, "balance"),
        (r#"{"username":"ann","password":"secret-1","balance":"1"}"#, "balance"),
    ];
    for (body, field) in cases {
        assert_eq!(reseller.call("POST", "/open/app/user/v2", body).wrong(), field, "{body}");
    }
    assert!(reseller.view().users.is_empty());
    reseller.user("äöü", 0);
}

#[test]
fn a_user_name_is_one_users_only_even_after_it_is_deleted() {
    let mut reseller = ResellerHarness::new();
    let (ann, bob) = (reseller.user("ann", 0), reseller.user("bob", 0));
    let taken = r#"{"username":"ann","password":"secret-1"}"#;
    assert_eq!(reseller.call("POST", "/open/app/user/v2", taken).refused(), 422);
    assert_eq!(reseller.call("PATCH", &format!("{USERS}/{bob}/account"), r#"{"username":"ann"}"#).refused(), 422);
    reseller.granted("PATCH", &format!("{USERS}/{ann}/account"), r#"{"username":"ann"}"#);
    reseller.granted("DELETE", &format!("{USERS}/{ann}"), "");
    assert_eq!(reseller.call("POST", "/open/app/user/v2", taken).refused(), 422);
    assert_eq!(reseller.call("POST", "/open/app/user/v2", r#"{"username":"reseller","password":"secret-1"}"#).refused(), 422);
}

#[test]
fn users_are_paged_searched_and_told_by_status() {
    let mut reseller = ResellerHarness::new();
    let users: Vec<u64> = (0..25).map(|n| reseller.user(&format!("user-{n:02}"), 0)).collect();
    reseller.granted(
        "POST",
        "/open/app/user/v2",
        r#"{"username":"zoe","password":"secret-1","email":"Zoe@Example.com","phone":"13800138000"}"#,
    );
    reseller.granted("PATCH", &format!("{USERS}/{}/status", users[3]), r#"{"status":"disabled"}"#);
    reseller.granted("DELETE", &format!("{USERS}/{}", users[4]), "");
    let first = reseller.granted("GET", USERS, "");
    assert_eq!((first["items"].as_array().unwrap().len(), &first["total"], &first["page_size"]), (20, &25.into(), &20.into()));
    assert_eq!(first["items"], first["list"]);
    for (query, total) in [
        ("page=2", 5),
        ("pageSize=100", 25),
        ("pageSize=100&includeDeleted=true", 26),
        ("status=disabled", 1),
        ("status=deleted", 1),
        ("status=active&pageSize=100", 24),
        ("search=USER-1", 10),
        ("search=example.com", 1),
        ("search=8001", 1),
        ("page=3", 0),
    ] {
        assert_eq!(reseller.list(&format!("{USERS}?{query}")).len(), total, "{query}");
    }
    for (query, field) in [
        ("pageSize=101", "pageSize"),
        ("page=0", "page"),
        ("status=lost", "status"),
        ("includeDeleted=1", "includeDeleted"),
        ("page=1&page=1", "page"),
    ] {
        assert_eq!(reseller.get(&format!("{USERS}?{query}")).wrong(), field);
    }
}

#[test]
fn an_adjustment_moves_money_between_the_reseller_and_the_user_and_never_below_0() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 0);
    let path = format!("{USERS}/{ann}/balance");
    assert_eq!(reseller.granted("POST", &path, r#"{"amount":10.10,"remark":"top up"}"#)["balance"].to_string(), "10.1");
    assert_eq!(reseller.agent.balance(), "89.9");
    assert_eq!(reseller.granted("POST", &path, r#"{"amount":-10.1,"remark":"back"}"#)["balance"], 0);
    assert_eq!(reseller.agent.balance(), "100");
    assert_eq!(reseller.call("POST", &path, r#"{"amount":-0.01,"remark":"too much"}"#).refused(), 400);
    assert_eq!(reseller.call("POST", &path, r#"{"amount":100.01,"remark":"too much"}"#).refused(), 402);
    for (body, field) in [
        (r#"{"remark":"x"}"#, "amount"),
        (r#"{"amount":1}"#, "remark"),
        (r#"{"amount":"1","remark":"x"}"#, "amount"),
        (r#"{"amount":1e29,"remark":"x"}"#, "amount"),
    ] {
        assert_eq!(reseller.call("POST", &path, body).wrong(), field, "{body}");
    }
    let records = reseller.list("/transaction/agent/transactions");
    let told: Vec<_> =
        records.iter().map(|record| (record["type"].as_str().unwrap(), record["amount"].to_string(), &record["remark"])).collect();
    assert_eq!(told, [("adjustment", "-10.1".to_owned(), &"back".into()), ("adjustment", "10.1".to_owned(), &"top up".into())]);
}

#[test]
fn an_account_edit_takes_a_plain_name_or_a_password_and_changes_the_login() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 0);
    let path = format!("{USERS}/{ann}/account");
    assert_eq!(reseller.call("PATCH", &path, "{}").wrong(), "username");
    for name in ["an", "with space", "umläut", "dot.ted", &"x".repeat(51)] {
        assert_eq!(reseller.call("PATCH", &path, &format!(r#"{{"username":"{name}"}}"#)).wrong(), "username");
    }
    assert_eq!(reseller.call("PATCH", &path, r#"{"password":"12345"}"#).wrong(), "password");
    reseller.granted("PATCH", &path, r#"{"username":"Ann_2-x"}"#);
    assert_eq!(reseller.login("ann", "secret-1").refused(), 401);
    assert_eq!(reseller.login("Ann_2-x", "secret-1").status, 200);
    reseller.granted("PATCH", &path, r#"{"password":"secret-2"}"#);
    assert_eq!(reseller.login("Ann_2-x", "secret-1").refused(), 401);
    assert_eq!(reseller.login("Ann_2-x", "secret-2").status, 200);
}

#[test]
fn a_disabled_user_is_refused_until_it_is_active_again() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 0);
    let path = format!("{USERS}/{ann}/status");
    let token = reseller.login("ann", "secret-1").token();
    assert_eq!(reseller.granted("PATCH", &path, r#"{"status":"disabled"}"#)["status"], "disabled");
    assert_eq!(reseller.login("ann", "secret-1").refused(), 403);
    assert_eq!(reseller.call_as(&token, "GET", "/dynamic", "").refused(), 403);
    assert_eq!(reseller.granted("PATCH", &path, r#"{"status":"active"}"#)["status"], "active");
    assert_eq!(reseller.call_as(&token, "GET", "/dynamic", "").status, 200);
    for body in ["{}", r#"{"status":"deleted"}"#, r#"{"status":1}"#] {
        assert_eq!(reseller.call("PATCH", &path, body).wrong(), "status");
    }
}

#[test]
fn a_deleted_user_and_its_orders_can_be_listed_and_nothing_else() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 15);
    reseller.place(ann, "");
    let token = reseller.login("ann", "secret-1").token();
    assert_eq!(reseller.granted("DELETE", &format!("{USERS}/{ann}"), "")["status"], "deleted");
    assert_eq!(reseller.login("ann", "secret-1").refused(), 401);
    assert_eq!(reseller.call_as(&token, "GET", "/dynamic", "").refused(), 401);
    for (method, path, body) in [
        ("DELETE", "", ""),
        ("PATCH", "/status", r#"{"status":"active"}"#),
        ("PATCH", "/account", r#"{"password":"secret-2"}"#),
        ("POST", "/balance", r#"{"amount":-5,"remark":"back"}"#),
    ] {
        assert_eq!(reseller.call(method, &format!("{USERS}/{ann}{path}"), body).refused(), 404, "{path}");
    }
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", "")).refused(), 404);
    let traffic = format!(r#"{{"poolId":"dynamic-us","trafficAmount":1,"userId":{ann}}}"#);
    assert_eq!(reseller.call("POST", "/open/app/order/create/v2", &traffic).refused(), 404);
    assert_eq!(reseller.list(&format!("{USERS}?includeDeleted=true"))[0]["status"], "deleted");
    assert_eq!(reseller.list(&format!("/open/app/static/order/list/v2?user_id={ann}")).len(), 1);
}

#[test]
fn only_a_direct_subordinate_is_managed() {
    let mut reseller = ResellerHarness::new();
    for id in ["1001", "200001", "0", "99999", "-1", "4294967296", "99999999999999999999999"] {
        assert_eq!(reseller.call("DELETE", &format!("{USERS}/{id}"), "").refused(), 403);
    }
    for id in ["x", "-", "1.5", "+1", "%20"] {
        assert_eq!(reseller.call("DELETE", &format!("{USERS}/{id}"), "").wrong(), "user_id", "{id}");
    }
}
