//! The client for JavaScript: one class that takes and gives text, bytes and numbers.
//!
//! The documentation of `hopline` describes how to drive it; nothing is decided here. Parameters, options, facts and answers are JSON text,
//! and so is the data in a store: bytes to JavaScript. Errors, events and verdicts go out as objects. Headers are lines of one text: a
//! name, its value, the next name. Times are `f64`, as JavaScript's are.

use hopline::client::{CommandId, Name, RecordId};
use hopline::{Error, Now, Outcome, Step};
use wasm_bindgen::prelude::*;

mod functions;
#[cfg(feature = "pools")]
mod pools;
mod store;
mod value;

pub use functions::*;
use value::Value;

/// A call that was refused. JavaScript gets the error as an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused(pub Error);

impl From<Refused> for JsValue {
    fn from(refused: Refused) -> JsValue {
        Value::encoded(&refused.0).into()
    }
}

#[cfg(not(feature = "pools"))]
type Inner = hopline::Client;
#[cfg(feature = "pools")]
type Inner = hopline::pool::PoolClient;

/// The client of one account. Drain `poll` until it returns a wait, answer each step once, drain again.
#[wasm_bindgen]
pub struct Client {
    client: Inner,
}

impl Client {
    fn step(&mut self, unix_ms: f64, monotonic_ms: f64) -> Step {
        self.client.poll(at(unix_ms, monotonic_ms))
    }
}

fn at(unix_ms: f64, monotonic_ms: f64) -> Now {
    // Saturating; a NaN becomes 0.
    Now { unix: unix_ms as i64, monotonic: monotonic_ms as i64 }
}

/// The headers in lines: a name, its value, the next name.
fn headers_of(lines: &str) -> Vec<(&str, &str)> {
    let mut lines = lines.split('\n');
    std::iter::from_fn(|| Some((lines.next()?, lines.next()?))).collect()
}

#[wasm_bindgen]
impl Client {
    /// Makes a client. `entropy` is 16 bytes of `crypto.getRandomValues`, new ones for each client.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, entropy: &[u8]) -> Result<Client, Refused> {
        Inner::from_text(options, entropy).map(|client| Client { client }).map_err(Refused)
    }

    /// Starts an operation and returns its command. Its faults come back as its result.
    pub fn start(&mut self, operation: &str, params: &str, options: &str) -> u32 {
        self.client.start_text(operation, params, options).0
    }

    /// Returns the next step. If there is none, returns the time to wait until: monotonic milliseconds, or `undefined` for no time at all.
    /// A step is a list that begins with a word:
    ///
    /// - `["store", id, command, call]`: call the store, and answer with `id`. `command` is the one that waits for it, or null; `call` is
    ///   the name of a method of a store and its arguments.
    /// - `["send", id, command, head, body, timeoutMs, maxBody, sendBefore]`: send it, and answer by `respond` or `fail` with `id`. `head`
    ///   has the operation, the method, the whole URL, and each header's name and value, in a line each; `body` is null if there is none.
    ///   Give up `timeoutMs` after it began, and fail it by `timeout`; read no more than `maxBody` bytes of the answer's body, more is
    ///   truncated; after the monotonic time `sendBefore` do not send it, and fail it by `late`, `never` sent.
    /// - `["completed", command]`: the command has ended, take its result.
    /// - `["notify", event]`: an event, for people and metrics.
    #[wasm_bindgen(unchecked_return_type = "Step | number | undefined")]
    pub fn poll(&mut self, unix_ms: f64, monotonic_ms: f64) -> JsValue {
        Value::from(self.step(unix_ms, monotonic_ms)).into()
    }

    /// Takes the answer of a Send. `headers` has a line for each name and each value of those that `responseHeaders` names.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer")]
    pub fn respond(
        &mut self,
        step: u32,
        status: u16,
        headers: &str,
        body: &[u8],
        truncated: bool,
        unix_ms: f64,
        monotonic_ms: f64,
    ) -> Result<(), Refused> {
        let outcome = Outcome::Response { status, headers: &headers_of(headers), body, truncated };
        self.client.resolve_text(step, outcome, at(unix_ms, monotonic_ms)).map_err(Refused)
    }

    /// Takes the failure of a Send. `kind` is `dns`, `connect`, `tls`, `timeout`, `closed`, `aborted`, `late` or `other`; `sent` is `never`
    /// or `maybe`.
    pub fn fail(&mut self, step: u32, kind: &str, sent: &str, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.client.fail_text(step, kind, sent, at(unix_ms, monotonic_ms)).map_err(Refused)
    }

    /// Stops further sends of a command. Returns the step of its request that is out, if no other command waits for that one: abort it, and
    /// report that it failed.
    pub fn cancel(&mut self, command: u32, unix_ms: f64, monotonic_ms: f64) -> Option<u32> {
        self.client.cancel(CommandId(command), at(unix_ms, monotonic_ms)).map(|step| step.0)
    }

    /// Returns the result of a command that completed, once: `["answered", facts, raw, phase, view, type, secrets]`, or `["failed",
    /// error]`; else `undefined`. A value behind `raw` is null if it is not needed, and left out if nothing follows: the phase of a
    /// session, an order or a repeated read; the data under the names of the table if the service used others; the type if something in it
    /// is secret; and `true` if an undocumented member has the name of a secret.
    #[wasm_bindgen(
        unchecked_return_type = "[\"answered\", string, string, (string | null)?, (string | null)?, (string | null)?, true?] | [\"failed\", ErrorFields] | undefined"
    )]
    pub fn take(&mut self, command: u32) -> JsValue {
        self.client.take_text(command).map_or(JsValue::UNDEFINED, |taken| Value::from(taken).into())
    }

    /// Starts a command about the store's entries, in one function for all of them, as for the store's answers:
    ///
    /// - `saved`: reads a page, behind the name `given` or from the beginning if that is empty. Its answer is JSON,
    ///   `{"entries":[Saved],"after":name}`, without `after` on the last page.
    /// - `resume`: resumes the record `given`; `more` are options, JSON as those of `start`.
    /// - `resume_intent`: resumes the intent `given`; `null` is the answer if the intent is not known.
    /// - `resume_all`: resumes everything that is open. Its answer is JSON: the commands that have ended, each of whose results is to be
    ///   taken.
    /// - `happened`, `not_happened` and `not_happened_early`: settles the doubt of the record `given` by hand; `more` is the result, if it
    ///   is known. Its answer is true if there was one.
    /// - `forget`: forgets the record `given`. Its answer is true if something was forgotten.
    pub fn act(&mut self, what: &str, given: String, more: Option<String>) -> u32 {
        let options = || more.as_deref().unwrap_or("{}");
        match what {
            "saved" => self.client.saved(Some(given).filter(|after| !after.is_empty()).map(Name::from)).command,
            "resume" => self.client.resume_text(given, options()),
            "resume_intent" => self.client.resume_intent_text(&given, options()),
            "resume_all" => self.client.resume_all_text(options()),
            "happened" => self.client.settle_text(given, true, more, false),
            "not_happened" => self.client.settle_text(given, false, more, false),
            "not_happened_early" => self.client.settle_text(given, false, more, true),
            _ => self.client.forget(&RecordId(given)).command,
        }
        .0
    }

    /// The command for which the core began this one, as for `resume_all`; `undefined` if there is none.
    #[wasm_bindgen(js_name = callerOf)]
    pub fn caller_of(&self, command: u32) -> Option<u32> {
        self.client.caller_of(CommandId(command)).map(|caller| caller.0)
    }

    /// Stops following a session, and releases it. Returns true if it was followed.
    #[wasm_bindgen(js_name = releaseSession)]
    pub fn release_session(&mut self, session_id: &str) -> bool {
        self.client.release_session(session_id)
    }

    /// Returns true if this client follows a session, which has not ended as far as it knows.
    pub fn follows(&self, session_id: &str) -> bool {
        self.client.follows(session_id)
    }

    /// Takes claims that have ended while this client lives: of these names, in a line each, or of all.
    pub fn lost(&mut self, names: Option<String>, unix_ms: f64, monotonic_ms: f64) {
        let names: Option<Vec<Name>> = names.map(|names| names.lines().map(|name| Name::from(name.to_owned())).collect());
        self.client.lost(names.as_deref(), at(unix_ms, monotonic_ms));
    }

    /// Of the reseller API: the token that is used at present, a secret.
    pub fn token(&self) -> Option<String> {
        self.client.token().map(|token| token.reveal().to_owned())
    }

    /// Returns advice after an observation through a session: `{"status":403}` or a word. `undefined` if this client does not follow the
    /// session.
    #[wasm_bindgen(unchecked_return_type = "any")]
    pub fn observe(&mut self, session_id: &str, seen: &str, unix_ms: f64, monotonic_ms: f64) -> Result<JsValue, Refused> {
        let verdict = self.client.observe_text(session_id, seen, at(unix_ms, monotonic_ms)).map_err(Refused)?;
        Ok(verdict.map_or(JsValue::UNDEFINED, |verdict| Value::encoded(&verdict).into()))
    }
}

#[cfg(test)]
mod tests;
