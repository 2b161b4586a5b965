//! Drives the class as Kotlin and Swift do.

use super::*;

const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p-1","quantity":1}"#;
const ACCEPTED: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","status":"creating"},"meta":{"request_id":"r-1"}}"#;
const NOW: i64 = 1_700_000_000_000;

fn client() -> Client {
    Client::new(OPTIONS, vec![7; 16]).expect("the options are sound")
}

/// The step, past what is told for people only.
fn next(client: &Client) -> Step {
    loop {
        match client.poll(NOW, 0) {
            Step::Notify { event } => drop(json(&event)),
            step => return step,
        }
    }
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

/// Saves what is to be saved first, and returns the record and the send.
fn until_send(client: &Client) -> (Record, u32, Request) {
    let Step::Save { id, record, data: Some(data) } = next(client) else { panic!("a purchase is saved first") };
    assert!(matches!(client.poll(NOW, 0), Step::Wait { .. }), "and waits for it");
    client.saved(id, NOW, 0).expect("is answered once");
    let Step::Send { id, request, .. } = next(client) else { panic!("then it is sent") };
    (Record { id: record, data }, id, request)
}

/// Drains until a command has completed; the store keeps what it is given.
fn until_completed(client: &Client, wanted: u32) {
    loop {
        match next(client) {
            Step::Save { id, .. } => client.saved(id, NOW, 0).expect("is answered once"),
            Step::Completed { command } if command == wanted => return,
            Step::Completed { .. } => {}
            _ => panic!("{wanted} does not complete"),
        }
    }
}

fn error(client: &Client, command: u32) -> serde_json::Value {
    match client.take(command) {
        Some(Taken::Failed { error }) => json(&error),
        _ => panic!("{command} did not fail"),
    }
}

#[test]
fn a_purchase_is_saved_sent_answered_and_taken_once() {
    let client = client();
    let command = client.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    assert!(client.take(command).is_none());
    let (_, step, request) = until_send(&client);
    assert_eq!((request.method.as_str(), request.url.as_str()), ("POST", "https://api.example/v1/sessions"));
    assert_eq!(json(std::str::from_utf8(&request.body.clone().expect("has a body")).expect("is text")), json(BUY));
    assert!(request.headers.iter().any(|header| header.name == "x-api-key" && header.value == "canary"));
    assert!(!request.to_string().contains("canary") && request.headers.iter().all(|header| !header.to_string().contains("canary")));
    let headers = vec![Header { name: "content-type".into(), value: "application/json".into() }];
    client.respond(step, 202, headers, ACCEPTED, false, NOW, 0).expect("is answered once");
    until_completed(&client, command);
    let Some(Taken::Answered { answer }) = client.take(command) else { panic!("was accepted") };
    assert_eq!(json(&answer.facts)["session_id"], "s-1");
    assert_eq!(answer.raw, r#"{"session_id":"s-1","status":"creating"}"#);
    assert!(client.take(command).is_none(), "a result is taken once");
    assert_eq!(json(&client.saved_list())[0]["session_id"], "s-1");
}

#[test]
fn what_is_seen_through_a_session_is_judged() {
    let client = client();
    client.start("open_session", BUY, "{}");
    let (_, step, _) = until_send(&client);
    let active = br#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#;
    client.respond(step, 202, Vec::new(), active, false, NOW, 0).expect("is answered once");
    let advice = client.observe("s-1", r#"{"status":403}"#, NOW, 0);
    assert_eq!(advice, Ok(Some(r#"{"verdict":"rotate","reason":"http_403"}"#.into())));
    assert_eq!(client.observe("s-2", "\"captcha\"", NOW, 0), Ok(None));
    assert!(client.observe("s-1", "\"nothing\"", NOW, 0).is_err());
}

#[test]
fn a_misuse_and_options_that_do_not_fit_are_exceptions() {
    let Err(ClientError::Refused { error }) = Client::new("{}", vec![7; 16]).map(drop) else { panic!("has no base URL") };
    assert_eq!(json(&error)["field"], "base_url");
    let client = client();
    client.start("create_session", BUY, "{}");
    let (_, step, _) = until_send(&client);
    let Err(ClientError::Refused { error }) = client.saved(step, NOW, 0) else { panic!("a send is not saved") };
    assert_eq!(json(&error)["kind"], "misuse");
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
    assert_eq!(json(&ip_range("192.0.2.0/31")), json(r#"{"text":"192.0.2.0/31","first":"192.0.2.0","last":"192.0.2.1"}"#));
    assert_eq!(json(&ip_range("odd")), json(r#"{"text":"odd"}"#));
}

#[test]
fn what_is_cancelled_before_it_was_sent_had_no_effect() {
    let client = client();
    let command = client.start("create_session", BUY, "{}");
    client.cancel(command, NOW, 0);
    until_completed(&client, command);
    let error = error(&client, command);
    assert_eq!((&error["kind"], &error["effect"]), (&json("\"cancelled\""), &json("\"none\"")));
}

#[test]
fn a_purchase_in_doubt_survives_and_is_settled() {
    let first = client();
    let command = first.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    let (record, step, _) = until_send(&first);
    first.cancel(command, NOW, 0);
    first.fail(step, FailureKind::Aborted, Sent::Maybe, NOW, 0).expect("is answered once");
    until_completed(&first, command);
    assert_eq!(error(&first, command)["effect"], "unknown");

    let second = Client::new(OPTIONS, vec![8; 16]).expect("the options are sound");
    let damaged = Record { id: "00-r1".into(), data: b"[]".to_vec() };
    let restored = json(&second.restore(vec![record.clone(), damaged], false));
    assert_eq!(restored["held"], serde_json::json!([record.id]));
    assert_eq!(restored["refused"][0]["reason"], "damaged");
    let saved = json(&second.saved_list());
    assert_eq!((&saved[0]["intent"], &saved[0]["holds"]), (&json("\"job-17\""), &json("\"in_doubt\"")));
    assert_eq!(second.resume_all().len(), 1);
    assert!(matches!(next(&second), Step::Send { request, .. } if request.method == "GET"), "the service's time comes first");
    assert!(!second.forget(&record.id), "what is in doubt stays");

    let third = Client::new(OPTIONS, vec![9; 16]).expect("the options are sound");
    third.restore(vec![record.clone()], false);
    assert!(third.settle(&record.id, false, Some("s-1".to_owned())).is_err());
    assert_eq!([(), ()].map(|()| third.settle(&record.id, false, None).ok()), [Some(true), Some(false)]);
    let Step::Save { id, data: None, .. } = next(&third) else { panic!("its record goes") };
    third.saved(id, NOW, 0).expect("is answered once");
    let misuse = third.resume(&record.id, "{}");
    assert_eq!(error(&third, misuse)["kind"], "misuse");
}
