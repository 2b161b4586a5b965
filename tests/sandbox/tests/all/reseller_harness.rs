//! The backend as the pure service, with a clock in the hand and a reseller that is logged in.

use hopline_sandbox::{BackendView, Config, Login};
use serde_json::Value;

use crate::agent_harness::{AgentHarness, Answer};

pub(crate) struct ResellerHarness {
    pub(crate) agent: AgentHarness,
    pub(crate) token: String,
}

impl ResellerHarness {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(set: impl FnOnce(&mut Config)) -> Self {
        let mut agent = AgentHarness::with(set);
        let Login { username, password, .. } = agent.service.logins().swap_remove(0);
        let token = login(&mut agent, &username, &password).token();
        Self { agent, token }
    }

    /// A request with the reseller's token.
    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let token = self.token.clone();
        self.call_as(&token, method, path, body)
    }

    pub(crate) fn call_as(&mut self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        self.agent.send_to("/api", method, path, &[("Authorization", &format!("Bearer {token}"))], body)
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.call("GET", path, "")
    }

    /// Gives what a request must be granted.
    pub(crate) fn granted(&mut self, method: &str, path: &str, body: &str) -> Value {
        let answer = self.call(method, path, body);
        assert_eq!((answer.status, &answer.json["code"]), (200, &0.into()), "{method} {path} {body}: {}", answer.json);
        answer.data().clone()
    }

    pub(crate) fn list(&mut self, path: &str) -> Vec<Value> {
        self.granted("GET", path, "")["items"].as_array().expect("a list").clone()
    }

    /// Creates a sub-user with a balance and gives its number.
    pub(crate) fn user(&mut self, username: &str, balance: u32) -> u64 {
        let body = format!(r#"{{"username":"{username}","password":"secret-1","balance":{balance}}}"#);
        self.granted("POST", "/open/app/user/v2", &body)["id"].as_u64().expect("a number")
    }

    pub(crate) fn login(&mut self, username: &str, password: &str) -> Answer {
        login(&mut self.agent, username, password)
    }

    pub(crate) fn balance_of(&mut self, user: u64) -> String {
        let users = self.list("/open/app/agent/sub-users?includeDeleted=true&pageSize=100");
        users.iter().find(|own| own["id"] == user).expect("a user")["balance"].to_string()
    }

    /// Places a static order of one address for a month and gives its number.
    pub(crate) fn place(&mut self, user: u64, more: &str) -> String {
        self.granted("POST", PLACE, &order(user, "static-us", more))["order_no"].as_str().expect("a number").to_owned()
    }

    /// The static order of a number, as the list has it.
    pub(crate) fn order(&mut self, number: &str) -> Value {
        let mut found = self.list(&format!("/open/app/static/order/list/v2?search={number}"));
        assert_eq!(found.len(), 1);
        found.swap_remove(0)
    }

    /// Lets time pass, and logs in again.
    pub(crate) fn pass(&mut self, ms: i64) {
        self.agent.now += ms;
        let Login { username, password, .. } = self.agent.service.logins().swap_remove(0);
        self.token = self.login(&username, &password).token();
    }

    pub(crate) fn view(&mut self) -> BackendView {
        let now = self.agent.now;
        self.agent.service.backend(now)
    }
}

pub(crate) const PLACE: &str = "/open/app/static/order/create-standard/v2";

/// A static order body; what is said more comes last, and so overrides what stands before.
pub(crate) fn order(user: u64, product: &str, more: &str) -> String {
    let plain = r#""orderType":"static_proxy","unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":30,"unit":1"#;
    format!(r#"{{{plain},"poolId":"{product}","userId":{user}{more}}}"#)
}

pub(crate) fn login(agent: &mut AgentHarness, username: &str, password: &str) -> Answer {
    let body = serde_json::json!({ "username": username, "password": password }).to_string();
    agent.send_to("/api", "POST", "/auth/login", &[], &body)
}

impl Answer {
    /// Status and numeric code of a refusal of the backend, which are the same.
    pub(crate) fn refused(&self) -> u16 {
        assert_eq!(self.json["code"], self.status, "{}", self.json);
        assert!(self.json["message"].is_string());
        self.status
    }

    /// The field of a failed validation.
    pub(crate) fn wrong(&self) -> &str {
        assert_eq!(self.refused(), 400, "{}", self.json);
        self.json["details"]["field"].as_str().expect("a field")
    }

    pub(crate) fn token(&self) -> String {
        self.data()["token"].as_str().unwrap_or_else(|| panic!("no token: {}", self.json)).to_owned()
    }
}
