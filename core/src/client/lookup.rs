//! Looking for what became of an operation in doubt.

use super::options::CallOptions;
use super::people::name_of;
use super::root::Client;
use super::types::{Misfit, Outputs, Ticket};
use crate::contract::{Json, Reconciliation};
use crate::engine::{Answered, Lookup, RecordId};
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

    /// What was found, with the records of what is known to be something else.
    pub(super) fn reconciled(lookup: &mut Lookup) -> Json {
        for candidate in &mut lookup.found.candidates {
            let name = name_of(&lookup.found.operation, &Facts::of(candidate.item.text(), None));
            let record = lookup.others.iter().find(|(became, _)| Some(became) == name.as_ref());
            candidate.record = record.map(|(_, record)| record.0.clone());
        }
        serde_json::to_string(&lookup.found).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
    }
}
