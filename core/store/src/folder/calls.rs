//! The calls that threads of one client make at once. Locks know clients only, so calls about one name take turns here.

use std::collections::HashSet;
#[cfg(test)]
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The names that calls of this client are about at this moment.
#[derive(Default)]
pub(super) struct Calls {
    names: Mutex<HashSet<String>>,
    ended: Condvar,
    #[cfg(test)]
    waiting: AtomicUsize,
}

/// A call under way. No other call of this client is about any of its names until it is dropped.
pub(super) struct Call<'a> {
    calls: &'a Calls,
    names: Vec<String>,
}

impl Calls {
    /// Waits until no other call is about any of these names. Takes all of them at once: who waits has none that another could wait for.
    pub(super) fn begin<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Call<'_> {
        let wanted: Vec<String> = names.into_iter().map(str::to_owned).collect();
        let mut names = self.wait_while(|names| wanted.iter().any(|name| names.contains(name)));
        names.extend(wanted.iter().cloned());
        Call { calls: self, names: wanted }
    }

    /// The same for one name, only if there is nothing to wait for.
    pub(super) fn try_begin(&self, name: &str) -> Option<Call<'_>> {
        self.names().insert(name.to_owned()).then(|| Call { calls: self, names: vec![name.to_owned()] })
    }

    /// Does something that is about all names: no other call is under way meanwhile.
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

    /// How many calls wait for others.
    #[cfg(test)]
    pub(super) fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    fn names(&self) -> MutexGuard<'_, HashSet<String>> {
        // A panic while it is held leaves the set whole.
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
