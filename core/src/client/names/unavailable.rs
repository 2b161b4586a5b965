//! The errors for a name that can't be had: another client owns it, or the store fails.

use crate::client::requests::{NameRequest, RequestKind, StoredRecord, Timer};
use crate::client::router::Router;
use crate::client::types::busy;
use crate::policy::{Advice, Backoff, Effect, Error, Kind, Rule};
use crate::state::{Name, STORE_AGAIN, User};

/// The time between two claims of a name that another living client has, by a start that waits for it.
const BUSY: Backoff = Backoff { first: 200, most: 5000 };

impl Router {
    /// Another living client has it.
    pub(crate) fn is_busy(&mut self, name: &Name, request: NameRequest, found: &StoredRecord) {
        let Some(request) = self.begin_all_the_same(request) else { return };
        let known = if let StoredRecord::Readable(data) = found { Some(&**data) } else { None };
        let (session, status) = known
            .and_then(|data| data.session.as_ref())
            .map(|session| (Some(session.id.clone()), session.status.clone()))
            .unwrap_or_default();
        let status = status.map(|status| format!(", which is {status}")).unwrap_or_default();
        let with = session.as_ref().map(|session| format!(", with the session `{session}`{status}")).unwrap_or_default();
        let now = self.now();
        let (operation, intent, effect) = request.subject();
        match request.purpose {
            RequestKind::Reclaim(session, _) => return self.name_is_taken_over(User::Session(session), name),
            RequestKind::Renewal(id) => return self.renewal_is_busy(id, None),
            RequestKind::Marked(id, marker) => return self.renewal_is_busy(id, Some(&marker)),
            _ => {}
        }
        let NameRequest { command: Some(command), purpose } = request else { return };
        // An intent is resumed by its next start; a key of the caller's own may have been sent by a program without this store.
        let effect = match &purpose {
            RequestKind::Start(start) if start.options.idempotency_key.is_none() => Effect::None,
            _ => effect,
        };
        if let RequestKind::Start(mut start) = purpose
            && start.options.wait_for_intent
        {
            let until = now.saturating_add(start.options.deadline());
            let (waits, until) = start.patience.unwrap_or((0, until));
            if now < until {
                let at = now.saturating_add(BUSY.wait(waits)).min(until);
                start.patience = Some((waits.saturating_add(1), until));
                let request = NameRequest::new(Some(command), RequestKind::Start(start));
                self.name_requests.push(name, request);
                self.commands.set_waits_for(command, Some(name.clone()));
                self.timers.set_name(name, at);
                return;
            }
        }
        let error = busy(operation, &format!("another client owns it{with}"));
        let error = error.with(|new| {
            new.session_id = session;
            new.intent = intent;
            new.effect = effect;
        });
        self.complete(command, Err(error));
    }

    /// The store fails: those who wait for the name are told so. `what` ends a sentence that begins with "the store". A session that is to be
    /// taken back is somebody's still, so that is tried again.
    pub(crate) fn store_fails(&mut self, name: &Name, what: &str) {
        for request in self.name_requests.take_all(name) {
            let Some(request) = self.begin_all_the_same(request) else { continue };
            match request.purpose {
                RequestKind::Reclaim(session, failures) => {
                    let at = self.now().saturating_add(STORE_AGAIN.wait(failures));
                    self.timers.add(at, Timer::Reclaim(Box::new((name.clone(), session, failures.saturating_add(1)))));
                }
                RequestKind::Renewal(id) => self.renewal_not_stored(id, None),
                RequestKind::Marked(id, marker) => self.renewal_not_stored(id, Some(&marker)),
                _ => {
                    let (what, advice) = match &request.purpose {
                        RequestKind::Start(start) if start.effect() == Effect::Unknown => {
                            (format!("sent nothing, and an earlier call may have done it: repair the store, which {what}"), Advice::Resume)
                        }
                        _ => (format!("sent nothing, because the store {what}"), Advice::MendStore),
                    };
                    self.turn_away(request, Kind::Store, &what, advice);
                }
            }
        }
    }

    /// Ends a request whose name can't be had.
    pub(crate) fn turn_away(&mut self, request: NameRequest, kind: Kind, what: &str, advice: Advice) {
        let Some(command) = request.command else { return };
        let (operation, intent, effect) = request.subject();
        let is_said = kind == Kind::Misuse || !self.holds(Rule::UnaskedIsUnknown);
        let effect = if is_said { Effect::None } else { effect };
        let error = Error::new(kind, effect, operation, what, advice);
        self.complete(command, Err(error.with(|new| new.intent = intent)));
    }
}
