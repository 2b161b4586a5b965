//! What a key counts under a day's cap.

use crate::contract::{Decimal, stored};
use crate::entropy::{Entropy, digest};
use crate::policy::{Rule, Rules};

/// What a key may have cost, counted on a UTC day. An entry is one purchase's own: who goes on with the purchase finds it in its record,
/// and who uses the same key for another one, as callers may, counts by another entry. So what is set for a purchase that is over
/// changes nothing of the next one, however late it comes to the store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Counted {
    /// Which key, without saying it, and a number.
    pub(crate) entry: String,
    /// Days since 1970.
    pub(crate) day: i64,
    pub(crate) usd: Decimal,
}

stored!(Counted { entry, day, usd });

impl Counted {
    /// Whether it is what that key may have cost.
    pub(crate) fn is_of(&self, key: &str) -> bool {
        self.entry.starts_with(&key_digest(key))
    }
}

/// What a purchase counts a key by from now on.
pub(crate) fn new_entry(key: &str, dice: &mut Entropy, rules: Rules) -> String {
    let own = if rules.holds(Rule::EntryIsItsOwn) { dice.entry() } else { String::new() };
    key_digest(key) + &own
}

fn key_digest(key: &str) -> String {
    digest("entry", &[key])
}

/// No sum of prices comes near the largest number; one that did would be over any cap.
pub(crate) fn sum(one: Decimal, other: Decimal) -> Decimal {
    Decimal(one.0.checked_add(other.0).unwrap_or(rust_decimal::Decimal::MAX))
}
