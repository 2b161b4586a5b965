//! Drives the class as JavaScript does, on the machine that builds it.

use super::*;

use hopline::client::StoreCall;
use hopline::contract::json_of;
use hopline::wire::Request;
use hopline::{Effect, Kind};

const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary","store":true}"#;
const BUY: &str = r#"{"session_type":"dynamic","product_no":"p-1","quantity":1}"#;
const ACCEPTED: &[u8] = br#"{"success":true,"data":{"session_id":"s-1","status":"creating"},"meta":{"request_id":"r-1"}}"#;
const NOW: f64 = 1_700_000_000_000.0;

fn client(seed: u8) -> Client {
    Client::new(OPTIONS, &[seed; 16]).expect("the options are sound")
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

/// The next step, without events.
fn next(client: &mut Client) -> Step {
    loop {
        match client.step(NOW, 0.5) {
            Step::Notify(_) => {}
            step => return step,
        }
    }
}

/// The next step, which calls the store.
fn asked(client: &mut Client) -> (u32, StoreCall) {
    match next(client) {
        Step::Store { id, call, .. } => (id.0, call),
        other => panic!("nothing is asked of the store: {other:?}"),
    }
}

/// Answers a call of a store that has this data under the name, and nothing else.
fn keep(client: &mut Client, (step, call): (u32, StoreCall), data: Option<&str>) {
    let kept = match call {
        StoreCall::Claim { names, most } => {
            assert_eq!((names.len(), most), (1, 1));
            let length = data.map_or("-1".to_owned(), |data| data.len().to_string());
            let lines: Vec<String> = names.iter().map(|name| name.to_string()).chain([length]).collect();
            client.stored(step, "claimed", &lines.join("\n"), data.unwrap_or_default().as_bytes(), NOW, 0.5)
        }
        StoreCall::List { .. } => client.stored(step, "listed", "", &[], NOW, 0.5),
        StoreCall::Spend { day, .. } => client.stored(step, "granted", &day.unwrap_or(20_000).to_string(), &[], NOW, 0.5),
        StoreCall::Put { .. } | StoreCall::Delete { .. } | StoreCall::Release { .. } => client.stored(step, "done", "", &[], NOW, 0.5),
    };
    kept.expect("is answered once");
}

/// Carries out the first store call, and returns its name and data, the step of the send, and its request.
fn until_send(client: &mut Client) -> ([String; 2], u32, Request) {
    let mut put = None;
    loop {
        match next(client) {
            Step::Store { id, call, .. } => {
                if let StoreCall::Put { name, data, .. } = &call {
                    put = Some([name.to_string(), String::from_utf8(data.clone()).expect("is text")]);
                }
                keep(client, (id.0, call), None);
            }
            Step::Send { id, request, .. } => return (put.expect("a purchase is put first"), id.0, request),
            other => panic!("nothing is sent: {other:?}"),
        }
    }
}

/// Drains until a command has completed; the store has this data, and keeps new data.
fn until_completed_with(client: &mut Client, command: u32, data: Option<&str>) {
    loop {
        match next(client) {
            Step::Store { id, call, .. } => keep(client, (id.0, call), data),
            Step::Completed { command: ended } if ended.0 == command => return,
            Step::Completed { .. } => {}
            other => panic!("{command} does not complete: {other:?}"),
        }
    }
}

fn until_completed(client: &mut Client, command: u32) {
    until_completed_with(client, command, None);
}

/// The answer of a command, as JSON.
fn answer(client: &mut Client, command: u32, data: Option<&str>) -> serde_json::Value {
    until_completed_with(client, command, data);
    json(&client.client.take_text(command).expect("has completed").expect("was answered").raw)
}

fn error(client: &mut Client, command: u32) -> serde_json::Value {
    let taken = client.client.take_text(command).expect("has completed");
    refusal(&taken.map(drop).expect_err("has failed"))
}

fn refusal(error: &Error) -> serde_json::Value {
    json(&json_of(error))
}

#[test]
fn a_purchase_is_saved_sent_answered_and_taken_once() {
    let mut client = client(7);
    let command = client.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    assert!(client.client.take_text(command).is_none());
    let (_, step, request) = until_send(&mut client);
    assert_eq!((request.expects.operation(), request.method.as_str()), ("create_session", "POST"));
    assert_eq!((request.url.as_str(), request.header("x-api-key")), ("https://api.example/v1/sessions", Some("canary")));
    assert_eq!(json(std::str::from_utf8(&request.body).expect("is text")), json(BUY));
    client.respond(step, 202, "content-type\napplication/json", ACCEPTED, false, NOW, 0.5).expect("is answered once");
    until_completed(&mut client, command);
    let taken = client.client.take_text(command).expect("has completed").expect("was answered");
    assert_eq!(json(&taken.facts)["session_id"], "s-1");
    assert_eq!(taken.raw, r#"{"session_id":"s-1","status":"creating"}"#);
    assert!(client.client.take_text(command).is_none(), "a result is taken once");
}

#[test]
fn a_misuse_and_options_that_do_not_fit_are_refused() {
    let Refused(error) = Client::new("{}", &[7; 16]).map(drop).expect_err("has no base URL");
    assert_eq!(error.field.as_deref(), Some("base_url"));
    let mut client = client(7);
    client.start("create_session", BUY, "{}");
    let (_, step, _) = until_send(&mut client);
    let Refused(error) = client.stored(step, "done", "", &[], NOW, 0.5).expect_err("a send is not stored");
    assert_eq!(error.kind, Kind::Misuse);
    assert!(client.fail(step, "gone", "maybe", NOW, 0.5).is_err(), "is no word for it");
    client.respond(step, 202, "", ACCEPTED, false, NOW, 0.5).expect("is answered once");
    assert!(client.respond(step, 202, "", ACCEPTED, false, NOW, 0.5).is_err(), "and not twice");
}

#[test]
fn a_list_is_walked_by_its_positions() {
    let first = r#"{"operation":"list_products","max_pages":2}"#;
    assert_eq!(host_text("page_params", first, r#"{"limit":2}"#), Ok(r#"{"limit":2}"#.into()));
    let turn = json(&host_text("page_turn", first, r#"{"next_cursor":"c1","attempts":1}"#).expect("goes on"));
    let second = turn["position"].as_str().expect("is a text").to_owned();
    assert_eq!(host_text("page_params", &second, r#"{"limit":2}"#), Ok(r#"{"cursor":"c1","limit":2}"#.into()));
    assert_eq!(host_text("page_turn", &second, "{}"), Ok(r#"{"end":"last_page"}"#.into()));
    for Refused(error) in [("page_params", "{}", "{}"), ("page_params", first, "[]"), ("page_turn", "{}", "{}")]
        .map(|(question, given, more)| host_text(question, given, more))
        .map(|told| told.expect_err("is refused"))
    {
        assert_eq!((error.kind, error.effect), (Kind::Invalid, Effect::None));
    }
}

#[test]
fn a_quote_is_exact_or_refused() {
    let product =
        r#"{"product_no":"p-1","name":"P","type":"dynamic","sharing":"shared","available":true,"price":4.10,"currency":"USD","unit":"GB"}"#;
    assert_eq!(json(&host_text("quote", product, "0.3").expect("has a price"))["total"].to_string(), "1.23");
    let Refused(error) = host_text("quote", product, "-1").expect_err("is no quantity");
    assert_eq!(error.field.as_deref(), Some("quantity"));
}

#[test]
fn what_is_cancelled_before_it_was_sent_had_no_effect() {
    let mut client = client(7);
    let command = client.start("create_session", BUY, "{}");
    client.cancel(command, NOW, 0.5);
    until_completed(&mut client, command);
    let error = error(&mut client, command);
    assert_eq!((&error["kind"], &error["effect"]), (&json("\"cancelled\""), &json("\"none\"")));
}

#[test]
fn a_purchase_in_doubt_survives_and_is_settled() {
    let mut first = client(7);
    let command = first.start("create_session", BUY, r#"{"intent":"job-17"}"#);
    let ([name, data], step, _) = until_send(&mut first);
    assert_eq!(first.cancel(command, NOW, 0.5), Some(step), "what is out is to be aborted");
    first.fail(step, "aborted", "maybe", NOW, 0.5).expect("is answered once");
    until_completed(&mut first, command);
    assert_eq!(error(&mut first, command)["effect"], "unknown");

    let mut second = client(8);
    let listed = second.act("saved", String::new(), None);
    let (step, call) = asked(&mut second);
    assert!(matches!(call, StoreCall::List { open: false, .. }));
    let lines = format!("{name}\nfree\n{}", data.len());
    second.stored(step, "listed", &lines, data.as_bytes(), NOW, 0.5).expect("is answered once");
    let entry = answer(&mut second, listed, None)["entries"][0].clone();
    assert_eq!((&entry["intent"], &entry["holds"], &entry["whose"]), (&json("\"job-17\""), &json("\"in_doubt\""), &json("\"free\"")));
    let forgotten = second.act("forget", name.clone(), None);
    assert_eq!(answer(&mut second, forgotten, Some(&data)), false, "what is in doubt stays");
    let early = second.act("not_happened", name.clone(), None);
    until_completed_with(&mut second, early, Some(&data));
    assert_eq!(error(&mut second, early)["kind"], "refused", "it may still be under way");
    let settled = second.act("not_happened_early", name.clone(), None);
    assert_eq!(answer(&mut second, settled, Some(&data)), true);
    let wrong = second.act("not_happened", name, Some("s-1".to_owned()));
    until_completed(&mut second, wrong);
    assert_eq!(error(&mut second, wrong)["field"], "became");
    assert_eq!(second.act("resume_intent", "job-18".to_owned(), None), wrong + 1);
    assert_eq!(answer(&mut second, wrong + 1, None), serde_json::Value::Null, "it stands for nothing");
}

#[test]
fn what_a_store_answers_and_cannot_be_read_has_failed() {
    let mut client = client(7);
    let listed = client.act("saved", String::new(), None);
    let (step, _) = asked(&mut client);
    client.stored(step, "listed", "a.b\nnobody's\n2", b"{}", NOW, 0.5).expect("is answered once");
    until_completed(&mut client, listed);
    assert_eq!(error(&mut client, listed)["kind"], "store");
    assert!(client.stored(step, "done", "", &[], NOW, 0.5).is_err(), "and not twice");
}

#[test]
fn a_reseller_starts_from_a_token_and_shows_the_one_that_it_uses() {
    let options = r#"{"api":"reseller","base_url":"https://api.example/api","token":"t-1"}"#;
    let reseller = Client::new(options, &[7; 16]).expect("the options are sound");
    assert_eq!(reseller.token().as_deref(), Some("t-1"));
    assert_eq!(client(7).token(), None);
}

#[test]
fn a_product_is_shared_or_not_and_a_range_has_ends_or_not() {
    let told = |question, given| host_text(question, given, "").expect("is always answered");
    let shared = [r#"{"product_type":2}"#, r#"{"productType":"exclusive"}"#, "{"].map(|product| told("is_shared", product));
    assert_eq!(shared, ["true", "false", "false"]);
    assert_eq!(json(&told("ip_range", "192.0.2.0/31"))["last"], "192.0.2.1");
    assert_eq!(told("ip_range", "somewhere"), r#"{"text":"somewhere"}"#);
    assert!(told("response_headers", "").lines().any(|name| name == "retry-after"));
}
