//! A pool's purchases: how many at once, what holds them back, and when one is tried during a hold. The wish to buy, and its object, are
//! decided elsewhere.

use crate::contract::pools::{PoolHold, PoolHoldReason as Reason, PoolNeeds as Needs};
use crate::contract::stored;
use crate::policy::{Advice, Backoff, Error, Kind};
use crate::time::Millis;

/// Purchases that are tried again after a failure.
const FAILED: Backoff = Backoff { first: 30_000, most: 600_000 };
/// Purchases that are tried again where sessions end as soon as they are ready.
const FAILED_SHORT: Backoff = Backoff { first: 60_000, most: 3_600_000 };
/// A session that ends within this of being ready did not live.
const SHORT: Millis = 60_000;
/// So many in a row.
const SHORT_LIVED: u32 = 3;
const DAY: Millis = 86_400_000;
/// So many purchases may be under way at a time.
pub(crate) const AT_ONCE: u32 = 8;

impl Reason {
    /// The reason of a purchase that failed, or may have bought.
    pub(crate) fn of_error(error: &Error) -> Self {
        match error.code.as_deref() {
            Some("PRODUCT_OUT_OF_STOCK") => Reason::OutOfStock,
            Some("PRICE_MISMATCH") => Reason::Price,
            Some("SESSION_LIMIT_REACHED") => Reason::SessionLimit,
            Some("INSUFFICIENT_BALANCE") => Reason::Balance,
            Some("BUDGET_EXCEEDED") => Reason::Budget,
            Some("RATE_LIMIT_EXCEEDED" | "IDEMPOTENCY_CONFLICT") => Reason::NoAnswer,
            Some("BACKEND_ERROR" | "BACKEND_TIMEOUT" | "INTERNAL_ERROR") => Reason::Backend,
            Some("INVALID_REQUEST" | "PRODUCT_NOT_FOUND") => Reason::Request,
            // NOT DOCUMENTED: the meaning of further codes. They are left to a person.
            Some(_) => Reason::Account,
            None => match error.kind {
                Kind::Invalid | Kind::Misuse => Reason::Request,
                Kind::Store => Reason::Store,
                // By this client, before anything was sent.
                Kind::Refused => match error.advice {
                    Advice::ReadPrices => Reason::Price,
                    Advice::RaiseBudget => Reason::Cap,
                    Advice::ChangeRequest => Reason::Request,
                    _ => Reason::Account,
                },
                _ => Reason::NoAnswer,
            },
        }
    }

    /// Why nothing is bought, as the end of a sentence.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Reason::OutOfStock => "since the product is out of stock",
            Reason::Price => "since the price is not known, or above `max_unit_price`",
            Reason::SessionLimit => "since the account has reached its session limit",
            Reason::Balance => "since the balance is too low",
            Reason::Budget => "since the account's budget is used up",
            Reason::Cap => "since the day's cap is reached",
            Reason::NoAnswer => "since the service gives no answer",
            Reason::Backend => "since the service fails",
            Reason::Store => "since the store fails",
            Reason::ShortLived => "since sessions end as soon as they are ready",
            Reason::Request => "since the service refuses the request of the pool",
            Reason::Account => "since the account may not buy",
            Reason::Replaced => "since another client has opened it with another request",
            Reason::Paused => "since it is paused",
            Reason::Draining => "since it is drained",
        }
    }

    /// Returns true if nothing is tried until a person or program acts.
    fn stops(self) -> bool {
        matches!(self, Reason::Request | Reason::Account)
    }

    /// The hold as people see it.
    pub(crate) fn told(self, since: Millis, retry_at: Option<Millis>) -> PoolHold {
        PoolHold { reason: self, why: self.text().to_owned(), needs: self.needs(), since, retry_at }
    }

    pub(crate) fn needs(self) -> Needs {
        match self {
            Reason::Request | Reason::Replaced | Reason::Paused | Reason::Draining => Needs::Caller,
            Reason::Account | Reason::Balance | Reason::Budget | Reason::SessionLimit => Needs::Person,
            _ => Needs::Nobody,
        }
    }

    /// When one is tried, after so many that failed.
    fn retry_at(self, tries: u32, unix: Millis) -> Option<Millis> {
        let after = |backoff: Backoff| unix.saturating_add(backoff.wait(tries));
        let next_day = unix.div_euclid(DAY).saturating_add(1).saturating_mul(DAY);
        match self {
            reason if reason.stops() => None,
            Reason::Cap => Some(next_day),
            Reason::Budget => Some(after(FAILED).min(next_day)),
            Reason::ShortLived => Some(after(FAILED_SHORT)),
            _ => Some(after(FAILED)),
        }
    }
}

/// Nothing is bought by any client of the pool, but for one trial when its time has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) reason: Reason,
    /// Unix milliseconds, as all clients can compare.
    pub(crate) since: Millis,
    /// When one is tried; none before somebody resumes the pool.
    pub(crate) retry_at: Option<Millis>,
    /// How many trials have failed.
    pub(crate) tries: u32,
}
stored!(Hold { reason, since, retry_at, tries });

/// The purchases that are allowed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// So many purchases may be begun.
    Buy(u32),
    /// One, by the client that can claim the pool's record.
    Try(HoldTrial),
    /// None.
    Wait,
}

/// The purchase that is a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldTrial {
    /// Any.
    Any,
    /// The one that had no answer, with its key.
    Same,
    /// Any, after the service has shown its products.
    AfterRead,
}

/// The purchases of one client for a pool.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Buyer {
    /// How many purchases may be under way at a time.
    width: u32,
    under_way: u32,
    /// True if one of them is a trial.
    tries: bool,
    hold: Option<Hold>,
    /// True if the service has shown its products since the hold began.
    has_read: bool,
    /// Sessions in a row that did not live, and how often that has held.
    short_lived: u32,
    short_holds: u32,
}

impl Default for Buyer {
    fn default() -> Self {
        Buyer { width: 1, under_way: 0, tries: false, hold: None, has_read: false, short_lived: 0, short_holds: 0 }
    }
}

impl Buyer {
    /// The purchases that are allowed now.
    pub(crate) fn may(&self, unix: Millis) -> May {
        let Some(hold) = self.hold else {
            return match self.width.saturating_sub(self.under_way) {
                0 => May::Wait,
                room => May::Buy(room),
            };
        };
        match hold.retry_at {
            Some(at) if at <= unix && !self.tries => May::Try(match hold.reason {
                Reason::NoAnswer => HoldTrial::Same,
                Reason::Backend if !self.has_read => HoldTrial::AfterRead,
                _ => HoldTrial::Any,
            }),
            _ => May::Wait,
        }
    }

    pub(crate) fn hold(&self) -> Option<Hold> {
        self.hold
    }

    /// The pool's record says so.
    pub(crate) fn read(&mut self, hold: Option<Hold>) {
        if hold.is_some() && hold != self.hold {
            self.width = 1;
        }
        self.hold = hold;
    }

    /// Returns true if a trial is under way.
    pub(crate) fn is_trying(&self) -> bool {
        self.tries
    }

    pub(crate) fn begun(&mut self, is_trial: bool) {
        self.under_way = self.under_way.saturating_add(1);
        self.tries |= is_trial;
    }

    /// Notes that a purchase became a ready session. Returns true if the hold has ended, which is to be written to the pool's record.
    pub(crate) fn ready(&mut self, was_trial: bool) -> bool {
        self.over(was_trial);
        if self.hold.is_none() {
            self.width = self.width.saturating_add(1).min(AT_ONCE);
        }
        // A hold that stops it, which another purchase has met meanwhile, stays.
        was_trial && self.hold.take_if(|hold| !hold.reason.stops()).is_some()
    }

    /// A purchase was made, or found to have been, and there is no session to use yet.
    pub(crate) fn bought(&mut self, was_trial: bool) {
        self.over(was_trial);
    }

    /// The service works again: the next purchase is the trial.
    pub(crate) fn may_try(&mut self) {
        self.has_read = true;
    }

    /// Postpones a trial that was not made.
    pub(crate) fn try_later(&mut self, unix: Millis) -> Option<Hold> {
        let hold = self.hold?;
        self.holds(hold.reason, hold.tries.saturating_add(1), unix)
    }

    /// A purchase bought nothing, or may have. Returns the hold, where it is to be written to the pool's record.
    pub(crate) fn failed(&mut self, was_trial: bool, reason: Reason, unix: Millis) -> Option<Hold> {
        self.over(was_trial);
        self.refused(was_trial, reason, unix)
    }

    /// Notes a refusal of an operation that did not count as a purchase under way, such as a renewal.
    pub(crate) fn refused(&mut self, was_trial: bool, reason: Reason, unix: Millis) -> Option<Hold> {
        self.width = 1;
        let tries = match self.hold {
            // An operation from before the hold gives no news, unless it is worse.
            Some(hold) if !was_trial && (hold.reason.stops() || !reason.stops()) => return None,
            Some(hold) if hold.reason == reason => hold.tries.saturating_add(1),
            _ => 0,
        };
        self.holds(reason, tries, unix)
    }

    /// A session is over, so long after it was ready. Returns the hold, where it is to be written to the pool's record.
    pub(crate) fn ended(&mut self, lived: Millis, unix: Millis) -> Option<Hold> {
        if lived >= SHORT {
            (self.short_lived, self.short_holds) = (0, 0);
            return None;
        }
        self.short_lived = self.short_lived.saturating_add(1);
        if self.short_lived < SHORT_LIVED {
            return None;
        }
        self.width = 1;
        // After the trial one more is enough.
        self.short_lived = SHORT_LIVED - 1;
        let tries = self.short_holds;
        self.short_holds = self.short_holds.saturating_add(1);
        self.hold.is_none().then(|| self.holds(Reason::ShortLived, tries, unix)).flatten()
    }

    fn holds(&mut self, reason: Reason, tries: u32, unix: Millis) -> Option<Hold> {
        let since = self.hold.filter(|hold| hold.reason == reason).map_or(unix, |hold| hold.since);
        self.has_read = false;
        self.hold = Some(Hold { reason, since, retry_at: reason.retry_at(tries, unix), tries });
        self.hold
    }

    fn over(&mut self, was_trial: bool) {
        self.under_way = self.under_way.saturating_sub(1);
        self.tries &= !was_trial;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Effect;

    /// An hour after a UTC midnight.
    const NOW: Millis = 20_000 * DAY + 3_600_000;
    const TOMORROW: Millis = 20_001 * DAY;

    /// When trials are made that all fail so, in seconds after the failure before.
    fn trials(reason: Reason, most: usize) -> Vec<Millis> {
        let (mut buyer, mut unix, mut trial, mut waits) = (Buyer::default(), NOW, false, Vec::new());
        while waits.len() < most {
            buyer.begun(trial);
            let Some(at) = buyer.failed(trial, reason, unix).expect("holds").retry_at else { break };
            assert_eq!(buyer.may(at - 1), May::Wait);
            assert!(matches!(buyer.may(at), May::Try(_)));
            waits.push((at - unix) / 1000);
            (unix, trial) = (at, true);
        }
        waits
    }

    #[test]
    fn trials_are_made_ever_less_often() {
        for reason in [Reason::OutOfStock, Reason::Price, Reason::SessionLimit, Reason::Balance, Reason::NoAnswer, Reason::Backend] {
            assert_eq!(trials(reason, 7), [30, 60, 120, 240, 480, 600, 600], "{reason:?}");
        }
        assert_eq!(trials(Reason::Cap, 2), [82_800, 86_400]);
        assert!(trials(Reason::Request, 2).is_empty());
        assert!(trials(Reason::Account, 2).is_empty());
    }

    #[test]
    fn a_budget_is_tried_once_more_at_the_next_utc_day() {
        let mut buyer = Buyer::default();
        buyer.begun(false);
        buyer.failed(false, Reason::Budget, TOMORROW - 40_000);
        buyer.begun(true);
        let hold = buyer.failed(true, Reason::Budget, TOMORROW - 10_000).expect("holds");
        assert_eq!(hold.retry_at, Some(TOMORROW));
    }

    #[test]
    fn one_is_under_way_at_first_and_one_more_for_each_that_became_ready() {
        let mut buyer = Buyer::default();
        for width in [1, 2, 3, 4, 5, 6, 7, 8, 8] {
            assert_eq!(buyer.may(NOW), May::Buy(width));
            buyer.begun(false);
            assert_eq!(buyer.may(NOW), if width == 1 { May::Wait } else { May::Buy(width - 1) });
            assert!(!buyer.ready(false));
        }
        buyer.begun(false);
        buyer.failed(false, Reason::OutOfStock, NOW);
        buyer.begun(true);
        assert!(buyer.ready(true));
        assert_eq!((buyer.may(NOW), buyer.hold()), (May::Buy(1), None));
    }

    #[test]
    fn one_trial_at_a_time_and_its_success_ends_the_hold() {
        let mut buyer = Buyer::default();
        [false, false].into_iter().for_each(|trial| buyer.begun(trial));
        let hold = buyer.failed(false, Reason::OutOfStock, NOW).expect("holds");
        // Another one that was begun before neither doubles nor ends it.
        assert_eq!(buyer.failed(false, Reason::OutOfStock, NOW + 1), None);
        buyer.begun(false);
        assert!(!buyer.ready(false));
        assert_eq!(buyer.hold(), Some(hold));
        assert_eq!(buyer.may(NOW + 30_000), May::Try(HoldTrial::Any));
        buyer.begun(true);
        assert_eq!(buyer.may(NOW + 30_000), May::Wait);
        assert!(buyer.ready(true));
        assert_eq!(buyer.may(NOW + 30_000), May::Buy(1));
    }

    #[test]
    fn which_purchase_is_tried() {
        let trial = |reason| {
            let mut buyer = Buyer::default();
            buyer.begun(false);
            buyer.failed(false, reason, NOW);
            buyer.may(NOW + 30_000)
        };
        assert_eq!(trial(Reason::NoAnswer), May::Try(HoldTrial::Same));
        assert_eq!(trial(Reason::Backend), May::Try(HoldTrial::AfterRead));
        assert_eq!(trial(Reason::Balance), May::Try(HoldTrial::Any));
        assert_eq!(trial(Reason::Account), May::Wait);
    }

    #[test]
    fn a_trial_that_fails_otherwise_begins_anew_and_what_stops_counts_at_once() {
        let mut buyer = Buyer::default();
        [false, false].into_iter().for_each(|trial| buyer.begun(trial));
        buyer.failed(false, Reason::NoAnswer, NOW);
        buyer.begun(true);
        let hold = buyer.failed(true, Reason::OutOfStock, NOW + 30_000).expect("holds");
        assert_eq!((hold.reason, hold.since, hold.retry_at), (Reason::OutOfStock, NOW + 30_000, Some(NOW + 60_000)));
        let stop = buyer.failed(false, Reason::Account, NOW + 40_000).expect("stops");
        assert_eq!((stop.retry_at, buyer.may(Millis::MAX)), (None, May::Wait));
        buyer.read(None);
        assert_eq!(buyer.may(NOW), May::Buy(1));
    }

    #[test]
    fn three_sessions_in_a_row_that_do_not_live_hold_for_ever_longer() {
        let mut buyer = Buyer::default();
        assert_eq!([59_999, 60_000, 0, 59_999].map(|lived| buyer.ended(lived, NOW)), [None; 4]);
        let first = buyer.ended(1, NOW).expect("the third in a row");
        assert_eq!((first.reason, first.retry_at), (Reason::ShortLived, Some(NOW + 60_000)));
        // After its trial each further one holds again, twice as long.
        let waits: Vec<Millis> = (0..7)
            .map(|_| {
                buyer.begun(true);
                assert!(buyer.ready(true));
                (buyer.ended(1, NOW).expect("holds").retry_at.expect("is tried") - NOW) / 60_000
            })
            .collect();
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        buyer.begun(true);
        buyer.ready(true);
        buyer.ended(60_000, NOW);
        assert_eq!([1, 1].map(|lived| buyer.ended(lived, NOW)), [None; 2]);
        assert_eq!(buyer.ended(1, NOW).expect("holds").retry_at, Some(NOW + 60_000));
    }

    #[test]
    fn a_hold_of_another_client_binds_this_one() {
        let (mut one, mut other) = (Buyer::default(), Buyer::default());
        one.begun(false);
        other.begun(false);
        other.ready(false);
        let hold = one.failed(false, Reason::OutOfStock, NOW);
        other.read(hold);
        assert_eq!((other.may(NOW), other.may(NOW + 30_000)), (May::Wait, May::Try(HoldTrial::Any)));
        other.read(None);
        assert_eq!(other.may(NOW), May::Buy(1));
    }

    #[test]
    fn what_a_purchase_ended_with_is_a_reason() {
        let reason = |kind, code: Option<&str>, advice| {
            let error = Error::new(kind, Effect::None, "create_session", "", advice);
            Reason::of_error(&error.with(|new| new.code = code.map(str::to_owned)))
        };
        let of_code = |code| reason(Kind::Refused, Some(code), Advice::Stop);
        let refused = [
            ("PRODUCT_OUT_OF_STOCK", Reason::OutOfStock, Needs::Nobody),
            ("PRICE_MISMATCH", Reason::Price, Needs::Nobody),
            ("SESSION_LIMIT_REACHED", Reason::SessionLimit, Needs::Person),
            ("INSUFFICIENT_BALANCE", Reason::Balance, Needs::Person),
            ("BUDGET_EXCEEDED", Reason::Budget, Needs::Person),
            ("RATE_LIMIT_EXCEEDED", Reason::NoAnswer, Needs::Nobody),
            ("BACKEND_ERROR", Reason::Backend, Needs::Nobody),
            ("BACKEND_TIMEOUT", Reason::Backend, Needs::Nobody),
            ("INTERNAL_ERROR", Reason::Backend, Needs::Nobody),
            ("INVALID_REQUEST", Reason::Request, Needs::Caller),
            ("PRODUCT_NOT_FOUND", Reason::Request, Needs::Caller),
            ("AUTH_INVALID_KEY", Reason::Account, Needs::Person),
            ("ACCOUNT_DISABLED", Reason::Account, Needs::Person),
            ("SOMETHING_NEW", Reason::Account, Needs::Person),
        ];
        for (code, expected, needs) in refused {
            assert_eq!((of_code(code), expected.needs()), (expected, needs), "{code}");
        }
        for kind in [Kind::Unavailable, Kind::InDoubt] {
            assert_eq!(reason(kind, None, Advice::RetryLater), Reason::NoAnswer);
        }
        assert_eq!(reason(Kind::Invalid, None, Advice::ChangeRequest), Reason::Request);
        let ours = [Advice::ReadPrices, Advice::RaiseBudget, Advice::ChangeRequest, Advice::Stop];
        let reasons = [Reason::Price, Reason::Cap, Reason::Request, Reason::Account];
        assert_eq!(ours.map(|advice| reason(Kind::Refused, None, advice)), reasons);
    }
}
