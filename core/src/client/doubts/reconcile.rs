//! Looking for what became of an operation in doubt: what lists show that may be it.

use crate::client::doubts::became::Made;
use crate::client::jobs::job::{Entry, headers};
use crate::client::router::Router;
use crate::collections::Map;
use crate::contract::agent::CreateSession;
use crate::contract::{Json, Operation, json_of};
use crate::engine::{Job, Lookup, RecordId, Subject};
use crate::options::CallOptions;
use crate::policy::{Advice, Effect, Error, Kind, lookups};
use crate::state::{CommandId, Data, Name};
use crate::wire::Facts;

impl Router {
    pub(crate) fn reconcile_found(
        &mut self,
        name: &Name,
        command: CommandId,
        options: &CallOptions,
        data: &Data,
        mut others: Vec<(String, String, RecordId)>,
    ) {
        // The session before a later purchase of an intent has no record any more, and a list shows it all the same.
        others.extend(data.later.iter().filter_map(|later| {
            Some((CreateSession::ENDPOINT.name.to_owned(), later.last_session_id.clone(), self.journal.record_of(name)?))
        }));
        let Some(call) = data.call.as_ref().filter(|call| call.is_in_doubt()) else {
            return self.finish_request(command, Err(no_doubt()), None, name);
        };
        if lookups(&call.operation).is_empty() {
            let what = format!("can't look up {}, since the service documents no list of it", call.operation);
            let error = Error::new(Kind::Refused, Effect::None, "reconcile", what, Advice::CheckAccount);
            return self.finish_request(command, Err(error), None, name);
        }
        let mut fields = call.match_fields.clone();
        fields.extend(call.session_id.clone().map(|session| ("session_id".to_owned(), session)));
        let others = others.into_iter().filter(|(operation, ..)| *operation == call.operation).map(|(_, became, record)| (became, record));
        let policy = self.policy(options);
        let Some(mut lookup) = Lookup::new(&call.operation, fields, headers(options), policy) else {
            return self.finish_request(command, Err(no_doubt()), None, name);
        };
        lookup.others = others.collect();
        let subject = Subject { operation: lookup.reads(), ..Subject::default() };
        self.begin(Entry::new(Job::Lookup(Box::new(lookup)), subject, options), command);
    }

    /// The candidates, each with the name by which it is settled, and the record that is known to have it.
    pub(crate) fn reconciled(lookup: &mut Lookup) -> Json {
        // From behind, so that of several records the first is the one that is said.
        let others: Map<&str, &RecordId> = lookup.others.iter().rev().map(|(became, record)| (became.as_str(), record)).collect();
        for candidate in &mut lookup.found.candidates {
            candidate.became = Made::by(&lookup.found.operation).and_then(|made| made.name(&Facts::of(candidate.item.text(), None)));
            candidate.record = candidate.became.as_deref().and_then(|name| others.get(name)).map(|record| record.0.clone());
        }
        Json::checked(json_of(&lookup.found))
    }
}

pub(crate) fn no_doubt() -> Error {
    Error::new(Kind::Misuse, Effect::None, "reconcile", "takes a record in doubt, and this one is not in doubt", Advice::ChangeRequest)
}
