//! The end of a path of the reseller API: a person looks at what the reconcile shows, settles the doubts by the truth, and
//! starts the job once more.

use std::collections::BTreeSet;

use hopline::client::{Holds, RecordId, Settlement};
use serde::Deserialize;

use crate::path::Path;
use crate::story::REMARK;

/// What a reconcile answers.
#[derive(Deserialize)]
pub(crate) struct Reconciled {
    candidates: Vec<Candidate>,
    complete: bool,
}

#[derive(Deserialize)]
struct Candidate {
    item: serde_json::Value,
}

impl Reconciled {
    /// What the candidates are known by: the numbers of orders, the remarks of adjustments. None if it is not complete.
    pub(crate) fn read(answer: &str) -> Option<Vec<String>> {
        let answer: Reconciled = serde_json::from_str(answer).ok().filter(|answer: &Reconciled| answer.complete)?;
        let names = answer.candidates.iter().flat_map(|candidate| [candidate.item.get("orderNo"), candidate.item.get("remark")]);
        Some(names.flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect())
    }
}

impl Path<'_> {
    /// Checks what must be true, and closes what is open.
    pub(crate) fn close(&mut self) -> Result<(), String> {
        let story = self.scope.story;
        let done = story.effects(&mut self.world) - self.told.before;
        if done > 1 {
            return Err(format!("it was done {done} times for one intent"));
        }
        if self.told.none && done > 0 {
            return Err("it was said that nothing happened, and it did".into());
        }
        let saved = self.client.saved();
        let known: BTreeSet<String> = saved.iter().filter_map(|saved| saved.order_no.clone()).chain(self.told.orders.clone()).collect();
        let doubts: Vec<RecordId> = saved
            .iter()
            .filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood))
            .map(|saved| saved.record.clone())
            .collect();
        let mut shown = BTreeSet::new();
        for record in &doubts {
            shown.extend(self.reconcile(record)?);
        }
        let accepted = self.told.answered || saved.iter().any(|saved| saved.holds == Holds::Accepted);
        let lost: Vec<String> = match story.orders() {
            true => self.placed().filter(|order| !known.contains(order) && !shown.contains(order)).collect(),
            false => (done > 0 && !accepted && !shown.contains(REMARK)).then(|| REMARK.to_owned()).into_iter().collect(),
        };
        if !lost.is_empty() {
            return Err(format!("accepted and lost without a word: {lost:?}"));
        }
        if let Some(order) = self.told.followed.iter().find(|order| !known.contains(*order)) {
            return Err(format!("the number of an order was known and is known no more: {order}"));
        }
        let found = if story.orders() { self.placed().find(|order| shown.contains(order)) } else { None };
        for record in &doubts {
            let settled = match &found {
                Some(order) => self.client.settle_as(record, order).unwrap_or_default(),
                None => self.client.settle(record, if done > 0 { Settlement::Happened } else { Settlement::NotHappened }),
            };
            if !settled {
                return Err(format!("the doubt of {record} can't be settled"));
            }
        }
        // The intent of what did not happen is free once its record is gone.
        self.drain(None)?;
        if story.intent().is_none() {
            return Ok(());
        }
        self.drive_again()?;
        if found.is_some_and(|order| !self.told.orders.contains(&order)) {
            return Err("the order that a person found is not what its intent goes on with".to_owned());
        }
        match story.effects(&mut self.world) - self.told.before {
            1 => Ok(()),
            done => Err(format!("it was done {done} times for one intent, with every doubt settled")),
        }
    }

    fn placed(&mut self) -> impl Iterator<Item = String> + use<> {
        self.world.service.backend(self.world.now.unix).static_orders.into_iter().skip(self.told.before).map(|order| order.order_no)
    }

    /// What may be it.
    fn reconcile(&mut self, record: &RecordId) -> Result<Vec<String>, String> {
        let told = self.told.clone();
        self.told.last = None;
        let params = serde_json::json!({ "record": record.to_string() }).to_string();
        let command = self.client.start_json("reconcile", &params, Default::default());
        self.drain(Some(command))?;
        let told = std::mem::replace(&mut self.told, told);
        told.last.and_then(|answer| Reconciled::read(&answer)).ok_or_else(|| "the reconcile does not show all there is".to_owned())
    }
}
