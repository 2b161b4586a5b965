//! What a store holds, as people are shown it.

use serde::{Deserialize, Serialize};

use super::names::Name;
use super::store::Whose;
use crate::engine::RecordId;
use crate::time::Millis;

/// A page of what a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedPage {
    /// At most 500.
    pub entries: Vec<Saved>,
    /// Where the next page begins; none where this is the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Name>,
}

/// Something that the store holds: an operation under way or in doubt, a session, an order, a write that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Its record, by its name and version.
    pub record: RecordId,
    /// Who has it.
    pub whose: Whose,
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
    /// Of a record that can't be used: why, in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Since when it is in doubt, Unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_doubt_since: Option<Millis>,
    /// From when on it can be settled as not happened, Unix milliseconds: an hour after it was last under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settle_from: Option<Millis>,
}

/// What a record stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// An operation that is under way, in this client or another.
    UnderWay,
    /// An operation in doubt, which can be resumed or settled.
    InDoubt,
    /// An operation in doubt that can't be sent again: it can only be settled.
    InDoubtForGood,
    /// A session.
    Session,
    /// An order that was accepted, and is to be waited for.
    Order,
    /// A write that was accepted, with or without an intent: resuming it gives its answer again, or says that its session is over.
    Accepted,
    /// A record that can't be read, or is another account's: it can only be forgotten.
    Refused,
}
