//! The client for JavaScript: one class that takes and gives text, bytes and numbers.
//!
//! All that there is to know about driving it is in the documentation of `hopline`; nothing is decided here. Parameters,
//! options, facts, answers and records are JSON text. Errors, events, saved entries and verdicts go out as objects. Headers
//! and records are flat lists of strings: a name, its value, the next name. Times are `f64`, as JavaScript's are.

use hopline::client::{CommandId, RecordId};
use hopline::wire::Request;
use hopline::{Error, Now, Outcome, Step};
use wasm_bindgen::prelude::*;

mod functions;
mod value;

pub use functions::*;
use value::Value;

/// What `poll` said.
#[wasm_bindgen]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Nothing until the monotonic time `until`, or until something is started or answered.
    Wait = 0,
    /// Keep the record `record` with `data`, or delete it (`undefined`), and say `saved` or `fail` with `id`.
    Save = 1,
    /// Send `method`, `url`, `headers`, `body` within `timeoutMs`, and say `respond` or `fail` with `id`.
    Send = 2,
    /// The command `command` has ended: take its result.
    Completed = 3,
    /// Progress, for people and metrics: `event`.
    Notify = 4,
}

/// A call that was refused. What JavaScript is thrown is the error as an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused(pub Error);

impl From<Refused> for JsValue {
    fn from(refused: Refused) -> JsValue {
        Value::from(&refused.0).into()
    }
}

/// The client of one account. Drain `poll` until it says wait, answer each step once, drain again.
#[wasm_bindgen]
pub struct Client {
    client: hopline::Client,
    step: Step,
}

fn at(unix_ms: f64, monotonic_ms: f64) -> Now {
    // Saturating; a NaN becomes 0.
    Now { unix: unix_ms as i64, monotonic: monotonic_ms as i64 }
}

/// `[name, value, name, value]` as pairs.
fn pairs(flat: &[String]) -> impl Iterator<Item = (&str, &str)> {
    flat.chunks_exact(2).filter_map(|pair| match pair {
        [name, value] => Some((name.as_str(), value.as_str())),
        _ => None,
    })
}

#[wasm_bindgen]
impl Client {
    /// A client. `entropy` is 16 bytes of `crypto.getRandomValues`, new ones for each client.
    #[wasm_bindgen(constructor)]
    pub fn new(options: &str, entropy: &[u8]) -> Result<Client, Refused> {
        let client = hopline::Client::from_text(options, entropy).map_err(Refused)?;
        Ok(Client { client, step: Step::Wait { until: None } })
    }

    /// Starts an operation and names its command. Whatever is wrong with it comes back as its result.
    pub fn start(&mut self, operation: &str, params: &str, options: &str) -> u32 {
        self.client.start_text(operation, params, options).0
    }

    /// What to do next; the getters give the rest of it until the next `poll`.
    pub fn poll(&mut self, unix_ms: f64, monotonic_ms: f64) -> StepKind {
        self.step = self.client.poll(at(unix_ms, monotonic_ms));
        match self.step {
            Step::Wait { .. } => StepKind::Wait,
            Step::Save { .. } => StepKind::Save,
            Step::Send { .. } => StepKind::Send,
            Step::Completed { .. } => StepKind::Completed,
            Step::Notify(_) => StepKind::Notify,
        }
    }

    /// Of a Wait: until when, monotonic milliseconds; `undefined` for no time at all.
    #[wasm_bindgen(getter)]
    pub fn until(&self) -> Option<f64> {
        if let Step::Wait { until } = self.step { until.map(|at| at as f64) } else { None }
    }

    /// Of a Save or a Send: the step to answer with.
    #[wasm_bindgen(getter)]
    pub fn id(&self) -> Option<u32> {
        if let Step::Save { id, .. } | Step::Send { id, .. } = self.step { Some(id.0) } else { None }
    }

    /// Of a Send or a Completed: the command.
    #[wasm_bindgen(getter)]
    pub fn command(&self) -> Option<u32> {
        if let Step::Send { command, .. } | Step::Completed { command } = self.step { Some(command.0) } else { None }
    }

    /// Of a Save: the record's name.
    #[wasm_bindgen(getter)]
    pub fn record(&self) -> Option<String> {
        if let Step::Save { record, .. } = &self.step { Some(record.0.clone()) } else { None }
    }

    /// Of a Save: the record's new text; `undefined` deletes it.
    #[wasm_bindgen(getter)]
    pub fn data(&self) -> Option<String> {
        if let Step::Save { data: Some(data), .. } = &self.step { Some(String::from_utf8_lossy(data).into_owned()) } else { None }
    }

    fn request(&self) -> Option<&Request> {
        if let Step::Send { request, .. } = &self.step { Some(request) } else { None }
    }

    /// Of a Send: the method.
    #[wasm_bindgen(getter)]
    pub fn method(&self) -> Option<String> {
        self.request().map(|request| request.method.as_str().to_owned())
    }

    /// Of a Send: the whole URL.
    #[wasm_bindgen(getter)]
    pub fn url(&self) -> Option<String> {
        self.request().map(|request| request.url.clone())
    }

    /// Of a Send: the headers, flat.
    #[wasm_bindgen(getter)]
    pub fn headers(&self) -> Option<Vec<String>> {
        self.request().map(|request| request.headers.iter().flat_map(|(name, value)| [name.clone(), value.clone()]).collect())
    }

    /// Of a Send: the body, if it has one.
    #[wasm_bindgen(getter)]
    pub fn body(&self) -> Option<Vec<u8>> {
        self.request().map(|request| request.body.clone()).filter(|body| !body.is_empty())
    }

    /// Of a Send: give up this many milliseconds after it began, and fail it by `timeout`.
    #[wasm_bindgen(getter, js_name = timeoutMs)]
    pub fn timeout_ms(&self) -> Option<u32> {
        self.request().map(|request| request.timeout_ms)
    }

    /// Of a Send: whoever comes to it after this monotonic time fails it by `late`, `never` sent.
    #[wasm_bindgen(getter, js_name = sendBefore)]
    pub fn send_before(&self) -> Option<f64> {
        self.request().map(|request| request.send_before as f64)
    }

    /// Of a Send: read no more than this many bytes of the answer's body; more is truncated.
    #[wasm_bindgen(getter, js_name = maxBody)]
    pub fn max_body(&self) -> Option<u32> {
        self.request().map(|request| request.max_body)
    }

    /// Of a Notify: the event.
    #[wasm_bindgen(getter, unchecked_return_type = "ClientEvent | undefined")]
    pub fn event(&self) -> JsValue {
        if let Step::Notify(event) = &self.step { Value::from(event).into() } else { JsValue::UNDEFINED }
    }

    /// The record of a Save is kept, or gone.
    pub fn saved(&mut self, step: u32, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.client.resolve_text(step, Outcome::Saved, at(unix_ms, monotonic_ms)).map_err(Refused)
    }

    /// A Send was answered. `headers` is flat, of those that `responseHeaders` names.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer")]
    pub fn respond(
        &mut self,
        step: u32,
        status: u16,
        headers: Vec<String>,
        body: &[u8],
        truncated: bool,
        unix_ms: f64,
        monotonic_ms: f64,
    ) -> Result<(), Refused> {
        let headers: Vec<(&str, &str)> = pairs(&headers).collect();
        let outcome = Outcome::Response { status, headers: &headers, body, truncated };
        self.client.resolve_text(step, outcome, at(unix_ms, monotonic_ms)).map_err(Refused)
    }

    /// A Send was not answered, or it is not certain that the record of a Save is kept. `kind` is `dns`, `connect`, `tls`,
    /// `timeout`, `closed`, `aborted`, `late`, `store` or `other`; `sent` is `never` or `maybe`.
    pub fn fail(&mut self, step: u32, kind: &str, sent: &str, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.client.fail_text(step, kind, sent, at(unix_ms, monotonic_ms)).map_err(Refused)
    }

    /// Stops further sends of a command. Gives the step of its request that is out, if nobody else waits for that one:
    /// abort it, and say that it failed.
    pub fn cancel(&mut self, command: u32, unix_ms: f64, monotonic_ms: f64) -> Option<u32> {
        self.client.cancel(CommandId(command), at(unix_ms, monotonic_ms)).map(|step| step.0)
    }

    /// The result of a command that completed, once: `["answered", facts, raw, phase, view]`, its phase where it is a session or
    /// an order (else null), and its data under the names of the table where the service used others (else null); or
    /// `["failed", error]`; else `undefined`.
    #[wasm_bindgen(
        unchecked_return_type = "[\"answered\", string, string, string | null, string | null] | [\"failed\", ErrorFields] | undefined"
    )]
    pub fn take(&mut self, command: u32) -> JsValue {
        self.client.take_text(command).map_or(JsValue::UNDEFINED, |taken| Value::from(taken).into())
    }

    /// Takes records back from the store, each its name and its text, flat: JSON,
    /// `{"held":[record],"refused":[{"record","reason","message"}]}`. `same_account` says that records under another key are
    /// of this account all the same.
    pub fn restore(&mut self, records: Vec<String>, same_account: bool) -> String {
        self.client.restore_text(pairs(&records).map(|(id, data)| (id.to_owned(), data.as_bytes().to_vec())), same_account)
    }

    /// Goes on with what a record holds, as a command; its options are JSON as those of `start`.
    pub fn resume(&mut self, record: String, options: &str) -> u32 {
        self.client.resume_text(record, options).0
    }

    /// Goes on with what an intent stands for, as a command; `undefined` if it stands for nothing.
    #[wasm_bindgen(js_name = resumeIntent)]
    pub fn resume_intent(&mut self, intent: &str, options: &str) -> Option<u32> {
        self.client.resume_intent_text(intent, options).map(|command| command.0)
    }

    /// Goes on with all that can be resumed, each as a command.
    #[wasm_bindgen(js_name = resumeAll)]
    pub fn resume_all(&mut self) -> Vec<u32> {
        self.client.resume_all().into_iter().map(|command| command.0).collect()
    }

    /// Closes a doubt by hand; `became` is the session or the order that came of it, where that is known. Returns whether there
    /// was one.
    pub fn settle(&mut self, record: String, happened: bool, became: Option<String>) -> Result<bool, Refused> {
        self.client.settle_text(record, happened, became).map_err(Refused)
    }

    /// Forgets a session or an accepted intent. Returns whether something was forgotten.
    pub fn forget(&mut self, record: String) -> bool {
        self.client.forget(&RecordId(record))
    }

    /// What the store holds. Nothing is sent.
    #[wasm_bindgen(js_name = savedList, unchecked_return_type = "Saved[]")]
    pub fn saved_list(&self) -> JsValue {
        Value::List(self.client.saved().iter().map(Value::from).collect()).into()
    }

    /// Of the reseller API: the token that is used at present, a secret.
    pub fn token(&self) -> Option<String> {
        self.client.token().map(|token| token.reveal().to_owned())
    }

    /// Advice on what was seen through a session: `{"status":403}`, `"captcha"`, `"timeout"` or `"block"`. `undefined` if this
    /// client does not follow the session.
    #[wasm_bindgen(unchecked_return_type = "any")]
    pub fn observe(&mut self, session_id: &str, seen: &str, unix_ms: f64, monotonic_ms: f64) -> Result<JsValue, Refused> {
        let verdict = self.client.observe_text(session_id, seen, at(unix_ms, monotonic_ms)).map_err(Refused)?;
        Ok(verdict.map_or(JsValue::UNDEFINED, |verdict| Value::from(&verdict).into()))
    }
}

#[cfg(test)]
mod tests;
