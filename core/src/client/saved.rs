//! What the store holds, for people: doubts, sessions, accepted intents.

use super::root::Client;
use crate::state::{Holds, Intent, Saved};

impl Client {
    /// What the store holds, as far as this client knows. Nothing is sent.
    pub fn saved(&self) -> Vec<Saved> {
        let jobs = self.jobs.values().filter_map(|entry| {
            let (order, subject) = (entry.job.order(), &entry.subject);
            let holds = match () {
                () if !entry.is_resting() => Holds::UnderWay,
                () if order.is_some() => Holds::Order,
                () if entry.job.can_resume(self.rules) => Holds::InDoubt,
                () => Holds::InDoubtForGood,
            };
            Some(Saved {
                record: entry.custody.record.clone()?,
                operation: subject.operation.to_owned(),
                intent: subject.intent.clone(),
                session_id: subject.session_id.clone(),
                order_no: subject.order_no.clone(),
                status: order.and_then(|order| order.status.clone()),
                holds,
                reason: None,
                in_doubt_since: entry.custody.doubt_since.filter(|_| entry.is_in_doubt()),
            })
        });
        let sessions = self.sessions.iter().filter_map(|(id, tracked)| {
            Some(Saved {
                record: tracked.record.clone()?,
                operation: "create_session".to_owned(),
                intent: tracked.intent.clone().map(|(name, _)| name),
                session_id: Some(id.clone()),
                order_no: None,
                status: tracked.status.clone(),
                holds: if tracked.is_over() && tracked.intent.as_ref().is_some_and(|(name, _)| self.accepted_as(name, id)) {
                    Holds::Accepted
                } else {
                    Holds::Session
                },
                reason: None,
                in_doubt_since: None,
            })
        });
        let intents = self.intents.iter().filter_map(|(name, intent)| match intent {
            Intent::Accepted(accepted) => Some(Saved {
                record: accepted.record.clone()?,
                operation: accepted.operation.to_owned(),
                intent: Some(name.clone()),
                session_id: accepted.facts.session_id.clone(),
                order_no: accepted.facts.order_no.clone(),
                status: accepted.facts.status.clone(),
                holds: Holds::Accepted,
                reason: None,
                in_doubt_since: None,
            }),
            Intent::Active(_) => None,
        });
        let untaken = self.untaken.iter().map(|(record, untaken)| untaken.shown(record));
        jobs.chain(sessions).chain(intents).chain(untaken).chain(self.refused_records()).collect()
    }
}
