//! Static orders: accepted, made, failed, listed and counted.

use serde_json::json;

use crate::agent_harness::DAY;
use crate::reseller_harness::{PLACE, ResellerHarness, order};

const LIST: &str = "/open/app/static/order/list/v2";

#[test]
fn an_accepted_order_is_processing_until_its_time_and_then_active_with_its_proxies() {
    let mut reseller = ResellerHarness::with(|config| config.provisioning_ms = 2000..=2000);
    let ann = reseller.user("ann", 50);
    let accepted = reseller.granted("POST", PLACE, &order(ann, "static-us", r#","ipCount":2,"regionCode":"US","cityCode":"NYC""#));
    let number = accepted["orderNo"].as_str().unwrap().to_owned();
    assert_eq!((&accepted["order_no"], &accepted["app_order_no"]), (&accepted["orderNo"], &accepted["appOrderNo"]));
    assert_eq!((&accepted["status"], &accepted["queued"], &accepted["async"]), (&"processing".into(), &true.into(), &true.into()));
    reseller.agent.now += 1999;
    let waiting = reseller.order(&number);
    assert_eq!((&waiting["status"], &waiting["instances"]), (&"processing".into(), &json!([])));
    reseller.agent.now += 1;
    let active = reseller.order(&number);
    assert_eq!((&active["status"], &active["user_id"], &active["appOrderNo"]), (&"active".into(), &ann.into(), &accepted["appOrderNo"]));
    assert_eq!((active["total_amount"].to_string(), &active["country_code"]), ("20".to_owned(), &"US".into()));
    assert!(active["supplier_order_no"].is_string());
    let instances = active["instances"].as_array().unwrap();
    assert_eq!(instances.len(), 2);
    for instance in instances {
        let (name, word) = (instance["username"].as_str().unwrap(), instance["password"].as_str().unwrap());
        let exit = reseller.agent.service.exit_of(name, word, reseller.agent.now).expect("an exit");
        assert_eq!(
            (exit.ip.to_string().into(), exit.session_id.to_string().into()),
            (instance["exit_ip"].clone(), instance["instance_id"].clone())
        );
        assert!(reseller.agent.service.exit_of(name, "wrong", reseller.agent.now).is_none());
        assert_eq!(instance["expires_at"], active["expires_at"]);
    }
    reseller.pass(30 * DAY);
    assert_eq!(reseller.order(&number)["status"], "expired");
    let name = instances[0]["username"].as_str().unwrap();
    assert!(reseller.agent.service.exit_of(name, instances[0]["password"].as_str().unwrap(), reseller.agent.now).is_none());
}

#[test]
fn an_order_is_charged_to_its_user_and_one_that_fails_is_given_back() {
    let mut reseller = ResellerHarness::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = reseller.user("ann", 10);
    reseller.agent.service.fail_orders(1);
    let number = reseller.place(ann, "");
    assert_eq!((reseller.balance_of(ann), reseller.agent.balance()), ("0".to_owned(), "90".to_owned()));
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", "")).refused(), 402);
    reseller.agent.now += 1000;
    assert_eq!((reseller.order(&number)["status"].clone(), reseller.balance_of(ann)), ("failed".into(), "10".to_owned()));
    assert_eq!(reseller.balance_of(ann), "10");
    let again = reseller.place(ann, "");
    assert!(reseller.agent.service.finish_order(&again, false, reseller.agent.now));
    assert_eq!(reseller.order(&again)["status"], "active");
    assert!(!reseller.agent.service.finish_order(&again, true, reseller.agent.now));
    let told: Vec<_> = reseller.view().entries.iter().map(|entry| (entry.r#type, entry.amount.normalize().to_string())).collect();
    let expected = [("adjustment", "10"), ("purchase", "-10"), ("refund", "10"), ("purchase", "-10")];
    assert_eq!(told, expected.map(|(kind, amount)| (kind, amount.to_owned())));
}

#[test]
fn an_order_request_is_refused_with_the_field_and_the_rule() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    assert_eq!(reseller.call("POST", PLACE, "").wrong(), "orderType");
    for field in ["orderType", "poolId", "userId", "unitPrice", "totalAmount", "ipCount", "cycleTimes", "duration", "unit"] {
        let body = order(ann, "static-us", "").replace(&format!("\"{field}\""), "\"other\"");
        assert_eq!(reseller.call("POST", PLACE, &body).wrong(), field);
    }
    for (more, field) in [
        (r#","orderType":"dynamic_proxy""#, "orderType"),
        (r#","unit":2"#, "unit"),
        (r#","unit":"1""#, "unit"),
        (r#","duration":0"#, "duration"),
        (r#","duration":1.5"#, "duration"),
        (r#","duration":9223372036854775807"#, "duration"),
        (r#","cycleTimes":0"#, "cycleTimes"),
        (r#","ipCount":0"#, "ipCount"),
        (r#","ipCount":1001"#, "ipCount"),
        (r#","unitPrice":-1"#, "unitPrice"),
        (r#","unitPrice":9.99"#, "unitPrice"),
        (r#","totalAmount":9.99"#, "totalAmount"),
        (r#","userId":"7""#, "userId"),
        (r#","userId":4294967296"#, "userId"),
        (r#","poolId":"dynamic-us""#, "poolId"),
        (r#","regionCode":1"#, "regionCode"),
        (r#","staticType":1"#, "staticType"),
        (r#","cidrBlocks":{}"#, "cidrBlocks"),
        (r#","assignedIp":"there""#, "assignedIp"),
        (r#","assignedIpList":[1]"#, "assignedIpList"),
        (r#","assignedIpList":["127.128.0.1","127.128.0.2"]"#, "ipCount"),
        (r#","projectId":"shop""#, "projectId"),
    ] {
        assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", more)).wrong(), field, "{more}");
    }
    assert!(reseller.view().entries.len() == 1, "only the initial balance");
}

#[test]
fn a_reseller_orders_for_its_direct_subordinates_only() {
    let mut reseller = ResellerHarness::new();
    for id in [1001, 7, 200_001] {
        assert_eq!(reseller.call("POST", PLACE, &order(id, "static-us", "")).refused(), 403, "{id}");
    }
}

#[test]
fn a_location_that_does_not_apply_is_refused_with_the_regions_that_do() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    for more in [r#","countryCode":"DE""#, r#","cityCode":"FRA""#, r#","regionCode":"US","countryCode":"DE""#] {
        let refused = reseller.call("POST", PLACE, &order(ann, "static-us", more));
        assert_eq!((refused.status, &refused.json["code"]), (400, &"location_not_supported_for_product".into()));
        assert_eq!(refused.data()["supportedRegions"], json!(["US", "US-NYC"]));
        assert!(refused.json["message"].as_str().unwrap().contains("US, US-NYC"));
    }
    reseller.place(ann, r#","countryCode":"us","cityCode":"""#);
}

#[test]
fn a_shared_product_needs_one_of_its_projects() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    for more in ["", r#","projectId":"other""#] {
        assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-shared-us", more)).wrong(), "projectId");
    }
    let accepted = reseller.granted("POST", PLACE, &order(ann, "static-shared-us", r#","projectId":"shop""#));
    assert_eq!(reseller.order(accepted["order_no"].as_str().unwrap())["project_id"], "shop");
}

#[test]
fn a_price_may_be_left_to_the_backend_or_be_its_own() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 100);
    reseller.place(ann, r#","unitPrice":10.0,"totalAmount":20,"ipCount":2"#);
    reseller.place(ann, r#","duration":1,"unit":3,"cycleTimes":2"#);
    reseller.place(ann, r#","duration":3,"unit":1,"totalAmount":1"#);
    let totals: Vec<String> =
        reseller.view().static_orders.iter().skip(2).map(|order| order.total_amount.normalize().to_string()).collect();
    assert_eq!(totals, ["20", "20", "1"]);
    assert_eq!(reseller.balance_of(ann), "59");
}

#[test]
fn what_is_sold_out_unknown_or_held_by_another_is_refused() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 100);
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-soldout", "")).refused(), 422);
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", r#","ipCount":41"#)).refused(), 422);
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "none", "")).refused(), 404);
    let number = reseller.place(ann, r#","ipCount":3,"assignedIp":"127.128.0.77","assignedIpList":["127.128.1.10"]"#);
    let exits: Vec<_> =
        reseller.order(&number)["instances"].as_array().unwrap().iter().map(|instance| instance["exit_ip"].clone()).collect();
    assert_eq!(exits, ["127.128.0.77", "127.128.1.10", "127.128.0.2"]);
    for address in ["127.128.0.77", "127.129.0.7", "10.0.0.1"] {
        assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", &format!(r#","assignedIp":"{address}""#))).refused(), 422);
    }
}

#[test]
fn orders_are_filtered_by_everything_the_contract_names() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    let bob = r#"{"username":"bob","password":"secret-1","balance":50,"remark":"a good friend"}"#;
    let bob = reseller.granted("POST", "/open/app/user/v2", bob)["id"].as_u64().expect("a number");
    let first = reseller.place(ann, "");
    reseller.pass(2 * DAY);
    let second = reseller.granted("POST", PLACE, &order(bob, "static-de", r#","duration":1"#))["orderNo"].as_str().unwrap().to_owned();
    let instance = reseller.order(&first)["instances"][0].clone();
    let text = |name: &str| instance[name].as_str().unwrap().to_owned();
    let port = instance["port"].to_string();
    for (query, count) in [
        (String::new(), 4),
        ("page_size=1&page=2".to_owned(), 1),
        ("pageSize=3&page=2".to_owned(), 1),
        ("status=active".to_owned(), 4),
        ("status=expired".to_owned(), 0),
        ("status=anything".to_owned(), 0),
        ("filter=anything".to_owned(), 4),
        (format!("user_id={ann}"), 1),
        ("user_id=1001".to_owned(), 2),
        (format!("search={second}"), 1),
        (format!("search={}", text("exit_ip")), 1),
        (format!("search={}", text("username")), 1),
        (format!("search={}", text("password")), 1),
        (format!("search={port}"), 4),
        ("search=GOOD%20friend".to_owned(), 1),
        ("region=german".to_owned(), 2),
        ("region=nyc".to_owned(), 2),
        ("created_start=2023-11-16".to_owned(), 1),
        ("created_start=2023-11-14&created_end=2023-11-14".to_owned(), 1),
        ("created_end=1970-01-02".to_owned(), 2),
        ("expire_start=2023-11-17&expire_end=2023-11-17T23:59:59Z".to_owned(), 1),
        ("expire_start=2023-11-17".to_owned(), 2),
        ("show_recycle_bin=true".to_owned(), 4),
    ] {
        assert_eq!(reseller.list(&format!("{LIST}?{query}")).len(), count, "{query}");
    }
    for (query, field) in [
        ("page=0", "page"),
        ("page_size=101", "page_size"),
        ("pageSize=2&page_size=3", "page_size"),
        ("user_id=x", "user_id"),
        ("created_start=14.11.2023", "created_start"),
        ("expire_end=2023-02-30", "expire_end"),
        ("show_recycle_bin=1", "show_recycle_bin"),
    ] {
        assert_eq!(reseller.get(&format!("{LIST}?{query}")).wrong(), field);
    }
    assert_eq!(reseller.get(&format!("{LIST}?user_id=7")).refused(), 403);
}

#[test]
fn an_ordinary_user_sees_what_ended_only_when_it_asks_for_the_recycle_bin() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    let number = reseller.place(ann, "");
    reseller.granted("POST", &format!("/open/app/static/order/{number}/cancel"), "");
    let token = reseller.login("ann", "secret-1").token();
    assert_eq!(reseller.call_as(&token, "GET", LIST, "").data()["total"], 0);
    assert_eq!(reseller.call_as(&token, "GET", &format!("{LIST}?show_recycle_bin=true"), "").data()["items"][0]["status"], "cancelled");
    assert_eq!(reseller.list(LIST).len(), 3);
}

#[test]
fn statistics_count_the_orders_of_each_status() {
    let mut reseller = ResellerHarness::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = reseller.user("ann", 50);
    reseller.agent.service.fail_orders(1);
    reseller.place(ann, "");
    reseller.agent.now += 1000;
    reseller.place(ann, "");
    let counts = reseller.granted("GET", "/open/app/static/order/statistics", "");
    assert_eq!(counts, json!({"total": 4, "processing": 1, "active": 2, "failed": 1, "expired": 0, "cancelled": 0}));
}
