//! The additions of the reseller API: its envelope, the spellings of its members, ranges of addresses, tokens, numbered pages, records.

use hopline::client::{CallOptions, Client, ClientOptions, Outcome, Position, Settlement, Step, page_params_text, page_turn_text};
use hopline::contract::reseller::ListSubUsers;
use hopline::contract::{Api, Method, Secret};
use hopline::policy::{is_shared_text, parse_ip_range};

use crate::{Choices, Held, NOW, next, sent, tells};

const BASE: &str = "https://api.example/api";

/// Of a client that can log in, from a token where there is one.
fn options(token: Option<&str>) -> ClientOptions {
    ClientOptions {
        api: Api::Reseller,
        base_url: BASE.to_owned(),
        username: Some(Secret::new("reseller")),
        password: Some(Secret::new("canary-password")),
        token: token.map(Secret::new),
        ..ClientOptions::default()
    }
}

fn fresh(entropy: u8, token: Option<&str>) -> Client {
    Client::new(options(token), [entropy; 16]).expect("the options are sound")
}

fn once() -> CallOptions {
    CallOptions { attempts: Some(1), ..CallOptions::default() }
}

/// Any body with any status is an answer or an error, at once; what is kept of an answer is what the service wrote, whatever
/// its members are called, and it can be read or says that it can't.
pub fn reply(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let status = choices.number(1000) as u16;
    let truncated = choices.number(8) == 0;
    let body = choices.rest();
    let mut client = fresh(5, Some("canary-token"));
    let ticket = client.start(ListSubUsers::default(), once());
    let (id, _) = sent(&mut client);
    client.resolve(id, Outcome::Response { status, headers: &[], body, truncated }, NOW).expect("the step waits for an answer");
    assert_eq!(next(&mut client, NOW), Step::Completed { command: ticket.command });
    match client.take(ticket).expect("it has ended") {
        Ok(reply) => {
            assert!(!truncated, "half an answer is no success");
            assert!(String::from_utf8_lossy(body).contains(reply.raw.text()), "that is not what the service wrote");
        }
        Err(error) => {
            assert!(!tells(&hopline::contract::json_of(&error)), "an error tells a secret");
            assert!(error.raw.is_some() || error.status == Some(status), "the status is lost");
        }
    }
}

/// Any text is a range or stays a text; a range begins where it begins, and the text of it is read as the same. Any
/// product is shared or not.
pub fn range(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let range = parse_ip_range(&text);
    assert_eq!(range.text, text);
    assert_eq!(range.first.is_some(), range.last.is_some());
    if let (Some(first), Some(last)) = (range.first, range.last) {
        assert!(first <= last && first.is_ipv4() == last.is_ipv4(), "{first} to {last}");
        let again = parse_ip_range(&format!("{first}-{last}"));
        assert_eq!((again.first, again.last), (Some(first), Some(last)));
    }
    _ = is_shared_text(&text);
}

/// Whatever a login brings as a token, and whatever that says of its own end, a call logs in once and ends.
pub fn token(bytes: &[u8]) {
    let token = String::from_utf8_lossy(bytes);
    let mut client = fresh(6, None);
    let command = client.start_json("get_current_balance", "{}", once());
    let (id, login) = sent(&mut client);
    assert!(login.url.ends_with("/auth/login"));
    let body = serde_json::json!({ "code": 0, "data": { "token": token } }).to_string();
    client.resolve(id, Outcome::Response { status: 200, headers: &[], body: body.as_bytes(), truncated: false }, NOW).expect("waits");
    match next(&mut client, NOW) {
        Step::Send { request, .. } => {
            assert_eq!(request.header("authorization"), Some(format!("Bearer {token}").as_str()));
            assert!(token.bytes().all(|byte| byte.is_ascii_graphic()), "a header of odd characters");
            assert_eq!(client.token().map(Secret::reveal), Some(&*token));
        }
        Step::Completed { command: ended } => assert_eq!(ended, command),
        step => panic!("came {step:?}"),
    }
}

/// Any text is a position in a numbered list or is refused; a walk goes on by one page at a time, and stops at its cap.
pub fn turn(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let facts = ["{}", r#"{"short_page":false}"#, r#"{"short_page":true}"#, r#"{"next_cursor":"c"}"#][choices.number(4) as usize];
    let text = String::from_utf8_lossy(choices.rest());
    let (params, turn) = (page_params_text(&text, "{}"), page_turn_text(&text, facts));
    let Ok(position) = text.parse::<Position>() else {
        return assert!(params.is_err() && turn.is_err(), "what is no position was walked on from");
    };
    let Ok(turned) = turn else { return };
    let goes_on = turned.contains("\"position\"") && !turned.contains("\"end\"");
    assert!(!goes_on || position.pages + 1 < position.max_pages, "a walk goes on beyond its cap");
    if let Ok(params) = params {
        assert!(params.starts_with('{') && params.ends_with('}'), "{params}");
    }
}

/// Any bytes are a record or are refused; whatever a record says, resuming it or looking it up sends no write.
pub fn order_record(bytes: &[u8]) {
    let mut held = Held::new(options(Some("canary-token")), bytes);
    let params = serde_json::json!({ "record": held.record.to_string() }).to_string();
    let commands = [held.client.resume(&held.record, CallOptions::default()), held.client.start_json("reconcile", &params, once())];
    for request in held.run() {
        assert!(request.url.starts_with(&format!("{BASE}/")), "{} leaves the API", request.url);
        assert!(!held.is_refused, "{} was sent for nothing", request.url);
        let reads = request.method == Method::Get || request.url.ends_with("/query-standard/v2");
        assert!(reads || at_rest(bytes), "a write was sent again: {}", request.url);
    }
    commands.into_iter().for_each(|command| _ = held.client.take_answer(command));
    held.end(Settlement::NotHappened { early: true });
}

/// True if a record is of a call that may be sent again: a login, or a free one that its caller called safe to repeat.
fn at_rest(record: &[u8]) -> bool {
    let record = serde_json::from_slice::<serde_json::Value>(record).unwrap_or_default();
    ["login", "request"].iter().any(|name| record["call"]["operation"] == *name)
}
