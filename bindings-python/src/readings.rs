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
    /// Of the sends whose answer was not read yet, by their steps: for which command, and what the answer is read as.
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

    /// What the answer to a send is read as; nothing where nobody waits for its command.
    pub(crate) fn expected(&self, step: u32) -> Option<Expected> {
        self.lock().sends.get(&step).map(|(_, expected)| *expected)
    }

    /// The answer to a send was read. Code that ran meanwhile may have dropped its command: then nobody takes what was made.
    pub(crate) fn keep(&self, step: u32, made: Option<Made>) {
        let mut open = self.lock();
        let before = match (open.sends.remove(&step), made) {
            (Some((command, _)), Some(made)) => open.made.insert(command, made),
            (Some((command, _)), None) => open.made.remove(&command),
            (None, made) => made,
        };
        drop(open);
        drop(before);
    }

    /// A send was not answered.
    pub(crate) fn failed(&self, step: u32) {
        self.lock().sends.remove(&step);
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
