//! What a job ends with.

use serde::{Deserialize, Serialize};

use crate::contract::Json;
use crate::wire::Facts;

/// Where a session or an order is, as far as waiting for it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Not usable yet.
    Pending,
    /// Usable.
    Ready,
    /// Over.
    Ended,
    /// The contract does not say what the status means.
    Unknown,
}

/// What a command ended with.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Answered {
    /// What the engine knows of it.
    pub facts: Facts,
    /// The whole `data`, known and unknown members alike. Null where only the facts were kept.
    pub raw: Json,
    /// The same under the names and with the words of the table, where the service wrote it in another way.
    pub view: Option<Json>,
    /// Of a session or an order, where it is; of a read with `until`, whether that holds.
    pub phase: Option<Phase>,
    /// The HTTP status that it came with; none where it was not asked for now.
    pub http_status: Option<u16>,
    /// Sends so far.
    pub attempts: u32,
}

impl Answered {
    /// What is known without a response.
    pub(crate) fn of(facts: Facts) -> Self {
        Answered { facts, raw: Json::default(), view: None, phase: None, http_status: None, attempts: 0 }
    }
}
