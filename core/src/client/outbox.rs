//! The steps for the host, and the purposes of its answers.

use std::collections::VecDeque;

use crate::client::jobs::spending::Counting;
use crate::client::news::PoolNo;
use crate::client::text::event::Event;
use crate::client::types::{Misuse, Outcome, Step};
use crate::collections::{IdMap, Map};
use crate::state::{CommandId, JobId, Memory, Name, SharedKind, StepId, StoreAnswer, StoreCall};
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
    /// A request of the client's own.
    Shared(SharedKind),
}

impl Pending {
    fn is_send(&self) -> bool {
        matches!(self, Pending::Send(_) | Pending::Shared(_))
    }

    /// Returns true if an outcome is of the kind of the step.
    fn is_answered_by(&self, outcome: &Outcome<'_>) -> bool {
        let Outcome::Store(answer) = outcome else { return self.is_send() };
        match answer {
            StoreAnswer::Failed | StoreAnswer::Never => !self.is_send(),
            StoreAnswer::Done | StoreAnswer::Lost => matches!(self, Pending::Write(_) | Pending::PoolPut(_)),
            StoreAnswer::Claimed(_) | StoreAnswer::Busy(_) => {
                matches!(self, Pending::Claim(_) | Pending::Slots(..) | Pending::PoolClaim(_))
            }
            StoreAnswer::Listed { .. } => matches!(self, Pending::List(_) | Pending::PoolList(_)),
            StoreAnswer::Granted { .. } | StoreAnswer::Over { .. } => matches!(self, Pending::Count(..) | Pending::Spend(_)),
        }
    }
}

#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Outbox {
    /// The steps for the host.
    steps: VecDeque<Step>,
    /// The steps that are to be answered.
    pending: IdMap<StepId, Pending>,
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

    /// Returns true if there is no step for the host.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
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

    pub(super) fn send(&mut self, pending: Pending, command: CommandId, request: Request) -> StepId {
        let id = self.pending.insert(pending);
        self.steps.push_back(Step::Send { id, command, request });
        id
    }

    pub(super) fn notify(&mut self, event: Event) {
        self.steps.push_back(Step::Notify(event));
    }

    /// A command of the caller's has completed.
    pub(super) fn complete(&mut self, command: CommandId) {
        self.steps.push_back(Step::Completed { command });
    }

    /// A command that has completed is not the caller's.
    pub(super) fn withdraw_completed(&mut self, command: CommandId) {
        self.steps.retain(|step| !matches!(step, Step::Completed { command: ended } if *ended == command));
    }

    /// The purpose of a step that is to be answered.
    pub(super) fn purpose(&self, id: StepId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Returns an error if an outcome is not one of a step that is to be answered.
    pub(super) fn check(&self, id: StepId, outcome: &Outcome<'_>) -> Result<(), Misuse> {
        let pending = self.purpose(id).ok_or(Misuse::UnknownStep)?;
        if pending.is_answered_by(outcome) { Ok(()) } else { Err(Misuse::WrongAnswer) }
    }

    /// Takes the purpose of a send that was answered.
    pub(super) fn take_purpose(&mut self, id: StepId) -> Option<Pending> {
        self.pending.remove(&id)
    }

    /// Takes the purpose of a store call, and its answer. An answer with names that were not requested is none.
    pub(super) fn answered(&mut self, id: StepId, answer: StoreAnswer, is_strict: bool) -> (Option<Pending>, StoreAnswer) {
        let asked = self.asked.remove(&id).filter(|_| is_strict);
        let fits = asked.is_none_or(|asked| asked.is_fitted_by(&answer));
        (self.take_purpose(id), if fits { answer } else { StoreAnswer::Failed })
    }

    /// Takes back a request that the host has not polled yet, so that it is never sent. Returns true if there was one.
    pub(super) fn take_back(&mut self, step: StepId) -> bool {
        let Some(at) = self.steps.iter().position(|queued| matches!(queued, Step::Send { id, .. } if *id == step)) else { return false };
        self.steps.remove(at);
        self.pending.remove(&step);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::agent::GetBalance;
    use crate::contract::{Method, Operation};
    use crate::entropy::Entropy;
    use crate::policy::{FailureKind, Sent};
    use crate::time::Millis;
    use crate::wire::Expected;

    fn name(of: &str) -> Name {
        Name::from(format!("5e.r{of}"))
    }

    fn clock() -> Clock {
        Clock::of(Entropy::new([7; 16]).client())
    }

    fn claim(names: &[&str]) -> StoreCall {
        StoreCall::Claim { names: names.iter().map(|of| name(of)).collect(), most: 1 }
    }

    fn request() -> Request {
        Request {
            method: Method::Get,
            url: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            timeout_ms: 1,
            send_before: Millis::MAX,
            max_body: 1,
            expects: Expected::of(GetBalance::ENDPOINT, 9),
        }
    }

    #[test]
    fn a_step_is_answered_once_and_by_an_outcome_of_its_kind() {
        let store = |answer| Outcome::Store(answer);
        let outcomes = [
            ("failed", store(StoreAnswer::Failed)),
            ("never", store(StoreAnswer::Never)),
            ("done", store(StoreAnswer::Done)),
            ("lost", store(StoreAnswer::Lost)),
            ("claimed", store(StoreAnswer::Claimed(Vec::new()))),
            ("busy", store(StoreAnswer::Busy(None))),
            ("listed", store(StoreAnswer::Listed { entries: Vec::new(), more: false })),
            ("granted", store(StoreAnswer::Granted { day: 1 })),
            ("response", Outcome::Response { status: 200, headers: &[], body: b"", truncated: false }),
            ("no response", Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }),
        ];
        for (pending, fits) in [
            (Pending::Claim(name("1")), "failed never claimed busy"),
            (Pending::Slots(1, Vec::new()), "failed never claimed busy"),
            (Pending::PoolClaim(1), "failed never claimed busy"),
            (Pending::PoolPut(1), "failed never done lost"),
            (Pending::Write(name("1")), "failed never done lost"),
            (Pending::PoolList(1), "failed never listed"),
            (Pending::List(1), "failed never listed"),
            (Pending::Spend(1), "failed never granted"),
            (Pending::Send(1), "response no response"),
            (Pending::Shared(SharedKind::Login), "response no response"),
        ] {
            let mut outbox = Outbox::new(true);
            let step = outbox.send(pending.clone(), CommandId(1), request());
            let found: Vec<&str> =
                outcomes.iter().filter(|(_, outcome)| outbox.check(step, outcome).is_ok()).map(|(name, _)| *name).collect();
            assert_eq!(found.join(" "), fits, "{pending:?}");
            assert_eq!(outbox.purpose(step), Some(&pending));
            assert_eq!(outbox.take_purpose(step), Some(pending));
            assert!(outcomes.iter().all(|(_, outcome)| outbox.check(step, outcome) == Err(Misuse::UnknownStep)));
        }
    }

    #[test]
    fn a_store_that_answers_with_other_names_has_failed() {
        let granted = |of: &str| StoreAnswer::Claimed(vec![(name(of), None)]);
        for (answer, expected) in [(granted("1"), granted("1")), (granted("2"), StoreAnswer::Failed)] {
            let mut outbox = Outbox::new(true);
            outbox.ask(Pending::Claim(name("1")), Some(CommandId(4)), claim(&["1"]), &clock());
            let Some(Step::Store { id, command, call }) = outbox.pop() else { panic!("the host's store is asked") };
            assert_eq!((command, call), (Some(CommandId(4)), claim(&["1"])));
            assert_eq!(outbox.answered(id, answer, true), (Some(Pending::Claim(name("1"))), expected));
        }
    }

    #[test]
    fn a_client_without_a_store_of_its_host_asks_its_own_memory() {
        let mut outbox = Outbox::new(false);
        outbox.ask(Pending::Claim(name("1")), None, claim(&["1"]), &clock());
        let (id, answer) = outbox.own_answer().expect("it has answered");
        assert!(outbox.is_empty() && outbox.own_answer().is_none());
        let claimed = StoreAnswer::Claimed(vec![(name("1"), None)]);
        assert_eq!(outbox.answered(id, answer, true), (Some(Pending::Claim(name("1"))), claimed));
    }

    #[test]
    fn what_the_host_has_not_polled_yet_is_taken_back() {
        let mut outbox = Outbox::new(true);
        let [first, other] = [1, 2].map(|job| outbox.send(Pending::Send(job), CommandId(job), request()));
        outbox.complete(CommandId(3));
        outbox.complete(CommandId(4));
        outbox.withdraw_completed(CommandId(3));
        assert!(outbox.take_back(other), "it was not polled");
        assert_eq!(outbox.purpose(other), None);
        assert!(matches!(outbox.pop(), Some(Step::Send { id, .. }) if id == first));
        assert!(!outbox.take_back(first), "the host has it");
        assert_eq!(outbox.purpose(first), Some(&Pending::Send(1)));
        assert!(matches!(outbox.pop(), Some(Step::Completed { command: CommandId(4) })) && outbox.pop().is_none());
    }
}
