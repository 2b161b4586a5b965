//! A pool's purchases: how many at once, what holds them back, and when one is tried. The pool's record has the part that all clients know.
//! The wish to buy, and its object, are decided elsewhere.

use super::leases::SlotNo;
use super::rules::{PoolRule, holds};
use crate::contract::pools::{PoolHold, PoolHoldReason as Reason, PoolNeeds as Needs};
use crate::contract::stored;
use crate::policy::{Advice, Backoff, Error, Kind};
use crate::time::Millis;

/// Purchases that are tried again after a failure.
const FAILED: Backoff = Backoff { first: 30_000, most: 600_000 };
/// Purchases that are tried again where what was bought is of no use.
const USELESS: Backoff = Backoff { first: 60_000, most: 3_600_000 };
/// A session that ends within this of being ready did not live.
const SHORT: Millis = 60_000;
/// So many sessions in a row that did not live, or that were ended since they failed.
const IN_A_ROW: u32 = 3;
const DAY: Millis = 86_400_000;
/// So many purchases may be under way at a time.
pub(crate) const AT_ONCE: u32 = 8;
/// A hold that is not in the record, and is there so soon after, was said between the two reads.
const SOON: Millis = 10_000;
/// Clocks of two clients may differ by this; where they differ by more, each goes by its own.
const OFF: Millis = 60_000;
/// For so long a client believes that another one's trial goes on. A purchase waits for its session for five minutes.
const TRIAL: Millis = 360_000;

/// The clients that a hold binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// The client whose own limit or request it is about.
    Own,
    /// All clients of the pool.
    Pool,
}

impl Reason {
    /// The reason of a purchase that failed, or may have bought, and whom it concerns.
    pub(crate) fn of_error(error: &Error) -> (Self, Scope) {
        let own = |reason| (reason, if holds(PoolRule::OwnLimitsAreOwn) { Scope::Own } else { Scope::Pool });
        let reason = match error.code.as_deref() {
            Some("PRODUCT_OUT_OF_STOCK") => Reason::OutOfStock,
            Some("PRICE_MISMATCH") => Reason::Price,
            Some("SESSION_LIMIT_REACHED") => Reason::SessionLimit,
            Some("INSUFFICIENT_BALANCE") => Reason::Balance,
            Some("BUDGET_EXCEEDED") => Reason::Budget,
            Some("BACKEND_ERROR" | "BACKEND_TIMEOUT" | "INTERNAL_ERROR") => Reason::Backend,
            // The quantity and the duration are each client's own.
            Some("INVALID_REQUEST") => return own(Reason::Request),
            Some("PRODUCT_NOT_FOUND") => Reason::Request,
            Some("ACCOUNT_DISABLED") => Reason::Account,
            Some(code) if code.starts_with("AUTH_") => Reason::Account,
            // NOT DOCUMENTED: the meaning of further codes. The purchase is sent again with its key.
            Some(_) => Reason::NoAnswer,
            None => match error.kind {
                Kind::Invalid | Kind::Misuse => return own(Reason::Request),
                Kind::Store => return own(Reason::Store),
                // By this client, before anything was sent.
                Kind::Refused => match error.advice {
                    // No product fits the choice of the pool.
                    Advice::ReadPrices if error.field.is_some() => Reason::OutOfStock,
                    Advice::ReadPrices => return own(Reason::Price),
                    Advice::RaiseBudget => return own(Reason::Cap),
                    Advice::ChangeRequest => return own(Reason::Request),
                    _ => Reason::Account,
                },
                _ => Reason::NoAnswer,
            },
        };
        (reason, Scope::Pool)
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
            Reason::NoAnswer => "since the service gives no answer, or an unknown one",
            Reason::Backend => "since the service fails",
            Reason::Store => "since the store fails",
            Reason::ShortLived => "since sessions end as soon as they are ready",
            Reason::NotReady => "since what was bought does not become ready, or can't be read",
            Reason::Failing => "since sessions fail one after the other",
            Reason::Request => "since the service refuses the request of the pool",
            Reason::Account => "since the account may not buy",
            Reason::Replaced => "since another client has opened it with another request",
            Reason::Paused => "since it is paused",
            Reason::Draining => "since it is drained",
        }
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

    /// When one is tried, after so many that failed. None where a person or program has to act first.
    fn retry_at(self, scope: Scope, tries: u32, unix: Millis) -> Option<Millis> {
        let after = |backoff: Backoff| unix.saturating_add(backoff.wait(tries));
        let next_day = unix.div_euclid(DAY).saturating_add(1).saturating_mul(DAY);
        match self {
            Reason::Account | Reason::Request if scope == Scope::Pool && holds(PoolRule::RefusalsStop) => None,
            Reason::Cap => Some(next_day),
            Reason::Budget => Some(after(FAILED).min(next_day)),
            Reason::ShortLived | Reason::NotReady | Reason::Failing => Some(after(USELESS)),
            _ => Some(after(FAILED)),
        }
    }
}

/// Nothing is bought but for one trial when its time has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Hold {
    pub(crate) reason: Reason,
    /// Unix milliseconds, as all clients can compare.
    pub(crate) since: Millis,
    /// When one is tried; none before somebody resumes the pool.
    pub(crate) retry_at: Option<Millis>,
    /// How many trials have failed.
    pub(crate) tries: u32,
    /// The slot whose session can't be read: nothing is bought elsewhere.
    pub(crate) slot: Option<SlotNo>,
    /// True if its trial is ready, and the hold ends at that time unless that ends before.
    pub(crate) watches: bool,
    /// When this was said, by the clock of the client that said it.
    pub(crate) said_at: Millis,
}
stored!(Hold { reason, since, retry_at, tries, slot, watches, said_at });

impl Hold {
    /// The next hold after another one, if there was one, whose trial this is, or not.
    fn after(before: Option<Hold>, reason: Reason, scope: Scope, unix: Millis) -> Hold {
        let same = before.filter(|hold| hold.reason == reason);
        let tries = same.map_or(0, |hold| hold.tries.saturating_add(1));
        Hold::new(reason, scope, tries, unix, same.map_or(unix, |hold| hold.since))
    }

    fn new(reason: Reason, scope: Scope, tries: u32, unix: Millis, since: Millis) -> Hold {
        let tries = if holds(PoolRule::HoldsDouble) { tries } else { 0 };
        Hold { reason, since, retry_at: reason.retry_at(scope, tries, unix), tries, slot: None, watches: false, said_at: unix }
    }

    /// The hold by a clock that is ahead of that one by so much.
    fn ahead(self, by: Millis) -> Hold {
        Hold { since: self.since.saturating_add(by), retry_at: self.retry_at.map(|at| at.saturating_add(by)), ..self }
    }

    /// Returns true if nothing is tried until a person or program acts.
    fn stops(self) -> bool {
        self.retry_at.is_none()
    }
}

/// The state of a pool's purchases that all its clients know, from its record.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Buying {
    /// True once a session of the pool was ready.
    pub(crate) proven: bool,
    pub(crate) hold: Option<Hold>,
    /// How many trials were begun, and the slot of the one that goes on. A client that claims that slot knows that it is over.
    pub(crate) trials: u32,
    pub(crate) trying: Option<SlotNo>,
    /// Sessions in a row that did not live; that were ended since they failed, without a good answer between them; and how often either
    /// has held.
    pub(crate) short_lived: u32,
    pub(crate) failing: u32,
    pub(crate) useless: u32,
}
stored!(Buying { proven, hold, trials, trying, short_lived, failing, useless });

/// A change of what all clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BuyingChange {
    /// Nothing is bought. `is_news`: a trial says so, or another request that was made when one was due.
    Held { hold: Hold, is_news: bool },
    /// Purchases may be made again.
    Freed,
    /// A trial begins, in this slot.
    Tries(SlotNo),
    /// The trial of that number is over.
    Tried(u32),
    /// A session is ready. `was_trial`: by a trial, which ends the hold; one since sessions don't live ends if this one does.
    Ready { was_trial: bool, unix: Millis },
    /// The trial of a hold lives.
    Lives,
    /// A session has ended, so long after it was ready.
    Ended { lived: Millis, unix: Millis },
    /// A session was ended since it failed.
    Failed { unix: Millis },
    /// A session had a good answer.
    Answered,
}

impl Buying {
    /// Changes it.
    pub(crate) fn apply(&mut self, change: BuyingChange) {
        match change {
            // Another client's hold stands, unless this says that nothing is to be tried at all.
            BuyingChange::Held { hold, is_news } if is_news || self.hold.is_none() || hold.stops() => self.hold = Some(hold),
            BuyingChange::Held { .. } => {}
            BuyingChange::Freed => self.hold = None,
            BuyingChange::Tries(slot) => (self.trials, self.trying) = (self.trials.wrapping_add(1), Some(slot)),
            BuyingChange::Tried(number) => self.trying = self.trying.filter(|_| self.trials != number),
            BuyingChange::Ready { was_trial, unix } => {
                self.proven = true;
                self.hold = self.hold.and_then(|hold| match () {
                    // A hold that stops it, which another purchase has met meanwhile, stays.
                    () if !was_trial || hold.stops() => Some(hold),
                    () if hold.reason == Reason::ShortLived => {
                        Some(Hold { retry_at: Some(unix.saturating_add(SHORT)), watches: true, said_at: unix, ..hold })
                    }
                    () => None,
                });
            }
            BuyingChange::Lives => self.hold = self.hold.filter(|hold| !hold.watches),
            BuyingChange::Ended { lived, .. } if lived >= SHORT => {
                (self.short_lived, self.useless) = (0, 0);
                self.apply(BuyingChange::Lives);
            }
            BuyingChange::Ended { unix, .. } => {
                self.short_lived = self.short_lived.saturating_add(1);
                self.hold_useless(self.short_lived, Reason::ShortLived, unix);
            }
            BuyingChange::Failed { unix } => {
                self.failing = self.failing.saturating_add(1);
                self.hold_useless(self.failing, Reason::Failing, unix);
            }
            BuyingChange::Answered => self.failing = 0,
        }
    }

    /// The pool is opened: a hold that lasts until then ends. `is_replaced`: with another request, of which nothing is known yet.
    pub(crate) fn opened(&mut self, is_replaced: bool) {
        if is_replaced {
            *self = Buying { trials: self.trials, trying: self.trying, ..Buying::default() };
        }
        self.hold = self.hold.filter(|hold| !hold.stops());
    }

    /// The third in a row is a hold; after its trial one more is enough. A purchase before a hold says nothing new.
    fn hold_useless(&mut self, in_a_row: u32, reason: Reason, unix: Millis) {
        let rule = if reason == Reason::Failing { PoolRule::FailingHolds } else { PoolRule::ShortLivedHolds };
        if in_a_row >= IN_A_ROW && self.hold.is_none_or(|hold| hold.watches) && holds(rule) {
            self.hold = Some(Hold::new(reason, Scope::Pool, self.useless, unix, unix));
            self.useless = self.useless.saturating_add(1);
        }
    }
}

/// The purchases that are allowed now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum May {
    /// So many purchases may be begun.
    Buy(u32),
    /// One, as a trial.
    Try(HoldTrial),
    /// None.
    Wait,
}

/// The purchase that is a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HoldTrial {
    /// Any, by each client whose own hold it is.
    Own,
    /// Any.
    Any,
    /// The one that had no answer, with its key; any where there is none.
    Same,
    /// That, after the service has shown its products.
    AfterRead,
    /// In this slot, where its session is over by now.
    There(SlotNo),
}

impl HoldTrial {
    fn scope(self) -> Scope {
        if self == HoldTrial::Own { Scope::Own } else { Scope::Pool }
    }
}

/// The purchases of one client for a pool.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Buyer {
    under_way: u32,
    /// The trial among them, and its number in the record.
    trial: Option<Scope>,
    number: Option<u32>,
    /// The contents of the record; when the number of trials was seen to change, monotonic; and the number of a trial that is over.
    pool: Buying,
    seen_at: Millis,
    over: Option<u32>,
    /// The hold of this client.
    own: Option<Hold>,
    /// True if the service has shown its products since the hold began.
    has_read: bool,
    /// When the record was read, monotonic; and by how much this client's clock is ahead of that of the client whose hold it is.
    read_at: Option<Millis>,
    ahead: Millis,
    /// True if that is only known by others, who need sessions and do not try.
    is_guess: bool,
}

impl Buyer {
    /// The purchases that are allowed now.
    pub(crate) fn may(&self, unix: Millis, now: Millis) -> May {
        match self.allows(unix, now) {
            _ if self.trial.is_some() => May::Wait,
            May::Buy(_) if !holds(PoolRule::FewAtOnce) => May::Buy(u32::MAX),
            May::Buy(_) if self.under_way >= AT_ONCE => May::Wait,
            May::Buy(_) => May::Buy(AT_ONCE - self.under_way),
            may => may,
        }
    }

    /// Returns true if a purchase that waits for this may be made. `is_trial`: as the trial that it was to be.
    pub(crate) fn may_still(&self, is_trial: bool, unix: Millis, now: Millis) -> bool {
        match self.allows(unix, now) {
            May::Try(trial) => is_trial && self.trial == Some(trial.scope()),
            May::Buy(_) => !is_trial,
            May::Wait => false,
        }
    }

    /// Returns true if a purchase that was begun may go on, as long as nothing of it was sent.
    pub(crate) fn may_go_on(&self, is_trial: bool, unix: Millis, now: Millis) -> bool {
        match self.allows(unix, now) {
            May::Buy(_) => true,
            May::Try(_) => is_trial,
            May::Wait => false,
        }
    }

    /// The same, whatever is under way.
    fn allows(&self, unix: Millis, now: Millis) -> May {
        let is_due = |hold: Hold| hold.retry_at.is_some_and(|at| at <= unix || !holds(PoolRule::HoldsWait));
        if !self.own.into_iter().chain(self.pool_hold()).all(is_due) {
            return May::Wait;
        }
        let trial = match self.pool.hold {
            None if self.is_proven() => {
                return if self.own.is_some() { May::Try(HoldTrial::Own) } else { May::Buy(AT_ONCE) };
            }
            _ if self.does_another_try(now) => return May::Wait,
            // Whether the bought session can be used is not known yet.
            None => HoldTrial::Same,
            Some(Hold { slot: Some(slot), .. }) if holds(PoolRule::UnreadIsTriedThere) => HoldTrial::There(slot),
            Some(Hold { reason: Reason::Backend, .. }) if !self.has_read && holds(PoolRule::ProductsAreReadFirst) => HoldTrial::AfterRead,
            Some(Hold { reason: Reason::NoAnswer | Reason::Backend, .. }) if holds(PoolRule::TrialKeepsKey) => HoldTrial::Same,
            Some(_) => HoldTrial::Any,
        };
        May::Try(trial)
    }

    fn does_another_try(&self, now: Millis) -> bool {
        let is_over = self.over == Some(self.pool.trials) || now.saturating_sub(self.seen_at) >= TRIAL;
        holds(PoolRule::OneTries) && self.number != Some(self.pool.trials) && self.pool.trying.is_some() && !is_over
    }

    /// Returns true if a session of the pool was ready.
    pub(crate) fn is_proven(&self) -> bool {
        self.pool.proven || !holds(PoolRule::FirstIsATrial)
    }

    /// When that changes by time, monotonic.
    pub(crate) fn changes_at(&self, unix: Millis, now: Millis) -> Option<Millis> {
        let hold = self.hold().map(|hold| Some(now.saturating_add(hold.retry_at?.saturating_sub(unix))));
        let trial = self.does_another_try(now).then_some(self.seen_at.saturating_add(TRIAL));
        match hold {
            Some(hold) => hold.map(|at| at.max(trial.unwrap_or(at))),
            None => trial,
        }
    }

    /// When a hold ends whose trial lives (Unix milliseconds).
    pub(crate) fn watches_until(&self) -> Option<Millis> {
        self.pool_hold().filter(|hold| hold.watches).and_then(|hold| hold.retry_at)
    }

    /// The time has come to say that the trial of a hold lives.
    pub(crate) fn outlived(&self, unix: Millis) -> Option<BuyingChange> {
        self.watches_until().filter(|at| *at <= unix).map(|_| BuyingChange::Lives)
    }

    /// Returns true if nothing may be bought but by a trial.
    pub(crate) fn needs_trial(&self) -> bool {
        !self.pool.proven || self.hold().is_some()
    }

    /// The hold that lasts longest.
    pub(crate) fn hold(&self) -> Option<Hold> {
        self.own.into_iter().chain(self.pool_hold()).max_by_key(|hold| hold.retry_at.unwrap_or(Millis::MAX))
    }

    /// The hold of all clients, by this one's clock.
    fn pool_hold(&self) -> Option<Hold> {
        self.pool.hold.map(|hold| hold.ahead(self.ahead))
    }

    /// The pool's record was read. `others_try`: other clients need more sessions than they have. They would have tried one that is due for
    /// long, so a clock that shows it to be due is ahead of theirs.
    pub(crate) fn read(&mut self, pool: Buying, others_try: bool, unix: Millis, now: Millis) {
        let is_soon = self.read_at.is_some_and(|at| now.saturating_sub(at) <= SOON);
        self.read_at = Some(now);
        match pool.hold {
            hold if hold == self.pool.hold => {
                if self.is_guess && !others_try {
                    (self.is_guess, self.ahead) = (false, 0);
                }
            }
            hold => {
                let is_overdue = hold.and_then(|hold| hold.retry_at).is_some_and(|at| unix.saturating_sub(at) > OFF);
                self.is_guess = is_overdue && others_try && !is_soon;
            }
        }
        self.knows(pool, unix, now, is_soon || self.is_guess);
    }

    /// Returns true if it waits for others to try what its clock shows to be due.
    pub(crate) fn waits_for_others(&self) -> bool {
        self.is_guess
    }

    /// This client changes the pool's record.
    pub(crate) fn changes(&mut self, pool: Buying, unix: Millis, now: Millis) {
        self.knows(pool, unix, now, true);
    }

    /// `is_soon`: a hold that is new was said just now, so the clock of its client shows the same time as this one's, or is off.
    fn knows(&mut self, pool: Buying, unix: Millis, now: Millis, is_soon: bool) {
        if pool.trials != self.pool.trials {
            self.seen_at = now;
        }
        if pool.hold != self.pool.hold {
            self.has_read = false;
            let off = pool.hold.filter(|_| is_soon).map_or(0, |hold| unix.saturating_sub(hold.said_at));
            self.ahead = if off.saturating_abs() > OFF { off } else { 0 };
        }
        self.pool = pool;
    }

    /// A slot was claimed: if another client's trial was there, that is over.
    pub(crate) fn claimed(&mut self, slot: SlotNo) {
        if self.pool.trying == Some(slot) {
            self.over = Some(self.pool.trials);
        }
    }

    /// Returns true if its trial is one of all clients, of which the record is to know.
    pub(crate) fn tries_for_all(&self) -> bool {
        self.trial == Some(Scope::Pool)
    }

    /// The record says that its trial goes on, or could not be put.
    pub(crate) fn marked(&mut self, is_marked: bool) {
        self.number = is_marked.then_some(self.pool.trials);
    }

    pub(crate) fn begun(&mut self, trial: Option<HoldTrial>) {
        self.under_way = self.under_way.saturating_add(1);
        self.trial = trial.map(HoldTrial::scope).or(self.trial);
    }

    /// Purchases may be made again by this client.
    pub(crate) fn freed(&mut self) {
        self.own = None;
    }

    /// A purchase became a ready session.
    pub(crate) fn ready(&mut self, was_trial: bool, unix: Millis) -> Vec<BuyingChange> {
        let (was_of_all, tried) = self.ended_purchase(was_trial);
        if was_trial {
            self.own = None;
        }
        let ready = (was_of_all || !self.pool.proven).then_some(BuyingChange::Ready { was_trial: was_of_all, unix });
        tried.into_iter().chain(ready).collect()
    }

    /// A session in this slot can be used that was not bought now.
    pub(crate) fn usable(&self, slot: SlotNo, unix: Millis) -> Option<BuyingChange> {
        let was_trial = self.pool.hold.is_some_and(|hold| hold.slot == Some(slot));
        (was_trial || !self.pool.proven).then_some(BuyingChange::Ready { was_trial, unix })
    }

    /// A purchase was made, or found to have been, and there is no session to use any more.
    pub(crate) fn bought(&mut self, was_trial: bool, unix: Millis) -> Vec<BuyingChange> {
        let (was_of_all, tried) = self.ended_purchase(was_trial);
        if was_trial {
            self.own = None;
        }
        // The hold lasts, so the next trial has to wait, too.
        let hold = if was_of_all { self.try_later(unix) } else { None };
        tried.into_iter().chain(hold).collect()
    }

    /// The service works again: the next purchase is the trial.
    pub(crate) fn may_try(&mut self) {
        self.has_read = true;
    }

    /// Postpones a trial that was not made.
    pub(crate) fn try_later(&mut self, unix: Millis) -> Option<BuyingChange> {
        let hold = self.pool.hold.filter(|hold| !hold.stops())?;
        let hold = Hold { slot: hold.slot, ..Hold::after(Some(hold), hold.reason, Scope::Pool, unix) };
        Some(BuyingChange::Held { hold, is_news: true })
    }

    /// A purchase bought nothing, or may have.
    pub(crate) fn failed(&mut self, was_trial: bool, why: (Reason, Scope), unix: Millis) -> Vec<BuyingChange> {
        let (was_of_all, tried) = self.ended_purchase(was_trial);
        tried.into_iter().chain(self.refused(was_of_all, was_trial, why, unix)).collect()
    }

    /// A purchase did not become ready in time. `slot`: its session can't be read.
    pub(crate) fn not_ready(&mut self, was_trial: bool, slot: Option<SlotNo>, unix: Millis) -> Vec<BuyingChange> {
        let mut changes = self.failed(was_trial, (Reason::NotReady, Scope::Pool), unix);
        for change in &mut changes {
            if let BuyingChange::Held { hold, .. } = change {
                hold.slot = slot;
            }
        }
        changes
    }

    /// An operation was refused that does not count as a purchase under way, such as a renewal. `was_due`: when a trial was due.
    pub(crate) fn not_renewed(&mut self, was_due: bool, why: (Reason, Scope), unix: Millis) -> Option<BuyingChange> {
        self.refused(was_due, was_due, why, unix)
    }

    fn refused(&mut self, is_news: bool, was_own: bool, (reason, scope): (Reason, Scope), unix: Millis) -> Option<BuyingChange> {
        if scope == Scope::Own {
            if was_own || self.own.is_none() {
                self.own = Some(Hold::after(self.own, reason, scope, unix));
            }
            return None;
        }
        if was_own {
            self.own = None;
        }
        let hold = Hold::after(self.pool.hold, reason, scope, unix);
        // An operation from before the hold gives no news, unless it is worse.
        let is_known = self.pool.hold.is_some_and(|known| !is_news && (known.stops() || !hold.stops()));
        (!is_known).then_some(BuyingChange::Held { hold, is_news })
    }

    /// A session is over, so long after it was ready.
    pub(crate) fn ended(&self, lived: Millis, unix: Millis) -> Option<BuyingChange> {
        let is_news = lived < SHORT || self.pool.short_lived > 0 || self.pool.useless > 0;
        is_news.then_some(BuyingChange::Ended { lived, unix })
    }

    /// Returns true if sessions that fail are replaced.
    pub(crate) fn replaces_failing(&self) -> bool {
        self.pool.hold.is_none_or(|hold| hold.reason != Reason::Failing)
    }

    /// A session had a good answer.
    pub(crate) fn answered(&self) -> Option<BuyingChange> {
        (self.pool.failing > 0).then_some(BuyingChange::Answered)
    }

    /// A purchase is not under way any more. Returns true if it was a trial of all, and what the record is to know then.
    pub(crate) fn ended_purchase(&mut self, was_trial: bool) -> (bool, Option<BuyingChange>) {
        self.under_way = self.under_way.saturating_sub(1);
        let trial = if was_trial { self.trial.take() } else { None };
        let number = if was_trial { self.number.take() } else { None };
        (trial == Some(Scope::Pool), number.map(BuyingChange::Tried))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Effect;

    /// An hour after a UTC midnight.
    const NOW: Millis = 20_000 * DAY + 3_600_000;
    const TOMORROW: Millis = 20_001 * DAY;

    /// What the record of a pool says, and the buyers of clients that have read it.
    struct Fleet {
        record: Buying,
        buyers: Vec<Buyer>,
        /// The time of their clocks.
        unix: Millis,
    }

    impl Fleet {
        /// A pool of which a session was ready.
        fn of(clients: usize) -> Fleet {
            let mut fleet =
                Fleet { record: Buying { proven: true, ..Buying::default() }, buyers: vec![Buyer::default(); clients], unix: NOW };
            fleet.read(0);
            fleet
        }

        /// A pool without a session yet.
        fn new(clients: usize) -> Fleet {
            Fleet { record: Buying::default(), buyers: vec![Buyer::default(); clients], unix: NOW }
        }

        fn read(&mut self, now: Millis) {
            self.buyers.iter_mut().for_each(|buyer| buyer.read(self.record, false, self.unix, now));
        }

        /// All clients hear of these.
        fn hear(&mut self, changes: impl IntoIterator<Item = BuyingChange>, now: Millis) {
            changes.into_iter().for_each(|change| self.record.apply(change));
            self.read(now);
        }

        /// A client tries one in a slot.
        fn tries(&mut self, client: usize, unix: Millis, now: Millis) {
            self.unix = unix;
            let May::Try(trial) = self.buyers[client].may(unix, now) else { panic!("no trial is due") };
            self.buyers[client].begun(Some(trial));
            let tells = self.buyers[client].tries_for_all().then_some(BuyingChange::Tries(7));
            self.hear(tells, now);
            if tells.is_some() {
                self.buyers[client].marked(true);
            }
        }

        fn fails(&mut self, client: usize, was_trial: bool, why: (Reason, Scope), unix: Millis) {
            self.unix = unix;
            let changes = self.buyers[client].failed(was_trial, why, unix);
            self.hear(changes, 0);
        }

        fn is_ready(&mut self, client: usize, was_trial: bool) {
            self.unix = NOW;
            let changes = self.buyers[client].ready(was_trial, NOW);
            self.hear(changes, 0);
        }

        fn hold(&self) -> Hold {
            self.record.hold.expect("is held")
        }
    }

    fn of_all(reason: Reason) -> (Reason, Scope) {
        (reason, Scope::Pool)
    }

    fn own(reason: Reason) -> (Reason, Scope) {
        (reason, Scope::Own)
    }

    /// When trials are made that all fail so, in seconds after the failure before.
    fn trials(why: (Reason, Scope), most: usize) -> Vec<Millis> {
        let (mut fleet, mut unix, mut trial, mut waits) = (Fleet::of(1), NOW, false, Vec::new());
        while waits.len() < most {
            match trial {
                true => fleet.tries(0, unix, 0),
                false => fleet.buyers[0].begun(None),
            }
            fleet.fails(0, trial, why, unix);
            let Some(at) = fleet.buyers[0].hold().expect("holds").retry_at else { break };
            assert_eq!(fleet.buyers[0].may(at - 1, 0), May::Wait);
            assert_eq!(fleet.buyers[0].changes_at(unix, 5), Some(5 + at - unix));
            waits.push((at - unix) / 1000);
            (unix, trial) = (at, true);
            fleet.buyers[0].may_try();
        }
        waits
    }

    #[test]
    fn a_client_whose_clock_is_off_waits_as_long_as_the_others() {
        for off in [0, 50_000, -50_000, 3_600_000, -3_600_000] {
            let held = Buying { proven: true, hold: Some(Hold::new(Reason::NotReady, Scope::Pool, 0, NOW, NOW)), ..Buying::default() };
            let unix = NOW + off;
            let mut buyer = Buyer::default();
            buyer.read(Buying { hold: None, ..held }, false, unix, 0);
            buyer.read(held, false, unix + 3000, 3000);
            // Of a smaller difference nobody can say whether the clock or the record was late.
            let wait = if off.abs() > OFF { 60_000 } else { 57_000 - off };
            let may = |waited: Millis| buyer.may(unix + 3000 + waited, 3000 + waited);
            assert_eq!((may(wait - 1), may(wait)), (May::Wait, May::Try(HoldTrial::Any)), "{off}");
            assert_eq!(buyer.changes_at(unix + 3000, 3000), Some(3000 + wait));
            // Whoever comes later, or was long away, has only the record to go by.
            let mut late = Buyer::default();
            late.read(Buying { hold: None, ..held }, false, unix, 0);
            late.read(held, false, unix + 11_000, 11_000);
            assert_eq!(late.changes_at(unix, 0), Some(60_000 - off));
        }
    }

    #[test]
    fn who_finds_a_hold_long_over_that_others_in_need_wait_for_has_a_clock_that_is_ahead() {
        let held = Buying { proven: true, hold: Some(Hold::new(Reason::NotReady, Scope::Pool, 0, NOW, NOW)), ..Buying::default() };
        for (off, others_try, waits) in [
            (3_600_000, true, 60_000),
            (3_600_000, false, 0),
            (60_000 + OFF, true, 0),
            (50_000, true, 10_000),
            (-3_600_000, true, 3_660_000),
        ] {
            let (unix, mut buyer) = (NOW + off, Buyer::default());
            buyer.read(held, others_try, unix, 0);
            let may = |buyer: &Buyer, now| buyer.may(unix + now, now);
            assert_eq!(may(&buyer, waits), May::Try(HoldTrial::Any), "{off} {others_try}");
            assert!(waits == 0 || may(&buyer, waits - 1) == May::Wait, "{off} {others_try}");
            // Once nobody else is seen to need anything, there is nobody to wait for.
            buyer.read(held, false, unix + 9000, 9000);
            assert_eq!(may(&buyer, 9000) == May::Wait, off <= 50_000, "{off} {others_try}");
        }
    }

    #[test]
    fn trials_are_made_ever_less_often() {
        for reason in [Reason::OutOfStock, Reason::Price, Reason::SessionLimit, Reason::Balance, Reason::NoAnswer, Reason::Backend] {
            assert_eq!(trials(of_all(reason), 7), [30, 60, 120, 240, 480, 600, 600], "{reason:?}");
        }
        for reason in [Reason::Price, Reason::Request, Reason::Store] {
            assert_eq!(trials(own(reason), 7), [30, 60, 120, 240, 480, 600, 600], "{reason:?}");
        }
        assert_eq!(trials(of_all(Reason::NotReady), 8), [60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(trials(own(Reason::Cap), 2), [82_800, 86_400]);
        assert!(trials(of_all(Reason::Request), 2).is_empty());
        assert!(trials(of_all(Reason::Account), 2).is_empty());
    }

    #[test]
    fn a_budget_is_tried_once_more_at_the_next_utc_day() {
        let mut fleet = Fleet::of(1);
        fleet.buyers[0].begun(None);
        fleet.fails(0, false, of_all(Reason::Budget), TOMORROW - 40_000);
        fleet.tries(0, TOMORROW - 10_000, 0);
        fleet.fails(0, true, of_all(Reason::Budget), TOMORROW - 10_000);
        assert_eq!(fleet.hold().retry_at, Some(TOMORROW));
    }

    #[test]
    fn the_first_purchase_of_all_is_a_trial_and_after_it_eight_are_bought_at_once() {
        let mut fleet = Fleet::new(3);
        assert_eq!(fleet.buyers[1].may(NOW, 0), May::Try(HoldTrial::Same));
        fleet.tries(0, NOW, 0);
        let may = |fleet: &Fleet, now| fleet.buyers.iter().map(|buyer| buyer.may(NOW, now)).collect::<Vec<_>>();
        assert_eq!(may(&fleet, TRIAL - 1), [May::Wait; 3]);
        fleet.is_ready(0, true);
        assert_eq!(may(&fleet, 0), [May::Buy(8); 3]);
        (0..8).for_each(|_| fleet.buyers[0].begun(None));
        assert_eq!(may(&fleet, 0), [May::Wait, May::Buy(8), May::Buy(8)]);
        // One session that is bought by one of many says so, too; and one that is taken over.
        let mut other = Fleet::new(1);
        assert_eq!(other.buyers[0].usable(3, NOW), Some(BuyingChange::Ready { was_trial: false, unix: NOW }));
        other.hear(Some(BuyingChange::Ready { was_trial: false, unix: NOW }), 0);
        assert_eq!((other.buyers[0].usable(3, NOW), other.buyers[0].may(NOW, 0)), (None, May::Buy(8)));
    }

    #[test]
    fn a_trial_whose_client_is_gone_is_over_after_its_time_or_once_its_slot_is_somebody_elses() {
        let mut fleet = Fleet::new(2);
        fleet.tries(0, NOW, 1000);
        assert_eq!(fleet.buyers[1].may(NOW, 1000 + TRIAL - 1), May::Wait);
        assert_eq!(fleet.buyers[1].changes_at(NOW, 1000), Some(1000 + TRIAL));
        assert_eq!(fleet.buyers[1].may(NOW, 1000 + TRIAL), May::Try(HoldTrial::Same));
        // A later one is believed anew; so is the same number in a client that reads it later.
        fleet.hear([BuyingChange::Tries(7)], 500_000);
        assert_eq!(fleet.buyers[1].may(NOW, 500_000 + TRIAL - 1), May::Wait);
        fleet.buyers[1].claimed(3);
        assert_eq!(fleet.buyers[1].may(NOW, 500_000), May::Wait);
        fleet.buyers[1].claimed(7);
        assert_eq!(fleet.buyers[1].may(NOW, 500_000), May::Try(HoldTrial::Same));
        fleet.read(600_000);
        assert_eq!(fleet.buyers[1].may(NOW, 600_000), May::Try(HoldTrial::Same), "the same trial is not believed again");
    }

    #[test]
    fn a_purchase_that_waits_for_the_record_is_made_only_if_it_still_may_be() {
        let mut fleet = Fleet::new(2);
        fleet.buyers[0].begun(Some(HoldTrial::Same));
        assert!(fleet.buyers[0].may_still(true, NOW, 0));
        fleet.tries(1, NOW, 0);
        assert!(!fleet.buyers[0].may_still(true, NOW, 0), "another one tries");
        assert_eq!(fleet.buyers[0].ended_purchase(true), (true, None), "the record knows nothing of it");
        fleet.is_ready(1, true);
        fleet.buyers[0].begun(None);
        assert!(fleet.buyers[0].may_still(false, NOW, 0));
        fleet.hear([BuyingChange::Held { hold: Hold::after(None, Reason::Balance, Scope::Pool, NOW), is_news: false }], 0);
        assert!(!fleet.buyers[0].may_still(false, NOW, 0) && !fleet.buyers[0].may_still(false, NOW + 30_000, 0));
    }

    #[test]
    fn one_trial_at_a_time_and_its_success_ends_the_hold() {
        let mut fleet = Fleet::of(2);
        [0, 0, 1].into_iter().for_each(|client| fleet.buyers[client].begun(None));
        fleet.fails(0, false, of_all(Reason::OutOfStock), NOW);
        let hold = fleet.hold();
        // Others that were begun before neither double nor end it.
        fleet.fails(1, false, of_all(Reason::OutOfStock), NOW + 1);
        fleet.is_ready(0, false);
        assert_eq!(fleet.hold(), hold);
        assert_eq!(fleet.buyers[1].may(NOW + 30_000, 0), May::Try(HoldTrial::Any));
        fleet.tries(0, NOW + 30_000, 0);
        assert_eq!([0, 1].map(|client: usize| fleet.buyers[client].may(NOW + 30_000, 0)), [May::Wait; 2]);
        fleet.is_ready(0, true);
        assert_eq!([0, 1].map(|client: usize| fleet.buyers[client].may(NOW + 30_000, 0)), [May::Buy(8); 2]);
    }

    #[test]
    fn which_purchase_is_tried() {
        let trial = |reason| {
            let mut fleet = Fleet::of(1);
            fleet.buyers[0].begun(None);
            fleet.fails(0, false, of_all(reason), NOW);
            let first = fleet.buyers[0].may(NOW + 60_000, 0);
            fleet.buyers[0].may_try();
            (first, fleet.buyers[0].may(NOW + 60_000, 0))
        };
        assert_eq!(trial(Reason::NoAnswer), (May::Try(HoldTrial::Same), May::Try(HoldTrial::Same)));
        assert_eq!(trial(Reason::Backend), (May::Try(HoldTrial::AfterRead), May::Try(HoldTrial::Same)));
        assert_eq!(trial(Reason::Balance), (May::Try(HoldTrial::Any), May::Try(HoldTrial::Any)));
        assert_eq!(trial(Reason::Account), (May::Wait, May::Wait));
    }

    #[test]
    fn where_a_session_cant_be_read_nothing_is_bought_beside_it() {
        let mut fleet = Fleet::new(2);
        fleet.tries(0, NOW, 0);
        let changes = fleet.buyers[0].not_ready(true, Some(7), NOW);
        fleet.hear(changes, 0);
        assert_eq!((fleet.hold().reason, fleet.hold().slot), (Reason::NotReady, Some(7)));
        assert_eq!(fleet.buyers[1].may(NOW + 60_000, 0), May::Try(HoldTrial::There(7)));
        // Once it can be used, all is well.
        assert_eq!(fleet.buyers[1].usable(6, NOW), Some(BuyingChange::Ready { was_trial: false, unix: NOW }));
        let change = fleet.buyers[1].usable(7, NOW);
        fleet.hear(change, 0);
        assert_eq!(fleet.buyers[0].may(NOW, 0), May::Buy(8));
    }

    #[test]
    fn a_limit_of_one_client_holds_that_client_alone() {
        let mut fleet = Fleet::of(2);
        fleet.buyers[0].begun(None);
        fleet.fails(0, false, own(Reason::Price), NOW);
        assert_eq!((fleet.record.hold, fleet.buyers[1].may(NOW, 0)), (None, May::Buy(8)));
        assert_eq!([NOW, NOW + 30_000].map(|at| fleet.buyers[0].may(at, 0)), [May::Wait, May::Try(HoldTrial::Own)]);
        fleet.tries(0, NOW + 30_000, 0);
        assert_eq!((fleet.record.trying, fleet.buyers[0].may(NOW + 30_000, 0)), (None, May::Wait));
        assert!(fleet.buyers[0].may_still(true, NOW + 30_000, 0));
        fleet.is_ready(0, true);
        assert_eq!((fleet.buyers[0].hold(), fleet.buyers[0].may(NOW, 0)), (None, May::Buy(8)));
        // A first purchase that meets one tells the others that its trial is over.
        let mut fleet = Fleet::new(2);
        fleet.tries(0, NOW, 0);
        fleet.fails(0, true, own(Reason::Cap), NOW);
        assert_eq!([0, 1].map(|client: usize| fleet.buyers[client].may(NOW, 0)), [May::Wait, May::Try(HoldTrial::Same)]);
    }

    #[test]
    fn a_trial_that_fails_otherwise_begins_anew_and_what_stops_counts_at_once() {
        let mut fleet = Fleet::of(1);
        [0, 0].into_iter().for_each(|client| fleet.buyers[client].begun(None));
        fleet.fails(0, false, of_all(Reason::NoAnswer), NOW);
        fleet.tries(0, NOW + 30_000, 0);
        fleet.fails(0, true, of_all(Reason::OutOfStock), NOW + 30_000);
        let hold = fleet.hold();
        assert_eq!((hold.reason, hold.since, hold.retry_at), (Reason::OutOfStock, NOW + 30_000, Some(NOW + 60_000)));
        fleet.fails(0, false, of_all(Reason::Account), NOW + 40_000);
        assert_eq!((fleet.hold().retry_at, fleet.buyers[0].may(Millis::MAX, 0)), (None, May::Wait));
        fleet.hear([BuyingChange::Freed], 0);
        assert_eq!(fleet.buyers[0].may(NOW, 0), May::Buy(8));
    }

    #[test]
    fn three_sessions_in_a_row_that_do_not_live_hold_for_ever_longer_whoever_counts() {
        let mut fleet = Fleet::of(1);
        let ends = |fleet: &mut Fleet, lived| {
            // Each end is seen by a client that has read no more than the record.
            let mut client = Buyer::default();
            client.read(fleet.record, false, NOW, 0);
            fleet.unix = NOW;
            fleet.hear(client.ended(lived, NOW), 0);
            fleet.record.hold.map(|hold| (hold.reason, hold.retry_at.expect("is tried") - NOW))
        };
        assert_eq!([59_999, 60_000, 0, 59_999].map(|lived| ends(&mut fleet, lived)), [None; 4]);
        assert_eq!(ends(&mut fleet, 1), Some((Reason::ShortLived, 60_000)));
        // Earlier purchases say nothing new.
        assert_eq!(ends(&mut fleet, 1), Some((Reason::ShortLived, 60_000)));
        // After its trial each further one holds again, twice as long.
        let waits = [0; 7].map(|_| {
            fleet.tries(0, NOW + 3_600_000, 0);
            fleet.is_ready(0, true);
            ends(&mut fleet, 1).expect("holds").1 / 60_000
        });
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        // While its trial may still end early, nothing else is bought.
        fleet.tries(0, NOW + 3_600_000, 0);
        fleet.is_ready(0, true);
        let may = |fleet: &Fleet, at| (fleet.buyers[0].may(at, 0), fleet.buyers[0].outlived(at), fleet.buyers[0].watches_until());
        assert_eq!(may(&fleet, NOW + 59_999), (May::Wait, None, Some(NOW + 60_000)));
        let mut lives = Fleet { record: fleet.record, buyers: fleet.buyers.clone(), unix: fleet.unix };
        lives.hear(lives.buyers[0].outlived(NOW + 60_000), 0);
        assert_eq!((may(&lives, NOW + 60_000), lives.record.useless), ((May::Buy(8), None, None), 8));
        assert_eq!([60_000, 1, 1].map(|lived| ends(&mut fleet, lived)), [None; 3]);
        assert_eq!(ends(&mut fleet, 1), Some((Reason::ShortLived, 60_000)));
    }

    #[test]
    fn three_sessions_in_a_row_that_fail_without_a_good_answer_between_them_are_a_hold() {
        let mut fleet = Fleet::of(1);
        let fails = |fleet: &mut Fleet| {
            fleet.hear([BuyingChange::Failed { unix: NOW }], 0);
            fleet.record.hold.map(|hold| hold.reason)
        };
        assert_eq!(fleet.buyers[0].answered(), None);
        assert_eq!([0; 2].map(|_| fails(&mut fleet)), [None; 2]);
        let answered = fleet.buyers[0].answered();
        fleet.hear(answered, 0);
        assert_eq!([0; 2].map(|_| fails(&mut fleet)), [None; 2]);
        assert!(fleet.buyers[0].replaces_failing());
        assert_eq!(fails(&mut fleet), Some(Reason::Failing));
        assert!(!fleet.buyers[0].replaces_failing());
    }

    #[test]
    fn opening_ends_what_lasts_until_then_and_another_request_is_not_proven() {
        let mut record = Buying { proven: true, short_lived: 2, trials: 4, ..Buying::default() };
        record.hold = Some(Hold::after(None, Reason::Account, Scope::Pool, NOW));
        let lasting = Buying { hold: Some(Hold::after(None, Reason::Balance, Scope::Pool, NOW)), ..record };
        let opened = |mut record: Buying, is_replaced| {
            record.opened(is_replaced);
            record
        };
        assert_eq!(opened(record, false), Buying { hold: None, ..record });
        assert_eq!(opened(lasting, false), lasting);
        assert_eq!(opened(lasting, true), Buying { trials: 4, ..Buying::default() });
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
            ("PRODUCT_NOT_FOUND", Reason::Request, Needs::Caller),
            ("AUTH_INVALID_KEY", Reason::Account, Needs::Person),
            ("ACCOUNT_DISABLED", Reason::Account, Needs::Person),
            ("AUTH_INSUFFICIENT_PERMISSION", Reason::Account, Needs::Person),
            ("AUTH_SOMETHING", Reason::Account, Needs::Person),
            ("SOMETHING_NEW", Reason::NoAnswer, Needs::Nobody),
        ];
        for (code, expected, needs) in refused {
            assert_eq!((of_code(code), expected.needs()), (of_all(expected), needs), "{code}");
        }
        assert_eq!(of_code("INVALID_REQUEST"), own(Reason::Request));
        for kind in [Kind::Unavailable, Kind::InDoubt] {
            assert_eq!(reason(kind, None, Advice::RetryLater), of_all(Reason::NoAnswer));
        }
        assert_eq!(reason(Kind::Invalid, None, Advice::ChangeRequest), own(Reason::Request));
        assert_eq!(reason(Kind::Store, None, Advice::MendStore), own(Reason::Store));
        let ours = [Advice::ReadPrices, Advice::RaiseBudget, Advice::ChangeRequest, Advice::Stop];
        let reasons = [own(Reason::Price), own(Reason::Cap), own(Reason::Request), of_all(Reason::Account)];
        assert_eq!(ours.map(|advice| reason(Kind::Refused, None, advice)), reasons);
    }
}
