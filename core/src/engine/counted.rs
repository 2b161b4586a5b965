//! The entries of keys under a day's cap.

use crate::contract::pools::SlotPurchase;
use crate::contract::{Decimal, stored};
use crate::entropy::{Entropy, digest};
use crate::policy::{Rule, Rules};

/// The possible cost of a key, counted on a UTC day. An entry belongs to one purchase: a client that resumes the purchase finds the entry
/// in its record, and a caller that uses the same key for another purchase gets another entry. So a late write for a purchase that is over
/// changes nothing of the next one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Counted {
    /// A digest of the key, and a number.
    pub(crate) entry: String,
    /// Days since 1970.
    pub(crate) day: i64,
    pub(crate) usd: Decimal,
}

stored!(Counted { entry, day, usd });

impl Counted {
    /// Returns true if the entry is of that key.
    pub(crate) fn is_of(&self, key: &str) -> bool {
        self.entry.starts_with(&key_digest(key))
    }
}

/// Returns a new entry for a key. The entry of a pool's purchase names the pool.
pub(crate) fn new_entry(key: &str, intent: Option<&str>, rng: &mut Entropy, rules: Rules) -> String {
    let own = if rules.holds(Rule::EntryIsItsOwn) { rng.any_mark() } else { String::new() };
    let pool = intent.and_then(SlotPurchase::of).map(|purchase| format!("@{}", pool_digest(purchase.pool())));
    key_digest(key) + &own + &pool.unwrap_or_default()
}

/// The digest of a pool's name in an entry.
pub(crate) fn pool_digest(pool: &str) -> String {
    digest("pool entry", &[pool])
}

/// The pool of an entry, as its [digest](pool_digest).
pub(crate) fn pool_of(entry: &str) -> Option<&str> {
    entry.split_once('@').map(|(_, pool)| pool)
}

/// The entry as a store has it, in hexadecimal digits only: the space names the pool.
pub(crate) fn stored_entry(entry: &str) -> String {
    entry.split_once('@').map_or(entry, |(own, _)| own).to_owned()
}

fn key_digest(key: &str) -> String {
    digest("entry", &[key])
}

/// Adds two prices. No real sum comes near the largest number; one that did would be over any cap.
pub(crate) fn sum(one: Decimal, other: Decimal) -> Decimal {
    Decimal(one.0.checked_add(other.0).unwrap_or(rust_decimal::Decimal::MAX))
}
