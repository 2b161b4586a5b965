//! What takes too long for every run: `cargo xtask test --deep`. So far libFuzzer on the properties of `tests/fuzz`, with a
//! nightly toolchain.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use crate::Fail;
use crate::cargo::{cache, cargo, root, run, target};
use crate::check::{Check, Lane, Outcome};

pub(crate) const CHECKS: &[Check] = &[Check::new(Lane::Rust, "libFuzzer on each property", 3600, |_| {
    install()?;
    fuzz(SECONDS)
})
.reads(&["core", "tests/fuzz"])];

/// What there is to fuzz: the names in `hopline_fuzz::PROPERTIES`.
const PROPERTIES: [&str; 11] =
    ["envelope", "record", "address", "retry_after", "client", "reply", "range", "token", "turn", "order_record", "orders"];
/// How long each is fuzzed, in seconds, unless somebody says otherwise.
const SECONDS: u32 = 60;

/// `cargo xtask fuzz [SECONDS]`: installs what it takes, and fuzzes each property for so long.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let seconds = arguments.first().map_or(Ok(SECONDS), |given| given.parse()).map_err(|_| "say for how many seconds, such as 60")?;
    install()?;
    fuzz(seconds).map(|_| ExitCode::SUCCESS)
}

/// A nightly toolchain and cargo-fuzz, where they are missing.
fn install() -> Result<(), Fail> {
    let told = Command::new("cargo").args(["+nightly", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !told.is_ok_and(|status| status.success()) {
        run(Command::new("rustup").args(["toolchain", "install", "nightly", "--profile", "minimal"]))?;
    }
    let place = place()?;
    if !place.join("bin/cargo-fuzz").with_extension(std::env::consts::EXE_EXTENSION).exists() {
        run(Command::new("cargo").args(["install", "--locked", "cargo-fuzz", "--root"]).arg(place))?;
    }
    Ok(())
}

fn fuzz(seconds: u32) -> Result<Outcome, Fail> {
    let made = target()?.join("fuzz");
    // cargo-fuzz can't be told that the lock file must be up to date.
    let manifest = root().join("tests/fuzz/targets/Cargo.toml");
    run(cargo(&["metadata", "--format-version=1", "--manifest-path"]).arg(manifest).stdout(Stdio::null()))?;
    for property in PROPERTIES {
        let corpus = made.join("corpus").join(property);
        std::fs::create_dir_all(&corpus)?;
        let mut fuzz = Command::new("cargo");
        fuzz.args(["+nightly", "fuzz", "run", "--fuzz-dir"]).arg(root().join("tests/fuzz/targets")).args(["property"]).arg(&corpus);
        fuzz.args(["--", &format!("-max_total_time={seconds}"), "-max_len=1024", "-verbosity=0"]);
        fuzz.arg(format!("-artifact_prefix={}/{property}-", made.display())).env("HOPLINE_PROPERTY", property);
        fuzz.env("PATH", path()?).env("CARGO_TARGET_DIR", made.join("target")).current_dir(root());
        run(&mut fuzz)?;
    }
    Ok(Outcome::Counted { passed: PROPERTIES.len() as u32, failed: 0, ignored: 0 })
}

/// Where cargo-fuzz is installed.
fn place() -> Result<PathBuf, Fail> {
    Ok(cache()?.join("cargo-fuzz"))
}

/// The search path with cargo-fuzz in it.
fn path() -> Result<OsString, Fail> {
    let known = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(std::iter::once(place()?.join("bin")).chain(std::env::split_paths(&known)))?)
}
