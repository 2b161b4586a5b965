//! The view that a test has, and the traffic that the proxies report.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::Service;
use super::billing::Charge;
use super::session::Session;

/// Where the traffic of a session, or of an instance or order of the backend, leaves from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exit {
    /// The owner of the credentials: a session's id, an instance's, or the number of a dynamic order.
    pub session_id: Arc<str>,
    /// The loopback address of its present exit.
    pub ip: Ipv4Addr,
}

/// A session as an onlooker sees it: without its credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SessionView {
    /// Its id.
    pub session_id: String,
    /// Its product.
    pub product_no: String,
    /// `creating`, `active`, `expired` or `terminated`.
    pub status: &'static str,
    /// The address its traffic leaves from.
    pub exit: Ipv4Addr,
    /// How often it was rotated.
    pub rotations: u32,
    /// The bytes through its proxy, both ways.
    pub traffic_bytes: u64,
}

impl Service {
    /// The number of the first account.
    pub fn agent_id(&self) -> u32 {
        self.accounts[0].agent_id
    }

    /// The balance of the first account in USD.
    pub fn balance(&self) -> Decimal {
        self.accounts[0].balance
    }

    /// Sets the balance of the first account, as an operator would.
    pub fn set_balance(&mut self, amount: Decimal) {
        self.accounts[0].balance = amount;
    }

    /// Every charge to any account, in order.
    pub fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Every session that was ever accepted, in order.
    pub fn sessions(&self, now_ms: i64) -> Vec<SessionView> {
        self.sessions.iter().map(|session| view(session, now_ms)).collect()
    }

    /// The status of the session of this id: `creating`, `active`, `expired` or `terminated`.
    pub fn status_of(&self, session_id: &str, now_ms: i64) -> Option<&'static str> {
        let session = self.sessions.iter().find(|session| &*session.id == session_id)?;
        Some(session.status(now_ms).word())
    }

    /// How often each operation's own work was done or refused by its own rules. A replay, a conflict, and whatever is
    /// refused before the idempotency store do not count.
    pub fn executions(&self) -> &BTreeMap<&'static str, u32> {
        &self.executions
    }

    /// The exit that a user name and password open at this moment: none unless what they belong to is active.
    pub fn exit_of(&self, username: &str, password: &str, now_ms: i64) -> Option<Exit> {
        let session = self.sessions.iter().find(|session| session.username(&self.config) == username);
        let Some(session) = session else {
            return self.backend_exit(username, password, now_ms);
        };
        let open = session.is_active(now_ms) && session.password(&self.config) == password;
        open.then(|| Exit { session_id: session.id.clone(), ip: session.exit_address() })
    }

    /// Adds to the traffic of the owner of an [`Exit`]. A session or order that has used up its traffic expires.
    pub fn add_traffic(&mut self, session_id: &str, bytes: u64) {
        if let Some(session) = self.sessions.iter_mut().find(|session| &*session.id == session_id) {
            session.traffic_bytes = session.traffic_bytes.saturating_add(bytes);
        } else {
            self.add_backend_traffic(session_id, bytes);
        }
    }
}

fn view(session: &Session, now_ms: i64) -> SessionView {
    SessionView {
        session_id: session.id.to_string(),
        product_no: session.product.number.clone(),
        status: session.status(now_ms).word(),
        exit: session.exit_address(),
        rotations: session.rotations,
        traffic_bytes: session.traffic_bytes,
    }
}
