//! `cargo xtask test`: every check, one after the other. Each says what it does; none is skipped in silence.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use crate::cargo::{cargo, development, programs, proof, root};
use crate::{Fail, browser, examples, fuzz, kotlin, node, python, schemathesis, swift, wasm};

/// The checks of one host.
type Checks = fn(&mut Report);

/// The languages that Hopline is tested in, and the sandbox by itself.
const HOSTS: &[(&str, Checks)] = &[
    ("rust", rust),
    ("sandbox", schemathesis::test),
    ("python", python::test),
    ("node", node::test),
    ("browser", browser::test),
    ("kotlin", kotlin::test),
    ("swift", swift::test),
];

/// What core must never need: a runtime, a binding, a clock, entropy, or I/O.
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

/// What a check ended with.
pub(crate) enum Outcome {
    /// So many things passed and failed.
    Counted { passed: u32, failed: u32, ignored: u32 },
    /// It could not be run here, and why.
    NotRun(String),
}

/// The checks that ran.
#[derive(Default)]
pub(crate) struct Report {
    passed: u32,
    failed: Vec<String>,
    failures: u32,
    not_run: Vec<String>,
}

pub(crate) fn run(hosts: &[String]) -> Result<ExitCode, Fail> {
    let known: Vec<&str> = HOSTS.iter().map(|(name, _)| *name).collect();
    if let Some(host) = hosts.iter().find(|host| !known.contains(&host.as_str())) {
        return Err(format!("there is no host `{host}`; the hosts are: {}", known.join(", ")).into());
    }
    let (mut report, before) = (Report::default(), tree());
    report.check("the programs that all hosts share", programs);
    for (name, checks) in HOSTS {
        if hosts.is_empty() || hosts.iter().any(|host| host == name) {
            checks(&mut report);
        }
    }
    report.check("the tree is as it was", || match (before, tree()) {
        (Some(before), Some(after)) if before == after => Ok(Outcome::ONE),
        (Some(_), Some(after)) => Err(format!("a check has changed the tree, which git now tells so:\n{after}").into()),
        _ => Ok(Outcome::NotRun("this is no git checkout, so nothing tells whether a check has changed it".to_owned())),
    });
    Ok(report.end())
}

/// What git tells of the tree: files that are changed or new, and with what. Nothing where git can't tell.
fn tree() -> Option<String> {
    let told = |arguments: &[&str]| {
        let told = Command::new("git").args(arguments).current_dir(root()).stderr(Stdio::null()).output().ok()?;
        told.status.success().then(|| String::from_utf8_lossy(&told.stdout).into_owned())
    };
    Some(told(&["status", "--porcelain"])? + &told(&["diff", "HEAD"])?)
}

fn rust(report: &mut Report) {
    report.command("formatting", &mut cargo(&["fmt", "--all", "--check"]));
    report.command("lints", &mut cargo(&["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"]));
    report.command("lints of core alone", &mut cargo(&["clippy", "--package", "hopline", "--", "-D", "warnings"]));
    report.command(
        "documentation of core",
        cargo(&["doc", "--package", "hopline", "--no-deps", "--all-features"]).env("RUSTDOCFLAGS", "-D warnings"),
    );
    report.check("what core depends on", dependencies);
    report.check("core and its wasm binding on wasm32", wasm::check);
    // Units, sandbox, vectors, real HTTP and the demos are all tests of the workspace.
    report.tests("tests, vectors and demos", development("test").arg("--no-fail-fast"));
    report.tests("the search and the properties", proof("test").arg("--no-fail-fast"));
    report.check("the examples against a sandbox", examples::run);
    fuzz::test(report);
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

impl Outcome {
    /// One thing passed.
    pub(crate) const ONE: Outcome = Outcome::Counted { passed: 1, failed: 0, ignored: 0 };
}

impl Report {
    /// A command that is to succeed.
    fn command(&mut self, name: &str, command: &mut Command) {
        self.check(name, || {
            say(command);
            let status = command.status()?;
            if status.success() { Ok(Outcome::ONE) } else { Err(format!("it ended with {status}").into()) }
        });
    }

    /// `cargo test`, whose tests are counted.
    fn tests(&mut self, name: &str, command: &mut Command) {
        self.check(name, || {
            say(command);
            let mut child = command.stdout(Stdio::piped()).spawn()?;
            let (mut passed, mut failed, mut ignored, mut skipped) = (0, 0, 0, 0);
            for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
                let line = line?;
                passed += counted(&line, "passed");
                failed += counted(&line, "failed");
                ignored += counted(&line, "ignored");
                skipped += u32::from(line.starts_with("skipped: "));
                println!("{line}");
            }
            let status = child.wait()?;
            if !status.success() && failed == 0 {
                return Err(format!("it ended with {status}").into());
            }
            // A test of Rust can't be skipped while it runs: it says so in a line of its own, and passes.
            Ok(Outcome::Counted { passed: passed - skipped.min(passed), failed, ignored: ignored + skipped })
        });
    }

    pub(crate) fn check(&mut self, name: &str, check: impl FnOnce() -> Result<Outcome, Fail>) {
        println!("\n== {name}");
        let begun = Instant::now();
        let ended = check();
        println!("-- after {} s", begun.elapsed().as_secs());
        match ended {
            Ok(Outcome::Counted { passed, failed, ignored }) => {
                self.passed += passed;
                self.failures += failed;
                if failed > 0 {
                    self.failed.push(format!("{name}: {failed} of {}", passed + failed));
                }
                if ignored > 0 {
                    self.not_run.push(format!("{name}: {ignored} skipped; what each misses is said above"));
                }
            }
            Ok(Outcome::NotRun(why)) => {
                println!("not run: {why}");
                self.not_run.push(format!("{name}: {why}"));
            }
            Err(error) => {
                println!("failed: {error}");
                self.failures += 1;
                self.failed.push(format!("{name}: {error}"));
            }
        }
    }

    /// Says how it went, with one plain line at the end.
    fn end(self) -> ExitCode {
        println!();
        self.failed.iter().for_each(|what| println!("failed: {what}"));
        self.not_run.iter().for_each(|what| println!("not run: {what}"));
        println!("{} passed, {} failed", self.passed, self.failures);
        if self.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn say(command: &Command) {
    let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
    println!("cargo {}", words.join(" "));
}

/// The number before a word of a line such as `test result: ok. 12 passed; 0 failed; 0 ignored; …`.
pub(crate) fn counted(line: &str, word: &str) -> u32 {
    let Some(result) = line.strip_prefix("test result: ") else { return 0 };
    let counts = result.split(['.', ';']).filter_map(|part| part.trim().split_once(' '));
    counts.filter(|(_, counted)| *counted == word).filter_map(|(number, _)| number.parse::<u32>().ok()).sum()
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
