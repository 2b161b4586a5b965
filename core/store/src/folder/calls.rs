//! Concurrent calls of one client's threads. Locks know only clients, so calls about one name take turns here.

use std::collections::HashSet;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The names of the calls that are under way.
#[derive(Default)]
pub(super) struct Calls {
    names: Mutex<HashSet<String>>,
    ended: Condvar,
    #[cfg(test)]
    waiting: AtomicUsize,
}

/// A call under way. No other call of this client touches any of its names until it is dropped.
pub(super) struct Call<'a> {
    calls: &'a Calls,
    names: Vec<String>,
}

impl Calls {
    /// Waits until no other call touches any of these names, then takes all of them at once, so that a waiting call has no name that
    /// another could wait for.
    pub(super) fn begin<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Call<'_> {
        let wanted: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut names = self.wait_while(|names| wanted.iter().any(|name| names.contains(name)));
        names.extend(wanted.iter().cloned());
        Call { calls: self, names: wanted }
    }

    /// Begins a call about one name, unless it would have to wait.
    pub(super) fn try_begin(&self, name: &str) -> Option<Call<'_>> {
        self.names().insert(name.to_owned()).then(|| Call { calls: self, names: vec![name.to_owned()] })
    }

    /// Runs a function that touches all names, while no other call is under way.
    pub(super) fn alone<T>(&self, act: impl FnOnce() -> T) -> T {
        let _none = self.wait_while(|names| !names.is_empty());
        act()
    }

    fn wait_while(&self, is_busy: impl Fn(&HashSet<String>) -> bool) -> MutexGuard<'_, HashSet<String>> {
        let mut names = self.names();
        while is_busy(&names) {
            #[cfg(test)]
            self.waiting.fetch_add(1, Ordering::SeqCst);
            names = self.ended.wait(names).unwrap_or_else(PoisonError::into_inner);
            #[cfg(test)]
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
        names
    }

    /// The number of calls that wait for others.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        // A panic while the lock is held leaves the set whole.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        let mut names = self.calls.names();
        for name in &self.names {
            names.remove(name);
        }
        self.calls.ended.notify_all();
    }
}
