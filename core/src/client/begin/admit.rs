//! How a start begins, by what is found under its name: anew, as what is there goes on, or not at all.

use crate::client::begin::next_purchase::is_nothing_again;
use crate::client::begin::same_request::other_than_record;
use crate::client::news::SlotState;
use crate::client::requests::{Start, StoredRecord};
use crate::client::router::Router;
use crate::client::sessions::pool_slots::slot_of;
use crate::client::sessions::session::ended;
use crate::policy::{Advice, Effect, Error, KEY_WINDOW, Kind};
use crate::state::{BadRecord, CommandId, Data, Name, SavedCall};
use crate::time::Millis;
use crate::wire::Facts;

impl Router {
    /// A write begins, or what is under its name goes on.
    pub(crate) fn admit_start(&mut self, name: &Name, command: CommandId, start: Start, found: &StoredRecord) {
        let error = match found {
            StoredRecord::Empty => return self.begin_write(Some(name.clone()), command, start),
            StoredRecord::Readable(data) if data.refused().is_some() => return self.begin_refused(name, command, start, data),
            StoredRecord::Readable(data) if name.is_of_a_pool() => return self.admit_purchase(name, command, start, data),
            StoredRecord::Readable(data) if let Some(later) = Router::next_purchase(&start, data) => {
                return self.begin_next(name, command, start, later);
            }
            StoredRecord::Readable(data) if is_nothing_again(data) => self.ended_again(name, data),
            StoredRecord::Readable(data) if data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint) => {
                if start.options.buys_if_ended() && start.patience.is_none() {
                    self.commands.may_buy_next(command, start.clone());
                }
                return self.go_on(name, command, data, &start.options, start.options.intent.as_deref());
            }
            StoredRecord::Readable(data) => other_than_record(&start, data, self.journal.record_of(name)),
            StoredRecord::Unreadable(bad, _) => {
                let field = if start.options.intent.is_some() { "intent" } else { "idempotency_key" };
                // The record may be of this very write.
                let record = self.journal.record_of(name).map(|record| record.0);
                let error = unreadable(start.endpoint.name, bad, Effect::Unknown);
                error.with(|new| {
                    new.field = Some(field.to_owned());
                    new.record = record;
                })
            }
        };
        self.finish_request(command, Err(error), start.options.intent.clone(), name);
    }

    /// A write begins where an app's own backend refused the last one: with its key and bytes, unless it is another request or the key is
    /// known to be too old. A key of unknown age is sent, since a new key would buy again for sure if the backend had passed the last one on.
    pub(crate) fn begin_refused(&mut self, name: &Name, command: CommandId, mut start: Start, data: &Data) {
        let is_same = data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint);
        let young = |call: &&SavedCall| is_same && self.age_of(call).is_none_or(|age| age < KEY_WINDOW);
        let call = data.refused().filter(young).cloned();
        if name.is_of_a_pool() {
            start.take_number(data, call.is_some());
        }
        // A later purchase of its intent: with another key, only a start that may buy again begins it.
        if let Some(later) = &data.later {
            if call.is_none() && !start.options.buys_if_ended() {
                let facts =
                    Facts { session_id: Some(later.last_session_id.clone()), status: later.last_status.clone(), ..Facts::default() };
                let error = ended(&facts, start.options.intent.clone(), self.journal.record_of(name));
                return self.finish_request(command, Err(error), None, name);
            }
            start.bought_as.iter_mut().for_each(|known| known.later = Some(Box::new(later.clone())));
        }
        self.begin_write(Some(name.clone()), command, start);
        let job = self.commands.job(command);
        let (Some(call), Some(job)) = (call, job) else { return };
        let age = self.age_of(&call).unwrap_or_default();
        let clock = self.clock();
        self.jobs.begin_refused(job, call, age, &clock);
    }

    /// The age of its key by this client's clock, and by the service's if that is known. The service's time is not requested: the backend
    /// may refuse that, too.
    pub(crate) fn age_of(&self, call: &SavedCall) -> Option<Millis> {
        self.clock().about_since(call.age.at).map(|gap| call.age.ms.saturating_add(gap))
    }

    /// Goes on with what a slot holds, or buys the next one.
    pub(crate) fn admit_purchase(&mut self, name: &Name, command: CommandId, mut start: Start, data: &Data) {
        if !matches!(slot_of(data), SlotState::Free | SlotState::Over | SlotState::Expired) {
            return self.go_on(name, command, data, &start.options, data.intent.as_deref());
        }
        start.take_number(data, false);
        self.begin_write(Some(name.clone()), command, start);
    }
}

/// Why nothing is sent before it is known what a record says.
pub(crate) fn unreadable(operation: &'static str, bad: &BadRecord, effect: Effect) -> Error {
    let (kind, effect, what, advice) = match bad {
        BadRecord::OtherApi(_) | BadRecord::OtherAccount => {
            let what = "was not sent, because its record has another API key or base URL: set `same_account` if only those have changed; \
                        if it is another account, name each account with `account` or use another store";
            (Kind::Invalid, Effect::None, what.to_owned(), Advice::ChangeRequest)
        }
        bad => {
            (Kind::Store, effect, format!("was not sent, because {bad}; forget it once you have checked the account"), Advice::CheckAccount)
        }
    };
    Error::new(kind, effect, operation, what, advice)
}
