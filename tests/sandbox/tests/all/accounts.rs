//! Opening accounts, their keys, and what an account may do.

use crate::agent_harness::{AgentHarness, Answer, DAY, DYNAMIC};

const ID: &str = "123e4567-e89b-12d3-a456-426614174000";
const OTHER_ID: &str = "123e4567-e89b-12d3-a456-426614174001";

fn ask(agent: &mut AgentHarness, email: &str, headers: &[(&str, &str)]) -> Answer {
    agent.send("POST", "/account/request-api-key", headers, &format!(r#"{{"email":"{email}"}}"#))
}

#[test]
fn a_first_request_mails_a_key_that_works_and_grants_one_dollar() {
    let mut agent = AgentHarness::new();
    let answer = ask(&mut agent, "ann@example.com", &[]);
    assert_eq!((answer.status, &answer.data()["status"]), (200, &"email_sent".into()));
    assert_eq!(answer.data()["claim_status"], "granted");
    assert_eq!((answer.data()["balance"].to_string(), answer.data()["trial_balance"].to_string()), ("1".into(), "1".into()));
    let trial = serde_json::json!({"granted": true, "amount_usd": 1, "expires_at": "2023-12-14T22:13:20.000Z"});
    assert_eq!((&answer.data()["trial"], &answer.data()["backend_ready"]), (&trial, &true.into()));
    let mail = agent.service.mails()[0].clone();
    assert_eq!(mail.to, "ann@example.com");
    assert!(!String::from_utf8_lossy(&answer.bytes).contains(&mail.api_key));
    let balance = agent.as_account(&mail.api_key, "GET", "/billing/balance", "");
    assert_eq!(balance.data()["balance"], 1);
    let small = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.2}"#;
    assert_eq!(agent.as_account(&mail.api_key, "POST", "/sessions", small).status, 202);
    let balance = agent.as_account(&mail.api_key, "GET", "/billing/balance", "");
    assert_eq!((balance.data()["balance"].to_string(), balance.data()["trial_balance"].to_string()), ("0.2".into(), "0.2".into()));
}

#[test]
fn a_repeat_for_the_same_address_resends_the_same_key_and_grants_nothing_more() {
    let mut agent = AgentHarness::new();
    ask(&mut agent, "ann@example.com", &[]);
    agent.now += 59_999;
    let soon = ask(&mut agent, "Ann@Example.com", &[]);
    assert_eq!((soon.status, &soon.data()["status"]), (200, &"email_recently_sent".into()));
    assert_eq!(agent.service.mails().len(), 1);
    agent.now += 1;
    let later = ask(&mut agent, "ann@example.com", &[]);
    assert_eq!((&later.data()["status"], &later.data()["claim_status"]), (&"email_sent".into(), &"already_granted".into()));
    assert_eq!(later.data()["balance"], 1);
    let mails = agent.service.mails();
    assert!(mails.len() == 2 && mails[0].api_key == mails[1].api_key);
}

#[test]
fn another_trial_for_the_same_mailbox_installation_or_network_is_refused() {
    let mut agent = AgentHarness::new();
    let from = [("X-Client-Installation-Id", ID), ("X-Forwarded-For", "192.0.2.7, 198.51.100.1")];
    assert_eq!(ask(&mut agent, "ann@example.com", &from).status, 200);
    for (email, headers, cause) in [
        ("ann+two@example.com", [("X-Client-Installation-Id", OTHER_ID), ("X-Forwarded-For", "192.0.2.8")], "email"),
        ("bob@example.com", [("X-Client-Installation-Id", ID), ("X-Forwarded-For", "192.0.2.8")], "installation"),
        ("bob@example.com", [("X-Client-Installation-Id", OTHER_ID), ("X-Forwarded-For", "192.0.2.7")], "network"),
    ] {
        let refused = ask(&mut agent, email, &headers);
        assert_eq!(refused.refusal(), (429, "TRIAL_NOT_ELIGIBLE"), "{cause}");
        assert_eq!(refused.json["error"]["details"]["cause"], cause);
    }
    assert_eq!(agent.service.mails().len(), 1);
    assert_eq!(ask(&mut agent, "ann@example.com", &from).status, 200);
    let elsewhere = [("X-Client-Installation-Id", OTHER_ID), ("X-Forwarded-For", "192.0.2.8")];
    assert_eq!(ask(&mut agent, "bob@example.com", &elsewhere).status, 200);
}

#[test]
fn a_request_for_a_key_is_checked() {
    let mut agent = AgentHarness::new();
    for body in ["", "{}", r#"{"email":7}"#, r#"{"email":"ann"}"#, r#"{"email":"ann@"}"#, r#"{"email":"a nn@example.com"}"#] {
        assert_eq!(agent.send("POST", "/account/request-api-key", &[], body).field(), "email", "{body}");
    }
    let wrong = ask(&mut agent, "ann@example.com", &[("X-Client-Installation-Id", "7")]);
    assert_eq!(wrong.field(), "X-Client-Installation-Id");
    assert!(agent.service.mails().is_empty());
}

#[test]
fn a_referral_code_that_can_not_be_decoded_is_refused_and_opens_nothing() {
    let mut agent = AgentHarness::new();
    for code in ["%%%", "bm90IGEgbnVtYmVy", "MTAwMQ=="] {
        for (path, body) in [
            ("/account/request-api-key", format!(r#"{{"email":"ann@example.com","referral_code":"{code}"}}"#)),
            ("/account/register", format!(r#"{{"name":"Ann","referral_code":"{code}"}}"#)),
        ] {
            assert_eq!(agent.send("POST", path, &[], &body).refusal(), (400, "INVALID_REFERRAL_CODE"), "{code}");
        }
    }
    let sound = r#"{"name":"Ann","referral_code":"MTAwMQ"}"#;
    assert_eq!(agent.send("POST", "/account/register", &[], sound).data()["agent_id"], 1002);
}

#[test]
fn registering_returns_credentials_of_an_account_of_its_own() {
    let mut agent = AgentHarness::new();
    let answer = agent.send("POST", "/account/register", &[], r#"{"name":"Ann","contact_email":"ann@example.com"}"#);
    assert_eq!((answer.status, &answer.data()["backend_ready"]), (201, &true.into()));
    assert!(answer.data().get("backend_sync_error").is_none());
    let (key, secret) = (answer.data()["api_key"].as_str().unwrap(), answer.data()["api_secret"].as_str().unwrap());
    assert_ne!(key, secret);
    let mine = agent.buy(DYNAMIC);
    assert_eq!(agent.as_account(key, "GET", &format!("/sessions/{mine}"), "").refusal(), (404, "SESSION_NOT_FOUND"));
    assert_eq!(agent.as_account(key, "POST", "/sessions", DYNAMIC).refusal(), (402, "INSUFFICIENT_BALANCE"));
    assert_eq!(agent.send("POST", "/account/register", &[], "{}").field(), "name");
    assert_eq!(agent.send("POST", "/account/register", &[], r#"{"name":"Ann","contact_email":7}"#).field(), "contact_email");
    let again = agent.send("POST", "/account/register", &[], r#"{"name":"Ann","contact_email":"ann@example.com"}"#);
    assert_ne!(again.data()["api_key"], key);
}

#[test]
fn keys_limits_and_stored_answers_belong_to_their_account() {
    let mut agent = AgentHarness::with(|config| config.requests_per_minute = 3);
    let (_, key) = agent.register("Ann");
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).status, 202);
    let theirs = agent.send("POST", "/sessions", &[("X-API-Key", &key), ("Idempotency-Key", "k")], DYNAMIC);
    assert_eq!(theirs.code(), "INSUFFICIENT_BALANCE");
    agent.get("/billing/balance");
    agent.get("/billing/balance");
    assert_eq!(agent.get("/billing/balance").code(), "RATE_LIMIT_EXCEEDED");
    assert_eq!(agent.as_account(&key, "GET", "/billing/balance", "").status, 200);
}

#[test]
fn account_info_shows_the_key_masked() {
    let mut agent = AgentHarness::new();
    let key = agent.service.config().api_key.clone();
    let info = agent.get("/account/info");
    let shown = format!("{}…{}", &key[..4], &key[key.len() - 4..]);
    assert_eq!((info.status, info.data()["api_key_prefix"].as_str()), (200, Some(shown.as_str())));
    assert!(!String::from_utf8_lossy(&info.bytes).contains(&key));
}

#[test]
fn an_account_that_is_not_synced_may_neither_list_nor_read_its_balance_nor_buy() {
    let mut agent = AgentHarness::new();
    let own = agent.service.agent_id();
    assert!(agent.service.set_unready(own, Some("the supplier is closed")));
    agent.service.set_new_unready(Some("the supplier is closed"));
    let registered = agent.send("POST", "/account/register", &[], r#"{"name":"Ann"}"#);
    assert_eq!((registered.status, &registered.data()["backend_ready"]), (201, &false.into()));
    assert_eq!(registered.data()["backend_sync_error"], "the supplier is closed");
    assert_eq!(ask(&mut agent, "bob@example.com", &[]).data()["backend_ready"], false);
    for answer in [agent.get("/products"), agent.get("/billing/balance"), agent.keyed("/sessions", "k", DYNAMIC)] {
        assert_eq!(answer.refusal(), (502, "BACKEND_ERROR"));
    }
    assert_eq!(agent.get("/account/info").data()["backend_ready"], false);
    assert_eq!(agent.send("GET", "/public/products", &[], "").status, 200);
    agent.service.set_unready(own, None);
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).code(), "BACKEND_ERROR");
    assert_eq!(agent.keyed("/sessions", "k2", DYNAMIC).status, 202);
}

#[test]
fn whether_it_is_synced_is_each_accounts_own() {
    let mut agent = AgentHarness::new();
    let (ann, key) = agent.register("Ann");
    assert!(agent.service.set_unready(ann, Some("closed")));
    assert!(!agent.service.set_unready(7, Some("closed")));
    assert_eq!(agent.as_account(&key, "GET", "/account/info", "").data()["backend_ready"], false);
    assert_eq!(agent.as_account(&key, "GET", "/products", "").refusal(), (502, "BACKEND_ERROR"));
    assert_eq!((agent.get("/account/info").data()["backend_ready"].clone(), agent.get("/products").status), (true.into(), 200));
    assert_eq!(agent.service.logins().iter().map(|login| login.id).collect::<Vec<_>>(), [1001]);
    agent.service.set_new_unready(Some("closed"));
    let (_, late) = agent.register("Bob");
    assert_eq!(agent.as_account(&late, "GET", "/products", "").refusal(), (502, "BACKEND_ERROR"));
}

#[test]
fn an_account_that_is_disabled_or_lacks_a_permission_is_refused_before_the_store() {
    let mut agent = AgentHarness::new();
    let own = agent.service.agent_id();
    assert!(agent.service.set_active(own, false));
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).refusal(), (403, "ACCOUNT_DISABLED"));
    assert!(agent.service.set_active(own, true) && agent.service.set_denied(own, ["create_session".to_owned()].into()));
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).refusal(), (403, "AUTH_INSUFFICIENT_PERMISSION"));
    assert_eq!(agent.get("/billing/balance").status, 200);
    assert!(agent.service.set_denied(own, [].into()));
    assert_eq!(agent.keyed("/sessions", "k", DYNAMIC).status, 202);
    assert!(!agent.service.set_active(1, false) && !agent.service.set_denied(1, [].into()));
}

#[test]
fn a_bearer_token_is_none_that_the_service_knows() {
    let mut agent = AgentHarness::new();
    let answer = agent.send("GET", "/billing/balance", &[("Authorization", "Bearer x.y.z")], "");
    assert_eq!(answer.refusal(), (401, "AUTH_EXPIRED_TOKEN"));
}

#[test]
fn the_trial_credit_is_granted_once_in_all_time() {
    let mut agent = AgentHarness::new();
    ask(&mut agent, "ann@example.com", &[]);
    agent.now += 400 * DAY;
    assert_eq!(ask(&mut agent, "ann@example.com", &[]).data()["balance"], 1);
}
