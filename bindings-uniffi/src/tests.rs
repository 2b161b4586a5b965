//! Drives the class as Kotlin and Swift do.

use super::packed::tests::{record, unpacked};
use super::*;

const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary","store":true}"#;
const ALONE: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p-1","quantity":1}"#;
const ACCEPTED: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","status":"creating"},"meta":{"request_id":"r-1"}}"#;
const NOW: i64 = 1_700_000_000_000;

fn client() -> Arc<Client> {
    Client::new(OPTIONS, vec![7; 16]).expect("the options are sound")
}

/// The step, past what is told for people only.
fn next(client: &Client) -> Step {
    loop {
        match client.poll(NOW, 0) {
            Step::Notify { event } => drop(unpacked(record("Event"), &event)),
            step => return step,
        }
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

/// A folder of a test's own.
fn store() -> (tempfile::TempDir, Folder) {
    let place = tempfile::tempdir().expect("a folder can be made");
    let folder = open(&place);
    (place, folder)
}

fn open(place: &tempfile::TempDir) -> Folder {
    Folder::new(place.path().to_str().expect("is text")).expect("the folder is a store")
}

/// Does what the store is asked for until there is something to send.
fn until_send(client: &Client, store: &Folder) -> (u32, Request) {
    loop {
        match next(client) {
            Step::Store { id, call, .. } => answer(client, store, id, call),
            Step::Send { id, request, .. } => return (id, request),
            _ => panic!("nothing is sent"),
        }
    }
}

fn answer(client: &Client, store: &Folder, step: u32, call: StoreCall) {
    let answer = store.call(call, NOW).expect("the store does it");
    client.stored(step, answer, NOW, 0).expect("is answered once");
}

/// Drains until a command has completed.
fn until_completed(client: &Client, store: &Folder, wanted: u32) {
    loop {
        match next(client) {
            Step::Store { id, call, .. } => answer(client, store, id, call),
            Step::Completed { command, .. } if command == wanted => return,
            Step::Completed { .. } => {}
            _ => panic!("{wanted} does not complete"),
        }
    }
}

/// What a command that sends nothing was answered with.
fn raw(client: &Client, store: &Folder, command: u32) -> serde_json::Value {
    until_completed(client, store, command);
    match client.take(command) {
        Some(Taken::Answered { answer }) => json(&answer.raw),
        Some(Taken::Failed { error }) => panic!("{command} failed: {}", unpacked(record("ErrorFields"), &error)),
        None => panic!("{command} has no result"),
    }
}

fn error(client: &Client, command: u32) -> serde_json::Value {
    match client.take(command) {
        Some(Taken::Failed { error }) => unpacked(record("ErrorFields"), &error),
        _ => panic!("{command} did not fail"),
    }
}

#[test]
fn a_purchase_is_stored_sent_answered_and_taken_once() {
    let ((_place, store), client) = (store(), client());
    let command = client.start(b"create_session", BUY.as_bytes(), br#"{"intent":"job-17"}"#);
    assert!(client.take(command).is_none());
    let Step::Store { id, command: Some(waits), call } = next(&client) else { panic!("its name is claimed first") };
    assert!(matches!(&call, StoreCall::Claim { names, most: 1 } if names.len() == 1) && waits == command);
    assert!(matches!(client.poll(NOW, 0), Step::Wait { .. }), "and it waits for that");
    answer(&client, &store, id, call);
    let (step, request) = until_send(&client, &store);
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://api.example/v1/sessions"));
    assert_eq!(json(std::str::from_utf8(&request.body.clone().expect("has a body")).expect("is text")), json(BUY));
    assert!(request.headers.iter().any(|header| header.name == "x-api-key" && header.value == "canary"));
    assert!(!request.to_string().contains("canary") && request.headers.iter().all(|header| !header.to_string().contains("canary")));
    let headers = vec![Header { name: "content-type".into(), value: "application/json".into() }];
    client.respond(step, 202, headers, ACCEPTED, false, NOW, 0).expect("is answered once");
    until_completed(&client, &store, command);
    let Some(Taken::Answered { answer }) = client.take(command) else { panic!("was accepted") };
    assert_eq!(json(&answer.facts)["session_id"], "s-1");
    assert_eq!(answer.raw, r#"{"session_id":"s-1","status":"creating"}"#);
    assert!(client.take(command).is_none(), "a result is taken once");
    let page = raw(&client, &store, client.saved(None));
    assert_eq!((&page["entries"][0]["session_id"], &page["after"]), (&json("\"s-1\""), &json("null")));
}

#[test]
fn what_is_seen_through_a_session_is_judged_until_it_is_released() {
    let ((place, store), client) = (store(), client());
    let command = client.start(b"open_session", BUY.as_bytes(), br#"{"intent":"job-17"}"#);
    let (step, _) = until_send(&client, &store);
    let active = br#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#;
    client.respond(step, 202, Vec::new(), active, false, NOW, 0).expect("is answered once");
    until_completed(&client, &store, command);
    assert!(client.take(command).is_some());
    let advice = client.observe("s-1", r#"{"status":403}"#, NOW, 0).expect("is sound").expect("is followed");
    assert_eq!(unpacked(record("Verdict"), &advice), json(r#"{"verdict":"rotate","reason":"http_403"}"#));
    assert_eq!(client.observe("s-2", "\"captcha\"", NOW, 0), Ok(None));
    assert!(client.observe("s-1", "\"nothing\"", NOW, 0).is_err());

    let (other, elsewhere) = (Client::new(OPTIONS, vec![8; 16]).expect("the options are sound"), open(&place));
    let busy = other.start(b"open_session", BUY.as_bytes(), br#"{"intent":"job-17"}"#);
    until_completed(&other, &elsewhere, busy);
    assert_eq!(error(&other, busy)["kind"], "busy");
    assert!(client.release_session("s-1") && !client.release_session("s-1"));
    until_wait(&client, &store);
    let resumed = other.resume_intent("job-17", "{}");
    assert!(matches!(until_send(&other, &elsewhere).1.method.as_str(), "GET") && other.result(resumed).is_none());
}

fn until_wait(client: &Client, store: &Folder) {
    while let Step::Store { id, call, .. } = next(client) {
        answer(client, store, id, call);
    }
}

#[test]
fn a_misuse_and_options_that_do_not_fit_are_exceptions() {
    let Err(ClientError::Refused { error }) = Client::new("{}", vec![7; 16]).map(drop) else { panic!("has no base URL") };
    assert_eq!(unpacked(record("ErrorFields"), &error)["field"], "base_url");
    let ((_place, store), client) = (store(), client());
    client.start(b"create_session", BUY.as_bytes(), b"{}");
    let (step, _) = until_send(&client, &store);
    let Err(ClientError::Refused { error }) = client.stored(step, StoreAnswer::Done, NOW, 0) else { panic!("a send is not stored") };
    assert_eq!(unpacked(record("ErrorFields"), &error)["kind"], "misuse");
    client.respond(step, 202, Vec::new(), ACCEPTED, false, NOW, 0).expect("is answered once");
    assert!(client.respond(step, 202, Vec::new(), ACCEPTED, false, NOW, 0).is_err(), "and not twice");
}

#[test]
fn a_reseller_goes_on_with_the_token_it_was_given() {
    let options = r#"{"api":"reseller","base_url":"https://api.example/api","token":"canary"}"#;
    let reseller = Client::new(options, vec![7; 16]).expect("the options are sound");
    assert_eq!((reseller.token().as_deref(), client().token()), (Some("canary"), None));
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
    let client = Client::new(ALONE, vec![7; 16]).expect("the options are sound");
    let command = client.start(b"create_session", BUY.as_bytes(), br#"{"intent":"job-17"}"#);
    assert!(matches!(next(&client), Step::Send { request, .. } if request.method == "POST"));
    client.cancel(command, NOW, 0);
    let list = client.saved(None);
    assert!(matches!(next(&client), Step::Completed { command, .. } if command == list));
}

#[test]
fn what_is_cancelled_before_it_was_sent_had_no_effect() {
    let ((_place, store), client) = (store(), client());
    let command = client.start(b"create_session", BUY.as_bytes(), b"{}");
    client.cancel(command, NOW, 0);
    until_completed(&client, &store, command);
    let error = error(&client, command);
    assert_eq!((&error["kind"], &error["effect"]), (&json("\"cancelled\""), &json("\"none\"")));
}

#[test]
fn a_purchase_in_doubt_survives_and_is_settled() {
    let ((place, store), first) = (store(), client());
    let command = first.start(b"create_session", BUY.as_bytes(), br#"{"intent":"job-17"}"#);
    let (step, _) = until_send(&first, &store);
    first.cancel(command, NOW, 0);
    first.fail(step, FailureKind::Aborted, Sent::Maybe, NOW, 0).expect("is answered once");
    until_completed(&first, &store, command);
    assert_eq!(error(&first, command)["effect"], "unknown");
    until_wait(&first, &store);
    store.shut_down();
    assert!(matches!(store.call(StoreCall::Release { names: None }, NOW), Err(StoreError::Misuse(_))));

    let (second, store) = (Client::new(OPTIONS, vec![8; 16]).expect("the options are sound"), open(&place));
    let page = raw(&second, &store, second.saved(None));
    let saved = &page["entries"][0];
    assert_eq!((&saved["intent"], &saved["holds"], &saved["whose"]), (&json("\"job-17\""), &json("\"in_doubt\""), &json("\"free\"")));
    let record = saved["record"].as_str().expect("has a name").to_owned();
    assert_eq!(raw(&second, &store, second.forget(record.clone())), false, "what is in doubt stays");
    let refused = second.settle(record.clone(), false, None, false);
    until_completed(&second, &store, refused);
    assert_eq!(error(&second, refused)["kind"], "refused", "it may still be under way");
    let odd = second.settle(record.clone(), false, Some("s-1".to_owned()), true);
    until_completed(&second, &store, odd);
    assert_eq!(error(&second, odd)["field"], "became");
    second.resume_all("{}");
    assert_eq!(until_send(&second, &store).1.method, "GET", "the service's time comes first");
    second.lost(None, NOW, 0);
    drop(second);
    drop(store);

    let (third, store) = (Client::new(OPTIONS, vec![9; 16]).expect("the options are sound"), open(&place));
    let settled = [(), ()].map(|()| raw(&third, &store, third.settle(record.clone(), false, None, true)));
    assert_eq!(settled, [json("true"), json("false")]);
    let nothing = third.resume(record, "{}");
    until_completed(&third, &store, nothing);
    assert_eq!(error(&third, nothing)["kind"], "misuse");
    assert_eq!(raw(&third, &store, third.resume_intent("job-17", "{}")), json("null"));
}

#[test]
fn a_store_is_asked_and_answers_in_text() {
    let (place, store) = store();
    let spend = |amount: &str, cap: Option<&str>| {
        let (space, entry) = ("5e".to_owned(), "00".to_owned());
        store.call(StoreCall::Spend { space, day: None, entry, amount: amount.to_owned(), cap: cap.map(str::to_owned) }, NOW)
    };
    assert!(spend("4.5", Some("5")) == Ok(StoreAnswer::Granted { day: 19675 }));
    assert!(spend("5.01", Some("5")) == Ok(StoreAnswer::Over { total: "4.5".to_owned() }));
    assert!(matches!(spend("much", None), Err(StoreError::Misuse(sentence)) if sentence.contains("`much`")));
    let inside = place.path().join("format").join("store");
    assert!(matches!(Folder::new(inside.to_str().expect("is text")), Err(StoreError::Failed(_))), "a file is no folder");
}

#[test]
fn steps_come_at_once_with_the_results_of_what_has_ended() {
    let client = Client::new(ALONE, vec![7; 16]).expect("the options are sound");
    let commands: Vec<u32> = (0..100).map(|_| client.start(b"get_balance", b"{}", b"{}")).collect();
    let mut sends = Vec::new();
    loop {
        let steps = client.steps(true, NOW, 0);
        assert!(steps.len() <= MOST_STEPS);
        sends.extend(steps.iter().filter_map(|step| if let Step::Send { id, .. } = step { Some(*id) } else { None }));
        if let Some(Step::Wait { .. }) = steps.last() {
            break;
        }
        assert_eq!(steps.len(), MOST_STEPS, "without a wait there are more");
    }
    assert_eq!(sends.len(), commands.len());
    client.respond(sends[0], 200, Vec::new(), br#"{"success":true,"data":{"balance":1}}"#, false, NOW, 0).expect("is answered once");
    let ended = client.steps(true, NOW, 0).into_iter().find_map(|step| match step {
        Step::Completed { command, result: Some(Taken::Answered { answer }) } => Some((command, answer.raw)),
        _ => None,
    });
    assert_eq!(ended, Some((commands[0], r#"{"balance":1}"#.to_owned())));
    assert!(client.result(commands[0]).is_some(), "it stays until it is taken");
    assert!(client.taken(commands[0]) && !client.taken(commands[0]) && client.result(commands[0]).is_none());
    client.respond(sends[1], 200, Vec::new(), br#"{"success":true,"data":{}}"#, false, NOW, 0).expect("is answered once");
    let bare = client.steps(false, NOW, 0);
    assert!(bare.iter().any(|step| matches!(step, Step::Completed { result: None, .. })), "nobody asked for it");
}

/// The Send that a move brought, its command, and the answer to it.
fn started(client: &Client, operation: &str, params: &str) -> (u32, u32) {
    let what = Move::Start { operation: operation.to_owned(), params: params.to_owned(), options: "{}".to_owned() };
    let moved = client.advance(what, b"", NOW, 0);
    let MoveAnswer::Command { command } = moved.answer else { panic!("it is a command") };
    let send = moved.steps.iter().find_map(|step| if let Step::Send { id, .. } = step { Some(*id) } else { None });
    (command, send.expect("is sent"))
}

fn responded(client: &Client, step: u32, body: &[u8]) -> Moved {
    client.advance(Move::Respond { step, status: 200, headers: Vec::new(), truncated: false }, body, NOW, 0)
}

fn ended(moved: &Moved) -> Option<(u32, &Answer)> {
    moved.steps.iter().find_map(|step| match step {
        Step::Completed { command, result: Some(Taken::Answered { answer }) } => Some((*command, answer)),
        _ => None,
    })
}

#[test]
fn a_move_brings_its_steps_and_a_read_needs_no_taking() {
    let client = Client::new(ALONE, vec![7; 16]).expect("the options are sound");
    let session = br#"{"success":true,"data":{"session_id":"s-1","status":"active","extra":[1]}}"#;
    let (read, send) = started(&client, "get_session", r#"{"session_id":"s-1"}"#);
    let moved = responded(&client, send, session);
    let (command, answer) = ended(&moved).expect("has ended");
    assert_eq!((command, moved.taken.as_slice()), (read, [read].as_slice()));
    assert!(client.result(read).is_none());
    assert!(matches!(moved.steps.last(), Some(Step::Wait { .. })));
    assert!(matches!(responded(&client, send, session).answer, MoveAnswer::Refused { .. }), "it is answered once");

    // The same, read again when it is taken.
    let again = client.start(b"get_session", br#"{"session_id":"s-1"}"#, b"{}");
    let Step::Send { id, .. } = next(&client) else { panic!("nothing is sent") };
    client.respond(id, 200, Vec::new(), session, false, NOW, 0).expect("is answered once");
    assert!(matches!(client.take(again), Some(Taken::Answered { answer: second }) if second == *answer));

    let (buy, send) = started(&client, "create_session", BUY);
    let moved = responded(&client, send, ACCEPTED);
    assert_eq!((ended(&moved).map(|(command, _)| command), moved.taken.as_slice()), (Some(buy), [].as_slice()));
    assert!(client.result(buy).is_some(), "its record hangs on who takes it");
    client.advance(Move::Taken { commands: vec![buy] }, b"", NOW, 0);
    assert!(client.result(buy).is_none());
}

#[test]
fn an_answer_that_does_not_fit_is_an_error_after_a_move_too() {
    let client = Client::new(ALONE, vec![7; 16]).expect("the options are sound");
    let (command, send) = started(&client, "get_session", r#"{"session_id":"s-1"}"#);
    let moved = responded(&client, send, br#"{"success":true,"data":{"session_id":[]}}"#);
    let failed = moved.steps.iter().find_map(|step| match step {
        Step::Completed { command: of, result: Some(Taken::Failed { error }) } if *of == command => {
            Some(unpacked(record("ErrorFields"), error))
        }
        _ => None,
    });
    assert_eq!(failed.expect("has failed")["kind"], "decode");
}

#[test]
fn a_pool_is_opened_and_lends_by_commands() {
    let client = Client::new(ALONE, vec![7; 16]).expect("the options are sound");
    let start = |operation: &str, params: &str| {
        let what = Move::Start { operation: operation.to_owned(), params: params.to_owned(), options: "{}".to_owned() };
        client.advance(what, b"", NOW, 0)
    };
    let open = r#"{"name":"shop","size":2,"session_type":"dynamic","product_no":"p-1","daily_cap_usd":5}"#;
    let opened = start("open_pool", open);
    let (command, answer) = ended(&opened).expect("has ended");
    assert_eq!((json(&answer.raw), opened.taken.len()), (json(r#"{"pool":1}"#), 0), "whoever takes it has the pool");
    client.advance(Move::Taken { commands: vec![command] }, b"", NOW, 0);

    let asked = start("acquire", r#"{"pool":1}"#);
    let MoveAnswer::Command { command: waiting } = asked.answer else { panic!("it is a command") };
    assert!(ended(&asked).is_none(), "nothing is bought yet");
    let status = start("pool_status", r#"{"pool":1}"#);
    assert_eq!(json(&ended(&status).expect("has ended").1.raw)["waiting"], 1);
    assert!(matches!(client.advance(Move::Cancel { command: waiting }, b"", NOW, 0).answer, MoveAnswer::Abort { step: None }));

    let (pool, lease) = (1, 1);
    let seen = |seen: &str| client.advance(Move::ObserveLease { pool, lease, seen: seen.to_owned(), wait_ms: None }, b"", NOW, 0).answer;
    assert!(matches!(seen("\"block\""), MoveAnswer::LeaseAdvice { word: None }), "there is no such lease");
    assert!(matches!(seen("odd"), MoveAnswer::Refused { .. }));
    assert!(matches!(client.advance(Move::ReleaseLease { pool, lease }, b"", NOW, 0).answer, MoveAnswer::Was { so: false }));
    assert!(!client.is_valid(pool, lease));
    assert!(start("close_pool", r#"{"pool":1}"#).steps.iter().any(|step| matches!(step, Step::Completed { .. })));
}
