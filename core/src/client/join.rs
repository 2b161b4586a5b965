//! A command that comes while a job is at work under its name joins that job.

use super::check::check_rotation;
use super::options::CallOptions;
use super::router::Router;
use super::same_request::other_than_job;
use super::types::busy;
use super::waiting::{Purpose, Visit};
use crate::collections::SmallSet;
use crate::engine::{Then, requested_type};
use crate::policy::{Error, ErrorFields};
use crate::state::{BoughtAs, CommandId, JobId, Name};

impl Router {
    /// A job is at work under the name: who wants the same joins it.
    pub(super) fn join(&mut self, id: JobId, visit: Visit) {
        match &visit.purpose {
            Purpose::Renewal(other) => return self.renewal_is_busy(*other, None),
            Purpose::Marked(other, marker) => return self.renewal_is_busy(*other, Some(marker)),
            _ => {}
        }
        let Some(command) = visit.command else { return };
        let Some(entry) = self.jobs.get(&id) else {
            // Its record is being written for the last time.
            let (operation, ..) = visit.subject();
            return self.complete(command, Err(busy(operation, "it has just ended and is still being stored")));
        };
        match visit.purpose {
            Purpose::Start(start) => {
                let fingerprint = |known: &BoughtAs| known.fingerprint;
                let is_another = entry.custody.bought_as.as_deref().map(fingerprint) != start.bought_as.as_ref().map(fingerprint);
                if is_another && !entry.custody.name.as_ref().is_some_and(Name::is_of_a_pool) {
                    let tracked = entry.subject.session_id.as_ref().and_then(|session| self.sessions.get(session));
                    let status = tracked.and_then(|known| known.shown.status.as_deref());
                    let error = other_than_job(&start, entry, status, self.record_of(entry));
                    return self.complete(command, Err(error));
                }
                self.join_job(id, command, &start.options);
            }
            Purpose::Resume(resume) => self.join_job(id, command, &resume.options),
            Purpose::Act(act) => self.act_on_job(command, *act),
            // It is under way again, which is said as of any other change.
            Purpose::Retry(start) => self.enter(command, *start),
            _ => {}
        }
    }

    /// What a start that joins a job wants of it.
    pub(super) fn join_job(&mut self, id: u32, command: CommandId, options: &CallOptions) {
        let policy = options.policy(&self.service.retry);
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let session_type = match (entry.job.write(), &entry.subject.session_id) {
            (Some(write), _) => requested_type(&write.call.exchange.built),
            (None, session) => {
                session.as_ref().and_then(|session| Some(self.sessions.get(session)?.shown.session_type.as_ref()?.to_string()))
            }
        };
        let then = if entry.job.follows() { Then::Follow } else { Then::End };
        if let Err(error) = check_rotation(entry.subject.operation, then, session_type.as_deref(), options) {
            let fields = error.into_fields();
            return self.complete(command, Err(Error::from(ErrorFields { intent: options.intent.clone(), ..fields })));
        }
        let operation = entry.subject.operation;
        entry.join(options, policy);
        let wishes = entry.wants.wishes.clone();
        let session = entry.subject.session_id.clone().filter(|_| entry.job.follows());
        if let Some(known) = self.commands.get_mut(&command) {
            known.operation = operation;
        }
        if let Some(tracked) =
            session.as_ref().and_then(|session| self.sessions.get_mut(session)).filter(|known| known.changing.contains(&id))
            && tracked.wishes != wishes
        {
            tracked.wishes = wishes;
            session.iter().for_each(|session| self.put_session(session));
        }
        self.attach(id, command);
    }

    /// Lets a command wait for a job. A job that was given up is carried on.
    pub(super) fn attach(&mut self, id: u32, command: CommandId) {
        let Some(entry) = self.jobs.get(&id) else { return };
        let error = (!entry.wanted).then(|| self.let_go(entry));
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let let_go = if entry.wanted { SmallSet::default() } else { std::mem::take(&mut entry.waiting) };
        entry.wanted = true;
        entry.waiting.insert(command);
        if let Some(known) = self.commands.get_mut(&command) {
            known.job = Some(id);
        }
        for (command, error) in let_go.iter().zip(std::iter::repeat(error).flatten()) {
            self.complete(command, Err(error));
        }
    }
}
