//! Giving a command up.

use crate::client::jobs::job::Parked;
use crate::client::requests::{NameRequest, RequestKind};
use crate::client::router::Router;
use crate::engine::{Input, SendResult};
use crate::policy::{Advice, Effect, Error, FailureKind, Kind, Sent};
use crate::state::{CommandId, JobId, Name, StepId};

impl Router {
    /// Stops further sends of a command.
    pub(crate) fn cancel(&mut self, command: CommandId) -> Option<StepId> {
        if !self.commands.is_pending(command) {
            return None;
        }
        if let Some(name) = self.commands.waits_for(command).cloned() {
            self.leave_queue(&name, command);
            return None;
        }
        let Some(id) = self.commands.job(command) else {
            self.stop_listing(command);
            return None;
        };
        self.commands.unwant(command);
        let entry = self.jobs.get(id)?;
        if entry.waiting.is_many() {
            // Others wait for the same purchase: only this one lets go.
            let error = self.cancelled_error(entry);
            self.jobs.detach(id, command);
            self.complete(command, Err(error));
            return None;
        }
        match self.jobs.give_up(id)? {
            Parked::Sending(step) => (!self.take_back(id, step)).then_some(step),
            Parked::Waking | Parked::Queued { .. } => {
                self.tell(id, Input::Due(self.now()));
                None
            }
            Parked::LoggingIn | Parked::ReadingTime => {
                let what = "was cancelled";
                self.tell(id, Input::Granted(Err(Error::new(Kind::Cancelled, Effect::None, "cancel", what, Advice::Nothing))));
                None
            }
            // The command gets its result when the step that it waits for comes back.
            _ => None,
        }
    }

    /// Cancels a purchase of which nothing was put, so that nothing of it was sent either.
    pub(crate) fn withdraw(&mut self, command: CommandId) {
        let entry = self.commands.job(command).and_then(|id| self.jobs.get(id));
        if entry.is_none_or(|entry| entry.record.last_put.is_none()) {
            self.cancel(command);
        }
    }

    /// A command waits for a name no more: nothing was begun for it.
    fn leave_queue(&mut self, name: &Name, command: CommandId) {
        if let Some(request) = self.name_requests.remove(name, command) {
            self.end_cancelled(command, request);
        }
    }

    /// A command ends before the store was asked for its name.
    pub(crate) fn end_cancelled(&mut self, command: CommandId, request: NameRequest) {
        let (operation, intent, effect) = request.subject();
        // The data under a name is not known before it was claimed, and other requests of it continue.
        let (what, advice) = match effect {
            Effect::None => ("was cancelled before it had any effect", Advice::Nothing),
            _ => ("was cancelled before it was known whether an earlier attempt took effect", Advice::Resume),
        };
        let session_id = match request.purpose {
            RequestKind::Start(start) | RequestKind::Retry(start) => start.built.session_id,
            _ => None,
        };
        let error = Error::new(Kind::Cancelled, effect, operation, what, advice);
        self.complete(
            command,
            Err(error.with(|new| {
                new.intent = intent;
                new.session_id = session_id;
            })),
        );
    }

    /// Takes back a job's request that the host has not polled yet, so that it is never sent. Returns true if there was one.
    pub(crate) fn take_back(&mut self, id: JobId, step: StepId) -> bool {
        if !self.outbox.take_back(step) {
            return false;
        }
        self.tell(id, Input::Response(SendResult::Failed(FailureKind::Aborted, Sent::Never)));
        true
    }
}
