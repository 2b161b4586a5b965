//! Drives the class as JavaScript does, on the machine that builds it.

use super::*;

use hopline::client::StoreCall;
use hopline::contract::json_of;
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

/// The step, past what is told for people only.
fn next(client: &mut Client) -> StepKind {
    loop {
        match client.poll(NOW, 0.5) {
            StepKind::Notify => {}
            step => return step,
        }
    }
}

/// Answers a call of a store that has this under the name, and nothing else.
fn keep(client: &mut Client, data: Option<&str>) {
    let step = client.id().expect("is answered");
    let kept = match client.call_of().expect("asks something").clone() {
        StoreCall::Claim { names, most } => {
            assert_eq!((names.len(), most), (1, 1));
            let names = names.iter().map(|name| name.to_string()).collect();
            let length = data.map_or(-1, |data| i32::try_from(data.len()).expect("is short"));
            client.claimed(step, names, &[length], data.unwrap_or_default().as_bytes(), NOW, 0.5)
        }
        StoreCall::List { .. } => client.listed(step, Vec::new(), &[], &[], Vec::new(), false, NOW, 0.5),
        StoreCall::Spend { day, .. } => client.granted(step, day.unwrap_or(20_000) as f64, NOW, 0.5),
        StoreCall::Put { .. } | StoreCall::Delete { .. } | StoreCall::Release { .. } => client.stored(step, "done", NOW, 0.5),
    };
    kept.expect("is answered once");
}

/// Keeps what is to be kept first, and returns its name and data and the step of the send.
fn until_send(client: &mut Client) -> ([String; 2], u32) {
    let mut put = None;
    loop {
        match next(client) {
            StepKind::Store => {
                if let Some(StoreCall::Put { name, data, .. }) = client.call_of() {
                    put = Some([name.to_string(), String::from_utf8(data.clone()).expect("is text")]);
                }
                keep(client, None);
            }
            StepKind::Send => return (put.expect("a purchase is put first"), client.id().expect("is answered")),
            other => panic!("nothing is sent: {other:?}"),
        }
    }
}

/// Drains until a command has completed; the store has this, and keeps what it is given.
fn until_completed_with(client: &mut Client, command: u32, data: Option<&str>) {
    loop {
        match next(client) {
            StepKind::Store => keep(client, data),
            StepKind::Completed if client.command() == Some(command) => return,
            StepKind::Completed => {}
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
    let (_, step) = until_send(&mut client);
    assert_eq!(client.head().as_deref().map(|head| head.lines().take(2).collect()), Some(vec!["POST", "https://api.example/v1/sessions"]));
    assert_eq!(json(std::str::from_utf8(&client.body().expect("has a body")).expect("is text")), json(BUY));
    assert!(client.head().is_some_and(|head| head.contains("\nx-api-key\ncanary")));
    assert_eq!((client.command(), client.timeout_ms(), client.max_body()), (Some(command), Some(20_000), Some(8 << 20)));
    assert!(client.send_before().is_some_and(|before| before > 0.0));
    assert!(client.until().is_none() && client.call_of().is_none());
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
    let (_, step) = until_send(&mut client);
    let Refused(error) = client.stored(step, "done", NOW, 0.5).expect_err("a send is not stored");
    assert_eq!(error.kind, Kind::Misuse);
    assert!(client.fail(step, "gone", "maybe", NOW, 0.5).is_err(), "is no word for it");
    client.respond(step, 202, "", ACCEPTED, false, NOW, 0.5).expect("is answered once");
    assert!(client.respond(step, 202, "", ACCEPTED, false, NOW, 0.5).is_err(), "and not twice");
}

#[test]
fn a_list_is_walked_by_its_positions() {
    let first = r#"{"operation":"list_products","max_pages":2}"#;
    assert_eq!(page_params(first, r#"{"limit":2}"#), Ok(r#"{"limit":2}"#.into()));
    let turn = json(&page_turn(first, r#"{"next_cursor":"c1","attempts":1}"#).expect("goes on"));
    let second = turn["position"].as_str().expect("is a text").to_owned();
    assert_eq!(page_params(&second, r#"{"limit":2}"#), Ok(r#"{"cursor":"c1","limit":2}"#.into()));
    assert_eq!(page_turn(&second, "{}"), Ok(r#"{"end":"last_page"}"#.into()));
    for Refused(error) in
        [page_params("{}", "{}"), page_params(first, "[]"), page_turn("{}", "{}")].map(|told| told.expect_err("is refused"))
    {
        assert_eq!((error.kind, error.effect), (Kind::Invalid, Effect::None));
    }
}

#[test]
fn a_quote_is_exact_or_refused() {
    let product =
        r#"{"product_no":"p-1","name":"P","type":"dynamic","sharing":"shared","available":true,"price":4.10,"currency":"USD","unit":"GB"}"#;
    assert_eq!(json(&quote(product, "0.3").expect("has a price"))["total"].to_string(), "1.23");
    let Refused(error) = quote(product, "-1").expect_err("is no quantity");
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
    let ([name, data], step) = until_send(&mut first);
    assert_eq!(first.cancel(command, NOW, 0.5), Some(step), "what is out is to be aborted");
    first.fail(step, "aborted", "maybe", NOW, 0.5).expect("is answered once");
    until_completed(&mut first, command);
    assert_eq!(error(&mut first, command)["effect"], "unknown");

    let mut second = client(8);
    let listed = second.saved(None);
    assert_eq!(next(&mut second), StepKind::Store);
    assert!(matches!(second.call_of(), Some(StoreCall::List { open: false, .. })));
    let (step, length) = (second.id().expect("is answered"), i32::try_from(data.len()).expect("is short"));
    second.listed(step, vec![name.clone()], &[length], data.as_bytes(), vec!["free".into()], false, NOW, 0.5).expect("is answered once");
    let entry = answer(&mut second, listed, None)["entries"][0].clone();
    assert_eq!((&entry["intent"], &entry["holds"], &entry["whose"]), (&json("\"job-17\""), &json("\"in_doubt\""), &json("\"free\"")));
    let forgotten = second.forget(name.clone());
    assert_eq!(answer(&mut second, forgotten, Some(&data)), false, "what is in doubt stays");
    let early = second.settle(name.clone(), false, None, false);
    until_completed_with(&mut second, early, Some(&data));
    assert_eq!(error(&mut second, early)["kind"], "refused", "it may still be under way");
    let settled = second.settle(name.clone(), false, None, true);
    assert_eq!(answer(&mut second, settled, Some(&data)), true);
    let wrong = second.settle(name, false, Some("s-1".to_owned()), false);
    until_completed(&mut second, wrong);
    assert_eq!(error(&mut second, wrong)["field"], "became");
    assert_eq!(second.resume_intent("job-18", "{}"), wrong + 1);
    assert_eq!(answer(&mut second, wrong + 1, None), serde_json::Value::Null, "it stands for nothing");
}

#[test]
fn what_a_store_answers_and_cannot_be_read_has_failed() {
    let mut client = client(7);
    let listed = client.saved(None);
    assert_eq!(next(&mut client), StepKind::Store);
    let step = client.id().expect("is answered");
    client.listed(step, vec!["a.b".into()], &[2], b"{}", vec!["nobody's".into()], false, NOW, 0.5).expect("is answered once");
    until_completed(&mut client, listed);
    assert_eq!(error(&mut client, listed)["kind"], "store");
    assert!(client.stored(step, "done", NOW, 0.5).is_err(), "and not twice");
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
    assert!(is_shared(r#"{"product_type":2}"#) && !is_shared(r#"{"productType":"exclusive"}"#) && !is_shared("{"));
    assert_eq!(json(&ip_range("192.0.2.0/31"))["last"], "192.0.2.1");
    assert_eq!(ip_range("somewhere"), r#"{"text":"somewhere"}"#);
}
