//! What may happen next in a world.

use hopline::client::{CommandId, Millis};
use hopline::contract::Method;
use hopline::wire::Request;

use crate::fate::{Fate, StoreFate};
use crate::job::{Job, Task};
use crate::service::is_login;
use crate::world::{HOUR, Out, World};

/// One thing that may happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// The store answers.
    Keep {
        /// Which of what is waited for.
        at: usize,
        /// What comes of it.
        fate: StoreFate,
    },
    /// A request meets its fate.
    Deliver {
        /// Which of what is waited for.
        at: usize,
        /// What comes of it.
        fate: Fate,
    },
    /// The oldest message that is under way arrives.
    Arrive,
    /// A result is taken.
    Take,
    /// Time passes until the client has something to do.
    Pass,
    /// The program dies.
    Crash {
        /// Whether what it waited for first is done all the same.
        done: bool,
    },
    /// A program starts.
    Restart {
        /// So long after the last one died.
        after: Millis,
        /// How far its wall clock is off.
        skew: Millis,
        /// What it does first.
        plan: Plan,
    },
    /// The program does something.
    Plan(Plan),
    /// A job is started.
    Start(Job),
    /// Nobody waits for a command any more.
    Cancel(CommandId),
    /// The machine sleeps for a night.
    Sleep,
    /// The wall clock is set.
    Clock(Millis),
    /// Nothing more goes wrong.
    End,
}

/// What a program, or a person, does by a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Nothing by itself.
    Nothing,
    /// It starts its jobs again, by their intents.
    Again,
    /// It resumes what the store holds.
    ResumeAll,
    /// A person looks at the service and ends every doubt by what it shows, an hour after the last message was sent.
    Look,
    /// Somebody gives the key of a purchase in doubt to another one.
    Misuse,
    /// It reads a balance, three hours later.
    Read,
}

impl World {
    /// All that may happen next; the first is what happens where nothing goes wrong. Nothing at the end.
    pub(crate) fn acts(&self) -> Vec<Act> {
        let Some(process) = &self.process else { return self.restarts() };
        let mut acts = Vec::new();
        let trouble = self.budget.troubles > 0;
        if !process.completed.is_empty() {
            acts.push(Act::Take);
            if trouble {
                acts.push(Act::Crash { done: false });
                if !process.out.is_empty() {
                    acts.push(Act::Crash { done: true });
                }
            }
            return acts;
        }
        let places = if self.scope.any_order { process.out.len() } else { process.out.len().min(1) };
        for at in 0..places {
            match &process.out[at] {
                Out::Save { .. } => self.store_acts(at, &mut acts),
                Out::Send { request, job, .. } => self.network_acts(at, request, *job, &mut acts),
            }
        }
        if !acts.is_empty() {
            self.late(&mut acts);
            return acts;
        }
        let is_pending = process.commands.keys().any(|command| process.client.is_pending(*command));
        if is_pending && process.wakes.is_some() {
            acts.push(Act::Pass);
        } else {
            acts.push(Act::End);
            if self.budget.acts > 0 {
                acts.extend(self.scope.plans.iter().copied().filter(|plan| *plan != Plan::Nothing).map(Act::Plan));
            }
        }
        if self.scope.cancels && self.budget.acts > 0 {
            acts.extend(
                process.commands.keys().filter(|command| process.client.is_pending(**command)).map(|command| Act::Cancel(*command)),
            );
        }
        if trouble && is_pending {
            acts.push(Act::Sleep);
            acts.extend(self.scope.clocks.iter().map(|by| Act::Clock(*by)));
        }
        self.late(&mut acts);
        acts
    }

    fn late(&self, acts: &mut Vec<Act>) {
        if !self.network.is_empty() {
            acts.push(Act::Arrive);
        }
    }

    fn restarts(&self) -> Vec<Act> {
        let trouble = self.budget.troubles > 0;
        let mut acts: Vec<Act> = self.scope.plans.iter().map(|plan| Act::Restart { after: 0, skew: 0, plan: *plan }).collect();
        if trouble {
            acts.extend(self.scope.plans.iter().map(|plan| Act::Restart { after: self.scope.night, skew: 0, plan: *plan }));
            let clocks = self.scope.clocks.iter().flat_map(|skew| self.scope.plans.iter().map(|plan| (*skew, *plan)));
            acts.extend(clocks.map(|(skew, plan)| Act::Restart { after: 0, skew, plan }));
        }
        self.late(&mut acts);
        acts
    }

    fn store_acts(&self, at: usize, acts: &mut Vec<Act>) {
        let fates = match self.budget.troubles {
            0 => &StoreFate::ALL[..1],
            // A request that is under way would be as old as the night is long.
            _ if self.sends_are_out() => &StoreFate::ALL[..3],
            _ => &StoreFate::ALL[..],
        };
        acts.extend(fates.iter().map(|fate| Act::Keep { at, fate: *fate }));
        if self.budget.troubles > 0 && at == 0 {
            acts.extend([Act::Crash { done: false }, Act::Crash { done: true }]);
        }
    }

    pub(crate) fn sends_are_out(&self) -> bool {
        self.process.as_ref().is_some_and(|process| process.out.iter().any(|out| matches!(out, Out::Send { .. })))
    }

    fn network_acts(&self, at: usize, request: &Request, job: Option<usize>, acts: &mut Vec<Act>) {
        let fates = if self.budget.faults > 0 { self.fates_of(request, job) } else { Fate::HONEST };
        acts.extend(fates.iter().map(|fate| Act::Deliver { at, fate: *fate }));
        if self.budget.troubles > 0 && at == 0 {
            if request.method != Method::Get {
                acts.push(Act::Crash { done: true });
            }
            acts.push(Act::Crash { done: false });
        }
    }

    /// What can come of a request while faults happen.
    pub(crate) fn fates_of(&self, request: &Request, job: Option<usize>) -> &'static [Fate] {
        let job = job.map(|at| self.jobs[at]);
        if is_login(request) {
            return Fate::LOGIN;
        }
        match (self.scope.api, request.method) {
            (hopline::contract::Api::Reseller, Method::Get) => Fate::TOKEN_READ,
            (hopline::contract::Api::Reseller, _) => Fate::KEYLESS,
            (_, Method::Get) if self.scope.reads => Fate::READ,
            (_, Method::Get) => Fate::HONEST,
            (_, Method::Delete) => Fate::READ,
            _ if self.scope.cap.is_some() => Fate::CAPPED,
            _ if job.is_some_and(|job| !job.is_paid() || job.task == Task::Rotate) => Fate::FREE,
            _ => Fate::PAID,
        }
    }
}

/// Clocks that are an hour late or early.
pub(crate) const HOURS: &[Millis] = &[-HOUR, HOUR];
