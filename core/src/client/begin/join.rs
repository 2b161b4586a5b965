//! A command that comes while a job is at work under its name joins that job.

use crate::client::begin::check::check_rotation;
use crate::client::requests::Start;
use crate::client::router::Router;
use crate::collections::SmallSet;
use crate::contract::Operation;
use crate::contract::agent::TerminateSession;
use crate::engine::{Then, requested_type};
use crate::options::CallOptions;
use crate::state::{CommandId, JobId};

impl Router {
    /// Adds the options of a start that joins a job.
    pub(crate) fn join_job(&mut self, id: u32, command: CommandId, options: &CallOptions) {
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
            return self.complete(command, Err(error.with(|new| new.intent = options.intent.clone())));
        }
        let operation = entry.subject.operation;
        entry.join(options, policy);
        let session_options = entry.wants.session_options.clone();
        let session = entry.subject.session_id.clone().filter(|_| entry.job.follows());
        self.commands.set_operation(command, operation);
        if let Some(tracked) =
            session.as_ref().and_then(|session| self.sessions.get_mut(session)).filter(|known| known.changing.contains(&id))
            && tracked.session_options != session_options
        {
            tracked.session_options = session_options;
            session.iter().for_each(|session| self.put_session(session));
        }
        self.attach(id, command);
    }

    /// Lets a command wait for a job. A job that was given up is carried on.
    pub(crate) fn attach(&mut self, id: u32, command: CommandId) {
        let Some(entry) = self.jobs.get(&id) else { return };
        let error = (!entry.wanted).then(|| self.cancelled_error(entry));
        let Some(entry) = self.jobs.get_mut(&id) else { return };
        let cancelled = if entry.wanted { SmallSet::default() } else { std::mem::take(&mut entry.waiting) };
        entry.wanted = true;
        entry.waiting.insert(command);
        self.commands.set_job(command, Some(id));
        for (command, error) in cancelled.iter().zip(std::iter::repeat(error).flatten()) {
            self.complete(command, Err(error));
        }
    }

    /// Joins a termination of the same session that is under way. Returns true if there is one.
    pub(crate) fn join_termination(&mut self, command: CommandId, start: &Start) -> bool {
        if start.endpoint.name != TerminateSession::ENDPOINT.name || start.bought_as.is_some() {
            return false;
        }
        let tracked = start.built.session_id.as_deref().and_then(|session| self.sessions.get(session));
        let is_termination = |id: &JobId| self.jobs.get(id).is_some_and(|entry| entry.job.is_termination());
        let Some(id) = tracked.and_then(|known| known.changing.iter().find(is_termination)) else { return false };
        self.join_job(id, command, &start.options);
        true
    }
}
