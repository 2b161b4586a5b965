//! The store's answers, on their way to the waiting commands.

use crate::client::deferred::Deferred;
use crate::client::doubts::became::Made;
use crate::client::end::commands::PendingWrite;
use crate::client::news::{PoolEvent, PoolEventKind, PoolNo};
use crate::client::outbox::Pending;
use crate::client::requests::{Listing, ListingPurpose, NameRequest, RequestKind, StoredRecord};
use crate::client::router::Router;
use crate::client::text::event::Event;
use crate::contract::agent::CreateSession;
use crate::contract::{Json, Operation, json_of};
use crate::engine::{Answered, EventKind, RecordId};
use crate::policy::{Advice, Effect, Error, Kind, Rule};
use crate::state::{Listed, Name, SavedPage, StepId, StoreAnswer, User, Version, WriteResult};
use crate::wire::Facts;

impl Router {
    /// Takes in what a store answered.
    pub(crate) fn on_store(&mut self, id: StepId, answer: StoreAnswer) {
        let (pending, answer) = self.outbox.answered(id, answer, self.holds(Rule::UnfitIsNoAnswer));
        match pending {
            Some(Pending::Claim(name)) => self.on_claimed(&name, answer),
            Some(Pending::Slots(pool, names)) => self.on_slots(pool, names, answer),
            Some(Pending::PoolClaim(pool)) => self.on_pool_claimed(pool, answer),
            Some(Pending::PoolPut(pool)) => self.on_pool_put(pool, &answer),
            Some(Pending::PoolList(pool)) => self.on_pool_listed(pool, answer),
            Some(Pending::Write(name)) => self.on_written(&name, &answer),
            Some(Pending::List(listing)) => self.on_listed(listing, answer),
            Some(Pending::Count(job, counting)) => self.on_counted(job, *counting, &answer),
            Some(Pending::Spend(number)) => self.spend(|spending, actions| spending.on_set(number, &answer, actions)),
            Some(Pending::Send(_) | Pending::Shared(_)) | None => {}
        }
    }

    /// Takes the outcome of a claim: the data, another owner, or unknown.
    pub(crate) fn on_claimed(&mut self, name: &Name, answer: StoreAnswer) {
        match answer {
            // The claim has ended before its answer came.
            StoreAnswer::Claimed(_) if self.journal.has_ended(name) => {
                // The name is claimed again for waiting commands; without any, a claim that the store may have granted since is released.
                let is_wanted = self.name_requests.are_for(name);
                self.journal.claimed(name, !is_wanted, None);
                self.attend(name);
                self.release(name);
            }
            StoreAnswer::Claimed(names) => {
                let data = names.into_iter().find(|(known, _)| known == name).and_then(|(_, data)| data);
                let found = self.own_record(name, data.as_deref());
                self.deferred.push(Deferred::LetIn(name.clone(), Box::new(found)));
                self.deferred.push(Deferred::Attend(name.clone()));
            }
            StoreAnswer::Busy(data) => {
                self.journal.claimed(name, false, None);
                let found = data.map_or(StoredRecord::Empty, |data| self.read_record(&data));
                for request in self.name_requests.take_all(name) {
                    self.is_busy(name, request, &found);
                }
                self.answered(&PendingWrite::Name(name.clone()), None);
            }
            // The name may be this client's now.
            _ => {
                self.journal.claimed(name, true, None);
                self.release(name);
                self.store_fails(name, "could not be read");
            }
        }
    }

    /// A write of a name was answered.
    pub(crate) fn on_written(&mut self, name: &Name, answer: &StoreAnswer) {
        let written = match answer {
            StoreAnswer::Done => WriteResult::Done,
            StoreAnswer::Lost => WriteResult::Lost,
            StoreAnswer::Never => WriteResult::Never,
            _ => WriteResult::Failed,
        };
        let version = self.journal.version(name);
        let after = self.journal.written(name, written);
        if after.result == WriteResult::Failed && after.waiters.is_empty() {
            let what = EventKind::StoreFailed { record: name.at(version) };
            self.outbox.notify(Event { command: None, operation: "store", intent: None, what });
        }
        if let Some(again) = after.again {
            self.timers.set_name(name, self.now().saturating_add(again));
            self.store_fails(name, "could not write its record");
        }
        if let Some(user) = after.lost {
            self.name_is_taken_over(user, name);
        }
        self.answered(&PendingWrite::Name(name.clone()), Some(after.result));
        for id in after.waiters {
            if after.was_there {
                self.rename(id);
                continue;
            }
            if after.result != WriteResult::Lost {
                self.jobs.was_put(id, version);
            }
            self.stored(id, after.result);
        }
        self.deferred.push(Deferred::Next(name.clone()));
        self.deferred.push(Deferred::Attend(name.clone()));
    }

    /// Slots were claimed, or other clients have them, or nobody knows.
    pub(crate) fn on_slots(&mut self, pool: PoolNo, names: Vec<Name>, answer: StoreAnswer) {
        let is_known = matches!(answer, StoreAnswer::Claimed(_) | StoreAnswer::Busy(_));
        let mut granted = if let StoreAnswer::Claimed(granted) = answer { granted } else { Vec::new() };
        let mut claimed = Vec::new();
        for name in &names {
            let has_ended = self.journal.has_ended(name);
            let data = granted.iter_mut().find(|(known, _)| known == name).map(|(_, data)| data.take());
            match data {
                Some(data) if !has_ended => claimed.extend(self.take_in_slot(name, data)),
                None if is_known && !has_ended => self.journal.claimed(name, false, None),
                // The name may be this client's now.
                _ => {
                    self.journal.claimed(name, true, None);
                    self.release(name);
                }
            }
            self.answered(&PendingWrite::Name(name.clone()), None);
            self.attend(name);
        }
        let found = claimed.into_iter().filter(|(name, _)| self.journal.user(name) == Some(&User::Pool)).collect();
        let what = if is_known { PoolEventKind::Claimed { asked: names, found } } else { PoolEventKind::NotClaimed };
        self.news.push_back(PoolEvent { pool, what });
    }

    /// A page was read, or could not be.
    pub(crate) fn on_listed(&mut self, number: u32, answer: StoreAnswer) {
        let Some(Listing { command, what }) = self.listings.remove(&number) else { return };
        let StoreAnswer::Listed { entries, more } = answer else {
            let operation = self.commands.operation(command).unwrap_or("saved");
            let what = "could not be done, because the store could not be read";
            return self.complete(command, Err(Error::new(Kind::Store, Effect::None, operation, what, Advice::MendStore)));
        };
        let after = entries.last().filter(|_| more).map(|listed| listed.name.clone());
        match what {
            ListingPurpose::Page => {
                let entries = entries.into_iter().filter_map(|listed| self.shown(&listed)).collect();
                let raw = Json::checked(json_of(&SavedPage { entries, after }));
                self.complete(command, Ok(Answered { raw, ..Answered::of(Facts::default()) }));
            }
            ListingPurpose::Open { mut found, options } => {
                found.extend(entries.into_iter().filter(|listed| self.is_to_resume(listed)).map(|listed| listed.name));
                if after.is_some() {
                    return self.list(Listing { command, what: ListingPurpose::Open { found, options } }, after, true);
                }
                if !found.is_empty() {
                    let at = usize::try_from(self.roll() % found.len() as u64).unwrap_or_default();
                    found.rotate_left(at);
                }
                found.reverse();
                let what = ListingPurpose::Resuming { waiting: found, out: 0, ended: Vec::new(), options };
                self.listings.put_back(number, Listing { command, what });
                self.resume_more(number);
            }
            ListingPurpose::Others(name, mut act) => {
                act.others.extend(entries.iter().filter_map(|listed| self.stands_for(listed)));
                match after {
                    Some(after) => self.list(Listing { command, what: ListingPurpose::Others(name, act) }, Some(after), false),
                    None => self.request_name(&name, NameRequest::new(Some(command), RequestKind::Act(act))),
                }
            }
            ListingPurpose::Resuming { .. } => {}
        }
    }

    /// The operation and the result of another record.
    pub(crate) fn stands_for(&mut self, listed: &Listed) -> Option<(String, String, RecordId)> {
        let StoredRecord::Readable(data) = self.read_record(&listed.data) else { return None };
        let record = listed.name.at(Version::of(&listed.data));
        let (operation, facts) = match (data.session, data.call, data.done) {
            (Some(session), ..) => (CreateSession::ENDPOINT.name.to_owned(), Facts { session_id: Some(session.id), ..Facts::default() }),
            (_, Some(call), _) => (call.operation, Facts { order_no: call.order_no, ..Facts::default() }),
            (.., Some(done)) => (done.operation, done.facts),
            _ => return None,
        };
        let became = Made::by(&operation)?.name(&facts)?;
        Some((operation, became, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, NOW, agent};
    use crate::client::{CallOptions, Client, Outcome, Step};
    use crate::policy::Effect;
    use crate::state::{CommandId, Listed, Space, StoreCall, Whose};

    /// Returns the result of a command whose store answers with names that were not requested.
    fn told(start: impl FnOnce(&mut Client) -> CommandId, wrong: impl Fn(&StoreCall) -> Option<StoreAnswer>) -> (Kind, Effect) {
        let mut client = agent(7, true);
        let command = start(&mut client);
        loop {
            match client.poll(NOW) {
                Step::Store { id, call, .. } => {
                    let answer = wrong(&call).unwrap_or(StoreAnswer::Done);
                    assert!(!matches!(call, StoreCall::Put { .. }), "nothing is put under a name that was not claimed");
                    client.resolve(id, Outcome::Store(answer), NOW).expect("is answered once");
                }
                Step::Send { .. } => panic!("nothing is sent under a name that was not claimed"),
                Step::Wait { .. } => {
                    let error = client.take_answer(command).expect("has completed").expect_err("has failed");
                    return (error.kind, error.effect);
                }
                Step::Completed { .. } | Step::Notify(_) => {}
            }
        }
    }

    #[test]
    fn a_store_that_claims_what_nobody_asked_for_has_failed() {
        let other = Name::from("5e.i0000000000000000000000000000000".to_owned());
        type Claims<'a> = &'a dyn Fn(&Name) -> Vec<(Name, Option<Vec<u8>>)>;
        let claims: [Claims<'_>; 4] =
            [&|_| Vec::new(), &|_| vec![(other.clone(), None)], &|name| vec![(name.clone(), None), (other.clone(), None)], &|name| {
                vec![(name.clone(), None), (name.clone(), None)]
            }];
        for claimed in claims {
            let buy = |client: &mut Client| client.start_json("create_session", BUY, CallOptions::intent("job"));
            let wrong = |call: &StoreCall| match call {
                StoreCall::Claim { names, .. } => names.first().map(|name| StoreAnswer::Claimed(claimed(name))),
                _ => None,
            };
            assert_eq!(told(buy, wrong), (Kind::Store, Effect::Unknown));
        }
    }

    #[test]
    fn a_store_that_lists_what_nobody_asked_for_has_failed() {
        let listed = |space: &Space, names: &[&str]| {
            let name = |hash: &&str| Name::from(format!("{}.r{hash}", space.0));
            names.iter().map(|hash| Listed { name: name(hash), data: b"{}".to_vec(), whose: Whose::Free }).collect::<Vec<_>>()
        };
        type Pages<'a> = &'a dyn Fn(&Space) -> (Vec<Listed>, bool);
        let pages: [Pages<'_>; 4] = [
            // Of another space, out of order, twice the same, and nothing with more behind it.
            &|_| (listed(&Space("5e".to_owned()), &["1"]), false),
            &|space| (listed(space, &["2", "1"]), false),
            &|space| (listed(space, &["1", "1"]), false),
            &|_| (Vec::new(), true),
        ];
        for page in pages {
            let wrong = |call: &StoreCall| match call {
                StoreCall::List { space, .. } => Some(page(space)).map(|(entries, more)| StoreAnswer::Listed { entries, more }),
                _ => None,
            };
            assert_eq!(told(|client| client.saved(None).command, wrong), (Kind::Store, Effect::None));
        }
    }
}
