//! The npm package: built, packed, installed into an empty folder, and tested there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{bindgen, cargo, peers, programs, root, run, sandbox, target, vectors};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::debian::{NGINX, POSTGRES};
use crate::profile::Profile;
use crate::targets::WASM;
use crate::weight::Weighed;
use crate::{Fail, junit, notices, npm, paths, python, targets, weight};

/// The sources of the package, and the inputs of its tests.
const PACKAGE: &[&str] =
    &["core", "bindings-wasm", "bindings-python/python/hopline/postgres.sql", "tests/bindgen", "tests/hosts/node/pack.mjs"];
const TESTS: &[&str] = &["tests/hosts/node", "tests/store", "tests/vectors", "core/docs/programs/js", "../shared/external"];
pub(crate) const MADE: &str = "node: the npm package";

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, "node: what the tests need", |_| match npm::missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tools().map(|()| Outcome::ONE),
    })
    .reads(&["tests/hosts/node/package-lock.json"])
    .makes(&[]),
    Check::new(Lane::Others, MADE, |profile| install(profile).map(|()| Outcome::ONE))
        .needs(&[PROGRAMS, "node: what the tests need"])
        .reads(PACKAGE)
        .makes(&["node/pack", "node/clean"]),
    Check::new(Lane::Others, "node: the npm package names no folder of this machine", |_| paths::none_in(&place()?.join("pack/package")))
        .needs(&[MADE]),
    Check::new(Lane::Others, "node: publint", |_| run(tool("publint")?.arg(place()?.join("pack/package")))).needs(&[MADE]),
    Check::new(Lane::Others, "node: are the types wrong?", |_| run(tool("attw")?.arg(tarball()?))).needs(&[MADE]),
    Check::new(Lane::Others, "node: tsc --strict in ESM and CJS", |_| types()).needs(&[MADE]).reads(TESTS),
    Check::new(Lane::Others, "node: what is measured comes to its result", |_| run(measure(&tarball()?)?.arg("--once")))
        .needs(&[MADE])
        .reads(&["tests/bench/node", "tests/bench/rounds.mjs", "tests/bench/products.json"]),
    Check::new(Lane::Others, "node: a page loads no more than it did", |_| weigh()).needs(&[MADE]).reads(&[
        "core",
        "bindings-wasm",
        "tests/bindgen",
        "tests/bench/sizes.txt",
    ]),
    Check::new(Lane::Others, "node: vectors, real HTTP, crashes, input", |_| tests(None)).needs(&[NGINX, POSTGRES, MADE]).reads(TESTS),
];

fn types() -> Result<Outcome, Fail> {
    let tests = installed_tests()?;
    // The oldest and the newest compiler that the README names, and the one between.
    let all: [(&str, &[&str]); 3] =
        [("typescript", &["tsconfig", "bare", "bundler"]), ("typescript52", &["tsconfig"]), ("typescript7", &["tsconfig", "bundler"])];
    for (compiler, projects) in all {
        for project in projects {
            let tsc = host().join("node_modules").join(compiler).join("bin/tsc");
            run(Command::new("node").arg(tsc).arg("--project").arg(tests.join("types").join(project).with_extension("json")))?;
        }
    }
    Ok(Outcome::ONE)
}

pub(crate) fn tests(only: Option<&str>) -> Result<Outcome, Fail> {
    let (tools, python) = (host().join("node_modules"), python::with_wheel()?);
    // The modules that the package uses where it is installed are found there, too.
    let mut environment = vec![("HOPLINE_TOOLS", tools.as_path()), ("NODE_PATH", tools.as_path())];
    environment.extend(python.as_deref().map(|python| ("HOPLINE_PYTHON", python)));
    // Most of them wait.
    tests_in(&installed_tests()?, 4, only, &environment)
}

/// The story of the Rust demo through the package.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    if let Some(why) = npm::missing()? {
        return Err(why.into());
    }
    install(Profile::Ci)?;
    let mut demo = Command::new("node");
    demo.arg(host().join("demo.mjs")).args(arguments).env("HOPLINE_PACKAGE", clean()?).env("HOPLINE_SANDBOX", sandbox()?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Checks a relay against the rules of a backend.
pub(crate) fn relay_check(arguments: &[String]) -> Result<ExitCode, Fail> {
    if let Some(why) = npm::missing()? {
        return Err(why.into());
    }
    let status = Command::new("node").arg(host().join("test/lib/relay-check.mjs")).args(arguments).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the package and returns its tarball.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    if let Some(why) = npm::missing()?.or(targets::missing(WASM)?) {
        return Err(why.into());
    }
    tools()?;
    let generated = root().join("bindings-wasm/js/gen");
    std::fs::create_dir_all(&generated)?;
    bindgen(&[Path::new("typescript"), &generated])?;
    notices::write("hopline-wasm", &generated)?;
    library(profile, &generated, &[])?;
    // A page has no pools.
    let with_pools = generated.join("pools");
    std::fs::create_dir_all(&with_pools)?;
    library(profile, &with_pools, &["--features", "pools"])?;
    run(Command::new("node").arg(host().join("pack.mjs")).arg(place()?.join("pack")))?;
    tarball()
}

/// Makes the wasm and what loads it.
fn library(profile: Profile, into: &Path, features: &[&str]) -> Result<(), Fail> {
    // Of one kind, or link-time optimization is lost.
    let kind = ["--lib", "--crate-type", "cdylib", "--config", "profile.release.opt-level=\"z\""];
    run(paths::leave_out(
        cargo(&["rustc", "--package", "hopline-wasm", "--profile", profile.name(), "--target", WASM]).args(features).args(kind),
    )?)?;
    let library = target()?.join(WASM).join(profile.name()).join("hopline_wasm.wasm");
    bindgen(&[Path::new("wasm"), &library, into]).map(|_| ())
}

/// Checks that a page loads no more than before, as it ships.
fn weigh() -> Result<Outcome, Fail> {
    if let Some(why) = targets::missing(WASM)? {
        return Ok(Outcome::NotRun(why));
    }
    let into = place()?.join("weighed");
    std::fs::create_dir_all(&into)?;
    library(Profile::Release, &into, &[])?;
    weight::judge(&vec![
        ("wasm, brotli", squeezed("brotliCompress", &into.join("hopline_wasm_bg.wasm"))?),
        ("its brotli", of_first(|path| squeezed("brotliCompress", path))?),
    ])
}

/// The files that a page loads before it needs the core.
const FIRST: [&str; 2] = ["web.mjs", "shared.mjs"];

/// The sum over the files that a page loads first.
fn of_first(weight: impl Fn(&Path) -> Result<u64, Fail>) -> Result<u64, Fail> {
    let package = place()?.join("pack/package");
    FIRST.iter().map(|name| weight(&package.join(name))).sum()
}

/// How many bytes Node makes of a file.
fn squeezed(how: &str, file: &Path) -> Result<u64, Fail> {
    let script = format!("console.log(require('zlib').{how}Sync(require('fs').readFileSync(process.argv[1])).length)");
    let told = Command::new("node").args(["-e", &script]).arg(file).stderr(Stdio::inherit()).output()?;
    Ok(String::from_utf8(told.stdout)?.trim().parse()?)
}

/// The measuring program, with the package as it ships.
pub(crate) fn bench() -> Result<Command, Fail> {
    programs()?;
    measure(&package(Profile::Release)?)
}

/// The measuring program, with a package and its peers in a folder of their own.
fn measure(tarball: &Path) -> Result<Command, Fail> {
    let (scripts, folder) = (root().join("tests/bench"), place()?.join("bench"));
    copy(&scripts.join("node"), &folder)?;
    std::fs::copy(scripts.join("rounds.mjs"), folder.join("rounds.mjs"))?;
    run(npm::npm(&["ci"]).current_dir(&folder))?;
    run(npm::npm(&["install", "--offline", "--no-save"]).arg(tarball).current_dir(&folder))?;
    let mut measure = Command::new("node");
    measure.arg(folder.join("bench.mjs")).arg(scripts.join("products.json")).env("HOPLINE_SANDBOX", sandbox()?);
    Ok(measure)
}

/// The size of the package, in bytes.
pub(crate) fn sizes() -> Result<Weighed, Fail> {
    let tarball = package(Profile::Release)?;
    let file = |name: &str| Ok::<_, Fail>(place()?.join("pack/package").join(name));
    Ok(vec![
        ("wasm", std::fs::metadata(file("core.wasm")?)?.len()),
        ("wasm, gzip", squeezed("gzip", &file("core.wasm")?)?),
        ("wasm, brotli", squeezed("brotliCompress", &file("core.wasm")?)?),
        ("first load", of_first(|path| Ok(std::fs::metadata(path)?.len()))?),
        ("its gzip", of_first(|path| squeezed("gzip", path))?),
        ("its brotli", of_first(|path| squeezed("brotliCompress", path))?),
        ("npm tarball", std::fs::metadata(tarball)?.len()),
    ])
}

/// Installs what the tests need.
fn tools() -> Result<(), Fail> {
    if stale(&host().join("package-lock.json"), &host().join("node_modules/.package-lock.json")) {
        run(npm::npm(&["ci"]).current_dir(host()))?;
    }
    Ok(())
}

/// Makes the package and installs it into an empty folder.
fn install(profile: Profile) -> Result<(), Fail> {
    let tarball = package(profile)?;
    let clean = clean()?;
    if clean.exists() {
        std::fs::remove_dir_all(&clean)?;
    }
    std::fs::create_dir_all(&clean)?;
    std::fs::write(clean.join("package.json"), "{ \"private\": true }\n")?;
    run(npm::npm(&["install", "--offline"]).arg(tarball).current_dir(&clean)).map(|_| ())
}

/// Puts the tests beside the package, and returns their folder.
fn installed_tests() -> Result<PathBuf, Fail> {
    let tests = clean()?.join("test");
    if tests.exists() {
        std::fs::remove_dir_all(&tests)?;
    }
    copy_tests(&tests)?;
    Ok(tests)
}

/// Copies the tests, with what they need to drive the core itself, which the package does not export.
pub(crate) fn copy_tests(to: &Path) -> Result<(), Fail> {
    copy(&host().join("test"), to)?;
    for (made, name) in [("core.js", "bindings.mjs"), ("node-core.js", "bindings-node.mjs")] {
        std::fs::copy(place()?.join("pack").join(made), to.join("lib").join(name))?;
    }
    Ok(())
}

/// `node --test` over all tests of a folder, so many files at once. Only those with some words in their names, where there are any.
pub(crate) fn tests_in(folder: &Path, at_once: u32, only: Option<&str>, environment: &[(&str, &Path)]) -> Result<Outcome, Fail> {
    let report = folder.with_file_name("junit.xml");
    let mut tests = Command::new("node");
    tests.arg("--test").arg(format!("--test-concurrency={at_once}"));
    tests.args(["--test-reporter=spec", "--test-reporter-destination=stdout"]);
    tests.args(["--test-reporter=junit", "--test-reporter-destination"]).arg(&report);
    tests.args(only.map(|words| format!("--test-name-pattern={words}")));
    tests.current_dir(folder).envs(environment.iter().copied());
    tests.env("HOPLINE_DOCS", root().join("core/docs"));
    tests.env("HOPLINE_VECTORS", vectors()?).env("HOPLINE_SANDBOX", sandbox()?).env("HOPLINE_PEERS", peers()?);
    // Node 20 takes files and folders, but no patterns.
    let mut files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    junit::counted(&report, tests.args(files))
}

/// A tool that npm has installed for the tests.
fn tool(name: &str) -> Result<Command, Fail> {
    let path = host().join("node_modules/.bin").join(name);
    if path.exists() { Ok(Command::new(path)) } else { Err(format!("npm did not install {name}").into()) }
}

fn host() -> PathBuf {
    root().join("tests/hosts/node")
}

/// Where all that is made for Node lies.
fn place() -> Result<PathBuf, Fail> {
    Ok(target()?.join("node"))
}

/// The folder that the package is installed into.
fn clean() -> Result<PathBuf, Fail> {
    Ok(place()?.join("clean"))
}

pub(crate) fn tarball() -> Result<PathBuf, Fail> {
    Ok(place()?.join(concat!("pack/hopline-", env!("CARGO_PKG_VERSION"), ".tgz")))
}

/// True if the product of a file is older than the file, or is missing.
fn stale(source: &Path, made: &Path) -> bool {
    let changed = |path: &Path| std::fs::metadata(path).and_then(|found| found.modified());
    match (changed(source), changed(made)) {
        (Ok(source), Ok(made)) => source > made,
        _ => true,
    }
}

/// Copies a folder, but not what somebody installed in it.
pub(crate) fn copy(from: &Path, to: &Path) -> Result<(), Fail> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_name() == "node_modules" {
            continue;
        }
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if entry.file_type()?.is_dir() {
            copy(&from, &to)?;
        } else {
            std::fs::copy(from, to)?;
        }
    }
    Ok(())
}
