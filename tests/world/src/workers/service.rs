//! A service that does what pools need, and keeps little of each session: the sandbox knows more, and looks at all of them at each purchase.

use hopline::client::Millis;
use hopline::wire::Request;
use rustc_hash::FxHashMap;

use crate::pools::{Wrong, is_purchase};

/// A session is being created for so long.
const CREATION: Millis = 2000;
const PROXY: &str = r#","proxy":{"host":"proxy.example","port":1080,"protocol":"http","username":"user-000000","password":"password-00"}"#;

/// A session.
#[derive(Debug)]
struct Session {
    created: Millis,
    /// The client that read last that it is active.
    reader: Option<u32>,
}

/// The service.
#[derive(Debug, Default)]
pub(super) struct Service {
    sessions: Vec<Session>,
    keys: FxHashMap<Box<str>, usize>,
    /// The sessions that somebody has read as active.
    pub(super) ready: usize,
}

impl Service {
    pub(super) fn bought(&self) -> usize {
        self.sessions.len()
    }

    /// The sessions of these clients, by who read them last.
    pub(super) fn read_by(&self, are_meant: impl Fn(u32) -> bool) -> impl Iterator<Item = usize> {
        self.sessions.iter().enumerate().filter(move |(_, session)| session.reader.is_some_and(&are_meant)).map(|(number, _)| number)
    }

    /// The answer to a request, and the session that this client has read as active for the first time.
    pub(super) fn execute(&mut self, request: &Request, client: u32, now: Millis) -> Result<(String, Option<usize>), Wrong> {
        if is_purchase(request) {
            let key = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"));
            let (_, key) = key.ok_or("a purchase goes out without a key")?;
            let number = *self.keys.entry(key.as_str().into()).or_insert(self.sessions.len());
            if number == self.sessions.len() {
                self.sessions.push(Session { created: now, reader: None });
            }
            return Ok((told(number, "creating", ""), None));
        }
        let last = request.url.rsplit('/').next().and_then(|last| last.split('?').next()).unwrap_or_default();
        let number =
            number(last).filter(|number| *number < self.sessions.len()).ok_or_else(|| format!("nobody answers {}", request.url))?;
        let session = &mut self.sessions[number];
        if now - session.created < CREATION {
            return Ok((told(number, "creating", ""), None));
        }
        let before = session.reader.replace(client);
        self.ready += usize::from(before.is_none());
        Ok((told(number, "active", PROXY), Some(number).filter(|_| before != Some(client))))
    }
}

/// The number of a session, by its id.
pub(super) fn number(id: &str) -> Option<usize> {
    id.strip_prefix("ses_")?.parse().ok()
}

fn told(number: usize, status: &str, proxy: &str) -> String {
    format!(
        r#"{{"success":true,"data":{{"session_id":"ses_{number:026}","session_type":"dynamic","status":"{status}","estimated_charge_usd":"1.00"{proxy}}}}}"#
    )
}
