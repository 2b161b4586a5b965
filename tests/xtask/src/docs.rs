//! `cargo xtask docs [--open]`: the documentation site. The pages of `core/docs` take in programs that tests run, and references that bindgen
//! prints; Zensical makes a site of them, and what it made is judged: links that lead nowhere and requests to other hosts fail.

mod pages;
mod site;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{BINDGEN, bindgen, built, cargo, root, run, target};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::{Fail, python};

const TOOL: &str = "docs: Zensical itself";

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, TOOL, |_| match python::missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tool().map(|_| Outcome::ONE),
    })
    .reads(&["tests/xtask/docs.txt"])
    .makes(&["docs/venv/requirements.txt"]),
    Check::new(Lane::Python, "docs: the site, its links and its programs", |_| {
        build(|arguments: &[&Path]| bindgen(arguments)).map(|_| Outcome::ONE)
    })
    .needs(&[PROGRAMS, TOOL])
    .reads(&["core", "core/docs", "README.md", "bindings-python", "bindings-uniffi", "bindings-wasm", "tests"]),
];

/// `cargo xtask docs [--open]`.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let open = match arguments {
        [] => false,
        [option] if option == "--open" => true,
        _ => return Err("the only option is `--open`, which serves the site on this machine".into()),
    };
    if let Some(why) = python::missing()? {
        return Err(why.into());
    }
    // Only bindgen is needed, so a writer does not wait for the other programs.
    let site = build(|arguments| {
        run(&mut cargo(&["build", "--package", BINDGEN, "--bin", BINDGEN]))?;
        run(Command::new(built(BINDGEN)?).args(arguments))
    })?;
    println!("{}", site.join("index.html").display());
    if !open {
        return Ok(ExitCode::SUCCESS);
    }
    println!("serving it at http://127.0.0.1:8000/ until Ctrl-C");
    let mut serve = Command::new(tool()?);
    let served = serve.args(["-m", "http.server", "8000", "--bind", "127.0.0.1", "--directory"]).arg(site).status()?;
    Ok(if served.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Builds the site, judges it, and returns its folder. bindgen prints the references.
fn build(bindgen: fn(&[&Path]) -> Result<Outcome, Fail>) -> Result<PathBuf, Fail> {
    let (place, sources) = (place()?, root().join("core/docs"));
    let (pages, printed) = (place.join("pages"), place.join("printed"));
    for folder in [&pages, &printed, &place.join("site")] {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
    }
    std::fs::create_dir_all(&printed)?;
    bindgen(&[Path::new("docs"), &printed])?;
    pages::assemble(&sources, &pages, &printed)?;
    std::fs::copy(sources.join("zensical.toml"), place.join("zensical.toml"))?;
    let mut zensical = Command::new(tool()?.with_file_name(if cfg!(windows) { "zensical.exe" } else { "zensical" }));
    run(zensical.args(["build", "--strict", "--clean"]).env("NO_COLOR", "1").current_dir(&place))?;
    let site = place.join("site");
    site::judge(&site)?;
    site::judge_readmes(&site, root(), &pages::READMES)?;
    Ok(site)
}

/// Installs Zensical where it is missing, and returns the Python that has it.
fn tool() -> Result<PathBuf, Fail> {
    python::environment(&root().join("tests/xtask/docs.txt"), &place()?.join("venv"))
}

fn place() -> Result<PathBuf, Fail> {
    let place = target()?.join("docs");
    std::fs::create_dir_all(&place)?;
    Ok(place)
}
