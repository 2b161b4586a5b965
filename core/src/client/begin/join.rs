//! A command that comes while a job is at work under its name joins that job.

use arcstr::ArcStr;

use crate::client::begin::check::check_rotation;
use crate::client::requests::Start;
use crate::client::router::Router;
use crate::contract::Operation;
use crate::contract::agent::TerminateSession;
use crate::engine::{Then, requested_type};
use crate::options::CallOptions;
use crate::state::{CommandId, JobId};

impl Router {
    /// Adds the options of a start that joins a job.
    pub(crate) fn join_job(&mut self, id: u32, command: CommandId, options: &CallOptions) {
        let policy = self.policy(options);
        let Some(entry) = self.jobs.get(id) else { return };
        let session_type = match (entry.job.write(), &entry.subject.session_id) {
            (Some(write), _) => requested_type(&write.call.exchange.built),
            (None, session) => session.as_ref().and_then(|session| self.sessions.type_of(session)).map(ArcStr::to_string),
        };
        let then = if entry.job.follows() { Then::Follow } else { Then::End };
        if let Err(error) = check_rotation(entry.subject.operation, then, session_type.as_deref(), options) {
            return self.complete(command, Err(error.with(|new| new.intent = options.intent.clone())));
        }
        self.commands.set_operation(command, entry.subject.operation);
        let session = entry.subject.session_id.clone().filter(|_| entry.job.follows());
        self.jobs.join(id, options, policy);
        if let (Some(session), Some(entry)) = (session, self.jobs.get(id))
            && self.sessions.set_options(&session, id, &entry.wants.session_options)
        {
            self.put_session(&session);
        }
        self.attach(id, command);
    }

    /// Lets a command wait for a job. A job that was given up is carried on.
    pub(crate) fn attach(&mut self, id: u32, command: CommandId) {
        let Some(entry) = self.jobs.get(id) else { return };
        let error = (!entry.wanted).then(|| self.cancelled_error(entry));
        let cancelled = self.jobs.attach(id, command);
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
        let session = start.built.session_id.as_deref().unwrap_or_default();
        let is_termination = |id: &JobId| self.jobs.get(*id).is_some_and(|entry| entry.job.is_termination());
        let Some(id) = self.sessions.changing(session).find(is_termination) else { return false };
        self.join_job(id, command, &start.options);
        true
    }
}
