//! How a start begins, by what is found under its name: anew, as what is there goes on, or not at all.

use super::root::Client;
use super::same_request::other_than_record;
use super::waiting::{Found, Start};
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind};
use crate::state::{BadRecord, CommandId, Name, SavedCall};

impl Client {
    /// A write begins, or what is under its name goes on.
    pub(super) fn admit_start(&mut self, name: &Name, command: CommandId, start: Start, found: &Found) {
        let error = match found {
            Found::Nothing => return self.begin_write(Some(name.clone()), command, start),
            Found::Data(data) if name.is_of_a_pool() => return self.admit_purchase(name, command, start, data),
            Found::Data(data) if data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint) => {
                return self.go_on(name, command, data, &start.options, start.options.intent.as_deref());
            }
            Found::Data(data) => other_than_record(&start, data, self.journal.slot(name).map(|slot| name.at(slot.version))),
            Found::Bad(bad, _) => {
                let field = if start.options.intent.is_some() { "intent" } else { "idempotency_key" };
                // It may be this very write.
                Error::from(ErrorFields { field: Some(field.to_owned()), ..self.unreadable(name, &start, bad, Effect::Unknown) })
            }
        };
        self.finish_visit(command, Err(error), start.options.intent.clone(), name);
    }

    /// Whether the change that was left in doubt still is, whoever has tried it last.
    pub(super) fn admit_change(&mut self, name: &Name, command: CommandId, start: Start, found: &Found) {
        let session = start.built.session_id.clone();
        let changes = |call: &&SavedCall| {
            call.session_id == session && call.endpoint(self.service.api).is_some_and(|endpoint| endpoint.changes_session())
        };
        let fields = match found {
            Found::Data(data) => data.call.as_ref().filter(changes).map(|call| {
                let what = format!(
                    "was not sent, because an earlier {} of this session is in doubt and is to be resumed or settled first",
                    call.operation
                );
                let record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
                ErrorFields { record, ..Error::new(Kind::Busy, Effect::None, start.endpoint.name, what, Advice::Resume).into_fields() }
            }),
            Found::Bad(bad, _) => Some(self.unreadable(name, &start, bad, start.effect())),
            Found::Nothing => None,
        };
        if let Some(fields) = fields {
            let error = Error::from(ErrorFields { session_id: session, ..fields });
            return self.finish_visit(command, Err(error), start.options.intent.clone(), name);
        }
        let known = session.as_deref().and_then(|session| self.sessions.get_mut(session));
        known.into_iter().for_each(|known| known.doubt = None);
        self.enter(command, start);
    }

    /// Why nothing is sent before it is known what a record says.
    fn unreadable(&self, name: &Name, start: &Start, bad: &BadRecord, effect: Effect) -> ErrorFields {
        let (kind, effect, what, advice) = match bad {
            BadRecord::OtherApi(_) | BadRecord::OtherAccount => {
                let what = "was not sent, because its record is another API key's or base URL's: say `same_account` where only those have \
                            changed; where it is another account, name each with `account` or use another store";
                (Kind::Invalid, Effect::None, what.to_owned(), Advice::ChangeRequest)
            }
            bad => (
                Kind::Store,
                effect,
                format!("was not sent, because {bad}; forget it once you have looked at the account"),
                Advice::CheckAccount,
            ),
        };
        let record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
        ErrorFields { record, ..Error::new(kind, effect, start.endpoint.name, what, advice).into_fields() }
    }
}
