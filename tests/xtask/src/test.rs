//! `cargo xtask test`: every check. Each says what it does; none is skipped in silence.

mod failures;
mod inputs;
mod lanes;
mod process;

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::cargo::{is_ci, programs, root};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::profile::Profile;
use crate::{Fail, browser, debian, deep, docs, kotlin, licences, node, python, rust, sandbox, schemathesis, swift};
use inputs::Inputs;
use lanes::Ended;

const SHARED: &[Check] = &[Check::new(Lane::Rust, PROGRAMS, |_| programs())
    .reads(&["core", "tests/bindgen", "tests/peers", "tests/sandbox", "bindings-python/python"])
    .makes(&["xtask/programs", "debug/examples"])];

/// A host.
struct Host {
    name: &'static str,
    /// The prerequisites of a check come before it.
    checks: &'static [&'static [Check]],
    /// Runs its tests, or those that some words choose.
    tests: fn(Option<&str>) -> Result<Outcome, Fail>,
}

/// The hosts, and the sandbox by itself, whose own tests are Rust's, and which is tried with two of the packages.
const HOSTS: &[Host] = &[
    Host { name: "rust", checks: &[rust::CHECKS, licences::CHECKS, docs::CHECKS], tests: rust::tests },
    Host { name: "python", checks: &[python::CHECKS], tests: python::tests },
    Host { name: "node", checks: &[node::CHECKS], tests: node::tests },
    Host { name: "sandbox", checks: &[schemathesis::CHECKS, sandbox::CHECKS], tests: rust::tests },
    Host { name: "browser", checks: &[browser::CHECKS], tests: browser::tests },
    Host { name: "kotlin", checks: &[kotlin::CHECKS], tests: kotlin::tests },
    Host { name: "swift", checks: &[swift::CHECKS], tests: swift::tests },
];

const OPTIONS: [&str; 2] = ["--deep", "--again"];
/// The last check, of what the others have left behind.
const TREE: &str = "the tree is as it was";

/// `cargo xtask test [--deep] [--again] [HOST…]`.
pub(crate) fn run(arguments: &[String]) -> Result<ExitCode, Fail> {
    let begun = Instant::now();
    let (options, hosts): (Vec<&str>, Vec<&str>) = arguments.iter().map(String::as_str).partition(|word| word.starts_with("--"));
    if let Some(option) = options.iter().find(|option| !OPTIONS.contains(option)) {
        return Err(format!("there is no option `{option}`; the options are {}", OPTIONS.join(" and ")).into());
    }
    let hosts = match hosts.as_slice() {
        [] => HOSTS.iter().collect(),
        names => names.iter().map(|name| host(name)).collect::<Result<Vec<_>, _>>()?,
    };
    let is_deep = options.contains(&"--deep");
    // Packages are tested as they ship where there is time for it.
    let profile = if is_deep { Profile::Release } else { Profile::Ci };
    let deep = deep::CHECKS.iter().filter(|_| is_deep);
    let checks = with_needs(hosts.iter().flat_map(|host| host.checks).copied().flatten().chain(deep).map(|check| check.name));
    let again = is_ci() || options.contains(&"--again");
    let before = tree();
    let mut ended = check_all(&checks, again, profile);
    ended.insert(TREE, Ended { outcome: unchanged(before, tree()), took: None });
    print_costs(&checks, &ended, begun.elapsed());
    Ok(end(&ended))
}

/// Prints the time of each check, as the table that `tests/README.md` shows.
fn print_costs(checks: &[&Check], ended: &BTreeMap<&str, Ended>, whole: Duration) {
    let row = |seconds: &str, name: &str| println!("| {seconds:>7} | {name} |");
    row("Seconds", "Check");
    println!("|--------:|---|");
    for check in checks {
        let took = ended[check.name].took.map(|took| took.as_secs().to_string());
        row(took.as_deref().unwrap_or("-"), check.name);
    }
    row(&whole.as_secs().to_string(), "in all");
}

/// `cargo xtask check NAME`: one check by itself, once what it needs is there. With a profile and a file it is one of `test`'s,
/// which reads in the file what it ended with.
pub(crate) fn one(arguments: &[String]) -> Result<ExitCode, Fail> {
    let found = |name: &String| all().find(|check| check.name == name);
    match arguments {
        [name] => {
            let check = found(name).ok_or_else(|| format!("there is no check `{name}`; `cargo xtask check` lists them"))?;
            once_there(check.needs.iter().copied(), check.name, || (check.run)(Profile::Ci))
        }
        [name, profile, outcome] => {
            let profile = [Profile::Release, Profile::Ci].into_iter().find(|known| known.name() == profile);
            let (check, profile) = found(name).zip(profile).ok_or("there is no such check or profile")?;
            process::inside(check, profile, outcome)?;
            Ok(ExitCode::SUCCESS)
        }
        [] => {
            all().for_each(|check| println!("{}", check.name));
            Ok(ExitCode::SUCCESS)
        }
        _ => Err("say which check, its name in quotes".into()),
    }
}

/// `cargo xtask only HOST WORDS`: the tests of a host that the words choose, as its own runner reads them.
pub(crate) fn only(arguments: &[String]) -> Result<ExitCode, Fail> {
    let [name, words] = arguments else {
        return Err("say which host, and which of its tests: `cargo xtask only python a_walk`".into());
    };
    let host = host(name)?;
    once_there(host.checks.iter().copied().flatten().flat_map(|check| check.needs).copied(), host.name, || {
        Ok(match (host.tests)(Some(words))? {
            Outcome::Counted { passed: 0, failed: 0, .. } => return Err(format!("no test of {name} was chosen by `{words}`").into()),
            // The tests that some runners call skipped were not chosen.
            Outcome::Counted { passed, failed, .. } => Outcome::Counted { passed, failed, ignored: 0 },
            other => other,
        })
    })
}

/// Does something in this process, so that its output comes as it is printed, once the checks of those names have passed.
fn once_there(
    needs: impl Iterator<Item = &'static str>,
    name: &str,
    work: impl FnOnce() -> Result<Outcome, Fail>,
) -> Result<ExitCode, Fail> {
    let needed = check_all(&with_needs(needs), false, Profile::Ci);
    if needed.values().any(|ended| !ended.outcome.is_whole()) {
        return Ok(end(&needed));
    }
    Ok(end(&BTreeMap::from([(name, Ended { outcome: work()?, took: None })])))
}

fn host(name: &str) -> Result<&'static Host, Fail> {
    let known: Vec<&str> = HOSTS.iter().map(|host| host.name).collect();
    let found = HOSTS.iter().find(|host| host.name == name);
    found.ok_or_else(|| format!("there is no host `{name}`; the hosts are: {}", known.join(", ")).into())
}

/// Does the checks; those that passed and read nothing new only where all is to be done again.
fn check_all(checks: &[&Check], again: bool, profile: Profile) -> BTreeMap<&'static str, Ended> {
    let inputs = if again { None } else { Inputs::read(checks.iter().copied(), profile) };
    lanes::run(checks, inputs.as_ref(), profile)
}

fn all() -> impl Iterator<Item = &'static Check> {
    let hosts = HOSTS.iter().flat_map(|host| host.checks).copied().flatten();
    debian::CHECKS.iter().chain(SHARED).chain(hosts).chain(deep::CHECKS)
}

/// The checks of those names, and what they need.
fn with_needs(names: impl Iterator<Item = &'static str>) -> Vec<&'static Check> {
    let mut wanted: BTreeSet<&str> = names.collect();
    // Prerequisites come first, so one pass from the end finds all of them.
    let mut checks: Vec<&Check> = all().collect();
    checks.reverse();
    checks.retain(|check| {
        let is_wanted = wanted.contains(check.name);
        wanted.extend(check.needs.iter().filter(|_| is_wanted));
        is_wanted
    });
    checks.reverse();
    checks
}

/// The state of the tree by git: changed and new files, with their digests. Nothing without git.
fn tree() -> Option<String> {
    let told = |arguments: &[&str]| {
        let told = Command::new("git").args(arguments).current_dir(root()).stderr(Stdio::null()).output().ok()?;
        told.status.success().then(|| String::from_utf8_lossy(&told.stdout).into_owned())
    };
    Some(told(&["status", "--porcelain"])? + &told(&["diff", "HEAD"])?)
}

fn unchanged(before: Option<String>, after: Option<String>) -> Outcome {
    match (before, after) {
        (Some(before), Some(after)) if before == after => Outcome::ONE,
        (Some(_), Some(after)) => Outcome::Failed(format!("a check has changed the tree, which git now tells so:\n{after}")),
        _ => Outcome::NotRun("this is no git checkout, so nothing tells whether a check has changed it".to_owned()),
    }
}

/// Says how it went, with one plain line at the end.
fn end(ended: &BTreeMap<&str, Ended>) -> ExitCode {
    let (mut all, mut failures) = (0, 0);
    println!();
    for (name, Ended { outcome, took }) in ended {
        match outcome {
            Outcome::Counted { passed, failed, ignored } => {
                (all, failures) = (all + passed, failures + failed);
                if *failed > 0 {
                    println!("failed: {name}: {failed} of {}", passed + failed);
                    // The output of a check that ran in this process stands above.
                    let printed = took.map(|_| process::printed(name)).unwrap_or_default();
                    failures::told(&printed).iter().for_each(|line| println!("    {line}"));
                }
                if *ignored > 0 {
                    println!("not run: {name}: {ignored} skipped; what each misses is said above");
                }
            }
            Outcome::NotRun(why) => println!("not run: {name}: {why}"),
            Outcome::Failed(how) => {
                failures += 1;
                println!("failed: {name}: {how}");
            }
        }
    }
    println!("{all} passed, {failures} failed");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_check_comes_after_what_it_needs_and_no_two_share_a_name() {
        let mut before = BTreeSet::new();
        for check in all() {
            check.needs.iter().for_each(|need| assert!(before.contains(need), "\"{}\" needs \"{need}\"", check.name));
            assert!(before.insert(check.name), "two checks are called \"{}\"", check.name);
        }
    }

    #[test]
    fn a_check_is_done_with_what_it_needs_and_nothing_else() {
        let wanted = schemathesis::CHECKS.iter().map(|check| check.name);
        let names: Vec<&str> = with_needs(wanted).iter().map(|check| check.name).collect();
        assert_eq!(names[0], PROGRAMS);
        assert!(names[1..].iter().all(|name| name.contains("schemathesis")), "{names:?}");
        assert_eq!(with_needs(all().map(|check| check.name)).len(), all().count());
    }
}
