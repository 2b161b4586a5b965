//! Drives the class as Kotlin and Swift do.

use std::collections::{HashMap, VecDeque};

use super::moves::MOST_STEPS;
use super::packed::tests::{record, unpacked};
use super::*;

const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary","store":true}"#;
const ALONE: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p-1","quantity":1}"#;
const ACCEPTED: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","status":"creating"},"meta":{"request_id":"r-1"}}"#;
const NOW: i64 = 1_700_000_000_000;

/// A client, its pending steps, and the results of its commands.
struct Host {
    client: Arc<Client>,
    store: Option<Folder>,
    steps: VecDeque<Step>,
    ended: HashMap<u32, Taken>,
}

impl Host {
    fn new(options: &str, entropy: u8, store: Option<Folder>) -> Self {
        let client = Client::new(options, vec![entropy; 16]).expect("the options are sound");
        Host { client, store, steps: VecDeque::new(), ended: HashMap::new() }
    }

    /// A host without a store.
    fn alone() -> Self {
        Host::new(ALONE, 7, None)
    }

    /// Another host on a folder.
    fn on(place: &tempfile::TempDir, entropy: u8) -> Self {
        Host::new(OPTIONS, entropy, Some(open(place)))
    }

    fn advance(&mut self, what: Move, body: &[u8]) -> MoveAnswer {
        let moved = self.client.advance(what, body, NOW, 0);
        assert!(moved.steps.len() <= MOST_STEPS);
        let is_all = matches!(moved.steps.last(), Some(Step::Wait { .. }));
        assert!(is_all || moved.steps.len() == MOST_STEPS, "without a wait there are more");
        self.steps.extend(moved.steps);
        if !is_all {
            self.advance(Move::Go, b"");
        }
        moved.answer
    }

    fn command(&mut self, what: Move) -> u32 {
        let MoveAnswer::Command { command } = self.advance(what, b"") else { panic!("it is a command") };
        command
    }

    fn start(&mut self, operation: &str, params: &str, options: &str) -> u32 {
        let [operation, params, options] = [operation, params, options].map(str::to_owned);
        self.command(Move::Start { operation, params, options })
    }

    /// The next call of the store or the next send, if there is one.
    fn next(&mut self) -> Option<Step> {
        loop {
            match self.steps.pop_front()? {
                Step::Notify { event } => drop(unpacked(record("Event"), &event)),
                Step::Completed { command, result } => _ = self.ended.insert(command, result.expect("comes with it")),
                Step::Wait { .. } => {}
                step => return Some(step),
            }
        }
    }

    fn stored(&mut self, step: u32, call: StoreCall) {
        let answer = self.store.as_ref().expect("has one").call(call, NOW).expect("the store does it");
        assert!(matches!(self.advance(Move::Stored { step, answer }, b""), MoveAnswer::Nothing), "is answered once");
    }

    /// Carries out the store's calls until there is something to send.
    fn until_send(&mut self) -> Option<(u32, Request)> {
        loop {
            match self.next()? {
                Step::Store { id, call, .. } => self.stored(id, call),
                Step::Send { id, request, .. } => return Some((id, request)),
                _ => panic!("is no call"),
            }
        }
    }

    fn sent(&mut self) -> (u32, Request) {
        self.until_send().expect("is sent")
    }

    fn respond(&mut self, step: u32, status: u16, body: &[u8]) -> MoveAnswer {
        let headers = vec![Header { name: "content-type".into(), value: "application/json".into() }];
        self.advance(Move::Respond { step, status, headers, truncated: false }, body)
    }

    /// Takes the result of a command, once.
    fn take(&mut self, command: u32) -> Option<Taken> {
        assert!(self.until_send().is_none(), "nothing is sent");
        let taken = self.ended.remove(&command)?;
        self.advance(Move::Taken { commands: vec![command] }, b"");
        Some(taken)
    }

    fn answer(&mut self, command: u32) -> Answer {
        match self.take(command) {
            Some(Taken::Answered { answer }) => answer,
            Some(Taken::Failed { error }) => panic!("{command} failed: {}", unpacked(record("ErrorFields"), &error)),
            None => panic!("{command} has not ended"),
        }
    }

    /// The answer of a command that sends nothing.
    fn raw(&mut self, what: Move) -> serde_json::Value {
        let command = self.command(what);
        json(&self.answer(command).raw)
    }

    fn error(&mut self, command: u32) -> serde_json::Value {
        let Some(Taken::Failed { error }) = self.take(command) else { panic!("{command} did not fail") };
        unpacked(record("ErrorFields"), &error)
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

/// A folder of the test's own, and a client on it.
fn stored() -> (tempfile::TempDir, Host) {
    let place = tempfile::tempdir().expect("a folder can be made");
    let host = Host::on(&place, 7);
    (place, host)
}

fn open(place: &tempfile::TempDir) -> Folder {
    Folder::new(place.path().to_str().expect("is text")).expect("the folder is a store")
}

fn settle(record: &str, became: Option<&str>, early: bool) -> Move {
    Move::Settle { record: record.to_owned(), happened: false, became: became.map(str::to_owned), early }
}

fn resume_intent(intent: &str) -> Move {
    Move::ResumeIntent { intent: intent.to_owned(), options: "{}".to_owned() }
}

#[test]
fn a_purchase_is_stored_sent_answered_and_taken_once() {
    let (_place, mut host) = stored();
    let command = host.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    let Some(Step::Store { id, command: Some(waits), call }) = host.next() else { panic!("its name is claimed first") };
    assert!(matches!(&call, StoreCall::Claim { names, most: 1 } if names.len() == 1) && waits == command);
    assert!(host.next().is_none(), "and it waits for that");
    host.stored(id, call);
    let (step, request) = host.sent();
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://api.example/v1/sessions"));
    assert_eq!(json(std::str::from_utf8(&request.body.clone().expect("has a body")).expect("is text")), json(BUY));
    assert!(request.headers.iter().any(|header| header.name == "x-api-key" && header.value == "canary"));
    assert!(!request.to_string().contains("canary") && request.headers.iter().all(|header| !header.to_string().contains("canary")));
    host.respond(step, 202, ACCEPTED);
    let answer = host.answer(command);
    assert_eq!(json(&answer.facts)["session_id"], "s-1");
    assert_eq!(answer.raw, r#"{"session_id":"s-1","status":"creating"}"#);
    assert!(host.client.result(command).is_none(), "a result is taken once");
    let page = host.raw(Move::Saved { after: None });
    assert_eq!((&page["entries"][0]["session_id"], &page["after"]), (&json("\"s-1\""), &json("null")));
}

#[test]
fn what_is_seen_through_a_session_is_judged_until_it_is_released() {
    let (place, mut host) = stored();
    let command = host.start("open_session", BUY, r#"{"intent":"job-17","credentials":false}"#);
    let (step, _) = host.sent();
    host.respond(step, 202, br#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#);
    assert!(host.take(command).is_some());
    let observe = |session: &str, seen: &str| Move::Observe { session_id: session.to_owned(), seen: seen.to_owned() };
    let MoveAnswer::Advice { verdict: Some(verdict) } = host.advance(observe("s-1", r#"{"status":403}"#), b"") else {
        panic!("is followed")
    };
    assert_eq!(unpacked(record("Verdict"), &verdict), json(r#"{"verdict":"rotate","reason":"http_403"}"#));
    assert!(matches!(host.advance(observe("s-2", "\"captcha\""), b""), MoveAnswer::Advice { verdict: None }));
    assert!(matches!(host.advance(observe("s-1", "\"nothing\""), b""), MoveAnswer::Refused { .. }));

    let mut other = Host::on(&place, 8);
    let busy = other.start("open_session", BUY, r#"{"intent":"job-17"}"#);
    assert_eq!(other.error(busy)["kind"], "busy");
    for so in [true, false] {
        let release = Move::ReleaseSession { session_id: "s-1".to_owned() };
        assert!(matches!(host.advance(release, b""), MoveAnswer::Was { so: was } if was == so));
    }
    assert!(host.until_send().is_none());
    let resumed = other.command(resume_intent("job-17"));
    assert!(other.sent().1.method == "GET" && other.client.result(resumed).is_none());
}

#[test]
fn a_misuse_and_options_that_do_not_fit_are_refused() {
    let Err(ClientError::Refused { error }) = Client::new("{}", vec![7; 16]).map(drop) else { panic!("has no base URL") };
    assert_eq!(unpacked(record("ErrorFields"), &error)["field"], "baseUrl");
    let (_place, mut host) = stored();
    host.start("create_session", BUY, "{}");
    let (step, _) = host.sent();
    let MoveAnswer::Refused { error } = host.advance(Move::Stored { step, answer: StoreAnswer::Done }, b"") else {
        panic!("a send is not stored")
    };
    assert_eq!(unpacked(record("ErrorFields"), &error)["kind"], "misuse");
    assert!(matches!(host.respond(step, 202, ACCEPTED), MoveAnswer::Nothing));
    assert!(matches!(host.respond(step, 202, ACCEPTED), MoveAnswer::Refused { .. }), "it is answered once");
}

#[test]
fn an_error_begins_with_the_method_that_was_called_and_names_options_as_kotlin_and_swift_do() {
    let (_place, mut host) = stored();
    let command = host.start("open_session", BUY, r#"{"intent":"if_ended","if_ended":"buy"}"#);
    let error = host.error(command);
    let told = "openSession `if_ended`: `ifEnded` can be `buy` only in a client with `dailyCapUsd`";
    assert!(error["message"].as_str().is_some_and(|message| message.starts_with(told)), "{error}");
    assert_eq!(
        (&error["operation"], &error["field"]),
        (&json("\"create_session\""), &json("\"ifEnded\"")),
        "programs compare the operation"
    );
}

#[test]
fn a_reseller_goes_on_with_the_token_it_was_given() {
    let options = r#"{"api":"reseller","base_url":"https://api.example/api","token":"canary"}"#;
    let reseller = Host::new(options, 7, None);
    assert_eq!((reseller.client.token().as_deref(), Host::alone().client.token()), (Some("canary"), None));
}

#[test]
fn products_and_ranges_are_read_as_the_core_reads_them() {
    assert!(is_shared(r#"{"product_type":2}"#) && !is_shared(r#"{"productType":"exclusive"}"#));
    assert_eq!(
        unpacked(record("IpRange"), &ip_range("192.0.2.0/31")),
        json(r#"{"text":"192.0.2.0/31","first":"192.0.2.0","last":"192.0.2.1"}"#)
    );
    assert_eq!(unpacked(record("IpRange"), &ip_range("odd")), json(r#"{"text":"odd"}"#));
}

#[test]
fn a_client_without_a_store_asks_for_none() {
    let mut host = Host::alone();
    let command = host.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    assert!(matches!(host.next(), Some(Step::Send { request, .. }) if request.method == "POST"));
    host.advance(Move::Cancel { command }, b"");
    assert_eq!(host.raw(Move::Saved { after: None })["after"], json("null"));
}

#[test]
fn what_is_cancelled_before_it_was_sent_had_no_effect() {
    let (_place, mut host) = stored();
    let command = host.start("create_session", BUY, "{}");
    host.advance(Move::Cancel { command }, b"");
    let error = host.error(command);
    assert_eq!((&error["kind"], &error["effect"]), (&json("\"cancelled\""), &json("\"none\"")));
}

#[test]
fn a_purchase_in_doubt_survives_and_is_settled() {
    let (place, mut first) = stored();
    let command = first.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    let (step, _) = first.sent();
    assert!(matches!(first.advance(Move::Cancel { command }, b""), MoveAnswer::Abort { step: Some(out) } if out == step));
    first.advance(Move::Fail { step, kind: FailureKind::Aborted, sent: Sent::Maybe }, b"");
    assert_eq!(first.error(command)["effect"], "unknown");
    assert!(first.until_send().is_none());
    let store = first.store.expect("has one");
    store.shut_down();
    assert!(matches!(store.call(StoreCall::Release { names: None }, NOW), Err(StoreError::Misuse(_))));

    let mut second = Host::on(&place, 8);
    let page = second.raw(Move::Saved { after: None });
    let saved = &page["entries"][0];
    assert_eq!((&saved["intent"], &saved["holds"], &saved["whose"]), (&json("\"job-17\""), &json("\"in_doubt\""), &json("\"free\"")));
    let record = saved["record"].as_str().expect("has a name").to_owned();
    assert_eq!(second.raw(Move::Forget { record: record.clone() }), false, "what is in doubt stays");
    let refused = second.command(settle(&record, None, false));
    assert_eq!(second.error(refused)["kind"], "refused", "it may still be under way");
    let odd = second.command(settle(&record, Some("s-1"), true));
    assert_eq!(second.error(odd)["field"], "became");
    second.command(Move::ResumeAll { options: "{}".to_owned() });
    assert_eq!(second.sent().1.method, "GET", "the service's time comes first");
    second.advance(Move::Lost { names: None }, b"");
    drop(second);

    let mut third = Host::on(&place, 9);
    let settled = [(), ()].map(|()| third.raw(settle(&record, None, true)));
    assert_eq!(settled, [json("true"), json("false")]);
    let nothing = third.command(Move::Resume { record, options: "{}".to_owned() });
    assert_eq!(third.error(nothing)["kind"], "misuse");
    assert_eq!(third.raw(resume_intent("job-17")), json("null"));
}

#[test]
fn a_store_is_asked_and_answers_in_text() {
    let place = tempfile::tempdir().expect("a folder can be made");
    let store = open(&place);
    let spend = |amount: &str, cap: Option<&str>| {
        let (space, entry) = ("5e".to_owned(), "00".to_owned());
        store.call(StoreCall::Spend { space, day: None, entry, amount: amount.to_owned(), cap: cap.map(str::to_owned) }, NOW)
    };
    assert!(spend("4.5", Some("5")) == Ok(StoreAnswer::Granted { day: 19675 }));
    assert!(spend("5.01", Some("5")) == Ok(StoreAnswer::Over { day: 19675, total: "4.5".to_owned() }));
    assert!(matches!(spend("much", None), Err(StoreError::Misuse(sentence)) if sentence.contains("`much`")));
    let inside = place.path().join("format").join("store");
    assert!(matches!(Folder::new(inside.to_str().expect("is text")), Err(StoreError::Failed(_))), "a file is no folder");
}

#[test]
fn steps_come_at_once_with_the_results_of_what_has_ended() {
    let mut host = Host::alone();
    let commands: Vec<u32> = (0..64).map(|_| host.start("get_balance", "{}", "{}")).collect();
    let sends: Vec<u32> = commands.iter().map(|_| host.sent().0).collect();
    assert!(host.until_send().is_none());
    for (send, command) in sends.into_iter().zip(&commands) {
        host.respond(send, 200, format!(r#"{{"success":true,"data":{{"balance":{command}}}}}"#).as_bytes());
    }
    for command in commands {
        assert_eq!(host.answer(command).raw, format!(r#"{{"balance":{command}}}"#));
    }
    // Many commands that end at once come in several pieces.
    let many: Vec<u32> = (0..3 * MOST_STEPS).map(|_| host.start("get_balance", "[]", "{}")).collect();
    many.into_iter().for_each(|command| assert_eq!(host.error(command)["kind"], "invalid"));
}

#[test]
fn a_read_needs_no_taking_and_a_purchase_does() {
    let mut host = Host::alone();
    let session = br#"{"success":true,"data":{"session_id":"s-1","status":"active","extra":[1]}}"#;
    let read = host.start("get_session", r#"{"session_id":"s-1"}"#, "{}");
    let (send, _) = host.sent();
    let moved = host.client.advance(Move::Respond { step: send, status: 200, headers: Vec::new(), truncated: false }, session, NOW, 0);
    assert!(moved.taken == [read] && host.client.result(read).is_none());
    let answered = |step: &Step| matches!(step, Step::Completed { command, result: Some(Taken::Answered { .. }) } if *command == read);
    assert!(moved.steps.iter().any(answered) && matches!(moved.steps.last(), Some(Step::Wait { .. })));

    let buy = host.start("create_session", BUY, "{}");
    let (send, _) = host.sent();
    host.respond(send, 202, ACCEPTED);
    // The result that is read again equals the one that was packed while the response was read.
    let again = host.client.result(buy);
    assert!(again.is_some() && host.take(buy) == again && host.client.result(buy).is_none());
}

#[test]
fn an_answer_that_does_not_fit_is_an_error() {
    let mut host = Host::alone();
    let command = host.start("get_session", r#"{"session_id":"s-1"}"#, "{}");
    let (send, _) = host.sent();
    host.respond(send, 200, br#"{"success":true,"data":{"session_id":[]}}"#);
    assert_eq!(host.error(command)["kind"], "decode");
}

#[test]
fn a_pool_is_opened_and_lends_by_commands() {
    let mut host = Host::alone();
    let opened = host.start("open_pool", r#"{"name":"shop","size":2,"session_type":"dynamic","product_no":"p-1","daily_cap_usd":5}"#, "{}");
    assert!(host.client.result(opened).is_some(), "whoever takes it has the pool");
    assert_eq!(json(&host.answer(opened).raw), json(r#"{"pool":1}"#));

    let waiting = host.start("acquire", r#"{"pool":1}"#, "{}");
    let status = host.start("pool_status", r#"{"pool":1}"#, "{}");
    assert!(host.next().is_some_and(|step| matches!(step, Step::Send { .. })), "it buys");
    assert_eq!(json(&host.answer(status).raw)["waiting"], 1);
    assert!(matches!(host.advance(Move::Cancel { command: waiting }, b""), MoveAnswer::Abort { step: None }));

    let (pool, lease) = (1, 1);
    let seen = |seen: &str| Move::ObserveLease { pool, lease, seen: seen.to_owned(), wait_ms: None };
    assert!(matches!(host.advance(seen("\"block\""), b""), MoveAnswer::LeaseAdvice { word: None }), "there is no such lease");
    assert!(matches!(host.advance(seen("odd"), b""), MoveAnswer::Refused { .. }));
    assert!(matches!(host.advance(Move::DiscardLease { pool, lease }, b""), MoveAnswer::Was { so: false }));
    for (data, kind) in [("{}", "misuse"), ("[]", "invalid")] {
        let MoveAnswer::Refused { error } = host.advance(Move::SetLeaseData { pool, lease, data: data.to_owned() }, b"") else {
            panic!("there is no such lease")
        };
        assert_eq!(unpacked(record("ErrorFields"), &error)["kind"], kind);
    }
    assert!(matches!(host.advance(Move::ReleaseLease { pool, lease }, b""), MoveAnswer::Was { so: false }));
    assert!(!host.client.is_valid(pool, lease) && host.client.retry_at(pool, lease).is_none());
    let closed = host.start("close_pool", r#"{"pool":1}"#, "{}");
    assert!(host.take(closed).is_some());
}
