//! The cap of a day: what is bought stays within it, and each key that may cost money is in the total that the store has.

use std::collections::BTreeMap;

use hopline::client::Millis;

use super::{About, CAPPED, Harm, MISCOUNTED, Sending, UNCOUNTED};
use crate::job::{Job, cost};
use crate::service::Response;

const DAY: Millis = 24 * 3_600_000;

/// A day's total: the day, in days since 1970, and thousandths of a dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Total {
    pub(crate) day: i64,
    pub(crate) amount: i64,
}

/// A key that may cost money.
#[derive(Debug, Clone, Hash)]
struct Counted {
    about: About,
    /// The quote of the first send.
    quote: i64,
    /// The amount that must be counted on each day on which it was sent.
    days: BTreeMap<i64, i64>,
    /// The service has refused it.
    refused: bool,
    /// So many sends of it have no answer of the service.
    unanswered: u32,
    /// No send left the client, or the service was too busy each time, so the purchase need not be counted until it is sent again.
    may_be_free: bool,
    /// The service has done it.
    bought: bool,
}

impl Counted {
    /// A send of it did nothing.
    fn is_one_less(&mut self) {
        self.unanswered = self.unanswered.saturating_sub(1);
        self.may_be_free = self.unanswered == 0;
    }
}

/// The purchases that were made, and those that may have been.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Spending {
    /// The quote that was shown for each purchase of one GB, to any of its commands, and the lowest one.
    shown: BTreeMap<About, i64>,
    least: i64,
    keys: BTreeMap<String, Counted>,
    /// The purchase of each entry of the store.
    entries: BTreeMap<String, About>,
    /// A program died, or lost its names to another one, so that a total may count what was never sent.
    interrupted: bool,
}

impl Spending {
    /// A client was shown a price for a purchase.
    pub(super) fn shows(&mut self, about: About, price: i64) {
        self.shown.insert(about, price);
        self.least = if self.least == 0 { price } else { self.least.min(price) };
    }

    /// A new client reads prices anew.
    pub(super) fn restarted(&mut self) {
        self.shown.clear();
    }

    pub(super) fn interrupted(&mut self) {
        self.interrupted = true;
    }

    pub(super) fn crashed(&mut self) {
        self.interrupted = true;
        for counted in self.keys.values_mut() {
            // A charge above its quote may not have reached the store.
            counted.days.values_mut().for_each(|amount| *amount = (*amount).min(counted.quote));
        }
    }

    /// A key that may cost money goes out.
    pub(super) fn sends(&mut self, sending: &Sending<'_>, about: About, job: Job, key: &str, cap: i64) -> Result<(), Harm> {
        let price = self.shown.get(&about).copied().unwrap_or(self.least);
        let entry = || Counted {
            about,
            quote: cost(job, price),
            days: BTreeMap::new(),
            refused: false,
            unanswered: 0,
            may_be_free: false,
            bought: false,
        };
        let counted = self.keys.entry(key.to_owned()).or_insert_with(entry);
        let today = sending.clocks.is_right.then(|| sending.clocks.unix.div_euclid(DAY));
        let total = sending.total.filter(|total| today.is_none_or(|today| total.day >= today)).ok_or(UNCOUNTED)?;
        if std::mem::take(&mut counted.refused) {
            counted.days.clear();
        }
        (counted.unanswered, counted.may_be_free) = (counted.unanswered + 1, false);
        counted.days.entry(total.day).or_insert(counted.quote);
        // Charges above the quotes of other purchases may be on their way to the store.
        let due = self.due(total.day, |counted, amount| if counted.may_be_free { 0 } else { amount.min(counted.quote) });
        match () {
            () if due > cap => Err(CAPPED),
            () if due > total.amount => Err(UNCOUNTED),
            () => Ok(()),
        }
    }

    fn due(&self, day: i64, amount: impl Fn(&Counted, i64) -> i64) -> i64 {
        let keys = self.keys.values().filter_map(|counted| Some(amount(counted, *counted.days.get(&day)?)));
        keys.sum()
    }

    pub(super) fn by_key(&self, total: Option<Total>) -> BTreeMap<String, i64> {
        let of_day = |counted: &Counted| counted.days.get(&total?.day).copied();
        self.keys.iter().filter_map(|(key, counted)| Some((key.clone(), of_day(counted)?))).collect()
    }

    /// A key was answered.
    pub(super) fn hears(&mut self, key: &str, response: &Response) {
        let Some(counted) = self.keys.get_mut(key) else { return };
        match response.failure() {
            Some(429) => counted.is_one_less(),
            Some(..500) => {
                (counted.refused, counted.unanswered) = (true, 0);
                counted.days.values_mut().for_each(|amount| *amount = 0);
            }
            _ => {}
        }
        let charge = response.charge().and_then(|charge| thousandths(&charge)).filter(|_| response.is_success());
        if let (Some(charge), Some(mut last)) = (charge, counted.days.last_entry()) {
            *last.get_mut() = charge;
        }
    }

    /// A key did not leave its program.
    pub(super) fn never_left(&mut self, key: &str) {
        self.keys.get_mut(key).into_iter().for_each(Counted::is_one_less);
    }

    /// Another key takes the place of one that was refused.
    pub(super) fn replaced(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// A caller was told that a purchase had no effect.
    pub(super) fn freed(&mut self, about: About) {
        self.keys.retain(|_, counted| counted.about != about);
    }

    /// The service sold it, or was made to.
    pub(super) fn bought(&mut self, key: &str, cap: i64) -> Result<(), Harm> {
        let Some(counted) = self.keys.get_mut(key) else { return Ok(()) };
        counted.bought = true;
        let Some(day) = counted.days.keys().last().copied() else { return Ok(()) };
        let bought = self.keys.values().filter(|counted| counted.bought && counted.days.keys().last() == Some(&day));
        let amount: i64 = bought.map(|counted| counted.quote).sum();
        if amount > cap { Err(CAPPED) } else { Ok(()) }
    }

    /// An entry is of a purchase.
    pub(super) fn counts(&mut self, about: About, entry: &str) {
        self.entries.entry(entry.to_owned()).or_insert(about);
    }

    /// Each purchase is counted by its own entries: one that counts too much hides none that counts too little.
    pub(super) fn entries_are_right(
        &self,
        total: Total,
        entries: &BTreeMap<String, i64>,
        store_failed: bool,
        now: Millis,
    ) -> Result<(), Harm> {
        let mut left: BTreeMap<About, i64> = BTreeMap::new();
        for (entry, about) in &self.entries {
            *left.entry(*about).or_default() += entries.get(entry).copied().unwrap_or_default();
        }
        for counted in self.keys.values().filter(|counted| !counted.may_be_free && total.day >= now.div_euclid(DAY)) {
            let Some(due) = counted.days.get(&total.day).copied() else { continue };
            // A charge above its quote may not have reached a store that failed.
            let due = if store_failed { due.min(counted.quote) } else { due };
            let left = left.entry(counted.about).or_default();
            *left -= due;
            if *left < 0 {
                return Err(MISCOUNTED);
            }
        }
        Ok(())
    }

    /// The total that the store has is what was bought and what may have been; it may be more where a program died or a store failed.
    pub(super) fn is_right(&self, total: Option<Total>, store_failed: bool, now: Millis) -> Result<(), Harm> {
        let newest = self.keys.values().filter_map(|counted| counted.days.keys().last()).max().copied();
        // A day that is over is not counted.
        let newest = newest.filter(|day| *day >= now.div_euclid(DAY));
        let Some(newest) = newest else { return Ok(()) };
        let total = total.filter(|total| total.day >= newest).ok_or(MISCOUNTED)?;
        // A charge above its quote may not have reached a store that failed.
        let due = self.due(total.day, |counted, amount| if store_failed { amount.min(counted.quote) } else { amount });
        let free = self.due(total.day, |counted, amount| if counted.may_be_free { amount } else { 0 });
        let is_enough = due - free <= total.amount;
        let is_right = is_enough && (total.amount <= due || self.interrupted || store_failed);
        if is_right { Ok(()) } else { Err(MISCOUNTED) }
    }
}

/// An amount in dollars, in thousandths.
pub(crate) fn thousandths(usd: &str) -> Option<i64> {
    let usd: rust_decimal::Decimal = usd.parse().ok()?;
    i64::try_from(usd.checked_mul(rust_decimal::Decimal::ONE_THOUSAND)?.trunc()).ok()
}
