//! A client of the agent API in a world that the bytes make up.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{CallOptions, Client, FailureKind, Holds, Outcome, Sent, Settlement, StepId};
use hopline::policy::Error;
use hopline::wire::Request;
use hopline::{Effect, Kind};

use crate::world::{Service, World, run};
use crate::{BASE, Tape, fresh};

/// Codes that a purchase may be refused with.
const CODES: [(&str, u16); 10] = [
    ("AUTH_INVALID_KEY", 401),
    ("INVALID_REQUEST", 400),
    ("PRODUCT_OUT_OF_STOCK", 409),
    ("SESSION_NOT_FOUND", 404),
    ("SESSION_EXPIRED", 410),
    ("INSUFFICIENT_BALANCE", 402),
    ("BACKEND_ERROR", 502),
    ("INTERNAL_ERROR", 500),
    ("WHATEVER", 422),
    ("ELSE", 503),
];

#[derive(Default)]
struct Agent {
    /// What each key was sent with.
    bytes: BTreeMap<String, String>,
    /// The session that the service made for a key.
    made: BTreeMap<String, usize>,
    /// The keys that each purchase was made under. What is bought has a number of its own, so that a body tells whose it is.
    bought: BTreeMap<String, BTreeSet<String>>,
    /// How often each may have been bought: once for each start after it was said that nothing happened, or a person settled it.
    most: BTreeMap<String, usize>,
    /// The intents that stand for a purchase.
    started: BTreeSet<String>,
}

impl Agent {
    /// A purchase is started under an intent.
    fn start(&mut self, intent: &str) {
        if self.started.insert(intent.to_owned()) {
            let bought = self.bought.get(intent).map_or(0, BTreeSet::len);
            let most = self.most.entry(intent.to_owned()).or_default();
            *most = (*most).max(bought) + 1;
        }
    }
}

/// Whatever happens: a key is never sent with other bytes, nothing that was done is called "not done", no secret is saved or told,
/// saves of one record never overlap, and every command ends.
pub fn client(bytes: &[u8]) {
    run::<Agent>(bytes);
}

impl Service for Agent {
    fn client(entropy: u8) -> Client {
        fresh(entropy)
    }

    fn act(world: &mut World<Self>, choice: u32, tape: &mut Tape<'_>) {
        let client = &mut world.client;
        match choice {
            0 | 1 => {
                let intent = format!("job-{}", tape.number(3));
                world.service.start(&intent);
                let params = format!(r#"{{"session_type":"dynamic","product_no":"{intent}"}}"#);
                let options = CallOptions { credentials: tape.number(3) == 0, ..CallOptions::intent(intent) };
                world.open.insert(client.start_json("open_session", &params, options));
            }
            2 => {
                let operation = ["rotate_session", "terminate_session", "wait_session", "get_session_health"][tape.number(4) as usize];
                let params = format!(r#"{{"session_id":"s{}"}}"#, tape.number(3));
                world.open.insert(client.start_json(operation, &params, CallOptions::default()));
            }
            3 => {
                let number = tape.number(2);
                let intent = format!("pay-{number}");
                world.service.start(&intent);
                let params = format!(r#"{{"amount":{}}}"#, 10 + number);
                world.open.insert(client.start_json("create_recharge", &params, CallOptions::intent(intent)));
            }
            7 => {
                let given_up = client.saved().into_iter().find(|saved| saved.holds == Holds::InDoubtForGood);
                if let Some(one) = given_up {
                    let settled = match tape.number(2) {
                        0 => client.settle(&one.record, Settlement::Happened),
                        _ => client.settle_as(&one.record, &format!("s{}", tape.number(3))).unwrap_or_default(),
                    };
                    if let (true, Some(intent)) = (settled, &one.intent) {
                        world.service.started.remove(intent);
                    }
                }
            }
            8 => world.now.unix += i64::from(tape.number(60_000)) * 100 - 3_000_000,
            _ => {}
        }
    }

    fn serve(world: &mut World<Self>, id: StepId, request: &Request, tape: &mut Tape<'_>) {
        let fate = tape.number(8);
        let done = (fate < 4).then(|| world.service.serve_well(request, tape.number(4)));
        match (fate, done) {
            (0 | 1, Some((status, body))) => world.reply(id, status, &body),
            (2, _) => world.resolve(
                id,
                Outcome::Response { status: 502, headers: &[("content-type", "text/html")], body: b"<html>", truncated: false },
            ),
            (3 | 4, _) => world.lose(id, FailureKind::Closed, Sent::Maybe),
            (5, _) => world.lose(id, FailureKind::Connect, Sent::Never),
            _ => {
                // A service that did it answers a key with what it stored, so only what stands before that is left.
                let known = request.header("idempotency-key").is_some_and(|key| world.service.made.contains_key(key));
                let (code, status) = if known { CODES[0] } else { CODES[tape.number(10) as usize] };
                world.reply(id, status, &format!(r#"{{"success":false,"data":null,"error":{{"code":"{code}","message":"canary-key"}}}}"#));
            }
        }
    }

    fn serve_well(&mut self, request: &Request, choice: u32) -> (u16, String) {
        let key = request.header("idempotency-key").map(str::to_owned);
        let count = self.made.len();
        self.buys(request, key.as_deref());
        let made = key.map(|key| *self.made.entry(key).or_insert(count));
        let path = request.url.strip_prefix(BASE).unwrap_or_default();
        let data = match path.split(['/', '?']).collect::<Vec<_>>().as_slice() {
            ["", "sessions"] => format!(r#"{{"session_id":"n{}","session_type":"dynamic","status":"creating"}}"#, made.unwrap_or(0)),
            ["", "sessions", id, ..] => {
                let status = ["active", "creating", "expired", "odd"][choice as usize];
                format!(r#"{{"session_id":"{id}","session_type":"dynamic","status":"{status}","proxy":{{"password":"canary-password"}}}}"#)
            }
            _ => r#"{"order_id":"o-1"}"#.to_owned(),
        };
        let time = "2025-06-15T15:06:41Z";
        (
            if made.is_some() { 202 } else { 200 },
            format!(r#"{{"success":true,"data":{data},"meta":{{"request_id":"q","timestamp":"{time}"}}}}"#),
        )
    }

    fn sees(world: &mut World<Self>, request: &Request) {
        if let Some(key) = request.header("idempotency-key") {
            let key = format!("\"{key}\"");
            let is_saved = world.store.values().any(|data| String::from_utf8_lossy(data).contains(&key));
            assert!(is_saved, "a write was sent before it was saved");
        }
        let whole = format!("{} {} {:?}", request.method.as_str(), request.url, request.body);
        if let Some(key) = request.header("idempotency-key") {
            let first = world.service.bytes.entry(key.to_owned()).or_insert_with(|| whole.clone());
            assert_eq!(*first, whole, "a key was sent with other bytes");
        }
    }

    fn learns(&mut self, error: &Error) {
        let is_own = matches!(error.operation, "create_session" | "create_recharge");
        let says_so = !matches!(error.kind, Kind::Busy | Kind::Ended | Kind::Invalid | Kind::Misuse) && error.effect == Effect::None;
        if let (true, true, Some(intent)) = (is_own, says_so, &error.intent) {
            self.started.remove(intent);
        }
    }

    fn has_done(&self, error: &Error) -> bool {
        error.idempotency_key.as_ref().is_some_and(|key| self.made.contains_key(key))
    }
}

impl Agent {
    /// Counts a purchase that a request makes.
    fn buys(&mut self, request: &Request, key: Option<&str>) {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let recharge = body["amount"].as_u64().map(|amount| format!("pay-{}", amount - 10));
        let Some(intent) = body["product_no"].as_str().map(str::to_owned).or(recharge) else { return };
        let keys = self.bought.entry(intent.clone()).or_default();
        keys.extend(key.map(str::to_owned));
        let most = self.most.get(&intent).copied().unwrap_or_default();
        assert!(keys.len() <= most, "{intent} was bought {} times, and might be {most} times", keys.len());
    }
}
