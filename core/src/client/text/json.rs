//! The client for other languages, in JSON text: what every binding shares. A binding turns the words of its host into
//! these calls and knows nothing of the contract; what a host may show is the same text in all of them, and holds no
//! secret but the `raw` of an answer.

use std::str::FromStr;

use crate::client::public::Client;
use crate::client::requests::Settlement;
use crate::client::types::{Misuse, Outcome, Taken};
use crate::contract::{Encode, Field, MemberWriter, OptionKind, Record, Shape, Shaped, Sink, endpoint, joined, json_of, prose};
use crate::engine::{Answered, Phase, RecordId};
use crate::json::{FromJson, FromJsonError, pick, read_json};
use crate::options::{CallOptions, ClientOptions};
use crate::policy::{Advice, Effect, Error, FailureKind, Kind, Quote, Sent, quote_of};
use crate::state::{CommandId, Seen, StepId, Verdict};
use crate::time::Now;
use crate::wire::{Facts, Reading};

/// The answer of a command.
#[derive(Clone, PartialEq, Eq)]
pub struct TakenText {
    /// The facts, a JSON object, with `http_status` (where it was asked for now) and `attempts`.
    pub facts: String,
    /// The whole `data`, as the service wrote it. The text may hold secrets, so this type has no `Debug`.
    pub raw: String,
    /// The same under the names and with the words of the table, where the service wrote it in another way: what a host reads
    /// as its type.
    pub view: Option<String>,
    /// Of a session or an order: where it is.
    pub phase: Option<&'static str>,
    /// Where something in it is secret, the name of its type in the table, which says what; none where nobody documents it.
    pub type_name: Option<&'static str>,
    /// True if an undocumented member has the name of a secret.
    pub undocumented_secrets: bool,
}

/// The facts about a send beside those of its answer.
const SENDS: [Field; 2] = [
    Field::host("http_status", prose!("The HTTP status; absent where the service was not asked now."), Shape::Integer, false),
    Field::host("attempts", prose!("How often it was sent."), Shape::Integer, true),
];
static MEMBERS: [Field; Facts::FIELDS.len() + SENDS.len()] = joined(Facts::FIELDS, &SENDS);
static FACTS: Record = Record::new("AnswerFacts", prose!("What is known of an answer, beside itself."), &MEMBERS);

/// The facts about an answer beside itself, and about its sends.
#[derive(Debug, Clone, Copy)]
pub struct AnswerFacts<'a>(pub &'a Answered);

impl Shaped for AnswerFacts<'_> {
    const SHAPE: Shape = Shape::Record(&FACTS);
}

impl Encode for AnswerFacts<'_> {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        let mut members = MemberWriter::of(&FACTS, sink);
        self.0.facts.encode_members(&mut members);
        members.put(&self.0.http_status);
        members.put(&self.0.attempts);
        members.end()
    }
}

/// Reads them from JSON, such as that of a file of settings.
impl FromStr for ClientOptions {
    type Err = Error;

    fn from_str(json: &str) -> Result<Self, Error> {
        read("client", "options", json)
    }
}

/// Reads them from JSON.
impl FromStr for CallOptions {
    type Err = Error;

    fn from_str(json: &str) -> Result<Self, Error> {
        read("start", "options", json)
    }
}

#[doc(hidden)]
impl Client {
    /// A client, its options as JSON. `entropy` is 16 bytes.
    pub fn from_text(options: &str, entropy: &[u8]) -> Result<Client, Error> {
        let entropy = entropy.try_into().map_err(|_| Error::invalid("client", "entropy", "must be 16 bytes"));
        entropy.and_then(|entropy| Client::new(options.parse()?, entropy))
    }

    /// Starts an operation as [`start_json`](Self::start_json) does, its options as JSON too.
    pub fn start_text(&mut self, operation: &str, params: &str, options: &str) -> CommandId {
        match read::<CallOptions>(called(operation), "options", options) {
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
        let kind = FailureKind::of(kind).ok_or_else(|| refuse("kind"))?;
        let sent = Sent::of(sent).ok_or_else(|| refuse("sent"))?;
        self.resolve_text(step, Outcome::Failed { kind, sent }, now)
    }

    /// [`refuse_headers`](Self::refuse_headers) of a step.
    pub fn refuse_headers_text(&mut self, step: u32, rule: &str, now: Now) -> Result<(), Error> {
        self.refuse_headers(StepId(step), rule, now).map_err(misuse)
    }

    /// The result of a command that completed, once.
    pub fn take_text(&mut self, command: u32) -> Option<Result<TakenText, Error>> {
        Some(self.take_to_read(CommandId(command))?.and_then(Taken::into_text))
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

    /// Returns advice after an observation through a session, `{"status":403}` or a word; `None` if this client does not follow it.
    pub fn observe_text(&mut self, session_id: &str, seen: &str, now: Now) -> Result<Option<Verdict>, Error> {
        let seen: Seen = read("observe", "seen", seen)?;
        Ok(self.observe(session_id, seen, now))
    }
}

impl Taken {
    /// The answer as text, if it fits its type.
    fn into_text(mut self) -> Result<TakenText, Error> {
        let Reading { misfit, rewritten, beyond_doubles, undocumented_secrets } = self.answered.reading();
        if let Some(error) = misfit {
            return Err(self.unfit(*error));
        }
        let answered = self.answered;
        Ok(TakenText {
            type_name: answered.shape.type_name().filter(|_| undocumented_secrets || answered.shape.has_secrets()),
            undocumented_secrets,
            view: if rewritten || beyond_doubles { answered.view_for_doubles() } else { None },
            phase: answered.phase.map(Phase::as_str),
            facts: facts_text(&answered),
            raw: answered.raw.text().to_owned(),
        })
    }
}

/// The facts of an answer, a JSON object, with `http_status` (where it was asked for now) and `attempts`.
pub fn facts_text(answered: &Answered) -> String {
    json_of(&AnswerFacts(answered))
}

/// The error for an answer that does not fit the type that a host has for it, from its facts and `raw`; `place` says where.
pub fn misfit_text(operation: &str, facts: &str, raw: &str, place: &str) -> Error {
    let operation = called(operation);
    let [http_status, attempts] = pick(facts, ["http_status", "attempts"]).unwrap_or_default();
    let (http_status, attempts) = (http_status.and_then(|text| text.parse().ok()), attempts.and_then(|text| text.parse().ok()));
    let attempts = attempts.unwrap_or_default();
    let (facts, raw) = (read_json(facts).unwrap_or_default(), raw.parse().unwrap_or_default());
    crate::client::types::misfit(operation, Answered { raw, http_status, attempts, ..Answered::of(facts) }, place)
}

/// Prices a quantity of a product of a list, both as JSON: `{"product_no","quantity","unit_price","total","currency","unit"}`.
pub fn quote_text(product: &str, quantity: &str) -> Result<String, Error> {
    quote_from_text(product, quantity).map(|quote| json_of(&quote))
}

/// Prices a quantity of a product of a list, both as JSON.
pub fn quote_from_text(product: &str, quantity: &str) -> Result<Quote, Error> {
    let product = read("quote", "product", product)?;
    quote_of(product, read("quote", "quantity", quantity)?)
}

fn misuse(misuse: Misuse) -> Error {
    Error::new(Kind::Misuse, Effect::None, "resolve", misuse.to_string(), Advice::ChangeRequest)
}

/// Reads what a caller gave as JSON. The text may hold a key, so of what does not fit only the place is said.
fn read<T: FromJson>(operation: &'static str, field: &str, text: &str) -> Result<T, Error> {
    read_json(text).map_err(|error| refused(operation, field, &error))
}

#[cold]
fn refused(operation: &'static str, field: &str, error: &FromJsonError) -> Error {
    match error {
        FromJsonError::Unknown(name) => Error::invalid(operation, field, &format!("has an unknown field `{name}`")),
        FromJsonError::Null(place) => {
            let (name, inner) = place.split_once('.').unwrap_or((place, ""));
            let part = if inner.is_empty() { String::new() } else { format!(" at `{inner}`") };
            Error::invalid(operation, name, &format!("must not be null{part}; leave it out instead"))
        }
        FromJsonError::Misfit(place) if !place.is_empty() => {
            let (name, inner) = place.split_at(place.find(['.', '[']).unwrap_or(place.len()));
            let inner = inner.strip_prefix('.').unwrap_or(inner);
            match inner {
                "" => Error::invalid(operation, name, rule_of(name)),
                _ => Error::invalid(operation, name, &format!("must be a value of its type, and is not at `{inner}`")),
            }
        }
        FromJsonError::NotJson | FromJsonError::Misfit(_) => Error::invalid(operation, field, "must be JSON of its kind"),
    }
}

/// The operation that was called, for its error.
fn called(operation: &str) -> &'static str {
    let others = ["open_session", "wait_session", "place_order", "wait_order", "open_pool", "join_pool", "list_pools"];
    let known = others.into_iter().find(|other| *other == operation);
    endpoint(operation).map(|endpoint| endpoint.name).or(known).unwrap_or("start")
}

/// The rule of an option's type.
fn rule_of(option: &str) -> &'static str {
    let known = CallOptions::OPTIONS.iter().chain(ClientOptions::OPTIONS).find(|entry| entry.name == option);
    match known.and_then(|entry| entry.kind) {
        Some(OptionKind::Text | OptionKind::Secret) => "must be a text",
        Some(OptionKind::Flag | OptionKind::FlagOn) => "must be true or false",
        Some(OptionKind::Count | OptionKind::Time) => "must be a whole number",
        Some(OptionKind::Decimal) => "must be a decimal number of at most 28 digits",
        Some(OptionKind::Headers) => "must be texts by the names of headers",
        Some(OptionKind::Texts) => "must be a list of texts",
        Some(OptionKind::IfEnded) => "must be one of error, buy",
        Some(OptionKind::Product) => "must be a choice of a product, as `cheapest` makes it",
        Some(OptionKind::Until | OptionKind::UseWith) | None => "must be a value of its type",
    }
}

#[cfg(test)]
mod tests;
