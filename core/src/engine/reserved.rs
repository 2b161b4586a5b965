//! What is set aside of a day's cap.

use serde::{Deserialize, Serialize};

use crate::contract::Decimal;

/// What a purchase may cost, set aside of the cap of a UTC day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Reserved {
    /// Days since 1970.
    pub(crate) day: i64,
    pub(crate) usd: Decimal,
}

/// No sum of prices comes near the largest number; one that did would be over any cap.
pub(crate) fn sum(one: Decimal, other: Decimal) -> Decimal {
    Decimal(one.0.checked_add(other.0).unwrap_or(rust_decimal::Decimal::MAX))
}
