//! How a start begins, by what is found under its name: anew, as what is there goes on, or not at all.

use super::router::Router;
use super::same_request::other_than_record;
use super::waiting::{Found, Start};
use crate::policy::{Advice, Effect, Error, ErrorFields, Kind};
use crate::state::{BadRecord, CommandId, Name};

impl Router {
    /// A write begins, or what is under its name goes on.
    pub(super) fn admit_start(&mut self, name: &Name, command: CommandId, start: Start, found: &Found) {
        let error = match found {
            Found::Nothing => return self.begin_write(Some(name.clone()), command, start),
            Found::Data(data) if data.refused().is_some() => return self.begin_refused(name, command, start, data),
            Found::Data(data) if name.is_of_a_pool() => return self.admit_purchase(name, command, start, data),
            Found::Data(data) if data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint) => {
                return self.go_on(name, command, data, &start.options, start.options.intent.as_deref());
            }
            Found::Data(data) => other_than_record(&start, data, self.journal.slot(name).map(|slot| name.at(slot.version))),
            Found::Bad(bad, _) => {
                let field = if start.options.intent.is_some() { "intent" } else { "idempotency_key" };
                // It may be this very write.
                let record = self.journal.slot(name).map(|slot| name.at(slot.version).0);
                let fields = unreadable(start.endpoint.name, bad, Effect::Unknown);
                Error::from(ErrorFields { field: Some(field.to_owned()), record, ..fields })
            }
        };
        self.finish_visit(command, Err(error), start.options.intent.clone(), name);
    }
}

/// Why nothing is sent before it is known what a record says.
pub(super) fn unreadable(operation: &'static str, bad: &BadRecord, effect: Effect) -> ErrorFields {
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
    Error::new(kind, effect, operation, what, advice).into_fields()
}
