//! `--shell`: a sandbox in the background, and the lines with which a shell finds it.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Error, Read, Result};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use serde_json::{Map, Value};

/// The names under which Hopline's clients read the account; all else begins with `HOPLINE_SANDBOX_`.
const ACCOUNT: [(&str, &str); 5] = [
    ("agent_url", "HOPLINE_BASE_URL"),
    ("api_key", "HOPLINE_API_KEY"),
    ("backend_url", "HOPLINE_BACKEND_URL"),
    ("username", "HOPLINE_USERNAME"),
    ("password", "HOPLINE_PASSWORD"),
];

/// Starts this program once more, in the background, and prints where it is when it is ready.
pub(crate) fn start(arguments: impl Iterator<Item = OsString>) -> Result<()> {
    let mut sandbox = Command::new(std::env::current_exe()?)
        .args(arguments.filter(|argument| argument != "--shell"))
        .arg("--with-terminal")
        // Ctrl-C in the terminal is for the programs in its foreground. The shell waits for what holds its pipes, so no pipe is shared.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    sandbox.stdout.take().map(|out| BufReader::new(out).read_line(&mut line)).transpose()?;
    let Ok(ready) = serde_json::from_str::<Map<String, Value>>(&line) else {
        let mut said = String::new();
        sandbox.stderr.take().map(|mut errors| errors.read_to_string(&mut said)).transpose()?;
        return Err(Error::other(said.trim().trim_start_matches("hopline-sandbox: ").to_owned()));
    };
    super::print(&exports(&ready, sandbox.id()))?;
    eprintln!("hopline-sandbox: it serves until this terminal closes; `kill $HOPLINE_SANDBOX_PID` ends it before");
    Ok(())
}

/// A line for each member of the ready line.
fn exports(ready: &Map<String, Value>, pid: u32) -> String {
    let name = |member: &str| match ACCOUNT.iter().find(|(own, _)| *own == member) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("HOPLINE_SANDBOX_{}", member.to_uppercase()),
    };
    let told = ready.iter().filter_map(|(member, value)| Some((name(member), value.as_str()?.to_owned())));
    let lines = told.chain([("HOPLINE_SANDBOX_PID".to_owned(), pid.to_string())]);
    lines.map(|(name, value)| format!("export {name}={}", quoted(&value))).collect::<Vec<_>>().join("\n")
}

/// One word of a shell, whatever is in the text.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
