//! A check in a process of its own: its output is kept together, and nothing of it goes on when its time is over.

use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Fail;
use crate::cargo::{built, target};
use crate::check::{Check, Outcome};
use crate::profile::Profile;

/// The time limit of a check: one that hangs fails by name, and one that is slow on a busy machine passes. The longest takes half an hour
/// there.
const LIMIT: Duration = Duration::from_secs(3600);

/// Runs a check to its end, and gives what it ended with and what it printed.
pub(super) fn run(check: &Check, profile: Profile) -> (Outcome, String) {
    let ended = follow(check, profile).unwrap_or_else(|error| Outcome::Failed(error.to_string()));
    (ended, printed(check.name))
}

/// The output of the check of that name when it last ran.
pub(super) fn printed(name: &str) -> String {
    let printed = folder().map(|folder| std::fs::read(folder.join(slug(name) + ".log")).unwrap_or_default());
    String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned()
}

fn follow(check: &Check, profile: Profile) -> Result<Outcome, Fail> {
    let (log, outcome) = (folder()?.join(slug(check.name) + ".log"), folder()?.join(slug(check.name) + ".json"));
    if outcome.exists() {
        std::fs::remove_file(&outcome)?;
    }
    let (out, errors) = File::create(log).and_then(|file| Ok((file.try_clone()?, file)))?;
    let mut command = Command::new(built("xtask")?);
    command.args(["check", check.name, profile.name()]).arg(&outcome).stdin(Stdio::piped()).stdout(out).stderr(errors);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut process = command.spawn()?;
    let begun = Instant::now();
    while process.try_wait()?.is_none() {
        if begun.elapsed() > LIMIT {
            end(process)?;
            return Err(format!("it did not end within {} s; its last lines above say where it was", LIMIT.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(50));
    }
    let status = process.wait()?;
    let told = std::fs::read_to_string(outcome).map_err(|_| format!("it ended with {status}, and told nothing"))?;
    Outcome::from_json(&serde_json::from_str(&told)?).ok_or_else(|| format!("it told `{told}`").into())
}

/// Ends the check with all that it has started: it does so when its input ends.
fn end(mut process: Child) -> Result<(), Fail> {
    drop(process.stdin.take());
    let asked = Instant::now();
    while process.try_wait()?.is_none() && asked.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(50));
    }
    process.kill()?;
    process.wait()?;
    Ok(())
}

/// The other side: runs a check in this process, which ends with everything that it has started when its input ends, that is
/// when its time is over or nobody waits for it any more.
pub(crate) fn inside(check: &Check, profile: Profile, outcome: &str) -> Result<(), Fail> {
    thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        #[cfg(unix)]
        let _ = Command::new("kill").args(["-KILL", "0"]).status();
        std::process::exit(1);
    });
    let ended = (check.run)(profile).unwrap_or_else(|error| Outcome::Failed(error.to_string()));
    Ok(std::fs::write(outcome, ended.to_json().to_string())?)
}

/// Where the checks leave what they print.
fn folder() -> Result<PathBuf, Fail> {
    let folder = target()?.join("xtask/checks");
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

/// A name of a file for a check.
pub(super) fn slug(name: &str) -> String {
    name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
}
