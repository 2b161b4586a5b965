//! `cargo xtask`: the one command for people. Each step prints its name, and needs nothing but Rust to begin with.

mod bench;
mod browser;
mod cargo;
mod check;
mod debian;
mod deep;
mod docs;
mod examples;
mod junit;
mod kotlin;
mod licences;
mod mutants;
mod node;
mod notices;
mod npm;
mod paths;
mod profile;
mod python;
mod release;
mod rust;
mod sandbox;
mod schemathesis;
mod sizes;
mod swift;
mod targets;
mod test;
mod uniffi;
mod vector;
mod weight;

use std::ffi::OsStr;
use std::process::ExitCode;

use profile::Profile;

/// The failure, in one sentence.
type Fail = Box<dyn std::error::Error>;

const HELP: &str = "\
cargo xtask demo [--crash] [--seed N]   a session's whole life on this machine; --crash kills the buyer in mid-purchase
cargo xtask demo --story reseller       a reseller's day: a sub-user, its money, a static order
cargo xtask demo --host HOST            the same stories through a package: python, node, browser, kotlin, swift
cargo xtask test [HOST…]                every check and test; of all hosts, or of those named: rust, sandbox, python, node, browser, kotlin, swift
                 [--again]              also what passed before and reads nothing that has changed
                 [--deep]               also what takes long; packages are built as they ship
cargo xtask check NAME                  one of those checks by itself, such as `lints`, once what it needs is there; without a name, all names
cargo xtask only HOST WORDS             the tests of a host that have these words in their names (kotlin: `Class`, `Class#method`; swift: a pattern)
cargo xtask vector WORDS [HOST]         the vectors that have these words in their names, in Rust or another host
cargo xtask sentences                   writes anew what errors say, into tests/vectors/sentences.txt, to read before a commit, and the table of codes
cargo xtask gen                         prints the types and clients of python, node, kotlin and swift from the table, to look at
cargo xtask package HOST                makes the wheel (python), the npm tarball (node), the jar (kotlin), the folder (swift), or the sandbox's wheels
                                        and npm packages (sandbox), and says where it is
cargo xtask release --dry-run [PART…]   from a checkout without changes: makes all packages as they ship (or python, node, kotlin, swift, sandbox),
                                        checks them, and lists them with bills of materials and digests; it publishes nothing
cargo xtask sizes [--accept]            what the packages weigh, and weighed; --accept keeps it in tests/bench/sizes.txt
cargo xtask docs [--open]               the documentation site, into the target folder; --open serves it on this machine
cargo xtask bench [HOST…]               what Hopline costs beside its peers, of all hosts or of those named, into the tables of tests/bench/README.md; `fleets`: plans of pools; `workers`: fleets in virtual time; `database`: a PostgreSQL server; `crawlers` and `relays`: integrations beside a list of proxies, and the loopback port beside others
cargo xtask coverage                    which vector or test shows each statement of the contracts; one that nothing shows is a failure
cargo xtask coverage --run TEXT         runs what shows the statements with this text in them
cargo xtask coverage --mutate [N|TEXT]  changes the code that keeps a statement, and expects what shows it to fail; all samples, N of them, or those with this text
cargo xtask fuzz [SECONDS]              libFuzzer on each property of tests/fuzz, for 60 seconds or as long as you say
cargo xtask mutants [PATH] [OPTION…]    changes core in each way that cargo-mutants knows, and expects a test, a vector or a small world to notice
cargo xtask swarm [--minutes N] [--seed S]  lives of many jobs in the proof's world, on all cores, from a seed on
cargo xtask world scope|seed …          one scope or one life of the proof, with its story if something is wrong; alone it says how
cargo xtask sandbox [OPTION…]           the services on loopback, to try things against; --help shows its options
cargo xtask relay-check URL [--service PORT] [--header TEXT]
                                        checks anybody's relay between a page and the service against the rules of a backend, as core/docs/backend.md has them
cargo xtask help                        this text";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next().unwrap_or_else(|| "help".to_owned());
    let rest: Vec<String> = arguments.collect();
    let done = match command.as_str() {
        "demo" => demo(&rest),
        "gen" => generate(),
        "package" => package(&rest),
        "sizes" => sizes::command(&rest),
        "release" => release::command(&rest),
        "bench" => bench::command(&rest),
        "docs" => docs::command(&rest),
        "fuzz" => deep::command(&rest),
        "mutants" => mutants::command(&rest),
        "coverage" => cargo::run_program("hopline-coverage", &rest),
        "swarm" => cargo::run_proof(&[vec![command.clone()], rest].concat()),
        "world" => cargo::run_proof(&rest),
        "sandbox" => cargo::run_program("hopline-sandbox", &rest),
        "relay-check" => node::relay_check(&rest),
        "test" => test::run(&rest),
        "check" => test::one(&rest),
        "only" => test::only(&rest),
        "vector" => vector::command(&rest),
        "sentences" => sentences(),
        "help" | "--help" | "-h" => {
            println!("{HELP}");
            Ok(ExitCode::SUCCESS)
        }
        other => Err(format!("there is no command `{other}`; `cargo xtask help` lists them").into()),
    };
    done.unwrap_or_else(|error| {
        eprintln!("xtask: {error}");
        ExitCode::FAILURE
    })
}

/// The demo, in Rust or through a package.
fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    let Some(at) = arguments.iter().position(|argument| argument == "--host") else {
        return cargo::run_program("hopline-demo", arguments);
    };
    let mut rest = arguments.to_vec();
    let host = rest.drain(at..(at + 2).min(arguments.len())).nth(1).unwrap_or_default();
    cargo::programs()?;
    match host.as_str() {
        "rust" => cargo::run_program("hopline-demo", &rest),
        "python" => python::demo(&rest),
        "node" => node::demo(&rest),
        "kotlin" => kotlin::demo(&rest),
        "swift" => swift::demo(&rest),
        "browser" => browser::demo(&rest),
        _ => Err(no_host(&host)),
    }
}

/// Writes down what the errors of the vectors say and the table of codes, by the tests that compare them.
fn sentences() -> Result<ExitCode, Fail> {
    let mut test = cargo::development("test");
    let status = test.args(["--test", "sentences"]).env("HOPLINE_WRITE_SENTENCES", "1").status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Prints the files that `package` prints before it packs, into the same places, which git ignores.
fn generate() -> Result<ExitCode, Fail> {
    cargo::programs()?;
    for (host, folder) in [
        ("python", cargo::root().join("bindings-python/python/hopline")),
        ("typescript", cargo::root().join("bindings-wasm/js/gen")),
        ("kotlin", cargo::root().join("bindings-uniffi/kotlin/gen/printed")),
        ("swift", cargo::target()?.join("swift/made/printed")),
    ] {
        std::fs::create_dir_all(&folder)?;
        cargo::bindgen(&[OsStr::new(host), folder.as_os_str()])?;
    }
    Ok(ExitCode::SUCCESS)
}

fn package(arguments: &[String]) -> Result<ExitCode, Fail> {
    let host = arguments.first().map(String::as_str).unwrap_or_default();
    cargo::programs()?;
    let made = match host {
        "python" => python::package(Profile::Release)?,
        "node" => node::package(Profile::Release)?,
        "kotlin" => kotlin::package(Profile::Release)?,
        "swift" => swift::package(Profile::Release)?,
        "sandbox" => sandbox::package(Profile::Release)?,
        _ => return Err(no_host(host)),
    };
    println!("{}", made.display());
    Ok(ExitCode::SUCCESS)
}

fn no_host(host: &str) -> Fail {
    format!("there is no package for `{host}`; there is one for: python, node, kotlin, swift, sandbox").into()
}
