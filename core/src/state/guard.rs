//! What is bought in a UTC day, under the caller's cap.

use std::collections::BTreeMap;

use crate::contract::Decimal;
use crate::engine::{RecordId, Reserved, sum};
use crate::time::Millis;

const DAY: Millis = 24 * 3600 * 1000;

/// The day's total.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Guard {
    pub(crate) cap: Decimal,
    pub(crate) spent: Reserved,
    pub(crate) record: Option<RecordId>,
    /// The records of clients that are gone, whose totals are in ours.
    pub(crate) adopted: Vec<RecordId>,
    /// Those whose totals are in a Save of ours: they go once it was answered.
    pub(crate) merged: Vec<RecordId>,
    /// What is free again once the store has these records as they are now.
    pub(crate) unspent: BTreeMap<RecordId, Vec<Option<Reserved>>>,
}

impl Guard {
    pub(crate) fn new(cap: Decimal) -> Self {
        let spent = Reserved { day: 0, usd: Decimal::from(0) };
        Guard { cap, spent, record: None, adopted: Vec::new(), merged: Vec::new(), unspent: BTreeMap::new() }
    }

    /// The day that counts now.
    pub(crate) fn day(&self, unix: Millis) -> i64 {
        unix.div_euclid(DAY).max(self.spent.day)
    }

    /// Begins the day anew when it is another one; time that runs backwards does not bring an old one back.
    pub(crate) fn roll(&mut self, unix: Millis) {
        let day = unix.div_euclid(DAY);
        if day > self.spent.day {
            self.spent = Reserved { day, usd: Decimal::from(0) };
        }
    }

    /// Whether the record is one of its own.
    pub(crate) fn holds(&self, record: &RecordId) -> bool {
        self.record.as_ref() == Some(record) || self.adopted.contains(record) || self.merged.contains(record)
    }

    /// Takes in what a client that is gone had spent.
    pub(crate) fn adopt(&mut self, record: RecordId, spent: Reserved) {
        self.roll(spent.day.saturating_mul(DAY));
        if spent.day == self.spent.day {
            self.spent.usd = sum(self.spent.usd, spent.usd);
        }
        self.adopted.push(record);
    }

    /// The day's total without what was set aside.
    pub(crate) fn without(&self, reserved: Option<Reserved>) -> Decimal {
        let counted = reserved.filter(|reserved| reserved.day == self.spent.day).map_or(Decimal::from(0), |reserved| reserved.usd);
        let left = self.spent.usd.0.checked_sub(counted.0).unwrap_or(self.spent.usd.0);
        Decimal(left.max(rust_decimal::Decimal::ZERO))
    }
}
