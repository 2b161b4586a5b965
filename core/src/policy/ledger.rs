//! The ledger of one idempotency key. A key is the only thing between a lost answer and a second purchase.

use crate::time::Millis;

/// A key is sent again only while it is younger than this: the service keeps its answers for 24 hours, a message may be
/// delayed by an hour, and the rest is room for clocks.
pub(crate) const KEY_WINDOW: Millis = 22 * 3600 * 1000;

/// The state of one key, or of the sends of an operation without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    /// The key.
    pub(crate) key: Option<String>,
    /// True if the caller gave the key: then it is never replaced.
    pub(crate) given: bool,
    /// True if some send of this key has no answer that settles it.
    pub(crate) unanswered: bool,
    /// True if a settled answer of an earlier key left open that the supplier sold all the same.
    pub(crate) may_have_sold: bool,
    /// True if that answer was this key's own.
    pub(crate) failed: bool,
    /// `request_id` of the last 429: a second one with the same id is a stored replay.
    pub(crate) throttled_by: Option<String>,
    /// Sends of this key, settled or not.
    pub(crate) sends: u32,
    /// True if an app's own backend refused the key, and the service has not settled it since.
    pub(crate) refused: bool,
}

impl Ledger {
    /// A ledger before the first send. A key that the caller gave may have been sent before, by any program.
    pub(crate) fn new(key: Option<String>, given: bool) -> Self {
        Ledger { key, given, unanswered: given, may_have_sold: false, failed: false, throttled_by: None, sends: 0, refused: false }
    }

    /// A ledger after a crash: the outcome of the last send is unknown, whatever the record says.
    pub(crate) fn restored(key: Option<String>, given: bool, may_have_sold: bool) -> Self {
        Ledger { key, given, unanswered: true, may_have_sold, failed: false, throttled_by: None, sends: 1, refused: false }
    }

    /// Replaces a settled key by a new one; doubts of the old one stay.
    pub(crate) fn replace(&mut self, key: String) {
        *self = Ledger { may_have_sold: self.may_have_sold, ..Ledger::new(Some(key), false) };
    }

    /// Returns true if the operation may have taken effect.
    pub(crate) fn is_open(&self) -> bool {
        self.unanswered || self.may_have_sold
    }
}
