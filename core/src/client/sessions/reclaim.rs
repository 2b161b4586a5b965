//! Sessions whose names are claimed again: those that live again after they were over, and those whose claims have ended while they were
//! held.

use arcstr::ArcStr;

use crate::client::begin::go_on::bought_as_of;
use crate::client::end::commands::PendingWrite;
use crate::client::requests::StoredRecord;
use crate::client::router::Router;
use crate::state::{Name, User};
use crate::time::Now;

impl Router {
    /// Takes in that claims of this client have ended: those of these names, or all.
    pub(crate) fn claims_have_ended(&mut self, names: Option<&[Name]>, now: Now) {
        self.shared.clock.tick(now);
        let all = || self.journal.names().cloned().collect();
        for name in names.map_or_else(all, <[Name]>::to_vec) {
            match self.journal.lose(&name) {
                Some(User::Session(session)) if self.opening(&session).is_none() && self.is_held(&session) => {
                    if let Some(known) = self.sessions.get_mut(&session) {
                        known.name = None;
                    }
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
        let Some(tracked) = self.sessions.get(session).filter(|known| known.name.is_none()) else { return };
        let mut saved = saved.clone();
        // Data that another client has put meanwhile is newer, unless this one has just seen that the session is usable again. All else
        // comes from the record: little may be known of a session that was released meanwhile.
        if tracked.lapsed || data.at.client == self.shared.clock.at().client {
            saved.status = tracked.shown.status.as_ref().map(ArcStr::to_string).or(saved.status);
            saved.session_type = tracked.shown.session_type.as_ref().map(ArcStr::to_string).or(saved.session_type);
            saved.credentials |= tracked.session_options.credentials;
            if !tracked.session_options.ends.is_empty() {
                saved.ends = tracked.session_options.ends.to_vec();
            }
        }
        self.hold_session(name, saved, bought_as_of(name, data));
        self.put_session(session);
        self.let_go_of_session(session);
    }
}
