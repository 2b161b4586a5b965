//! Results that are taken, and those that nobody takes: the result is dropped, and what was done, or may have been, stays to be seen.

use crate::client::deferred::Deferred;
use crate::client::end::commands::TakenResult;
use crate::client::names::deletion::Deletion;
use crate::client::router::Router;
use crate::contract::agent::RenewSession;
use crate::contract::{Operation, endpoint};
use crate::engine::Answered;
use crate::json::read_json;
use crate::policy::Error;
use crate::state::{CommandId, Done, User};
use crate::wire::stored_answer;

impl Router {
    /// The untyped result of a command that completed, once.
    pub(crate) fn take_answer(&mut self, command: CommandId) -> Option<Result<Answered, Error>> {
        let taken = self.commands.take(command)?;
        taken.session.iter().for_each(|session| self.give_session(session, command, true));
        taken.left.names().for_each(|name| self.delete_result(name));
        Some(taken.result)
    }

    /// Drops the result of a command that completed, because its caller is gone.
    pub(crate) fn abandon(&mut self, command: CommandId) {
        let Some(TakenResult { operation, session, result, mut left }) = self.commands.take(command) else { return };
        session.iter().for_each(|session| self.give_session(session, command, false));
        if let (Ok(answered), "resume_all") = (&result, operation) {
            // The results of its parts were only accessible by its answer.
            let parts: Vec<u32> = read_json(answered.raw.text()).unwrap_or_default();
            parts.into_iter().for_each(|part| self.deferred.push(Deferred::Abandon(CommandId(part))));
        }
        if let Some(name) = left.own.take().filter(|name| self.journal.user(name) == Some(&User::Result)) {
            self.journal.give(&name, None);
            match result {
                Ok(Answered { facts, raw, .. }) => {
                    let answer = endpoint(operation).and_then(|endpoint| stored_answer(&endpoint.response, raw.text()));
                    let done = Done { operation: operation.to_owned(), facts, follows: false, answer };
                    // The next renewal of a session puts its record where this one's is.
                    let is_in_the_way = operation == RenewSession::ENDPOINT.name;
                    let kept = if is_in_the_way { self.make_name(None) } else { name.clone() };
                    self.put_done(&kept, None, done);
                    if is_in_the_way {
                        self.delete(&name, Deletion::Moved);
                    }
                }
                // A resume of it sends its key again.
                Err(_) => self.release(&name),
            }
        }
        left.names().for_each(|name| self.delete_result(name));
    }
}
