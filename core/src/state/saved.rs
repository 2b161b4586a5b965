//! The entries of a store, as people see them.

use serde::Deserialize;

use super::names::Name;
use super::store::Whose;
use crate::contract::{closed_enum, host_record};
use crate::engine::RecordId;
use crate::time::Millis;

host_record! {
    /// A page of a store's entries.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    pub struct SavedPage {
        /// The entries, at most 500.
        pub entries: Vec<Saved>,
        /// The name after which the next page begins; absent on the last page.
        pub after: Option<Name>,
    }
}

host_record! {
    /// An entry of the store: an operation under way or in doubt, a session, an order, an accepted write.
    #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
    pub struct Saved {
        /// The record, by its name and version.
        pub record: RecordId,
        /// The owner.
        pub whose: Whose,
        /// The operation that made the entry.
        pub operation: String,
        /// The intent: the caller's own name.
        pub intent: Option<String>,
        /// The session of the entry.
        pub session_id: Option<String>,
        /// The number of the order.
        pub order_no: Option<String>,
        /// The status of the session or of the order, when it was last read.
        pub status: Option<String>,
        /// The kind of the entry, which decides what can be done with it.
        pub holds: RecordKind,
        /// Of a record that can't be used: the reason in a word. `backend` means an operation that an app's own backend refused.
        pub reason: Option<String>,
        /// The time since when the operation is in doubt, Unix milliseconds.
        pub in_doubt_since: Option<Millis> => Time,
        /// The time from which the operation can be settled as not happened, Unix milliseconds: an hour after it was last under way.
        pub settle_from: Option<Millis> => Time,
        /// True if a person said that the operation happened, and the service has not shown its result since. Settling it again corrects
        /// that.
        pub settled: Option<bool>,
        /// Of a renewal in doubt: true if its session was ended since. The renewal may still arrive, and only resuming its record sends it
        /// again.
        pub session_over: Option<bool>,
    }
}

closed_enum! {
    /// The kind of a record.
    pub enum RecordKind {
        /// An operation that is under way, in this client or another.
        UnderWay = "under_way",
        /// An operation in doubt, which can be resumed or settled.
        InDoubt = "in_doubt",
        /// An operation in doubt that can't be sent again: it can only be settled.
        InDoubtForGood = "in_doubt_for_good",
        /// A session.
        Session = "session",
        /// An order that was accepted; its result is still open.
        Order = "order",
        /// A write that was accepted, with or without an intent: resuming it returns its answer again, or reports that its session is over.
        Accepted = "accepted",
        /// A record that can't be read, or belongs to another account: it can only be forgotten. With the reason `backend`, an operation
        /// that an app's own backend refused: only a new start of its intent sends it again.
        Refused = "refused",
    }
}
