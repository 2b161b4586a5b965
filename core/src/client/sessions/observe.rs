//! Advice from the caller's own traffic through a session: keep it, rotate it, or it is too early to tell. A session that was opened with
//! [`CallOptions::auto_rotate`] is rotated at once.

use crate::client::router::Router;
use crate::contract::agent::{RotateReason, RotateSession};
use crate::contract::{Operation, json_of};
use crate::engine::Then;
use crate::options::CallOptions;
use crate::state::{Seen, Verdict};
use crate::time::Now;

impl Router {
    /// Turns what was seen through a session into advice, and begins a rotation where the session rotates by itself.
    pub(crate) fn observe(&mut self, session_id: &str, seen: Seen, now: Now) -> Option<Verdict> {
        self.tick(now);
        let reason = match self.sessions.observe(session_id, seen)? {
            Verdict::Rotate(reason) => reason,
            verdict => return Some(verdict),
        };
        let auto = self.sessions.rotates(session_id);
        let changing = self.sessions.changing(session_id).next().and_then(|id| Some((id, self.jobs.get(id)?.subject.operation)));
        let is_static = self.sessions.type_of(session_id).is_some_and(|kind| kind == "static");
        if let Some((id, _)) = changing.filter(|(_, operation)| auto && !is_static && *operation == RotateSession::ENDPOINT.name) {
            let command = self.command(RotateSession::ENDPOINT);
            self.attach(id, command);
            return Some(Verdict::Rotating(reason, command));
        }
        Some(match self.sessions.keeps_exit(session_id, changing.is_some(), now.monotonic) {
            Some(why) => Verdict::Unsure(why),
            None if auto => self.rotate(session_id, reason),
            None => Verdict::Rotate(reason),
        })
    }

    fn rotate(&mut self, session_id: &str, reason: RotateReason) -> Verdict {
        let now = self.now();
        let credentials = self.sessions.begins_rotation(session_id, now);
        let rotation = RotateSession {
            session_id: session_id.to_owned(),
            include_credentials: credentials.then_some(true),
            reason: Some(reason.clone()),
        };
        Verdict::Rotating(reason, self.start(RotateSession::ENDPOINT, &json_of(&rotation), Then::End, CallOptions::default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Client, ClientOptions, Step, StoreCall};
    use crate::contract::agent::TerminateSession;
    use crate::state::{Name, SavedSession};

    const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 1_000_000 };

    fn following(auto_rotate: bool) -> Client {
        let options = ClientOptions { base_url: "https://api.example/v1".into(), store: true, ..ClientOptions::default() };
        let mut client = Client::new(options, [7; 16]).expect("the options are sound");
        let (status, session_type) = (Some("active".into()), Some("dynamic".into()));
        let active = SavedSession { id: "s-1".into(), status, session_type, auto_rotate, ..SavedSession::default() };
        client.router.sessions.hold(&Name::from("5e.r1".to_owned()), active, None);
        client
    }

    fn seen(client: &mut Client) -> Verdict {
        client.observe("s-1", Seen::Status(403), NOW).expect("is followed")
    }

    #[test]
    fn advice_sends_nothing_and_a_session_that_rotates_by_itself_saves_its_rotation_first() {
        let mut client = following(false);
        assert_eq!(seen(&mut client), Verdict::Rotate(RotateReason::Http403));
        assert!(matches!(client.poll(NOW), Step::Wait { .. }));
        let mut client = following(true);
        assert!(matches!(seen(&mut client), Verdict::Rotating(RotateReason::Http403, _)));
        assert!(matches!(client.poll(NOW), Step::Store { call: StoreCall::Put { .. }, .. }));
        assert!(matches!(client.poll(NOW), Step::Wait { .. }));
    }

    #[test]
    fn whoever_sees_a_block_during_a_rotation_waits_for_that_one() {
        let mut client = following(true);
        let (Verdict::Rotating(_, one), Verdict::Rotating(_, other)) = (seen(&mut client), seen(&mut client)) else {
            panic!("both wait for a rotation")
        };
        assert!(one != other && client.router.jobs.len() == 1);
        assert_eq!(client.cancel(one, NOW), None);
        assert!(!client.is_pending(one) && client.is_pending(other));
    }

    #[test]
    fn what_changes_the_session_otherwise_keeps_it_from_rotating() {
        let mut client = following(true);
        client.start(TerminateSession { session_id: "s-1".into() }, CallOptions::default());
        assert!(matches!(seen(&mut client), Verdict::Unsure(why) if why.contains("under way")));
        let mut client = following(true);
        client.router.sessions.learn("s-1", Some("expired"), None);
        assert!(matches!(seen(&mut client), Verdict::Unsure(why) if why.contains("not active")));
    }
}
