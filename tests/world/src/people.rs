//! What people do, and what they must be able to rely on: they resume what is saved, look at the service, end doubts; and they err.

use std::collections::BTreeSet;

use hopline::client::{CallOptions, CommandId, Holds, RecordId, Saved, Settlement};
use hopline::contract::Api;
use serde::Deserialize;

use crate::checker::LOST;
use crate::job::{Job, Name, Task};
use crate::world::{HOUR, World, Wrong};

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

impl World {
    /// Resumes all that can be resumed.
    pub(crate) fn resume_all(&mut self) -> Result<(), Wrong> {
        let Some(process) = &self.process else { return Ok(()) };
        let held = process.client.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::Session | Holds::Order));
        let records: Vec<RecordId> = held.map(|saved| saved.record).collect();
        records.iter().try_for_each(|record| self.resume(record))
    }

    pub(crate) fn saved(&self) -> Vec<Saved> {
        self.process.as_ref().map(|process| process.client.saved()).unwrap_or_default()
    }

    /// The doubts that a person may end.
    fn open_doubts(&self) -> Vec<RecordId> {
        let open = self.saved().into_iter().filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood));
        open.map(|saved| saved.record).collect()
    }

    /// Somebody who knows nothing of it gives the key of a purchase to another one.
    pub(crate) fn misuse(&mut self) -> Result<(), Wrong> {
        let is_open = !self.open_doubts().is_empty();
        let Some(job) = self.jobs.iter().find(|job| is_open && job.name == Name::Key) else { return Ok(()) };
        let key = format!("mine-{}", job.number);
        let params = r#"{"session_type":"static","product_no":"static-us","quantity":1}"#;
        let Some(process) = &mut self.process else { return Ok(()) };
        let options = CallOptions { idempotency_key: Some(key), ..CallOptions::default() };
        let command = process.client.start_json("create_session", params, options);
        process.commands.insert(command, None);
        self.drain()
    }

    /// A person waits until no message can be under way, looks at what the service shows, and ends every doubt by that.
    pub(crate) fn look(&mut self) -> Result<(), Wrong> {
        self.pass(HOUR + 1)?;
        self.arrive_all()?;
        for record in self.open_doubts() {
            let Some(about) = self.about_of(&record) else { continue };
            let (job, found) = (self.jobs[about.job], self.checker.found(about).cloned());
            if self.scope.api == Api::Reseller
                && !self.reconcile(&record, job, found.as_ref().and_then(|effect| effect.id.clone()), found.is_some())?
            {
                continue;
            }
            let happened = found.is_some();
            self.tell(|| format!("a person settles {record}: {}", if happened { "it happened" } else { "it did not happen" }));
            let Some(process) = &mut self.process else { return Ok(()) };
            let settled = match found.and_then(|effect| effect.id).filter(|_| job.names_what_it_gets()) {
                Some(id) => process.client.settle_as(&record, &id).unwrap_or_default(),
                None => process.client.settle(&record, if happened { Settlement::Happened } else { Settlement::NotHappened }),
            };
            if !settled {
                return Err(format!("the doubt of {record} can't be settled"));
            }
            self.checker.settled(about, job, happened);
            self.drain()?;
            self.settle_all()?;
        }
        self.drop_damaged()
    }

    /// A person drops what can't be read any more, once they know what came of it.
    fn drop_damaged(&mut self) -> Result<(), Wrong> {
        for record in self.saved().into_iter().filter(|saved| saved.holds == Holds::Refused).map(|saved| saved.record) {
            self.tell(|| format!("a person drops {record}, which can't be read"));
            let about = self.damaged.get(&record).copied().flatten().and_then(|job| self.checker.current(job));
            let dropped = self.process.as_mut().is_some_and(|process| process.client.forget(&record));
            if !dropped {
                return Err(format!("{record} can't be dropped"));
            }
            match about {
                // Whoever starts it once more buys it once more.
                Some(about) if self.checker.was_done(about.job) => self.checker.dropped(about),
                Some(about) => self.checker.settled(about, self.jobs[about.job], false),
                None => {}
            }
            self.drain()?;
            self.settle_all()?;
        }
        Ok(())
    }

    /// Goes on with one intent.
    pub(crate) fn resume_intent(&mut self, at: usize) -> Result<(), Wrong> {
        let Some((intent, about)) = self.jobs.get(at).and_then(|job| job.intent()).zip(self.checker.current(at)) else { return Ok(()) };
        let Some(process) = &mut self.process else { return Ok(()) };
        let Some(command) = process.client.resume_intent(&intent, CallOptions::default()) else { return Ok(()) };
        process.commands.insert(command, Some(about));
        self.tell(|| format!("command {} resumes {intent}", command.0));
        self.drain()
    }

    /// Whoever waited for a command is gone.
    pub(crate) fn abandon(&mut self, command: CommandId) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if process.client.abandon(command) {
            process.completed.retain(|completed| *completed != command);
            process.commands.remove(&command);
            self.checker.abandoned();
            self.tell(|| format!("nobody takes the result of command {}", command.0));
        }
        self.drain()
    }

    /// Somebody ends a doubt without looking.
    pub(crate) fn guess(&mut self, at: usize, happened: bool) -> Result<(), Wrong> {
        let Some(record) = self.open_doubts().get(at).cloned() else { return Ok(()) };
        let about = self.about_of(&record);
        let settlement = if happened { Settlement::Happened } else { Settlement::NotHappened };
        let is_settled = self.process.as_mut().is_some_and(|process| process.client.settle(&record, settlement));
        if let Some(about) = about.filter(|_| is_settled) {
            self.tell(|| format!("somebody guesses about {record}: {settlement:?}"));
            self.checker.guessed(about, happened);
        }
        self.drain()
    }

    /// Somebody drops a record too early.
    pub(crate) fn forget(&mut self, at: usize) -> Result<(), Wrong> {
        let Some(saved) = self.saved().into_iter().nth(at).filter(|saved| saved.holds != Holds::Refused) else { return Ok(()) };
        let about = self.about_of(&saved.record);
        let Some(process) = &mut self.process else { return Ok(()) };
        if process.client.forget(&saved.record) {
            self.tell(|| format!("somebody drops {} too early", saved.record));
            self.checker.saw(saved.session_id.into_iter().chain(saved.order_no));
            if let Some(about) = about {
                self.checker.dropped(about);
            }
        }
        self.drain()
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
        let names =
            shown.candidates.iter().flat_map(|candidate| ["orderNo", "remark", "username"].map(|member| candidate.item.get(member)));
        let names: BTreeSet<&str> = names.flatten().filter_map(|name| name.as_str()).collect();
        let wanted = id.unwrap_or_else(|| format!("{}-{}", if job.task == Task::User { "user" } else { "money" }, job.number));
        if done && !names.contains(wanted.as_str()) {
            Err(format!("{LOST}: the reconcile shows {names:?}, and not {wanted}"))
        } else {
            Ok(true)
        }
    }
}
