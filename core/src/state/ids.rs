//! What names steps and commands, and the numbers for it.

use serde::{Deserialize, Serialize};

/// Names a step that must be answered. A host answers each once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct StepId(pub u32);

/// Names a command: a call, a purchase, a change of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CommandId(pub u32);

/// Counts on, and begins again when it has come to the end.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct IdAllocator {
    last: u32,
}

impl IdAllocator {
    /// The next number that names nothing alive. 0 stands for none and is left out.
    pub(crate) fn next(&mut self, is_alive: impl Fn(u32) -> bool) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if self.last != 0 && !is_alive(self.last) {
                return self.last;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_names_something_alive_is_not_given_again() {
        let alive = [u32::MAX, 1, 2, 4];
        let mut ids = IdAllocator { last: u32::MAX - 2 };
        let given: Vec<u32> = (0..4).map(|_| ids.next(|id| alive.contains(&id))).collect();
        assert_eq!(given, [u32::MAX - 1, 3, 5, 6]);
    }
}
