//! The deferred work, and its order.
//!
//! A method calls only methods below it. Work that leads back up, to its possible callers, is pushed here, and the router carries it out
//! once the method has returned. A method does its own work first and pushes last; work that has to come after pushed work is pushed too.

use crate::client::end::commands::PendingWrite;
use crate::client::requests::{AfterRetry, Start, StoredRecord};
use crate::contract::Decimal;
use crate::engine::{Action, Input};
use crate::policy::Error;
use crate::state::{CommandId, JobId, Name, WriteResult};

/// There is room for so many calls all the time.
const ROOM: usize = 16;

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
    /// A command has found the session of its intent to be over, and buys the next one.
    BuyNext(CommandId, Box<Start>),
    /// One of the records that are resumed together has ended.
    PartEnded(u32, CommandId),
    /// More of them begin.
    ResumeMore(u32),
    /// The result of a command is abandoned.
    Abandon(CommandId),
    /// A command is cancelled.
    Cancel(CommandId),
    /// A command ends with an error.
    Fail(CommandId, Box<Error>),
    /// A job counts its entry under the day's cap, now that the entry is not being set any more.
    Count(JobId, String, Decimal),
    /// The store has answered what commands may wait for.
    Answered(PendingWrite),
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

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reverses what was pushed since the stack had this length, so that the first that was pushed comes out first.
    pub(super) fn reverse_from(&mut self, from: usize) {
        if let Some(new) = self.0.get_mut(from..) {
            new.reverse();
        }
    }

    /// The next one. After a burst its room is given back.
    pub(super) fn pop(&mut self) -> Option<Deferred> {
        let call = self.0.pop();
        if call.is_none() {
            self.0.shrink_to(ROOM);
        }
        call
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The order in which calls are carried out, where the call of a number pushes the calls of these.
    fn order(first: &[u32], pushes: impl Fn(u32) -> Vec<u32>) -> Vec<u32> {
        let (mut calls, mut done) = (DeferredCalls::default(), Vec::new());
        first.iter().for_each(|number| calls.push(Deferred::ResumeMore(*number)));
        calls.reverse_from(0);
        while let Some(Deferred::ResumeMore(number)) = calls.pop() {
            done.push(number);
            let from = calls.len();
            pushes(number).into_iter().for_each(|number| calls.push(Deferred::ResumeMore(number)));
            calls.reverse_from(from);
        }
        assert!(calls.is_empty());
        done
    }

    #[test]
    fn calls_are_carried_out_in_their_order_and_what_each_leads_to_before_the_next() {
        assert_eq!(order(&[1, 2, 3], |_| Vec::new()), [1, 2, 3]);
        let pushes = |number| match number {
            1 => vec![10, 11],
            10 => vec![100],
            _ => Vec::new(),
        };
        assert_eq!(order(&[1, 2], pushes), [1, 10, 100, 11, 2]);
    }
}
