//! The table: every type and every endpoint of both APIs, declared once, as data.
//!
//! A file under `agent/` reads like the contract it was written from. The macros in [`macros`](self) turn an entry into a Rust type, which
//! a [`Sink`] can receive, and a constant descriptor ([`Endpoint`], [`Record`], [`Words`]). The engine checks and builds requests from the
//! descriptors, and every binding prints its types and its documentation from them, so a new endpoint is one new entry. The `doc` of each
//! is empty without the feature `docs`, so that shipped builds do not carry it.

#[macro_use]
mod macros;
pub mod agent;
mod any;
mod choice;
mod commands;
mod encode;
mod events;
pub(crate) mod exceptions;
mod options;
pub mod pools;
mod replies;
pub mod reseller;
mod shape;
mod sink;
mod text;
mod values;

use std::hash::{Hash, Hasher};

pub use crate::json::NotJson;
pub use any::AnyRequest;
pub(crate) use any::{ANY, any};
pub use choice::Cheapest;
pub use commands::{ReconcileRecord, WaitOrder, WaitSession};
pub use encode::Encode;
pub(crate) use encode::MemberWriter;
pub use events::{EventEntry, Level};
pub(crate) use events::{count_members, events, members_of_all, position};
pub(crate) use macros::{closed_enum, host_record, prose, stored, written};
pub use options::{OptionEntry, OptionKind, Taker};
pub(crate) use options::{at_least_0, at_least_1, checked, only_one, options};
pub use replies::{Candidate, REPLIES, Reconciliation, StaticOrder};
pub use shape::{Field, FieldPlace, FieldRule, Record, Shape, Word, Words};
pub(crate) use shape::{all_fit, joined};
pub use sink::Sink;
pub(crate) use text::fits_double;
pub use text::{Text, json_of};
pub use values::{Decimal, Json, Label, OneOrMany, Patch, Secret};

use serde::de::DeserializeOwned;

/// One request of the API as a typed value, and the type of its answer.
pub trait Operation: Encode {
    /// The entry of the table.
    const ENDPOINT: &'static Endpoint;
    /// The `data` of a successful answer.
    type Output: DeserializeOwned;
}

/// Links a Rust type to its [`Shape`], so that the compiler rejects a field whose type the table can't describe.
pub trait Shaped {
    /// The type's shape on the wire.
    const SHAPE: Shape;
    /// True if a request without the value is refused.
    const REQUIRED: bool = true;
    /// True if a request may carry null for the value, with a meaning of its own.
    const NULLABLE: bool = false;
    /// Returns true if a request leaves the value out.
    fn is_absent(&self) -> bool {
        false
    }
}

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// The API.
    pub api: Api,
    /// The operation's name, in snake case; each host spells it in its own casing.
    pub name: &'static str,
    /// The description, in Markdown.
    pub doc: &'static str,
    /// The HTTP method.
    pub method: Method,
    /// The path below the base URL, with `{field}` for each path parameter.
    pub path: &'static str,
    /// The authentication.
    pub auth: Auth,
    /// The repeats that are allowed after a failure whose effect is unknown.
    pub safety: Safety,
    /// True if the operation can charge money, so that a new key is made only if the caller asked for it.
    pub paid: bool,
    /// The parameters.
    pub request: &'static Record,
    /// The shape of `data` in the answer.
    pub response: Shape,
}

/// The name of an operation is unique within its API, except for requests outside the table.
impl Hash for Endpoint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.api, self.name, self.method, self.safety).hash(state);
    }
}

closed_enum! {
    /// The two APIs, which differ in authentication and in their envelope.
    pub enum Api {
        /// The Agent Proxy Session API.
        Agent = "agent",
        /// The Reseller Backend API.
        Reseller = "reseller",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes the enum")]
impl Default for Api {
    fn default() -> Self {
        Api::Agent
    }
}

closed_enum! {
    /// An HTTP method.
    pub enum Method {
        /// `GET`
        Get = "GET",
        /// `POST`
        Post = "POST",
        /// `PUT`
        Put = "PUT",
        /// `PATCH`
        Patch = "PATCH",
        /// `DELETE`
        Delete = "DELETE",
    }
}

/// The authentication of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// No authentication: the key is not sent.
    Public,
    /// The `X-API-Key` header.
    Key,
    /// The `Authorization: Bearer` header, with the token of a login.
    Bearer,
}

closed_enum! {
    /// The repeats that are allowed after a failure whose effect is unknown.
    pub enum Safety {
        /// The operation changes nothing: send it again.
        Safe = "safe",
        /// A repeat changes nothing more: send it again.
        Idempotent = "idempotent",
        /// A repeat changes nothing more, but people notice it, such as a second mail: send it again once.
        TwiceAtMost = "twice_at_most",
        /// Send the same bytes with the same `Idempotency-Key`.
        Keyed = "keyed",
        /// Never send it again: the operation is in doubt.
        AtMostOnce = "at_most_once",
    }
}

impl Endpoint {
    /// Returns true if the operation changes the session that it names. Telemetry does not.
    pub fn changes_session(&self) -> bool {
        let changes = matches!(self.safety, Safety::Keyed | Safety::Idempotent | Safety::TwiceAtMost);
        changes && self.request.field("session_id").is_some()
    }

    /// Returns true if the operation spends money. A top-up is paid but does not spend.
    pub fn spends(&self) -> bool {
        self.paid && !matches!(self.name, "create_recharge" | "create_usdt_order")
    }

    /// Returns true if the operation changes a session and costs nothing.
    pub(crate) fn is_free_change(&self) -> bool {
        self.changes_session() && !self.paid
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

/// Serde calls this for every field of a request: absent and null differ.
pub(crate) fn is_absent<T: Shaped>(value: &T) -> bool {
    value.is_absent()
}

/// The wire name of a Rust field: `r#type` is `type`.
pub(crate) const fn wire_name(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}
