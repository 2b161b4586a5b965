//! The acts of people, and the guarantees that they rely on: they resume saved records, check the service, end doubts; and they make
//! mistakes.

use std::collections::BTreeSet;

use hopline::Error;
use hopline::client::{
    Answered, CallOptions, Client, ClientOptions, CommandId, Millis, Name as StoreName, Now, Outcome, RecordId, RecordKind, Saved,
    Settlement, Step, Whose,
};
use hopline::contract::{Api, Secret};
use serde::Deserialize;

use crate::checker::{HELD, INTRUDED, LOST};
use crate::delivery::StoreResult;
use crate::job::{Job, Manner, Name, Task};
use crate::process::name_of;
use crate::time::HOUR;
use crate::world::{Out, Process, World, Wrong};

/// The answer of a reconcile.
#[derive(Deserialize)]
struct Reconciled {
    candidates: Vec<Candidate>,
    complete: bool,
}

#[derive(Deserialize)]
struct Candidate {
    item: serde_json::Value,
}

/// No act about a record takes more steps than this, with all that the store was asked before.
const MAX_STEPS: usize = 1_000;

/// The number of the client of another account.
const INTRUDER: u8 = u8::MAX;

/// The result of a person's act on a record.
#[derive(Debug, PartialEq, Eq)]
enum Acted {
    Done,
    Not,
    /// The act is too early, by the clock of the client.
    Wait {
        until: Millis,
    },
}

impl World {
    /// Resumes all that can be resumed.
    pub(crate) fn resume_all(&mut self) -> Result<(), Wrong> {
        let held =
            self.saved().into_iter().filter(|saved| matches!(saved.holds, RecordKind::InDoubt | RecordKind::Session | RecordKind::Order));
        let records: Vec<RecordId> = held.map(|saved| saved.record).collect();
        records.iter().try_for_each(|record| self.resume(record))
    }

    /// Does an act on a record while there are no faults. Returns its result, or nothing if it has to wait for something else.
    fn at_once(&mut self, command: CommandId) -> Result<Option<Result<Answered, Error>>, Wrong> {
        for _ in 0..MAX_STEPS {
            self.drain()?;
            let Some(process) = &mut self.process else { return Ok(None) };
            if process.client.result(command).is_some() {
                process.completed.retain(|completed| *completed != command);
                process.commands.remove(&command);
                let result = process.client.take_answer(command);
                self.drain()?;
                return Ok(result);
            }
            let is_its = |out: &Out| matches!(out, Out::Store { command: Some(of), .. } if *of == command);
            match process.out.iter().position(is_its) {
                Some(at) => self.keep(at, StoreResult::Done)?,
                // A write that failed before is tried again first.
                None => match process.out.iter().position(|out| matches!(out, Out::Store { .. })) {
                    Some(at) => self.keep(at, StoreResult::Done)?,
                    None => break,
                },
            }
        }
        let now = self.clock();
        self.process.iter_mut().for_each(|process| _ = process.client.cancel(command, now));
        self.drain()?;
        let Some(process) = &mut self.process else { return Ok(None) };
        _ = process.client.take_answer(command).ok_or("what was to be done about a record neither ends nor can be given up")?;
        process.completed.retain(|completed| *completed != command);
        process.commands.remove(&command);
        Ok(None)
    }

    /// Does something about a record.
    fn acted(&mut self, command: CommandId) -> Result<Acted, Wrong> {
        if let Some(process) = &mut self.process {
            process.commands.insert(command, None);
        }
        Ok(match self.at_once(command)? {
            Some(Ok(answered)) if answered.raw.text() == "true" => Acted::Done,
            Some(Err(error)) => error.retry_at.map_or(Acted::Not, |until| Acted::Wait { until }),
            _ => Acted::Not,
        })
    }

    fn settle(&mut self, record: &RecordId, settlement: Settlement) -> Result<Acted, Wrong> {
        let Some(process) = &mut self.process else { return Ok(Acted::Not) };
        let command = process.client.settle(record, settlement).command;
        self.acted(command)
    }

    /// A person notes what the service shows of each doubt; or says so at once, without waiting for what may be under way.
    pub(crate) fn note_doubts(&mut self, waits: bool) -> Result<(), Wrong> {
        if waits {
            self.pass(HOUR + 1)?;
            self.arrive_all()?;
        }
        for record in self.open_doubts() {
            let Some(about) = self.about_of(&record) else { continue };
            let happened = self.checker.found(about).is_some();
            self.tell(|| format!("somebody looks at {record}: {}", if happened { "it happened" } else { "it did not happen" }));
            self.noted.push((record, about, happened));
        }
        if waits { Ok(()) } else { self.settle_noted() }
    }

    /// Settles the doubts that were noted, with the result that was shown then.
    pub(crate) fn settle_noted(&mut self) -> Result<(), Wrong> {
        if self.noted.is_empty() {
            return Ok(());
        }
        for (record, about, happened) in std::mem::take(&mut self.noted) {
            let settlement = if happened { Settlement::Happened } else { Settlement::NotHappened { early: false } };
            if self.settle(&record, settlement)? == Acted::Done {
                self.tell(|| format!("{record} is settled as it was seen"));
                self.checker.settled(about, self.jobs[about.job], happened);
            }
        }
        Ok(())
    }

    /// The doubts that a person may end.
    fn open_doubts(&self) -> Vec<RecordId> {
        let open = self.saved().into_iter().filter(|saved| matches!(saved.holds, RecordKind::InDoubt | RecordKind::InDoubtForGood));
        open.map(|saved| saved.record).collect()
    }

    /// A person who does not know of a purchase uses its key for another one.
    pub(crate) fn misuse(&mut self) -> Result<(), Wrong> {
        let is_open = !self.open_doubts().is_empty();
        let Some(job) = self.jobs.iter().copied().find(|job| is_open && job.name == Name::Key) else { return Ok(()) };
        self.start(Job::given(Task::Rent, job.number), Manner::Usual)
    }

    /// A person waits until no message can be under way, looks at what the service shows, and ends every doubt by that.
    pub(crate) fn look(&mut self) -> Result<(), Wrong> {
        self.drain()?;
        self.settle_all()?;
        // The service tells its time in seconds; and what the store could not write is tried again meanwhile.
        self.pass(HOUR + 2_000)?;
        self.arrive_all()?;
        self.drain()?;
        self.settle_all()?;
        for record in self.open_doubts() {
            // The program that works on the purchase will know.
            if !self.is_anothers(&record) {
                self.end_doubt(record)?;
            }
        }
        self.drop_damaged()
    }

    /// A person ends a doubt by what the service shows; they wait as long as they are told to.
    fn end_doubt(&mut self, record: RecordId) -> Result<(), Wrong> {
        for _ in 0..2 {
            let Some(about) = self.about_of(&record) else { return Ok(()) };
            let (job, found) = (self.jobs[about.job], self.checker.found(about).cloned());
            if self.scope.api == Api::Reseller
                && !self.reconcile(&record, job, found.as_ref().and_then(|effect| effect.id.clone()), found.is_some())?
            {
                return Ok(());
            }
            let happened = found.is_some();
            self.tell(|| format!("a person settles {record}: {}", if happened { "it happened" } else { "it did not happen" }));
            let settlement = match found.and_then(|effect| effect.id).filter(|_| job.names_what_it_gets()) {
                Some(id) => Settlement::Became(id),
                None if happened => Settlement::Happened,
                None => Settlement::NotHappened { early: false },
            };
            match self.settle(&record, settlement)? {
                Acted::Done => {
                    self.checker.settled(about, job, happened);
                    self.drain()?;
                    return self.settle_all();
                }
                Acted::Wait { until } => {
                    // The service's own time is told in seconds.
                    let left = (until - self.clock().unix).max(0) + 1_000;
                    self.tell(|| format!("they are told to wait for {left} ms"));
                    self.pass(left)?;
                    self.arrive_all()?;
                }
                Acted::Not => break,
            }
        }
        Err(format!("the doubt of {record} can't be settled"))
    }

    /// True if another living program owns the name of a record.
    fn is_anothers(&self, record: &RecordId) -> bool {
        let name = name_of(record);
        self.others.iter().flatten().any(|other| self.store.owned_by(other.number).any(|owned| Some(owned) == name.as_ref()))
    }

    /// A person drops what can't be read any more, once they know what came of it.
    fn drop_damaged(&mut self) -> Result<(), Wrong> {
        for record in self.saved().into_iter().filter(|saved| saved.holds == RecordKind::Refused).map(|saved| saved.record) {
            if self.is_anothers(&record) {
                continue;
            }
            self.tell(|| format!("a person drops {record}, which can't be read"));
            let job = name_of(&record).and_then(|name| self.job_of(&name));
            let about = job.and_then(|job| self.checker.current(job));
            if !self.is_forgotten(&record)? {
                return Err(format!("{record} can't be dropped"));
            }
            if let Some(about) = about {
                self.checker.unreadable_dropped(about.job);
            }
            match about {
                // A start after this one buys once more.
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
        let about = self.at_work(at).or_else(|| self.checker.current(at));
        let Some((intent, about)) = self.jobs.get(at).and_then(|job| job.intent()).zip(about) else { return Ok(()) };
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.resume_intent(&intent, CallOptions::default());
        process.commands.insert(command, Some(about));
        self.tell(|| format!("command {} resumes {intent}", command.0));
        self.drain()
    }

    /// The caller that waited for a command is gone.
    pub(crate) fn abandon(&mut self, command: CommandId) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        if process.client.abandon(command) {
            process.completed.retain(|completed| *completed != command);
            self.abandoned = process.commands.remove(&command).flatten().map(|about| about.job);
            self.tell(|| format!("nobody takes the result of command {}", command.0));
        }
        let drained = self.drain();
        self.abandoned = None;
        drained
    }

    /// A person ends a doubt without checking the service.
    pub(crate) fn guess(&mut self, at: usize, happened: bool) -> Result<(), Wrong> {
        let Some(record) = self.open_doubts().get(at).cloned() else { return Ok(()) };
        let about = self.about_of(&record);
        let settlement = if happened { Settlement::Happened } else { Settlement::NotHappened { early: true } };
        let is_settled = self.settle(&record, settlement.clone())? == Acted::Done;
        if let Some(about) = about.filter(|_| is_settled) {
            self.tell(|| format!("somebody guesses about {record}: {settlement:?}"));
            self.checker.guessed(about, happened);
        }
        self.drain()
    }

    /// A person deletes a record too early. The record of a held session is not deleted before the session is released.
    pub(crate) fn forget(&mut self, at: usize) -> Result<(), Wrong> {
        let is_of_use = |saved: &Saved| saved.holds != RecordKind::Refused;
        let Some(mut saved) = self.saved().into_iter().nth(at).filter(is_of_use) else { return Ok(()) };
        let about = self.about_of(&saved.record);
        let mut is_forgotten = self.is_forgotten(&saved.record)?;
        let held = saved.session_id.clone().filter(|_| self.holds(&saved));
        // The session may have ended while its record was being deleted.
        if let Some(session) = held.filter(|session| !is_forgotten || !self.remote.has_ended(session, self.now)) {
            if is_forgotten {
                return Err(HELD.into());
            }
            let Some(process) = &mut self.process else { return Ok(()) };
            process.has.remove(&session);
            process.released.insert(session.clone(), process.next_command());
            if process.client.release_session(&session) {
                self.tell(|| format!("somebody lets go of {session}"));
                self.drain()?;
            }
            let record = name_of(&saved.record);
            let Some(known) = self.saved().into_iter().find(|known| name_of(&known.record) == record).filter(is_of_use) else {
                return Ok(());
            };
            is_forgotten = self.is_forgotten(&known.record)?;
            saved = known;
        }
        if is_forgotten {
            self.tell(|| format!("somebody drops {} too early", saved.record));
            self.checker.saw(saved.session_id.into_iter().chain(saved.order_no));
            if let Some(about) = about {
                self.checker.dropped(about);
            }
        }
        self.drain()
    }

    /// A client of another account uses the same store. Its acts must leave the records of the other account unchanged.
    pub(crate) fn intrude(&mut self) -> Result<(), Wrong> {
        let reseller = self.scope.api == Api::Reseller;
        let another = || Some(Secret::new("another-account"));
        let options = ClientOptions {
            api: self.scope.api,
            base_url: self.base_url(),
            api_key: another().filter(|_| !reseller),
            username: another().filter(|_| reseller),
            password: another().filter(|_| reseller),
            store: true,
            without: self.without,
            ..ClientOptions::default()
        };
        let mut client = Client::new(options, [INTRUDER; 16]).map_err(|error| error.to_string())?;
        let ticket = client.saved(None);
        self.drive_apart(&mut client)?;
        // Records that were kept for a limited time are gone by then.
        let before = self.store.clone();
        let records = client.take(ticket).and_then(Result::ok).map(|page| page.entries).unwrap_or_default();
        // An unreadable record does not show its account, and people who know it delete it.
        let is_whole = |record: &RecordId| name_of(record).is_some_and(|name| !self.damaged.contains(&name));
        let records: Vec<RecordId> = records.into_iter().map(|saved| saved.record).filter(is_whole).collect();
        for record in records {
            client.forget(&record);
            client.settle(&record, Settlement::Happened);
            client.resume(&record, CallOptions::default());
            self.drive_apart(&mut client)?;
        }
        self.store.ends_claims(INTRUDER);
        let is_changed = |name: &&StoreName| !self.damaged.contains(*name) && self.store.data(name) != before.data(name);
        before.names().find(is_changed).map_or(Ok(()), |name| Err(format!("{INTRUDED}: {name}")))
    }

    /// Drives a client that is none of the programs, for as long as the store answers it.
    fn drive_apart(&mut self, client: &mut Client) -> Result<(), Wrong> {
        let now = Now { unix: self.now, monotonic: self.now };
        for _ in 0..MAX_STEPS {
            match client.poll(now) {
                Step::Store { id, call, .. } => {
                    let answer = self.store.call(&call, INTRUDER, self.now);
                    client.resolve(id, Outcome::Store(answer), now).map_err(|misuse| misuse.to_string())?;
                }
                Step::Send { request, .. } => return Err(format!("{INTRUDED}: it sends to {}", request.url)),
                Step::Wait { .. } => return Ok(()),
                Step::Completed { .. } | Step::Notify(_) => {}
            }
        }
        Err("the client never waits".into())
    }

    /// True if a caller in this program has a living session.
    fn holds(&self, saved: &Saved) -> bool {
        let is_living = saved.holds == RecordKind::Session
            && saved.whose == Whose::Mine
            && matches!(saved.status.as_deref(), Some("creating" | "active"));
        let has = |process: &Process| saved.session_id.as_ref().is_some_and(|session| process.has.contains(session));
        is_living && self.process.as_ref().is_some_and(has)
    }

    fn is_forgotten(&mut self, record: &RecordId) -> Result<bool, Wrong> {
        let Some(process) = &mut self.process else { return Ok(false) };
        let command = process.client.forget(record).command;
        Ok(self.acted(command)? == Acted::Done)
    }

    /// A reconcile shows the candidates. Returns true if the service could be read.
    fn reconcile(&mut self, record: &RecordId, job: Job, id: Option<String>, done: bool) -> Result<bool, Wrong> {
        self.shown = None;
        self.ask("reconcile", &serde_json::json!({ "record": record.to_string() }).to_string())?;
        self.settle_all()?;
        let shown = self.shown.take().and_then(Result::ok).and_then(|answer| serde_json::from_str::<Reconciled>(&answer).ok());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scope::SCOPES;

    #[test]
    fn a_client_of_another_account_that_forgets_a_record_is_harm() {
        let scope = SCOPES.iter().find(|known| known.name == "a session is opened").unwrap();
        let mut world = World::new(scope, None, false).unwrap();
        world.settle_all().unwrap();
        world.restart(0).unwrap();
        world.intrude().unwrap();
        // With records of the intruder's own account in the store, the acts are allowed.
        let own: Vec<(StoreName, Vec<u8>)> =
            world.store.names().map(|name| (name.clone(), world.store.data(name).unwrap().clone())).collect();
        for (name, data) in own {
            let mut record: serde_json::Value = serde_json::from_slice(&data).unwrap();
            record.as_object_mut().unwrap().remove("account");
            world.store.plant(name, record.to_string().into_bytes());
        }
        assert!(world.intrude().unwrap_err().starts_with(INTRUDED));
    }
}
