//! Stock, the cache of the public list, and quotes.

use crate::desk::{Answer, DYNAMIC, Desk, STATIC};

fn public(desk: &mut Desk) -> Answer {
    desk.send("GET", "/public/products?type=static&country=US&in_stock=false", &[], "")
}

fn stock(answer: &Answer) -> u64 {
    answer.data()["items"][0]["stock"].as_u64().expect("a stock")
}

#[test]
fn a_static_purchase_takes_addresses_and_a_termination_gives_them_back() {
    let mut desk = Desk::new();
    desk.service.set_balance(1000.into());
    let id = desk.buy(r#"{"session_type":"static","product_no":"static-us","quantity":3}"#);
    let left = |desk: &mut Desk| stock(&desk.get("/products?type=static&country=US"));
    assert_eq!(left(&mut desk), 37);
    desk.buy(DYNAMIC);
    desk.buy(r#"{"session_type":"static","product_no":"static-us","provisioning_mode":"existing"}"#);
    assert_eq!(left(&mut desk), 37);
    for _ in 0..2 {
        desk.call("DELETE", &format!("/sessions/{id}"), "");
        assert_eq!(left(&mut desk), 40);
    }
}

#[test]
fn a_product_that_is_sold_out_is_refused_and_hidden() {
    let mut desk = Desk::new();
    assert!(desk.service.set_stock("static-us", 1));
    let two = r#"{"session_type":"static","product_no":"static-us","quantity":2}"#;
    assert_eq!(desk.call("POST", "/sessions", two).refusal(), (409, "PRODUCT_OUT_OF_STOCK"));
    desk.buy(STATIC);
    let refused = desk.call("POST", "/sessions", STATIC);
    assert_eq!((refused.refusal(), &refused.json["error"]["details"]["stock"]), ((409, "PRODUCT_OUT_OF_STOCK"), &0.into()));
    let numbers = |answer: &Answer| -> Vec<String> {
        answer.data()["items"].as_array().unwrap().iter().map(|item| item["product_no"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(numbers(&desk.get("/products?type=static&country=US")), ["static-shared-us"]);
    let all = desk.get("/products?type=static&country=US&in_stock=false");
    assert_eq!((numbers(&all).len(), &all.data()["items"][0]["available"]), (2, &false.into()));
    assert!(!desk.service.set_stock("dynamic-world", 1) && !desk.service.set_stock("none", 1));
}

#[test]
fn the_public_list_is_up_to_sixty_seconds_old_and_says_so() {
    let mut desk = Desk::new();
    let first = public(&mut desk);
    assert_eq!((stock(&first), &first.data()["cache_ttl_seconds"]), (40, &60.into()));
    assert_eq!((&first.headers["age"], &first.headers["cache-control"]), (&"0".parse().unwrap(), &"public, max-age=60".parse().unwrap()));
    desk.service.set_stock("static-us", 7);
    desk.now += 59_999;
    let cached = public(&mut desk);
    assert_eq!((stock(&cached), &cached.headers["age"]), (40, &"59".parse().unwrap()));
    assert_eq!(cached.data()["cache_ttl_seconds"], 1);
    assert_eq!(stock(&desk.get("/products?type=static&country=US")), 7);
    desk.now += 1;
    let fresh = public(&mut desk);
    assert_eq!((stock(&fresh), &fresh.headers["age"]), (7, &"0".parse().unwrap()));
}

#[test]
fn the_accounts_own_list_is_not_cached_and_names_its_owner() {
    let mut desk = Desk::new();
    let (number, key) = desk.register("Ann");
    let own = desk.get("/products");
    assert_eq!((&own.data()["pricing_owner_agent_id"], &own.data()["cache_ttl_seconds"]), (&1001.into(), &0.into()));
    assert!(!own.headers.contains_key("age"));
    let theirs = desk.as_account(&key, "GET", "/products", "");
    assert_eq!(theirs.data()["pricing_owner_agent_id"], number);
    assert_eq!(public(&mut desk).data()["pricing_owner_agent_id"], 1);
}

#[test]
fn a_cursor_outlives_the_product_that_it_names() {
    let mut desk = Desk::new();
    let page = desk.get("/products?type=static&limit=1");
    let cursor = page.data()["next_cursor"].as_str().unwrap().to_owned();
    desk.service.set_stock("static-us", 0);
    let next = desk.get(&format!("/products?type=static&limit=1&cursor={cursor}"));
    assert_eq!(next.data()["items"][0]["product_no"], "static-de");
}

#[test]
fn a_quote_belongs_to_the_account_that_read_it() {
    let mut desk = Desk::new();
    assert!(desk.service.set_price("dynamic-world", "0.1".parse().unwrap()));
    desk.send("POST", "/account/request-api-key", &[], r#"{"email":"ann@example.com"}"#);
    let key = desk.service.mails()[0].api_key.clone();
    assert_eq!(desk.call("POST", "/sessions", DYNAMIC).code(), "PRICE_MISMATCH");
    assert_eq!(desk.as_account(&key, "POST", "/sessions", DYNAMIC).status, 202);
    assert_eq!(desk.call("POST", "/sessions", DYNAMIC).code(), "PRICE_MISMATCH");
    desk.get("/products?limit=1");
    desk.buy(DYNAMIC);
}

#[test]
fn a_price_that_is_back_is_no_mismatch() {
    let mut desk = Desk::new();
    desk.service.set_price("dynamic-world", 5.into());
    desk.service.set_price("dynamic-world", 4.into());
    desk.buy(DYNAMIC);
    assert!(!desk.service.set_price("none", 4.into()));
}
