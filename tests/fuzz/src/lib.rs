//! Properties that hold for any bytes: each function takes some, does with them what their name says, and panics if it does not
//! hold. `cargo test` runs them with random bytes, `cargo xtask fuzz` lets libFuzzer look for worse ones.

#![allow(clippy::panic, clippy::expect_used, reason = "a panic is how a property fails")]

mod answer;
mod choices;
mod held;
mod reseller;

use hopline::client::{CallOptions, Client, ClientOptions, CommandId, Now, Outcome, Settlement, Step, StepId};
use hopline::contract::Secret;
use hopline::wire::Request;
use hopline_world::{Bytes, Kind, live};

pub use answer::answer;
pub use choices::Choices;
use held::Held;
pub use reseller::{order_record, range, reply, token, turn};

/// A property: its name, and what runs it.
pub type Property = (&'static str, fn(&[u8]));

/// All of them.
pub const PROPERTIES: &[Property] = &[
    ("envelope", envelope),
    ("answer", answer),
    ("record", record),
    ("address", address),
    ("retry_after", retry_after),
    ("client", client),
    ("reply", reply),
    ("range", range),
    ("token", token),
    ("turn", turn),
    ("order_record", order_record),
    ("orders", orders),
];

const BASE: &str = "https://api.example/v1";
const KEY: &str = "canary-key";
const NOW: Now = Now { unix: 1_750_000_000_000, monotonic: 1_000_000 };

fn options() -> ClientOptions {
    ClientOptions { base_url: BASE.to_owned(), api_key: Some(Secret::new(KEY)), ..ClientOptions::default() }
}

fn fresh(entropy: u8) -> Client {
    Client::new(options(), [entropy; 16]).expect("the options are sound")
}

/// The step after all events.
fn next(client: &mut Client, now: Now) -> Step {
    loop {
        match client.poll(now) {
            Step::Notify(event) => assert!(!tells(&hopline::contract::json_of(&event)), "an event tells a secret"),
            step => return step,
        }
    }
}

/// True if a text has the key, a password or a token in it; a fuzzer finds out how they begin.
fn tells(text: &str) -> bool {
    [KEY, "canary-password", "canary-token"].iter().any(|secret| text.contains(secret))
}

fn sent(client: &mut Client) -> (StepId, Request) {
    match next(client, NOW) {
        Step::Send { id, request, .. } => (id, request),
        step => panic!("expected a request, came {step:?}"),
    }
}

/// One attempt of a read; whatever it is answered with, it ends.
fn read_with(client: &mut Client, outcome: Outcome<'_>) -> CommandId {
    let command = client.start_json("get_balance", "{}", CallOptions { attempts: Some(1), ..CallOptions::default() });
    let (id, _) = sent(client);
    client.resolve(id, outcome, NOW).expect("the step waits for an answer");
    command
}

/// Any body with any status and any headers is an answer or an error, at once; no status is lost, and no secret shows.
pub fn envelope(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let status = choices.number(1000) as u16;
    let kind = ["", "application/json", "text/html", "application/problem+json; charset=x"][choices.number(4) as usize];
    let truncated = choices.number(4) == 0;
    let mut client = fresh(1);
    let headers = [("content-type", kind)];
    let outcome = Outcome::Response { status, headers: &headers, body: choices.rest(), truncated };
    let command = read_with(&mut client, outcome);
    assert_eq!(next(&mut client, NOW), Step::Completed { command });
    match client.take_answer(command).expect("it has ended") {
        Ok(answered) => assert!(!truncated && answered.http_status == Some(status)),
        Err(error) => {
            assert_eq!(error.status, Some(status));
            assert!(error.text.as_ref().is_none_or(|text| text.len() <= 4096), "more was kept of a page than is to be");
            assert!(!error.to_string().contains('\n'), "an error is one line");
        }
    }
}

/// Any bytes are a record or are refused; either way they are listed, and can be resumed, settled and forgotten.
pub fn record(bytes: &[u8]) {
    let mut held = Held::new(options(), bytes);
    let command = held.client.resume(&held.record, CallOptions::default());
    for request in held.run() {
        assert!(request.url.starts_with(&format!("{BASE}/")), "{} leaves the API", request.url);
    }
    _ = held.client.take_answer(command);
    held.end(Settlement::NotHappened { early: true });
}

/// A request for a session of any name has that name as one segment of the path, or is refused.
pub fn address(bytes: &[u8]) {
    let name = String::from_utf8_lossy(bytes);
    let params = serde_json::json!({ "session_id": name }).to_string();
    let mut client = fresh(3);
    let command = client.start_json("get_session", &params, CallOptions::default());
    match next(&mut client, NOW) {
        Step::Send { request, .. } => {
            let segment = request.url.strip_prefix(&format!("{BASE}/sessions/")).expect("it is below the sessions");
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%".contains(&byte);
            assert!(!segment.is_empty() && segment.bytes().all(plain), "{segment}");
            assert!(segment != "." && segment != "..");
        }
        Step::Completed { command: ended } => assert_eq!(ended, command),
        step => panic!("came {step:?}"),
    }
}

/// Nothing is sent before the wait that a service asks for, and no wait is below zero or for ever.
pub fn retry_after(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let dated = choices.number(2) == 0;
    let text: String = String::from_utf8_lossy(choices.rest()).chars().filter(|c| !c.is_control()).collect();
    let headers = [("retry-after", text.as_str()), ("date", if dated { "Sun, 15 Jun 2025 15:06:40 GMT" } else { "" })];
    let body = serde_json::json!({ "success": false, "data": null, "error": { "code": "RATE_LIMIT_EXCEEDED", "message": "", "details": { "retry_after": text } } });
    let mut client = fresh(4);
    let command = client.start_json("get_balance", "{}", CallOptions::default());
    let (id, _) = sent(&mut client);
    let body = body.to_string();
    let outcome = Outcome::Response { status: 429, headers: &headers, body: body.as_bytes(), truncated: false };
    client.resolve(id, outcome, NOW).expect("the step waits for an answer");
    match next(&mut client, NOW) {
        Step::Wait { until: Some(until) } => assert!((NOW.monotonic..=NOW.monotonic + 60_000).contains(&until), "{until}"),
        Step::Send { .. } => panic!("sent at once"),
        Step::Completed { .. } => {
            let error = client.take_answer(command).expect("has ended").expect_err("was throttled");
            assert!(error.retry_at.is_some_and(|at| at > NOW.unix), "it does not say when to come back");
        }
        step => panic!("came {step:?}"),
    }
}

/// A life at the agent API, as the bytes have it.
pub fn client(bytes: &[u8]) {
    lives(Kind::Agent, bytes);
}

/// A life at the reseller API, as the bytes have it.
pub fn orders(bytes: &[u8]) {
    lives(Kind::Reseller, bytes);
}

fn lives(kind: Kind, bytes: &[u8]) {
    if let Err(found) = live(kind, &mut Bytes(bytes), None) {
        panic!("{found}");
    }
}
