//! The program: its ready line, its refusals, its end.

use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hopline-sandbox");

fn start(arguments: &[&str]) -> Child {
    Command::new(PROGRAM)
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
fn the_certificate_to_trust_is_named_by_its_whole_path() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(PROGRAM)
        .args(["--tls", "certificates", "--with-parent"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = ready(&mut child);
    assert_eq!(line["tls_ca"], folder.path().join("certificates/ca.pem").to_str().unwrap());
    assert!(std::fs::read_to_string(line["tls_ca"].as_str().unwrap()).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
    drop(child.stdin.take());
    assert!(ends(&mut child));
}

#[test]
fn an_address_that_is_not_loopback_is_refused() {
    let mut child = start(&["--listen", "0.0.0.0:0"]);
    assert!(!ends(&mut child));
    let mut said = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "hopline-sandbox: the sandbox listens on ipv4 loopback addresses only\n");
}

/// What the program says when it ends by itself, without success.
fn refusal(arguments: &[&str]) -> String {
    let mut child = start(arguments);
    assert!(!ends(&mut child), "{arguments:?}");
    let mut said = String::new();
    child.stderr.as_mut().unwrap().read_to_string(&mut said).unwrap();
    let said = said.strip_prefix("hopline-sandbox: ").and_then(|said| said.strip_suffix('\n'));
    said.expect("one sentence after the program's name").to_owned()
}

#[test]
fn wrong_arguments_are_refused_with_a_reason_and_the_nearest_option() {
    let lists = "(`hopline-sandbox --help` lists them)";
    for (arguments, said) in [
        (&["--sed", "7"][..], &*format!("there is no option `--sed`; did you mean `--seed`? {lists}")),
        (&["--provisioning", "0"], &format!("there is no option `--provisioning`; did you mean `--provisioning-ms`? {lists}")),
        (&["--port", "8080"], &format!("there is no option `--port` {lists}")),
        (&["-s"], &format!("there is no option `-s` {lists}")),
        (&["shell"], &format!("there is no option `shell`; did you mean `--shell`? {lists}")),
        (&["--seed", "x"], "--seed takes a whole number, not `x`"),
        (&["--seed"], "--seed needs a value after it"),
        (&["--balance", "1,5"], "--balance takes an amount such as 12.50, not `1,5`"),
        (&["--listen", "8080"], "--listen takes an address with a port, such as 127.0.0.1:8080, not `8080`"),
        (&["--provisioning-ms", "9-1"], "--provisioning-ms takes milliseconds, or two of them as in 1200-2500, not `9-1`"),
        (&["--shell", "--with-parent"], "--shell serves in the background, so it does not go with --with-parent"),
    ] {
        assert_eq!(refusal(arguments), said, "{arguments:?}");
    }
}

#[test]
fn a_port_in_use_is_named_in_the_foreground_and_in_the_background() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap().to_string();
    let said = format!("another program listens at {address}; choose another port, or port 0 for a free one");
    assert_eq!(refusal(&["--listen", &address]), said);
    if cfg!(unix) {
        assert_eq!(refusal(&["--listen", &address, "--shell"]), said);
    }
}

#[test]
fn its_version_is_the_workspaces_and_every_option_has_a_default_in_the_help_and_the_readme() {
    let told = |option: &str| String::from_utf8(Command::new(PROGRAM).arg(option).output().unwrap().stdout).unwrap();
    assert_eq!(told("--version"), concat!("hopline-sandbox ", env!("CARGO_PKG_VERSION"), "\n"));
    let help = told("--help");
    let options: Vec<&str> = help.lines().filter(|line| line.starts_with("  --")).collect();
    assert!(options.len() > 10, "{help}");
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    for line in options {
        let name = line.split_whitespace().next().unwrap();
        assert!(readme.contains(&format!("| `{name}")), "the README does not have {name}");
        let has_default = line.contains("default") || ["--shell", "--version", "--help"].contains(&name);
        assert!(has_default, "{line}");
    }
}

/// A shell that leads a session of its own, as that of a terminal does; it writes into pipes.
#[cfg(unix)]
fn shell(script: &str) -> Command {
    let mut shell = Command::new("setsid");
    let path = std::env::var("PATH").unwrap_or_default();
    let folder = Path::new(PROGRAM).parent().unwrap().display();
    shell.args(["--wait", "sh", "-c", script]).env("PATH", format!("{folder}:{path}")).stdin(Stdio::piped());
    shell
}

#[cfg(unix)]
#[test]
fn a_shell_finds_the_sandbox_in_the_background_and_it_ends_with_the_terminal() {
    // Everything is quoted, since a key may be any text. The shell goes on at once, and the sandbox with it.
    let script = r#"
        eval "$(hopline-sandbox --shell --api-key "it's \$HOME" --seed 5 2>/dev/null)" || exit 1
        curl -q -sS --noproxy '*' -m 10 -H "X-API-Key: $HOPLINE_API_KEY" "$HOPLINE_BASE_URL/billing/balance" || exit 2
        echo; echo "$HOPLINE_API_KEY|$HOPLINE_BACKEND_URL|$HOPLINE_USERNAME|$HOPLINE_PASSWORD|$HOPLINE_SANDBOX_TARGET_URL|$HOPLINE_SANDBOX_CONTROL_URL"
        echo "$HOPLINE_BASE_URL"
        if [ "$0" = now ]; then kill "$HOPLINE_SANDBOX_PID"; cat; fi"#;
    if !crate::proxies::curl_is_here() {
        return;
    }
    for kills in [false, true] {
        let mut child = shell(script).arg(if kills { "now" } else { "later" }).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut next = || lines.next().expect("a line");
        assert!(next().contains(r#""success":true"#));
        let told = next();
        let told: Vec<&str> = told.split('|').collect();
        assert_eq!(told[0], "it's $HOME");
        assert!(told.iter().all(|value| !value.is_empty()) && told.len() == 6, "{told:?}");
        let address = next().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        // The shell that was to kill it is still there.
        assert!(kills || ends(&mut child));
        assert!(comes_true(|| TcpStream::connect(&address).is_err()), "the sandbox is left behind");
        drop(child.stdin.take());
        assert!(ends(&mut child));
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
    let mut child = Command::new(PROGRAM)
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
