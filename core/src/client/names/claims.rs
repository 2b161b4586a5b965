//! The requests of a name, which is claimed once for all of them.

use crate::client::deferred::Deferred;
use crate::client::outbox::Pending;
use crate::client::requests::{NameRequest, RequestKind};
use crate::client::router::Router;
use crate::state::{CommandId, Name, StoreCall};

impl Router {
    /// Lets somebody wait for a name.
    pub(crate) fn request_name(&mut self, name: &Name, request: NameRequest) {
        if let Some(command) = request.command {
            self.commands.set_waits_for(command, Some(name.clone()));
        }
        self.name_requests.push(name, request);
        // A write that failed is tried again now, since a command waits for it.
        self.journal.wake(name);
        self.push_next(name);
        match self.journal.user(name) {
            None => self.claim_for_requests(name),
            Some(_) => self.deferred.push(Deferred::Attend(name.clone())),
        }
    }

    /// Claims a name that somebody waits for, unless it is on its way out, or claimed already.
    pub(crate) fn claim_for_requests(&mut self, name: &Name) {
        if self.journal.is_leaving(name) || !self.journal.claim(name) {
            return;
        }
        let command = self.name_requests.iter(name).find_map(|request| self.who_waits(request));
        let call = StoreCall::Claim { names: vec![name.clone()], most: 1 };
        self.push_store(Pending::Claim(name.clone()), command, call);
    }

    /// The command for which somebody waits for a name.
    pub(crate) fn who_waits(&self, request: &NameRequest) -> Option<CommandId> {
        match request.purpose {
            RequestKind::Renewal(id) | RequestKind::Marked(id, _) => self.jobs.command(id),
            _ => request.command,
        }
    }

    pub(crate) fn next_request(&mut self, name: &Name) -> Option<NameRequest> {
        let request = self.name_requests.next(name);
        if let Some(command) = request.as_ref().and_then(|request| request.command) {
            self.commands.set_waits_for(command, None);
        }
        request
    }
}
