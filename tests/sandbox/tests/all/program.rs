//! The program: its ready line, its refusals, its end.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_hopline-sandbox"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the sandbox starts")
}

fn ready(child: &mut Child) -> Value {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

fn ends(child: &mut Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if let Some(status) = child.try_wait().unwrap() {
            return status.success();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("the sandbox did not end");
}

#[test]
fn the_ready_line_names_everything_and_a_seed_gives_the_same_credentials() {
    let lines: Vec<Value> = (0..2)
        .map(|_| {
            let mut child = start(&["--seed", "5", "--with-parent"]);
            let line = ready(&mut child);
            drop(child.stdin.take());
            assert!(ends(&mut child), "it ends when its input does");
            line
        })
        .collect();
    let names: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    let expected =
        ["agent_url", "api_key", "backend_url", "control_url", "http_proxy", "password", "reset_url", "socks5", "target_url", "username"];
    assert_eq!(names, expected);
    assert!(lines[0]["agent_url"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:") && url.ends_with("/v1")));
    for name in ["api_key", "username", "password"] {
        assert_eq!(lines[0][name], lines[1][name]);
    }
}

#[test]
fn an_address_that_is_not_loopback_is_refused() {
    let mut child = start(&["--listen", "0.0.0.0:0"]);
    assert!(!ends(&mut child));
    let mut said = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "hopline-sandbox: the sandbox listens on ipv4 loopback addresses only\n");
}

#[test]
fn wrong_arguments_are_refused_with_a_reason() {
    for arguments in [&["--seed", "x"][..], &["--provisioning-ms", "9-1"], &["--fly"], &["stray"]] {
        let mut child = start(arguments);
        assert!(!ends(&mut child), "{arguments:?}");
    }
}

#[cfg(unix)]
#[test]
fn it_ends_cleanly_when_told_to_terminate() {
    let mut child = start(&["--provisioning-ms", "0", "--balance", "12.5", "--rate-limit", "9", "--session-limit", "2", "--with-parent"]);
    ready(&mut child);
    let told = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status().unwrap();
    assert!(told.success() && ends(&mut child));
}

/// Waits for something to become true.
fn comes_true(what: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if what() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn a_gateway_ends_with_the_sandbox_even_if_that_is_killed() {
    if hopline_sandbox::nginx().is_none() && std::env::var("CI").as_deref() != Ok("true") {
        return println!("skipped: nginx is not installed; HOPLINE_NGINX may name the program");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hopline-sandbox"))
        .args(["--gateway", "--with-parent"])
        .env("TMPDIR", folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = ready(&mut child);
    let address = line["gateway_url"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let listens = || TcpStream::connect(&address).is_ok();
    let is_empty = |folder: &Path| folder.read_dir().unwrap().next().is_none();
    assert!(listens() && !is_empty(folder.path()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(comes_true(|| !listens() && is_empty(folder.path())), "nginx or its folder is left behind");
}
