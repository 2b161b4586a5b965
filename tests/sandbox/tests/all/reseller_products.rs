//! Products, places and addresses.

use serde_json::{Value, json};

use crate::reseller_harness::{ResellerHarness, order};

const QUERY: &str = "/open/app/product/query-standard/v2";
const RANGES: &str = "/open/app/product/ip-ranges/v2";

fn query(reseller: &mut ResellerHarness, body: &str) -> Vec<Value> {
    let data = reseller.granted("POST", QUERY, body);
    assert_eq!(data["items"], data["list"]);
    data["items"].as_array().unwrap().clone()
}

#[test]
fn a_product_carries_what_the_contract_names_in_both_spellings() {
    let mut reseller = ResellerHarness::new();
    let found = query(&mut reseller, r#"{"productNo":"static-shared-us"}"#);
    let projects = json!([{"projectId": "shop", "projectName": "shop"}, {"projectId": "travel", "projectName": "travel"}]);
    let expected = json!([{
        "productId": "static-shared-us", "name": "Static, shared, New York", "proxyType": 103, "product_type": 2, "productType": 2,
        "project_list": projects, "projects": projects, "projectList": projects,
        "stock": 25, "duration": 1, "unit": 3, "price": 10, "nameLanguage": "en", "stateName": "New York",
        "countryCode": "US", "countryName": "United States", "countryNameEn": "United States", "countryNameZh": "美国",
        "cityCode": "NYC", "cityName": "New York", "cityNameEn": "New York", "cityNameZh": "纽约",
    }]);
    assert_eq!(Value::from(found), expected);
    let exclusive = query(&mut reseller, r#"{"productNo":"static-us","language":"zh"}"#);
    assert_eq!((&exclusive[0]["product_type"], &exclusive[0]["project_list"]), (&1.into(), &json!([])));
    assert_eq!(
        (&exclusive[0]["countryName"], &exclusive[0]["cityName"], &exclusive[0]["nameLanguage"]),
        (&"美国".into(), &"纽约".into(), &"zh".into())
    );
}

#[test]
fn products_are_filtered_by_type_number_and_place_and_are_static_by_default() {
    let mut reseller = ResellerHarness::new();
    for (body, count) in [
        ("", 12),
        ("{}", 12),
        (r#"{"proxyType":103}"#, 12),
        (r#"{"proxyType":104}"#, 11),
        (r#"{"proxyType":[103,104]}"#, 23),
        (r#"{"proxyType":[]}"#, 0),
        (r#"{"proxyType":7}"#, 0),
        (r#"{"standardCountryCode":"us"}"#, 2),
        (r#"{"standardCityCode":"TYO"}"#, 2),
        (r#"{"standardCountryCode":"US","standardCityCode":"TYO"}"#, 0),
        (r#"{"productNo":"none"}"#, 0),
    ] {
        assert_eq!(query(&mut reseller, body).len(), count, "{body}");
    }
    for (body, field) in [
        (r#"{"proxyType":"103"}"#, "proxyType"),
        (r#"{"proxyType":["103"]}"#, "proxyType"),
        (r#"{"proxyType":1.5}"#, "proxyType"),
        (r#"{"standardCountryCode":"USA"}"#, "standardCountryCode"),
        (r#"{"language":"de"}"#, "language"),
        (r#"{"productNo":1}"#, "productNo"),
        ("nonsense", "body"),
    ] {
        assert_eq!(reseller.call("POST", QUERY, body).wrong(), field, "{body}");
    }
}

#[test]
fn prices_and_stock_are_those_of_the_agent_side() {
    let mut reseller = ResellerHarness::new();
    assert!(reseller.agent.service.set_price("static-us", "12.5".parse().unwrap()));
    reseller.agent.buy(crate::agent_harness::DYNAMIC);
    reseller.agent.get("/products");
    reseller.agent.buy(r#"{"session_type":"static","product_no":"static-us","quantity":3}"#);
    let found = &query(&mut reseller, r#"{"productNo":"static-us"}"#)[0];
    assert_eq!((&found["stock"], found["price"].to_string()), (&37.into(), "12.5".to_owned()));
    let ann = reseller.user("ann", 20);
    reseller.place(ann, "");
    let sessions = reseller.agent.get("/products?type=static&country=US");
    assert_eq!(sessions.data()["items"][0]["stock"], 36);
}

#[test]
fn ranges_are_networks_and_first_and_last_addresses_with_what_is_free_of_them() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 40);
    let free = |reseller: &mut ResellerHarness| reseller.list(&format!("{RANGES}?productNo=static-fr"))[0]["ipRanges"].clone();
    let all = json!([{"ipRange": "127.132.0.0/24", "available": 254}, {"ipRange": "127.132.1.10-127.132.1.99", "available": 90}]);
    assert_eq!(free(&mut reseller), all);
    let number = reseller.granted("POST", crate::reseller_harness::PLACE, &order(ann, "static-fr", r#","ipCount":2"#))["orderNo"].clone();
    assert_eq!(free(&mut reseller)[0]["available"], 252);
    reseller.granted("POST", &format!("/open/app/static/order/{}/cancel", number.as_str().unwrap()), "");
    assert_eq!(free(&mut reseller), all);
}

#[test]
fn ranges_are_filtered_and_leave_out_what_is_sold_out_unless_asked() {
    let mut reseller = ResellerHarness::new();
    for (text, count) in [
        ("", 11),
        ("includeDisabled=true", 12),
        ("countryCode=JP", 1),
        ("countryCode=JP&includeDisabled=true", 2),
        ("cityCode=PAR", 1),
        ("areaCode=FR-PAR", 1),
        ("proxyType=104", 0),
    ] {
        assert_eq!(reseller.list(&format!("{RANGES}?{text}")).len(), count, "{text}");
    }
    for (text, field) in [("proxyType=x", "proxyType"), ("includeDisabled=yes", "includeDisabled"), ("language=de", "language")] {
        assert_eq!(reseller.get(&format!("{RANGES}?{text}")).wrong(), field);
    }
}
