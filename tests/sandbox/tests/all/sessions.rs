//! A session's life.

use crate::desk::{DAY, DYNAMIC, Desk, STATIC};

#[test]
fn a_bought_session_is_creating_then_active_and_charged_at_acceptance() {
    let mut desk = Desk::with(|config| config.provisioning_ms = 1_200..=2_500);
    let body = r#"{"session_type":"dynamic","product_no":"dynamic-us","quantity":0.1}"#;
    let accepted = desk.call("POST", "/sessions", body);
    assert_eq!(accepted.status, 202);
    assert_eq!(accepted.data()["status"], "creating");
    assert_eq!(accepted.data()["estimated_charge_usd"].to_string(), "0.425");
    assert_eq!(accepted.data()["proxy"]["protocol"], "socks5");
    assert!(accepted.data()["proxy"].get("username").is_none());
    assert_eq!(desk.balance(), "99.575");
    let id = accepted.session_id();
    desk.now += 1_199;
    assert_eq!(desk.status(&id), "creating");
    let early = desk.get(&format!("/sessions/{id}?include_credentials=true"));
    assert!(early.data()["proxy"].get("password").is_none());
    desk.now += 1_301;
    assert_eq!(desk.status(&id), "active");
}

#[test]
fn a_session_that_is_ready_at_once_is_accepted_as_creating_and_active_at_the_next_read() {
    let mut desk = Desk::new();
    let accepted = desk.keyed("/sessions", "k", STATIC);
    assert_eq!((accepted.status, accepted.data()["status"].as_str()), (202, Some("creating")));
    assert_eq!(desk.status(&accepted.session_id()), "active");
    assert_eq!(desk.keyed("/sessions", "k", STATIC).bytes, accepted.bytes);
}

#[test]
fn provisioning_times_are_drawn_from_the_seed_within_the_range() {
    let ready = |seed| {
        let mut desk = Desk::with(|config| (config.seed, config.provisioning_ms) = (seed, 1_200..=2_500));
        desk.buy(DYNAMIC);
        let waits = |after: &i64| desk.service.sessions(desk.now + after)[0].status == "creating";
        (0..).find(|after| !waits(after)).unwrap()
    };
    let times: Vec<i64> = (0..5).map(ready).collect();
    assert!(times.iter().all(|time| (1_200..=2_500).contains(time)), "{times:?}");
    assert_eq!(times[0], ready(0));
    assert!(times.iter().any(|time| *time != times[0]));
}

#[test]
fn credentials_are_shown_only_when_active_and_asked_for() {
    let mut desk = Desk::new();
    let id = desk.buy(r#"{"session_type":"dynamic","product_no":"dynamic-world","protocol":"https"}"#);
    let plain = desk.get(&format!("/sessions/{id}"));
    let proxy = &plain.data()["proxy"];
    assert_eq!((&proxy["host"], &proxy["port"], &proxy["protocol"]), (&"127.0.0.1".into(), &8080.into(), &"https".into()));
    assert!(proxy.get("username").is_none() && proxy.get("full_url").is_none());
    let shown = desk.get(&format!("/sessions/{id}?include_credentials=true"));
    let proxy = &shown.data()["proxy"];
    let (name, word) = (proxy["username"].as_str().unwrap(), proxy["password"].as_str().unwrap());
    assert_eq!(proxy["full_url"], format!("http://{name}:{word}@127.0.0.1:8080"));
    assert!(desk.service.exit_of(name, word, desk.now).is_some());
    assert!(desk.service.exit_of(name, "wrong", desk.now).is_none());
}

#[test]
fn rotation_changes_the_exit_and_the_password_and_keeps_the_user_name() {
    let mut desk = Desk::new();
    let id = desk.buy(DYNAMIC);
    let before = desk.get(&format!("/sessions/{id}?include_credentials=true")).data()["proxy"].clone();
    let old_exit = desk.service.sessions(desk.now)[0].exit;
    let path = format!("/sessions/{id}/rotate?include_credentials=true");
    let after = desk.call("POST", &path, r#"{"reason":"http_403"}"#);
    assert_eq!(after.status, 200);
    let after = &after.data()["proxy"];
    assert_eq!(before["username"], after["username"]);
    assert_ne!(before["password"], after["password"]);
    assert_ne!(old_exit, desk.service.sessions(desk.now)[0].exit);
    let old = desk.service.exit_of(before["username"].as_str().unwrap(), before["password"].as_str().unwrap(), desk.now);
    assert_eq!(old, None);
    assert_eq!(desk.call("POST", &path, r#"{"reason":"boredom"}"#).field(), "reason");
    assert_eq!(desk.call("POST", &path, "").status, 200);
}

#[test]
fn what_the_status_does_not_allow_is_session_expired() {
    let mut desk = Desk::with(|config| config.provisioning_ms = 1_000..=1_000);
    let (dynamic, fixed) = (desk.buy(DYNAMIC), desk.buy(STATIC));
    let rotate = format!("/sessions/{dynamic}/rotate");
    let renew = format!("/sessions/{fixed}/renew");
    let expired = |answer: crate::desk::Answer| assert_eq!((answer.status, answer.code()), (410, "SESSION_EXPIRED"));
    expired(desk.call("POST", &rotate, ""));
    expired(desk.call("POST", &renew, r#"{"duration":1}"#));
    for id in [&dynamic, &fixed] {
        let terminated = desk.call("DELETE", &format!("/sessions/{id}"), "");
        assert_eq!((terminated.status, terminated.data()["status"].as_str()), (200, Some("terminated")));
        assert_eq!(desk.call("DELETE", &format!("/sessions/{id}"), "").status, 200);
    }
    expired(desk.call("POST", &rotate, ""));
    expired(desk.call("POST", &renew, r#"{"duration":1}"#));
    assert_eq!(desk.service.charges().len(), 2);
}

#[test]
fn a_static_session_expires_after_its_months_and_is_renewed_for_a_charge() {
    let mut desk = Desk::new();
    let id = desk.buy(r#"{"session_type":"static","product_no":"static-us","quantity":2,"duration":2}"#);
    assert_eq!(desk.balance(), "60");
    desk.now += 60 * DAY - 1;
    assert_eq!(desk.status(&id), "active");
    desk.now += 1;
    assert_eq!(desk.status(&id), "expired");
    assert_eq!(desk.call("POST", &format!("/sessions/{id}/renew"), "{}").field(), "duration");
    assert_eq!(desk.call("POST", &format!("/sessions/{id}/renew"), r#"{"duration":0}"#).field(), "duration");
    let renewed = desk.call("POST", &format!("/sessions/{id}/renew"), r#"{"duration":1}"#);
    assert_eq!((renewed.status, renewed.data()["status"].as_str()), (200, Some("active")));
    assert_eq!(desk.balance(), "40");
    desk.now += 30 * DAY;
    assert_eq!(desk.status(&id), "expired");
}

#[test]
fn rotation_is_for_dynamic_sessions_and_renewal_for_static_ones() {
    let mut desk = Desk::new();
    let (dynamic, fixed) = (desk.buy(DYNAMIC), desk.buy(STATIC));
    assert_eq!(desk.call("POST", &format!("/sessions/{fixed}/rotate"), "").field(), "session_id");
    assert_eq!(desk.call("POST", &format!("/sessions/{dynamic}/renew"), r#"{"duration":1}"#).field(), "session_id");
}

#[test]
fn a_dynamic_session_expires_with_the_traffic_that_was_bought() {
    let mut desk = Desk::new();
    let id = desk.buy(r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.001}"#);
    desk.service.add_traffic(&id, 999_999);
    assert_eq!(desk.status(&id), "active");
    desk.service.add_traffic(&id, 1);
    assert_eq!(desk.status(&id), "expired");
}

#[test]
fn products_refuse_what_they_cannot_sell() {
    let mut desk = Desk::new();
    let unknown = desk.call("POST", "/sessions", r#"{"session_type":"dynamic","product_no":"none"}"#);
    assert_eq!((unknown.status, unknown.code()), (404, "PRODUCT_NOT_FOUND"));
    let sold_out = desk.call("POST", "/sessions", r#"{"session_type":"static","product_no":"static-soldout"}"#);
    assert_eq!((sold_out.status, sold_out.code()), (409, "PRODUCT_OUT_OF_STOCK"));
    desk.buy(r#"{"session_type":"static","product_no":"static-shared-us","project_id":"shop"}"#);
    desk.service.set_balance("3.99".parse().unwrap());
    let poor = desk.call("POST", "/sessions", DYNAMIC);
    assert_eq!((poor.status, poor.code()), (402, "INSUFFICIENT_BALANCE"));
    assert_eq!(desk.balance(), "3.99");
}

#[test]
fn creating_and_active_sessions_count_toward_the_limit_and_others_do_not() {
    let mut desk = Desk::with(|config| (config.session_limit, config.provisioning_ms) = (2, 1_000..=1_000));
    let first = desk.buy(DYNAMIC);
    desk.now += 1_000;
    desk.buy(STATIC);
    let refused = desk.call("POST", "/sessions", DYNAMIC);
    assert_eq!((refused.status, refused.code()), (429, "SESSION_LIMIT_REACHED"));
    assert!(!refused.headers.contains_key("retry-after"));
    desk.call("DELETE", &format!("/sessions/{first}"), "");
    desk.buy(DYNAMIC);
    desk.now += 31 * DAY;
    desk.buy(DYNAMIC);
}
