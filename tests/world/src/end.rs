//! The end of every run is fair: nothing more goes wrong, messages arrive, a fresh client goes on with everything, a person ends what
//! is open by what the service shows, and every job with a name is started once more. Then everything must be as it should.

use std::collections::BTreeSet;

use hopline::client::{Holds, RecordId, Saved, Settlement};
use hopline::contract::Api;
use serde::Deserialize;

use crate::act::Act;
use crate::checker::{LOST, TWICE};
use crate::fate::{Fate, StoreFate};
use crate::job::{Job, Name, Task};
use crate::service::Remote;
use crate::world::{Budget, HOUR, Out, World, Wrong};

/// What a reconcile answers.
#[derive(Deserialize)]
struct Reconciled {
    candidates: Vec<Candidate>,
    complete: bool,
}

#[derive(Deserialize)]
struct Candidate {
    item: serde_json::Value,
}

/// No run needs more steps than this to come to its end.
const MAX_ACTS: usize = 20_000;

impl World {
    /// Lets all that is under way end, while nothing goes wrong.
    pub(crate) fn settle_all(&mut self) -> Result<(), Wrong> {
        for _ in 0..MAX_ACTS {
            let Some(process) = &self.process else { return Ok(()) };
            if !process.completed.is_empty() {
                self.take()?;
            } else if let Some(out) = process.out.front() {
                match out {
                    Out::Save { .. } => self.keep(0, StoreFate::Done)?,
                    Out::Send { .. } => self.deliver(0, Fate::Answered)?,
                }
            } else if !process.commands.keys().any(|command| process.client.is_pending(*command)) {
                // What is neither under way nor was taken was lost on the way.
                return if process.commands.is_empty() { Ok(()) } else { Err("a command went without an end".into()) };
            } else if process.wakes.is_some() {
                self.act(&Act::Pass)?;
            } else {
                return Err("the client waits for nothing, and a command has not ended".into());
            }
        }
        Err("the run does not end".into())
    }

    /// Resumes all that can be resumed.
    pub(crate) fn resume_all(&mut self) -> Result<(), Wrong> {
        let Some(process) = &self.process else { return Ok(()) };
        let held = process.client.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::Session | Holds::Order));
        let records: Vec<RecordId> = held.map(|saved| saved.record).collect();
        records.iter().try_for_each(|record| self.resume(record))
    }

    fn saved(&self) -> Vec<Saved> {
        self.process.as_ref().map(|process| process.client.saved()).unwrap_or_default()
    }

    /// The doubts that a person may end.
    fn open(&self) -> Vec<RecordId> {
        let open = self.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood));
        open.map(|saved| saved.record).collect()
    }

    /// Somebody who knows nothing of it gives the key of a purchase to another one.
    pub(crate) fn misuse(&mut self) -> Result<(), Wrong> {
        let is_open = !self.open().is_empty();
        let Some(job) = self.jobs.iter().find(|job| is_open && job.name == Name::Key) else { return Ok(()) };
        let key = format!("mine-{}", job.number);
        let params = r#"{"session_type":"static","product_no":"static-us","quantity":1}"#;
        let Some(process) = &mut self.process else { return Ok(()) };
        let options = hopline::client::CallOptions { idempotency_key: Some(key), ..Default::default() };
        let command = process.client.start_json("create_session", params, options);
        process.commands.insert(command, None);
        self.drain()
    }

    /// A person waits until no message can be under way, looks at what the service shows, and ends every doubt by that.
    pub(crate) fn look(&mut self) -> Result<(), Wrong> {
        self.pass(HOUR + 1)?;
        self.arrive_all()?;
        for record in self.open() {
            let Some(at) = self.job_of(&record) else { continue };
            let (job, found) = (self.jobs[at], self.checker.found(at).cloned());
            if self.scope.api == Api::Reseller
                && !self.reconcile(&record, job, found.as_ref().and_then(|effect| effect.id.clone()), found.is_some())?
            {
                continue;
            }
            let happened = found.is_some();
            self.tell(|| format!("a person settles {record}: {}", if happened { "it happened" } else { "it did not happen" }));
            let Some(process) = &mut self.process else { return Ok(()) };
            let settled = match found.and_then(|effect| effect.id).filter(|_| Remote::names(job.task)) {
                Some(id) => process.client.settle_as(&record, &id).unwrap_or_default(),
                None => process.client.settle(&record, if happened { Settlement::Happened } else { Settlement::NotHappened }),
            };
            if !settled {
                return Err(format!("the doubt of {record} can't be settled"));
            }
            self.checker.settled(at, happened, true);
            self.drain()?;
            self.settle_all()?;
        }
        Ok(())
    }

    /// A reconcile shows what may be it. Whether it could look.
    fn reconcile(&mut self, record: &RecordId, job: Job, id: Option<String>, done: bool) -> Result<bool, Wrong> {
        self.shown = None;
        self.ask("reconcile", &serde_json::json!({ "record": record.to_string() }).to_string())?;
        self.settle_all()?;
        let shown = self.shown.take().and_then(|answer| serde_json::from_str::<Reconciled>(&answer).ok());
        // A client whose login was refused can't look; the next one can.
        let can_look = !self.checker.login_is_refused();
        let Some(shown) = shown.filter(|shown| shown.complete) else {
            return if can_look { Err("the reconcile does not show all there is".into()) } else { Ok(false) };
        };
        let names = shown.candidates.iter().flat_map(|candidate| [candidate.item.get("orderNo"), candidate.item.get("remark")]);
        let names: BTreeSet<&str> = names.flatten().filter_map(|name| name.as_str()).collect();
        let wanted = id.unwrap_or_else(|| format!("money-{}", job.number));
        if done && !names.contains(wanted.as_str()) {
            Err(format!("{LOST}: the reconcile shows {names:?}, and not {wanted}"))
        } else {
            Ok(true)
        }
    }

    /// The fair end, and what must be true after it.
    pub(crate) fn end(&mut self) -> Result<(), Wrong> {
        self.tell(|| "from here on nothing goes wrong".into());
        self.budget = Budget { faults: 0, troubles: 0, acts: 0 };
        if self.process.is_none() {
            self.restart(0)?;
        }
        self.settle_all()?;
        self.pass(HOUR)?;
        self.arrive_all()?;
        for _ in 0..2 {
            self.restart(0)?;
            self.resume_all()?;
            self.settle_all()?;
        }
        self.restart(0)?;
        self.checker.nothing_is_lost(&self.jobs, &self.saved(), &self.doubts(), self.scope.cap.is_some())?;
        self.look()?;
        for job in self.jobs.clone() {
            if job.intent().is_some() {
                self.start(job)?;
                self.settle_all()?;
            }
        }
        // What a cap refuses is not done.
        for (at, job) in self.jobs.iter().enumerate().filter(|_| self.scope.cap.is_none()) {
            let done = self.checker.done(at);
            // A session that is over is neither rotated nor renewed.
            let may_be_refused = matches!(job.task, Task::Rotate | Task::Renew);
            if job.has_effect() && job.name == Name::Intent && done != 1 && !(done == 0 && may_be_refused) && !self.checker.is_excused(at) {
                let said = if done > 1 { TWICE } else { "an intent that was started again at the end was not done" };
                return Err(format!("{said}: {job:?} was done {done} times"));
            }
        }
        Ok(())
    }
}
