//! The pure service with a clock in the hand.

use hopline_sandbox::{Config, ErrorFault, Fault, FaultRule, Service};
use http::{HeaderMap, Request};
use serde_json::Value;

pub(crate) const START: i64 = 1_700_000_000_000;
pub(crate) const DAY: i64 = 24 * 60 * 60 * 1000;
pub(crate) const DYNAMIC: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world"}"#;
pub(crate) const STATIC: &str = r#"{"session_type":"static","product_no":"static-us"}"#;

pub(crate) struct AgentHarness {
    pub(crate) service: Service,
    pub(crate) now: i64,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
    pub(crate) json: Value,
}

impl Answer {
    /// Status and code, to compare with those expected.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        (self.status, self.code())
    }

    pub(crate) fn code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or("")
    }

    pub(crate) fn data(&self) -> &Value {
        &self.json["data"]
    }

    pub(crate) fn session_id(&self) -> String {
        self.data()["session_id"].as_str().expect("a session record").to_owned()
    }

    /// The field and the rule of a failed validation.
    pub(crate) fn field(&self) -> &str {
        assert_eq!((self.status, self.code()), (400, "INVALID_REQUEST"), "{}", self.json);
        assert!(self.json["error"]["details"]["rule"].is_string(), "{}", self.json);
        self.json["error"]["details"]["field"].as_str().expect("a field")
    }
}

impl AgentHarness {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A agent whose sessions are active at once, unless the settings say otherwise.
    pub(crate) fn with(set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { provisioning_ms: 0..=0, ..Config::new(7) };
        set(&mut config);
        Self { service: Service::new(config), now: START }
    }

    pub(crate) fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send_to("/v1", method, path, headers, body)
    }

    /// A request to the API at a base path.
    pub(crate) fn send_to(&mut self, base: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(format!("{base}{path}"));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(body.as_bytes().to_vec()).expect("a request");
        let (parts, bytes) = self.service.handle(&request, self.now).into_parts();
        let json = serde_json::from_slice(&bytes).expect("an envelope");
        Answer { status: parts.status.as_u16(), headers: parts.headers, bytes, json }
    }

    pub(crate) fn call(&mut self, method: &str, path: &str, body: &str) -> Answer {
        let api_key = self.service.config().api_key.clone();
        self.send(method, path, &[("X-API-Key", &api_key)], body)
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.call("GET", path, "")
    }

    pub(crate) fn keyed(&mut self, path: &str, key: &str, body: &str) -> Answer {
        let api_key = self.service.config().api_key.clone();
        self.send("POST", path, &[("X-API-Key", &api_key), ("Idempotency-Key", key)], body)
    }

    pub(crate) fn put_budget(&mut self, body: &str) -> Answer {
        self.call("PUT", "/account/budget", body)
    }

    /// A agent's request with another account's key.
    pub(crate) fn as_account(&mut self, api_key: &str, method: &str, path: &str, body: &str) -> Answer {
        self.send(method, path, &[("X-API-Key", api_key)], body)
    }

    /// Registers an account and gives its number and its key.
    pub(crate) fn register(&mut self, name: &str) -> (u32, String) {
        let answer = self.send("POST", "/account/register", &[], &format!(r#"{{"name":"{name}"}}"#));
        assert_eq!(answer.status, 201, "{}", answer.json);
        let number = answer.data()["agent_id"].as_u64().and_then(|number| number.try_into().ok());
        (number.expect("a number"), answer.data()["api_key"].as_str().expect("a key").to_owned())
    }

    /// Buys a session and gives its id.
    pub(crate) fn buy(&mut self, body: &str) -> String {
        let answer = self.call("POST", "/sessions", body);
        assert_eq!(answer.status, 202, "{}", answer.json);
        answer.session_id()
    }

    pub(crate) fn status(&mut self, id: &str) -> String {
        self.get(&format!("/sessions/{id}")).data()["status"].as_str().expect("a status").to_owned()
    }

    pub(crate) fn fault(&mut self, fault: Fault) {
        self.service.inject(FaultRule { operation: None, times: 1, fault });
    }

    pub(crate) fn error(&mut self, code: &str, stored: bool, sold: bool) {
        let code = code.to_owned();
        self.fault(Fault::Error(ErrorFault { code, stored, sold, ..ErrorFault::default() }));
    }

    pub(crate) fn balance(&self) -> String {
        self.service.balance().normalize().to_string()
    }
}
