//! What a store holds, as people are shown it.

use serde::Deserialize;

use super::names::Name;
use super::store::Whose;
use crate::contract::{closed_enum, told};
use crate::engine::RecordId;
use crate::time::Millis;

told! {
    /// A page of what a store holds.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    pub struct SavedPage {
        /// At most 500.
        pub entries: Vec<Saved>,
        /// Where the next page begins; none where this is the last one.
        pub after: Option<Name>,
    }
}

told! {
    /// Something that the store holds: an operation under way or in doubt, a session, an order, a write that was accepted.
    #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
    pub struct Saved {
        /// Its record, by its name and version.
        pub record: RecordId,
        /// Who has it.
        pub whose: Whose,
        /// The operation that made it.
        pub operation: String,
        /// The caller's own name for it.
        pub intent: Option<String>,
        /// Its session.
        pub session_id: Option<String>,
        /// Its order's number.
        pub order_no: Option<String>,
        /// The status of the session or of the order, when it was last read.
        pub status: Option<String>,
        /// What there is to do about it.
        pub holds: Holds,
        /// Of a record that can't be used: why, in a word. `backend` is an operation that an app's own backend refused.
        pub reason: Option<String>,
        /// Since when it is in doubt, Unix milliseconds.
        pub in_doubt_since: Option<Millis> => Time,
        /// From when on it can be settled as not happened, Unix milliseconds: an hour after it was last under way.
        pub settle_from: Option<Millis> => Time,
        /// Of a renewal in doubt: whether its session was ended since. It may still arrive, and only resuming its record sends it again.
        pub session_over: Option<bool>,
    }
}

closed_enum! {
    /// What a record stands for.
    pub enum Holds {
        /// An operation that is under way, in this client or another.
        UnderWay = "under_way",
        /// An operation in doubt, which can be resumed or settled.
        InDoubt = "in_doubt",
        /// An operation in doubt that can't be sent again: it can only be settled.
        InDoubtForGood = "in_doubt_for_good",
        /// A session.
        Session = "session",
        /// An order that was accepted, and is to be waited for.
        Order = "order",
        /// A write that was accepted, with or without an intent: resuming it gives its answer again, or says that its session is over.
        Accepted = "accepted",
        /// A record that can't be read, or is another account's: it can only be forgotten. Or, with the reason `backend`, an operation that an
        /// app's own backend refused: starting its intent again sends it once more, and nothing else does.
        Refused = "refused",
    }
}
