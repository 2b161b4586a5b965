//! Looking for what became of an operation in doubt.

use super::job::{Entry, headers};
use super::options::CallOptions;
use super::root::Client;
use super::types::{Misfit, Outputs, Ticket};
use crate::contract::{Json, Reconciliation};
use crate::engine::{Answered, Job, Lookup, RecordId, Subject};
use crate::policy::{Advice, Effect, Error, Kind, lookups};
use crate::state::{CommandId, Owner};
use crate::wire::Facts;

/// Marks the ticket of [`Client::reconcile`].
#[derive(Debug, Clone, Copy)]
pub enum Reconcile {}

impl Outputs for Reconcile {
    type Output = Reconciliation;

    fn read(answered: Answered) -> Result<Self::Output, Misfit> {
        match answered.raw.read() {
            Ok(found) => Ok(found),
            Err(error) => Err(Box::new((answered, error))),
        }
    }
}

impl Client {
    /// Looks for what became of an operation in doubt: reads what the contract has to show of it, and returns what may be it,
    /// as the service gave it, with the parameters that it shows with the same values. It decides nothing and sends nothing
    /// but reads; [`settle`](Self::settle) closes the doubt once somebody knows.
    pub fn reconcile(&mut self, record: &RecordId, options: CallOptions) -> Ticket<Reconcile> {
        Ticket::of(self.look_up(record, options))
    }

    pub(super) fn look_up(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        let refuse = |kind, what: &str, advice| Error::new(kind, Effect::None, "reconcile", what, advice);
        let doubt = match self.store.owner(record) {
            Some(Owner::Job(id)) => self.jobs.get(id).filter(|entry| entry.is_in_doubt()),
            _ => None,
        };
        let error = match (doubt, options.refusal(), &options.intent) {
            (_, Some((field, rule)), _) => Err(Error::invalid("reconcile", field, rule)),
            (_, _, Some(_)) => Err(Error::invalid("reconcile", "intent", "names a write, and this operation only reads")),
            _ if options.until.is_some() => Err(Error::invalid("reconcile", "until", "belongs to a read that is repeated")),
            _ if options.idempotency_key.is_some() => Err(Error::invalid("reconcile", "idempotency_key", "is not taken by this operation")),
            (None, ..) => Err(refuse(Kind::Misuse, "names a record that holds no operation in doubt", Advice::Nothing)),
            (Some(entry), ..) if lookups(entry.subject.operation).is_empty() => {
                let what = format!("can't look up {}, since the contract shows no list of it", entry.subject.operation);
                Err(refuse(Kind::Refused, &what, Advice::CheckAccount))
            }
            (Some(entry), ..) => {
                let mut fields = entry.job.write().map(|write| write.call.exchange.built.clues.clone()).unwrap_or_default();
                fields.extend(entry.subject.session_id.clone().map(|session| ("session_id".to_owned(), session)));
                Ok((entry.subject.operation, fields))
            }
        };
        let (operation, match_fields) = match error {
            Ok(known) => known,
            Err(error) => return self.reject(error, options.intent),
        };
        let Some(lookup) = Lookup::new(operation, match_fields, headers(&options), options.policy(&self.service.retry)) else {
            return self.reject(refuse(Kind::Misuse, "could not be laid out", Advice::CheckAccount), None);
        };
        let command = self.command_for("reconcile");
        let subject = Subject { operation: lookup.reads(), ..Subject::default() };
        self.begin(Entry::new(Job::Lookup(Box::new(lookup)), subject, &options), command);
        command
    }

    /// What was found, with the records of what is known to be something else.
    pub(super) fn reconciled(&self, found: &mut Reconciliation) -> Json {
        for candidate in &mut found.candidates {
            let facts = Facts::of(candidate.item.text(), None);
            candidate.record = self.record_of(&found.operation, &facts, None).map(|record| record.0);
        }
        serde_json::to_string(found).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}
