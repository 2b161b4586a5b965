//! The examples, run as a newcomer runs them: against a sandbox, with the account in the environment; and each twice, the second time
//! after a kill.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::Fail;
use crate::cargo::{built, root, sandbox};
use crate::check::Outcome;

/// The requests of an example after it has reported its purchase: without an answer to these it can't end its purchase, nor itself, before
/// it is killed.
const HELD: [&str; 2] = ["terminate_session", "list_static_orders"];

/// Runs every example of core. They and the sandbox were built with the tests.
pub(crate) fn run() -> Result<Outcome, Fail> {
    let sandbox = Sandbox::start(&[])?;
    let mut passed = 0;
    for entry in std::fs::read_dir(root().join("core/examples"))? {
        let file = entry?.path();
        // A folder is what one of them takes in.
        let Some(name) = file.file_stem().filter(|_| file.is_file()).and_then(|name| name.to_str()) else { continue };
        println!("example {name}");
        // Each has a folder of its own, since they leave their records in the present one.
        let folder = std::env::temp_dir().join(format!("hopline-example-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let ended = if name == "first" { wherever_killed(&folder) } else { sandbox.run_twice(name, &folder) };
        std::fs::remove_dir_all(&folder)?;
        ended?;
        passed += 1;
    }
    Ok(Outcome::Counted { passed, failed: 0, ignored: 0 })
}

/// The places where the first program is killed: the last operation that is done, and the next one, which is held. A request to end its
/// session does not end it for an hour.
const PLACES: [(&str, &str, &str); 3] = [
    ("list_products", "create_session", "delay"),
    ("create_session", "get_session", "delay"),
    ("get_session", "terminate_session", "in_progress"),
];

/// The first program fetches a page, and goes on with its purchase wherever it was killed. Run again it buys the next session, on the same
/// day and on the next one.
fn wherever_killed(folder: &Path) -> Result<(), Fail> {
    for (operation, then, kind) in PLACES {
        let (sandbox, folder) = (Sandbox::start(&["--provisioning-ms", "0"])?, folder.join(operation));
        std::fs::create_dir_all(&folder)?;
        let fault = serde_json::json!({ "operation": then, "fault": { "kind": kind, "ms": 3_600_000 } });
        sandbox.control("POST", "/faults", &fault.to_string())?;
        let mut process = sandbox.begin("first", &folder)?;
        while sandbox.control("GET", "/state", "")?["executions"][operation].is_null() {
            if let Some(status) = process.try_wait()? {
                return Err(format!("the first program ended with {status} before it was killed at {operation}").into());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        process.kill()?;
        process.wait()?;
        sandbox.control("DELETE", "/faults", "")?;
        println!("(killed at {operation})");
        for charges in 1..=3 {
            let output = sandbox.begin("first", &folder)?.wait_with_output()?;
            let printed = String::from_utf8_lossy(&output.stdout);
            print!("{printed}");
            let charged = sandbox.control("GET", "/state", "")?["charges"].as_array().map(Vec::len);
            if !output.status.success() || printed != "200 for 2 USD\n" || charged != Some(charges) {
                return Err(format!(
                    "killed at {operation} and run again, the first program printed {printed:?} and paid {charged:?} times"
                )
                .into());
            }
            if charges == 2 {
                sandbox.control("POST", "/clock", r#"{"advance_ms":86400000}"#)?;
            }
        }
    }
    Ok(())
}

/// A sandbox that ends with this process.
pub(crate) struct Sandbox {
    process: Child,
    pub(crate) agent_url: String,
    pub(crate) api_key: String,
    pub(crate) backend_url: String,
    /// The login at the backend: the name and the password.
    pub(crate) login: [String; 2],
    control_url: String,
    target_url: String,
}

impl Sandbox {
    pub(crate) fn start(arguments: &[&str]) -> Result<Self, Fail> {
        let mut command = Command::new(sandbox()?);
        let mut process = command.arg("--with-parent").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(process.stdout.take().ok_or("the sandbox has no output")?).read_line(&mut line)?;
        let ready: serde_json::Value = serde_json::from_str(&line)?;
        let field = |name: &str| ready[name].as_str().map(str::to_owned).ok_or(format!("the sandbox's ready line has no `{name}`"));
        Ok(Sandbox {
            agent_url: field("agent_url")?,
            api_key: field("api_key")?,
            backend_url: field("backend_url")?,
            login: [field("username")?, field("password")?],
            control_url: field("control_url")?,
            target_url: field("target_url")?,
            process,
        })
    }

    /// Kills an example when what it bought is in its store, and runs it again: it must go on with the same purchase.
    fn run_twice(&self, example: &str, folder: &Path) -> Result<(), Fail> {
        for operation in HELD {
            let fault = serde_json::json!({ "kind": "in_progress", "ms": 3_600_000 });
            self.control("POST", "/faults", &serde_json::json!({ "operation": operation, "times": 1000, "fault": fault }).to_string())?;
        }
        let mut process = self.begin(example, folder)?;
        let bought = ready(&mut process, false)?;
        // An order is in the store a moment after the program has said so.
        let id = bought.as_deref().and_then(|bought| bought.split(' ').next_back()).unwrap_or_default();
        let records = folder.join("hopline-records/names");
        while !holds(&records, id)? {
            if let Some(status) = process.try_wait()? {
                return Err(format!("the example {example} ended with {status} before it was killed").into());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        process.kill()?;
        process.wait()?;
        self.control("DELETE", "/faults", "")?;
        println!("(killed)");
        let mut process = self.begin(example, folder)?;
        let again = ready(&mut process, true)?;
        let status = process.wait()?;
        match (bought, again) {
            _ if !status.success() => Err(format!("the example {example} ended with {status} when it was started again").into()),
            (Some(bought), Some(again)) if bought == again => Ok(()),
            (bought, again) => Err(format!("the example {example} bought {bought:?}, and started again {again:?}").into()),
        }
    }

    /// Tells the sandbox something, or asks it.
    fn control(&self, method: &str, path: &str, body: &str) -> Result<serde_json::Value, Fail> {
        let (host, folder) = self.control_url.trim_start_matches("http://").split_once('/').ok_or("the control URL has no path")?;
        let length = body.len();
        let mut stream = TcpStream::connect(host)?;
        write!(
            stream,
            "{method} /{folder}{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        match answer.split(' ').nth(1) {
            Some(status) if status.starts_with('2') => {
                Ok(serde_json::from_str(answer.split_once("\r\n\r\n").map_or("", |(_, body)| body)).unwrap_or_default())
            }
            _ => Err(format!("the sandbox's control answered {method} {path} with {answer}").into()),
        }
    }

    fn begin(&self, example: &str, folder: &Path) -> Result<Child, Fail> {
        let mut command = Command::new(built(&format!("examples/{example}"))?);
        command.current_dir(folder).env("HOPLINE_BASE_URL", &self.agent_url).env("HOPLINE_API_KEY", &self.api_key);
        let [username, password] = &self.login;
        command.env("HOPLINE_BACKEND_URL", &self.backend_url).env("HOPLINE_USERNAME", username).env("HOPLINE_PASSWORD", password);
        // The page that the first one fetches.
        command.arg(&self.target_url);
        Ok(command.stdout(Stdio::piped()).spawn()?)
    }
}

/// True if a file below a folder holds a text.
fn holds(folder: &Path, text: &str) -> Result<bool, Fail> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let found = match path.is_dir() {
            true => holds(&path, text)?,
            // The file may be gone by now.
            false => std::fs::read_to_string(&path).is_ok_and(|data| data.contains(text)),
        };
        if found {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The order that an example reports as placed or ready; reads on to its end, or only so far.
fn ready(process: &mut Child, to_end: bool) -> Result<Option<String>, Fail> {
    let mut bought = None;
    for line in BufReader::new(process.stdout.take().ok_or("the example has no output")?).lines() {
        let line = line?;
        println!("{line}");
        let is_ready = [" was placed", " is ready", " is Ready", " is active"].iter().find_map(|words| line.split_once(words));
        bought = bought.or(is_ready.map(|(what, _)| what.to_owned()));
        if bought.is_some() && !to_end {
            break;
        }
    }
    Ok(bought)
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The process ends when its input does; killing it as well makes sure that waiting is short.
        drop(self.process.stdin.take());
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
