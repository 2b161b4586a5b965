//! What is kept beside jobs, sessions and intents: records that were refused, and results that nobody took; and how all of it is
//! shown to people.

use serde::Serialize;

use super::intents::{Accepted, KEPT_RAW};
use super::record::BadRecord;
use crate::contract::{Safety, endpoint};
use crate::engine::{Answered, RecordId};
use crate::policy::{Effect, Error};
use crate::time::Millis;

/// Something that the store holds: a purchase in doubt, a session, an intent that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Saved {
    /// Its record.
    pub record: RecordId,
    /// The operation that made it.
    pub operation: String,
    /// The caller's own name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<String>,
    /// Its session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its order's number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order_no: Option<String>,
    /// The status of the session or of the order, when it was last read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What there is to do about it.
    pub holds: Holds,
    /// Of a record that was refused: why, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Since when it is in doubt, Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_doubt_since: Option<Millis>,
}

/// What a record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// An operation under way in this client.
    UnderWay,
    /// An operation in doubt, which can be resumed or settled.
    InDoubt,
    /// An operation in doubt that can't be sent again: it can only be settled.
    InDoubtForGood,
    /// A session.
    Session,
    /// An order that was accepted, and is to be watched.
    Order,
    /// An intent that was accepted, and all that is left of it: its session, if it had one, is over.
    Accepted,
    /// A record that was refused: it can only be forgotten.
    Refused,
}

/// A record that was refused.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Refused {
    pub(crate) bad: BadRecord,
    /// The caller's own name for what it stands for, as far as it can be read.
    pub(crate) intent: Option<String>,
}

/// What became of an operation whose caller was gone.
#[derive(Debug, Clone, Hash)]
pub(crate) enum Untaken {
    /// It was done.
    Done(Box<Accepted>),
    /// It is not known whether it was done, and it can't be sent again.
    Unknown { operation: &'static str, error: Box<Error> },
}

impl Untaken {
    /// What is worth keeping of a result. A read is not, nor what had no effect.
    pub(crate) fn of(operation: &'static str, result: Result<Answered, Error>) -> Option<Untaken> {
        if endpoint(operation).is_some_and(|endpoint| endpoint.safety == Safety::Safe) {
            return None;
        }
        let done = |facts, raw| Accepted {
            fingerprint: String::new(),
            operation,
            facts,
            raw,
            record: None,
            opened: false,
            at: 0,
            finished_at: None,
            since: None,
        };
        match result {
            Ok(Answered { facts, raw, .. }) => {
                let raw = (raw.text().len() <= KEPT_RAW).then_some(raw);
                Some(Untaken::Done(Box::new(done(facts, raw))))
            }
            Err(error) if error.effect == Effect::None => None,
            Err(error) => Some(Untaken::Unknown { operation, error: Box::new(error) }),
        }
    }

    /// As [`Client::saved`] shows it.
    pub(crate) fn shown(&self, record: &RecordId) -> Saved {
        let (operation, session_id, order_no, status, holds) = match self {
            Untaken::Done(done) => {
                let facts = done.facts.clone();
                (done.operation, facts.session_id, facts.order_no, facts.status, Holds::Accepted)
            }
            Untaken::Unknown { operation, error } => {
                (*operation, error.session_id.clone(), error.order_no.clone(), None, Holds::InDoubtForGood)
            }
        };
        let record = record.clone();
        Saved {
            record,
            operation: operation.to_owned(),
            intent: None,
            session_id,
            order_no,
            status,
            holds,
            reason: None,
            in_doubt_since: None,
        }
    }
}
