//! The product lists.

use crate::agent_harness::AgentHarness;

#[test]
fn the_public_list_shows_starting_prices_and_the_account_its_own() {
    let mut agent = AgentHarness::new();
    let public = agent.send("GET", "/public/products?country=us", &[], "");
    let own = agent.get("/products?country=US");
    let prices = |answer: &crate::agent_harness::Answer| -> Vec<String> {
        answer.data()["items"].as_array().unwrap().iter().map(|item| item["price"].to_string()).collect()
    };
    assert_eq!(prices(&public), ["4", "10", "10"]);
    assert_eq!(prices(&own), ["4.25", "10", "10"]);
    assert_eq!(public.data()["pricing_owner_agent_id"], 1);
    assert_eq!(public.data()["cache_ttl_seconds"], 60);
    let first = &own.data()["items"][0];
    for (field, value) in [("type", "dynamic"), ("sharing", "exclusive"), ("currency", "USD"), ("unit", "GB")] {
        assert_eq!(first[field], value);
    }
    assert_eq!(own.data()["items"][1]["unit"], "month");
}

#[test]
fn filters_narrow_the_list_and_its_total() {
    let mut agent = AgentHarness::new();
    let mut total = |query: &str| agent.get(&format!("/products?limit=1&{query}")).data()["total"].as_u64().unwrap();
    assert_eq!(total("type=all"), 22);
    assert_eq!(total("type=dynamic"), 11);
    assert_eq!(total("type=static"), 11);
    assert_eq!(total("type=static&in_stock=false"), 12);
    assert_eq!(total("country=JP&in_stock=false"), 3);
    assert_eq!(total("country=XX"), 0);
}

#[test]
fn cursors_walk_the_whole_list_once() {
    let mut agent = AgentHarness::new();
    let mut seen = Vec::new();
    let mut path = "/products?limit=5&in_stock=false".to_owned();
    loop {
        let page = agent.get(&path);
        let items = page.data()["items"].as_array().unwrap();
        assert!(items.len() <= 5);
        seen.extend(items.iter().map(|item| item["product_no"].as_str().unwrap().to_owned()));
        match page.data()["next_cursor"].as_str() {
            Some(cursor) => path = format!("/products?limit=5&in_stock=false&cursor={cursor}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), 23);
    let distinct: std::collections::BTreeSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), 23);
    assert_eq!(agent.get("/products").data()["items"].as_array().unwrap().len(), 20);
}

#[test]
fn a_wrong_list_query_is_refused_with_the_field() {
    let mut agent = AgentHarness::new();
    for (query, field) in [
        ("type=weekly", "type"),
        ("in_stock=yes", "in_stock"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=ten", "limit"),
        ("cursor=nowhere", "cursor"),
        ("limit=1&limit=2", "limit"),
    ] {
        assert_eq!(agent.get(&format!("/products?{query}")).field(), field);
        assert_eq!(agent.send("GET", &format!("/public/products?{query}"), &[], "").field(), field);
    }
}

#[test]
fn a_price_that_changed_after_the_quote_refuses_the_purchase_until_the_list_is_read_again() {
    let mut agent = AgentHarness::new();
    agent.get("/products");
    assert!(agent.service.set_price("dynamic-world", "4.5".parse().unwrap()));
    let refused = agent.call("POST", "/sessions", crate::agent_harness::DYNAMIC);
    assert_eq!((refused.status, refused.code()), (409, "PRICE_MISMATCH"));
    assert_eq!(refused.json["error"]["details"]["displayed_price_cny"].to_string(), "28.8");
    assert_eq!(refused.json["error"]["details"]["upstream_price_cny"].to_string(), "32.4");
    agent.send("GET", "/public/products", &[], "");
    assert_eq!(agent.call("POST", "/sessions", crate::agent_harness::DYNAMIC).code(), "PRICE_MISMATCH");
    assert_eq!(agent.get("/products").data()["items"][0]["price"].to_string(), "4.5");
    agent.buy(crate::agent_harness::DYNAMIC);
    assert_eq!(agent.balance(), "95.5");
}
