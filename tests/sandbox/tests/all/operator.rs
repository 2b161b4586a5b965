//! The control calls of operators, suppliers and payers, over sockets.

use crate::agent_harness::DYNAMIC;
use crate::live::{Live, send};

fn done(live: &Live, path: &str, body: &str) {
    let answer = live.control("POST", path, body);
    assert_eq!((answer.status(), answer.json()), (200, serde_json::json!({"done": true})), "{path}");
}

#[test]
fn a_wrong_body_gets_a_clear_400() {
    let live = Live::new();
    for (path, body, says) in [
        ("/stock", r#"{"product_no":"dynamic-world","stock":1}"#, "no static product dynamic-world"),
        ("/stock", r#"{"product_no":"static-us","stock":-1}"#, "invalid value"),
        ("/resource", r#"{"resource_id":"SO-7","product_no":"none"}"#, "no static product none"),
        ("/pay", r#"{"order_id":"none"}"#, "no order none"),
        ("/refund", r#"{"session_id":"none","amount":"1"}"#, "session none"),
        ("/account", r#"{"agent_id":7,"active":false}"#, "no account 7"),
        ("/account", r#"{"denied":["fly"]}"#, "operation fly"),
        ("/backend", r#"{"ready":1}"#, "invalid type"),
        ("/backend", r#"{"agent_id":7,"ready":false}"#, "no account 7"),
    ] {
        let answer = live.control("POST", path, body);
        let error = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(answer.status() == 400 && error.contains(says), "{body}: {error}");
    }
}

#[test]
fn a_recharge_is_paid_and_the_balance_rises() {
    let live = Live::new();
    let order = live.call("POST", "/billing/recharge", Some("k"), r#"{"amount":20}"#).json();
    let id = order["data"]["order_id"].as_str().unwrap();
    assert_eq!(live.state()["orders"], serde_json::json!([{"order_id": id, "status": "pending"}]));
    done(&live, "/pay", &format!(r#"{{"order_id":"{id}"}}"#));
    assert_eq!((&live.state()["orders"][0]["status"], &live.state()["balance"]), (&"paid".into(), &120.into()));
    assert_eq!(live.control("POST", "/pay", &format!(r#"{{"order_id":"{id}"}}"#)).status(), 400);
}

#[test]
fn a_mailed_key_is_in_the_mailbox_and_nowhere_else() {
    let live = Live::new();
    send(&live.api(), "POST", "/v1/account/request-api-key", "", r#"{"email":"ann@example.com"}"#);
    let mails = live.control("GET", "/mailbox", "").json();
    assert_eq!(mails["mails"][0]["to"], "ann@example.com");
    let key = mails["mails"][0]["api_key"].as_str().unwrap();
    assert!(!live.state().to_string().contains(key));
    let answer = send(&live.api(), "GET", "/v1/billing/balance", &format!("X-API-Key: {key}\r\n"), "");
    assert_eq!(answer.json()["data"]["balance"], 1);
}

#[test]
fn accounts_and_their_backend_are_turned_off_and_on() {
    let live = Live::new();
    let code = |live: &Live| live.call("GET", "/products", None, "").json()["error"]["code"].clone();
    done(&live, "/account", r#"{"active":false}"#);
    assert_eq!(code(&live), "ACCOUNT_DISABLED");
    done(&live, "/account", r#"{"agent_id":1001,"active":true,"denied":["list_products"]}"#);
    assert_eq!(code(&live), "AUTH_INSUFFICIENT_PERMISSION");
    done(&live, "/account", r#"{"denied":[]}"#);
    done(&live, "/backend", r#"{"ready":false,"reason":"closed for today"}"#);
    assert_eq!(code(&live), "BACKEND_ERROR");
    done(&live, "/backend", r#"{"agent_id":1001,"ready":true}"#);
    assert!(code(&live).is_null());
    done(&live, "/backend", r#"{"opened":true,"ready":false}"#);
    assert!(code(&live).is_null());
    let registered = send(&live.api(), "POST", "/v1/account/register", "", r#"{"name":"Ann"}"#).json();
    assert_eq!(registered["data"]["backend_ready"], false);
}

#[test]
fn stock_resources_and_refunds_are_given() {
    let live = Live::new();
    done(&live, "/stock", r#"{"product_no":"static-us","stock":0}"#);
    done(&live, "/resource", r#"{"resource_id":"SO-7","product_no":"static-us"}"#);
    let order = r#"{"session_type":"static","product_no":"static-us"}"#;
    assert_eq!(live.call("POST", "/sessions", None, order).json()["error"]["code"], "PRODUCT_OUT_OF_STOCK");
    let existing = r#"{"session_type":"static","product_no":"static-us","provisioning_mode":"existing","resource_id":"SO-7"}"#;
    assert_eq!(live.call("POST", "/sessions", None, existing).status(), 202);
    let id = live.call("POST", "/sessions", None, DYNAMIC).json()["data"]["session_id"].as_str().unwrap().to_owned();
    done(&live, "/refund", &format!(r#"{{"session_id":"{id}","amount":"4"}}"#));
    assert_eq!(live.state()["balance"], 100);
}
