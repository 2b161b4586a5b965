//! The holders of a session: callers with a handle, and jobs. Without holders its name is released, and its facts are forgotten.

use arcstr::ArcStr;

use crate::client::end::commands::Asker;
use crate::client::router::Router;
use crate::collections::SmallSet;
use crate::state::{CommandId, Name, RequestIdentity, SavedSession, User};

impl Router {
    /// From here on a session is this client's, under that name.
    pub(crate) fn hold_session(&mut self, name: &Name, session: SavedSession, bought_as: Option<RequestIdentity>) {
        if let Some(id) = self.sessions.hold(name, session, bought_as) {
            self.journal.give(name, Some(User::Session(id)));
        }
    }

    /// Follows a session no more, without ending it.
    pub(crate) fn release_session(&mut self, session: &str) -> bool {
        let follows = self.sessions.release(session);
        self.let_go_of_session(session);
        follows
    }

    /// These commands end with a session, so their callers have it, as soon as they take it. Not one that was resumed with all others and
    /// has a name of its caller's, and not one that is not ready for its caller: whoever starts that asks for it.
    pub(crate) fn promise_session(&mut self, session: &ArcStr, commands: &SmallSet<CommandId>, is_ready: bool) {
        let Some(is_callers) = self.sessions.is_promised(session) else { return };
        for id in commands.iter() {
            let is_right = |asker| !is_callers || !matches!(asker, Asker::List(_)) && (is_ready || !self.commands.needs_ready(id));
            if self.commands.asker(id).is_some_and(is_right) {
                self.sessions.promise(session, id);
                self.commands.promise(id, session);
            }
        }
    }

    /// A command that ended with a session was taken, or its caller is gone.
    pub(crate) fn give_session(&mut self, session: &str, command: CommandId, taken: bool) {
        self.sessions.give(session, command, taken);
        self.let_go_of_session(session);
    }

    /// Lets go of a session that no caller has and no job is about: whoever wants it next finds its record.
    pub(crate) fn let_go_of_session(&mut self, session: &str) {
        let Some(kept) = self.sessions.let_go(session) else { return };
        if let Some(name) = kept.name.clone() {
            self.put_kept(&name, kept, None, true);
        }
    }

    /// A name is a session's no more.
    pub(crate) fn give_up_session(&mut self, session: &str, name: &Name) {
        if self.sessions.give_up(session, name) {
            self.let_go_of_session(session);
        }
    }

    /// From now on what is seen through a session may rotate it.
    pub(crate) fn rotate_when_seen(&mut self, session: &str) {
        if self.sessions.rotate_when_seen(session) {
            self.put_session(session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, agent, drain, saved};
    use crate::client::{CallOptions, Client, Whose};

    const ACTIVE: &str = r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}"#;

    /// A client in which so many callers wait for one session that is usable by now.
    fn opened(callers: usize) -> (Client, Vec<CommandId>) {
        let mut client = agent(7, false);
        let commands = (0..callers).map(|_| client.start_json("open_session", BUY, CallOptions::intent("job"))).collect();
        drain(&mut client, 202, ACTIVE);
        (client, commands)
    }

    fn whose(client: &mut Client) -> Vec<Whose> {
        drain(client, 500, "");
        saved(client).into_iter().map(|saved| saved.whose).collect()
    }

    #[test]
    fn a_session_whose_callers_are_all_gone_is_let_go_of() {
        let (mut client, commands) = opened(2);
        assert!(client.abandon(commands[0]));
        assert_eq!((client.follows("s-1"), whose(&mut client)), (true, vec![Whose::Mine]));
        assert!(client.abandon(commands[1]));
        assert_eq!((client.follows("s-1"), whose(&mut client)), (false, vec![Whose::Free]));
    }

    #[test]
    fn a_caller_who_took_it_has_it_until_it_is_released() {
        let (mut client, commands) = opened(2);
        client.take_answer(commands[0]).expect("has completed").expect("was bought");
        assert!(client.abandon(commands[1]) && client.follows("s-1"));
        assert!(client.release_session("s-1"));
        assert_eq!((client.follows("s-1"), whose(&mut client)), (false, vec![Whose::Free]));
        // One that was released before its result was taken stays so.
        let (mut client, commands) = opened(1);
        assert!(client.release_session("s-1"));
        client.take_answer(commands[0]).expect("has completed").expect("was bought");
        assert!(!client.follows("s-1"));
    }

    #[test]
    fn what_is_abandoned_with_all_that_was_resumed_is_let_go_of() {
        let mut client = agent(7, false);
        let open = client.start_json("open_session", BUY, CallOptions::default());
        drain(&mut client, 202, ACTIVE);
        client.take_answer(open).expect("has completed").expect("was bought");
        assert!(client.release_session("s-1"));
        assert_eq!(whose(&mut client), [Whose::Free]);
        let all = client.resume_all(CallOptions::default()).command;
        drain(&mut client, 200, ACTIVE);
        assert_eq!((client.follows("s-1"), client.router.commands.len()), (true, 2));
        assert!(client.abandon(all));
        assert_eq!((client.follows("s-1"), client.router.commands.len(), whose(&mut client)), (false, 0, vec![Whose::Free]));
    }

    #[test]
    fn nothing_stays_known_of_sessions_that_nobody_has() {
        let mut client = agent(7, false);
        for number in 0..20 {
            let session = format!("s-{number}");
            let body = |status: &str| {
                format!(r#"{{"success":true,"data":{{"session_id":"{session}","session_type":"dynamic","status":"{status}"}}}}"#)
            };
            let named = format!(r#"{{"session_id":"{session}"}}"#);
            let options = if number % 2 == 0 { CallOptions::default() } else { CallOptions::intent(&session) };
            let steps = [("open_session", BUY, options, "active"), ("get_session", &named, CallOptions::default(), "expired")];
            for (operation, params, options, status) in steps {
                let command = client.start_json(operation, params, options);
                drain(&mut client, 200, &body(status));
                client.take_answer(command).expect("has completed").expect("was accepted");
            }
            // Another one is only rotated, and a third one only watched.
            for (operation, auto_rotate) in [("rotate_session", false), ("wait_session", true)] {
                let command = client.start_json(operation, &named, CallOptions { auto_rotate, ..CallOptions::default() });
                drain(&mut client, 200, &body("active"));
                client.take_answer(command).expect("has completed").expect("was accepted");
                client.release_session(&session);
            }
        }
        drain(&mut client, 500, "");
        assert_eq!(
            (client.router.sessions.len(), client.router.commands.len(), client.router.name_requests.len(), client.router.timers.names()),
            (0, 0, 0, 0)
        );
    }
}
