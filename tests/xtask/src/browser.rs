//! The npm package in a real browser: served as plain files and through bundlers, and tested there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use crate::cargo::{is_ci, programs, root, run, sandbox};
use crate::check::{Check, Lane, Outcome};
use crate::debian::CERTUTIL;
use crate::profile::Profile;
use crate::{Fail, debian, node, npm};

const MADE: &str = "browser: the npm package, installed for pages";

pub(crate) const CHECKS: &[Check] =
    &[
        Check::new(Lane::Others, "browser: Chromium, and what the tests need", |_| match ready()? {
            Err(why) => Ok(Outcome::NotRun(why)),
            Ok(_) => tools().map(|()| Outcome::ONE),
        })
        .reads(&["tests/hosts/browser/package.json", "tests/hosts/browser/package-lock.json"])
        .makes(&["browser/node_modules"]),
        Check::new(Lane::Others, MADE, |_| install(&node::tarball()?).map(|()| Outcome::ONE))
            .needs(&[node::MADE, "browser: Chromium, and what the tests need"])
            .makes(&["browser/node_modules/hopline"]),
        Check::new(Lane::Others, "browser: what is measured comes to its result", |_| run(measure()?.arg("--once")))
            .needs(&[MADE])
            .reads(&["tests/bench/browser", "tests/bench/rounds.mjs", "tests/bench/products.json", "tests/hosts/browser/test"]),
        Check::new(Lane::Others, "browser: vectors, bundlers, stores, crashes, CORS", |_| tests(None)).needs(&[CERTUTIL, MADE]).reads(&[
            "tests/hosts/browser",
            "tests/hosts/node/test",
            "tests/vectors",
            "bindings-wasm/examples",
            "core/docs/programs/js",
            "core/docs/browser.md",
        ]),
    ];

pub(crate) fn tests(only: Option<&str>) -> Result<Outcome, Fail> {
    let chromium = ready()??;
    install_tests()?;
    // A browser keeps a processor busy.
    node::tests_in(&place()?.join("hosts/browser/test"), 2, only, &[("HOPLINE_CHROMIUM", &chromium)])
}

/// The story of the Rust demo in a page.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    let found = ready()??;
    install(&node::package(Profile::Ci)?)?;
    install_tests()?;
    let mut demo = Command::new("node");
    demo.arg(place()?.join("hosts/browser/demo.mjs")).args(arguments);
    demo.env("HOPLINE_CHROMIUM", found).env("HOPLINE_SANDBOX", sandbox()?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The measuring program, with the package as it ships.
pub(crate) fn bench() -> Result<Command, Fail> {
    ready()??;
    programs()?;
    let tarball = node::package(Profile::Release)?;
    install(&tarball)?;
    measure()
}

/// The measuring program, with the installed package.
fn measure() -> Result<Command, Fail> {
    let chromium = ready()??;
    let (scripts, folder) = (root().join("tests/bench"), place()?.join("bench"));
    node::copy(&scripts.join("browser"), &folder)?;
    node::copy(&host().join("test"), &folder.join("test"))?;
    std::fs::copy(scripts.join("rounds.mjs"), folder.join("rounds.mjs"))?;
    let mut measure = Command::new("node");
    measure.arg(folder.join("bench.mjs")).arg(scripts.join("products.json")).env("HOPLINE_CHROMIUM", chromium);
    Ok(measure)
}

/// Installs what the tests need.
fn tools() -> Result<(), Fail> {
    let place = place()?;
    std::fs::create_dir_all(&place)?;
    for name in ["package.json", "package-lock.json"] {
        let (given, there) = (std::fs::read(host().join(name))?, place.join(name));
        if std::fs::read(&there).is_ok_and(|old| old == given) {
            continue;
        }
        std::fs::write(&there, given)?;
        // Modules that were installed from another list are of no use any more.
        let _ = std::fs::remove_dir_all(place.join("node_modules"));
    }
    if !place.join("node_modules/.package-lock.json").exists() {
        run(npm::npm(&["ci"]).current_dir(&place))?;
    }
    Ok(())
}

/// Installs the package into the folder of the tests.
fn install(tarball: &Path) -> Result<(), Fail> {
    tools()?;
    let place = place()?;
    // One of the same version would be left as it is.
    let _ = std::fs::remove_dir_all(place.join("node_modules/hopline"));
    run(npm::npm(&["install", "--no-save", "--offline"]).arg(tarball).current_dir(&place)).map(|_| ())
}

/// Puts the tests beside the package.
fn install_tests() -> Result<(), Fail> {
    let place = place()?;
    // Relative imports of one host's tests by another's work here as they do in the tree. The lists of packages stay out:
    // Vite serves what is below the nearest one.
    for made in ["hosts", "examples"].map(|name| place.join(name)).iter().filter(|made| made.exists()) {
        std::fs::remove_dir_all(made)?;
    }
    node::copy_tests(&place.join("hosts/node/test"))?;
    node::copy(&host().join("test"), &place.join("hosts/browser/test"))?;
    node::copy(&root().join("bindings-wasm/examples"), &place.join("examples"))?;
    for name in ["demo.mjs", "demo-life.mjs", "demo-reseller.mjs"] {
        std::fs::copy(host().join(name), place.join("hosts/browser").join(name))?;
    }
    Ok(())
}

/// Chromium, installed where that can be done; or why there is none, which is a failure where all was to be checked.
fn ready() -> Result<Result<PathBuf, String>, Fail> {
    let why = match npm::missing()? {
        Some(why) => why,
        None => match chromium().or_else(|| debian::installed("chromium").then(chromium).flatten()) {
            Some(found) => return Ok(Ok(found)),
            None => "Chromium is not installed; HOPLINE_CHROMIUM may name the program".to_owned(),
        },
    };
    if is_ci() { Err(why.into()) } else { Ok(Err(why)) }
}

/// The browser that is named, or the first that is found.
fn chromium() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLINE_CHROMIUM") {
        return Some(named.into());
    }
    debian::program(&["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"])
}

fn host() -> PathBuf {
    root().join("tests/hosts/browser")
}

/// Where all that is made for browsers lies.
fn place() -> Result<PathBuf, Fail> {
    Ok(crate::cargo::target()?.join("browser"))
}
