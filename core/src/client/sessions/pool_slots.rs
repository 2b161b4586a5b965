//! The slots of pools. A slot is one record for one purchase after the other: once its session is over, the next purchase takes its place
//! there, in the put that comes before its send. So a crash leaves the old purchase, whose session is found to be over, or the new one,
//! whose key is sent again. The pool decides when to buy, and for which caller.

use crate::client::begin::same_request::{differing_members, digests};
use crate::client::begin::terms::terms_of;
use crate::client::end::commands::Asker;
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::REMEMBERED;
use crate::client::news::{PoolEvent, PoolEventKind, PoolNo, SlotState, WorkNo};
use crate::client::outbox::Pending;
use crate::client::requests::{Start, StoredRecord};
use crate::client::router::Router;
use crate::contract::agent::CreateSession;
use crate::contract::pools::SlotPurchase;
use crate::contract::{Decimal, Operation};
use crate::engine::Then;
use crate::options::CallOptions;
use crate::policy::Error;
use crate::state::{CommandId, Data, Done, JobId, Name, StoreCall, User};
use crate::wire::{Facts, build};

impl Router {
    /// Claims slots of a pool, at most `most` of these, those with something under them first. The store is not asked for those that this
    /// client has, or is letting go of. Where that is so of all of them since the store failed, it is tried with one; once it works, the
    /// others follow.
    pub(crate) fn claim_slots(&mut self, pool: PoolNo, names: Vec<Name>, most: u32) {
        let (names, kept): (Vec<Name>, Vec<Name>) = names.into_iter().partition(|name| self.journal.claim(name));
        match names.is_empty() {
            true => {
                if let Some(name) = kept.iter().find(|name| self.journal.rests(name)) {
                    self.journal.wake(name);
                    self.push_next(name);
                }
                let what = PoolEventKind::Claimed { asked: Vec::new(), found: Vec::new() };
                self.news.push_back(PoolEvent { pool, what });
            }
            false => {
                let call = StoreCall::Claim { names: names.clone(), most };
                self.push_store(Pending::Slots(pool, names), None, call);
            }
        }
    }

    /// A slot is this client's: it waits for what its pool does with it.
    pub(crate) fn take_in_slot(&mut self, pool: PoolNo, name: &Name, data: Option<Vec<u8>>) -> Option<(Name, SlotState)> {
        let found = self.own_record(name, data.as_deref());
        let slot = state_of(&found);
        self.journal.give(name, Some(User::Pool(pool)));
        self.slots.insert(name.clone(), found);
        Some((name.clone(), slot))
    }

    /// Takes the content of a claimed slot, for the request that is let in now.
    pub(crate) fn take_slot(&mut self, name: &Name) -> StoredRecord {
        self.journal.give(name, None);
        self.slots.remove(name).unwrap_or(StoredRecord::Empty)
    }

    /// A claimed slot is this client's no more.
    pub(crate) fn drop_slot(&mut self, name: &Name) {
        self.slots.remove(name);
    }

    /// Lets go of a slot that was claimed and not opened.
    pub(crate) fn release_slot(&mut self, name: &Name) {
        if matches!(self.journal.user(name), Some(User::Pool(_))) {
            self.take_slot(name);
            self.release(name);
        }
    }

    /// Returns true if a claimed slot holds a session, or a purchase, of another request than this; quantity and duration do not count.
    pub(crate) fn is_slot_of_another(&self, name: &Name, params: &str) -> bool {
        let Some(StoredRecord::Readable(data)) = self.slots.get(name) else { return false };
        let (Some(known), Ok(built)) = (&data.members, build(CreateSession::ENDPOINT, params)) else { return false };
        let own = digests(CreateSession::ENDPOINT, &built, Then::Follow);
        differing_members(CreateSession::ENDPOINT, known, &own).into_iter().any(|name| !matches!(name, "quantity" | "duration"))
    }

    /// A purchase was charged: where a pool began it, the pool hears.
    pub(crate) fn tell_pool_of_charge(&mut self, id: JobId, usd: Decimal) {
        let command = self.jobs.command(id);
        if let Some(Asker::Pool(pool, _)) = command.and_then(|command| self.commands.asker(command)) {
            self.news.push_back(PoolEvent { pool, what: PoolEventKind::Charged(usd) });
        }
    }

    /// Reads the content of a slot from its record.
    pub(crate) fn slot_in(&mut self, data: &[u8]) -> SlotState {
        state_of(&self.read_record(data))
    }

    /// A command is a pool's, which hears of its end.
    pub(crate) fn asked_by(&mut self, pool: PoolNo, work: WorkNo, command: CommandId) {
        if self.commands.give_to_pool(command, pool, work) {
            // The command was refused at once.
            self.outbox.withdraw_completed(command);
            self.news.push_back(PoolEvent { pool, what: PoolEventKind::Ended(work, command) });
        }
    }

    /// A purchase of a slot had no effect: that is put, for the number of the next one. Where nothing of it was put, what is there is right.
    pub(crate) fn empty_slot(&mut self, name: &Name, entry: &Entry) {
        if entry.record.last_put.is_none() {
            return self.release(name);
        }
        let facts = Facts { nothing: true, ..Facts::default() };
        let done = Done { operation: CreateSession::ENDPOINT.name.to_owned(), facts, follows: true, answer: None };
        let mut data = self.data(entry.record.bought_as.as_deref());
        data.done = Some(done);
        self.put(name, data, Some(REMEMBERED), true, None);
    }
}

/// Returns an error if no purchase for a slot may be made with this request.
pub(crate) fn check_slot(params: &str, options: &CallOptions, has_cap: bool) -> Result<(), Error> {
    let endpoint = CreateSession::ENDPOINT;
    let refuse = |field: &str, rule: &str| Error::invalid("open_pool", field, rule);
    let built = build(endpoint, params).map_err(|refusal| refuse(&refusal.field, &refusal.rule))?;
    if let Some((field, rule)) = options.refusal() {
        return Err(refuse(field, rule));
    }
    let terms = terms_of(endpoint, &built, options);
    terms.refusal(endpoint).filter(|_| has_cap).map_or(Ok(()), Err)
}

impl Start {
    /// A purchase of a slot has the number after that of the last one, or the same where it is that one.
    pub(crate) fn take_number(&mut self, data: &Data, is_same: bool) {
        let Some(last) = data.intent.as_deref().and_then(SlotPurchase::of) else { return };
        let intent = if is_same { last.to_string() } else { last.next().to_string() };
        self.bought_as.iter_mut().for_each(|known| known.intent = Some(intent.as_str().into()));
        self.options.intent = Some(intent);
    }
}

/// The content of a slot, as far as its record can be read.
fn state_of(found: &StoredRecord) -> SlotState {
    match found {
        StoredRecord::Empty => SlotState::Free,
        StoredRecord::Readable(data) => slot_of(data),
        StoredRecord::Unreadable(..) => SlotState::Stuck,
    }
}

/// The content of a slot, from its record.
pub(crate) fn slot_of(data: &Data) -> SlotState {
    match (&data.session, &data.call, &data.done) {
        (Some(session), ..) if session.is_over_for_good() => SlotState::Over,
        (Some(session), ..) if session.is_over() => SlotState::Expired,
        (Some(_), ..) => SlotState::Taken,
        (_, Some(call), _) if call.refused => SlotState::Free,
        (_, Some(call), _) if call.can_resume() => SlotState::Doubt,
        (_, Some(_), _) => SlotState::DoubtForGood,
        (_, _, Some(done)) if done.facts.nothing => SlotState::Free,
        (_, _, Some(done)) if done.is_over_for_good() => SlotState::Over,
        _ => SlotState::Stuck,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, NOW, agent, go_on};
    use crate::client::{Client, Now, Outcome, Step};
    use crate::engine::Answered;
    use crate::policy::Effect;
    use crate::state::{Memory, StoreAnswer, describe};
    use crate::wire::Request;

    const SLOT: &str = "shop/3";

    fn session(id: &str, status: &str) -> (u16, String) {
        (200, format!(r#"{{"success":true,"data":{{"session_id":"{id}","session_type":"dynamic","status":"{status}"}}}}"#))
    }

    fn refused(code: &str) -> (u16, String) {
        (400, format!(r#"{{"success":false,"error":{{"code":"{code}","message":"no"}}}}"#))
    }

    /// The content of a slot's last record: its intent, the key of its call, its session.
    fn held(client: &mut Client, disk: &mut Memory) -> Option<(String, Option<String>, Option<String>)> {
        let call = StoreCall::List { space: client.router.account.space().clone(), after: None, open: false };
        let StoreAnswer::Listed { entries, .. } = disk.call(call, NOW.unix, 0) else { panic!("is listed") };
        assert!(entries.len() <= 1, "one record a slot");
        let known = describe(&entries.first()?.data).expect("is a record");
        Some((known.intent.expect("has an intent"), known.key, known.session_id))
    }

    fn open(client: &mut Client) -> CommandId {
        let options = CallOptions { attempts: Some(1), credentials: Some(false), ..CallOptions::default() };
        client.open_slot(0, 1, SLOT, BUY, options)
    }

    /// Opens the slot; each send gets the same answer. Returns the result, and the requests.
    fn opened(
        client: &mut Client,
        disk: &mut Memory,
        answer: impl Fn(&Request) -> (u16, String),
    ) -> (Result<Answered, Error>, Vec<String>) {
        let command = open(client);
        let mut sent = Vec::new();
        go_on(client, disk, NOW, |request| {
            let key = request.headers.iter().find(|(name, _)| name == "idempotency-key").map(|(_, value)| value.clone());
            sent.push(key.unwrap_or_else(|| request.method.as_str().to_owned()));
            answer(request)
        });
        assert!(
            client.router.news.iter().any(|news| matches!(news.what, PoolEventKind::Ended(_, ended) if ended == command)),
            "the pool hears of it"
        );
        (client.take_answer(command).expect("has completed"), sent)
    }

    #[test]
    fn the_next_purchase_takes_the_place_of_the_last_one_in_one_put() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        let (first, sent) = opened(&mut client, &mut disk, |_| session("s-1", "active"));
        assert_eq!((first.expect("was bought").facts.session_id.as_deref(), sent.len()), (Some("s-1"), 1));
        assert_eq!(held(&mut client, &mut disk), Some(("pool/shop/3#1".into(), None, Some("s-1".into()))));
        let end = client.start_for(0, 1, "terminate_session", r#"{"session_id":"s-1"}"#, CallOptions::default());
        go_on(&mut client, &mut disk, NOW, |_| (200, r#"{"success":true,"data":{}}"#.to_owned()));
        client.take_answer(end).expect("has completed").expect("is ended");
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        // Its claim, then the put of the next purchase, with no step between, and the send after it.
        open(&mut client);
        let mut steps = Vec::new();
        let key = loop {
            match client.poll(NOW) {
                Step::Store { id, call, .. } => {
                    steps.push(format!("{call:?}").split([' ', '{']).next().unwrap_or_default().to_owned());
                    let answer = disk.call(call, NOW.unix, 0);
                    client.resolve(id, Outcome::Store(answer), NOW).expect("is answered once");
                }
                Step::Send { request, .. } => {
                    break request.headers.iter().find(|(name, _)| name == "idempotency-key").map(|(_, key)| key.clone());
                }
                _ => {}
            }
        };
        assert_eq!(steps, ["Claim", "Put"]);
        let (intent, known, session) = held(&mut client, &mut disk).expect("is there");
        assert_eq!((intent.as_str(), known, session), ("pool/shop/3#2", key, None));
    }

    #[test]
    fn after_a_crash_the_purchase_is_the_old_one_whose_key_is_sent_again() {
        let (mut first, mut disk) = (agent(7, true), Memory::default());
        let (error, sent) = opened(&mut first, &mut disk, |_| (503, String::new()));
        assert_eq!(error.expect_err("has no answer").effect, Effect::Unknown);
        let mut second = agent(8, true);
        let (bought, again) = opened(&mut second, &mut disk, |_| session("s-1", "active"));
        assert_eq!(bought.expect("is bought").facts.session_id.as_deref(), Some("s-1"));
        // The service is asked for its time before the key is sent again, and a repeated answer is read again.
        assert_eq!((again, sent.len()), (vec!["GET".to_owned(), sent[0].clone(), "GET".to_owned()], 1));
        assert_eq!(held(&mut second, &mut disk).map(|(intent, ..)| intent).as_deref(), Some("pool/shop/3#1"));
    }

    #[test]
    fn what_an_apps_own_backend_refused_is_bought_with_the_same_key_or_anew_where_it_is_another_request() {
        let own = |entropy| {
            let mut client = agent(entropy, true);
            client.router.service.backend_refuses = true;
            client
        };
        let (mut first, mut disk) = (own(7), Memory::default());
        let (error, sent) = opened(&mut first, &mut disk, |_| (403, "no".to_owned()));
        assert_eq!(error.expect_err("is refused").effect, Effect::None);
        let key = held(&mut first, &mut disk).and_then(|(_, key, _)| key).expect("is kept");
        assert_eq!(sent.as_slice(), std::slice::from_ref(&key));
        let mut second = own(8);
        let name = second.slot_name(SLOT);
        second.claim_slots(9, vec![name.clone()], 1);
        go_on(&mut second, &mut disk, NOW, |_| panic!("nothing is sent"));
        assert!(
            second
                .router
                .news
                .iter()
                .any(|news| matches!(&news.what, PoolEventKind::Claimed { found, .. } if matches!(found[..], [(_, SlotState::Free)])))
        );
        let (refused, again) = opened(&mut second, &mut disk, |_| (403, "no".to_owned()));
        assert!(refused.is_err() && again == [key.clone()]);
        assert_eq!(held(&mut second, &mut disk), Some(("pool/shop/3#1".into(), Some(key.clone()), None)));
        let mut third = own(9);
        let other = r#"{"session_type":"dynamic","product_no":"another"}"#;
        third.open_slot(0, 1, SLOT, other, CallOptions { attempts: Some(1), ..CallOptions::default() });
        go_on(&mut third, &mut disk, NOW, |_| (403, "no".to_owned()));
        let (intent, anew, _) = held(&mut third, &mut disk).expect("is kept");
        assert!(intent == "pool/shop/3#2" && anew.is_some_and(|anew| anew != key));
    }

    #[test]
    fn a_session_that_lives_is_taken_over_whatever_is_asked_for_and_nothing_is_bought() {
        let (mut first, mut disk) = (agent(7, true), Memory::default());
        opened(&mut first, &mut disk, |_| session("s-1", "active")).0.expect("was bought");
        let mut second = agent(8, true);
        let other = r#"{"session_type":"dynamic","product_no":"another"}"#;
        let command = second.open_slot(0, 1, SLOT, other, CallOptions::default());
        go_on(&mut second, &mut disk, NOW, |request| {
            assert_eq!(request.method.as_str(), "GET");
            session("s-1", "active")
        });
        let answered = second.take_answer(command).expect("has completed").expect("is taken over");
        assert_eq!((answered.facts.session_id.as_deref(), second.follows("s-1")), (Some("s-1"), true));
        // One that is found to be over is said to be, and its slot is free.
        let mut third = agent(9, true);
        let (over, sent) = opened(&mut third, &mut disk, |_| session("s-1", "expired"));
        assert_eq!((over.expect_err("is over").kind.as_str(), sent), ("ended", vec!["GET".to_owned()]));
        let (next, _) = opened(&mut third, &mut disk, |_| session("s-2", "active"));
        assert_eq!(next.expect("is bought").facts.session_id.as_deref(), Some("s-2"));
        assert_eq!(held(&mut third, &mut disk), Some(("pool/shop/3#2".into(), None, Some("s-2".into()))));
    }

    #[test]
    fn what_a_pool_noted_of_a_session_is_there_for_whoever_takes_it_over_and_for_no_later_one() {
        let (mut first, mut disk) = (agent(7, true), Memory::default());
        opened(&mut first, &mut disk, |_| session("s-1", "active")).0.expect("was bought");
        first.set_pool_notes("s-1", Some("{\"a\":1}".into()), false);
        first.release_session("s-1");
        go_on(&mut first, &mut disk, NOW, |_| panic!("nothing is sent"));
        let mut second = agent(8, true);
        opened(&mut second, &mut disk, |_| session("s-1", "active")).0.expect("is taken over");
        assert_eq!(second.pool_notes("s-1"), Some("{\"a\":1}"));
        second.set_pool_notes("s-1", Some("{\"a\":2}".into()), true);
        go_on(&mut second, &mut disk, NOW, |_| panic!("nothing is sent"));
        // The client dies.
        let mut third = agent(9, true);
        opened(&mut third, &mut disk, |_| session("s-1", "active")).0.expect("is taken over");
        assert_eq!(third.pool_notes("s-1"), Some("{\"a\":2}"));
        let end = third.start_for(0, 1, "terminate_session", r#"{"session_id":"s-1"}"#, CallOptions::default());
        go_on(&mut third, &mut disk, NOW, |_| (200, r#"{"success":true,"data":{}}"#.to_owned()));
        third.take_answer(end).expect("has completed").expect("is ended");
        opened(&mut third, &mut disk, |_| session("s-2", "active")).0.expect("is bought");
        assert_eq!(third.pool_notes("s-2"), None);
    }

    #[test]
    fn what_was_refused_leaves_its_number_and_no_doubt() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        for number in 1..4 {
            let (error, sent) = opened(&mut client, &mut disk, |_| refused("PRODUCT_OUT_OF_STOCK"));
            assert_eq!((error.expect_err("is refused").effect, sent.len()), (Effect::None, 1));
            assert_eq!(held(&mut client, &mut disk), Some((format!("pool/shop/3#{number}"), None, None)));
        }
        let ticket = client.saved(None);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        assert!(client.take(ticket).expect("has completed").expect("is read").entries.is_empty());
    }

    #[test]
    fn slots_are_claimed_together_and_those_that_hold_something_come_first() {
        let (mut first, mut disk) = (agent(7, true), Memory::default());
        opened(&mut first, &mut disk, |_| session("s-1", "active")).0.expect("was bought");
        let mut client = agent(8, true);
        let names: Vec<Name> = (0..5).map(|slot| client.slot_name(&format!("shop/{slot}"))).collect();
        client.claim_slots(9, names.clone(), 2);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        let Some(PoolEvent { pool: 9, what: PoolEventKind::Claimed { asked, found: claimed } }) = client.router.news.pop_front() else {
            panic!("are claimed")
        };
        assert_eq!(asked, names);
        let held =
            |slot: &SlotState| claimed.iter().filter(|(_, known)| known == slot).map(|(name, _)| name.clone()).collect::<Vec<Name>>();
        assert_eq!((held(&SlotState::Taken), held(&SlotState::Free).len(), claimed.len()), (vec![names[3].clone()], 1, 2));
        let free = held(&SlotState::Free);
        // A released slot can be claimed again; another one stays this client's.
        client.release_slot(&free[0]);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        client.claim_slots(9, vec![names[3].clone()], 1);
        client.claim_slots(9, free.clone(), 1);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        let asked = client.router.news.drain(..).map(|news| match news.what {
            PoolEventKind::Claimed { asked, .. } => asked,
            what => panic!("{what:?}"),
        });
        assert_eq!(asked.collect::<Vec<_>>(), [vec![], free]);
        let command = open(&mut client);
        go_on(&mut client, &mut disk, NOW, |_| session("s-1", "active"));
        assert!(client.take_answer(command).expect("has completed").is_ok() && client.router.slots.len() == 1);
    }

    #[test]
    fn slots_that_could_not_be_let_go_of_while_the_store_was_away_are_asked_for_as_soon_as_it_works() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        let names: Vec<Name> = (0..5).map(|slot| client.slot_name(&format!("shop/{slot}"))).collect();
        let at = |seconds: i64| Now { unix: NOW.unix + 1000 * seconds, monotonic: 1000 * seconds };
        // The calls of the store until the client waits.
        let calls = |client: &mut Client, now: Now, disk: Option<&mut Memory>| {
            let (mut calls, mut disk) = (0, disk);
            loop {
                match client.poll(now) {
                    Step::Store { id, call, .. } => {
                        calls += 1;
                        let answer = disk.as_mut().map_or(StoreAnswer::Failed, |disk| disk.call(call, now.unix, now.monotonic));
                        client.resolve(id, Outcome::Store(answer), now).expect("is answered once");
                    }
                    Step::Wait { .. } => return calls,
                    _ => {}
                }
            }
        };
        client.claim_slots(9, names.clone(), 5);
        assert_eq!(calls(&mut client, NOW, None), 6, "all are let go of");
        // The pool asks each second: one is tried, and the others at their own times.
        let tried = (1..40).map(|second| {
            client.claim_slots(9, names.clone(), 5);
            calls(&mut client, at(second), None)
        });
        let tried: Vec<usize> = tried.collect();
        assert!(tried[31..] == [1; 8] && tried.iter().sum::<usize>() < 39 + 5 * 6, "{tried:?}");
        client.router.news.clear();
        // Their own time would be after a minute.
        client.claim_slots(9, names.clone(), 5);
        assert_eq!(calls(&mut client, at(40), Some(&mut disk)), 5);
        client.claim_slots(9, names.clone(), 5);
        assert_eq!(calls(&mut client, at(41), Some(&mut disk)), 1);
        let claimed = client.router.news.drain(..).next_back().map(|news| news.what);
        assert!(matches!(claimed, Some(PoolEventKind::Claimed { found, .. }) if found.len() == 5));
    }

    #[test]
    fn a_claim_that_ends_before_its_answer_gives_nothing() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        let name = client.slot_name(SLOT);
        client.claim_slots(9, vec![name.clone()], 1);
        client.lost(None, NOW);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        assert!(
            matches!(client.router.news.pop_front(), Some(PoolEvent { what: PoolEventKind::Claimed { found, .. }, .. }) if found.is_empty())
        );
        assert!(!client.router.journal.is_owned(&name) && (client.router.slots.len() == 0));
        // The claim may also end after it.
        client.claim_slots(9, vec![name.clone()], 1);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        client.lost(None, NOW);
        assert!(!client.router.journal.is_owned(&name) && (client.router.slots.len() == 0));
    }

    #[test]
    fn whoever_acts_on_the_record_of_a_claimed_slot_finds_what_is_there() {
        let (mut first, mut disk) = (agent(7, true), Memory::default());
        let (error, _) = opened(&mut first, &mut disk, |_| (503, String::new()));
        let record = error.expect_err("has no answer").record.clone().expect("has a record");
        let mut client = agent(8, true);
        let name = client.slot_name(SLOT);
        client.claim_slots(9, vec![name], 1);
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        let ticket = client.forget(&crate::engine::RecordId(record));
        go_on(&mut client, &mut disk, NOW, |_| panic!("nothing is sent"));
        assert_eq!(client.take(ticket).expect("has completed").map_err(|error| error.to_string()), Ok(false), "a doubt stays");
        assert!((client.router.slots.len() == 0));
    }

    #[test]
    fn the_intents_of_pools_are_no_callers_own() {
        let mut client = agent(7, true);
        for intent in ["pool/shop/3#1", "pool/", "pool/x"] {
            let command = client.start_json("open_session", BUY, CallOptions::intent(intent));
            let error = client.take_answer(command).expect("is refused").expect_err("is refused");
            assert_eq!((error.field.as_deref(), error.effect), (Some("intent"), Effect::None), "{error}");
        }
        assert!(client.start_json("open_session", BUY, CallOptions::intent("pools/shop")).0 > 0);
    }
}
