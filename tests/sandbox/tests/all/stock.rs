//! Stock, the cache of the public list, and quotes.

use crate::agent_harness::{AgentHarness, Answer, DYNAMIC, STATIC};

fn public(agent: &mut AgentHarness) -> Answer {
    agent.send("GET", "/public/products?type=static&country=US&in_stock=false", &[], "")
}

fn stock(answer: &Answer) -> u64 {
    answer.data()["items"][0]["stock"].as_u64().expect("a stock")
}

#[test]
fn a_static_purchase_takes_addresses_and_a_termination_gives_them_back() {
    let mut agent = AgentHarness::new();
    agent.service.set_balance(1000.into());
    let id = agent.buy(r#"{"session_type":"static","product_no":"static-us","quantity":3}"#);
    let left = |agent: &mut AgentHarness| stock(&agent.get("/products?type=static&country=US"));
    assert_eq!(left(&mut agent), 37);
    agent.buy(DYNAMIC);
    agent.buy(r#"{"session_type":"static","product_no":"static-us","provisioning_mode":"existing"}"#);
    assert_eq!(left(&mut agent), 37);
    for _ in 0..2 {
        agent.call("DELETE", &format!("/sessions/{id}"), "");
        assert_eq!(left(&mut agent), 40);
    }
}

#[test]
fn a_product_that_is_sold_out_is_refused_and_hidden() {
    let mut agent = AgentHarness::new();
    assert!(agent.service.set_stock("static-us", 1));
    let two = r#"{"session_type":"static","product_no":"static-us","quantity":2}"#;
    assert_eq!(agent.call("POST", "/sessions", two).refusal(), (409, "PRODUCT_OUT_OF_STOCK"));
    agent.buy(STATIC);
    let refused = agent.call("POST", "/sessions", STATIC);
    assert_eq!((refused.refusal(), &refused.json["error"]["details"]["stock"]), ((409, "PRODUCT_OUT_OF_STOCK"), &0.into()));
    let numbers = |answer: &Answer| -> Vec<String> {
        answer.data()["items"].as_array().unwrap().iter().map(|item| item["product_no"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(numbers(&agent.get("/products?type=static&country=US")), ["static-shared-us"]);
    let all = agent.get("/products?type=static&country=US&in_stock=false");
    assert_eq!((numbers(&all).len(), &all.data()["items"][0]["available"]), (2, &false.into()));
    assert!(!agent.service.set_stock("dynamic-world", 1) && !agent.service.set_stock("none", 1));
}

#[test]
fn the_public_list_is_up_to_sixty_seconds_old_and_says_so() {
    let mut agent = AgentHarness::new();
    let first = public(&mut agent);
    assert_eq!((stock(&first), &first.data()["cache_ttl_seconds"]), (40, &60.into()));
    assert_eq!((&first.headers["age"], &first.headers["cache-control"]), (&"0".parse().unwrap(), &"public, max-age=60".parse().unwrap()));
    agent.service.set_stock("static-us", 7);
    agent.now += 59_999;
    let cached = public(&mut agent);
    assert_eq!((stock(&cached), &cached.headers["age"]), (40, &"59".parse().unwrap()));
    assert_eq!(cached.data()["cache_ttl_seconds"], 1);
    assert_eq!(stock(&agent.get("/products?type=static&country=US")), 7);
    agent.now += 1;
    let fresh = public(&mut agent);
    assert_eq!((stock(&fresh), &fresh.headers["age"]), (7, &"0".parse().unwrap()));
}

#[test]
fn the_accounts_own_list_is_not_cached_and_names_its_owner() {
    let mut agent = AgentHarness::new();
    let (number, key) = agent.register("Ann");
    let own = agent.get("/products");
    assert_eq!((&own.data()["pricing_owner_agent_id"], &own.data()["cache_ttl_seconds"]), (&1001.into(), &0.into()));
    assert!(!own.headers.contains_key("age"));
    let theirs = agent.as_account(&key, "GET", "/products", "");
    assert_eq!(theirs.data()["pricing_owner_agent_id"], number);
    assert_eq!(public(&mut agent).data()["pricing_owner_agent_id"], 1);
}

#[test]
fn a_cursor_outlives_the_product_that_it_names() {
    let mut agent = AgentHarness::new();
    let page = agent.get("/products?type=static&limit=1");
    let cursor = page.data()["next_cursor"].as_str().unwrap().to_owned();
    agent.service.set_stock("static-us", 0);
    let next = agent.get(&format!("/products?type=static&limit=1&cursor={cursor}"));
    assert_eq!(next.data()["items"][0]["product_no"], "static-de");
}

#[test]
fn a_quote_belongs_to_the_account_that_read_it() {
    let mut agent = AgentHarness::new();
    assert!(agent.service.set_price("dynamic-world", "0.1".parse().unwrap()));
    agent.send("POST", "/account/request-api-key", &[], r#"{"email":"ann@example.com"}"#);
    let key = agent.service.mails()[0].api_key.clone();
    assert_eq!(agent.call("POST", "/sessions", DYNAMIC).code(), "PRICE_MISMATCH");
    assert_eq!(agent.as_account(&key, "POST", "/sessions", DYNAMIC).status, 202);
    assert_eq!(agent.call("POST", "/sessions", DYNAMIC).code(), "PRICE_MISMATCH");
    agent.get("/products?limit=1");
    agent.buy(DYNAMIC);
}

#[test]
fn a_price_that_is_back_is_no_mismatch() {
    let mut agent = AgentHarness::new();
    agent.service.set_price("dynamic-world", 5.into());
    agent.service.set_price("dynamic-world", 4.into());
    agent.buy(DYNAMIC);
    assert!(!agent.service.set_price("none", 4.into()));
}
