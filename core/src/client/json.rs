//! The client for other languages, in JSON text: what every binding shares. A binding turns the words of its host into
//! these calls and knows nothing of the contract; what a host may show is the same text in all of them, and holds no
//! secret but the `raw` of an answer.

use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};

use super::options::CallOptions;
use super::root::Client;
use super::types::{Event, Misuse, Outcome};
use super::waiting::Settlement;
use crate::contract::endpoint;
use crate::engine::{Answered, Phase, RecordId};
use crate::policy::{Advice, Effect, Error, FailureKind, Kind, Sent, quote};
use crate::state::{CommandId, Seen, StepId, Verdict};
use crate::time::Now;
use crate::wire::Facts;

/// What a command was answered with.
#[derive(Clone, PartialEq, Eq)]
pub struct TakenText {
    /// The facts, a JSON object, with `http_status` (where it was asked for now) and `attempts`.
    pub facts: String,
    /// The whole `data`, as the service wrote it. It may hold secrets, so this type has no `Debug`.
    pub raw: String,
    /// The same under the names and with the words of the table, where the service wrote it in another way: what a host reads
    /// as its type.
    pub view: Option<String>,
    /// Of a session or an order: where it is.
    pub phase: Option<&'static str>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct FactsTold {
    #[serde(flatten)]
    facts: Facts,
    #[serde(skip_serializing_if = "Option::is_none")]
    http_status: Option<u16>,
    attempts: u32,
}

impl Client {
    /// A client, its options as JSON. `entropy` is 16 bytes.
    pub fn from_text(options: &str, entropy: &[u8]) -> Result<Client, Error> {
        let entropy = entropy.try_into().map_err(|_| Error::invalid("client", "entropy", "must be 16 bytes"));
        entropy.and_then(|entropy| Client::new(read("client", "options", options)?, entropy))
    }

    /// Starts an operation as [`start_json`](Self::start_json) does, its options as JSON too.
    pub fn start_text(&mut self, operation: &str, params: &str, options: &str) -> CommandId {
        match read::<CallOptions>(endpoint(operation).map_or("start", |endpoint| endpoint.name), "options", options) {
            Ok(options) => self.start_json(operation, params, options),
            Err(error) => self.reject(error, None),
        }
    }

    /// [`resume`](Self::resume)s a record, its options as JSON too.
    pub fn resume_text(&mut self, record: String, options: &str) -> CommandId {
        match read("resume", "options", options) {
            Ok(options) => self.resume(&RecordId(record), options),
            Err(error) => self.reject(error, None),
        }
    }

    /// [`resume_intent`](Self::resume_intent), its options as JSON too.
    pub fn resume_intent_text(&mut self, intent: &str, options: &str) -> CommandId {
        match read("resume", "options", options) {
            Ok(options) => self.resume_intent(intent, options),
            Err(error) => self.reject(error, Some(intent.to_owned())),
        }
    }

    /// [`resolve`](Self::resolve)s a step.
    pub fn resolve_text(&mut self, step: u32, outcome: Outcome<'_>, now: Now) -> Result<(), Error> {
        self.resolve(StepId(step), outcome, now).map_err(misuse)
    }

    /// Resolves a step as failed; `kind` and `sent` are the words of [`FailureKind`] and [`Sent`].
    pub fn fail_text(&mut self, step: u32, kind: &str, sent: &str, now: Now) -> Result<(), Error> {
        let refuse = |field| Error::invalid("fail", field, "is not one of the words for it");
        let kind = FailureKind::deserialize(StrDeserializer::<serde::de::value::Error>::new(kind)).map_err(|_| refuse("kind"))?;
        let sent = Sent::deserialize(StrDeserializer::<serde::de::value::Error>::new(sent)).map_err(|_| refuse("sent"))?;
        self.resolve_text(step, Outcome::Failed { kind, sent }, now)
    }

    /// [`refuse_headers`](Self::refuse_headers) of a step.
    pub fn refuse_headers_text(&mut self, step: u32, rule: &str, now: Now) -> Result<(), Error> {
        self.refuse_headers(StepId(step), rule, now).map_err(misuse)
    }

    /// The result of a command that completed, once.
    pub fn take_text(&mut self, command: u32) -> Option<Result<TakenText, Error>> {
        let taken = self.take_answer(CommandId(command))?;
        Some(told(&taken))
    }

    /// The same, and the result stays until it is taken or abandoned.
    pub fn result_text(&self, command: u32) -> Option<Result<TakenText, Error>> {
        Some(told(self.result(CommandId(command))?))
    }

    /// Closes a doubt by hand: as something that happened or did not, and as the session or order that it became where that is known.
    pub fn settle_text(&mut self, record: String, happened: bool, became: Option<String>, early: bool) -> CommandId {
        let settlement = match became {
            Some(became) if happened => Settlement::Became(became),
            Some(_) => return self.reject(Error::invalid("settle", "became", "belongs to what happened"), None),
            None if happened => Settlement::Happened,
            None => Settlement::NotHappened { early },
        };
        self.settle(&RecordId(record), settlement).command
    }

    /// [`resume_all`](Self::resume_all), its options as JSON too.
    pub fn resume_all_text(&mut self, options: &str) -> CommandId {
        match read("resume_all", "options", options) {
            Ok(options) => self.resume_all(options).command,
            Err(error) => self.reject(error, None),
        }
    }

    /// What was seen through a session, `{"status":403}` or a word, turned into advice; `None` if this client does not follow it.
    pub fn observe_text(&mut self, session_id: &str, seen: &str, now: Now) -> Result<Option<Verdict>, Error> {
        let seen: Seen = read("observe", "seen", seen)?;
        Ok(self.observe(session_id, seen, now))
    }
}

/// Advice as JSON: `{"verdict":"keep"}`, `{"verdict":"rotate","reason"}`, `{"verdict":"rotating","reason","command"}` or
/// `{"verdict":"unsure","why"}`.
pub fn verdict_text(verdict: &Verdict) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case", tag = "verdict")]
    enum Told<'a> {
        Keep,
        Rotate { reason: &'a str },
        Rotating { reason: &'a str, command: CommandId },
        Unsure { why: &'a str },
    }
    text(&match verdict {
        Verdict::Keep => Told::Keep,
        Verdict::Rotate(reason) => Told::Rotate { reason: reason.as_str() },
        Verdict::Rotating(reason, command) => Told::Rotating { reason: reason.as_str(), command: *command },
        Verdict::Unsure(why) => Told::Unsure { why },
    })
}

/// The result of an operation as text.
fn told(result: &Result<Answered, Error>) -> Result<TakenText, Error> {
    let answered = result.as_ref().map_err(Error::clone)?;
    Ok(TakenText {
        facts: text(&FactsTold { facts: answered.facts.clone(), http_status: answered.http_status, attempts: answered.attempts }),
        view: answered.view.as_ref().map(|view| view.text().to_owned()),
        raw: answered.raw.text().to_owned(),
        phase: answered.phase.map(|phase| match phase {
            Phase::Pending => "pending",
            Phase::Ready => "ready",
            Phase::Ended => "ended",
            Phase::Unknown => "unknown",
        }),
    })
}

/// The error for an answer that does not fit the type that a host has for it; `place` says where.
pub fn misfit_text(operation: &str, taken: &TakenText, place: &str) -> Error {
    let operation = endpoint(operation).map_or("start", |endpoint| endpoint.name);
    let FactsTold { facts, http_status, attempts } = serde_json::from_str(&taken.facts).unwrap_or_default();
    let raw = taken.raw.parse().unwrap_or_default();
    super::types::misfit(operation, Answered { raw, http_status, attempts, ..Answered::of(facts) }, place)
}

/// Prices a quantity of a product of a list, both as JSON: `{"product_no","quantity","unit_price","total","currency","unit"}`.
pub fn quote_text(product: &str, quantity: &str) -> Result<String, Error> {
    let quoted = read("quote", "product", product)
        .and_then(|product| Ok((product, read("quote", "quantity", quantity)?)))
        .and_then(|(product, quantity)| quote(&product, quantity));
    quoted.map(|quoted| text(&quoted))
}

/// An event as JSON.
pub fn event_text(event: &Event) -> String {
    text(event)
}

/// An error as JSON, with its sentence as `message`.
pub fn error_text(error: &Error) -> String {
    text(error)
}

fn misuse(misuse: Misuse) -> Error {
    Error::new(Kind::Misuse, Effect::None, "resolve", misuse.to_string(), Advice::ChangeRequest)
}

pub(super) fn text(value: &impl Serialize) -> String {
    // None of these types can fail to be written.
    serde_json::to_string(value).unwrap_or_default()
}

/// Reads what a caller gave as JSON. The text may hold a key, so of serde's own sentence only a name that is none of the
/// options is repeated; of a value that does not fit only where it is.
fn read<'a, T: Deserialize<'a>>(operation: &'static str, field: &str, text: &'a str) -> Result<T, Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let (place, said) = (error.path().to_string(), error.inner().to_string());
        match (said.starts_with("unknown field"), place.as_str()) {
            (true, _) => Error::invalid(operation, field, &format!("has an {said}")),
            (false, ".") => Error::invalid(operation, field, NOT_JSON),
            (false, place) => {
                let (name, inner) = place.split_at(place.find(['.', '[']).unwrap_or(place.len()));
                let inner = inner.strip_prefix('.').unwrap_or(inner);
                let part = if inner.is_empty() { String::new() } else { format!(", and is not at `{inner}`") };
                Error::invalid(operation, name, &format!("must be a value of its type{part}"))
            }
        }
    })?;
    reader.end().map_err(|_| Error::invalid(operation, field, NOT_JSON)).map(|()| value)
}

const NOT_JSON: &str = "must be JSON of its kind";

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
    const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };

    fn json(text: &str) -> serde_json::Value {
        serde_json::from_str(text).expect(text)
    }

    #[test]
    fn options_that_do_not_fit_are_refused_by_name_and_never_repeated() {
        let refusal = |options: &str, entropy: &[u8]| json(&error_text(&Client::from_text(options, entropy).expect_err("is refused")));
        let unknown = refusal(r#"{"base_ur":"https://api.example/v1"}"#, &[7; 16]);
        assert_eq!((&unknown["kind"], &unknown["field"]), (&json("\"invalid\""), &json("\"options\"")));
        assert!(unknown["message"].as_str().is_some_and(|message| message.contains("unknown field `base_ur`")), "{unknown}");
        for (options, field) in [
            (r#"{"retry":"canary"}"#, "retry"),
            (r#"{"api_key":["canary"]}"#, "api_key"),
            (r#"{"retry":{"attempts":"canary"}}"#, "retry"),
            (r#"{} {"canary":1}"#, "options"),
            ("canary", "options"),
            ("", "options"),
        ] {
            let refused = refusal(options, &[7; 16]);
            assert!(refused["field"] == field && !refused.to_string().contains("canary"), "{refused}");
        }
        assert_eq!(refusal(OPTIONS, &[7; 15])["field"], "entropy");
        assert_eq!(refusal(r#"{"base_url":"http://api.example"}"#, &[7; 16])["field"], "base_url");
    }

    #[test]
    fn what_is_wrong_with_a_call_comes_back_as_its_result() {
        let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
        for (operation, params, options) in [
            ("get_balance", "{}", "{"),
            ("get_balance", "{}", r#"{"atempts":1}"#),
            ("get_balances", "{}", "{}"),
            ("create_session", "", "{}"),
        ] {
            let command = client.start_text(operation, params, options);
            let error = client.take_text(command.0).expect("has completed").err().expect("is refused");
            assert_eq!(json(&error_text(&error))["effect"], "none", "{error}");
        }
    }

    #[test]
    fn a_misuse_and_a_word_that_is_none_are_errors() {
        let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
        let error = client.resolve_text(9, Outcome::Store(super::super::StoreAnswer::Done), NOW).expect_err("no such step");
        assert_eq!(json(&error_text(&error))["kind"], "misuse");
        let error = client.fail_text(9, "gone", "maybe", NOW).expect_err("no such word");
        assert_eq!(json(&error_text(&error))["field"], "kind");
        let error = client.fail_text(9, "dns", "never", NOW).expect_err("no such step");
        assert_eq!(json(&error_text(&error))["kind"], "misuse");
    }

    #[test]
    fn a_cause_has_its_sentence_too() {
        let cause = Error::invalid("get_session", "x", "is wrong");
        let error =
            Error::from(crate::policy::Report { cause: Some(cause.clone()), ..Error::invalid("start", "y", "is too").into_report() });
        let told = json(&error_text(&error));
        assert_eq!(told["message"], error.to_string());
        assert_eq!(told["cause"]["message"], cause.to_string());
    }

    #[test]
    fn an_answer_that_does_not_fit_says_how_it_came() {
        let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
        let command = client.start_text("get_session", r#"{"session_id":"s-1"}"#, "{}");
        let super::super::Step::Send { id, .. } = client.poll(NOW) else { panic!("a read is sent at once") };
        let body = br#"{"success":true,"data":{"session_id":"s-1"},"meta":{"request_id":"q-1"}}"#;
        client.resolve(id, Outcome::Response { status: 206, headers: &[], body, truncated: false }, NOW).expect("is answered once");
        let Some(Ok(taken)) = client.take_text(command.0) else { panic!("the read was answered") };
        let error = json(&error_text(&misfit_text("get_session", &taken, "status")));
        let said = (&error["kind"], &error["status"], &error["attempts"], &error["request_id"], &error["session_id"]);
        assert_eq!(said, (&json("\"decode\""), &json("206"), &json("1"), &json("\"q-1\""), &json("\"s-1\"")));
    }

    #[test]
    fn what_was_settled_by_hand_has_no_answer_that_could_fit() {
        let taken = TakenText { facts: r#"{"settled":true,"attempts":0}"#.to_owned(), raw: "null".to_owned(), view: None, phase: None };
        let error = json(&error_text(&misfit_text("create_session", &taken, "anywhere")));
        assert!(error["what"].as_str().is_some_and(|what| what.contains("settled by hand")), "{error}");
        assert_eq!((&error["effect"], &error["advice"]), (&json("\"done\""), &json("\"check_account\"")));
    }

    #[test]
    fn details_stay_as_they_were_written() {
        let details = r#"{"unit":4.10,"big":12345678901234567890123}"#;
        let error =
            Error::from(crate::policy::Report { details: details.parse().ok(), ..Error::invalid("start", "x", "is wrong").into_report() });
        assert!(error_text(&error).contains(details));
    }
}
