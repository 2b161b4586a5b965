//! The outcomes of steps, on their way to the waiting jobs and commands.

use crate::client::deferred::Deferred;
use crate::client::doubts::became::Made;
use crate::client::end::commands::PendingWrite;
use crate::client::news::{PoolEvent, PoolEventKind, PoolNo};
use crate::client::outbox::Pending;
use crate::client::requests::{Listing, ListingPurpose, NameRequest, RequestKind, StoredRecord};
use crate::client::router::Router;
use crate::client::text::event::Event;
use crate::client::types::{Misuse, Outcome};
use crate::contract::agent::CreateSession;
use crate::contract::{Json, Operation, json_of};
use crate::engine::{Answered, EventKind, Input, RecordId};
use crate::policy::{Advice, Effect, Error, FailureKind, Kind, Rule, Sent};
use crate::state::{Listed, Name, SavedPage, SharedKind, StepId, StoreAnswer, User, Version, WriteResult};
use crate::time::{Millis, Now};
use crate::wire::Facts;
use crate::{engine, wire};

/// A write that has failed is made again so long after that at the latest, once the store answers something else.
const WRITE_SOON: Millis = 5000;

impl Router {
    /// Takes in what came of a step.
    pub(super) fn resolve(&mut self, id: StepId, outcome: Outcome<'_>, now: Now) -> Result<(), Misuse> {
        self.outbox.check(id, &outcome)?;
        self.tick(now);
        match outcome {
            Outcome::Store(answer) => self.on_store(id, answer),
            Outcome::Response { status, headers, body, truncated } => {
                self.received(id, engine::SendResult::Response(wire::Received { status, headers, body, truncated }));
            }
            Outcome::Read(response) => self.received(id, engine::SendResult::Read(response)),
            Outcome::Failed { kind, sent } => self.received(id, engine::SendResult::Failed(kind, sent)),
        }
        Ok(())
    }

    /// Resolves a Send that was not sent, since a header of the caller's own can't be sent with it; `rule` says which one and why, as the end of a sentence.
    pub(super) fn refuse_headers(&mut self, id: StepId, rule: &str, now: Now) -> Result<(), Misuse> {
        match self.outbox.purpose(id) {
            Some(Pending::Send(_) | Pending::Shared(SharedKind::Login)) => {
                self.tick(now);
                self.received(id, engine::SendResult::Unfit(rule));
                Ok(())
            }
            _ => self.resolve(id, Outcome::Failed { kind: FailureKind::Other, sent: Sent::Never }, now),
        }
    }

    /// Passes an HTTP outcome to the job that waits for it.
    fn received(&mut self, step: StepId, received: engine::SendResult<'_>) {
        match self.outbox.take_purpose(step) {
            Some(Pending::Send(job)) => self.tell(job, Input::Response(received)),
            Some(Pending::Shared(kind)) => self.on_shared_response(kind, step, received),
            _ => {}
        }
    }
}

impl Router {
    /// Takes in what a store answered.
    pub(crate) fn on_store(&mut self, id: StepId, answer: StoreAnswer) {
        let (pending, answer) = self.outbox.answered(id, answer, self.holds(Rule::UnfitIsNoAnswer));
        if !matches!(answer, StoreAnswer::Failed | StoreAnswer::Never) {
            self.write_again_soon();
        }
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

    /// The store works: what failed is written again soon, and not as late as it would be after many failures. A write that the store refuses
    /// for a reason of its own is not repeated all the time.
    fn write_again_soon(&mut self) {
        for (name, rest) in self.journal.resting() {
            if let Some(at) = self.timers.of_name(&name) {
                let soon = at.saturating_sub(rest).saturating_add(WRITE_SOON).max(self.now());
                self.timers.set_name(&name, soon);
            }
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
                Some(data) if !has_ended => claimed.extend(self.take_in_slot(pool, name, data)),
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
        let found = claimed.into_iter().filter(|(name, _)| self.journal.user(name) == Some(&User::Pool(pool))).collect();
        let what = if is_known { PoolEventKind::Claimed { asked: names, found } } else { PoolEventKind::NotClaimed };
        self.news.push_back(PoolEvent { pool, what });
    }

    /// A page was read, or could not be.
    pub(crate) fn on_listed(&mut self, number: u32, answer: StoreAnswer) {
        let Some(Listing { command, what }) = self.listings.remove(&number) else { return };
        if let ListingPurpose::Settings(newer) = what {
            return self.on_settings(number, command, newer, answer);
        }
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
            ListingPurpose::Resuming { .. } | ListingPurpose::Settings(_) => {}
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
    use crate::client::testing::{BUY, NOW, agent, go_on, reseller, saved};
    use crate::client::{CallOptions, Client, Outcome, Step};
    use crate::contract::{Endpoint, Text};
    use crate::state::{CommandId, Memory, Space, StoreCall, Whose};
    use crate::wire::{Expected, Received, read};

    const RULE: &str = "has a value of `x` that is not visible ASCII";

    /// Refuses the headers of each Send but the first `answered`, which get these bodies; how many there were.
    fn run(client: &mut Client, command: CommandId, answered: &[Option<&str>]) -> (usize, Error) {
        let (mut now, mut sends) = (NOW, 0);
        loop {
            match client.poll(now) {
                Step::Send { id, .. } => {
                    match answered.get(sends) {
                        Some(Some(body)) => {
                            let response = Outcome::Response { status: 202, headers: &[], body: body.as_bytes(), truncated: false };
                            client.resolve(id, response, now)
                        }
                        Some(None) => client.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }, now),
                        None => client.refuse_headers(id, RULE, now),
                    }
                    .expect("is answered once");
                    sends += 1;
                }
                Step::Wait { until: Some(until) } => now.monotonic = until,
                Step::Wait { until: None } => {
                    let result = client.take_answer(command).expect("has completed");
                    return (sends, result.expect_err("is refused"));
                }
                _ => {}
            }
        }
    }

    /// Returns the result of a purchase after a response that is read in this way.
    fn bought(body: &str, outcome: impl Fn(Expected, Received<'_>, &mut dyn FnMut(Outcome<'_>))) -> String {
        let mut client = agent(7, false);
        let command = client.start_json("create_session", BUY, CallOptions::default());
        loop {
            match client.poll(NOW) {
                Step::Send { id, request, .. } => {
                    let received = Received { status: 202, headers: &[], body: body.as_bytes(), truncated: false };
                    outcome(request.expects, received, &mut |outcome| client.resolve(id, outcome, NOW).expect("is answered once"));
                }
                Step::Wait { until: None } => {
                    // The answer is read once more for the findings of core itself.
                    let whole = |mut answered: Answered| Answered { reading: Some(answered.reading()), ..answered };
                    return format!("{:?}", client.take_answer(command).expect("has completed").map(whole));
                }
                Step::Wait { until: Some(_) } => return "is sent again".to_owned(),
                _ => {}
            }
        }
    }

    #[test]
    fn a_response_that_the_host_has_read_says_the_same() {
        const LOGIN: &Endpoint = crate::contract::reseller::Login::ENDPOINT;
        for body in [
            r#"{"success":true,"data":{"session_id":"s-1","status":"creating","estimated_charge_usd":4.50}}"#,
            r#"{"success":true,"data":{"session_id":7}}"#,
            r#"{"success":false,"error":{"code":"INSUFFICIENT_BALANCE","message":"no"}}"#,
            r#"{"code":0,"data":{"session_id":"s-1","status":"creating"}}"#,
            "<html>",
            r#"{"success":true,"data":{"#,
        ] {
            let here = bought(body, |_, Received { status, headers, body, truncated }, resolve| {
                resolve(Outcome::Response { status, headers, body, truncated });
            });
            let there = bought(body, |expects, received, resolve| resolve(Outcome::Read(read(expects, received, &mut Text::default()).0)));
            let as_another = bought(body, |_, received, resolve| resolve(Outcome::Read(read(Expected::of(LOGIN, 9), received, &mut ()).0)));
            assert_eq!((&there, &as_another), (&here, &here), "{body}");
        }
    }

    #[test]
    fn nothing_is_repeated_and_the_headers_are_named() {
        for operation in ["create_session", "open_session"] {
            for more in [CallOptions::default(), CallOptions { max_unit_price: "1".parse().ok(), ..CallOptions::intent("job") }] {
                let mut client = agent(7, false);
                let command = client.start_json(operation, BUY, more);
                let (sends, error) = run(&mut client, command, &[]);
                let said = (error.kind, error.effect, error.field.as_deref(), error.attempts, sends);
                assert_eq!(said, (Kind::Invalid, Effect::None, Some("headers"), 0, 1), "{error}");
                assert!(error.to_string().contains(RULE) && saved(&mut client).is_empty(), "{error}");
            }
        }
    }

    #[test]
    fn what_may_have_been_bought_stays_in_doubt_and_what_was_is_done() {
        let mut client = agent(7, false);
        let command = client.start_json("create_session", BUY, CallOptions::intent("job"));
        let (sends, error) = run(&mut client, command, &[None]);
        assert_eq!((error.kind, error.effect, error.record.is_some(), sends), (Kind::InDoubt, Effect::Unknown, true, 2), "{error}");
        let mut client = agent(7, false);
        let command = client.start_json("open_session", BUY, CallOptions::default());
        let bought = r#"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#;
        let (sends, error) = run(&mut client, command, &[Some(bought)]);
        assert_eq!(
            (error.kind, error.effect, error.session_id.as_deref(), sends),
            (Kind::Invalid, Effect::Done, Some("s-1"), 2),
            "{error}"
        );
    }

    #[test]
    fn a_login_is_not_repeated_either() {
        let mut client = reseller(7, None, false);
        let command = client.start_json("get_dashboard", "{}", CallOptions::default());
        let (sends, error) = run(&mut client, command, &[]);
        assert_eq!((error.kind, error.effect, error.field.as_deref(), sends), (Kind::Invalid, Effect::None, Some("headers"), 1), "{error}");
    }

    #[test]
    fn a_restored_write_without_a_key_needs_a_login_and_no_age() {
        let (mut first, mut disk) = (reseller(1, Some("a-token"), true), Memory::default());
        let params = r#"{"method":"PUT","path":"/x","safety":"idempotent"}"#;
        first.start_json("request", params, CallOptions::default());
        let record = loop {
            if let Step::Store { call, .. } = first.poll(NOW) {
                let StoreCall::Put { name, .. } = &call else { panic!("a name of its own is not claimed") };
                let record = name.at(crate::state::Version::default());
                disk.call(call, NOW.unix, 0);
                break record;
            }
        };
        let mut second = reseller(2, None, true);
        let command = second.resume(&record, CallOptions::default());
        go_on(&mut second, &mut disk, NOW, |request| {
            let body = if request.url.ends_with("/auth/login") { r#"{"token":"another"}"# } else { "{}" };
            (200, format!(r#"{{"code":0,"message":"ok","data":{body}}}"#))
        });
        assert_eq!(second.take_answer(command).expect("has completed").map(|_| ()).map_err(|error| error.to_string()), Ok(()));
    }

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
