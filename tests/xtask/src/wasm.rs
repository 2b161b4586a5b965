//! Whether core compiles for browsers.

use std::path::Path;
use std::process::Command;

use crate::Fail;
use crate::cargo::{cargo, is_ci, run};
use crate::check::Outcome;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Checks core and its wasm binding.
pub(crate) fn check() -> Result<Outcome, Fail> {
    match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => run(&mut cargo(&["check", "--target", TARGET, "--package", "hopline", "--package", "hopline-wasm"])),
    }
}

/// Installs the target where that can be done, or says why not, which is a failure where all was to be checked.
pub(crate) fn missing() -> Result<Option<String>, Fail> {
    if is_installed()? || install() {
        return Ok(None);
    }
    let why = format!("the target {TARGET} is not installed; `rustup target add {TARGET}` brings it");
    if is_ci() { Err(why.into()) } else { Ok(Some(why)) }
}

/// Looks where the compiler looks, since not every Rust comes from rustup.
fn is_installed() -> Result<bool, Fail> {
    let printed = Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output()?;
    Ok(printed.status.success() && Path::new(String::from_utf8(printed.stdout)?.trim()).is_dir())
}

fn install() -> bool {
    println!("rustup target add {TARGET}");
    Command::new("rustup").args(["target", "add", TARGET]).status().is_ok_and(|status| status.success())
}
