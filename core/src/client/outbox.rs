//! What goes out to the host, and what its answers are for.

use std::collections::VecDeque;

use super::event::Event;
use super::news::PoolNo;
use super::types::Step;
use crate::contract::Decimal;
use crate::state::{CommandId, JobId, Memory, Name, Numbered, StepId, StoreAnswer, StoreCall};
use crate::time::Clock;
use crate::wire::Request;

/// There is room for so many steps all the time.
const STEPS: usize = 16;

/// Which answer is awaited.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Pending {
    Claim(Name),
    /// Slots of a pool, of which it takes some.
    Slots(PoolNo, Vec<Name>),
    /// The record of a pool.
    PoolClaim(PoolNo),
    PoolPut(PoolNo),
    PoolList(PoolNo),
    Write(Name),
    List(u32),
    /// Before a send, which may be charged so much.
    Count(JobId, Decimal),
    Spend(u32),
    Send(JobId),
    Ask,
    Login,
}

impl Pending {
    pub(super) fn spend(&self) -> Option<u32> {
        if let Pending::Spend(number) = self { Some(*number) } else { None }
    }
}

#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Outbox {
    /// What the host is to be given.
    pub(super) steps: VecDeque<Step>,
    /// The steps that are to be answered.
    pub(super) pending: Numbered<StepId, Pending>,
    /// The store of a client that has none of its host's.
    own: Option<OwnStore>,
}

/// The client's own memory, and what it has answered.
#[derive(Default)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
struct OwnStore {
    memory: Memory,
    answers: VecDeque<(StepId, StoreAnswer)>,
}

impl Outbox {
    /// An outbox; `store` if the host has one.
    pub(super) fn new(store: bool) -> Self {
        Outbox { steps: VecDeque::new(), pending: Numbered::default(), own: (!store).then(OwnStore::default) }
    }

    /// The next step. After a burst its room is given back.
    pub(super) fn pop(&mut self) -> Option<Step> {
        let step = self.steps.pop_front();
        if step.is_none() {
            self.steps.shrink_to(STEPS);
        }
        step
    }

    /// What the client's own memory has answered.
    pub(super) fn own_answer(&mut self) -> Option<(StepId, StoreAnswer)> {
        self.own.as_mut()?.answers.pop_front()
    }

    /// Asks the store, or this client's own memory where it has none.
    pub(super) fn ask(&mut self, pending: Pending, command: Option<CommandId>, call: StoreCall, clock: &Clock) {
        let id = self.pending.insert(pending);
        match &mut self.own {
            Some(own) => {
                let answer = own.memory.call(call, clock.unix(), clock.elapsed());
                own.answers.push_back((id, answer));
            }
            None => self.steps.push_back(Step::Store { id, command, call }),
        }
    }

    pub(super) fn send(&mut self, pending: Pending, command: CommandId, request: Request) -> StepId {
        let id = self.pending.insert(pending);
        self.steps.push_back(Step::Send { id, command, request });
        id
    }

    pub(super) fn notify(&mut self, event: Event) {
        self.steps.push_back(Step::Notify(event));
    }

    /// Takes back a request that the host has not polled yet: nobody sends it. Whether there was one.
    pub(super) fn take_back(&mut self, step: StepId) -> bool {
        let Some(at) = self.steps.iter().position(|queued| matches!(queued, Step::Send { id, .. } if *id == step)) else { return false };
        self.steps.remove(at);
        self.pending.remove(&step);
        true
    }
}
