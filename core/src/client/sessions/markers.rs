//! Markers: a renewal under its caller's own name leaves one at the name of its session's renewals, which says where its record is.

use crate::client::end::commands::{Finished, PendingWrite};
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::Deletion;
use crate::client::requests::{NameRequest, RequestKind, StoredRecord};
use crate::client::router::Router;
use crate::client::sessions::renewals::is_renewal_of;
use crate::contract::Operation;
use crate::contract::agent::RenewSession;
use crate::engine::EventKind;
use crate::state::{Data, JobId, Name, SavedCall, User};

impl Router {
    /// A renewal has ended: its marker stays, if its record is still there to be found. Otherwise it goes, once the record says that it has
    /// ended: then this is where it is.
    pub(crate) fn leave_marker(&mut self, id: JobId, entry: &mut Entry, is_kept: bool) -> Option<Name> {
        let renews = entry.subject.operation == RenewSession::ENDPOINT.name && entry.record.bought_as.is_some();
        let was_restored = entry.job.write().is_some_and(|write| write.restored);
        let marker = entry.record.rare.as_mut().filter(|_| renews).and_then(|rare| rare.marker.take());
        match marker {
            Some(name) if self.journal.user(&name) != Some(&User::Marker(id)) => None,
            Some(name) if is_kept => {
                self.let_go_of_renewals(&name);
                entry.record.rare().dropped.push(name);
                None
            }
            Some(name) => Some(name),
            None if renews && was_restored && !is_kept => {
                Some(self.account.space().renewals(entry.subject.session_id.as_deref().unwrap_or_default()))
            }
            None => None,
        }
    }

    /// The record of a renewal says that it has ended: its marker goes.
    pub(crate) fn end_marker(&mut self, finished: &mut Finished) {
        let Some((marker, own)) = finished.marker.take().zip(finished.own.clone()) else { return };
        match self.journal.user(&marker) {
            Some(User::Marker(_)) => {
                self.journal.give(&marker, None);
                self.delete(&marker, Deletion::Marker);
            }
            _ => self.request_name(&marker, NameRequest::new(None, RequestKind::DropMarker(own))),
        }
        finished.after.push(PendingWrite::Name(marker));
    }

    /// The marker of a renewal stays, since its record does.
    pub(crate) fn keep_marker(&mut self, finished: &mut Finished) {
        if let Some(marker) = finished.marker.take().filter(|name| matches!(self.journal.user(name), Some(User::Marker(_)))) {
            self.let_go_of_renewals(&marker);
        }
    }

    /// A renewal that has a name of its caller's is in doubt no more: a marker that says where it is goes.
    pub(crate) fn drop_marker_to(&mut self, own: Name, session: &str) {
        let name = self.account.space().renewals(session);
        self.request_name(&name, NameRequest::new(None, RequestKind::DropMarker(own)));
    }

    pub(crate) fn drop_marker(&mut self, name: &Name, own: &Name, found: &StoredRecord) {
        if matches!(found, StoredRecord::Readable(data) if data.renewal.as_ref() == Some(own)) {
            self.delete(name, Deletion::Marker);
        }
    }

    /// A session was ended: what is in doubt of its renewals is not sent again but by its record. Returns the name that is looked at.
    pub(crate) fn look_for_renewal(&mut self, session: &str) -> Option<Name> {
        if self.sessions.type_of(session).is_some_and(|kind| kind == "dynamic") {
            return None;
        }
        for id in self.sessions.changing(session) {
            self.jobs.session_is_over(id);
        }
        let name = self.account.space().renewals(session);
        self.request_name(&name, NameRequest::new(None, RequestKind::SessionOver(session.into())));
        Some(name)
    }

    /// A renewal in doubt of a session that was ended is marked so, and that is said.
    pub(crate) fn session_is_over(&mut self, name: &Name, session: &str, found: &StoredRecord) {
        let StoredRecord::Readable(data) = found else { return };
        if let Some(marked) = data.renewal.as_ref().filter(|_| !name.is_findable()) {
            return self.request_name(&marked.clone(), NameRequest::new(None, RequestKind::SessionOver(session.into())));
        }
        let Some(call) = data.call.as_ref().filter(|call| is_renewal_of(call, session)) else { return };
        let call = SavedCall { session_over: true, ..call.clone() };
        self.put(name, Data { call: Some(call), ..(**data).clone() }, None, true, None);
        let record = name.at(self.journal.version(name));
        let what = EventKind::RenewalInDoubt { record, session_id: session.to_owned() };
        self.outbox.notify(crate::client::text::event::Event {
            command: None,
            operation: RenewSession::ENDPOINT.name,
            intent: data.intent.clone(),
            what,
        });
    }

    pub(crate) fn let_go_of_renewals(&mut self, name: &Name) {
        self.journal.give(name, None);
        self.release(name);
    }
}
