//! `cargo xtask mutants`: cargo-mutants on core. Its changes, their judges, and the changes that change nothing are in
//! `.cargo/mutants.toml`.

use std::process::{Command, ExitCode};

use crate::Fail;
use crate::cargo::{cache, root, run, target};

/// The parts that are changed by default: how core buys, judges and reads.
const PARTS: [&str; 5] = ["core/src/client", "core/src/engine", "core/src/policy", "core/src/state", "core/src/wire"];

/// The version whose changes the exceptions in `.cargo/mutants.toml` name.
const VERSION: &str = "27.1.0";

/// `cargo xtask mutants [PATH] [OPTION…]`: all of that, or what is below a path; the options are those of cargo-mutants.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let (path, options) = match arguments.split_first() {
        Some((path, options)) if !path.starts_with('-') => (Some(path.as_str()), options),
        _ => (None, arguments),
    };
    let mut mutants = installed()?;
    mutants.current_dir(root()).arg("--output").arg(target()?);
    for path in path.map_or(PARTS.to_vec(), |path| vec![path]) {
        let place = root().join(path);
        let files = match (place.is_dir(), place.is_file()) {
            (true, _) => format!("{}/**", path.trim_end_matches('/')),
            (_, true) => path.to_owned(),
            _ => return Err(format!("there is no `{path}`; name a file or a folder such as core/src/policy").into()),
        };
        mutants.args(["--file", &files]);
    }
    // The build copies the tree, into a folder whose dependencies are there from the last time.
    run(mutants.args(options).env("CARGO_TARGET_DIR", target()?.join("mutants")))?;
    Ok(ExitCode::SUCCESS)
}

/// cargo-mutants, of just that version; it is installed where it is missing.
fn installed() -> Result<Command, Fail> {
    let tools = cache()?.join("tools");
    let program = tools.join("bin/cargo-mutants").with_extension(std::env::consts::EXE_EXTENSION);
    let known = Command::new(&program).args(["mutants", "--version"]).output();
    let is_known = known.is_ok_and(|known| String::from_utf8_lossy(&known.stdout).trim() == format!("cargo-mutants {VERSION}"));
    if !is_known {
        run(Command::new("cargo").args(["install", "--locked", "cargo-mutants", "--version", VERSION, "--root"]).arg(&tools))?;
    }
    let mut mutants = Command::new(program);
    mutants.arg("mutants");
    Ok(mutants)
}
