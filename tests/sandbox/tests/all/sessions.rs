//! A session's life.

use crate::agent_harness::{AgentHarness, DAY, DYNAMIC, STATIC};

#[test]
fn a_bought_session_is_creating_then_active_and_charged_at_acceptance() {
    let mut agent = AgentHarness::with(|config| config.provisioning_ms = 1_200..=2_500);
    let body = r#"{"session_type":"dynamic","product_no":"dynamic-us","quantity":0.1}"#;
    let accepted = agent.call("POST", "/sessions", body);
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.data()["status"], "creating");
    assert_eq!(accepted.data()["estimated_charge_usd"].to_string(), "0.425");
    assert_eq!(accepted.data()["proxy"]["protocol"], "socks5");
    assert!(accepted.data()["proxy"].get("username").is_none());
    assert_eq!(agent.balance(), "99.575");
    let id = accepted.session_id();
    agent.now += 1_199;
    assert_eq!(agent.status(&id), "creating");
    let early = agent.get(&format!("/sessions/{id}?include_credentials=true"));
    assert!(early.data()["proxy"].get("password").is_none());
    agent.now += 1_301;
    assert_eq!(agent.status(&id), "active");
}

#[test]
fn a_session_that_is_ready_at_once_is_accepted_as_creating_and_active_at_the_next_read() {
    let mut agent = AgentHarness::new();
    let accepted = agent.keyed("/sessions", "k", STATIC);
    assert_eq!((accepted.status, accepted.data()["status"].as_str()), (202, Some("creating")));
    assert_eq!(agent.status(&accepted.session_id()), "active");
    assert_eq!(agent.keyed("/sessions", "k", STATIC).bytes, accepted.bytes);
}

#[test]
fn provisioning_times_are_drawn_from_the_seed_within_the_range() {
    let ready = |seed| {
        let mut agent = AgentHarness::with(|config| (config.seed, config.provisioning_ms) = (seed, 1_200..=2_500));
        agent.buy(DYNAMIC);
        let waits = |after: &i64| agent.service.sessions(agent.now + after)[0].status == "creating";
        (0..).find(|after| !waits(after)).unwrap()
    };
    let times: Vec<i64> = (0..5).map(ready).collect();
    assert!(times.iter().all(|time| (1_200..=2_500).contains(time)), "{times:?}");
    assert_eq!(times[0], ready(0));
    assert!(times.iter().any(|time| *time != times[0]));
}

#[test]
fn credentials_are_shown_only_when_active_and_asked_for() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(r#"{"session_type":"dynamic","product_no":"dynamic-world","protocol":"https"}"#);
    let plain = agent.get(&format!("/sessions/{id}"));
    let proxy = &plain.data()["proxy"];
    assert_eq!((&proxy["host"], &proxy["port"], &proxy["protocol"]), (&"127.0.0.1".into(), &8080.into(), &"https".into()));
    assert!(proxy.get("username").is_none() && proxy.get("full_url").is_none());
    let shown = agent.get(&format!("/sessions/{id}?include_credentials=true"));
    let proxy = &shown.data()["proxy"];
    let (name, word) = (proxy["username"].as_str().unwrap(), proxy["password"].as_str().unwrap());
    assert_eq!(proxy["full_url"], format!("http://{name}:{word}@127.0.0.1:8080"));
    assert!(agent.service.exit_of(name, word, agent.now).is_some());
    assert!(agent.service.exit_of(name, "wrong", agent.now).is_none());
}

#[test]
fn rotation_changes_the_exit_and_the_password_and_keeps_the_user_name() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(DYNAMIC);
    let before = agent.get(&format!("/sessions/{id}?include_credentials=true")).data()["proxy"].clone();
    let old_exit = agent.service.sessions(agent.now)[0].exit;
    let path = format!("/sessions/{id}/rotate?include_credentials=true");
    let after = agent.call("POST", &path, r#"{"reason":"http_403"}"#);
    assert_eq!(after.status, 200);
    let after = &after.data()["proxy"];
    assert_eq!(before["username"], after["username"]);
    assert_ne!(before["password"], after["password"]);
    assert_ne!(old_exit, agent.service.sessions(agent.now)[0].exit);
    let old = agent.service.exit_of(before["username"].as_str().unwrap(), before["password"].as_str().unwrap(), agent.now);
    assert_eq!(old, None);
    assert_eq!(agent.call("POST", &path, r#"{"reason":"boredom"}"#).field(), "reason");
    assert_eq!(agent.call("POST", &path, "").status, 200);
}

#[test]
fn what_the_status_does_not_allow_is_session_expired() {
    let mut agent = AgentHarness::with(|config| config.provisioning_ms = 1_000..=1_000);
    let (dynamic, fixed) = (agent.buy(DYNAMIC), agent.buy(STATIC));
    let rotate = format!("/sessions/{dynamic}/rotate");
    let renew = format!("/sessions/{fixed}/renew");
    let expired = |answer: crate::agent_harness::Answer| assert_eq!((answer.status, answer.code()), (410, "SESSION_EXPIRED"));
    expired(agent.call("POST", &rotate, ""));
    expired(agent.call("POST", &renew, r#"{"duration":1}"#));
    for id in [&dynamic, &fixed] {
        let terminated = agent.call("DELETE", &format!("/sessions/{id}"), "");
        assert_eq!((terminated.status, terminated.data()["status"].as_str()), (200, Some("terminated")));
        assert_eq!(agent.call("DELETE", &format!("/sessions/{id}"), "").status, 200);
    }
    expired(agent.call("POST", &rotate, ""));
    expired(agent.call("POST", &renew, r#"{"duration":1}"#));
    assert_eq!(agent.service.charges().len(), 2);
}

#[test]
fn a_static_session_expires_after_its_months_and_is_renewed_for_a_charge() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(r#"{"session_type":"static","product_no":"static-us","quantity":2,"duration":2}"#);
    assert_eq!(agent.balance(), "60");
    agent.now += 60 * DAY - 1;
    assert_eq!(agent.status(&id), "active");
    agent.now += 1;
    assert_eq!(agent.status(&id), "expired");
    assert_eq!(agent.call("POST", &format!("/sessions/{id}/renew"), "{}").field(), "duration");
    assert_eq!(agent.call("POST", &format!("/sessions/{id}/renew"), r#"{"duration":0}"#).field(), "duration");
    let renewed = agent.call("POST", &format!("/sessions/{id}/renew"), r#"{"duration":1}"#);
    assert_eq!((renewed.status, renewed.data()["status"].as_str()), (200, Some("active")));
    assert_eq!(agent.balance(), "40");
    agent.now += 30 * DAY;
    assert_eq!(agent.status(&id), "expired");
}

#[test]
fn rotation_is_for_dynamic_sessions_and_renewal_for_static_ones() {
    let mut agent = AgentHarness::new();
    let (dynamic, fixed) = (agent.buy(DYNAMIC), agent.buy(STATIC));
    assert_eq!(agent.call("POST", &format!("/sessions/{fixed}/rotate"), "").field(), "session_id");
    assert_eq!(agent.call("POST", &format!("/sessions/{dynamic}/renew"), r#"{"duration":1}"#).field(), "session_id");
}

#[test]
fn a_dynamic_session_expires_with_the_traffic_that_was_bought() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.001}"#);
    agent.service.add_traffic(&id, 999_999);
    assert_eq!(agent.status(&id), "active");
    agent.service.add_traffic(&id, 1);
    assert_eq!(agent.status(&id), "expired");
}

#[test]
fn products_refuse_what_they_cannot_sell() {
    let mut agent = AgentHarness::new();
    let unknown = agent.call("POST", "/sessions", r#"{"session_type":"dynamic","product_no":"none"}"#);
    assert_eq!((unknown.status, unknown.code()), (404, "PRODUCT_NOT_FOUND"));
    let sold_out = agent.call("POST", "/sessions", r#"{"session_type":"static","product_no":"static-soldout"}"#);
    assert_eq!((sold_out.status, sold_out.code()), (409, "PRODUCT_OUT_OF_STOCK"));
    agent.buy(r#"{"session_type":"static","product_no":"static-shared-us","project_id":"shop"}"#);
    agent.service.set_balance("3.99".parse().unwrap());
    let poor = agent.call("POST", "/sessions", DYNAMIC);
    assert_eq!((poor.status, poor.code()), (402, "INSUFFICIENT_BALANCE"));
    assert_eq!(agent.balance(), "3.99");
}

#[test]
fn creating_and_active_sessions_count_toward_the_limit_and_others_do_not() {
    let mut agent = AgentHarness::with(|config| (config.session_limit, config.provisioning_ms) = (2, 1_000..=1_000));
    let first = agent.buy(DYNAMIC);
    agent.now += 1_000;
    agent.buy(STATIC);
    let refused = agent.call("POST", "/sessions", DYNAMIC);
    assert_eq!((refused.status, refused.code()), (429, "SESSION_LIMIT_REACHED"));
    assert!(!refused.headers.contains_key("retry-after"));
    agent.call("DELETE", &format!("/sessions/{first}"), "");
    agent.buy(DYNAMIC);
    agent.now += 31 * DAY;
    agent.buy(DYNAMIC);
}
