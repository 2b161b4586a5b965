//! The events: to add one, add an entry here, and a note where it happens.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::answer::Phase;
use crate::contract::agent::{RotateReason, SessionStatus};
use crate::contract::pools::PoolHoldReason;
use crate::contract::reseller::StaticOrderStatus;
use crate::contract::{Shape, Shaped, Sink, Tell, events};
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

events! {
    /// A request will be sent again.
    Repeating = "repeating", Debug {
        /// Sends so far.
        attempts: u32,
        /// The time until the next send.
        delay_ms: Millis => Span,
        /// What came of the last send.
        because: Error,
    },
    /// The service is asked for its time, to know how old a restored key is.
    AskingTime = "asking_time", Debug,
    /// A purchase was accepted.
    Accepted = "accepted", Info {
        /// The session.
        session_id: String,
        /// What it should cost, in USD.
        estimated_charge_usd: Option<String> => Decimal,
    },
    /// A write that spends money was accepted: told once for each key, though perhaps to several processes, so count by the key.
    Charged = "charged", Info {
        /// The key, where it has one.
        idempotency_key: Option<String>,
        /// The session that it bought, or changed.
        session_id: Option<String>,
        /// The order's number.
        order_no: Option<String>,
        /// What it cost, in USD, where the answer says so.
        charged_usd: Option<String> => Decimal,
    },
    /// The session's status was read.
    Status = "status", Debug {
        /// The session.
        session_id: String,
        /// The status, as it came.
        status: String => Word(SessionStatus),
        /// What the status means for waiting.
        phase: Phase,
    },
    /// An order was accepted.
    Ordered = "ordered", Info {
        /// The order's number.
        order_no: String,
    },
    /// The order's status was read.
    OrderStatus = "order_status", Debug {
        /// The order's number.
        order_no: String,
        /// The status, as it came.
        status: String => Word(StaticOrderStatus),
        /// What the status means for waiting.
        phase: Phase,
    },
    /// Members of an answer came in two spellings with two values. The table's first spelling counts; `raw` has both.
    Differing = "differing", Warning {
        /// The members, in the spelling that counts.
        members: Vec<String>,
    },
    /// An answer has numbers of more than 28 digits, which were rounded up: the `members`.
    Rounded = "rounded", Warning {
        /// The members, in the spelling that counts.
        members: Vec<String>,
    },
    /// The price of what is to be bought was read from the authenticated list.
    Priced = "priced", Debug {
        /// USD for one unit.
        unit_price: String => Decimal,
    },
    /// The value that a read is repeated for was read, and is not as it was.
    Watched = "watched", Debug {
        /// The value now, where it is a word or a number.
        value: Option<String>,
    },
    /// A command ended in doubt; its record is kept.
    InDoubt = "in_doubt", Warning {
        /// The record.
        record: Option<RecordId>,
    },
    /// A session was ended, and a renewal of it is in doubt, which may still arrive.
    RenewalInDoubt = "renewal_in_doubt", Warning {
        /// The record.
        record: RecordId,
        /// The session.
        session_id: String,
    },
    /// A record that nothing waits for could not be saved or deleted.
    StoreFailed = "store_failed", Warning {
        /// The record.
        record: RecordId,
    },
    /// A pool does not buy for now.
    PoolHeld = "pool_held", Info {
        /// Why nothing is bought.
        reason: PoolHoldReason,
        /// When one purchase is tried; absent where somebody has to act first.
        retry_at: Option<Millis> => Time,
    },
    /// A pool buys again.
    PoolFreed = "pool_freed", Info,
    /// A pool has given a session another exit.
    PoolRotated = "pool_rotated", Debug {
        /// The session.
        session_id: String,
        /// Why: a reason of `rotate_session`, such as `captcha` or `scheduled`.
        cause: String => Word(RotateReason),
    },
    /// A lease is not back after the time that its pool says.
    LeaseLeaked = "lease_leaked", Warning {
        /// The lease.
        lease: i64,
        /// The session.
        session_id: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_of_one_name_are_of_one_shape_where_hosts_are_told_them() {
        for field in EVENTS.iter().flat_map(|event| event.fields) {
            let told = EventKind::MEMBERS.iter().find(|known| known.name == field.name).expect("is a member of all events");
            let shape = if matches!(field.shape, Shape::Word(words) if !words.closed) { Shape::Text } else { field.shape };
            assert_eq!(told.shape, shape, "{}", field.name);
        }
    }

    #[test]
    fn a_record_is_shown_by_its_name_so_that_a_host_may_name_a_file_by_it() {
        assert_eq!(format!("{}.json", RecordId("00ab-r1".to_owned())), "00ab-r1.json");
    }
}
