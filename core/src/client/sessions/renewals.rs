//! Renewals of one session find each other, in every process and under every name: each claims the name of its session's renewals before it
//! is first sent. A renewal without its caller's own name is put there; another one leaves a marker there, which says where its record is.
//! A renewal that finds one in doubt there refuses, since that one may have been paid.

use crate::client::deferred::Deferred;
use crate::client::jobs::job::{Entry, Parked};
use crate::client::names::deletion::done_kept_for;
use crate::client::requests::{NameRequest, RequestKind, StoredRecord};
use crate::client::router::Router;
use crate::client::types::busy;
use crate::contract::Operation;
use crate::contract::agent::RenewSession;
use crate::engine::{Input, Stored};
use crate::policy::{Advice, Effect, Error, Kind, Rule, look_advice};
use crate::state::{Data, JobId, Name, SavedCall, User, WriteResult};

impl Router {
    /// The name that a renewal is to claim before its record is put: none where it has it, and of what is no renewal. One that came out of
    /// its record has it.
    pub(crate) fn renewals_to_claim(&self, id: JobId) -> Option<Name> {
        let entry = self.jobs.get(id)?;
        let write = entry.job.write().filter(|write| write.call.exchange.endpoint.name == RenewSession::ENDPOINT.name)?;
        let record = &entry.record;
        let has_it = match record.bought_as {
            Some(_) => record.rare.as_ref().is_some_and(|rare| rare.marker.is_some()),
            None => record.name.is_some(),
        };
        let shares = self.holds(Rule::RenewalsShareAName);
        (shares && !has_it && !write.restored)
            .then(|| self.account.space().renewals(entry.subject.session_id.as_deref().unwrap_or_default()))
    }

    /// The name of its session's renewals is claimed for one: it is put there, unless another one is in doubt.
    pub(crate) fn admit_renewal(&mut self, name: &Name, id: JobId, found: &StoredRecord) {
        let Some(entry) = self.jobs.get(id) else { return };
        let (own, session) = (entry.record.name.clone(), entry.subject.session_id.clone().unwrap_or_default());
        let marked = if let StoredRecord::Readable(data) = found { data.renewal.clone() } else { None };
        match marked.filter(|marked| own.as_ref() != Some(marked)) {
            _ if !entry.wanted => self.deferred.push(Deferred::Tell(id, Input::Stored(Stored::Failed))),
            // The renewal is under another name, if there is one.
            Some(marked) => {
                self.journal.give(name, Some(User::Marker(id)));
                self.request_name(&marked, NameRequest::new(None, RequestKind::Marked(id, name.clone())));
            }
            None => match self.refusal_by(name, found, &session) {
                Some(fields) => self.refuse_renewal(id, fields, [name].into_iter()),
                None => match found {
                    StoredRecord::Readable(data) if data.done.is_some() => self.move_result(name, id, data),
                    _ => self.put_renewal(name, id),
                },
            },
        }
    }

    /// The result of an earlier renewal, which nobody may have heard of, is where this one's record will be: first it is put under another
    /// name.
    fn move_result(&mut self, name: &Name, id: JobId, found: &Data) {
        let to = self.make_name(None);
        self.journal.give(name, Some(User::Marker(id)));
        self.jobs.park(id, Parked::Moving { from: name.clone(), to: to.clone() });
        self.put(&to, found.clone(), found.done.as_ref().and_then(done_kept_for), false, Some(id));
    }

    /// The result of an earlier renewal is under another name, or could not be put there.
    pub(crate) fn result_moved(&mut self, id: JobId, from: &Name, to: &Name, written: WriteResult) {
        match written == WriteResult::Done && self.commands.move_result(from, to) {
            true => self.journal.give(to, Some(User::Result)),
            false => self.release(to),
        }
        let is_held = self.journal.user(from) == Some(&User::Marker(id));
        match written {
            WriteResult::Done if is_held => {
                self.jobs.park(id, Parked::Storing);
                self.put_renewal(from, id);
            }
            _ => {
                if is_held {
                    self.let_go_of_renewals(from);
                }
                self.deferred.push(Deferred::Tell(id, Input::Stored(Stored::Failed)));
            }
        }
    }

    /// Takes the data under the name of a marker.
    pub(crate) fn admit_marked(&mut self, marked: &Name, id: JobId, name: &Name, found: &StoredRecord) {
        let Some(entry) = self.jobs.get(id).filter(|entry| entry.wanted) else {
            self.let_go_of_renewals(name);
            return self.deferred.push(Deferred::Tell(id, Input::Stored(Stored::Failed)));
        };
        let session = entry.subject.session_id.clone().unwrap_or_default();
        match self.refusal_by(marked, found, &session) {
            Some(fields) => self.refuse_renewal(id, fields, [marked, name].into_iter()),
            None => self.put_renewal(name, id),
        }
    }

    /// Another client, or another call of this one, has the name of the session's renewals, or what the marker there says.
    pub(crate) fn renewal_is_busy(&mut self, id: JobId, marker: Option<&Name>) {
        let what = "was not sent, because another renewal of this session is under way";
        self.refuse_renewal(id, busy(RenewSession::ENDPOINT.name, what), marker.into_iter());
    }

    /// The store could not say what is there.
    pub(crate) fn renewal_not_stored(&mut self, id: JobId, marker: Option<&Name>) {
        marker.into_iter().for_each(|name| self.let_go_of_renewals(name));
        self.deferred.push(Deferred::Tell(id, Input::Stored(Stored::Failed)));
    }

    /// Why a renewal is not sent, by what is under a name.
    fn refusal_by(&self, name: &Name, found: &StoredRecord, session: &str) -> Option<Error> {
        let operation = RenewSession::ENDPOINT.name;
        let record = self.journal.record_of(name).map(|record| record.0);
        match found {
            StoredRecord::Empty => None,
            StoredRecord::Unreadable(bad, _) => Some(
                crate::client::begin::start::unreadable(operation, bad, Effect::None, self.lacks_key()).with(|new| new.record = record),
            ),
            StoredRecord::Readable(data) => data.call.as_ref().filter(|call| is_renewal_of(call, session)).map(|call| {
                let what = "was not sent, because an earlier renewal of this session may have been paid; resume or settle that one first";
                let advice =
                    if call.can_resume() { Advice::Resume } else { look_advice(RenewSession::ENDPOINT).unwrap_or(Advice::CheckAccount) };
                Error::new(Kind::Busy, Effect::None, operation, what, advice).with(|new| new.record = record)
            }),
        }
    }

    /// Ends a renewal that was not sent, once these names were let go of.
    fn refuse_renewal<'a>(&mut self, id: JobId, error: Error, names: impl Iterator<Item = &'a Name>) {
        for name in names {
            self.let_go_of_renewals(name);
            self.jobs.waits_for(id, name);
        }
        let Some(Entry { subject, .. }) = self.jobs.get(id) else { return };
        let session_id = subject.session_id.as_ref().map(|session| session.to_string());
        let intent = subject.intent.as_ref().map(|intent| intent.to_string());
        self.finish(
            id,
            Err(error.with(|new| {
                new.session_id = session_id;
                new.intent = intent;
            })),
        );
    }

    /// Nothing holds it back: its record is put under the name of the session's renewals, or a marker, and then its record.
    fn put_renewal(&mut self, name: &Name, id: JobId) {
        if self.jobs.get(id).is_none() {
            return;
        }
        match self.jobs.put_renewal(id, name) {
            None => {
                self.journal.give(name, Some(User::Job(id)));
                self.put_job(id, Some(id));
            }
            Some(own) => {
                self.journal.give(name, Some(User::Marker(id)));
                let data = Data { renewal: Some(own), ..self.data(None) };
                self.put(name, data, None, false, Some(id));
            }
        }
    }
}

pub(crate) fn is_renewal_of(call: &SavedCall, session: &str) -> bool {
    call.operation == RenewSession::ENDPOINT.name && call.session_id.as_deref() == Some(session) && !call.refused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{NOW, agent, go_on};
    use crate::client::{CallOptions, Client, Outcome, Step, StoreAnswer, StoreCall};
    use crate::state::Memory;

    const RENEWAL: &str = r#"{"session_id":"s-1","duration":1}"#;

    /// Answers what the store is asked next, and returns that.
    fn answer(client: &mut Client, disk: &mut Memory) -> StoreCall {
        let Step::Store { id, call, .. } = client.poll(NOW) else { panic!("the store is asked") };
        client.resolve(id, Outcome::Store(disk.call(call.clone(), NOW.unix, NOW.monotonic)), NOW).expect("is out");
        call
    }

    #[test]
    fn a_renewal_whose_name_is_lost_while_it_claims_that_of_its_session_puts_nothing_and_holds_up_nobody() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        let start = |client: &mut Client| client.start_json("renew_session", RENEWAL, CallOptions::intent("job"));
        let lost = start(&mut client);
        answer(&mut client, &mut disk);
        let Step::Store { id: of_renewals, call, .. } = client.poll(NOW) else { panic!("the name of the renewals is claimed") };
        client.lost(None, NOW);
        let claimed = disk.call(call, NOW.unix, NOW.monotonic);
        client.resolve(of_renewals, Outcome::Store(claimed), NOW).expect("is out");
        let Step::Store { id: of_renewals, call: again, .. } = client.poll(NOW) else { panic!("it is claimed again") };
        // Meanwhile somebody asks for its intent, so its name is this client's once more, and the store does not let go of it.
        client.resume_intent("job", CallOptions::default());
        answer(&mut client, &mut disk);
        let Step::Store { id: release, call: StoreCall::Release { .. }, .. } = client.poll(NOW) else { panic!("it is let go of") };
        client.resolve(release, Outcome::Store(StoreAnswer::Failed), NOW).expect("is out");
        let claimed = disk.call(again, NOW.unix, NOW.monotonic);
        client.resolve(of_renewals, Outcome::Store(claimed), NOW).expect("is out");
        go_on(&mut client, &mut disk, NOW, |request| panic!("{} is sent", request.url));
        let error = client.take_answer(lost).expect("has completed").expect_err("has lost its name");
        assert_eq!((error.kind, error.effect), (Kind::Busy, Effect::None), "{error}");
        let next = start(&mut client);
        let mut sends = 0;
        go_on(&mut client, &mut disk, NOW, |_| {
            sends += 1;
            (200, r#"{"success":true,"data":{"session_id":"s-1"}}"#.to_owned())
        });
        client.take_answer(next).expect("has completed").expect("was renewed");
        assert_eq!(sends, 1);
    }

    #[test]
    fn a_renewal_whose_marker_speaks_of_a_result_that_nobody_has_taken_is_held_back_by_nothing() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        let start = |client: &mut Client, intent: &str| client.start_json("renew_session", RENEWAL, CallOptions::intent(intent));
        start(&mut client, "may");
        go_on(&mut client, &mut disk, NOW, |_| (401, r#"{"success":false,"error":{"code":"AUTH_INVALID_KEY"}}"#.to_owned()));
        // No marker is put to a name of this kind today.
        let named = client.router.account.space().intent("may");
        let marker = Data { renewal: Some(named.clone()), ..client.router.data(None) };
        let at = client.router.account.space().renewals("s-1");
        client.router.journal.make(at.clone(), None);
        client.router.put(&at, marker, None, true, None);
        go_on(&mut client, &mut disk, NOW, |request| panic!("{} is sent", request.url));
        client.router.journal.make(named.clone(), Some(User::Result));
        let june = start(&mut client, "june");
        let mut sends = 0;
        go_on(&mut client, &mut disk, NOW, |_| {
            sends += 1;
            (200, r#"{"success":true,"data":{"session_id":"s-1"}}"#.to_owned())
        });
        client.take_answer(june).expect("has completed").expect("was renewed");
        assert_eq!((sends, client.router.journal.user(&named)), (1, Some(&User::Result)));
    }
}
