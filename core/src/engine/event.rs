//! The events. A new event is an entry here, and a note where it happens.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::answer::Phase;
use crate::contract::agent::{RotateReason, SessionStatus};
use crate::contract::pools::PoolHoldReason;
use crate::contract::reseller::StaticOrderStatus;
use crate::contract::{Encode, Shape, Shaped, Sink, events};
use crate::policy::Error;
use crate::time::Millis;

/// The name of a record in the host's store: hexadecimal digits, `-` and `r`, so that it may be a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId(pub String);

impl Shaped for RecordId {
    const SHAPE: Shape = Shape::Text;
}

impl Encode for RecordId {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
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
        /// The number of sends.
        attempts: u32,
        /// The time until the next send.
        delay_ms: Millis => Span,
        /// The failure of the last send.
        because: Error,
    },
    /// The service's time is read, to compute the age of a restored key.
    AskingTime = "asking_time", Debug,
    /// The cheapest product that fits was chosen for a purchase.
    Chosen = "chosen", Info {
        /// The product's number.
        product_no: String,
        /// The price of one unit, in USD.
        unit_price: String => Decimal,
    },
    /// A purchase was accepted.
    Accepted = "accepted", Info {
        /// The session.
        session_id: String,
        /// The charge in USD, as the service estimates it.
        estimated_charge_usd: Option<String> => Decimal,
    },
    /// A write that spends money was accepted. A client reports each key once. Another client that resumes the purchase may report its key
    /// again, so a sum over several clients counts by the key.
    Charged = "charged", Info {
        /// The idempotency key, if there is one.
        idempotency_key: Option<String>,
        /// The session that was bought or changed.
        session_id: Option<String>,
        /// The order's number.
        order_no: Option<String>,
        /// The charge in USD, if the answer states it.
        charged_usd: Option<String> => Decimal,
    },
    /// The session's status was read.
    Status = "status", Debug {
        /// The session.
        session_id: String,
        /// The status, as it came.
        status: String => Word(SessionStatus),
        /// The meaning of the status for waiting.
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
        /// The meaning of the status for waiting.
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
    /// The price of the purchase was read from the authenticated list.
    Priced = "priced", Debug {
        /// USD for one unit.
        unit_price: String => Decimal,
    },
    /// The value that a read with `until` follows has changed.
    Watched = "watched", Debug {
        /// The value, if it is a word or a number.
        value: Option<String>,
    },
    /// A command ended in doubt; its record is kept.
    InDoubt = "in_doubt", Warning {
        /// The record.
        record: Option<RecordId>,
    },
    /// A session was ended while a renewal of it is in doubt; the renewal may still arrive.
    RenewalInDoubt = "renewal_in_doubt", Warning {
        /// The record.
        record: RecordId,
        /// The session.
        session_id: String,
    },
    /// A record that no call waits for could not be saved or deleted.
    StoreFailed = "store_failed", Warning {
        /// The record.
        record: RecordId,
    },
    /// A pool does not buy for now.
    PoolHeld = "pool_held", Info {
        /// The reason why nothing is bought.
        reason: PoolHoldReason,
        /// The time of the next attempt, with one purchase; absent if a person or the program has to act first.
        retry_at: Option<Millis> => Time,
    },
    /// A pool buys again.
    PoolFreed = "pool_freed", Info,
    /// A pool has given a session another exit.
    PoolRotated = "pool_rotated", Debug {
        /// The session.
        session_id: String,
        /// The reason, one of those of `rotate_session`, such as `captcha` or `scheduled`.
        cause: String => Word(RotateReason),
    },
    /// A lease has been out for 10 min.
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
