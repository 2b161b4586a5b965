//! The acts that may happen next in a world.

use hopline::client::{CommandId, Millis, StoreCall};
use hopline::contract::Method;
use hopline::wire::Request;

use crate::checker::About;
use crate::delivery::{Delivery, StoreResult};
use crate::job::{Job, Manner, Task};
use crate::scope::Plan;
use crate::service::is_login;
use crate::world::{Out, Process, World};

/// One thing that may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// The store answers.
    Keep {
        /// The index of the step that is waited for.
        at: usize,
        /// The result of the step.
        result: StoreResult,
    },
    /// A request meets what comes of it.
    Deliver {
        /// The index of the request that is waited for.
        at: usize,
        /// The delivery of the request.
        delivery: Delivery,
    },
    /// A message that is under way arrives.
    Arrive {
        /// Which; 0 is the oldest.
        at: usize,
    },
    /// The store does what it was asked longest ago and has not done.
    ComesTrue,
    /// A result is taken.
    Take,
    /// Time passes until the client has something to do.
    Pass,
    /// The program dies.
    Crash {
        /// The state in which the crash leaves the step that was waited for first.
        leaves: Leaves,
    },
    /// A program starts.
    Restart {
        /// So long after the last one died.
        after: Millis,
        /// How far its wall clock is off.
        skew: Millis,
        /// The plan that the program follows first.
        plan: Plan,
    },
    /// The program does something.
    Plan(Plan),
    /// A job is started.
    Start(Job, Manner),
    /// The intent of a job is resumed.
    Resume(usize),
    /// The caller that waited for a completed command is gone.
    Abandon(CommandId),
    /// A person ends a doubt without checking the service.
    Guess {
        /// Which.
        at: usize,
        /// The person's statement: the operation happened, or not.
        happened: bool,
    },
    /// A person deletes a record too early.
    Forget {
        /// The index of the record in the list.
        at: usize,
    },
    /// The caller stops waiting for a command.
    Cancel(CommandId),
    /// The machine sleeps for a night.
    Sleep,
    /// The wall clock is set.
    Clock(Millis),
    /// The claims of the program end while it lives.
    Lose {
        /// True if the client is told at once.
        is_told: bool,
    },
    /// Its client is told that its claims have ended.
    Told,
    /// One of the others that share the store does something.
    Of {
        /// The program's number, from 1.
        program: usize,
        /// What.
        act: Box<Act>,
    },
    /// Nothing more goes wrong.
    End,
}

impl Act {
    fn of(program: usize, acts: Vec<Act>) -> impl Iterator<Item = Act> {
        acts.into_iter().map(move |act| if program == 0 { act } else { Act::Of { program, act: Box::new(act) } })
    }
}

/// The state in which a crash leaves the step that the program waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// The step was not done.
    Nothing,
    /// The step was done.
    All,
    /// A record was written in part.
    Part,
}

impl World {
    /// All that may happen next; the first is what happens where nothing goes wrong. Nothing at the end.
    pub(crate) fn acts(&self) -> Vec<Act> {
        let programs = || std::iter::once(&self.process).chain(&self.others).enumerate();
        // To take a result is nobody else's concern, so nothing happens before it.
        if let Some((at, Some(process))) = programs().find(|(_, process)| process.as_ref().is_some_and(|own| !own.completed.is_empty())) {
            return Act::of(at, self.takes(process)).collect();
        }
        let (mut acts, mut idle) = (Vec::new(), Vec::new());
        for (at, process) in programs() {
            match process {
                Some(process) if process.is_busy() => acts.extend(Act::of(at, self.answers(process))),
                Some(process) => idle.extend(Act::of(at, self.plans(process))),
                None => idle.extend(Act::of(at, self.restarts())),
            }
        }
        if acts.is_empty() && self.living().next().is_some() {
            acts.push(if self.living().any(Process::waits) { Act::Pass } else { Act::End });
        }
        acts.extend(idle);
        self.late(&mut acts);
        acts
    }

    fn takes(&self, process: &Process) -> Vec<Act> {
        let mut acts = vec![Act::Take];
        if self.budget.troubles > 0 {
            acts.push(Act::Crash { leaves: Leaves::Nothing });
            if !process.out.is_empty() {
                acts.push(Act::Crash { leaves: Leaves::All });
            }
        }
        acts
    }

    /// The results that a step which a program waits for may have.
    fn answers(&self, process: &Process) -> Vec<Act> {
        let mut acts = Vec::new();
        let places = if self.scope.any_order { process.out.len() } else { process.out.len().min(1) };
        for at in 0..places {
            match &process.out[at] {
                Out::Store { call, .. } => self.store_acts(at, call, &mut acts),
                Out::Send { request, about, .. } => self.network_acts(process, at, request, *about, &mut acts),
            }
        }
        acts.extend(self.cancels(process));
        acts.extend(self.ends(process));
        acts
    }

    /// The acts of a program that need no answer first.
    fn plans(&self, process: &Process) -> Vec<Act> {
        let mut acts = Vec::new();
        let is_pending = process.is_pending();
        if !(is_pending && process.wakes.is_some()) && self.budget.acts > 0 {
            acts.extend(self.scope.plans.iter().copied().filter(|plan| *plan != Plan::Nothing).map(Act::Plan));
        }
        acts.extend(self.cancels(process));
        if self.budget.troubles > 0 && is_pending && !self.shares() {
            acts.push(Act::Sleep);
            acts.extend(self.scope.clocks.iter().map(|by| Act::Clock(*by)));
        }
        acts.extend(self.ends(process));
        acts
    }

    fn cancels(&self, process: &Process) -> impl Iterator<Item = Act> {
        let open = process.commands.keys().filter(|command| process.client.is_pending(**command));
        open.filter(|_| self.scope.cancels && self.budget.acts > 0).map(|command| Act::Cancel(*command))
    }

    /// Its claims may end, where others share its store; and it may be told.
    fn ends(&self, process: &Process) -> Vec<Act> {
        let may_end = self.shares() && self.budget.troubles > 0 && self.store.owned_by(process.number).next().is_some();
        let mut acts = if process.untold { vec![Act::Told] } else { Vec::new() };
        acts.extend([true, false].into_iter().filter(|_| may_end).map(|is_told| Act::Lose { is_told }));
        acts
    }

    /// True if several programs share the store.
    pub(crate) fn shares(&self) -> bool {
        !self.others.is_empty()
    }

    fn late(&self, acts: &mut Vec<Act>) {
        if !self.late_calls.is_empty() {
            acts.push(Act::ComesTrue);
        }
        if !self.network.is_empty() {
            acts.push(Act::Arrive { at: 0 });
        }
        // A later one may overtake it.
        if self.network.len() > 1 {
            acts.push(Act::Arrive { at: self.network.len() - 1 });
        }
    }

    fn restarts(&self) -> Vec<Act> {
        let mut acts: Vec<Act> = self.scope.plans.iter().map(|plan| Act::Restart { after: 0, skew: 0, plan: *plan }).collect();
        if self.budget.troubles > 0 && !self.shares() {
            acts.extend(self.scope.plans.iter().map(|plan| Act::Restart { after: self.scope.night, skew: 0, plan: *plan }));
            let clocks = self.scope.clocks.iter().flat_map(|skew| self.scope.plans.iter().map(|plan| (*skew, *plan)));
            acts.extend(clocks.map(|(skew, plan)| Act::Restart { after: 0, skew, plan }));
        }
        acts
    }

    fn store_acts(&self, at: usize, call: &StoreCall, acts: &mut Vec<Act>) {
        let writes = matches!(call, StoreCall::Put { .. });
        if self.budget.troubles > 0 && self.may_come_true_late(call) {
            acts.push(Act::Keep { at, result: StoreResult::FailedThenDone });
        }
        if self.budget.troubles > 0 && self.scope.answers_oddly && matches!(call, StoreCall::Claim { .. }) {
            acts.push(Act::Keep { at, result: StoreResult::Unfit });
        }
        let results = match self.budget.troubles {
            0 => &StoreResult::ALL[..1],
            _ if self.shares() => &StoreResult::SHARED[..if writes { 4 } else { 3 }],
            // A request that is under way would be as old as the night is long.
            _ if self.sends_are_out() => &StoreResult::ALL[..3],
            _ => &StoreResult::ALL[..],
        };
        acts.extend(results.iter().map(|result| Act::Keep { at, result: *result }));
        if self.budget.troubles > 0 && at == 0 {
            acts.extend([Act::Crash { leaves: Leaves::Nothing }, Act::Crash { leaves: Leaves::All }]);
            if writes {
                acts.push(Act::Crash { leaves: Leaves::Part });
            }
        }
    }

    /// True if the store may execute the call later than it answers.
    pub(crate) fn may_come_true_late(&self, call: &StoreCall) -> bool {
        self.scope.late_calls && matches!(call, StoreCall::Put { new: true, .. })
    }

    pub(crate) fn sends_are_out(&self) -> bool {
        self.living().any(Process::sends)
    }

    fn network_acts(&self, process: &Process, at: usize, request: &Request, about: Option<About>, acts: &mut Vec<Act>) {
        // A request that is too late to be sent meets no fault.
        let is_late = self.is_late(process, request);
        let deliveries = if self.budget.faults > 0 && !is_late { self.deliveries_of(request, about) } else { Delivery::HONEST };
        acts.extend(deliveries.iter().map(|delivery| Act::Deliver { at, delivery: *delivery }));
        if self.budget.troubles > 0 && at == 0 {
            if request.method != Method::Get && !is_late {
                acts.push(Act::Crash { leaves: Leaves::All });
            }
            acts.push(Act::Crash { leaves: Leaves::Nothing });
        }
    }

    /// The deliveries that a request may meet while there are faults.
    pub(crate) fn deliveries_of(&self, request: &Request, about: Option<About>) -> &'static [Delivery] {
        let job = about.map(|about| self.jobs[about.job]);
        if self.scope.seldom {
            return Delivery::SELDOM;
        }
        if is_login(request) {
            return Delivery::LOGIN;
        }
        match (self.scope.api, request.method) {
            (hopline::contract::Api::Reseller, Method::Get) => Delivery::TOKEN_READ,
            (hopline::contract::Api::Reseller, _) => Delivery::KEYLESS,
            (_, Method::Get) if self.scope.reads => Delivery::READ,
            (_, Method::Get) => Delivery::HONEST,
            (_, Method::Delete) => Delivery::END,
            _ if self.scope.mixes_up => Delivery::MIXED_UP,
            _ if job.is_some_and(|job| job.task == Task::Choose) => Delivery::CHOSEN,
            _ if self.scope.cap.is_some() => Delivery::CAPPED,
            _ if self.scope.relayed && job.is_some_and(|job| job.is_paid()) => Delivery::RELAYED,
            _ if job.is_some_and(|job| !job.is_paid() || job.task == Task::Rotate) => Delivery::FREE,
            _ => Delivery::PAID,
        }
    }
}
