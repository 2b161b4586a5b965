//! The table: every type and every endpoint of both APIs, declared once, as data.
//!
//! A file under `agent/` reads like the contract it was written from. The macros in [`macros`](self) turn an entry into
//! two things and no more: a typed Rust struct, and a constant descriptor ([`Endpoint`], [`Record`], [`Words`]). The
//! engine checks and builds requests from the descriptors, and every binding prints its types and its documentation from
//! them, so to add an endpoint is to add one entry. The `doc` of each is empty without the feature `docs`, so that what is
//! shipped does not carry it.

#[macro_use]
mod macros;
pub mod agent;
mod any;
mod commands;
mod replies;
pub mod reseller;
mod sink;
mod values;

use std::hash::{Hash, Hasher};

pub use crate::json::NotJson;
pub use any::AnyRequest;
pub(crate) use any::{ANY, any};
pub use commands::{ReconcileRecord, WaitOrder, WaitSession};
pub use replies::{Candidate, REPLIES, Reconciliation, StaticOrder};
pub use sink::Sink;
pub use values::{Decimal, Json, Label, OneOrMany, Patch, Secret};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One request of the API as a typed value, and the type of its answer.
pub trait Operation: Serialize {
    /// The entry of the table.
    const ENDPOINT: &'static Endpoint;
    /// The `data` of a successful answer.
    type Output: DeserializeOwned;
}

/// Links a Rust type to its [`Shape`], so that the compiler rejects a field whose type the table can't describe.
pub trait Shaped {
    /// What the type looks like on the wire.
    const SHAPE: Shape;
    /// Whether a request without it is refused.
    const REQUIRED: bool = true;
    /// Whether a request may carry null for it, which then means something of its own.
    const NULLABLE: bool = false;
    /// Whether the value is to be left out of a request.
    fn is_absent(&self) -> bool {
        false
    }
}

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// Which of the two APIs.
    pub api: Api,
    /// The operation's name, in snake case; each host spells it in its own casing.
    pub name: &'static str,
    /// What it does, in Markdown.
    pub doc: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below the base URL, with `{field}` for each path parameter.
    pub path: &'static str,
    /// What authenticates it.
    pub auth: Auth,
    /// What may be done after a failure whose effect is unknown.
    pub safety: Safety,
    /// Whether it can charge money, so that a new key is made only when the caller asked for it.
    pub paid: bool,
    /// The parameters.
    pub request: &'static Record,
    /// The shape of `data` in the answer.
    pub response: Shape,
}

/// An operation's name is its own within its API, but for what the table does not have.
impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.api, self.name, self.method, self.safety).hash(state);
    }
}

/// The two APIs, which differ in authentication and in their envelope.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// The Agent Proxy Session API.
    #[default]
    Agent,
    /// The Reseller Backend API.
    Reseller,
}

impl Api {
    /// Its name, as part of a sentence.
    pub const fn as_str(self) -> &'static str {
        match self {
            Api::Agent => "agent",
            Api::Reseller => "reseller",
        }
    }
}

/// An HTTP method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl Method {
    /// The method as it stands in a request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }
}

/// What authenticates an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// Nothing: the key is not sent.
    Public,
    /// The `X-API-Key` header.
    Key,
    /// The `Authorization: Bearer` header, with the token of a login.
    Bearer,
}

/// What may be done after a failure whose effect is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Safety {
    /// It changes nothing: send it again.
    Safe,
    /// A repeat changes nothing more: send it again.
    Idempotent,
    /// A repeat changes nothing more, but somebody notices it: send it again once.
    TwiceAtMost,
    /// Send the same bytes with the same `Idempotency-Key`.
    Keyed,
    /// Never send it again: the operation is in doubt.
    AtMostOnce,
}

/// A type with named members: the parameters of a request, or an object of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The type's name, in upper camel case.
    pub name: &'static str,
    /// What it is, in Markdown.
    pub doc: &'static str,
    /// Its members, in the order of the contract.
    pub fields: &'static [Field],
    /// Which members must be present, a bit each.
    pub(crate) required: u64,
    /// Whether an answer may spell a member in another way.
    pub(crate) aliased: bool,
}

impl Endpoint {
    /// Whether it changes the session that it names. Telemetry does not.
    pub fn changes_session(&self) -> bool {
        let changes = matches!(self.safety, Safety::Keyed | Safety::Idempotent | Safety::TwiceAtMost);
        changes && self.request.field("session_id").is_some()
    }
}

impl Record {
    /// A record of at most 64 members, which a reader counts in one word.
    #[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, and the loop ends in time")]
    pub(crate) const fn new(name: &'static str, doc: &'static str, fields: &'static [Field]) -> Self {
        assert!(fields.len() <= 64, "a record has at most 64 members");
        let (mut required, mut aliased, mut n) = (0, false, 0);
        while n < fields.len() {
            required |= (fields[n].required as u64) << n;
            aliased |= !fields[n].aliases.is_empty();
            n += 1;
        }
        Record { name, doc, fields, required, aliased }
    }

    /// The member of that name on the wire.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A member of a [`Record`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name on the wire.
    pub name: &'static str,
    /// Other spellings of it that an answer may use, alone or beside it.
    pub aliases: &'static [&'static str],
    /// What it means, its unit and its default, in Markdown.
    pub doc: &'static str,
    /// Its type.
    pub shape: Shape,
    /// Whether it must be present.
    pub required: bool,
    /// Whether null is a value of its own, beside being left out.
    pub nullable: bool,
    /// Where a request carries it; members of an answer are in its body.
    pub place: Place,
    /// What a value must satisfy before it is sent.
    pub rules: &'static [Rule],
}

/// Where a request carries a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// One segment of the path, percent-encoded.
    Path,
    /// A query parameter, percent-encoded.
    Query,
    /// A member of the JSON body.
    Body,
    /// The whole JSON body, which is an object of the caller's own.
    Whole,
    /// The whole query, an object of the caller's own whose values are texts, numbers, `true` or `false`.
    WholeQuery,
    /// The header of that name.
    Header(&'static str),
}

/// The shape of a value on the wire.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// A string.
    Text,
    /// A string that an answer may write as a number.
    Label,
    /// A string that never prints.
    Secret,
    /// `true` or `false`.
    Bool,
    /// A whole number that a double holds exactly.
    Integer,
    /// A decimal number, kept as it was written.
    Decimal,
    /// Any JSON: the contract does not document what is inside.
    Json,
    /// One of the words of a list; an answer may hold another.
    Word(&'static Words),
    /// An object.
    Record(&'static Record),
    /// An array.
    List(&'static Shape),
    /// One value, or an array of them.
    OneOrMany(&'static Shape),
}

impl Shape {
    /// The record that describes a request; the macros call it while compiling.
    #[allow(clippy::panic, reason = "evaluated by the compiler: it is a compile error")]
    const fn record(self) -> &'static Record {
        match self {
            Shape::Record(record) => record,
            _ => panic!("a request must be a record"),
        }
    }
}

/// A list of words that the contract names.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The type's name, in upper camel case.
    pub name: &'static str,
    /// What it says, in Markdown.
    pub doc: &'static str,
    /// The words, in the order of the contract.
    pub words: &'static [Word],
}

/// A word of a list.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// The variant's name, in upper camel case.
    pub name: &'static str,
    /// The word; it is what goes over the wire, unless there is a number.
    pub word: &'static str,
    /// The number that stands for it on the wire.
    pub number: Option<i64>,
    /// What it means, in Markdown.
    pub doc: &'static str,
}

impl Word {
    /// Whether some JSON names this word: with its text, or with the number that stands for it.
    pub(crate) fn is(&self, json: &str) -> bool {
        match self.number {
            Some(number) if json.parse() == Ok(number) => true,
            _ => crate::json::text_of(json).is_some_and(|text| text == self.word),
        }
    }
}

/// What a value must satisfy before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A number above zero.
    Positive,
    /// A number of at least this.
    AtLeast(i64),
    /// A number of at least the first and at most the second.
    Between(i64, i64),
    /// A whole number when another field holds that word.
    WholeWhen(&'static str, &'static str),
    /// Required unless that other field is given.
    Unless(&'static str),
    /// The format of an email address.
    Email,
    /// The format of a UUID.
    Uuid,
    /// A text of at least the first and at most the second number of characters.
    Length(usize, usize),
    /// Letters, digits, underscores and hyphens.
    Name,
    /// Eleven digits.
    Phone,
    /// A day, `YYYY-MM-DD`.
    Date,
    /// The two letters of a country, ISO 3166.
    Country,
    /// Always sent, with this word, also where it is left out: the contract leaves no choice.
    Always(&'static str),
}

impl Rule {
    /// Whether the rule has a meaning for the shape; a table with one that has none does not compile.
    const fn fits(self, shape: Shape) -> bool {
        match self {
            Rule::Positive | Rule::AtLeast(_) | Rule::Between(..) => match shape {
                Shape::List(item) | Shape::OneOrMany(item) => matches!(item, Shape::Integer | Shape::Decimal),
                _ => matches!(shape, Shape::Integer | Shape::Decimal),
            },
            Rule::WholeWhen(..) => matches!(shape, Shape::Decimal),
            Rule::Unless(_) => true,
            Rule::Always(_) => matches!(shape, Shape::Word(_)),
            Rule::Email | Rule::Uuid | Rule::Length(..) | Rule::Name | Rule::Phone | Rule::Date | Rule::Country => {
                matches!(shape, Shape::Text | Shape::Secret)
            }
        }
    }
}

/// Every endpoint of the table.
pub fn endpoints() -> impl Iterator<Item = &'static Endpoint> {
    agent::ENDPOINTS.iter().chain(reseller::ENDPOINTS).copied().flatten().copied()
}

/// The endpoint of that name.
pub fn endpoint(name: &str) -> Option<&'static Endpoint> {
    endpoints().find(|endpoint| endpoint.name == name)
}

/// Serde asks this of every field of a request: absent is not the same as null.
pub(crate) fn is_absent<T: Shaped>(value: &T) -> bool {
    value.is_absent()
}

/// Whether every rule fits; `record!` asks while compiling.
pub(crate) const fn all_fit(rules: &[Rule], shape: Shape) -> bool {
    let mut rest = rules;
    while let [rule, tail @ ..] = rest {
        if !rule.fits(shape) {
            return false;
        }
        rest = tail;
    }
    true
}

/// The wire name of a Rust field: `r#type` is `type`.
pub(crate) const fn wire_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}
