//! Waiting for a session that is known by its id.

use arcstr::ArcStr;

use super::check::check_rotation;
use super::job::{Entry, headers};
use super::options::CallOptions;
use super::root::Client;
use super::session::OpenSession;
use super::types::Ticket;
use crate::contract::agent::GetSession;
use crate::contract::{Endpoint, Operation, json_of};
use crate::engine::{Follow, Job, Subject, Then};
use crate::policy::Error;
use crate::state::CommandId;
use crate::wire::build;

impl Client {
    /// Waits for a session that is known by its id, as `open_session` does after its purchase. With
    /// [`CallOptions::credentials`] it also reads the username and the password.
    pub fn wait_session(&mut self, session_id: &str, options: CallOptions) -> Ticket<OpenSession> {
        Ticket::of(self.watch(session_id, options))
    }

    pub(super) fn watch(&mut self, session_id: &str, options: CallOptions) -> CommandId {
        let params = json_of(&GetSession { session_id: session_id.to_owned(), include_credentials: None });
        let refusal = build(GetSession::ENDPOINT, &params).err().map(|refusal| (refusal.field, refusal.rule));
        let refusal = refusal.or_else(|| options.refusal().map(|(field, rule)| (field.to_owned(), rule.to_owned())));
        if let Some((field, rule)) = refusal {
            return self.reject(Error::invalid("get_session", &field, &rule), options.intent);
        }
        if let Err(error) = self.check_use(GetSession::ENDPOINT, &options) {
            return self.reject(error, options.intent);
        }
        let known = self.sessions.get(session_id).and_then(|tracked| tracked.shown.session_type.as_deref());
        if let Err(error) = check_rotation(GetSession::ENDPOINT.name, Then::Follow, known, &options) {
            return self.reject(error, options.intent);
        }
        let command = self.command(GetSession::ENDPOINT);
        self.begin_watch(command, GetSession::ENDPOINT, session_id.into(), &options);
        command
    }

    /// Queues a job that reads a session it knows.
    pub(super) fn begin_watch(&mut self, command: CommandId, endpoint: &'static Endpoint, session_id: ArcStr, options: &CallOptions) {
        if options.auto_rotate {
            self.rotate_when_seen(&session_id);
        }
        let ends = self.sessions.get(&session_id).map(|tracked| tracked.wishes.ends.clone()).unwrap_or_default();
        let timeout_ms = options.policy(&self.service.retry).timeout_ms;
        let follow = Follow::known(endpoint.paid, headers(options), timeout_ms);
        let (operation, intent) = (endpoint.name, options.intent.as_deref().map(ArcStr::from));
        let subject = Subject { operation, intent, session_id: Some(session_id), ..Subject::default() };
        let mut entry = Entry::new(Job::WaitSession(Box::new(follow)), subject, options);
        entry.wants.wishes.want_ends(&ends);
        entry.custody.recalls = true;
        self.begin(entry, command);
    }
}
