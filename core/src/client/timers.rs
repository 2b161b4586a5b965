//! The timers: each job and each name has at most one.

use crate::client::requests::Timer;
use crate::collections::Map;
use crate::state::{JobId, Name};
use crate::time::Millis;

#[derive(Debug, Default)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Timers {
    due: Map<(Millis, Timer), ()>,
    /// The one timer of a name. That of a job is in its entry.
    names: Map<Name, Millis>,
    /// How often one was set, for the tests that count work.
    #[cfg(test)]
    pub(super) set: usize,
}

impl Timers {
    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Millis> {
        self.due.first().map(|((at, _), ())| *at)
    }

    /// The next one that is due by now.
    pub(super) fn pop_due(&mut self, now: Millis) -> Option<(Millis, Timer)> {
        if self.next()? <= now { self.due.pop_first().map(|(due, ())| due) } else { None }
    }

    pub(super) fn add(&mut self, at: Millis, timer: Timer) {
        self.due.insert((at, timer), ());
    }

    /// Returns true if another job than this one wakes then.
    pub(super) fn has_other_job(&self, at: Millis, id: JobId) -> bool {
        let from = (at, Timer::Job(JobId::MIN));
        let mut jobs = self.due.from(&from).map(|(due, ())| due).take_while(|due| **due <= (at, Timer::Job(JobId::MAX)));
        jobs.any(|(_, other)| *other != Timer::Job(id))
    }

    /// A job wakes then, and not when it was to.
    pub(super) fn move_job(&mut self, id: JobId, was: Option<Millis>, at: Option<Millis>) {
        was.into_iter().for_each(|was| _ = self.due.remove(&(was, Timer::Job(id))));
        at.into_iter().for_each(|at| self.add(at, Timer::Job(id)));
    }

    /// Wakes a name then, or earlier where it is woken anyway.
    pub(super) fn set_name(&mut self, name: &Name, at: Millis) {
        let old = self.names.get(name).copied();
        if old.is_none_or(|old| at < old) {
            old.into_iter().for_each(|old| _ = self.due.remove(&(old, Timer::Name(name.clone()))));
            self.names.insert(name.clone(), at);
            self.add(at, Timer::Name(name.clone()));
        }
    }

    /// When a name wakes.
    pub(super) fn of_name(&self, name: &Name) -> Option<Millis> {
        self.names.get(name).copied()
    }

    /// The timer of a name has come.
    pub(super) fn name_woke(&mut self, name: &Name) {
        self.names.remove(name);
    }

    #[cfg(test)]
    pub(super) fn names(&self) -> usize {
        self.names.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_wakes_at_the_earliest_time_that_it_was_given() {
        let (mut timers, name) = (Timers::default(), Name::from("5e.r1".to_owned()));
        [30, 20, 40].into_iter().for_each(|at| timers.set_name(&name, at));
        assert_eq!((timers.pop_due(19), timers.pop_due(20)), (None, Some((20, Timer::Name(name.clone())))));
        timers.name_woke(&name);
        assert_eq!(timers.next(), None);
        timers.set_name(&name, 40);
        assert_eq!(timers.next(), Some(40));
    }

    #[test]
    fn a_job_has_one_timer_and_timers_wake_in_the_order_of_their_times() {
        let mut timers = Timers::default();
        timers.move_job(1, None, Some(30));
        timers.move_job(1, Some(30), Some(10));
        timers.move_job(2, None, Some(10));
        timers.add(5, Timer::Spend(7));
        assert!(timers.has_other_job(10, 1) && !timers.has_other_job(30, 2));
        let woken: Vec<(Millis, Timer)> = std::iter::from_fn(|| timers.pop_due(100)).collect();
        assert_eq!(woken, [(5, Timer::Spend(7)), (10, Timer::Job(1)), (10, Timer::Job(2))]);
    }
}
