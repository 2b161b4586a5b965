//! Checks that crates compile for systems that they don't run on here.

use std::path::Path;
use std::process::Command;

use crate::Fail;
use crate::cargo::{cargo, is_ci, run};
use crate::check::Outcome;

/// Browsers.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
pub(crate) const WINDOWS: &str = "x86_64-pc-windows-gnu";
pub(crate) const IOS: &str = "aarch64-apple-ios";

/// Checks packages for a target.
pub(crate) fn check(target: &str, packages: &[&str]) -> Result<Outcome, Fail> {
    if let Some(why) = missing(target)? {
        return Ok(Outcome::NotRun(why));
    }
    let mut check = cargo(&["check", "--target", target]);
    packages.iter().for_each(|package| _ = check.args(["--package", package]));
    run(&mut check)
}

/// Installs the target where that can be done, or says why not, which is a failure where all was to be checked.
pub(crate) fn missing(target: &str) -> Result<Option<String>, Fail> {
    if is_installed(target)? || install(target) {
        return Ok(None);
    }
    let why = format!("the target {target} is not installed; `rustup target add {target}` brings it");
    if is_ci() { Err(why.into()) } else { Ok(Some(why)) }
}

/// Looks where the compiler looks, since not every Rust comes from rustup.
fn is_installed(target: &str) -> Result<bool, Fail> {
    let printed = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output()?;
    Ok(printed.status.success() && Path::new(String::from_utf8(printed.stdout)?.trim()).is_dir())
}

fn install(target: &str) -> bool {
    println!("rustup target add {target}");
    Command::new("rustup").args(["target", "add", target]).status().is_ok_and(|status| status.success())
}
