//! How long something is bought for, and what that costs.

use rust_decimal::Decimal;

use super::input::DAY_MS;
use crate::service::envelope::Refusal;
use crate::service::input::Body;

/// Length, unit and cycles as a request says them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(super) duration: i64,
    pub(super) unit: i64,
    pub(super) cycles: i64,
    /// All of it in days; a month has thirty, and a year twelve months.
    days: i64,
}

impl Terms {
    pub(super) const MONTH: Self = Self { duration: 30, unit: 1, cycles: 1, days: 30 };

    /// Reads the terms of a request; without any they are one month.
    pub(super) fn read(body: &Body) -> Result<Self, Refusal> {
        let month = Self::MONTH;
        let duration = body.whole("duration", 1)?.unwrap_or(month.duration);
        let unit = body.whole("unit", 1)?.unwrap_or(month.unit);
        let cycles = body.whole("cycleTimes", 1)?.unwrap_or(month.cycles);
        Self::new(duration, unit, cycles)
    }

    pub(super) fn new(duration: i64, unit: i64, cycles: i64) -> Result<Self, Refusal> {
        let unit_days = match unit {
            1 => 1,
            3 => 30,
            4 => 360,
            _ => return Err(Refusal::invalid("unit", "must be 1 (day), 3 (month) or 4 (year)")),
        };
        let days = duration.checked_mul(unit_days).and_then(|days| days.checked_mul(cycles));
        let days = days.filter(|days| days.checked_mul(DAY_MS).is_some()).ok_or_else(|| Refusal::invalid("duration", "is too long"))?;
        Ok(Self { duration, unit, cycles, days })
    }

    /// The moment when they end.
    pub(super) fn end(self, from_ms: i64) -> Result<i64, Refusal> {
        from_ms.checked_add(self.days * DAY_MS).ok_or_else(|| Refusal::invalid("duration", "is too long"))
    }

    /// The cost of the terms: whole months exactly, and single days rounded to a cent.
    pub(super) fn cost(self, price: Decimal, count: i64) -> Result<Decimal, Refusal> {
        let units = |number: i64| price.checked_mul(count.into()).and_then(|one| one.checked_mul(number.into()));
        let cost = match self.days % 30 {
            0 => units(self.days / 30),
            _ => units(self.days).and_then(|thirty| thirty.checked_div(30.into())).map(|cost| cost.round_dp(2)),
        };
        cost.ok_or_else(|| Refusal::invalid("duration", "is too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thirty_days_a_month_and_a_twelfth_of_a_year_cost_and_last_the_same() {
        let of = |duration, unit, cycles| Terms::new(duration, unit, cycles).unwrap();
        for month in [of(30, 1, 1), of(1, 3, 1), of(15, 1, 2)] {
            assert_eq!(month.cost(Decimal::TEN, 2).unwrap(), 20.into());
            assert_eq!(month.end(0).unwrap(), 30 * DAY_MS);
        }
        assert_eq!(of(1, 4, 1).cost(Decimal::TEN, 1).unwrap(), 120.into());
        assert_eq!(of(1, 1, 1).cost(Decimal::TEN, 1).unwrap(), Decimal::new(33, 2));
        assert!(Terms::new(1, 2, 1).is_err() && Terms::new(i64::MAX, 4, 1).is_err());
        assert!(of(100_000_000_000, 1, 1).end(i64::MAX).is_err() && of(30, 1, 1).cost(Decimal::MAX, 2).is_err());
    }
}
