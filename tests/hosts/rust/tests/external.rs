//! Test data that nobody here wrote: JSON texts, media types and URLs from public suites. They lie beside the repository, not
//! in it; where they are missing these tests say that they are skipped, and `cargo xtask test` counts them so.

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;

use hopline::client::{CallOptions, Client, ClientOptions, CommandId, Now, Outcome, Step};
use hopline::contract::Secret;
use hopline::{Error, Kind};

/// The folder; where there is none, that is said.
fn external(name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../../shared/external").join(name);
    if path.exists() {
        return Some(path);
    }
    // Past the harness, which keeps what a test prints when it passes.
    _ = writeln!(std::io::stdout(), "\nskipped: there is no {}", path.display());
    None
}

fn client(base_url: &str) -> Result<Client, Error> {
    let options = ClientOptions { base_url: base_url.to_owned(), api_key: Some(Secret::new("key-of-a-test")), ..ClientOptions::default() };
    Client::new(options, [1; 16])
}

/// The result of a read with this answer, in one send.
fn answered(content_type: &str, body: &[u8]) -> Result<String, Error> {
    let mut client = client("https://api.example/v1").expect("the options are sound");
    let command: CommandId = client.start_json("get_balance", "{}", CallOptions { attempts: Some(1), ..CallOptions::default() });
    loop {
        match client.poll(Now::default()) {
            Step::Send { id, .. } => {
                let outcome = Outcome::Response { status: 200, headers: &[("content-type", content_type)], body, truncated: false };
                client.resolve(id, outcome, Now::default()).expect("each step is answered once");
            }
            Step::Completed { .. } => {
                let result = client.take_answer(command).expect("it has completed");
                return result.map(|answered| answered.raw.text().to_owned());
            }
            Step::Wait { .. } => panic!("one send is the end"),
            _ => {}
        }
    }
}

#[test]
fn every_json_text_is_accepted_or_refused_as_its_suite_says() {
    let Some(folder) = external("json-test-suite/test_parsing") else { return };
    let mut counted = [0; 3];
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let text = fs::read(&path).expect("the file can be read");
        let body = [br#"{"success":true,"data":"#.as_slice(), &text, b"}"].concat();
        let (inside, whole) = (answered("application/json", &body), answered("application/json", &text));
        // A case that the suite leaves open is judged as by serde_json, but for a nesting that other readers refuse.
        let is_json = serde_json::from_slice::<&serde_json::value::RawValue>(&body).is_ok();
        assert_eq!(inside.is_ok(), is_json && name != "i_structure_500_nested_arrays.json", "{name}");
        let index = match name.as_bytes().first() {
            Some(b'y') => {
                let raw = inside.unwrap_or_else(|error| panic!("{name} must be accepted: {error}"));
                assert_eq!(raw.as_bytes(), text.trim_ascii(), "{name} must be kept as it is written");
                0
            }
            Some(b'n') => {
                assert_eq!(inside.map_err(|error| error.kind), Err(Kind::Protocol), "{name} must be refused");
                1
            }
            // Either is right; what counts is that it ends in one of the two.
            _ => 2,
        };
        // None of them is an envelope.
        assert_eq!(whole.map_err(|error| error.kind), Err(Kind::Protocol), "{name} is no envelope");
        counted[index] += 1;
    }
    println!("{} accepted, {} refused, {} either", counted[0], counted[1], counted[2]);
    assert!(counted.iter().all(|count| *count > 0), "the suite has all three kinds");
}

#[test]
fn an_envelope_is_read_under_any_media_type() {
    let Some(file) = external("wpt-url/mime-types.json") else { return };
    let cases: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(file).expect("the file can be read")).expect("it is JSON");
    for input in cases.iter().filter_map(|case| case["input"].as_str()) {
        assert!(answered(input, br#"{"success":true,"data":{}}"#).is_ok(), "{input:?}");
        assert!(answered(input, b"<html></html>").is_err(), "{input:?}");
    }
    println!("{} media types", cases.len());
}

#[test]
fn a_base_url_is_read_as_browsers_read_it_or_refused() {
    let Some(file) = external("wpt-url/urltestdata.json") else { return };
    let cases: Vec<serde_json::Value> = serde_json::from_slice(&fs::read(file).expect("the file can be read")).expect("it is JSON");
    let (mut taken, mut refused) = (0, 0);
    for case in cases.iter().filter(|case| case.is_object()) {
        let Some(input) = case["input"].as_str() else { continue };
        // The host's resolver decides on names in Punycode.
        if input.contains("xn--") {
            continue;
        }
        match client(input) {
            Ok(client) => {
                assert!(case["failure"].as_bool() != Some(true), "{input:?} is no URL");
                let ours = format!("{client:?}");
                let host = case["host"].as_str().unwrap_or_default();
                let same_address = |text: &str| text.trim_matches(['[', ']']).parse::<std::net::IpAddr>().ok();
                let named = input.split("//").nth(1).and_then(|rest| rest.split(['/', ':']).next()).unwrap_or_default();
                let address = input.split(['[', ']']).nth(1).unwrap_or(named);
                let same = ours.contains(host) || (same_address(host).is_some() && same_address(host) == same_address(address));
                assert!(same, "{input:?} leads to {host}, not to {ours}");
                assert!(case["username"] == "" && case["search"] == "" && case["hash"] == "", "{input:?} holds more than an address");
                taken += 1;
            }
            Err(error) => {
                let secret = case["password"].as_str().filter(|password| !password.is_empty());
                assert!(
                    secret.is_none_or(|secret| !error.to_string().contains(&format!(":{secret}@"))),
                    "the refusal of {input:?} shows its password"
                );
                refused += 1;
            }
        }
    }
    println!("{taken} base URLs taken, {refused} refused");
    assert!(taken > 0 && refused > 0);
}
