//! Waiting for a session that is known by its id.

use arcstr::ArcStr;

use crate::client::begin::check::check_rotation;
use crate::client::jobs::job::{Entry, headers};
use crate::client::router::Router;
use crate::contract::agent::GetSession;
use crate::contract::{Endpoint, Operation, json_of};
use crate::engine::{Follow, Job, Subject, Then, phase_of};
use crate::options::CallOptions;
use crate::policy::Error;
use crate::state::CommandId;
use crate::wire::build;

impl Router {
    pub(crate) fn watch(&mut self, session_id: &str, options: CallOptions) -> CommandId {
        let params = json_of(&GetSession { session_id: session_id.to_owned(), include_credentials: None });
        let refusal = build(GetSession::ENDPOINT, &params).err().map(|refusal| (refusal.field, refusal.rule));
        let refusal = refusal.or_else(|| options.refusal().map(|(field, rule)| (field.to_owned(), rule.to_owned())));
        if let Some((field, rule)) = refusal {
            return self.reject(Error::invalid("get_session", &field, &rule), options.intent);
        }
        if let Err(error) = self.check_use(GetSession::ENDPOINT, &options) {
            return self.reject(error, options.intent);
        }
        let known = self.sessions.type_of(session_id).map(ArcStr::as_str);
        if let Err(error) = check_rotation(GetSession::ENDPOINT.name, Then::Follow, known, &options) {
            return self.reject(error, options.intent);
        }
        let command = self.command(GetSession::ENDPOINT);
        self.commands.need_ready(command, options.allow_pending);
        self.begin_watch(command, GetSession::ENDPOINT, session_id.into(), None, &options);
        command
    }

    /// Queues a job that reads a session it knows, of which a record says `status`.
    pub(crate) fn begin_watch(
        &mut self,
        command: CommandId,
        endpoint: &'static Endpoint,
        session_id: ArcStr,
        status: Option<&str>,
        options: &CallOptions,
    ) {
        if options.auto_rotate {
            self.rotate_when_seen(&session_id);
        }
        let recalled = phase_of(self.sessions.status(&session_id).map(ArcStr::as_str).or(status), &options.ends);
        let ends = self.sessions.ends(&session_id).to_vec();
        let timeout_ms = self.policy(options).timeout_ms;
        let follow = Follow::new(endpoint.paid, headers(options), timeout_ms);
        let (operation, intent) = (endpoint.name, options.intent.as_deref().map(ArcStr::from));
        let subject = Subject { operation, intent, session_id: Some(session_id), ..Subject::default() };
        let mut entry = Entry::new(Job::WaitSession(Box::new(follow)), subject, options);
        entry.wants.session_options.want_ends(&ends);
        entry.record.recalls = Some(recalled);
        self.begin(entry, command);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Client;
    use crate::client::testing::{BUY, NOW, agent, go_on};
    use crate::engine::Answered;
    use crate::state::Memory;

    const ACTIVE: &str = r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active"}}"#;

    /// The requests until a command is done.
    fn sent(client: &mut Client, command: CommandId) -> Vec<String> {
        let mut sent = Vec::new();
        go_on(client, &mut Memory::default(), NOW, |request| {
            sent.push(format!("{} {}", request.method.as_str(), request.url.trim_start_matches("https://api.example/v1")));
            (200, ACTIVE.to_owned())
        });
        let Answered { facts, .. } = client.take_answer(command).expect("has completed").expect("is usable");
        assert_eq!(facts.session_id.as_deref(), Some("s-1"));
        sent
    }

    #[test]
    fn whoever_gets_a_session_to_use_it_gets_its_username_and_password_unless_they_are_not_wanted() {
        const READ: &str = "GET /sessions/s-1?include_credentials=true";
        let unwanted = || CallOptions { credentials: Some(false), ..CallOptions::default() };
        let mut client = agent(7, false);
        let opened = client.start_json("open_session", BUY, CallOptions::intent("job"));
        assert_eq!(sent(&mut client, opened), ["POST /sessions", READ]);
        let resumed = client.resume_intent("job", CallOptions::default());
        assert_eq!(sent(&mut client, resumed), [READ]);
        let waited = client.wait_session("s-2", CallOptions::default()).command;
        go_on(&mut client, &mut Memory::default(), NOW, |request| {
            assert!(request.url.ends_with("/sessions/s-2?include_credentials=true"), "{}", request.url);
            (200, ACTIVE.replace("s-1", "s-2"))
        });
        client.take_answer(waited).expect("has completed").expect("is usable");
        let mut client = agent(7, false);
        let opened = client.start_json("open_session", BUY, unwanted());
        assert_eq!(sent(&mut client, opened), ["POST /sessions"]);
        let read = client.start(GetSession { session_id: "s-1".into(), include_credentials: None }, CallOptions::default());
        assert_eq!(sent(&mut client, read.command), ["GET /sessions/s-1"]);
    }
}
