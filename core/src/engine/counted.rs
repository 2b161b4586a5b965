//! What a key counts under a day's cap.

use crate::contract::{Decimal, kept};
use crate::entropy::digest;

/// What a key may have cost, counted on a UTC day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct Counted {
    /// Which key, without saying it.
    pub(crate) entry: String,
    /// Days since 1970.
    pub(crate) day: i64,
    pub(crate) usd: Decimal,
}

kept!(Counted { entry, day, usd });

/// What a key is counted by.
pub(crate) fn entry_of(key: &str) -> String {
    digest("entry", &[key])
}

/// No sum of prices comes near the largest number; one that did would be over any cap.
pub(crate) fn sum(one: Decimal, other: Decimal) -> Decimal {
    Decimal(one.0.checked_add(other.0).unwrap_or(rust_decimal::Decimal::MAX))
}
