//! The visits of a name, which is claimed once for all of them.

use crate::client::deferred::Deferred;
use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::client::waiting::{NameRequest, RequestKind};
use crate::state::{CommandId, Name, StoreCall};

impl Router {
    /// Lets somebody wait for a name.
    pub(crate) fn visit(&mut self, name: &Name, visit: NameRequest) {
        if let Some(command) = visit.command {
            self.commands.set_waits_for(command, Some(name.clone()));
        }
        self.waiting.visits.get_or_insert_with(name.clone(), Default::default).push_back(visit);
        // A write that failed is tried again now, since a command waits for it.
        self.journal.wake(name);
        self.push_next(name);
        match self.journal.user(name) {
            None => self.claim_for_visits(name),
            Some(_) => self.deferred.push(Deferred::Attend(name.clone())),
        }
    }

    /// Claims a name that somebody waits for, unless it is on its way out, or claimed already.
    pub(crate) fn claim_for_visits(&mut self, name: &Name) {
        if self.journal.is_leaving(name) || !self.journal.claim(name) {
            return;
        }
        let command = self.waiting.visits.get(name).and_then(|visits| visits.iter().find_map(|visit| self.who_waits(visit)));
        let call = StoreCall::Claim { names: vec![name.clone()], most: 1 };
        self.push_store(Pending::Claim(name.clone()), command, call);
    }

    /// The command for which somebody waits for a name.
    pub(crate) fn who_waits(&self, visit: &NameRequest) -> Option<CommandId> {
        match visit.purpose {
            RequestKind::Renewal(id) | RequestKind::Marked(id, _) => self.jobs.get(&id)?.waiting.first(),
            _ => visit.command,
        }
    }

    pub(crate) fn next_visit(&mut self, name: &Name) -> Option<NameRequest> {
        let visits = self.waiting.visits.get_mut(name)?;
        let visit = visits.pop_front();
        if visits.is_empty() {
            self.waiting.visits.remove(name);
        }
        if let Some(command) = visit.as_ref().and_then(|visit| visit.command) {
            self.commands.set_waits_for(command, None);
        }
        visit
    }
}
