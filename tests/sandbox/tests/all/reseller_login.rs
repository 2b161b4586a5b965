//! Login, tokens, and who may do what.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::reseller_harness::{ResellerHarness, login, order};

const HOUR: i64 = 60 * 60 * 1000;

#[test]
fn a_login_gives_a_jwt_that_says_when_it_ends_and_who_the_user_is() {
    let mut reseller = ResellerHarness::new();
    let own = reseller.agent.service.logins().swap_remove(0);
    let answer = reseller.login(&own.username, &own.password);
    assert_eq!(answer.data()["user"], serde_json::json!({"id": 1001, "username": "reseller", "balance": 100, "status": "active"}));
    let token = answer.token();
    let parts: Vec<&str> = token.split('.').collect();
    let read = |part: &str| serde_json::from_slice::<Value>(&BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
    assert_eq!(read(parts[0])["alg"], "HS256");
    assert_eq!(read(parts[1])["exp"].as_i64().unwrap() * 1000, reseller.agent.now + 2 * HOUR);
    assert_eq!((parts.len(), BASE64_URL_SAFE_NO_PAD.decode(parts[2]).unwrap().len()), (3, 32));
    assert_ne!(token, reseller.login(&own.username, &own.password).token());
}

#[test]
fn a_wrong_password_or_name_is_401_and_so_is_a_request_without_a_good_token() {
    let mut reseller = ResellerHarness::new();
    for (username, password) in [("reseller", "wrong"), ("nobody", "wrong"), ("", "")] {
        assert_eq!(reseller.login(username, password).refused(), 401);
    }
    let good = reseller.token.clone();
    let forged = format!("{}x", &good[..good.len() - 1]);
    for header in [String::new(), good.clone(), format!("bearer {good}"), format!("Bearer {forged}"), "Bearer a.b.c".to_owned()] {
        let headers = [("Authorization", header.as_str())];
        let given = if header.is_empty() { &[][..] } else { &headers[..] };
        assert_eq!(reseller.agent.send_to("/api", "GET", "/dynamic", given, "").refused(), 401, "{header}");
    }
    assert_eq!(reseller.get("/dynamic").status, 200);
}

#[test]
fn a_token_ends_with_its_time_or_by_control_and_a_new_login_is_good_again() {
    let mut reseller = ResellerHarness::new();
    reseller.agent.now += 2 * HOUR - 1;
    assert_eq!(reseller.get("/dynamic").status, 200);
    reseller.agent.now += 1;
    assert_eq!(reseller.get("/dynamic").refused(), 401);
    let own = reseller.agent.service.logins().swap_remove(0);
    reseller.agent.service.set_token_lifetime(5000);
    reseller.token = reseller.login(&own.username, &own.password).token();
    reseller.agent.now += 4999;
    assert_eq!(reseller.get("/dynamic").status, 200);
    reseller.agent.service.expire_tokens();
    assert_eq!(reseller.get("/dynamic").refused(), 401);
    reseller.token = reseller.login(&own.username, &own.password).token();
    assert_eq!(reseller.get("/dynamic").status, 200);
}

#[test]
fn a_login_needs_both_fields_as_texts() {
    let mut reseller = ResellerHarness::new();
    for (body, field) in [("", "username"), ("[]", "body"), (r#"{"username":"a"}"#, "password"), (r#"{"username":1}"#, "username")] {
        assert_eq!(reseller.agent.send_to("/api", "POST", "/auth/login", &[], body).wrong(), field);
    }
}

#[test]
fn while_the_account_is_not_ready_it_has_no_login_and_its_tokens_are_refused() {
    let mut reseller = ResellerHarness::new();
    let own = reseller.agent.service.logins().swap_remove(0);
    assert!(reseller.agent.service.set_unready(1001, Some("closed")));
    assert_eq!(reseller.agent.get("/account/info").data()["backend_ready"], false);
    assert!(reseller.agent.service.logins().is_empty());
    assert_eq!(reseller.login(&own.username, &own.password).refused(), 401);
    assert_eq!(reseller.get("/dynamic").refused(), 401);
    reseller.agent.service.set_unready(1001, None);
    assert_eq!(reseller.agent.get("/account/info").data()["backend_ready"], true);
    assert_eq!(reseller.get("/dynamic").status, 200);
}

#[test]
fn a_disabled_agent_account_is_refused_at_the_backend_too() {
    let mut reseller = ResellerHarness::new();
    let own = reseller.agent.service.logins().swap_remove(0);
    reseller.agent.service.set_active(1001, false);
    assert_eq!(reseller.get("/dynamic").refused(), 403);
    assert_eq!(reseller.login(&own.username, &own.password).refused(), 403);
}

#[test]
fn a_sub_user_sees_its_own_and_manages_nobody() {
    let mut reseller = ResellerHarness::new();
    let (ann, bob) = (reseller.user("ann", 30), reseller.user("bob", 30));
    let token = reseller.login("ann", "secret-1").token();
    reseller.place(bob, "");
    let number = reseller.call_as(&token, "POST", crate::reseller_harness::PLACE, &order(ann, "static-us", "")).data()["order_no"].clone();
    let seen = reseller.call_as(&token, "GET", "/open/app/static/order/list/v2", "");
    assert_eq!((&seen.data()["total"], &seen.data()["items"][0]["order_no"]), (&1.into(), &number));
    assert_eq!(reseller.call_as(&token, "GET", "/open/app/user/balance/current", "").data()["balance"], 20);
    for (method, path, body) in [
        ("GET", "/open/app/agent/sub-users".to_owned(), String::new()),
        ("POST", "/open/app/user/v2".to_owned(), r#"{"username":"carl","password":"secret-1"}"#.to_owned()),
        ("POST", crate::reseller_harness::PLACE.to_owned(), order(bob, "static-us", "")),
        ("GET", format!("/user/{bob}/products-flow"), String::new()),
        ("GET", format!("/open/app/user/transactions?target_user_id={bob}"), String::new()),
    ] {
        assert_eq!(reseller.call_as(&token, method, &path, &body).refused(), 403, "{path}");
    }
}

#[test]
fn another_reseller_has_a_login_of_its_own_and_no_part_in_these_users() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 20);
    let number = reseller.place(ann, "");
    reseller.agent.register("Other");
    let other = reseller.agent.service.logins().swap_remove(1);
    let token = login(&mut reseller.agent, &other.username, &other.password).token();
    assert_eq!(reseller.call_as(&token, "GET", "/open/app/agent/sub-users", "").data()["total"], 0);
    assert_eq!(reseller.call_as(&token, "POST", crate::reseller_harness::PLACE, &order(ann, "static-us", "")).refused(), 403);
    assert_eq!(reseller.call_as(&token, "DELETE", &format!("/open/app/agent/sub-users/{ann}"), "").refused(), 403);
    assert_eq!(reseller.call_as(&token, "POST", &format!("/open/app/static/order/{number}/cancel"), "").refused(), 404);
    assert_eq!(reseller.call_as(&token, "GET", "/open/app/static/order/list/v2", "").data()["total"], 0);
}
