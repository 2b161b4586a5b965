//! Whether core compiles for browsers.

use std::path::Path;
use std::process::Command;

use crate::Fail;
use crate::cargo::{cargo, is_ci};
use crate::test::Outcome;

const TARGET: &str = "wasm32-unknown-unknown";

/// Checks core and its wasm binding, and installs the target first where that can be done.
pub(crate) fn check() -> Result<Outcome, Fail> {
    if !is_installed()? && !install() {
        let why = format!("the target {TARGET} is not installed; `rustup target add {TARGET}` brings it");
        // On a developer's machine it is enough to say so; what ships was to be checked.
        return if is_ci() { Err(why.into()) } else { Ok(Outcome::NotRun(why)) };
    }
    let arguments = ["check", "--target", TARGET, "--package", "hopline", "--package", "hopline-wasm"];
    println!("cargo {}", arguments.join(" "));
    let status = cargo(&arguments).status()?;
    if status.success() { Ok(Outcome::ONE) } else { Err(format!("it ended with {status}").into()) }
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
