//! Dynamic orders, their traffic, and proxies on them.

use serde_json::json;

use crate::reseller_harness::ResellerHarness;

const CREATE: &str = "/open/app/order/create/v2";
const EXTRACT: &str = "/business/dynamic-proxy/extract";
const WANTED: &str = r#"{"productNo":"dynamic-us","proxyType":104}"#;

fn bought(reseller: &mut ResellerHarness, user: u64, gb: &str) -> serde_json::Value {
    let body =
        format!(r#"{{"orderType":"dynamic_proxy","poolId":"dynamic-us","trafficAmount":{gb},"userId":{user},"remark":"for tests"}}"#);
    reseller.granted("POST", CREATE, &body)
}

#[test]
fn an_order_is_charged_to_its_user_and_read_by_id_number_and_application_number() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    let order = bought(&mut reseller, ann, "1.5");
    assert_eq!((order["total_amount"].to_string(), reseller.balance_of(ann)), ("6.375".to_owned(), "43.625".to_owned()));
    assert_eq!((&order["status"], &order["pool_type"], &order["remark"]), (&"active".into(), &"country".into(), &"for tests".into()));
    for path in ["id", "order_no", "appOrderNo"] {
        let name = order[path].as_str().map_or_else(|| order[path].to_string(), str::to_owned);
        let below = if path == "id" { "/dynamic/" } else { "/dynamic/order-info/" };
        assert_eq!(reseller.granted("GET", &format!("{below}{name}"), ""), order);
    }
    assert_eq!(reseller.get("/dynamic/1").refused(), 404);
    assert_eq!(reseller.get("/dynamic/x").refused(), 404);
    assert_eq!(reseller.get("/dynamic/order-info/none").refused(), 404);
}

#[test]
fn an_order_without_a_user_is_the_callers_own() {
    let mut reseller = ResellerHarness::new();
    let order = reseller.granted("POST", CREATE, r#"{"poolId":"dynamic-world","trafficAmount":2,"unitPrice":4,"totalAmount":8}"#);
    assert_eq!((&order["user_id"], reseller.agent.balance()), (&1001.into(), "92".to_owned()));
    let told = reseller.agent.get("/billing/transactions");
    assert_eq!((&told.data()["items"][0]["reference"], &told.data()["items"][0]["amount_usd"]), (&order["order_no"], &(-8).into()));
}

#[test]
fn an_order_request_is_refused_with_the_field_and_the_rule() {
    let mut reseller = ResellerHarness::new();
    for (more, field) in [
        (r#""trafficAmount":1"#, "poolId"),
        (r#""poolId":"dynamic-us""#, "trafficAmount"),
        (r#""poolId":"dynamic-us","trafficAmount":0"#, "trafficAmount"),
        (r#""poolId":"dynamic-us","trafficAmount":7e28"#, "trafficAmount"),
        (r#""poolId":"static-us","trafficAmount":1"#, "poolId"),
        (r#""poolId":"dynamic-us","trafficAmount":1,"orderType":"static_proxy""#, "orderType"),
        (r#""poolId":"dynamic-us","trafficAmount":1,"unitPrice":1"#, "unitPrice"),
        (r#""poolId":"dynamic-us","trafficAmount":1,"totalAmount":1"#, "totalAmount"),
        (r#""poolId":"dynamic-us","trafficAmount":1,"unit":"GB""#, "unit"),
        (r#""poolId":"dynamic-us","trafficAmount":1,"remark":1"#, "remark"),
        (r#""poolId":"dynamic-us","trafficAmount":1,"userId":1.5"#, "userId"),
    ] {
        assert_eq!(reseller.call("POST", CREATE, &format!("{{{more}}}")).wrong(), field, "{more}");
    }
    assert_eq!(reseller.call("POST", CREATE, r#"{"poolId":"none","trafficAmount":1}"#).refused(), 404);
    assert_eq!(reseller.call("POST", CREATE, r#"{"poolId":"dynamic-us","trafficAmount":1,"userId":7}"#).refused(), 403);
    assert_eq!(reseller.call("POST", CREATE, r#"{"poolId":"dynamic-us","trafficAmount":1000}"#).refused(), 402);
}

#[test]
fn orders_are_paged_and_filtered() {
    let mut reseller = ResellerHarness::new();
    let (ann, bob) = (reseller.user("ann", 20), reseller.user("bob", 20));
    let order = bought(&mut reseller, ann, "1");
    bought(&mut reseller, bob, "1");
    reseller.granted("POST", CREATE, r#"{"poolId":"dynamic-world","trafficAmount":1}"#);
    let number = order["order_no"].as_str().unwrap();
    for (query, count) in [
        (String::new(), 3),
        ("page=2&page_size=2".to_owned(), 1),
        (format!("user_id={ann}"), 1),
        (format!("order_no={number}"), 1),
        ("pool_type=country".to_owned(), 2),
        ("pool_type=other".to_owned(), 0),
    ] {
        assert_eq!(reseller.list(&format!("/dynamic?{query}")).len(), count, "{query}");
    }
    assert_eq!(reseller.get("/dynamic?page_size=101").wrong(), "page_size");
    assert_eq!(reseller.get("/dynamic?user_id=x").wrong(), "user_id");
}

#[test]
fn an_extracted_proxy_uses_the_traffic_of_its_order_and_ends_with_it() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 20);
    assert_eq!(reseller.call("POST", EXTRACT, WANTED).refused(), 422);
    let order = bought(&mut reseller, ann, "1");
    let first = reseller.granted("POST", EXTRACT, WANTED)["items"][0].clone();
    let second =
        reseller.granted("POST", EXTRACT, r#"{"productNo":"dynamic-us","proxyType":104,"extractConfig":{"method":"api"}}"#)["items"][0]
            .clone();
    assert_ne!((&first["exit_ip"], &first["username"]), (&second["exit_ip"], &second["username"]));
    let exit = |reseller: &ResellerHarness| {
        reseller.agent.service.exit_of(first["username"].as_str().unwrap(), first["password"].as_str().unwrap(), reseller.agent.now)
    };
    let open = exit(&reseller).expect("an exit");
    assert_eq!((open.ip.to_string().into(), open.session_id.to_string().into()), (first["exit_ip"].clone(), order["order_no"].clone()));
    let flow = format!("/user/{ann}/remaining-flow/dynamic-us");
    reseller.agent.service.add_traffic(&open.session_id, 250_000_000);
    assert_eq!(reseller.granted("GET", &flow, "")["remaining_gb"].to_string(), "0.75");
    let all = reseller.list(&format!("/user/{ann}/products-flow"));
    assert_eq!((all.len(), &all[0]["productNo"], all[0]["used_gb"].to_string()), (1, &"dynamic-us".into(), "0.25".to_owned()));
    reseller.agent.service.add_traffic(&open.session_id, 750_000_000);
    assert!(exit(&reseller).is_none());
    assert_eq!(reseller.call("POST", EXTRACT, WANTED).refused(), 422);
    assert_eq!(reseller.list("/dynamic")[0]["status"], "expired");
}

#[test]
fn an_extract_request_is_refused_with_the_field_and_the_rule() {
    let mut reseller = ResellerHarness::new();
    for (body, field) in [
        ("{}", "productNo"),
        (r#"{"productNo":"dynamic-us"}"#, "proxyType"),
        (r#"{"productNo":"dynamic-us","proxyType":"104"}"#, "proxyType"),
        (r#"{"productNo":"dynamic-us","proxyType":104,"extractConfig":1}"#, "extractConfig"),
        (r#"{"productNo":"dynamic-us","proxyType":104,"extractConfig":{"method":1}}"#, "method"),
        (r#"{"productNo":"static-us","proxyType":104}"#, "productNo"),
    ] {
        assert_eq!(reseller.call("POST", EXTRACT, body).wrong(), field, "{body}");
    }
    assert_eq!(reseller.call("POST", EXTRACT, r#"{"productNo":"dynamic-us","proxyType":103}"#).refused(), 404);
}

#[test]
fn traffic_is_read_of_oneself_and_of_direct_subordinates() {
    let mut reseller = ResellerHarness::new();
    assert_eq!(reseller.granted("GET", "/user/1001/products-flow", "")["items"], json!([]));
    let none = reseller.granted("GET", "/user/1001/remaining-flow/dynamic-us", "");
    assert_eq!((&none["traffic_gb"], &none["remaining_gb"]), (&0.into(), &0.into()));
    assert_eq!(reseller.get("/user/7/products-flow").refused(), 403);
    assert_eq!(reseller.get("/user/x/products-flow").wrong(), "user_id");
    assert_eq!(reseller.get("/user/1001/remaining-flow/none").refused(), 404);
}
