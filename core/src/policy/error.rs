//! The failures of operations.

use std::fmt;

use super::codes::Advice;
use crate::contract::pools::PoolReason;
use crate::contract::{Encode, Field, Json, MemberWriter, Record, Shape, Shaped, Sink, closed_enum, host_record, joined, prose};
use crate::time::Millis;

closed_enum! {
    /// The kind of a failure. The list is closed: a program can match all of it.
    pub enum Kind {
        /// Refused by this client before anything was sent.
        Invalid = "invalid",
        /// Refused by the service or by an app's own backend. Also refused by this client before anything was sent, as
        /// [`Error::is_refused_by_us`] tells: by the caller's own cap or price limit, for a product without a price, a backend that is not
        /// ready, a `reconcile` that has nothing to look up, a `resume` of an operation that an app's own backend refused, a `settle` that
        /// came too early, a `forget` of a session that this client holds, or a record that has changed since the caller read it. The
        /// operation did not take effect, unless the effect is [`Effect::Done`]: then a read that follows it was refused.
        Refused = "refused",
        /// The service could not be reached or failed. The operation did not take effect, unless the effect is [`Effect::Done`]: then a
        /// read that follows it failed.
        Unavailable = "unavailable",
        /// The operation may have taken effect; nothing has decided it yet.
        InDoubt = "in_doubt",
        /// The response was not in the API's format, such as a gateway's error page.
        Protocol = "protocol",
        /// The operation took effect, but the answer does not fit its type; `raw` keeps it.
        Decode = "decode",
        /// Another command or another client of the store owns the intent, the key, or a change of the same session that is under way or in
        /// doubt.
        Busy = "busy",
        /// The caller cancelled the operation, or its client was closed.
        Cancelled = "cancelled",
        /// The store could not do a step that has to come first, or its entry of that name can't be read.
        Store = "store",
        /// The session of the intent is over, and nothing was bought.
        Ended = "ended",
        /// The session was not usable at the deadline, and goes on. The effect is [`Effect::Done`] if the session was bought, by this call
        /// or an earlier one of its intent. Under an intent, or a key that its caller gave, the next start goes on
        /// with the session.
        NotReady = "not_ready",
        /// The library was used in a way that is not allowed.
        Misuse = "misuse",
    }
}

closed_enum! {
    /// The effect of this call. Other calls under the same intent are not meant, with one exception: a start with an intent or a given key
    /// has the effect `unknown` if it ended before the store was asked for that name, because the store failed or the start was cancelled,
    /// since an earlier start may have taken effect.
    pub enum Effect {
        /// The call had no effect and will have none.
        None = "none",
        /// Nothing has decided yet whether the call took effect.
        Unknown = "unknown",
        /// The call took effect.
        Done = "done",
    }
}

/// A failure, with everything that a person or a program needs to decide what to do next. An error holds no secret. Its facts are in its
/// [`ErrorFields`], whose fields can be read directly from the error.
#[derive(Clone, PartialEq, Hash)]
pub struct Error(Box<Said>);

#[derive(Clone, PartialEq, Hash)]
struct Said {
    fields: ErrorFields,
    /// Milliseconds until `retry_at` at the end of the command.
    retry_in: Option<Millis>,
}

host_record! {
    /// The fields of an [`Error`].
    #[derive(Clone, PartialEq, Hash)]
    pub struct ErrorFields {
        /// The kind of failure.
        pub kind: Kind,
        /// The effect of the operation.
        pub effect: Effect,
        /// The operation.
        pub operation: &'static str,
        /// The failure in our words, as the middle of a sentence.
        pub what: String,
        /// The next step.
        pub advice: Advice,
        /// The field that was refused; for `decode`, the place in the answer that does not fit, such as `data.items[3].price`.
        pub field: Option<String>,
        /// The service's code, as it came.
        pub code: Option<String>,
        /// The HTTP status.
        pub status: Option<u16>,
        /// The service's own text, whose beginning is part of the sentence; or the beginning of a body that is not in the API's format.
        pub text: Option<String>,
        /// The content type of such a body.
        pub content_type: Option<String>,
        /// The service's details, as they came.
        pub details: Option<Json>,
        /// The request id, to quote when reporting a problem.
        pub request_id: Option<String>,
        /// The idempotency key of the last send.
        pub idempotency_key: Option<String>,
        /// The caller's own name for the operation: its intent.
        pub intent: Option<String>,
        /// The session of the operation, where it is known.
        pub session_id: Option<String>,
        /// The order of the operation, where its number is known.
        pub order_no: Option<String>,
        /// The record to resume the operation by.
        pub record: Option<String>,
        /// Of `unavailable` from a pool: the reason.
        pub reason: Option<PoolReason>,
        /// The earliest time to try again, Unix milliseconds.
        pub retry_at: Option<Millis> => Time,
        /// The number of sends.
        pub attempts: u32,
        /// The `data` of a success that does not fit its type; of [`Kind::NotReady`], of the last read of the session. The value may hold secrets.
        pub raw: Option<Json>,
        /// The first failure, if this one came from a later send.
        pub cause: Option<Error>,
    }
}

/// The code with which the service refuses a request without a key that it knows.
pub(crate) const INVALID_KEY: &str = "AUTH_INVALID_KEY";
/// The code with which the service says that the account has no such session.
pub(crate) const SESSION_NOT_FOUND: &str = "SESSION_NOT_FOUND";

impl Error {
    /// Returns true if the service says that the account has no such session.
    pub(crate) fn is_session_missing(&self) -> bool {
        self.code.as_deref() == Some(SESSION_NOT_FOUND)
    }

    /// An error with only the facts that every error has.
    pub(crate) fn new(kind: Kind, effect: Effect, operation: &'static str, what: impl Into<String>, advice: Advice) -> Self {
        Error::from(ErrorFields {
            kind,
            effect,
            operation,
            what: what.into(),
            advice,
            field: None,
            code: None,
            status: None,
            text: None,
            content_type: None,
            details: None,
            request_id: None,
            idempotency_key: None,
            intent: None,
            session_id: None,
            order_no: None,
            record: None,
            reason: None,
            retry_at: None,
            attempts: 0,
            raw: None,
            cause: None,
        })
    }

    /// Says that the operation was not sent again, for one that was sent before.
    pub(crate) fn not_again(mut self) -> Self {
        self.what = self.what.replacen("was not sent,", "was not sent again,", 1);
        self
    }

    /// Returns true if a read that failed with this error may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        let passing = self.status.is_none_or(|status| (200..300).contains(&status) || super::is_passing_read(status));
        self.kind == Kind::Unavailable || (self.kind == Kind::Protocol && passing)
    }

    /// Sets what else is known of it.
    pub(crate) fn with(mut self, set: impl FnOnce(&mut ErrorFields)) -> Self {
        set(&mut self);
        self
    }

    /// Takes the fields, to change some of them.
    pub(crate) fn into_fields(self) -> ErrorFields {
        self.0.fields
    }

    /// Sets the time of the message, which then states how long it is until `retry_at`.
    pub(crate) fn said_at(mut self, unix: Millis) -> Self {
        self.0.retry_in = self.retry_at.map(|at| at.saturating_sub(unix));
        self
    }

    /// A request that was refused before it was sent.
    pub(crate) fn invalid(operation: &'static str, field: &str, rule: &str) -> Self {
        let what = format!("`{field}` {rule}");
        Error::from(ErrorFields {
            field: Some(field.to_owned()),
            ..Error::new(Kind::Invalid, Effect::None, operation, what, Advice::ChangeRequest).into_fields()
        })
    }

    /// Returns true if the kind is [`Kind::Refused`] and this client refused the operation, without an answer of the service: by the
    /// caller's own cap or price limit, for a product without a price, a backend that is not ready, a `reconcile` that has nothing to look
    /// up, a `resume` of an operation that an app's own backend refused, a `settle` that came too early, a `forget` of a session that this
    /// client holds, or a record that has changed since the caller read it. In JSON this is `"refused_by_us": true`, and absent otherwise.
    pub fn is_refused_by_us(&self) -> bool {
        self.kind == Kind::Refused && self.status.is_none()
    }

    /// The part of the sentence about money, if there is one.
    fn about_effect(&self) -> &'static str {
        let paid = crate::contract::endpoint(self.operation).is_some_and(|endpoint| endpoint.paid);
        // Another call under the same name may have bought.
        let of_this_call = matches!(self.kind, Kind::Busy | Kind::Ended)
            || matches!(self.field.as_deref(), Some("intent" | "idempotency_key" | "use_with"));
        match (self.effect, paid) {
            (Effect::None, true) if of_this_call => "this call bought nothing",
            (Effect::None, false) if of_this_call => "this call changed nothing",
            (Effect::None, true) => "nothing was charged",
            (Effect::None, false) => "nothing was changed",
            (Effect::Unknown, true) => "money may have moved",
            (Effect::Unknown, false) => "it may have taken effect",
            (Effect::Done, _) => "it took effect",
        }
    }
}

/// The members of an error that hosts get beside its fields.
const TOLD: [Field; 2] = [
    Field::host("message", prose!("One sentence: what happened, whether money may have moved, what to do next."), Shape::Text, true),
    Field::host(
        "refused_by_us",
        prose!(
            "Of the kind `refused`: whether this client refused it, and not the service: for a cap or price limit of your own, an account that"
            "is not ready, a `settle` that came too early, a `forget` of a session that this client holds, a record that has changed, a"
            "`resume` of what an app's own backend refused, or a `reconcile` that has nothing to look up."
        ),
        Shape::Bool,
        false,
    ),
];
static MEMBERS: [Field; 24] = joined(&TOLD, ErrorFields::FIELDS);
/// The record of an error for hosts.
pub static ERROR: Record = Record::new(
    "ErrorFields",
    prose!("A failure, with all that is needed to decide what to do next: `kind` says what happened, `effect` whether it took effect."),
    &MEMBERS,
);

impl Shaped for Error {
    const SHAPE: Shape = Shape::Error;
}

/// Writes the fields, and the sentence as `message`; for a cause, too.
impl Encode for Error {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        let mut members = MemberWriter::of(&ERROR, sink);
        members.put(&self.to_string());
        members.put(&self.is_refused_by_us());
        self.0.fields.encode_members(&mut members);
        members.end()
    }
}

impl From<ErrorFields> for Error {
    fn from(fields: ErrorFields) -> Self {
        Error(Box::new(Said { fields, retry_in: None }))
    }
}

impl std::ops::Deref for Error {
    type Target = ErrorFields;

    fn deref(&self) -> &ErrorFields {
        &self.0.fields
    }
}

impl std::ops::DerefMut for Error {
    fn deref_mut(&mut self) -> &mut ErrorFields {
        &mut self.0.fields
    }
}

/// Writes one sentence: what happened to which operation, whether money may have moved, what to do next.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation)?;
        if let Some(intent) = &self.intent {
            write!(f, " `{}`", one_line(intent))?;
        }
        write!(f, ": {}", one_line(&self.what))?;
        match (&self.code, self.status) {
            (Some(code), Some(status)) => write!(f, " ({}, HTTP {status})", one_line(code))?,
            (None, Some(status)) => write!(f, " (HTTP {status})")?,
            _ => {}
        }
        write!(f, "; {}; ", self.about_effect())?;
        match (self.advice, self.0.retry_in.map(Wait)) {
            (Advice::Wait | Advice::RetryLater, Some(wait)) => write!(f, "try again in {wait}"),
            (Advice::Resume, Some(wait)) => write!(f, "in {wait}, {}", self.advice),
            _ => write!(f, "{}", self.advice),
        }
    }
}

/// A wait in milliseconds, for a sentence: never rounded down.
struct Wait(Millis);

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            ..=120_000 => (1000, "s"),
            120_001..=7_200_000 => (60_000, "min"),
            7_200_001..=172_800_000 => (3_600_000, "h"),
            _ => (86_400_000, "days"),
        };
        let whole = self.0.div_euclid(unit).saturating_add(i64::from(self.0.rem_euclid(unit) > 0));
        write!(f, "{} {name}", whole.max(1))
    }
}

/// Writes the sentence and the facts that a problem report needs: a program that ends with an error prints this.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self} [{:?}, attempts {}", self.kind, self.attempts)?;
        let more = [
            ("request", &self.request_id),
            ("key", &self.idempotency_key),
            ("session", &self.session_id),
            ("order", &self.order_no),
            ("record", &self.record),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                write!(f, ", {name} {value}")?;
            }
        }
        if let Some(cause) = &self.cause {
            write!(f, ", after: {cause}")?;
        }
        f.write_str("]")
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.cause.as_ref().map(|cause| cause as _)
    }
}

/// A text on one line, without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    let words = text.split(|c: char| c.is_whitespace() || is_hidden(c)).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
