//! The end of every run is fair: nothing more goes wrong, messages arrive, a fresh client goes on with everything, a person ends what
//! is open by what the service shows, and every job with a name is started once more. Then everything must be as it should.

use std::collections::BTreeMap;

use hopline::Kind;
use hopline::client::RecordKind;
use hopline::contract::Api;

use crate::act::Act;
use crate::checker::{BARRED, Checker, KEPT, Listed, TWICE};
use crate::delivery::{Delivery, StoreResult};
use crate::job::{Manner, Name, Task};
use crate::process::{SHOWN, shows};
use crate::time::HOUR;
use crate::world::{Budget, Out, World, Wrong};

/// An operation that was started and was possible was not done.
const UNDONE: &str = "an intent that was started again at the end was not done";

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
                    Out::Store { .. } => self.keep(0, StoreResult::Done)?,
                    Out::Send { .. } => self.deliver(0, Delivery::Answered)?,
                }
            } else if !process.commands.keys().any(|command| process.client.is_pending(*command)) {
                // A command that is neither under way nor taken was lost.
                return if process.commands.is_empty() { Ok(()) } else { Err("a command went without an end".into()) };
            } else if process.wakes.is_some() {
                self.act(&Act::Pass)?;
            } else {
                return Err("the client waits for nothing, and a command has not ended".into());
            }
        }
        Err("the run does not end".into())
    }

    /// The fair end, and what must be true after it.
    pub(crate) fn end(&mut self) -> Result<(), Wrong> {
        self.tell(|| "from here on nothing goes wrong".into());
        self.budget = Budget { faults: 0, troubles: 0, acts: 0 };
        self.each(|world| if world.process.is_none() { world.restart(0) } else { world.told() })?;
        self.each(World::settle_all)?;
        self.clone().sessions_can_be_ended(&["rotate_session"])?;
        if !self.others.is_empty() {
            self.nobody_is_stuck()?;
        }
        // A life comes to one end, a scope to a hundred thousand.
        let life = self.process.as_ref().filter(|_| self.scope.is_life());
        if life.is_some_and(|process| shows(&self.secrets, &format!("{:?}", process.client))) {
            return Err(format!("{SHOWN} by a client's Debug"));
        }
        self.total_is_right()?;
        // From here on somebody else has the store for themselves.
        let left: Vec<u8> = std::mem::take(&mut self.others).into_iter().flatten().map(|process| process.number).collect();
        left.into_iter().for_each(|number| self.store.ends_claims(number));
        self.pass(HOUR)?;
        self.arrive_all()?;
        for _ in 0..2 {
            self.restart(0)?;
            self.resume_all()?;
            self.settle_all()?;
        }
        self.restart(0)?;
        let (saved, doubts) = (self.saved(), self.doubts());
        let damaged = self.damaged_jobs().collect();
        let accepted = self.jobs_that_hold(&[RecordKind::Accepted]).collect();
        let listed = Listed { saved: &saved, accepted: &accepted, doubts: &doubts, damaged: &damaged };
        self.checker.nothing_is_lost(&self.jobs, &listed)?;
        self.clone().sessions_can_be_ended(&["rotate_session"])?;
        self.look()?;
        self.clone().sessions_can_be_ended(&["rotate_session", "renew_session"])?;
        for job in self.jobs.clone() {
            if job.intent().is_some() {
                self.start(job, Manner::Usual)?;
                self.settle_all()?;
            }
        }
        self.total_is_right()?;
        // A purchase that a cap refuses is not done.
        for (at, job) in self.jobs.iter().enumerate().filter(|_| self.scope.cap.is_none()) {
            let done = self.checker.done(at);
            // A session that is over is neither rotated nor renewed, and a user's name is taken once: both happen in lives.
            let may_be_refused = self.scope.is_life() && matches!(job.task, Task::Rotate | Task::Renew | Task::User);
            let is_undone = !self.checker.was_done(at) && !may_be_refused && !self.checker.is_excused(at);
            let is_overdone = self.checker.is_overdone(at);
            if job.has_effect() && job.name == Name::Intent && (is_overdone || is_undone) {
                let said = if is_overdone { TWICE } else { UNDONE };
                return Err(format!("{said}: {job:?} was done {done} times"));
            }
        }
        Ok(())
    }

    /// The owner of a session can change it and end it once the network works, even with operations in doubt: each program does so with its
    /// share.
    fn sessions_can_be_ended(mut self, changes: &[&str]) -> Result<(), Wrong> {
        if self.scope.api != Api::Agent || !(self.scope.is_life() || self.scope.changes()) {
            return Ok(());
        }
        self.pass(2 * HOUR)?;
        self.each(World::settle_all)?;
        // The session requests here are no jobs.
        (self.checker, self.jobs, self.named) = (Checker::new(self.checker.terms()), Vec::new(), BTreeMap::new());
        let living = |world: &World| -> Vec<(String, bool)> {
            let sessions = world.remote.service.sessions(world.now).into_iter();
            let active = sessions.filter(|session| session.status == "active");
            active.map(|session| (session.session_id.clone(), session.product_no.starts_with("dynamic"))).collect()
        };
        let programs = 1 + self.others.len();
        for (at, (session, is_dynamic)) in living(&self).into_iter().enumerate() {
            self.turn(at % programs, |world| {
                for change in changes.iter().filter(|change| is_dynamic == (**change == "rotate_session")) {
                    let duration = if is_dynamic { serde_json::Value::Null } else { 1.into() };
                    let mut params = serde_json::json!({ "session_id": session, "duration": duration });
                    params.as_object_mut().into_iter().for_each(|params| params.retain(|_, value| !value.is_null()));
                    if let Some(Err(error)) = world.asked(change, &params)?
                        && error.kind == Kind::Busy
                    {
                        return Err(format!("{BARRED}: {error}"));
                    }
                }
                match world.asked("terminate_session", &serde_json::json!({ "session_id": session }))? {
                    Some(Ok(_)) if living(world).iter().all(|(living, _)| *living != session) => Ok(()),
                    answered => Err(format!("{KEPT}: {answered:?}")),
                }
            })?;
        }
        Ok(())
    }

    /// The result of a request that is no job, while there are no faults.
    fn asked(&mut self, operation: &str, params: &serde_json::Value) -> Result<Option<Result<String, hopline::Error>>, Wrong> {
        self.tell(|| format!("asked for {operation} {params}"));
        self.shown = None;
        self.ask(operation, &params.to_string())?;
        self.settle_all()?;
        Ok(self.shown.take())
    }

    fn total_is_right(&mut self) -> Result<(), Wrong> {
        if self.scope.cap.is_none() {
            return Ok(());
        }
        let total = Some(self.store.total());
        let due = self.story.is_some().then(|| self.checker.due(total));
        self.tell(|| format!("the store has {total:?}, and what may have been bought is {due:?}"));
        self.checker.total_is_right(total, self.now)?;
        Ok(self.checker.entries_are_right(self.store.total(), &self.store.entries(), self.now)?)
    }
}
