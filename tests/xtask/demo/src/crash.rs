//! A purchase whose buyer is killed between send and answer, and the same program started again.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::page::{Page, Tone};
use crate::sandbox::{Sandbox, State};
use crate::tidy::Tidy;
use crate::{Told, ensure};

/// The answer is this late; the buyer is dead long before.
const LATE_MS: u32 = 15_000;
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn tell(sandbox: &Sandbox, tidy: &Tidy) -> Told {
    let page = Page::new();
    page.title("hopline: killed between send and answer");
    let folder = tidy.folder()?;
    let before = sandbox.state()?.balance;
    page.row("balance", format!("{before:.2} USD"));

    sandbox.delay_purchase(LATE_MS)?;
    let first = tidy.start(&mut buyer(sandbox, &folder)?)?;
    wait_for_charge(sandbox, tidy)?;
    let status = tidy.kill()?;
    ensure!(was_killed(status), "the buyer was to be killed, but ended by itself: {status}");
    page.toned(Tone::Bad, "killed", format!("process {first}, after its purchase was sent and before its answer came"));
    let record = only_record(&folder, sandbox.api_key())?;
    let state = sandbox.state()?;
    let charged = one_charge(&state)?.0;
    page.row("on disk", format!("one record of {record} bytes, without a secret"));
    page.row("service", format!("1 session and 1 charge of {charged:.2} USD that nobody was told of"));
    page.gap();

    // The same program again: it does not know what happened to the one before.
    tidy.start(&mut buyer(sandbox, &folder)?)?;
    let status = tidy.wait()?;
    ensure!(status.success(), "the second buyer failed: {status}");
    page.gap();

    let state = sandbox.state()?;
    let (charged, id) = one_charge(&state)?;
    let [session] = state.sessions.as_slice() else { return Err("the sandbox has more sessions than one".into()) };
    ensure!(session.session_id == id && session.status == "active", "the session that was paid for was to be active");
    ensure!(before.0 - state.balance.0 == charged.0, "the balance was to fall by one charge");
    page.row("balance", format!("{before:.2} USD before, {:.2} USD after", state.balance));
    page.toned(Tone::Good, "checked", "one session, one charge; the service's own books say the same");
    page.gap();
    Ok(())
}

/// This program as the buyer, with the account in its environment.
fn buyer(sandbox: &Sandbox, folder: &Path) -> Told<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("--buyer").arg(folder).stdin(Stdio::piped());
    command.env("HOPLINE_BASE_URL", sandbox.agent_url()).env("HOPLINE_API_KEY", sandbox.api_key());
    Ok(command)
}

/// Waits until the purchase has had its effect; its answer is still held back then.
fn wait_for_charge(sandbox: &Sandbox, tidy: &Tidy) -> Told {
    let start = Instant::now();
    while sandbox.state()?.charges.is_empty() {
        ensure!(tidy.ended()?.is_none(), "the buyer ended before it bought");
        ensure!(start.elapsed() < PATIENCE, "the buyer bought nothing in {PATIENCE:?}");
        sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The size of the one record in the folder.
fn only_record(folder: &Path, key: &str) -> Told<usize> {
    let mut records = Vec::new();
    read_all(&folder.join("names"), &mut records)?;
    let [record] = records.as_slice() else { return Err(format!("there were to be 1 record, not {}", records.len()).into()) };
    ensure!(!record.contains(key), "the record holds the API key");
    Ok(record.len())
}

fn read_all(folder: &Path, texts: &mut Vec<String>) -> Told {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, texts)?;
        } else {
            texts.push(std::fs::read_to_string(path)?);
        }
    }
    Ok(())
}

fn one_charge(state: &State) -> Told<(hopline::contract::Decimal, &str)> {
    let [charge] = state.charges.as_slice() else { return Err(format!("there were to be 1 charge, not {}", state.charges.len()).into()) };
    Ok((charge.amount, &charge.session_id))
}

#[cfg(unix)]
fn was_killed(status: std::process::ExitStatus) -> bool {
    const SIGKILL: i32 = 9;
    std::os::unix::process::ExitStatusExt::signal(&status) == Some(SIGKILL)
}

#[cfg(not(unix))]
fn was_killed(status: std::process::ExitStatus) -> bool {
    !status.success()
}
