//! What wakes, and when: each job and each name has one timer at most.

use super::root::Client;
use super::waiting::Timer;
use crate::state::{JobId, Name};
use crate::time::Millis;

impl Client {
    pub(super) fn clear_timer(&mut self, id: JobId) {
        if let Some(at) = self.jobs.get_mut(&id).and_then(|entry| entry.timer.take()) {
            self.timers.remove(&(at, Timer::Job(id)));
        }
    }

    pub(super) fn set_timer(&mut self, id: JobId, at: Millis) {
        #[cfg(test)]
        {
            self.timers_set += 1;
        }
        if let Some(job) = self.jobs.get_mut(&id) {
            if let Some(old) = job.timer.replace(at) {
                self.timers.remove(&(old, Timer::Job(id)));
            }
            self.timers.insert((at, Timer::Job(id)));
        }
    }

    /// Wakes a name then, or earlier where it is woken anyway.
    pub(super) fn set_name_timer(&mut self, name: &Name, at: Millis) {
        let old = self.name_timers.get(name).copied();
        if old.is_none_or(|old| at < old) {
            old.into_iter().for_each(|old| _ = self.timers.remove(&(old, Timer::Name(name.clone()))));
            self.name_timers.insert(name.clone(), at);
            self.timers.insert((at, Timer::Name(name.clone())));
        }
    }
}
