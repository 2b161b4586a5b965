//! The checks that take too long for every run: `cargo xtask test --deep`. So far libFuzzer on the properties of `tests/fuzz`, with a
//! nightly toolchain, the changes of core's code that `tests/coverage` samples, and the scopes of `tests/world` further down.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use crate::cargo::{cache, cargo, root, run, target};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::{Fail, sizes, weight};

pub(crate) const CHECKS: &[Check] =
    &[
        Check::new(Lane::Rust, "deep: libFuzzer on each property", |_| fuzz(SECONDS)).reads(&[
            "core",
            "tests/fuzz",
            "tests/world",
            "tests/sandbox",
        ]),
        Check::new(Lane::Rust, "deep: each sampled change of core is noticed", |_| {
            run(&mut cargo(&["run", "--quiet", "--package", "hopline-coverage", "--", "--mutate"]))
        })
        .reads(&["core", "tests/coverage", "tests/hosts/rust", "tests/vectors"]),
        Check::new(Lane::Rust, "deep: every scope of the proof, with more that goes wrong", |_| {
            run(&mut cargo(&["run", "--quiet", "--profile", "search", "--package", "hopline-world", "--", "deep"]))
        })
        .reads(&["core", "tests/world", "tests/sandbox"]),
        Check::new(Lane::Python, "deep: no package weighs more than it did", |_| weight::judge(&sizes::all()?))
            .needs(&[PROGRAMS])
            .reads(&["core", "bindings-wasm", "bindings-python", "bindings-uniffi", "tests/bindgen", "tests/bench/sizes.txt"]),
    ];

/// How long each property is fuzzed, in seconds, unless somebody says otherwise.
const SECONDS: u32 = 60;

/// `cargo xtask fuzz [SECONDS]`: fuzzes each property for so long, and keeps in the repository what was found.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let seconds = arguments.first().map_or(Ok(SECONDS), |given| given.parse()).map_err(|_| "say for how many seconds, such as 60")?;
    fuzz(seconds)?;
    for property in properties()? {
        keep(&property)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Fuzzes each property for so many seconds, beginning with its corpus, after it has installed what that takes.
fn fuzz(seconds: u32) -> Result<Outcome, Fail> {
    install()?;
    // cargo-fuzz can't be told that the lock file must be up to date.
    let manifest = targets().join("Cargo.toml");
    run(cargo(&["metadata", "--format-version=1", "--manifest-path"]).arg(manifest).stdout(Stdio::null()))?;
    let properties = properties()?;
    for property in &properties {
        let found = place(property)?;
        for (number, line) in std::fs::read_to_string(corpus().join(property))?.lines().enumerate() {
            std::fs::write(found.join(format!("kept-{number}")), BASE64_STANDARD.decode(line)?)?;
        }
        let mut fuzz = fuzzer(property)?;
        fuzz.arg(&found).args(["--", &format!("-max_total_time={seconds}"), "-max_len=1024", "-verbosity=0"]);
        run(fuzz.arg(format!("-artifact_prefix={}/{property}-", target()?.join("fuzz").display())))?;
    }
    Ok(Outcome::Counted { passed: properties.len() as u32, failed: 0, ignored: 0 })
}

/// Makes of all that was found for a property its corpus: no more than what reaches the same.
fn keep(property: &str) -> Result<(), Fail> {
    let least = place(&format!("{property}-least"))?;
    std::fs::remove_dir_all(&least)?;
    std::fs::create_dir_all(&least)?;
    run(fuzzer(property)?.arg(&least).arg(place(property)?).args(["--", "-set_cover_merge=1", "-max_len=1024"]))?;
    let mut cases = BTreeSet::new();
    for file in std::fs::read_dir(least)? {
        cases.insert(BASE64_STANDARD.encode(std::fs::read(file?.path())?) + "\n");
    }
    Ok(std::fs::write(corpus().join(property), cases.into_iter().collect::<String>())?)
}

/// libFuzzer on a property.
fn fuzzer(property: &str) -> Result<Command, Fail> {
    let mut fuzz = Command::new("cargo");
    fuzz.args(["+nightly", "fuzz", "run", "--fuzz-dir"]).arg(targets()).arg("property").current_dir(root());
    let known = std::env::var_os("PATH").unwrap_or_default();
    let programs = std::env::join_paths(std::iter::once(tool()?.join("bin")).chain(std::env::split_paths(&known)))?;
    fuzz.env("PATH", programs).env("CARGO_TARGET_DIR", target()?.join("fuzz/target")).env("HOPLINE_PROPERTY", property);
    Ok(fuzz)
}

/// A nightly toolchain and cargo-fuzz, where they are missing.
fn install() -> Result<(), Fail> {
    let told = Command::new("cargo").args(["+nightly", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !told.is_ok_and(|status| status.success()) {
        run(Command::new("rustup").args(["toolchain", "install", "nightly", "--profile", "minimal"]))?;
    }
    let tool = tool()?;
    if !tool.join("bin/cargo-fuzz").with_extension(std::env::consts::EXE_EXTENSION).exists() {
        run(Command::new("cargo").args(["install", "--locked", "cargo-fuzz", "--root"]).arg(tool))?;
    }
    Ok(())
}

/// The properties to fuzz: the names in `hopline_fuzz::PROPERTIES`, each of which has a corpus.
fn properties() -> Result<BTreeSet<String>, Fail> {
    std::fs::read_dir(corpus())?.map(|file| Ok(file?.file_name().to_string_lossy().into_owned())).collect()
}

fn corpus() -> PathBuf {
    root().join("tests/fuzz/corpus")
}

fn targets() -> PathBuf {
    root().join("tests/fuzz/targets")
}

/// Where cargo-fuzz is installed.
fn tool() -> Result<PathBuf, Fail> {
    Ok(cache()?.join("cargo-fuzz"))
}

/// A folder for cases.
fn place(name: &str) -> Result<PathBuf, Fail> {
    let place = target()?.join("fuzz/corpus").join(name);
    std::fs::create_dir_all(&place)?;
    Ok(place)
}
