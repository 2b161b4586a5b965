use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;

#[test]
fn the_program_prints_one_line_and_ends_when_its_standard_input_does() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopline-peers"))
        .args(["--service", "http://127.0.0.1:1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut out = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    out.read_line(&mut line).expect("a line");
    let ready: Value = serde_json::from_str(&line).expect("JSON");
    assert!(ready["odd_url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")), "{ready}");
    assert_eq!(ready["behaviours"][1], serde_json::json!({ "name": "early-hints", "answer": "given" }));
    assert_eq!((&ready["https"], &ready["tls_ca"]), (&serde_json::json!({}), &Value::Null));
    drop(child.stdin.take());
    let mut rest = String::new();
    out.read_to_string(&mut rest).expect("its end");
    assert_eq!((rest.as_str(), child.wait().expect("its end").success()), ("", true));
}
