//! The steps for the host, and the purposes of its answers.

use std::collections::VecDeque;

use crate::client::jobs::spending::Counting;
use crate::client::news::PoolNo;
use crate::client::text::event::Event;
use crate::client::types::Step;
use crate::collections::{IdMap, Map};
use crate::policy::{Rule, Rules};
use crate::state::{CommandId, JobId, Memory, Name, StepId, StoreAnswer, StoreCall};
use crate::time::Clock;
use crate::wire::Request;

/// There is room for so many steps all the time.
const STEPS: usize = 16;

/// An awaited answer.
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
    Count(JobId, Box<Counting>),
    Spend(u32),
    Send(JobId),
    /// A read that says the service's time.
    ServerTime,
    Login,
}

#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Outbox {
    /// The steps for the host.
    pub(super) steps: VecDeque<Step>,
    /// The steps that are to be answered.
    pub(super) pending: IdMap<StepId, Pending>,
    /// The store calls among them that are answered with names.
    asked: Map<StepId, StoreCall>,
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
        Outbox { steps: VecDeque::new(), pending: IdMap::default(), asked: Map::default(), own: (!store).then(OwnStore::default) }
    }

    /// The next step. After a burst its room is given back.
    pub(super) fn pop(&mut self) -> Option<Step> {
        let step = self.steps.pop_front();
        if step.is_none() {
            self.steps.shrink_to(STEPS);
        }
        step
    }

    /// The next answer of the client's own memory.
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
            None => {
                if matches!(call, StoreCall::Claim { .. } | StoreCall::List { .. }) {
                    self.asked.insert(id, call.clone());
                }
                self.steps.push_back(Step::Store { id, command, call });
            }
        }
    }

    /// The purpose of a step, and its answer. An answer with names that were not requested does not count.
    pub(super) fn answered(&mut self, id: StepId, answer: StoreAnswer, rules: Rules) -> (Option<Pending>, StoreAnswer) {
        let asked = self.asked.remove(&id).filter(|_| rules.holds(Rule::UnfitIsNoAnswer));
        let fits = asked.is_none_or(|asked| asked.is_fitted_by(&answer));
        (self.pending.remove(&id), if fits { answer } else { StoreAnswer::Failed })
    }

    pub(super) fn send(&mut self, pending: Pending, command: CommandId, request: Request) -> StepId {
        let id = self.pending.insert(pending);
        self.steps.push_back(Step::Send { id, command, request });
        id
    }

    pub(super) fn notify(&mut self, event: Event) {
        self.steps.push_back(Step::Notify(event));
    }

    /// Takes back a request that the host has not polled yet, so that it is never sent. Returns true if there was one.
    pub(super) fn take_back(&mut self, step: StepId) -> bool {
        let Some(at) = self.steps.iter().position(|queued| matches!(queued, Step::Send { id, .. } if *id == step)) else { return false };
        self.steps.remove(at);
        self.pending.remove(&step);
        true
    }
}
