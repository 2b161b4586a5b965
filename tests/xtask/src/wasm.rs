//! Whether core compiles for browsers, and what crosses between Rust and JavaScript.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Fail;
use crate::cargo::{cargo, is_ci, root, run};
use crate::test::{Outcome, counted};

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

/// The binding's tests that need JavaScript, in Node.
pub(crate) fn crossing() -> Result<Outcome, Fail> {
    if let Outcome::NotRun(why) = check()? {
        return Ok(Outcome::NotRun(why));
    }
    let mut tests = cargo(&["test", "--target", TARGET, "--package", "hopline-wasm", "--test", "crossing"]);
    let told = tests.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", runner()?).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&told.stdout);
    print!("{text}");
    let [passed, failed, ignored] = ["passed", "failed", "ignored"].map(|word| text.lines().map(|line| counted(line, word)).sum::<u32>());
    if passed + failed == 0 || (failed == 0 && !told.status.success()) {
        return Err(format!("it ended with {}", told.status).into());
    }
    Ok(Outcome::Counted { passed, failed, ignored })
}

/// The program that runs them. It must be of the version of wasm-bindgen that Cargo.lock holds, so each has its own place.
fn runner() -> Result<PathBuf, Fail> {
    let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
    let version = lock.split_once("name = \"wasm-bindgen\"\nversion = \"").and_then(|(_, rest)| rest.split('"').next());
    let version = version.ok_or("Cargo.lock names no wasm-bindgen")?;
    let place = cache()?.join(format!("wasm-bindgen-{version}"));
    let program = place.join("bin/wasm-bindgen-test-runner").with_extension(std::env::consts::EXE_EXTENSION);
    if !program.exists() {
        // Without optimization it is there in half the time, and runs as fast as anybody needs.
        let version = format!("={version}");
        let mut install =
            cargo(&["install", "wasm-bindgen-cli", "--version", &version, "--bin", "wasm-bindgen-test-runner", "--debug", "--root"]);
        run(install.arg(&place).env("CARGO_TARGET_DIR", place.join("build")))?;
        std::fs::remove_dir_all(place.join("build"))?;
    }
    Ok(program)
}

/// Where what is installed once stays, outside the tree.
fn cache() -> Result<PathBuf, Fail> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(|home| Path::new(&home).join(".cache"));
    Ok(given.or_else(home).ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("hopline"))
}
