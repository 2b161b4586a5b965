//! Cargo, and the programs that it has built.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use crate::Fail;
use crate::check::Outcome;

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    // Two folders above this crate; the fallback is never needed.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("."))
}

/// Returns Cargo, as it was called, at the root. The lock file decides the versions; a stale one is an error, not a change of the tree.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let (verb, rest) = arguments.split_at(1.min(arguments.len()));
    let has_lock = !matches!(verb, ["fmt" | "install"]);
    command.args(verb).args(has_lock.then_some("--locked")).args(rest).current_dir(root());
    command
}

/// A program of the workspace, once it is built: it lies beside this one.
pub(crate) fn built(name: &str) -> Result<PathBuf, Fail> {
    let own = std::env::current_exe()?;
    let folder = own.parent().ok_or("this program is in no folder; start it with `cargo xtask`")?;
    Ok(folder.join(name).with_extension(std::env::consts::EXE_EXTENSION))
}

/// Cargo's target folder: this program lies in one of its profiles.
pub(crate) fn target() -> Result<PathBuf, Fail> {
    let own = built("xtask")?;
    Ok(own.ancestors().nth(2).ok_or("this program is in no folder; start it with `cargo xtask`")?.to_owned())
}

/// Where what is installed once stays, outside of the tree.
pub(crate) fn cache() -> Result<PathBuf, Fail> {
    let given = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE")).map(|home| Path::new(&home).join(".cache"));
    Ok(given.or_else(home).ok_or("neither XDG_CACHE_HOME nor HOME is set")?.join("hopline"))
}

/// Says what it runs, runs it, and expects success.
pub(crate) fn run(command: &mut Command) -> Result<Outcome, Fail> {
    let line = say(command);
    let status = command.status()?;
    if status.success() { Ok(Outcome::ONE) } else { Err(format!("`{line}` ended with {status}").into()) }
}

/// Runs a command, shows what it prints as it comes, and gives that back.
pub(crate) fn printed(command: &mut Command) -> Result<(ExitStatus, String), Fail> {
    say(command);
    let (mut child, mut text) = (command.stdout(Stdio::piped()).spawn()?, String::new());
    for line in child.stdout.take().into_iter().flat_map(|out| BufReader::new(out).lines()) {
        let line = line?;
        println!("{line}");
        text += &line;
        text.push('\n');
    }
    Ok((child.wait()?, text))
}

/// Prints a command's line, and gives it back.
fn say(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let line = words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
    println!("{line}");
    line
}

/// The crates of the proof, which is built with optimization and is no part of the development build.
const PROOF: [&str; 2] = ["hopline-fuzz", "hopline-world"];

/// Cargo on all that is built for development: always the same crates with the same features, so that none is built twice.
pub(crate) fn development(verb: &str) -> Command {
    let mut command = cargo(&[verb, "--workspace", "--features", "hopline-bindgen/uniffi,hopline-bindgen/wasm"]);
    PROOF.iter().for_each(|package| _ = command.args(["--exclude", package]));
    command
}

/// Cargo on the proof.
pub(crate) fn proof(verb: &str) -> Command {
    let mut command = cargo(&[verb, "--profile", "search"]);
    PROOF.iter().for_each(|package| _ = command.args(["--package", package]));
    command
}

/// Builds the programs that all hosts share, the sandbox, the peers and bindgen, and core's examples. The tests of the workspace are built
/// with the same features, which the examples take care of: they need what only tests and examples depend on.
/// The programs are used from a place of their own: Cargo replaces its own whenever somebody builds one with other features.
pub(crate) fn programs() -> Result<Outcome, Fail> {
    run(development("build").args(["--bin", SANDBOX, "--bin", PEERS, "--bin", BINDGEN, "--examples"]))?;
    for name in [SANDBOX, PEERS, BINDGEN] {
        let place = program(name)?;
        std::fs::create_dir_all(place.parent().unwrap_or(root()))?;
        // Under another name first: one that runs can't be written, but another can take its place.
        let new = place.with_extension("new");
        std::fs::copy(built(name)?, &new)?;
        std::fs::rename(new, place)?;
    }
    Ok(Outcome::ONE)
}

const SANDBOX: &str = "hopline-sandbox";
const PEERS: &str = "hopline-peers";
pub(crate) const BINDGEN: &str = "hopline-bindgen";

/// A program that all hosts share.
fn program(name: &str) -> Result<PathBuf, Fail> {
    Ok(target()?.join("xtask/programs").join(name).with_extension(std::env::consts::EXE_EXTENSION))
}

/// Returns the sandbox, which was built with the other programs.
pub(crate) fn sandbox() -> Result<PathBuf, Fail> {
    program(SANDBOX)
}

/// The odd server and the recording proxies. They were built with the other programs.
pub(crate) fn peers() -> Result<PathBuf, Fail> {
    program(PEERS)
}

/// Runs bindgen, which prints for a host or binds a compiled library, and was built with the other programs.
pub(crate) fn bindgen<Argument: AsRef<OsStr>>(arguments: &[Argument]) -> Result<Outcome, Fail> {
    run(Command::new(program(BINDGEN)?).args(arguments))
}

/// The shared vectors, or those that somebody has named.
pub(crate) fn vectors() -> Result<PathBuf, Fail> {
    Ok(std::path::absolute(std::env::var_os("HOPLINE_VECTORS").map_or(root().join("tests/vectors"), PathBuf::from))?)
}

/// True if everything is to be checked, so that a missing tool is a failure.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

/// Builds a program of the workspace, which has its package's name, and becomes it.
pub(crate) fn run_program(package: &str, arguments: &[String]) -> Result<ExitCode, Fail> {
    if !cargo(&["build", "--package", package, "--bin", package]).status()?.success() {
        return Err(format!("{package} could not be built; what cargo said is above").into());
    }
    become_it(Command::new(built(package)?).args(arguments))
}

/// Builds the proof's program and becomes it.
pub(crate) fn run_proof(arguments: &[String]) -> Result<ExitCode, Fail> {
    become_it(world()?.args(arguments))
}

/// Builds the proof's program.
pub(crate) fn world() -> Result<Command, Fail> {
    let profile = ["build", "--profile", "search", "--package", "hopline-world", "--bin", "hopline-world"];
    if !cargo(&profile).status()?.success() {
        return Err("hopline-world could not be built; what cargo said is above".into());
    }
    Ok(Command::new(target()?.join("search/hopline-world").with_extension(std::env::consts::EXE_EXTENSION)))
}

/// Replaces this process, so that signals and the exit code are the program's own.
#[cfg(unix)]
fn become_it(command: &mut Command) -> Result<ExitCode, Fail> {
    Err(std::os::unix::process::CommandExt::exec(command).into())
}

#[cfg(not(unix))]
fn become_it(command: &mut Command) -> Result<ExitCode, Fail> {
    let code = command.status()?.code().unwrap_or(1);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}
