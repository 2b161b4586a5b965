//! The deferred work, and its order.
//!
//! A method calls only methods below it. Work that leads back up, to its possible callers, is pushed here, and the router carries it out
//! once the method has returned. A method does its own work first and pushes last; work that has to come after pushed work is pushed too.

use crate::client::waiting::{AfterRetry, StoredRecord};
use crate::engine::{Action, Input};
use crate::state::{CommandId, JobId, Name, WriteResult};

/// One thing that is to be done.
pub(super) enum Deferred {
    /// A job hears what came of what it waited for.
    Tell(JobId, Input<'static>),
    /// The action of a job is carried out.
    Act(JobId, Action),
    /// The put that a job waited for was answered.
    Stored(JobId, WriteResult),
    /// The next of those who wait for a name is let in, if it can be.
    Attend(Name),
    /// The next of them is let in, by what is under the name.
    LetIn(Name, Box<StoredRecord>),
    /// One was let in.
    WasLetIn(Name, Box<StoredRecord>),
    /// The next step of a name is asked for, if none is out.
    Next(Name),
    /// The retry of an earlier rotation has ended for a command.
    AfterRetry(CommandId, AfterRetry),
    /// One of the records that are resumed together has ended.
    PartEnded(u32, CommandId),
    /// More of them begin.
    ResumeMore(u32),
    /// The result of a command is abandoned.
    Abandon(CommandId),
    /// A command is cancelled.
    Cancel(CommandId),
}

/// The stack of what is still to be done. There is nothing in it between two calls from outside.
#[derive(Default)]
pub(super) struct DeferredCalls(Vec<Deferred>);

impl DeferredCalls {
    pub(super) fn push(&mut self, call: Deferred) {
        self.0.push(call);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Makes the work that was pushed since then come out in the order in which it was pushed.
    pub(super) fn turn(&mut self, from: usize) {
        if let Some(new) = self.0.get_mut(from..) {
            new.reverse();
        }
    }

    pub(super) fn pop(&mut self) -> Option<Deferred> {
        self.0.pop()
    }
}

#[cfg(feature = "ablation")]
impl Clone for DeferredCalls {
    fn clone(&self) -> Self {
        DeferredCalls::default()
    }
}

#[cfg(feature = "ablation")]
impl std::hash::Hash for DeferredCalls {
    fn hash<H: std::hash::Hasher>(&self, _: &mut H) {}
}
