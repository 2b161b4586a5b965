//! The sandbox as its control API shows it: the other side of everything that the demo tells.

use std::net::IpAddr;

use hopline::contract::Decimal;
use hopline_sandbox::Ready;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use ureq::Agent;

use crate::{Told, ensure, web};

pub(crate) struct Sandbox {
    ready: Ready,
    agent: Agent,
}

/// The state of the sandbox.
#[derive(Deserialize)]
pub(crate) struct State {
    pub(crate) balance: Decimal,
    pub(crate) charges: Vec<Charge>,
    pub(crate) sessions: Vec<Session>,
    pub(crate) backend: Backend,
}

/// Its state at the reseller backend.
#[derive(Deserialize)]
pub(crate) struct Backend {
    pub(crate) static_orders: Vec<Order>,
    pub(crate) entries: Vec<Entry>,
}

#[derive(Deserialize)]
pub(crate) struct Order {
    pub(crate) order_no: String,
    pub(crate) user_id: i64,
    pub(crate) status: String,
}

/// A change of a balance.
#[derive(Deserialize)]
pub(crate) struct Entry {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) amount: Decimal,
}

#[derive(Deserialize)]
pub(crate) struct Charge {
    pub(crate) operation: String,
    pub(crate) session_id: String,
    pub(crate) amount: Decimal,
}

#[derive(Deserialize)]
pub(crate) struct Session {
    pub(crate) session_id: String,
    pub(crate) status: String,
    pub(crate) exit: IpAddr,
    pub(crate) rotations: u32,
}

impl Sandbox {
    pub(crate) fn new(ready: Ready) -> Self {
        Sandbox { ready, agent: web::agent() }
    }

    pub(crate) fn agent_url(&self) -> &str {
        &self.ready.agent_url
    }

    pub(crate) fn backend_url(&self) -> &str {
        &self.ready.backend_url
    }

    /// The username and the password of a reseller.
    pub(crate) fn login(&self) -> (&str, &str) {
        (&self.ready.username, &self.ready.password)
    }

    pub(crate) fn api_key(&self) -> &str {
        &self.ready.api_key
    }

    /// The target site, by a name that only the proxy is to look up.
    pub(crate) fn target_url(&self) -> String {
        self.ready.target_url.replace("127.0.0.1", "localhost")
    }

    /// The site is to block the first exit that visits it.
    pub(crate) fn block_first_exit(&self) -> Told {
        self.post("target", json!({ "block_first_exit": true }))
    }

    /// The answer of the next purchase is to come so much later than its effect.
    pub(crate) fn delay_purchase(&self, ms: u32) -> Told {
        self.post("faults", json!({ "operation": "create_session", "fault": { "kind": "delay", "ms": ms } }))
    }

    pub(crate) fn state(&self) -> Told<State> {
        read(self.agent.get(format!("{}/state", self.ready.control_url)).call()?)
    }

    fn post(&self, path: &str, body: Value) -> Told {
        let answer = self.agent.post(format!("{}/{path}", self.ready.control_url)).send(body.to_string())?;
        read::<Value>(answer).map(|_| ())
    }
}

fn read<T: DeserializeOwned>(mut answer: ureq::http::Response<ureq::Body>) -> Told<T> {
    let (status, body) = (answer.status(), answer.body_mut().read_to_string()?);
    ensure!(status.is_success(), "the sandbox's control refused: {body}");
    Ok(serde_json::from_str(&body)?)
}
