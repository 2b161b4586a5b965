//! The acts of people on the store's entries: settling or looking up a doubt, and forgetting a record. Each is a command that has the name
//! for as long as it takes.

use crate::client::doubts::reconcile::no_doubt;
use crate::client::end::commands::FinalWrite;
use crate::client::end::results::said;
use crate::client::names::deletion::Deletion;
use crate::client::requests::{Act, ActKind, NameRequest, RequestKind, StoredRecord};
use crate::client::router::Router;
use crate::engine::RecordId;
use crate::options::{CallOptions, Use};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{BadRecord, CommandId, Name};

impl Router {
    pub(crate) fn act_on(&mut self, record: &RecordId, what: ActKind, scans: bool) -> CommandId {
        let Some((name, version)) = Name::of(record) else {
            let act = Act { version: None, what, others: Vec::new() };
            let error = Error::new(Kind::Misuse, Effect::None, act.operation(), "this is not the name of a record", Advice::ChangeRequest);
            return self.reject(error, None);
        };
        let act = Act { version, what, others: Vec::new() };
        let command = self.command_for(act.operation());
        match scans {
            true => self.scan(command, name, act),
            false => self.request_name(&name, NameRequest::new(Some(command), RequestKind::Act(Box::new(act)))),
        }
        command
    }

    /// A job is at work under the name: there is no doubt, and nothing to forget.
    pub(crate) fn act_on_job(&mut self, command: CommandId, act: Act) {
        let result = match act.what {
            ActKind::Reconcile(_) => Err(no_doubt()),
            ActKind::Settle(_) | ActKind::Forget => Ok(said(false)),
        };
        self.complete(command, result);
    }

    /// Does it.
    pub(crate) fn act(&mut self, name: &Name, command: CommandId, act: Act, found: &StoredRecord) {
        let version = self.journal.version(name);
        let is_there = !matches!(found, StoredRecord::Empty);
        if is_there && act.version.as_ref().is_some_and(|looked_at| *looked_at != version.to_string()) && self.holds(Rule::VersionIsNamed) {
            let what = "was not done, because the record has changed since you read it; read it again";
            let error = Error::new(Kind::Refused, Effect::None, act.operation(), what, Advice::CheckAccount);
            let error = error.with(|new| new.record = Some(name.at(version).0));
            return self.finish_request(command, Err(error), None, name);
        }
        let others = act.others;
        match (act.what, found) {
            (ActKind::Forget, _) => self.forget_found(name, command, found),
            (ActKind::Settle(settlement), StoredRecord::Readable(data)) => self.settle_found(name, command, settlement, data, &others),
            (ActKind::Settle(_), _) => self.finish_request(command, Ok(said(false)), None, name),
            (ActKind::Reconcile(options), StoredRecord::Readable(data)) => self.reconcile_found(name, command, &options, data, others),
            (ActKind::Reconcile(_), _) => self.finish_request(command, Err(no_doubt()), None, name),
        }
    }

    /// Why a session is not forgotten: a caller has it, and it lives as far as is known.
    fn is_still_held(&self, session: &str, name: &Name) -> Option<Error> {
        let is_used = self.sessions.name(session) == Some(name) && self.sessions.is_held(session) && !self.sessions.is_over(session);
        if !is_used || !self.holds(Rule::HeldIsNotForgotten) {
            return None;
        }
        let status = self.sessions.status(session).map(|status| format!(" (`{status}`)")).unwrap_or_default();
        let what = format!(
            "was not done, because this client has the session `{session}`, which may not be over{status}: terminate it, or release it with \
             `release_session`, before you forget it"
        );
        let record = self.journal.record_of(name).map(|record| record.0);
        let error = Error::new(Kind::Refused, Effect::None, "forget", what, Advice::TerminateSession);
        Some(error.with(|new| {
            new.session_id = Some(session.to_owned());
            new.record = record;
        }))
    }

    fn forget_found(&mut self, name: &Name, command: CommandId, found: &StoredRecord) {
        match found {
            StoredRecord::Empty => return self.finish_request(command, Ok(said(false)), None, name),
            // A marker says where a renewal is that may be in doubt.
            StoredRecord::Readable(data) if data.renewal.is_some() || data.call.as_ref().is_some_and(|call| call.is_in_doubt()) => {
                return self.finish_request(command, Ok(said(false)), None, name);
            }
            StoredRecord::Readable(data) => {
                if let Some(session) = &data.session {
                    if let Some(error) = self.is_still_held(&session.id, name) {
                        return self.finish_request(command, Err(error), data.intent.clone(), name);
                    }
                    self.give_up_session(&session.id, name);
                }
            }
            // Its owner may have it in doubt.
            StoredRecord::Unreadable(BadRecord::OtherApi(_) | BadRecord::OtherAccount, _) => {
                return self.finish_request(command, Ok(said(false)), None, name);
            }
            StoredRecord::Unreadable(..) => {}
        }
        self.delete(name, Deletion::Forgotten);
        self.acted(name, command, FinalWrite::Erase, Vec::new());
    }

    pub(crate) fn look_up(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        let error = options.refusal().or_else(|| options.without_use(Use::Reconcile));
        match error {
            Some((field, rule)) => self.reject(Error::invalid("reconcile", field, rule), options.intent),
            None => self.act_on(record, ActKind::Reconcile(Box::new(options)), true),
        }
    }
}
