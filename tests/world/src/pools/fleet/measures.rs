//! The measures of a plan, from the outside only: grants, purchases, and calls of the store.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use hopline::client::Millis;

use super::caller::Caller;

/// A lease that was granted.
#[derive(Debug)]
struct Grant {
    at: Millis,
    place: usize,
    caller: usize,
    waited: Millis,
    session: u32,
}

/// The outcome of a caller's requests.
#[derive(Debug, Default, Clone)]
struct Heard {
    late: u32,
    worst: Millis,
    good: u32,
    bad: u32,
}

/// The events of a plan that are measured. Times are in milliseconds since its beginning.
#[derive(Debug, Default)]
pub(super) struct Lived {
    lasts: Millis,
    grants: Vec<Grant>,
    sessions: BTreeMap<String, u32>,
    callers: Vec<Heard>,
    /// When each program began and ended, and its place.
    lives: Vec<(u8, usize, Millis, Millis)>,
    /// When each purchase with a new key was sent.
    purchases: Vec<Millis>,
    keys: BTreeSet<String>,
    /// How many requests to buy were sent.
    requests: u32,
    pub(super) bought: usize,
    pub(super) rotations: u32,
    pub(super) moves: u32,
    /// The calls of the store of each program in each second.
    calls: BTreeMap<(u8, Millis), u32>,
    /// The most leases that each place had at once, and when it had so many first.
    most: BTreeMap<usize, BTreeMap<usize, Millis>>,
    /// How long each order of a person took, by its number.
    pub(super) orders: BTreeMap<usize, Option<Millis>>,
    /// The sentences that callers got in place of a lease.
    said: BTreeMap<String, u32>,
    pub(super) steps: u64,
    /// The most sessions that were created at once.
    most_creating: usize,
    /// The laws on data, on rests, on what was discarded or avoided and on changes that were broken.
    pub(super) broken: usize,
}

impl Lived {
    pub(super) fn new(callers: usize) -> Self {
        Lived { callers: vec![Heard::default(); callers], ..Lived::default() }
    }

    pub(super) fn begins(&mut self, number: u8, place: usize, at: Millis) {
        self.lives.push((number, place, at, Millis::MAX));
    }

    pub(super) fn ends(&mut self, number: u8, at: Millis) {
        self.lives.iter_mut().filter(|life| life.0 == number).for_each(|life| life.3 = at);
    }

    pub(super) fn granted(&mut self, at: Millis, place: usize, caller: usize, waited: Millis, session: &str) {
        let next = self.sessions.len() as u32;
        let session = *self.sessions.entry(session.to_owned()).or_insert(next);
        self.grants.push(Grant { at, place, caller, waited, session });
        let heard = &mut self.callers[caller];
        heard.worst = heard.worst.max(waited);
    }

    pub(super) fn has(&mut self, place: usize, leases: usize, at: Millis) {
        self.most.entry(place).or_default().entry(leases).or_insert(at);
    }

    pub(super) fn refused(&mut self, caller: usize, waited: Millis, error: &str) {
        let heard = &mut self.callers[caller];
        heard.late += 1;
        heard.worst = heard.worst.max(waited);
        *self.said.entry(error.to_owned()).or_default() += 1;
    }

    pub(super) fn answered(&mut self, caller: usize, good: bool) {
        let heard = &mut self.callers[caller];
        (heard.good, heard.bad) = (heard.good + u32::from(good), heard.bad + u32::from(!good));
    }

    /// Returns true for the session that was lent first.
    pub(super) fn is_first(&self, session: &str) -> bool {
        self.sessions.get(session) == Some(&0)
    }

    pub(super) fn creating(&mut self, sessions: usize) {
        self.most_creating = self.most_creating.max(sessions);
    }

    pub(super) fn called(&mut self, number: u8, at: Millis) {
        *self.calls.entry((number, at / 1000)).or_default() += 1;
    }

    /// A purchase goes out.
    pub(super) fn sent(&mut self, key: &str, at: Millis) {
        self.requests += 1;
        if self.keys.insert(key.to_owned()) {
            self.purchases.push(at);
        }
    }

    /// The life is over; callers that wait then have waited until then.
    pub(super) fn is_over(&mut self, callers: &[Caller], now: Millis, zero: Millis) {
        self.lasts = now - zero;
        for (heard, caller) in self.callers.iter_mut().zip(callers) {
            heard.worst = heard.worst.max(caller.waits.map_or(0, |(_, since)| now - since));
        }
    }

    fn of(&self, who: Who, from: Millis, until: Millis) -> impl Iterator<Item = &Grant> {
        self.grants.iter().filter(move |grant| who.has(grant.place) && (from..=until).contains(&grant.at))
    }

    fn places(&self, who: Who) -> BTreeSet<usize> {
        self.lives.iter().map(|life| life.1).filter(|place| who.has(*place)).collect()
    }

    /// Over any ten seconds in a row.
    fn calls_a_second(&self, from: Millis) -> f64 {
        let mut most = 0;
        for number in self.lives.iter().map(|life| life.0) {
            for from in from / 1000..=(self.lasts / 1000 - 10).max(0) {
                let some = self.calls.range((number, from)..(number, from + 10)).map(|(_, calls)| calls).sum::<u32>();
                most = most.max(some);
            }
        }
        f64::from(most) / 10.0
    }

    fn gap(&self, who: Who, from: Millis) -> Millis {
        let mut longest = 0;
        for (.., place, began, ended) in self.lives.iter().filter(|life| who.has(life.1)) {
            let (began, ended) = ((*began).max(from), (*ended).min(self.lasts));
            let mut last = began;
            for at in self.of(Who::Only(*place), began, ended).map(|grant| grant.at).chain([ended]) {
                longest = longest.max(at - last);
                last = at;
            }
        }
        longest
    }

    pub(super) fn leases(&self) -> usize {
        self.grants.len()
    }

    pub(super) fn is(&self, measure: Measure) -> f64 {
        let seconds = |time: Millis| time as f64 / 1000.0;
        match measure {
            Measure::Least { who, from, until } => {
                let until = until.min(self.lasts);
                let mut counts: BTreeMap<usize, u32> = self.places(who).into_iter().map(|place| (place, 0)).collect();
                self.of(who, from, until).for_each(|grant| *counts.entry(grant.place).or_default() += 1);
                let mean = f64::from(counts.values().sum::<u32>()) / counts.len().max(1) as f64;
                if mean == 0.0 { 0.0 } else { f64::from(counts.values().copied().min().unwrap_or_default()) / mean }
            }
            Measure::Rate { who, from, until } => {
                let until = until.min(self.lasts);
                self.of(who, from, until).count() as f64 / seconds(until - from)
            }
            Measure::Gap { who, from } => seconds(self.gap(who, from)),
            Measure::Wait { caller } => seconds(
                self.callers
                    .iter()
                    .enumerate()
                    .filter(|(at, _)| caller.is_none_or(|caller| caller == *at))
                    .map(|(_, heard)| heard.worst)
                    .max()
                    .unwrap_or_default(),
            ),
            Measure::Late => f64::from(self.callers.iter().map(|heard| heard.late).sum::<u32>()),
            Measure::Good => f64::from(self.callers.iter().map(|heard| heard.good).sum::<u32>()),
            Measure::Bad => f64::from(self.callers.iter().map(|heard| heard.bad).sum::<u32>()),
            Measure::Broken => self.broken as f64,
            Measure::Bought => self.bought as f64,
            Measure::BoughtFrom(from) => self.purchases.iter().filter(|at| **at >= from).count() as f64,
            Measure::BoughtUntil(until) => self.purchases.iter().filter(|at| **at < until).count() as f64,
            Measure::Requests => f64::from(self.requests),
            Measure::CreatedAtOnce => self.most_creating as f64,
            Measure::Rotations => f64::from(self.rotations),
            Measure::NeverLent => self.bought.saturating_sub(self.sessions.len()) as f64,
            Measure::CallsASecond(from) => self.calls_a_second(from),
            Measure::MovesASecond => f64::from(self.moves) / seconds(self.lasts),
            Measure::Sessions { place, from } => {
                self.of(Who::Only(place), from, self.lasts).map(|grant| grant.session).collect::<BTreeSet<_>>().len() as f64
            }
            Measure::HasAfter { place, leases, from } => {
                let first = self.most.get(&place).and_then(|first| first.range(leases..).map(|(_, at)| *at).min());
                first.map_or(f64::INFINITY, |at| seconds(at - from))
            }
            Measure::LeaseAfter { from } => {
                let first = self.grants.iter().find(|grant| grant.at >= from);
                first.map_or(f64::INFINITY, |grant| seconds(grant.at - from))
            }
            Measure::OrdersTake => self.orders.values().map(|took| took.map_or(f64::INFINITY, seconds)).fold(0.0, f64::max),
        }
    }

    /// The counts that are worth a look beside the figures.
    pub(super) fn told(&self) -> String {
        let (good, bad) =
            (self.callers.iter().map(|heard| heard.good).sum::<u32>(), self.callers.iter().map(|heard| heard.bad).sum::<u32>());
        let waited = self.grants.iter().filter(|grant| grant.waited > 250).count();
        let mut by_place: BTreeMap<usize, u32> = BTreeMap::new();
        self.grants.iter().for_each(|grant| *by_place.entry(grant.place).or_default() += 1);
        let callers = self.grants.iter().map(|grant| grant.caller).collect::<BTreeSet<_>>().len();
        let mut text = format!(
            "{} leases ({waited} after a wait) to {callers} of {} callers, by program {:?}; {good} good, {bad} bad, {} late; {} bought, {} never lent; \
             {} rotations; {:.2} moves a second, {:.2} calls a second and program at most; {} steps",
            self.grants.len(),
            self.callers.len(),
            by_place.values().collect::<Vec<_>>(),
            self.is(Measure::Late),
            self.bought,
            self.is(Measure::NeverLent),
            self.rotations,
            self.is(Measure::MovesASecond),
            self.calls_a_second(0),
            self.steps,
        );
        let mut said: Vec<(&String, &u32)> = self.said.iter().collect();
        said.sort_by_key(|(_, times)| std::cmp::Reverse(**times));
        for (sentence, times) in said.into_iter().take(3) {
            text += &format!("\n    {times} times: {sentence}");
        }
        text
    }
}

/// Programs, by their places in the plan.
#[derive(Debug, Clone, Copy)]
pub enum Who {
    /// All of them.
    All,
    /// This one.
    Only(usize),
    /// This one and those after it.
    From(usize),
    /// Those before this one.
    Before(usize),
}

impl Who {
    fn has(self, place: usize) -> bool {
        match self {
            Who::All => true,
            Who::Only(one) => place == one,
            Who::From(first) => place >= first,
            Who::Before(end) => place < end,
        }
    }
}

/// A measure. Times are in milliseconds since the beginning of the plan; what is told is in seconds.
#[derive(Debug, Clone, Copy)]
pub enum Measure {
    /// The leases of the least served program, over the mean.
    Least {
        /// Of these programs.
        who: Who,
        /// From then on.
        from: Millis,
        /// Until then.
        until: Millis,
    },
    /// Leases a second.
    Rate {
        /// Of these programs.
        who: Who,
        /// From then on.
        from: Millis,
        /// Until then.
        until: Millis,
    },
    /// The longest time without a new lease of a program that lives.
    Gap {
        /// Of these programs.
        who: Who,
        /// From then on.
        from: Millis,
    },
    /// The longest wait of a caller, or of any.
    Wait {
        /// The number of the caller.
        caller: Option<usize>,
    },
    /// Waits that ended without a lease.
    Late,
    /// Good answers of targets.
    Good,
    /// Answers of targets that were not good.
    Bad,
    /// The laws on data, on rests, on what was discarded or avoided and on changes of exits that were broken.
    Broken,
    /// Sessions that were bought.
    Bought,
    /// Purchases that began from then on.
    BoughtFrom(Millis),
    /// Purchases that began before that, each with a new key.
    BoughtUntil(Millis),
    /// Requests to buy that were sent, also with the same key.
    Requests,
    /// The most sessions that were being created at a time.
    CreatedAtOnce,
    /// Exits that were changed.
    Rotations,
    /// Sessions that were bought and lent to nobody.
    NeverLent,
    /// Calls of the store, of the program with the most, in any ten seconds from then on.
    CallsASecond(Millis),
    /// Sessions that went from a program to another.
    MovesASecond,
    /// The sessions that a program lent.
    Sessions {
        /// The program.
        place: usize,
        /// From then on.
        from: Millis,
    },
    /// The time until a program had so many leases out at once.
    HasAfter {
        /// The program.
        place: usize,
        /// So many.
        leases: usize,
        /// Counted from then on.
        from: Millis,
    },
    /// The time until anybody got a lease.
    LeaseAfter {
        /// Counted from then on.
        from: Millis,
    },
    /// The longest time that an order of a person took.
    OrdersTake,
}

/// The right value of a measure.
#[derive(Debug, Clone, Copy)]
pub enum Bound {
    /// This or more.
    AtLeast(f64),
    /// This or less.
    AtMost(f64),
}

/// A measure, in words, with its right value.
#[derive(Debug, Clone, Copy)]
pub struct Figure {
    /// The measure in words.
    pub what: &'static str,
    /// The measure.
    pub measure: Measure,
    /// Its right value.
    pub bound: Bound,
}

/// A figure as it came out.
#[derive(Debug, Clone, Copy)]
pub struct Measured {
    /// The figure.
    pub figure: Figure,
    /// The value.
    pub is: f64,
}

impl Measured {
    /// Returns true if the value is right.
    pub fn is_met(&self) -> bool {
        match self.figure.bound {
            Bound::AtLeast(least) => self.is >= least,
            Bound::AtMost(most) => self.is <= most,
        }
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, bound) = match self.figure.bound {
            Bound::AtLeast(least) => ("at least", least),
            Bound::AtMost(most) => ("at most", most),
        };
        write!(f, "{} {}: {:.2} ({word} {bound})", if self.is_met() { "  met " } else { "MISSED" }, self.figure.what, self.is)
    }
}
