//! Sessions whose names are claimed again: those that live again after they were over, and those whose claims have ended while they were
//! held.

use crate::client::begin::go_on::bought_as_of;
use crate::client::end::commands::PendingWrite;
use crate::client::requests::StoredRecord;
use crate::client::router::Router;
use crate::state::{Name, User};
use crate::time::Now;

impl Router {
    /// Takes in that claims of this client have ended: those of these names, or all.
    pub(crate) fn claims_have_ended(&mut self, names: Option<&[Name]>, now: Now) {
        self.tick(now);
        let all = || self.journal.names().cloned().collect();
        for name in names.map_or_else(all, <[Name]>::to_vec) {
            match self.journal.lose(&name) {
                Some(User::Session(session)) if self.opening(&session).is_none() && self.sessions.is_held(&session) => {
                    self.sessions.lose_name(&session);
                    self.reclaim(&name, session, 0);
                }
                Some(user) => self.name_is_taken_over(user, &name),
                None => {}
            }
            if !self.journal.knows(&name) {
                // Waiting writes of the name are not made any more.
                self.answered(&PendingWrite::Name(name), None);
            }
        }
    }

    /// A session lives again, or its name was lost: its record says what is known of it, if it is still its own.
    pub(crate) fn reclaimed(&mut self, name: &Name, session: &str, found: &StoredRecord) {
        let data = if let StoredRecord::Readable(data) = found { Some(&**data) } else { None };
        let Some((data, saved)) = data.and_then(|data| Some((data, data.session.as_ref().filter(|saved| saved.id == session)?))) else {
            return self.name_is_taken_over(User::Session(session.into()), name);
        };
        let is_own_record = data.at.client == self.clock().at().client;
        let Some(saved) = self.sessions.reclaimed(saved, is_own_record) else { return };
        self.hold_session(name, saved, bought_as_of(name, data));
        self.put_session(session);
        self.let_go_of_session(session);
    }
}
