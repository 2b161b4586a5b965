//! Rust's own checks: of the text, of core by itself, and the tests of the workspace.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};

use crate::cargo::{cargo, development, printed, proof, run};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::debian::NGINX;
use crate::{Fail, examples, targets};

/// The inputs of the workspace's tests: the crates, the examples in READMEs, and the contract.
const ALL: &[&str] = &[
    "core",
    "bindings-python",
    "bindings-uniffi",
    "bindings-wasm",
    "tests",
    "README.md",
    "rustfmt.toml",
    "../shared/seeds",
    "../shared/external",
];
const CORE: &[&str] = &["core", "bindings-wasm"];

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Rust, "formatting", |_| run(&mut cargo(&["fmt", "--all", "--check"]))).reads(ALL),
    Check::new(Lane::Rust, "what core depends on", |_| dependencies()).reads(CORE),
    // Units, sandbox, vectors, real HTTP and the demos are all tests of the workspace.
    Check::new(Lane::Rust, "tests, vectors and demos", |_| tests(None)).needs(&[NGINX, PROGRAMS]).reads(ALL),
    Check::new(Lane::Rust, "the examples against a sandbox", |_| examples::run()).needs(&[PROGRAMS]),
    Check::new(Lane::Rust, "the search and the properties", |_| counted_tests(proof("test")))
        // The README quotes how much the proof has visited.
        .reads(&["core", "tests/world", "tests/fuzz", "tests/sandbox", "README.md"]),
    Check::new(Lane::Rust, "lints", |_| lint(&["--workspace", "--all-targets", "--all-features"])).reads(ALL),
    Check::new(Lane::Rust, "lints of core alone", |_| lint(&["--package", "hopline"])).reads(CORE),
    Check::new(Lane::Rust, "lints of core without pools", |_| lint(&["--package", "hopline", "--lib", "--no-default-features"]))
        .reads(CORE),
    Check::new(Lane::Rust, "documentation of core and its stores", |_| {
        let packages = ["--package", "hopline", "--package", "hopline-store", "--lib"];
        run(cargo(&["doc"]).args(packages).args(["--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"))
    })
    .reads(CORE),
    Check::new(Lane::Rust, "core and its wasm binding on wasm32", |_| targets::check(targets::WASM, &["hopline", "hopline-wasm"]))
        .reads(CORE),
    Check::new(Lane::Rust, "the store on Windows", |_| targets::check(targets::WINDOWS, &["hopline-store"])).reads(&["core"]),
    Check::new(Lane::Rust, "the store on iPhones and Macs", |_| targets::check(targets::IOS, &["hopline-store"])).reads(&["core"]),
];

/// The crates that core must never need: a runtime, a binding, a clock, entropy, or I/O.
const NOT_IN_CORE: &[&str] = &[
    "async-std",
    "chrono",
    "fastrand",
    "getrandom",
    "hyper",
    "js-sys",
    "mio",
    "pyo3",
    "rand",
    "rand_core",
    "reqwest",
    "smol",
    "socket2",
    "time",
    "tokio",
    "uniffi",
    "ureq",
    "wasm-bindgen",
    "web-sys",
    "web-time",
];

fn lint(what: &[&str]) -> Result<Outcome, Fail> {
    run(cargo(&["clippy"]).args(what).args(["--", "-D", "warnings"]))
}

/// The tests of the workspace, or those whose names have some words in them.
pub(crate) fn tests(only: Option<&str>) -> Result<Outcome, Fail> {
    let mut cargo = development("test");
    cargo.args(only);
    counted_tests(cargo)
}

/// `cargo test`, whose tests are counted.
fn counted_tests(mut cargo: Command) -> Result<Outcome, Fail> {
    let (status, text) = printed(cargo.arg("--no-fail-fast"))?;
    let count = |word: &str| text.lines().map(|line| counted(line, word)).sum::<u32>();
    let (passed, failed) = (count("passed"), count("failed"));
    if !status.success() && failed == 0 {
        return Err(format!("it ended with {status}").into());
    }
    // A test of Rust can't be skipped while it runs: it says so in a line of its own, and passes.
    let skipped = text.lines().filter(|line| line.starts_with("skipped: ")).count() as u32;
    Ok(Outcome::Counted { passed: passed.saturating_sub(skipped), failed, ignored: count("ignored") + skipped })
}

/// The number before a word of a line such as `test result: ok. 12 passed; 0 failed; 0 ignored; …`.
fn counted(line: &str, word: &str) -> u32 {
    let Some(result) = line.strip_prefix("test result: ") else { return 0 };
    let counts = result.split(['.', ';']).filter_map(|part| part.trim().split_once(' '));
    counts.filter(|(_, counted)| *counted == word).filter_map(|(number, _)| number.parse::<u32>().ok()).sum()
}

/// Core's own dependencies, on every platform.
fn dependencies() -> Result<Outcome, Fail> {
    let mut tree =
        cargo(&["tree", "--package", "hopline", "--target", "all", "--prefix", "none", "--format", "{p}", "--edges", "normal,build"]);
    let listed = tree.stderr(Stdio::inherit()).output()?;
    if !listed.status.success() {
        return Err("cargo tree failed; what it said is above".into());
    }
    let listed = String::from_utf8(listed.stdout)?;
    let names: BTreeSet<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let wrong: Vec<&str> = names.iter().copied().filter(|name| NOT_IN_CORE.contains(name)).collect();
    if !names.contains("hopline") || !wrong.is_empty() {
        return Err(format!("core must not depend on {}; take it out or give it to a host", wrong.join(", ")).into());
    }
    println!("{}", names.into_iter().collect::<Vec<_>>().join(" "));
    Ok(Outcome::ONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_result_of_a_test_program_is_counted_and_other_lines_are_not() {
        let line = "test result: FAILED. 12 passed; 3 failed; 1 ignored; 0 measured; 4 filtered out; finished in 0.21s";
        assert_eq!(["passed", "failed", "ignored"].map(|word| counted(line, word)), [12, 3, 1]);
        assert_eq!(counted("12 passed; 3 failed", "passed"), 0);
    }
}
