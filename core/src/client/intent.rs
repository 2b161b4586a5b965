//! The caller's own name for a write: what is remembered under it, and what a start under a known name does.

use super::job::Parked;
use super::options::CallOptions;
use super::root::Client;
use super::session::ended;
use super::settle::becomes;
use super::start::check_rotation;
use super::types::misfit;
use crate::contract::agent::CreateSession;
use crate::contract::{Endpoint, Operation, Shape, endpoint};
use crate::engine::{Answered, Phase, Then, phase_of};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{Accepted, CommandId, Intent, JobId, is_over_for_good};
use crate::time::Millis;
use crate::wire::{Facts, view};

/// An accepted intent is remembered for this long.
const REMEMBERED: Millis = 30 * 24 * 3600 * 1000;

impl Client {
    /// The command of an intent that is known: joined, resumed, returned or refused. `None` if it may start.
    pub(super) fn join_intent(
        &mut self,
        name: &str,
        endpoint: &'static Endpoint,
        fingerprint: &str,
        options: &CallOptions,
    ) -> Option<CommandId> {
        self.forget_old_intents();
        if let Some(error) = self.refused_intent(name, endpoint.name) {
            return Some(self.reject(error, Some(name.to_owned())));
        }
        let known = match self.intents.get(name)? {
            Intent::Active(id) => self.jobs.get(id)?.custody.fingerprint.clone(),
            Intent::Accepted(accepted) => accepted.fingerprint.clone(),
        };
        if known != fingerprint {
            let error = Error::invalid(endpoint.name, "intent", "belongs to another request; give this one a name of its own");
            return Some(self.reject(error, Some(name.to_owned())));
        }
        self.go_on(name, options)
    }

    /// Goes on with what an intent stands for: a doubt is resumed, a call that is under way is joined, a session or an order is
    /// waited for, an accepted answer is given again. `None` if the intent stands for nothing. Nothing new is ever bought.
    pub fn resume_intent(&mut self, intent: &str, options: CallOptions) -> Option<CommandId> {
        self.forget_old_intents();
        if let Some(error) = self.refused_intent(intent, "resume") {
            return Some(self.reject(error, Some(intent.to_owned())));
        }
        let (operation, then, session) = match self.intents.get(intent)? {
            Intent::Active(id) => {
                let entry = self.jobs.get(id)?;
                let then = if entry.job.follows() { Then::Follow } else { Then::End };
                (entry.subject.operation, then, entry.subject.session_id.as_ref())
            }
            Intent::Accepted(accepted) => {
                let then = if accepted.opened { Then::Follow } else { Then::End };
                (accepted.operation, then, accepted.facts.session_id.as_ref())
            }
        };
        let session_type = session.and_then(|id| self.sessions.get(id)?.session_type.as_deref());
        if let Err(error) = options.check_resume().and_then(|()| check_rotation(operation, then, session_type, &options)) {
            return Some(self.reject(error, Some(intent.to_owned())));
        }
        self.go_on(intent, &CallOptions { intent: Some(intent.to_owned()), ..options })
    }

    /// A command that goes on with what an intent stands for.
    fn go_on(&mut self, name: &str, options: &CallOptions) -> Option<CommandId> {
        match self.intents.get(name)? {
            Intent::Active(id) => {
                let id = *id;
                let entry = self.jobs.get(&id)?;
                let operation = entry.subject.operation;
                if matches!(entry.parked, Parked::Erasing(_)) && entry.waiting.is_empty() {
                    let what = "was settled as not happened, and its record is not gone yet";
                    let error = Error::new(Kind::Busy, Effect::None, operation, what, Advice::RetryLater);
                    return Some(self.reject(error, Some(name.to_owned())));
                }
                let command = self.command_for(operation);
                self.join_with(id, options);
                self.attach(id, command);
                Some(command)
            }
            Intent::Accepted(accepted) => {
                let accepted = accepted.clone();
                let command = self.command_for(accepted.operation);
                self.recall(command, *accepted, options);
                Some(command)
            }
        }
    }

    /// Remembers what an intent was accepted as. Its age is never told too old: it counts from now where it is not known.
    pub(super) fn accept(&mut self, name: String, mut accepted: Accepted) {
        if self.is_finished(&accepted) {
            let service = self.clock.service();
            let age = accepted.finished_at.zip(service).map_or(0, |(at, now)| now.saturating_sub(at).max(0));
            let since = self.clock.steady().map(|now| now.saturating_sub(age));
            accepted.since = accepted.since.into_iter().chain(since).min();
            self.finished.extend(accepted.since.map(|since| (since, name.clone())));
            if service.is_none() {
                self.unaged.insert(name.clone());
            }
        } else {
            accepted.since = None;
        }
        self.intents.insert(name, Intent::Accepted(Box::new(accepted)));
    }

    /// Whether nothing that costs money lives on under an accepted intent.
    pub(super) fn is_finished(&self, accepted: &Accepted) -> bool {
        if accepted.operation != CreateSession::ENDPOINT.name {
            return true;
        }
        let tracked = accepted.facts.session_id.as_ref().and_then(|id| self.sessions.get(id));
        let status = tracked.and_then(|tracked| tracked.status.as_deref()).or(accepted.facts.status.as_deref());
        phase_of(status, tracked.map_or(&[], |tracked| &tracked.ends)) == Phase::Ended
    }

    /// A session was seen to be over, or to live again: so does what its intents are remembered for.
    pub(super) fn intents_follow(&mut self, session: &str, status: &str) {
        let stands_for = |intent: &Intent| match intent {
            Intent::Accepted(accepted) => accepted.facts.session_id.as_deref() == Some(session),
            Intent::Active(_) => false,
        };
        let names: Vec<String> = self.intents.iter().filter(|(_, intent)| stands_for(intent)).map(|(name, _)| name.clone()).collect();
        for name in names {
            let Some(Intent::Accepted(accepted)) = self.intents.get(&name) else { continue };
            let mut accepted = (**accepted).clone();
            accepted.facts.status = Some(status.to_owned());
            (accepted.finished_at, accepted.since) = (self.clock.finished_at(), None);
            self.save_accepted(&name, &accepted);
            self.accept(name, accepted);
        }
    }

    /// Forgets the intents that were finished too long ago, with their sessions.
    fn forget_old_intents(&mut self) {
        let Some(now) = self.clock.steady() else { return };
        if self.clock.service().is_some() || !std::mem::replace(&mut self.aging, true) {
            for name in std::mem::take(&mut self.unaged) {
                if let Some(Intent::Accepted(accepted)) = self.intents.get(&name) {
                    let accepted = (**accepted).clone();
                    self.accept(name, accepted);
                }
            }
        }
        let limit = now.saturating_sub(REMEMBERED);
        while let Some((since, name)) = self.finished.first().filter(|(since, _)| *since < limit).cloned() {
            self.finished.pop_first();
            let known = match self.intents.get(&name) {
                Some(Intent::Accepted(accepted)) if accepted.since == Some(since) => (**accepted).clone(),
                // The name belongs to a later purchase by now, or its session lives again.
                _ => continue,
            };
            self.intents.remove(&name);
            let session = known.facts.session_id.filter(|id| {
                let tracked = self.sessions.get(id);
                tracked.is_some_and(|tracked| tracked.changing.is_empty() && tracked.intent.as_ref().is_some_and(|(of, _)| *of == name))
            });
            let tracked = session.and_then(|id| self.sessions.remove(&id));
            let records = known.record.into_iter().chain(tracked.and_then(|tracked| tracked.record));
            records.for_each(|record| self.delete(&record));
        }
    }

    /// Frees the name of an accepted intent.
    pub(super) fn forget_intent(&mut self, name: String) {
        if let Some(Intent::Accepted(accepted)) = self.intents.remove(&name) {
            accepted.since.map(|since| self.finished.remove(&(since, name)));
        }
    }

    /// What a start that joins a job wants of it.
    pub(super) fn join_with(&mut self, id: JobId, options: &CallOptions) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        entry.join(options, options.policy(&self.service.retry));
        let Some(session) = entry.subject.session_id.clone().filter(|_| entry.job.follows()) else { return };
        let (credentials, auto_rotate, ends) = (entry.wants.credentials, entry.wants.auto_rotate, entry.wants.ends.clone());
        let Some(tracked) = self.sessions.get_mut(&session).filter(|tracked| tracked.changing.contains(&id)) else { return };
        if (tracked.credentials, tracked.auto_rotate, &tracked.ends) != (credentials, auto_rotate, &ends) {
            (tracked.credentials, tracked.auto_rotate, tracked.ends) = (credentials, auto_rotate, ends);
            self.save_session(&session);
        }
    }

    /// Lets a command wait for a job. A job that rests is resumed, and one that was given up is carried on.
    pub(super) fn attach(&mut self, id: JobId, command: CommandId) {
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let let_go = if entry.wanted { Vec::new() } else { std::mem::take(&mut entry.waiting) };
        let error = entry.let_go();
        let rests = entry.is_resting();
        entry.wanted = true;
        entry.waiting.push(command);
        if let Some(known) = self.commands.get_mut(&command) {
            known.job = Some(id);
        }
        let again = !let_go.is_empty() && matches!(entry.parked, Parked::Erasing(_));
        if again {
            entry.parked = Parked::Erasing(None);
        }
        for command in let_go {
            self.complete(command, Err(error.clone()));
        }
        if again {
            self.with(id, |job, cx| job.write_mut().map(|write| write.begin_again(cx)));
        }
        if rests {
            self.revive(id);
        }
    }

    /// Returns an accepted intent: a session that was opened is waited for, anything else comes back as it is remembered. A
    /// session that is over is an error: its caller wants one that can be used. Of what was settled by hand there is no answer,
    /// so a typed one is an error.
    pub(super) fn recall(&mut self, command: CommandId, accepted: Accepted, options: &CallOptions) {
        if let (true, Some(session)) = (accepted.opened, &accepted.facts.session_id) {
            let known = self.sessions.get(session);
            let status = known.map_or(&accepted.facts.status, |known| &known.status);
            let session_type = known.map_or(&accepted.facts.session_type, |known| &known.session_type);
            if is_over_for_good(status.as_deref(), session_type.as_deref()) {
                let facts = Facts { session_id: Some(session.clone()), status: status.clone(), ..Facts::default() };
                let record = known.and_then(|known| known.record.clone()).or(accepted.record);
                let error = ended(&facts, options.intent.clone(), record);
                return self.complete(command, Err(error));
            }
            return self.begin_watch(command, CreateSession::ENDPOINT, session.clone(), options);
        }
        if let (true, Some(order_no)) = (accepted.opened, &accepted.facts.order_no) {
            return self.begin_order_watch(command, order_no.clone(), true, options);
        }
        let facts = accepted.facts;
        let is_open = endpoint(accepted.operation).is_none_or(|endpoint| matches!(endpoint.response, Shape::Json));
        if facts.settled && !is_open {
            let mut error = misfit(accepted.operation, Answered::of(facts), "all");
            (error.intent, error.record) = (options.intent.clone(), accepted.record.map(|record| record.0));
            if becomes(accepted.operation) {
                error.what.push_str("; settle it as what it became, or as not happened");
            }
            return self.complete(command, Err(error));
        }
        let phase = facts.session_id.as_ref().map(|_| phase_of(facts.status.as_deref(), &options.ends));
        // The body is not kept over a crash; the facts are, and they have its members' names.
        let of_facts = || serde_json::to_string(&facts).ok().filter(|_| !facts.settled)?.parse().ok();
        let raw = accepted.raw.or_else(of_facts).unwrap_or_default();
        let view = endpoint(accepted.operation).and_then(|endpoint| view(endpoint.response, raw.text()).written_otherwise());
        self.complete(command, Ok(Answered { raw, view, phase, ..Answered::of(facts) }));
    }
}
