//! What happens to a world when an act is chosen.

use hopline::client::{FailureKind, Outcome, RecordId, Sent, StepId};
use hopline::wire::Request;

use crate::act::{Act, Plan};
use crate::fate::{Fate, StoreFate};
use crate::job::{Job, Task};
use crate::service::Heard;
use crate::world::{HOUR, Message, Out, World, Wrong, shows};

impl World {
    /// What is waited for there, if it is of that kind: a life that is shortened may have something else in its place.
    fn answer(&mut self, at: usize, is_it: impl Fn(&Out) -> bool) -> Option<Out> {
        let process = self.process.as_mut()?;
        process.out.get(at).filter(|out| is_it(out))?;
        process.out.remove(at)
    }

    /// Answers a save.
    pub(crate) fn keep(&mut self, at: usize, fate: StoreFate) -> Result<(), Wrong> {
        let is_it = |out: &Out| matches!(out, Out::Save { .. });
        let Some(Out::Save { id, record, data }) = self.answer(at, is_it) else { return Ok(()) };
        let say = if data.is_some() { "save" } else { "delete" };
        self.tell(|| format!("{say} {record}: {fate:?}"));
        let is_done = fate != StoreFate::Failed;
        if is_done {
            self.put(record, data);
        }
        let fails = matches!(fate, StoreFate::Failed | StoreFate::FailedButDone);
        self.checker.unkept |= fails;
        if fate == StoreFate::DoneAfterSleep {
            self.pass(self.scope.night)?;
        }
        let failed = Outcome::Failed { kind: FailureKind::Store, sent: Sent::Never };
        self.resolve(id, if fails { failed } else { Outcome::Saved })
    }

    pub(crate) fn put(&mut self, record: RecordId, data: Option<Vec<u8>>) {
        match data {
            Some(data) => _ = self.store.insert(record, data),
            None => _ = self.store.remove(&record),
        }
    }

    /// Lets a request have its fate.
    pub(crate) fn deliver(&mut self, at: usize, fate: Fate) -> Result<(), Wrong> {
        let is_it = |out: &Out| matches!(out, Out::Send { .. });
        let Some(Out::Send { id, command, request, job }) = self.answer(at, is_it) else { return Ok(()) };
        self.tell(|| format!("{} {} with {:?}: {fate:?}", request.method.as_str(), request.url, request.header("idempotency-key")));
        self.pass(50)?;
        let about = job.and_then(|job| self.checker.current(job));
        if matches!(fate, Fate::Delayed | Fate::CopyLater) {
            self.network.push_back(Message { request: request.clone(), job, about });
        }
        let whole = http::Request::try_from(&request).map_err(|error| error.to_string())?;
        let mut effects = Vec::new();
        let heard = self.remote.meet(fate, &whole, job, self.now, &mut effects);
        self.note(effects, about)?;
        let now = self.clock();
        self.checker.hears(command, &request, &heard, self.remote.price, now.monotonic, self.now);
        match &heard {
            Heard::Lost(kind, sent) => self.resolve(id, Outcome::Failed { kind: *kind, sent: *sent }),
            Heard::Response { status, headers, body } => {
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                self.resolve(id, Outcome::Response { status: *status, headers: &headers, body, truncated: false })
            }
        }
    }

    /// A request is executed, and nobody hears of it.
    pub(crate) fn execute_unheard(&mut self, request: Request, job: Option<usize>) -> Result<(), Wrong> {
        let about = job.and_then(|job| self.checker.current(job));
        self.arrive(Message { request, job, about })
    }

    fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) -> Result<(), Wrong> {
        let now = self.clock();
        let Some(process) = &mut self.process else { return Ok(()) };
        process.client.resolve(id, outcome, now).map_err(|misuse| misuse.to_string())?;
        if process.client.resolve(id, Outcome::Saved, now).is_ok() {
            return Err("a step was answered twice".into());
        }
        self.drain()
    }

    /// Takes a result.
    pub(crate) fn take(&mut self) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let Some(command) = process.completed.pop_front() else { return Ok(()) };
        let result = process.client.take_answer(command).ok_or("a completed command must have a result")?;
        let about = process.commands.remove(&command).ok_or("a command completed twice, or unasked")?;
        if process.client.take_answer(command).is_some() {
            return Err("a result was taken twice".into());
        }
        if let Err(error) = &result
            && shows(&format!("{error} {error:?}"))
        {
            return Err("an error shows a secret".into());
        }
        let number = command.0;
        self.tell(|| match &result {
            Ok(answered) => format!("command {number} is taken: {:?} {:?}", answered.facts.session_id, answered.facts.order_no),
            Err(error) => format!("command {number} is taken: {:?}, effect {:?}: {error}", error.kind, error.effect),
        });
        match about {
            Some(about) => self.checker.taken(about, self.jobs[about.job], &result),
            None => self.shown = result.ok().map(|answered| answered.raw.text().to_owned()),
        }
        self.drain()
    }

    /// Does what was chosen.
    pub(crate) fn act(&mut self, act: &Act) -> Result<(), Wrong> {
        match act {
            Act::Keep { at, fate } => {
                self.budget.troubles = self.budget.troubles.saturating_sub(u8::from(*fate != StoreFate::Done));
                self.keep(*at, *fate)
            }
            Act::Deliver { at, fate } => {
                self.budget.faults = self.budget.faults.saturating_sub(u8::from(*fate != Fate::Answered));
                self.deliver(*at, *fate)
            }
            Act::Arrive => {
                self.tell(|| "a late message arrives".into());
                self.network.pop_front().map_or(Ok(()), |message| self.arrive(message))
            }
            Act::Take => self.take(),
            Act::Pass => {
                let now = self.clock().monotonic;
                let until = self.process.as_ref().and_then(|process| process.wakes).unwrap_or(now);
                self.pass((until - now).max(1))?;
                self.drain()
            }
            Act::Crash { done } => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.crash(*done)
            }
            Act::Restart { after, skew, plan } => {
                self.tell(|| format!("after {} h, with a wall clock that is {} h off:", after / HOUR, skew / HOUR));
                self.budget.troubles = self.budget.troubles.saturating_sub(u8::from(*after > 0) + u8::from(*skew != 0));
                self.pass(*after)?;
                self.restart(*skew)?;
                self.follow(*plan)
            }
            Act::Plan(plan) => {
                self.budget.acts = self.budget.acts.saturating_sub(1);
                self.follow(*plan)
            }
            Act::Sleep => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.tell(|| "the machine sleeps for a night".into());
                self.pass(self.scope.night)?;
                self.drain()
            }
            Act::Clock(by) => {
                self.budget.troubles = self.budget.troubles.saturating_sub(1);
                self.tell(|| format!("the wall clock is set by {} h", by / HOUR));
                if let Some(process) = &mut self.process {
                    process.skew += by;
                    process.is_right = false;
                }
                self.drain()
            }
            Act::Cancel(command) => {
                self.budget.acts = self.budget.acts.saturating_sub(1);
                self.tell(|| format!("cancel command {}", command.0));
                let now = self.clock();
                if let Some(process) = &mut self.process {
                    process.client.cancel(*command, now);
                }
                self.drain()
            }
            Act::Start(job) => self.start(*job),
            Act::End => self.end(),
        }
    }

    /// The program dies. What it waited for first is done, or not; the rest is lost.
    fn crash(&mut self, done: bool) -> Result<(), Wrong> {
        self.tell(|| format!("the program dies{}", if done { ", and what it waited for is done" } else { "" }));
        let first = self.process.take().and_then(|process| process.out.into_iter().next());
        match first {
            Some(Out::Save { record, data, .. }) if done => self.put(record, data),
            Some(Out::Send { request, job, .. }) if done => self.execute_unheard(request, job)?,
            _ => {}
        }
        Ok(())
    }

    /// What a program does next by its own plan.
    fn follow(&mut self, plan: Plan) -> Result<(), Wrong> {
        match plan {
            Plan::Nothing => Ok(()),
            Plan::Again => {
                let named: Vec<Job> = self.jobs.iter().copied().filter(|job| job.intent().is_some()).collect();
                named.into_iter().try_for_each(|job| self.start(job))
            }
            Plan::ResumeAll => self.resume_all(),
            Plan::Look => self.look(),
            Plan::Misuse => self.misuse(),
            Plan::Read => {
                self.pass(3 * HOUR)?;
                self.start(Job::unnamed(Task::Balance, 0))
            }
        }
    }
}
