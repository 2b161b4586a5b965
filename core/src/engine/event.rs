//! What happens on the way of a job.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::answer::Phase;
use crate::contract::pools::PoolHoldReason;
use crate::contract::{Shape, Shaped, Sink, Tell, closed_enum};
use crate::policy::Error;
use crate::time::Millis;

/// Names a record in the host's store. Only hexadecimal digits, `-` and `r`, so it may be a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId(pub String);

impl Shaped for RecordId {
    const SHAPE: Shape = Shape::Text;
}

impl Tell for RecordId {
    fn tell<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.0, false)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happened on the way.
#[derive(Debug, Clone, PartialEq, Hash)]
pub enum EventKind {
    /// It will be sent again.
    Repeating {
        /// Sends so far.
        attempts: u32,
        /// Milliseconds until then.
        delay_ms: Millis,
        /// What came of the last send.
        because: Error,
    },
    /// The service is asked for its time, to know how old a restored key is.
    AskingTime,
    /// The purchase was accepted.
    Accepted {
        /// The session.
        session_id: String,
        /// USD, as it was written.
        estimated_charge_usd: Option<String>,
    },
    /// A write that spends money was accepted: once for each key. Who counts what several processes are told counts by the key.
    Charged {
        /// The key, where it has one.
        idempotency_key: Option<String>,
        /// The session that it bought, or changed.
        session_id: Option<String>,
        /// The number of the order.
        order_no: Option<String>,
        /// USD, as it was written, where the answer says so.
        charged_usd: Option<String>,
    },
    /// The session's status was read.
    Status {
        /// The session.
        session_id: String,
        /// As it came.
        status: String,
        /// What it means for waiting.
        phase: Phase,
    },
    /// The order was accepted.
    Ordered {
        /// Its number.
        order_no: String,
    },
    /// The order's status was read.
    OrderStatus {
        /// Its number.
        order_no: String,
        /// As it came.
        status: String,
        /// What it means for waiting.
        phase: Phase,
    },
    /// Members of an answer came in two spellings with two values. The table's first spelling counts; `raw` has both.
    Differing {
        /// Where, in the table's spelling.
        members: Vec<String>,
    },
    /// An answer has numbers of more than 28 digits, which were rounded up.
    Rounded {
        /// Their names.
        members: Vec<String>,
    },
    /// The price of what is to be bought was read from the authenticated list.
    Priced {
        /// USD for one unit.
        unit_price: String,
    },
    /// What a read is repeated for was looked at, and is not as it was.
    Watched {
        /// What is there now, where it is a word or a number.
        value: Option<String>,
    },
    /// It ended in doubt; its record is kept.
    InDoubt {
        /// The record.
        record: Option<RecordId>,
    },
    /// A session was ended, and a renewal of it is in doubt, which may still arrive.
    RenewalInDoubt {
        /// The record of the renewal.
        record: RecordId,
        /// The session.
        session_id: String,
    },
    /// A record that nothing waits for could not be saved or deleted.
    StoreFailed {
        /// The record.
        record: RecordId,
    },
    /// A pool does not buy for now.
    PoolHeld {
        /// Why.
        reason: PoolHoldReason,
        /// When one purchase is tried, Unix milliseconds; none before somebody acts.
        retry_at: Option<Millis>,
    },
    /// A pool buys again.
    PoolFreed,
    /// A pool has given a session another exit.
    PoolRotated {
        /// The session.
        session_id: String,
        /// Why, in the words of a rotation.
        cause: String,
    },
    /// A lease is not back after the time that its pool says.
    LeaseLeaked {
        /// The lease.
        lease: i64,
        /// Its session.
        session_id: String,
    },
}

closed_enum! {
    /// What happened.
    pub enum EventName {
        /// It will be sent again.
        Repeating = "repeating",
        /// The service is asked for its time, to know how old a restored key is.
        AskingTime = "asking_time",
        /// A purchase was accepted.
        Accepted = "accepted",
        /// A write that spends money was accepted: once for each key. Who counts what several processes are told counts by the key.
        Charged = "charged",
        /// The session's status was read.
        Status = "status",
        /// An order was accepted.
        Ordered = "ordered",
        /// The order's status was read.
        OrderStatus = "order_status",
        /// Members of an answer came in two spellings with two values. The table's first spelling counts; `raw` has both.
        Differing = "differing",
        /// An answer has numbers of more than 28 digits, which were rounded up: the `members`.
        Rounded = "rounded",
        /// The price of what is to be bought was read from the authenticated list.
        Priced = "priced",
        /// What a read is repeated for was read, and is not as it was.
        Watched = "watched",
        /// It ended in doubt; its record is kept.
        InDoubt = "in_doubt",
        /// A session was ended, and a renewal of it is in doubt, which may still arrive.
        RenewalInDoubt = "renewal_in_doubt",
        /// A record that nothing waits for could not be saved or deleted.
        StoreFailed = "store_failed",
        /// A pool does not buy for now.
        PoolHeld = "pool_held",
        /// A pool buys again.
        PoolFreed = "pool_freed",
        /// A pool has given a session another exit.
        PoolRotated = "pool_rotated",
        /// A lease is not back after the time that its pool says.
        LeaseLeaked = "lease_leaked",
    }
}

impl EventKind {
    /// What happened, in a word.
    pub fn name(&self) -> EventName {
        match self {
            EventKind::Repeating { .. } => EventName::Repeating,
            EventKind::AskingTime => EventName::AskingTime,
            EventKind::Accepted { .. } => EventName::Accepted,
            EventKind::Charged { .. } => EventName::Charged,
            EventKind::Status { .. } => EventName::Status,
            EventKind::Ordered { .. } => EventName::Ordered,
            EventKind::OrderStatus { .. } => EventName::OrderStatus,
            EventKind::Differing { .. } => EventName::Differing,
            EventKind::Rounded { .. } => EventName::Rounded,
            EventKind::Priced { .. } => EventName::Priced,
            EventKind::Watched { .. } => EventName::Watched,
            EventKind::InDoubt { .. } => EventName::InDoubt,
            EventKind::RenewalInDoubt { .. } => EventName::RenewalInDoubt,
            EventKind::StoreFailed { .. } => EventName::StoreFailed,
            EventKind::PoolHeld { .. } => EventName::PoolHeld,
            EventKind::PoolFreed => EventName::PoolFreed,
            EventKind::PoolRotated { .. } => EventName::PoolRotated,
            EventKind::LeaseLeaked { .. } => EventName::LeaseLeaked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_shown_by_its_name_so_that_a_host_may_name_a_file_by_it() {
        assert_eq!(format!("{}.json", RecordId("00ab-r1".to_owned())), "00ab-r1.json");
    }
}
