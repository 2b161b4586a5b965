//! The demos as a person runs them: what they print, how they end, what they leave behind.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// More than a demo may take; each is told in about three seconds.
const LIMIT: Duration = Duration::from_secs(120);

fn start(arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hopline-demo"));
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the demo starts")
}

/// The output of a demo, which has left nothing behind.
fn end(child: Child) -> (Output, String) {
    let folder = std::env::temp_dir().join(format!("hopline-demo-{}", child.id()));
    // The buyer writes to the same pipe, so this waits for its end, too.
    let output = child.wait_with_output().expect("the demo ends");
    assert!(!folder.exists(), "{} was left behind", folder.display());
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    (output, text)
}

fn tell(arguments: &[&str]) -> String {
    let began = Instant::now();
    let (output, text) = end(start(arguments));
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(began.elapsed() < LIMIT);
    // Neither colour nor a line written over, since nobody watches; and no API key.
    assert!(!text.contains(['\x1b', '\r']) && !text.contains("sandbox-"), "{text}");
    text
}

#[test]
fn a_session_is_bought_used_blocked_rotated_and_ended() {
    let text = tell(&["--seed", "11"]);
    for told in ["answers 403 to exit 127.64.0.1", "http_403", "answers 200 to exit 127.64.0.2", "refuses the password", "one charge"] {
        assert!(text.contains(told), "`{told}` is missing from:\n{text}");
    }
}

#[test]
fn a_buyer_that_was_killed_buys_nothing_twice() {
    let text = tell(&["--crash"]);
    for told in ["killed", "is in doubt", "the same key", "one session, one charge"] {
        assert!(text.contains(told), "`{told}` is missing from:\n{text}");
    }
}

#[test]
fn a_reseller_makes_a_sub_user_and_orders_for_it() {
    let text = tell(&["--story", "reseller"]);
    for told in ["by itself", "anna", "active", "answers 200 to exit 127.", "refuses the password", "renewal", "one order, two charges"] {
        assert!(text.contains(told), "`{told}` is missing from:\n{text}");
    }
}

#[test]
fn a_seed_tells_the_same_story_again() {
    let accepted = |text: String| text.lines().find(|line| line.contains("accepted")).map(str::to_owned).expect("a purchase");
    assert_eq!(accepted(tell(&["--seed", "3"])), accepted(tell(&["--seed", "3"])));
}

#[test]
fn wrong_arguments_are_refused_with_a_reason() {
    for arguments in [&["--fly"][..], &["--seed", "x"], &["stray"], &["--story", "other"]] {
        let (output, _) = end(start(arguments));
        assert!(!output.status.success() && output.stderr.starts_with(b"hopline demo: "), "{arguments:?}");
    }
}

/// Waits until a demo has printed something.
#[cfg(unix)]
fn hear(child: &mut Child, text: &str) {
    use std::io::Read;
    // Byte by byte, as the rest is for whoever waits for the end.
    let (out, mut heard, mut byte) = (child.stdout.as_mut().expect("a pipe"), Vec::new(), [0]);
    while !heard.ends_with(text.as_bytes()) {
        out.read_exact(&mut byte).expect("it is told");
        heard.push(byte[0]);
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_demo_ends_at_once_and_takes_its_buyer_along() {
    // Anywhere in the middle will do where the demo itself is not just writing to its folder.
    for (signal, arguments, middle) in
        [("INT", &[][..], "accepted"), ("TERM", &["--crash"], "the buyer"), ("HUP", &["--crash"], "the buyer")]
    {
        let mut child = start(arguments);
        hear(&mut child, middle);
        let id = child.id();
        let told = Command::new("sh").args(["-c", &format!("kill -{signal} {id}")]).status().expect("sh");
        assert!(told.success());
        let began = Instant::now();
        let (output, _) = end(child);
        assert!(!output.status.success() && began.elapsed() < LIMIT, "{signal}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("interrupted"), "{signal}");
    }
}
