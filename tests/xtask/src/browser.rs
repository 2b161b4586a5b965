//! The npm package in a real browser: served as plain files and through bundlers, and tested there.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::cargo::{Profile, built, is_ci, root, run};
use crate::test::{Outcome, Report};
use crate::{Fail, node, wasm};

/// Everything that is checked in a browser.
pub(crate) fn test(report: &mut Report) {
    let found = match ready() {
        Ok(Ok(found)) => found,
        Ok(Err(why)) => return report.check("the npm package in Chromium", || Ok(Outcome::NotRun(why))),
        Err(error) => return report.check("the npm package in Chromium", || Err(error)),
    };
    report.check("the npm package, installed for pages", || install().map(|()| Outcome::ONE));
    report.check("browser: vectors, bundlers, stores, crashes, CORS", || {
        node::tests_in(&place()?.join("hosts/browser/test"), &[("HOPLINE_CHROMIUM", &found)])
    });
    report.check("what crosses between Rust and JavaScript, in Node", wasm::crossing);
}

/// The story of the Rust demo in a page.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    let found = ready()??;
    install()?;
    let mut demo = Command::new("node");
    demo.arg(place()?.join("hosts/browser/demo.mjs")).args(arguments);
    demo.env("HOPLINE_CHROMIUM", found).env("HOPLINE_SANDBOX", built("hopline-sandbox")?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the package and installs it into a folder with the tests and what they need.
fn install() -> Result<(), Fail> {
    let tarball = node::package(Profile::Ci)?;
    let place = place()?;
    std::fs::create_dir_all(&place)?;
    for name in ["package.json", "package-lock.json"] {
        let (given, there) = (std::fs::read(host().join(name))?, place.join(name));
        if std::fs::read(&there).is_ok_and(|old| old == given) {
            continue;
        }
        std::fs::write(&there, given)?;
        // What was installed by another list is of no use any more.
        let _ = std::fs::remove_dir_all(place.join("node_modules"));
    }
    if !place.join("node_modules/.package-lock.json").exists() {
        run(node::npm(&["ci"]).current_dir(&place))?;
    }
    // One of the same version would be left as it is.
    let _ = std::fs::remove_dir_all(place.join("node_modules/hopline"));
    run(node::npm(&["install", "--no-save", "--offline"]).arg(tarball).current_dir(&place))?;
    // Relative imports of one host's tests by another's work here as they do in the tree. The lists of packages stay out:
    // Vite serves what is below the nearest one.
    for made in ["hosts", "examples"].map(|name| place.join(name)).iter().filter(|made| made.exists()) {
        std::fs::remove_dir_all(made)?;
    }
    for path in ["hosts/node/test", "hosts/browser/test"] {
        node::copy(&root().join("tests").join(path), &place.join(path))?;
    }
    node::copy(&root().join("bindings-wasm/examples"), &place.join("examples"))?;
    for name in ["demo.mjs", "demo-life.mjs", "demo-reseller.mjs"] {
        std::fs::copy(host().join(name), place.join("hosts/browser").join(name))?;
    }
    Ok(())
}

/// Chromium, installed where that can be done; or why there is none, which is a failure where all was to be checked.
fn ready() -> Result<Result<PathBuf, String>, Fail> {
    let why = match node::missing()? {
        Some(why) => why,
        None => match chromium().or_else(|| apt("chromium").then(chromium).flatten()) {
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
    let folders = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    std::env::split_paths(&folders).flat_map(|folder| names.map(|name| folder.join(name))).find(|path| path.is_file())
}

/// Installs a package of Debian's, where this is one and we may.
fn apt(package: &str) -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|told| told.stdout == b"0\n");
    let get = |arguments: &[&str]| {
        println!("apt-get {}", arguments.join(" "));
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command.status().is_ok_and(|status| status.success())
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    root && (get(&install) || (get(&["update"]) && get(&install)))
}

fn host() -> PathBuf {
    root().join("tests/hosts/browser")
}

/// Where all that is made for browsers lies.
fn place() -> Result<PathBuf, Fail> {
    Ok(crate::cargo::target()?.join("browser"))
}
