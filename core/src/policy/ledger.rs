//! What is known of one idempotency key. A key is the only thing between a lost answer and a second purchase.

use crate::time::Millis;

/// A key is sent again only while it is younger than this: the service keeps its answers for 24 hours, a message may be
/// delayed by an hour, and the rest is room for clocks.
pub(crate) const KEY_WINDOW: Millis = 22 * 3600 * 1000;

/// The state of one key, or of the sends of an operation without one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    /// The key.
    pub(crate) key: Option<String>,
    /// Whether the caller gave it: then it is never replaced.
    pub(crate) given: bool,
    /// Whether some send of this key has no answer that settles it.
    pub(crate) unanswered: bool,
    /// Whether a settled answer of an earlier key left open that the supplier sold all the same.
    pub(crate) may_have_sold: bool,
    /// Whether that answer was this key's own.
    pub(crate) failed: bool,
    /// `request_id` of the last 429: a second one with the same id is a stored replay.
    pub(crate) throttled_by: Option<String>,
    /// Sends of this key, settled or not.
    pub(crate) sends: u32,
    /// Whether an app's own backend refused it, and the service has not settled it since.
    pub(crate) refused: bool,
}

impl Ledger {
    /// Before anything was sent. A key that the caller gave may have been sent before, by whoever had it.
    pub(crate) fn new(key: Option<String>, given: bool) -> Self {
        Ledger { key, given, unanswered: given, may_have_sold: false, failed: false, throttled_by: None, sends: 0, refused: false }
    }

    /// After a crash: nobody knows what became of the last send, whatever the record says.
    pub(crate) fn restored(key: Option<String>, given: bool, may_have_sold: bool) -> Self {
        Ledger { key, given, unanswered: true, may_have_sold, failed: false, throttled_by: None, sends: 1, refused: false }
    }

    /// A settled key gives way to a new one; what it left open stays open.
    pub(crate) fn replace(&mut self, key: String) {
        *self = Ledger { may_have_sold: self.may_have_sold, ..Ledger::new(Some(key), false) };
    }

    /// Whether the operation may have had its effect.
    pub(crate) fn is_open(&self) -> bool {
        self.unanswered || self.may_have_sold
    }
}
