//! Histories that must be refused, one for each sentence that the checker can say and no world of today's client comes to.

use std::collections::BTreeSet;

use hopline::client::{Answered, CallOptions, Client, ClientOptions, CommandId, Now, Outcome, Step, StoreAnswer};
use hopline::contract::agent::CreateSession;
use hopline::contract::{Method, Operation, Secret};
use hopline::wire::{Expected, Request};
use hopline::{Effect as Said, Error};

use super::*;
use crate::job::Task;

const OPEN: Job = Job::named(Task::Open, 0);
const CREATE: Job = Job::named(Task::Create, 0);
const DONE: &str = r#"{"success":true,"data":{"session_id":"s-1","status":"active"},"error":null,"meta":{}}"#;
const REFUSAL: &str = r#"{"success":false,"data":null,"error":{"code":"INSUFFICIENT_BALANCE","message":"no"},"meta":{}}"#;
const FAILURE: &str = r#"{"success":false,"data":null,"error":{"code":"BACKEND_TIMEOUT","message":"no"},"meta":{}}"#;

/// The result that a client returns for one response to a purchase.
fn told(status: u16, body: &str) -> Result<Answered, Error> {
    let options =
        ClientOptions { base_url: "https://api.example/v1".into(), api_key: Some(Secret::new("key")), ..ClientOptions::default() };
    let mut client = Client::new(options, [1; 16]).unwrap();
    let now = Now { unix: 0, monotonic: 0 };
    let params = r#"{"session_type":"dynamic","product_no":"p","quantity":1}"#;
    let command = client.start_json("create_session", params, CallOptions { attempts: Some(1), ..CallOptions::default() });
    loop {
        match client.poll(now) {
            Step::Send { id, .. } => {
                let headers = [("content-type", "application/json")];
                client.resolve(id, Outcome::Response { status, headers: &headers, body: body.as_bytes(), truncated: false }, now).unwrap();
            }
            Step::Completed { .. } => return client.take_answer(command).unwrap(),
            Step::Store { .. } | Step::Notify(_) => {}
            Step::Wait { .. } => panic!("it waits for nothing"),
        }
    }
}

/// The result of a purchase without a name whose store can't be opened.
fn told_without_store() -> Result<Answered, Error> {
    let (base_url, api_key) = ("https://api.example/v1".into(), Some(Secret::new("key")));
    let mut client = Client::new(ClientOptions { base_url, api_key, store: true, ..ClientOptions::default() }, [1; 16]).unwrap();
    let now = Now { unix: 0, monotonic: 0 };
    let params = r#"{"session_type":"dynamic","product_no":"p","quantity":1}"#;
    let command = client.start_json("create_session", params, CallOptions::default());
    loop {
        match client.poll(now) {
            Step::Store { id, .. } => client.resolve(id, Outcome::Store(StoreAnswer::Never), now).unwrap(),
            Step::Completed { .. } => return client.take_answer(command).unwrap(),
            Step::Notify(_) => {}
            Step::Send { .. } | Step::Wait { .. } => panic!("it neither sends nor waits"),
        }
    }
}

fn effect(key: &str) -> Effect {
    Effect { key: Some(key.to_owned()), id: Some("s-1".to_owned()) }
}

fn request(method: Method, path: &str, headers: &[(&str, &str)]) -> Request {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let url = format!("https://api.example{path}");
    let expects = Expected::of(CreateSession::ENDPOINT, 1000);
    Request { method, url, headers, body: b"{}".to_vec(), timeout_ms: 1000, send_before: 1000, max_body: 1000, expects }
}

fn response(status: u16, body: &str) -> Response {
    Response { status, headers: Vec::new(), body: body.as_bytes().to_vec(), truncated: false }
}

const fn at(monotonic: Millis) -> Clocks {
    Clocks { monotonic, unix: crate::service::Remote::START, is_right: true }
}

/// A checker that was told that a job has begun.
fn begun(terms: Terms, job: Job) -> (Checker, About) {
    let mut checker = Checker::new(terms);
    let about = checker.begun(0, job);
    (checker, about)
}

/// Sends a request, for a job or for none.
fn send(checker: &mut Checker, about: Option<(About, Job)>, request: &Request, total: Option<Total>, clocks: Clocks) -> Result<(), Harm> {
    let command = CommandId(1);
    checker.sends(&Sending { command, about, request, beside_login: false, store_is_idle: true, total, clocks, now: clocks.monotonic })
}

fn buy(checker: &mut Checker, about: About, key: &str, total: Option<Total>) -> Result<(), Harm> {
    let request = request(Method::Post, "/v1/sessions", &[("idempotency-key", key)]);
    send(checker, Some((about, CREATE)), &request, total, at(0))
}

fn hear(checker: &mut Checker, about: About, key: &str, response: &Response) {
    let request = request(Method::Post, "/v1/sessions", &[("idempotency-key", key)]);
    checker.hears((CommandId(1), Some(about)), &request, response, (4, 0), at(0));
}

#[test]
fn two_effects_are_one_too_many() {
    let (mut checker, about) = begun(Terms::default(), OPEN);
    assert_eq!((checker.did(about, effect("a")), checker.did(about, effect("b"))), (Ok(()), Err(TWICE)));
}

#[test]
fn two_effects_of_one_key_are_one_too_many_even_where_failures_may_be_bought_again() {
    let (mut checker, about) = begun(Terms { retry_paid: true, ..Terms::default() }, CREATE);
    buy(&mut checker, about, "a", None).unwrap();
    checker.did(about, effect("a")).unwrap();
    hear(&mut checker, about, "a", &response(504, FAILURE));
    buy(&mut checker, about, "b", None).unwrap();
    assert_eq!((checker.did(about, effect("b")), checker.did(about, effect("a"))), (Ok(()), Err(TWICE)));
}

#[test]
fn a_second_key_needs_a_failure_of_the_first() {
    let allowed = Terms { retry_paid: true, ..Terms::default() };
    for (terms, status, body, harm) in [
        (allowed, 504, FAILURE, Ok(())),
        (Terms::default(), 504, FAILURE, Err(REKEYED)),
        (Terms::default(), 402, REFUSAL, Ok(())),
        (allowed, 401, REFUSAL, Err(REKEYED)),
        (allowed, 502, "<html>", Err(REKEYED)),
        (allowed, 200, DONE, Err(REKEYED)),
    ] {
        let (mut checker, about) = begun(terms, CREATE);
        buy(&mut checker, about, "a", None).unwrap();
        hear(&mut checker, about, "a", &response(status, body));
        assert_eq!(buy(&mut checker, about, "b", None), harm, "{status} {body}");
    }
}

#[test]
fn what_was_denied_must_not_be_done_before_or_after() {
    let refusal = told(402, REFUSAL);
    assert_eq!(refusal.as_ref().map_err(|error| error.effect).unwrap_err(), Said::None);
    let (mut before, about) = begun(Terms::default(), OPEN);
    before.did(about, effect("a")).unwrap();
    assert_eq!(before.ends(about, OPEN, &refusal), Err(DENIED));
    let (mut after, about) = begun(Terms::default(), OPEN);
    after.ends(about, OPEN, &refusal).unwrap();
    assert_eq!(after.did(about, effect("a")), Err(DENIED));
    let (mut settled, about) = begun(Terms::default(), OPEN);
    settled.settled(about, OPEN, false);
    assert_eq!(settled.did(about, effect("a")), Err(DENIED));
}

#[test]
fn what_was_said_to_be_done_must_be() {
    for job in [OPEN, Job::unnamed(Task::Terminate, 0)] {
        let (mut checker, about) = begun(Terms::default(), job);
        assert_eq!(checker.ends(about, job, &told(202, DONE)), Err(INVENTED));
    }
}

#[test]
fn what_a_person_guessed_is_theirs_and_nothing_else() {
    let (mut checker, first) = begun(Terms::default(), OPEN);
    checker.guessed(first, false);
    let second = checker.begun(0, OPEN);
    assert_ne!(first, second);
    assert_eq!((checker.did(first, effect("a")), checker.did(second, effect("b"))), (Ok(()), Ok(())));
    assert_eq!(checker.did(second, effect("c")), Err(TWICE));
}

#[test]
fn what_was_accepted_must_be_known_or_listed() {
    let nobody = BTreeSet::new();
    let listed = Listed { saved: &[], accepted: &nobody, doubts: &nobody, damaged: &nobody };
    let (mut checker, about) = begun(Terms::default(), OPEN);
    checker.did(about, effect("a")).unwrap();
    assert_eq!(checker.nothing_is_lost(&[OPEN], &listed), Err(LOST));
    checker.taken(about, OPEN, &told(202, DONE));
    assert_eq!(checker.nothing_is_lost(&[OPEN], &listed), Ok(()));
}

#[test]
fn the_number_of_an_order_that_was_followed_stays_known() {
    let nobody = BTreeSet::new();
    let listed = Listed { saved: &[], accepted: &nobody, doubts: &nobody, damaged: &nobody };
    let job = Job::named(Task::Order, 0);
    let (mut checker, _) = begun(Terms::default(), job);
    checker.ordered(Some(0), "ORD-1".into());
    let read = request(Method::Get, "/api/open/app/static/order/list/v2?search=ORD-1", &[]);
    send(&mut checker, None, &read, None, at(0)).unwrap();
    assert_eq!(checker.nothing_is_lost(&[job], &listed), Err(FORGOTTEN));
}

#[test]
fn a_key_has_one_request() {
    let (mut checker, about) = begun(Terms::default(), CREATE);
    buy(&mut checker, about, "a", None).unwrap();
    let other = request(Method::Post, "/v1/billing/recharge", &[("idempotency-key", "a")]);
    assert_eq!(send(&mut checker, None, &other, None, at(0)), Err(MIXED));
}

#[test]
fn a_wait_that_was_asked_for_is_kept() {
    let read = request(Method::Get, "/v1/sessions", &[]);
    let seconds = vec![("retry-after".to_owned(), "5".to_owned())];
    let dates = [("date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("retry-after", "Sun, 06 Nov 1994 08:49:42 GMT")];
    let dates = dates.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
    for (status, headers) in [(429, seconds.clone()), (503, seconds), (429, dates)] {
        let mut checker = Checker::new(Terms::default());
        checker.hears((CommandId(1), None), &read, &Response { headers, ..response(status, "") }, (4, 0), at(0));
        assert_eq!(send(&mut checker, None, &read, None, at(4_999)), Err(EARLY), "{status}");
        assert_eq!(send(&mut checker, None, &read, None, at(5_000)), Ok(()), "{status}");
    }
}

#[test]
fn a_throttle_that_nobody_can_mean_is_kept_by_the_call_that_was_asked_and_by_no_other() {
    let (read, other) = (request(Method::Get, "/v1/sessions", &[]), request(Method::Get, "/v1/products", &[]));
    let headers = vec![("retry-after".to_owned(), "3600".to_owned())];
    let mut checker = Checker::new(Terms::default());
    checker.hears((CommandId(1), None), &read, &Response { headers, ..response(429, "") }, (4, 0), at(0));
    assert_eq!(send(&mut checker, None, &read, None, at(3_599_999)), Err(EARLY));
    assert_eq!(send(&mut checker, None, &other, None, at(1)), Ok(()));
}

/// A checker of purchases of 4.000 dollars under a cap of 7.999, whose client was shown the price.
fn capped() -> (Checker, About) {
    let (mut checker, about) = begun(Terms { cap: Some(7_999), ..Terms::default() }, CREATE);
    let prices = request(Method::Get, "/v1/products", &[]);
    checker.hears((CommandId(1), Some(about)), &prices, &response(200, "{}"), (4, 0), at(0));
    (checker, about)
}

fn total(amount: i64) -> Option<Total> {
    Some(Total { day: crate::service::Remote::START / (24 * 3_600_000), amount })
}

#[test]
fn a_key_is_counted_today_and_in_full_before_it_goes_out() {
    let yesterday = total(4_000).map(|total| Total { day: total.day - 1, ..total });
    for (stored, harm) in [(None, Err(UNCOUNTED)), (total(3_999), Err(UNCOUNTED)), (yesterday, Err(UNCOUNTED)), (total(4_000), Ok(()))] {
        let (mut checker, about) = capped();
        assert_eq!(buy(&mut checker, about, "a", stored), harm, "{stored:?}");
    }
}

#[test]
fn two_purchases_are_more_than_the_cap() {
    let (mut checker, about) = capped();
    buy(&mut checker, about, "a", total(4_000)).unwrap();
    let other = checker.begun(1, CREATE);
    assert_eq!(buy(&mut checker, other, "b", total(8_000)), Err(CAPPED));
}

/// Returns the error of another purchase above the cap, after `with` was applied to the first one.
fn buys_more(with: impl Fn(&mut Checker, About)) -> Result<(), Harm> {
    let (mut checker, about) = capped();
    buy(&mut checker, about, "a", total(4_000)).unwrap();
    with(&mut checker, about);
    let other = checker.begun(1, CREATE);
    buy(&mut checker, other, "b", total(4_000))
}

#[test]
fn a_key_counts_until_its_record_is_gone_and_nothing_was_done() {
    assert_eq!(buys_more(|_, _| {}), Err(CAPPED));
    assert_eq!(buys_more(|checker, _| checker.erased(0, CREATE)), Ok(()));
    let done = |checker: &mut Checker, about| {
        checker.did(about, effect("a")).unwrap();
        checker.erased(0, CREATE);
    };
    let guessed = |checker: &mut Checker, about| {
        checker.guessed(about, true);
        checker.erased(0, CREATE);
    };
    assert_eq!((buys_more(done), buys_more(guessed)), (Err(CAPPED), Err(CAPPED)));
}

#[test]
fn a_key_that_the_service_was_always_too_busy_for_need_not_count_until_it_is_sent_again() {
    let busy = || response(429, REFUSAL);
    assert_eq!(buys_more(|checker, about| hear(checker, about, "a", &busy())), Ok(()));
    // An earlier send without an answer may have bought.
    let lost_first = |checker: &mut Checker, about| {
        buy(checker, about, "a", total(4_000)).unwrap();
        hear(checker, about, "a", &busy());
    };
    assert_eq!(buys_more(lost_first), Err(CAPPED));
    let (mut checker, about) = capped();
    buy(&mut checker, about, "a", total(4_000)).unwrap();
    hear(&mut checker, about, "a", &busy());
    let now = crate::service::Remote::START;
    assert_eq!([0, 4_000, 4_001].map(|amount| checker.total_is_right(total(amount), now)), [Ok(()), Ok(()), Err(MISCOUNTED)]);
    assert_eq!(buy(&mut checker, about, "a", total(0)), Err(UNCOUNTED));
}

#[test]
fn a_key_of_the_callers_own_is_that_of_the_last_purchase_that_sent_it() {
    let given = Job::given(Task::Create, 0);
    let (mut checker, first) = begun(Terms::default(), given);
    buy(&mut checker, first, "mine-0", None).unwrap();
    checker.settled(first, given, false);
    let second = checker.begun(0, given);
    buy(&mut checker, second, "mine-0", None).unwrap();
    assert_eq!(checker.of_key(0, Some("mine-0")), Some(second));
}

#[test]
fn each_record_that_is_dropped_too_early_excuses_one_effect_more_and_no_second_one_of_a_key() {
    let (mut checker, _) = begun(Terms::default(), OPEN);
    let dropped = checker.current(0).unwrap();
    checker.dropped(dropped);
    let later = checker.begun(0, OPEN);
    assert_eq!((checker.did(later, effect("a")), checker.did(later, effect("b"))), (Ok(()), Ok(())));
    let mut again = checker.clone();
    assert_eq!((again.did(later, effect("b")), checker.did(later, effect("c"))), (Err(TWICE), Err(TWICE)));
}

#[test]
fn a_guess_that_it_was_done_excuses_one_effect_more() {
    let (mut checker, first) = begun(Terms::default(), OPEN);
    checker.settled(first, OPEN, false);
    let guessed = checker.begun(0, OPEN);
    checker.guessed(guessed, true);
    checker.settled(guessed, OPEN, false);
    let later = checker.begun(0, OPEN);
    assert_eq!(["a", "b", "c"].map(|key| checker.did(later, effect(key))), [Ok(()), Ok(()), Err(TWICE)]);
}

#[test]
fn what_is_said_of_one_end_of_a_session_is_not_said_of_another() {
    let end = Job::unnamed(Task::Terminate, 0);
    for (starts, harm) in [(1, Err(DENIED)), (2, Ok(()))] {
        let mut checker = Checker::new(Terms::default());
        let mut about = checker.begun(0, end);
        for _ in 1..starts {
            about = checker.begun(0, end);
        }
        checker.ends(about, end, &told(402, REFUSAL)).unwrap();
        assert_eq!(checker.did(about, Effect { key: None, id: None }), harm, "started {starts} times");
    }
}

#[test]
fn a_price_that_one_command_was_shown_is_that_of_the_purchase() {
    let (mut checker, about) = capped();
    let prices = request(Method::Get, "/v1/products", &[]);
    checker.hears((CommandId(2), Some(about)), &prices, &response(200, "{}"), (6, 0), at(0));
    assert_eq!(buy(&mut checker, about, "a", total(5_999)), Err(UNCOUNTED));
    assert_eq!(buy(&mut checker, about, "a", total(6_000)), Ok(()));
}

#[test]
fn a_charge_above_its_quote_may_be_lost_by_a_store_that_fails_and_the_quote_may_not() {
    let (mut checker, about) = capped();
    buy(&mut checker, about, "a", total(4_000)).unwrap();
    let dearer = DONE.replace(r#""status""#, r#""estimated_charge_usd":12,"status""#);
    hear(&mut checker, about, "a", &response(202, &dearer));
    let now = crate::service::Remote::START;
    assert_eq!([4_000, 12_000].map(|amount| checker.total_is_right(total(amount), now)), [Err(MISCOUNTED), Ok(())]);
    checker.store_failed();
    assert_eq!([3_999, 4_000].map(|amount| checker.total_is_right(total(amount), now)), [Err(MISCOUNTED), Ok(())]);
}

#[test]
fn a_person_speaks_of_the_purchase_that_sent_the_key_of_a_record() {
    let (mut checker, first) = capped();
    buy(&mut checker, first, "a", total(4_000)).unwrap();
    checker.did(first, effect("a")).unwrap();
    checker.dropped(first);
    let second = checker.begun(0, CREATE);
    assert_eq!((checker.of_key(0, Some("a")), checker.of_key(0, None)), (Some(first), Some(second)));
    assert_eq!((checker.found(first).is_some(), checker.found(second).is_some()), (true, false));
    // Nothing came of the second, and the first stays counted.
    checker.settled(second, CREATE, false);
    let now = crate::service::Remote::START;
    assert_eq!([0, 4_000].map(|amount| checker.total_is_right(total(amount), now)), [Err(MISCOUNTED), Ok(())]);
}

#[test]
fn the_total_is_what_was_bought() {
    let (mut checker, about) = capped();
    buy(&mut checker, about, "a", total(4_000)).unwrap();
    let now = crate::service::Remote::START;
    assert_eq!([total(3_999), total(4_001), None].map(|total| checker.total_is_right(total, now)), [Err(MISCOUNTED); 3]);
    assert_eq!(checker.total_is_right(total(4_000), now), Ok(()));
    checker.crashed();
    assert_eq!([3_999, 4_001].map(|amount| checker.total_is_right(total(amount), now)), [Err(MISCOUNTED), Ok(())]);
}

#[test]
fn logins_are_one_at_a_time_and_not_without_need() {
    let login = request(Method::Post, "/api/auth/login", &[]);
    let sending = |beside_login| Sending {
        command: CommandId(1),
        about: None,
        request: &login,
        beside_login,
        store_is_idle: true,
        total: None,
        clocks: at(0),
        now: 0,
    };
    let mut checker = Checker::new(Terms::default());
    assert_eq!((checker.sends(&sending(true)), checker.sends(&sending(false))), (Err(LOGINS), Ok(())));
    checker.hears((CommandId(1), None), &login, &response(401, ""), (4, 0), at(0));
    assert_eq!(checker.sends(&sending(false)), Err(REFUSED));
    checker.restarted(Some(&"token".to_owned()));
    assert_eq!(checker.sends(&sending(false)), Err(THROWN));
}

#[test]
fn a_call_renews_its_token_once() {
    let read = request(Method::Get, "/api/open/app/balance", &[("authorization", "Bearer token")]);
    let mut checker = Checker::new(Terms::default());
    for times in 0..3 {
        let harm = if times < 2 { Ok(()) } else { Err(RENEWED) };
        assert_eq!(send(&mut checker, None, &read, None, at(0)), harm, "after {times} refusals");
        checker.hears((CommandId(1), None), &read, &response(401, ""), (4, 0), at(0));
    }
}

#[test]
fn a_start_that_waited_behind_a_refused_one_begins_a_purchase_of_its_own() {
    let (mut checker, first) = begun(Terms::default(), OPEN);
    let second = checker.begun(0, OPEN);
    assert_eq!(first, second, "it may have joined");
    assert_eq!(checker.begins_anew(0, false), Some(first), "nothing was put yet");
    checker.puts(0);
    checker.ends(first, OPEN, &told(402, REFUSAL)).unwrap();
    let second = checker.begins_anew(0, true).unwrap();
    assert_ne!(first, second);
    buy(&mut checker, second, "b", None).unwrap();
    assert_eq!((checker.did(second, effect("b")), checker.did(first, effect("a"))), (Ok(()), Err(DENIED)));
}

#[test]
fn a_start_whose_store_failed_and_that_is_said_to_have_had_no_effect_must_have_had_none() {
    let failed = told_without_store();
    assert_eq!(failed.as_ref().map_err(|error| (error.kind, error.effect)).unwrap_err(), (Kind::Store, Said::None));
    let (mut checker, about) = begun(Terms::default(), OPEN);
    checker.did(about, effect("a")).unwrap();
    assert_eq!(checker.ends(about, OPEN, &failed), Err(DENIED));
}

#[test]
fn an_entry_that_counts_too_much_hides_none_that_counts_too_little() {
    let (mut checker, first) = begun(Terms { cap: Some(9_000), ..Terms::default() }, CREATE);
    let prices = request(Method::Get, "/v1/products", &[]);
    let second = checker.begun(1, CREATE);
    for (about, key) in [(first, "a"), (second, "b")] {
        checker.hears((CommandId(1), Some(about)), &prices, &response(200, "{}"), (4, 0), at(0));
        checker.counts(about, key);
        buy(&mut checker, about, key, total(8_000)).unwrap();
    }
    checker.crashed();
    let entries = |first, second| BTreeMap::from([("a".to_owned(), first), ("b".to_owned(), second)]);
    let are_right = |first, second| {
        let now = crate::service::Remote::START;
        checker.entries_are_right(total(first + second).unwrap(), &entries(first, second), now)
    };
    assert_eq!([are_right(4_000, 4_000), are_right(5_000, 4_000), are_right(5_000, 3_000)], [Ok(()), Ok(()), Err(MISCOUNTED)]);
}

fn renew(key: &str) -> Request {
    request(Method::Post, "/v1/sessions/s-1/renew", &[("idempotency-key", key)])
}

#[test]
fn a_renewal_in_doubt_is_followed_by_no_other_one_of_its_session_named_or_not() {
    let (named, unnamed) = (Job::named(Task::Renew, 3), Job::unnamed(Task::Renew, 3 + crate::job::SESSIONS));
    let second = |with: &dyn Fn(&mut Checker, About)| {
        let (mut checker, first) = begun(Terms::default(), named);
        send(&mut checker, Some((first, named)), &renew("a"), None, at(0)).unwrap();
        with(&mut checker, first);
        let about = checker.begun(1, unnamed);
        send(&mut checker, Some((about, unnamed)), &renew("b"), None, at(0))
    };
    let answered = |status, body| move |checker: &mut Checker, about| hear(checker, about, "a", &response(status, body));
    assert_eq!(second(&|_, _| {}), Err(DOUBLED));
    assert_eq!(second(&answered(504, FAILURE)), Err(DOUBLED));
    assert_eq!(second(&answered(502, "<html>")), Err(DOUBLED));
    assert_eq!([second(&answered(200, DONE)), second(&answered(402, REFUSAL))], [Ok(()), Ok(())]);
    assert_eq!(second(&|checker, about| checker.settled(about, named, true)), Ok(()));
}

#[test]
fn what_an_apps_own_backend_refused_is_sent_again_with_its_key_while_that_is_young() {
    let second = |relayed, answer: &Response, result: Result<Answered, Error>, key, now| {
        let (mut checker, first) = begun(Terms { relayed, ..Terms::default() }, CREATE);
        buy(&mut checker, first, "a", None).unwrap();
        hear(&mut checker, first, "a", answer);
        checker.ends(first, CREATE, &result).unwrap();
        let about = checker.begun(0, CREATE);
        let request = request(Method::Post, "/v1/sessions", &[("idempotency-key", key)]);
        send(&mut checker, Some((about, CREATE)), &request, None, at(now))
    };
    let page = response(403, "<html>");
    assert_eq!(second(true, &page, told(402, REFUSAL), "b", 1000), Err(REKEYED));
    assert_eq!(second(true, &page, told(402, REFUSAL), "a", 1000), Ok(()));
    assert_eq!(second(true, &page, told(402, REFUSAL), "b", 24 * 3_600_000), Ok(()));
    assert_eq!(second(true, &response(402, REFUSAL), told(402, REFUSAL), "b", 1000), Ok(()));
    assert_eq!(second(false, &page, told(402, REFUSAL), "b", 1000), Ok(()));
}

#[test]
fn a_refused_key_whose_record_a_person_drops_is_followed_by_another_one() {
    let second = |is_dropped: bool, to: &str| {
        let (mut checker, first) = begun(Terms { relayed: true, ..Terms::default() }, CREATE);
        buy(&mut checker, first, "a", None).unwrap();
        hear(&mut checker, first, "a", &response(403, "<html>"));
        // The call hears of its end only after that.
        if is_dropped {
            checker.settled(first, CREATE, false);
        }
        checker.ends(first, CREATE, &told(402, REFUSAL)).unwrap();
        let about = checker.begun(0, CREATE);
        let request = request(Method::Post, to, &[("idempotency-key", "b")]);
        send(&mut checker, Some((about, CREATE)), &request, None, at(1000))
    };
    assert_eq!((second(false, "/v1/sessions"), second(true, "/v1/sessions")), (Err(REKEYED), Ok(())));
    // Another address is another request.
    assert_eq!(second(false, "/v1/sessions/ses_2/rotate"), Ok(()));
}

#[test]
fn a_renewal_is_open_until_its_refused_key_was_replaced_or_an_apps_own_backend_has_refused_each_send_of_it() {
    let job = Job::unnamed(Task::Renew, 3 + crate::job::SESSIONS);
    let begin = |relayed| begun(Terms { relayed, ..Terms::default() }, job);
    // A throttle that is repeated under one request id is the service's own word on that key: another key of the same renewal follows.
    let throttled = response(429, r#"{"success":false,"data":null,"error":{"code":"RATE_LIMIT_EXCEEDED"},"meta":{"request_id":"one"}}"#);
    let (mut checker, about) = begin(false);
    send(&mut checker, Some((about, job)), &renew("a"), None, at(0)).unwrap();
    hear(&mut checker, about, "a", &throttled);
    assert_eq!(send(&mut checker, Some((about, job)), &renew("b"), None, at(0)), Ok(()));
    let other = checker.begun(1, Job::named(Task::Renew, 3));
    assert_eq!(send(&mut checker, Some((other, Job::named(Task::Renew, 3))), &renew("c"), None, at(0)), Err(DOUBLED));
    for (relayed, sends, answers, harm) in [
        (true, 1, [Some(404), None], Ok(())),
        (false, 1, [Some(404), None], Err(DOUBLED)),
        (true, 1, [Some(502), None], Err(DOUBLED)),
        (true, 2, [Some(404), None], Err(DOUBLED)),
        (true, 2, [Some(404), Some(429)], Ok(())),
    ] {
        let (mut checker, about) = begin(relayed);
        (0..sends).for_each(|_| send(&mut checker, Some((about, job)), &renew("a"), None, at(0)).unwrap());
        answers.into_iter().flatten().for_each(|status| hear(&mut checker, about, "a", &response(status, "<html>")));
        let other = checker.begun(1, Job::named(Task::Renew, 3));
        assert_eq!(send(&mut checker, Some((other, Job::named(Task::Renew, 3))), &renew("b"), None, at(0)), harm, "{relayed} {answers:?}");
    }
}

#[test]
fn an_unreadable_record_that_a_person_drops_is_that_of_an_earlier_start_too_but_of_no_other_job() {
    let (one, other) = (Job::unnamed(Task::Renew, 3 + crate::job::SESSIONS), Job::named(Task::Renew, 3));
    for (dropped, harm) in [(0, Ok(())), (1, Err(DOUBLED))] {
        let (mut checker, first) = begun(Terms::default(), one);
        send(&mut checker, Some((first, one)), &renew("a"), None, at(0)).unwrap();
        // A second start of the job is busy.
        checker.begun(0, one);
        checker.unreadable_dropped(dropped);
        let later = checker.begun(1, other);
        assert_eq!(send(&mut checker, Some((later, other)), &renew("b"), None, at(0)), harm, "{dropped}");
    }
}

#[test]
fn an_older_setting_is_not_sent_again_over_a_newer_one() {
    let (older, newer) = (Job::unnamed(Task::Budget, 1), Job::unnamed(Task::Budget, 2));
    let put = |key| request(Method::Put, "/v1/account/budget", &[("idempotency-key", key)]);
    for (is_again, is_accepted, harm) in [(false, true, Err(STALE)), (true, true, Ok(())), (false, false, Ok(()))] {
        let (mut checker, first) = begun(Terms::default(), older);
        send(&mut checker, Some((first, older)), &put("a"), None, at(0)).unwrap();
        checker.ends(first, older, &told(502, "<html>")).unwrap();
        let second = checker.begun(1, newer);
        send(&mut checker, Some((second, newer)), &put("b"), None, at(0)).unwrap();
        checker.did(second, effect("b")).unwrap();
        checker.ends(second, newer, &told(if is_accepted { 202 } else { 502 }, if is_accepted { DONE } else { "<html>" })).unwrap();
        let first = if is_again { checker.begun(0, older) } else { first };
        assert_eq!(send(&mut checker, Some((first, older)), &put("a"), None, at(0)), harm, "{is_again} {is_accepted}");
    }
}

#[test]
fn a_refusal_of_an_apps_own_backend_that_only_its_record_tells_ends_the_purchase_as_one_that_its_caller_was_told_of() {
    let job = Job::named(Task::Renew, 3);
    let second = |with: &dyn Fn(&mut Checker, About) -> Result<(), Harm>, session: &str, key| {
        let (mut checker, first) = begun(Terms { relayed: true, ..Terms::default() }, job);
        send(&mut checker, Some((first, job)), &renew("a"), None, at(0)).unwrap();
        hear(&mut checker, first, "a", &response(404, "<html>"));
        // The program dies before the caller hears of it.
        checker.crashed();
        let about = checker.begun(0, job);
        with(&mut checker, about)?;
        let about = if checker.has_ended(about) { checker.begins_anew(0, false).unwrap() } else { about };
        let request = request(Method::Post, &format!("/v1/sessions/{session}/renew"), &[("idempotency-key", key)]);
        send(&mut checker, Some((about, job)), &request, None, at(1000))
    };
    let finds = |checker: &mut Checker, about| checker.finds_refused(about);
    let finds_what_was_done = |checker: &mut Checker, about| {
        checker.did(about, effect("a"))?;
        checker.finds_refused(about)
    };
    assert_eq!([second(&finds, "s-1", "a"), second(&finds, "s-2", "b")], [Ok(()), Ok(())]);
    assert_eq!([second(&finds, "s-1", "b"), second(&|_, _| Ok(()), "s-2", "b")], [Err(REKEYED), Err(REKEYED)]);
    assert_eq!(second(&finds_what_was_done, "s-1", "a"), Err(DENIED));
}

#[test]
fn a_doubt_of_what_is_free_is_over_once_its_record_is_deleted_and_one_that_may_have_been_paid_is_not() {
    let second = |job: Job, path: &str, is_erased: bool| {
        let (mut checker, first) = begun(Terms::default(), job);
        let send_with = |checker: &mut Checker, about, key| {
            send(checker, Some((about, job)), &request(Method::Post, path, &[("idempotency-key", key)]), None, at(0))
        };
        send_with(&mut checker, first, "a").unwrap();
        // A second start waits for the name while the end of the session has that.
        let waiting = checker.begun(0, job);
        if is_erased {
            checker.erased(0, job);
        }
        let about = if checker.has_ended(waiting) { checker.begins_anew(0, true).unwrap() } else { waiting };
        send_with(&mut checker, about, "b")
    };
    let (rotation, renewal) = (Job::named(Task::Rotate, 0), Job::named(Task::Renew, 0));
    let path = "/v1/sessions/s-1/rotate";
    assert_eq!([second(rotation, path, true), second(rotation, path, false)], [Ok(()), Err(REKEYED)]);
    assert_eq!(second(renewal, "/v1/sessions/s-1/renew", true), Err(REKEYED));
}

#[test]
fn a_record_is_of_the_job_whose_key_it_has_whoever_puts_it_and_what_is_said_of_it_must_be_so() {
    let jobs = [Job::unnamed(Task::Rotate, 0), Job::named(Task::Rotate, 0), Job::given(Task::Rotate, 0)];
    let rotate = |key| request(Method::Post, "/v1/sessions/s-1/rotate", &[("idempotency-key", key)]);
    // The first rotation is in doubt, and the second one sends it once more before it dies.
    let resumed = |is_sent: bool, was_done: bool| {
        let mut checker = Checker::new(Terms::default());
        let first = checker.begun(0, jobs[0]);
        checker.keeps(first, "a".to_owned());
        if is_sent {
            send(&mut checker, Some((first, jobs[0])), &rotate("a"), None, at(0)).unwrap();
        }
        if was_done {
            checker.did(first, effect("a")).unwrap();
        }
        checker.begun(1, jobs[1]);
        let given = checker.begun(2, jobs[2]);
        send(&mut checker, Some((given, jobs[2])), &rotate("mine-0"), None, at(0)).unwrap();
        assert_eq!(["b", "mine-0"].map(|key| checker.job_of_key(&jobs, key)), [None, None]);
        checker.crashed();
        let at = checker.job_of_key(&jobs, "a").unwrap();
        checker.ends(checker.of_key(at, Some("a")).unwrap(), jobs[at], &told(202, DONE))
    };
    let all = [resumed(true, true), resumed(true, false), resumed(false, false)];
    assert_eq!(all, [Ok(()), Err(INVENTED), Err(INVENTED)]);
    // What was done of the first one is nothing that the second one may be said to have done.
    let (mut checker, first) = begun(Terms::default(), jobs[0]);
    checker.did(first, effect("a")).unwrap();
    let second = checker.begun(1, jobs[1]);
    assert_eq!(checker.ends(second, jobs[1], &told(202, DONE)), Err(INVENTED));
}
