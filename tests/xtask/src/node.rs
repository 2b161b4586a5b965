//! The npm package: built, packed, installed into an empty folder, and tested there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{Profile, bindgen, built, cargo, is_ci, root, run, target};
use crate::test::{Outcome, Report};
use crate::{Fail, paths, wasm};

const TARGET: &str = "wasm32-unknown-unknown";

/// Everything that is checked of the package.
pub(crate) fn test(report: &mut Report) {
    report.check("the npm package", || match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => install().map(|_| Outcome::ONE),
    });
    if matches!(missing(), Ok(None)) {
        report.check("the npm package names no folder of this machine", || paths::none_in(&place()?.join("pack/package")));
        report.check("publint", || run(tool("publint")?.arg(place()?.join("pack/package"))));
        report.check("are the types wrong?", || run(tool("attw")?.arg(tarball()?)));
        report.check("tsc --strict in ESM and CJS", || {
            run(tool("tsc")?.arg("--project").arg(clean()?.join("test/types/tsconfig.json")))?;
            run(tool("tsc")?.arg("--project").arg(clean()?.join("test/types/bundler.json")))
        });
        report.check("node: vectors, real HTTP, crashes, input", || {
            tests_in(&clean()?.join("test"), &[("HOPLINE_TOOLS", &host().join("node_modules"))])
        });
    }
}

/// The story of the Rust demo through the package.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    install()?;
    let mut demo = Command::new("node");
    demo.arg(host().join("demo.mjs")).args(arguments).env("HOPLINE_PACKAGE", clean()?).env("HOPLINE_SANDBOX", built("hopline-sandbox")?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the package and returns its tarball.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    if let Outcome::NotRun(why) = wasm::check()? {
        return Err(why.into());
    }
    run(paths::leave_out(&mut cargo(&["build", "--package", "hopline-wasm", "--profile", profile.name(), "--target", TARGET]))?)?;
    let generated = root().join("bindings-wasm/js/gen");
    std::fs::create_dir_all(&generated)?;
    let library = target()?.join(TARGET).join(profile.name()).join("hopline_wasm.wasm");
    bindgen(&[Path::new("typescript"), &generated])?;
    bindgen(&[Path::new("wasm"), &library, &generated])?;
    if stale(&host().join("package-lock.json"), &host().join("node_modules/.package-lock.json")) {
        run(npm(&["ci"]).current_dir(host()))?;
    }
    run(Command::new("node").arg(host().join("pack.mjs")).arg(place()?.join("pack")))?;
    tarball()
}

/// What the package weighs, in bytes.
pub(crate) fn sizes() -> Result<Vec<(&'static str, u64)>, Fail> {
    let tarball = package(Profile::Release)?;
    let file = |name: &str| Ok::<_, Fail>(place()?.join("pack/package").join(name));
    let squeezed = |how: &str, name: &str| -> Result<u64, Fail> {
        let script = format!("console.log(require('zlib').{how}Sync(require('fs').readFileSync(process.argv[1])).length)");
        let told = Command::new("node").args(["-e", &script]).arg(file(name)?).stderr(Stdio::inherit()).output()?;
        Ok(String::from_utf8(told.stdout)?.trim().parse()?)
    };
    Ok(vec![
        ("wasm", std::fs::metadata(file("core.wasm")?)?.len()),
        ("wasm, gzip", squeezed("gzip", "core.wasm")?),
        ("wasm, brotli", squeezed("brotliCompress", "core.wasm")?),
        ("web.mjs", std::fs::metadata(file("web.mjs")?)?.len()),
        ("its gzip", squeezed("gzip", "web.mjs")?),
        ("its brotli", squeezed("brotliCompress", "web.mjs")?),
        ("npm tarball", std::fs::metadata(tarball)?.len()),
    ])
}

/// Makes the package and installs it into an empty folder, with the tests beside it.
fn install() -> Result<(), Fail> {
    let tarball = package(Profile::Ci)?;
    let clean = clean()?;
    if clean.exists() {
        std::fs::remove_dir_all(&clean)?;
    }
    std::fs::create_dir_all(&clean)?;
    std::fs::write(clean.join("package.json"), "{ \"private\": true }\n")?;
    run(npm(&["install", "--offline"]).arg(tarball).current_dir(&clean))?;
    copy(&host().join("test"), &clean.join("test"))
}

/// `node --test` over all tests of a folder, which it counts.
pub(crate) fn tests_in(folder: &Path, environment: &[(&str, &Path)]) -> Result<Outcome, Fail> {
    let vectors = std::env::var_os("HOPLINE_VECTORS").map_or(root().join("tests/vectors"), PathBuf::from);
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-reporter=spec"]).current_dir(folder).stdout(Stdio::piped()).envs(environment.iter().copied());
    tests.env("HOPLINE_VECTORS", std::path::absolute(vectors)?).env("HOPLINE_SANDBOX", built("hopline-sandbox")?);
    // Node 20 takes files and folders, but no patterns.
    let mut files = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|path| path.to_string_lossy().ends_with(".test.mjs"));
    files.sort();
    tests.args(files);
    let told = tests.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&told.stdout);
    print!("{text}");
    let count =
        |word: &str| text.lines().rev().find_map(|line| line.trim_start_matches("ℹ ").strip_prefix(word)?.trim().parse::<u32>().ok());
    match (count("pass "), count("fail "), count("skipped ")) {
        (Some(passed), Some(failed), Some(ignored)) if told.status.success() || failed > 0 => {
            Ok(Outcome::Counted { passed, failed, ignored })
        }
        _ => Err(format!("it ended with {}", told.status).into()),
    }
}

/// What is missing to do any of this, which is a failure where all was to be checked.
pub(crate) fn missing() -> Result<Option<String>, Fail> {
    let version = Command::new("node").arg("--version").output().ok().and_then(|told| String::from_utf8(told.stdout).ok());
    let major = version.as_deref().and_then(|told| told.trim().strip_prefix('v')?.split('.').next()?.parse::<u32>().ok());
    let why = match major {
        Some(20..) if npm(&["--version"]).stdout(Stdio::null()).status().is_ok() => return Ok(None),
        Some(20..) => "npm is not installed".to_owned(),
        Some(old) => format!("Node {old} is too old; Node 20 or later is needed"),
        None => "Node is not installed; Node 20 or later is needed".to_owned(),
    };
    if is_ci() { Err(why.into()) } else { Ok(Some(why)) }
}

pub(crate) fn npm(arguments: &[&str]) -> Command {
    let mut command = Command::new(if cfg!(windows) { "npm.cmd" } else { "npm" });
    command.args(arguments);
    if arguments.len() > 1 || arguments == ["ci"] {
        command.args(["--no-audit", "--no-fund", "--loglevel=error"]);
    }
    command
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

fn tarball() -> Result<PathBuf, Fail> {
    Ok(place()?.join(concat!("pack/hopline-", env!("CARGO_PKG_VERSION"), ".tgz")))
}

/// Whether what was made of a file is older than the file, or is not there.
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
