//! Responses are read once, as they come: the Python objects wait here until they are taken.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use hopline::wire::Expected;
use pyo3::prelude::*;

use crate::objects::Made;

/// The lock is not held while objects are made or dropped, which may run any code.
#[derive(Default)]
pub(crate) struct Readings(Mutex<Open>);

#[derive(Default)]
struct Open {
    /// The sends whose answer was not read yet, by their steps: the command, and the type of the answer.
    sends: HashMap<u32, (u32, Expected)>,
    /// The objects of the last response to each command, by the commands.
    made: HashMap<u32, Made>,
}

impl Readings {
    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn sent(&self, step: u32, command: u32, expected: Expected) {
        self.lock().sends.insert(step, (command, expected));
    }

    /// The type of the answer to a send; `None` if no caller waits for its command.
    pub(crate) fn expected(&self, step: u32) -> Option<Expected> {
        self.lock().sends.get(&step).map(|(_, expected)| *expected)
    }

    /// Keeps the objects of an answer. Code that ran meanwhile may have dropped its command: then they are dropped.
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

    /// Forgets a command that no caller waits for.
    pub(crate) fn forget(&self, command: u32) {
        let mut open = self.lock();
        open.sends.retain(|_, (waiting, _)| *waiting != command);
        let made = open.made.remove(&command);
        drop(open);
        drop(made);
    }
}
