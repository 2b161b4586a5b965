//! Node and npm, as this machine has them.

use std::process::{Command, Stdio};

use crate::Fail;
use crate::cargo::is_ci;

/// The reason why Node or npm can not be used, which is an error where all is to be checked.
pub(crate) fn missing() -> Result<Option<String>, Fail> {
    let version = Command::new("node").arg("--version").output().ok().and_then(|told| String::from_utf8(told.stdout).ok());
    let major = version.as_deref().and_then(|told| told.trim().strip_prefix('v')?.split('.').next()?.parse::<u32>().ok());
    let why = match major {
        Some(20..) if npm(&["--version"]).stdout(Stdio::null()).status().is_ok() => return Ok(None),
        Some(20..) => "npm is not installed".to_owned(),
        Some(old) => format!("Node {old} is too old; Node 20 or later is needed"),
        None => "Node is not installed; Node 20 or later is needed".to_owned(),
    };
    if is_ci() { Err(why.into()) } else { Ok(Some(why)) }
}

/// npm with a command, quiet where it installs.
pub(crate) fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.args(arguments);
    if arguments.len() > 1 || arguments == ["ci"] {
        command.args(["--no-audit", "--no-fund", "--loglevel=error"]);
    }
    command
}
