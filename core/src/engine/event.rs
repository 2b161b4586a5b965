//! What happens on the way of a job.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::answer::Phase;
use crate::policy::Error;
use crate::time::Millis;

/// Names a record in the host's store. Only hexadecimal digits, `-` and `r`, so it may be a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RecordId(pub String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What happened on the way.
#[derive(Debug, Clone, PartialEq, Hash, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
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
        #[serde(skip_serializing_if = "Option::is_none")]
        estimated_charge_usd: Option<String>,
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
    /// The price of what is to be bought was read from the authenticated list.
    Priced {
        /// USD for one unit.
        unit_price: String,
    },
    /// What a read is repeated for was looked at, and is not as it was.
    Watched {
        /// What is there now, where it is a word or a number.
        #[serde(skip_serializing_if = "Option::is_none")]
        value: Option<String>,
    },
    /// It ended in doubt; its record is kept.
    InDoubt {
        /// The record.
        record: Option<RecordId>,
    },
    /// A record that nothing waits for could not be saved or deleted.
    StoreFailed {
        /// The record.
        record: RecordId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_shown_by_its_name_so_that_a_host_may_name_a_file_by_it() {
        assert_eq!(format!("{}.json", RecordId("00ab-r1".to_owned())), "00ab-r1.json");
    }
}
