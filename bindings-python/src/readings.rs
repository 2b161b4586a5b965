//! Responses are read once, as they come: what Python's objects were made of them waits here for whoever takes it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hopline::wire::Expected;
use pyo3::prelude::*;

use crate::objects::Made;

/// Nobody holds it while objects are made or dropped, which may run any code.
#[derive(Default)]
pub(crate) struct Readings(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// Of the sends that were not answered yet, by their steps: for which command, and what the answer is read as.
    sends: HashMap<u32, (u32, Expected)>,
    /// What the last response to each command was, by the commands.
    made: HashMap<u32, Made>,
}

impl Readings {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sent(&self, step: u32, command: u32, expected: Expected) {
        self.lock().sends.insert(step, (command, expected));
    }

    /// A send is answered: for which command it was, and what the answer is read as; nothing where nobody waits for that command.
    pub(crate) fn answered(&self, step: u32) -> Option<(u32, Expected)> {
        self.lock().sends.remove(&step)
    }

    pub(crate) fn keep(&self, command: u32, made: Option<Made>) {
        let before = match made {
            Some(made) => self.lock().made.insert(command, made),
            None => self.lock().made.remove(&command),
        };
        drop(before);
    }

    pub(crate) fn of(&self, py: Python<'_>, command: u32) -> Option<Made> {
        self.lock().made.get(&command).map(|made| made.clone_ref(py))
    }

    /// Nobody waits for a command any more.
    pub(crate) fn forget(&self, command: u32) {
        let mut open = self.lock();
        open.sends.retain(|_, (waiting, _)| *waiting != command);
        let made = open.made.remove(&command);
        drop(open);
        drop(made);
    }
}
