//! The record of a pool: the state that all its clients share beside the slots. A client owns it only for the moment of a change.

use super::buyer::{Buying, BuyingChange};
use super::rules::{PoolRule, holds};
use super::share::ClientEntry;
use crate::contract::agent::CreateSession;
use crate::contract::pools::{OpenPool, PoolHoldReason};
use crate::contract::{json_of, stored};
use crate::time::Millis;
use crate::wire::members;

/// The content of a pool's record.
#[derive(Debug, Clone, Default, PartialEq, Hash)]
pub(super) struct PoolRecord {
    /// The version of records, as in those of purchases.
    hopline: u32,
    /// Its name, for those who look at all pools.
    pub(super) name: String,
    /// The request for its sessions, as JSON.
    pub(super) request: String,
    /// The largest size that it was opened with.
    pub(super) size: u32,
    /// When the request took the place of another one last (Unix milliseconds).
    pub(super) replaced_at: Option<Millis>,
    pub(super) paused: bool,
    /// True if all clients are to drain it.
    pub(super) draining: bool,
    /// The same, static sessions too.
    pub(super) draining_static: bool,
    /// How often it was drained everywhere: whoever has opened it before the last time drains it, also where it was opened anew since.
    pub(super) drains: u32,
    /// The facts of purchases that its clients know.
    pub(super) buying: Buying,
    /// The needs of its clients.
    pub(super) clients: Vec<ClientEntry>,
}
stored!(PoolRecord { hopline, name, request, size, replaced_at, paused, draining, draining_static, drains, buying, clients });

/// The version of records.
const VERSION: u32 = 3;
/// A request that took the place of another one is not replaced for so long.
const REPLACES_AGAIN: Millis = 600_000;
/// No pool is larger.
const LARGEST: u32 = 1_000_000;

/// A change of the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RecordChange {
    /// The pool is opened, and with this request and size from now on, where that may be.
    Opened,
    Buying(BuyingChange),
    /// The request takes the place of another one.
    Replaced {
        at: Millis,
    },
    Paused(bool),
    Drained {
        include_static: bool,
    },
}

impl PoolRecord {
    /// Returns true if its request may not be replaced yet: two versions of a program that begin in turn would end each other's sessions each
    /// time.
    pub(super) fn was_replaced_lately(&self, unix: Millis) -> bool {
        holds(PoolRule::ReplacedIsNotReplaced) && self.replaced_at.is_some_and(|at| (0..REPLACES_AGAIN).contains(&unix.saturating_sub(at)))
    }

    /// The data of a record. None where it can't be read.
    pub(super) fn read(data: &[u8]) -> Option<PoolRecord> {
        let record: PoolRecord = crate::json::read_json(std::str::from_utf8(data).ok()?).ok()?;
        (record.hopline == VERSION && record.size <= LARGEST).then_some(record)
    }

    /// The pool, as whoever joins it opens it: of the same request, and as large as it was ever.
    pub(super) fn reopened(&self) -> Option<OpenPool> {
        let rest = self.request.strip_prefix('{')?;
        crate::json::read_json(&format!(r#"{{"name":{},"size":{},{rest}"#, json_of(self.name.as_str()), self.size)).ok()
    }

    /// Why nothing may be bought at all, beside a hold.
    pub(super) fn forbids_buying(&self) -> Option<PoolHoldReason> {
        match () {
            () if self.draining => Some(PoolHoldReason::Draining),
            () if self.paused && holds(PoolRule::PauseForbids) => Some(PoolHoldReason::Paused),
            () => None,
        }
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        json_of(self).into_bytes()
    }

    /// Changes it.
    pub(super) fn apply(&mut self, change: &RecordChange, open: &OpenPool, request: &str) {
        self.hopline = VERSION;
        match *change {
            RecordChange::Opened => {
                self.buying.opened(!self.request.is_empty() && self.request != request);
                request.clone_into(&mut self.request);
                open.name.clone_into(&mut self.name);
                self.size = self.size.max(open.size);
                (self.draining, self.draining_static) = (false, false);
            }
            RecordChange::Buying(change) => self.buying.apply(change),
            RecordChange::Replaced { at } => self.replaced_at = Some(at),
            RecordChange::Paused(paused) => self.paused = paused,
            RecordChange::Drained { include_static } => {
                (self.draining, self.draining_static) = (true, include_static);
                self.drains = self.drains.saturating_add(1);
            }
        }
    }
}

/// The request for a pool's sessions, which all of its clients share. The quantity and the duration are each client's own.
pub(super) fn request_of(open: &OpenPool) -> String {
    json_of(&CreateSession { quantity: None, duration: None, ..open.session() })
}

/// The members in which two requests differ.
pub(super) fn differing(one: &str, other: &str) -> Vec<String> {
    let (one, other) = (members(one).unwrap_or_default(), members(other).unwrap_or_default());
    let missing = |name: &str, value: &str, among: &[(_, &str)]| {
        !among.iter().any(|(known, same): &(std::borrow::Cow<'_, str>, &str)| known == name && *same == value)
    };
    let mut names: Vec<String> = Vec::new();
    for (name, value, others) in
        one.iter().map(|(name, value)| (name, value, &other)).chain(other.iter().map(|(name, value)| (name, value, &one)))
    {
        let is_missing = missing(name, value, others);
        // What stands for a product that is chosen is the choice to people.
        let name = if name == "product_no" && value.starts_with("\"cheapest {") { "product" } else { &**name };
        if is_missing && !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::agent::{Protocol, SessionType};
    use crate::pool::buyer::Hold;

    fn of_size(size: u32) -> OpenPool {
        OpenPool { size, ..open() }
    }

    fn open() -> OpenPool {
        OpenPool { name: "shop".into(), size: 4, session_type: SessionType::Dynamic, product_no: "p".into(), ..OpenPool::default() }
    }

    #[test]
    fn what_differs_is_named() {
        let one = request_of(&open());
        let other = request_of(&OpenPool { product_no: "q".into(), protocol: Some(Protocol::Http), ..open() });
        assert_eq!(differing(&one, &other), ["product_no", "protocol"]);
        let more = OpenPool { quantity: "3".parse().ok(), duration: Some(2), size: 9, ..open() };
        assert_eq!((differing(&one, &request_of(&more)), one == request_of(&more)), (Vec::new(), true));
        let chosen = OpenPool { product_no: r#"cheapest {"session_type":"dynamic"}"#.into(), ..open() };
        assert_eq!(differing(&one, &request_of(&chosen)), ["product_no", "product"]);
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_another_one_is_not() {
        let mut record = PoolRecord::default();
        record.apply(&RecordChange::Opened, &of_size(4), "{}");
        record.apply(&RecordChange::Paused(true), &of_size(4), "{}");
        assert_eq!(PoolRecord::read(&record.bytes()), Some(record));
        for data in ["", "{}", r#"{"hopline":3,"request":"{}","size":4000000000}"#, r#"{"hopline":2,"request":"{}","size":4}"#, "nonsense"]
        {
            assert_eq!(PoolRecord::read(data.as_bytes()), None, "{data}");
        }
    }

    #[test]
    fn whoever_joins_a_pool_opens_it_as_it_was_opened() {
        let mut record = PoolRecord::default();
        assert_eq!(record.reopened(), None);
        let pool = OpenPool { protocol: Some(Protocol::Http), country_code: Some("de".into()), quantity: "3".parse().ok(), ..open() };
        record.apply(&RecordChange::Opened, &pool, &request_of(&pool));
        assert_eq!(record.reopened(), Some(OpenPool { quantity: None, ..pool }));
    }

    #[test]
    fn the_largest_size_stays_and_opening_ends_what_was_to_last_until_then() {
        let mut record = PoolRecord::default();
        record.apply(&RecordChange::Opened, &of_size(4), "{}");
        let held = BuyingChange::Held { hold: Hold::default(), is_news: false };
        record.apply(&RecordChange::Buying(held), &of_size(4), "{}");
        record.apply(&RecordChange::Buying(BuyingChange::Ready { was_trial: false, unix: 0 }), &of_size(4), "{}");
        record.apply(&RecordChange::Drained { include_static: true }, &of_size(4), "{}");
        assert!(record.buying.hold.is_some() && record.draining && record.draining_static);
        record.apply(&RecordChange::Opened, &of_size(2), "{}");
        assert_eq!((record.size, record.buying.hold, record.draining, record.draining_static), (4, None, false, false));
        assert!(record.buying.proven);
        record.apply(&RecordChange::Opened, &of_size(2), r#"{"another":1}"#);
        assert!(!record.buying.proven);
    }
}
