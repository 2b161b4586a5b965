//! Changes of sessions, and their order. A free change never holds back a paid one: a termination passes everything except another
//! termination, and a rotation in doubt is sent once more before the next one, whatever its outcome.

use crate::client::begin::go_on::bought_as_of;
use crate::client::requests::{AfterRetry, NameRequest, RequestKind, Start, StoredRecord};
use crate::client::router::Router;
use crate::contract::Operation;
use crate::contract::agent::{RotateSession, TerminateSession};
use crate::options::CallOptions;
use crate::state::{CommandId, Name, SavedCall};

impl Router {
    /// An earlier rotation is sent once more, if it is still in doubt; then this one goes on.
    pub(crate) fn retry_first(&mut self, name: &Name, command: CommandId, start: Start, found: &StoredRecord) {
        let session = start.built.session_id.clone().unwrap_or_default();
        self.sessions.forget_rotation(&session);
        let is_of_session = |call: &&SavedCall| {
            call.operation == RotateSession::ENDPOINT.name && call.session_id.as_deref() == Some(session.as_str()) && call.can_resume()
        };
        let StoredRecord::Readable(data) = found else { return self.enter(command, start) };
        let is_free = self.sessions.changing(&session).next().is_none();
        match data.call.as_ref().filter(is_of_session).filter(|_| is_free) {
            Some(call) => {
                // One send, and no waiting: neither for a repeat nor for an earlier send of the key to end.
                let once = CallOptions { attempts: Some(1), headers: start.options.headers.clone(), ..CallOptions::default() };
                self.commands.begin_after(command, AfterRetry { start: Box::new(start), is_wanted: true });
                self.go_on_with_call(name, command, call, bought_as_of(name, data), &once);
            }
            None => self.enter(command, start),
        }
    }

    /// The retry of an earlier rotation has ended for a command: what it wanted itself begins.
    pub(crate) fn begin_after_retry(&mut self, command: CommandId, after: AfterRetry) {
        let AfterRetry { start, is_wanted } = after;
        if !is_wanted {
            return self.end_cancelled(command, NameRequest::new(Some(command), RequestKind::Start(start)));
        }
        self.commands.set_job(command, None);
        self.enter(command, *start);
    }

    /// Begins a request whose name can't be had: a termination without the name, and a rotation without what it was to send first. Any
    /// other request is returned.
    pub(crate) fn begin_all_the_same(&mut self, request: NameRequest) -> Option<NameRequest> {
        match (request.command, request.purpose) {
            (Some(command), RequestKind::Start(start)) if start.endpoint.name == TerminateSession::ENDPOINT.name => {
                self.begin_write(None, command, Start { bought_as: None, ..*start });
                None
            }
            (Some(command), RequestKind::Retry(start)) => {
                self.enter(command, *start);
                None
            }
            (command, purpose) => Some(NameRequest { command, purpose }),
        }
    }
}
