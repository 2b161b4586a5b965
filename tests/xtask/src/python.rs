//! The wheel: built, installed into a clean environment, and tested there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{bindgen, is_ci, peers, programs, root, run, sandbox, target, vectors};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::debian::{CHROMEDRIVER, NGINX, PGBOUNCER, POSTGRES, REDIS};
use crate::profile::Profile;
use crate::{Fail, junit, notices, npm, paths, sandbox as sandbox_packages, targets};

/// The sources of the wheel, and the inputs of its tests.
const PACKAGE: &[&str] = &["core", "bindings-python", "tests/bindgen"];
const TESTS: &[&str] = &[
    "tests/hosts/python",
    "tests/store",
    "tests/vectors",
    "bindings-python/README.md",
    "core/docs/programs/python",
    "core/docs/programs/fleet",
    "core/docs/command.md",
    "core/docs/examples.md",
    "core/docs/grafana.json",
    "core/docs/loopback-port.md",
    "core/docs/watching.md",
    "../shared/external",
];

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Others, "python: what the tests need", |_| match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tools().map(|()| Outcome::ONE),
    })
    .reads(&["tests/hosts/python/requirements.txt"])
    .makes(&["python/venv/requirements.txt"]),
    Check::new(Lane::Python, "python: the wheel", |profile| install(profile).map(|()| Outcome::ONE))
        .needs(&[PROGRAMS, "python: what the tests need"])
        .reads(PACKAGE)
        .makes(&["python/wheels"]),
    Check::new(Lane::Python, "python: the wheel names no folder of this machine", |_| paths::none_in(&unpacked()?))
        .needs(&["python: the wheel"]),
    Check::new(Lane::Python, "python: mypy --strict on the package and on programs", |_| mypy()).needs(&["python: the wheel"]).reads(TESTS),
    Check::new(Lane::Python, "python: pyright on the package, and strict on programs", |_| pyright())
        .needs(&["python: the wheel"])
        .reads(TESTS),
    Check::new(Lane::Python, "python: vectors, real HTTP, crashes, input", |_| tests(None))
        .needs(&[NGINX, POSTGRES, PGBOUNCER, REDIS, CHROMEDRIVER, "python: the wheel"])
        .reads(TESTS),
    Check::new(Lane::Python, "python: what is measured comes to its result", |_| run(measure(&wheel()?)?.arg("--once")))
        .needs(&["python: the wheel"])
        .reads(&["tests/bench/python", "tests/bench/products.json"]),
    Check::new(Lane::Python, "python: what is measured of a database comes to its result", |_| run(database()?.arg("--once")))
        .needs(&[POSTGRES])
        .reads(&["tests/bench/python/database.py", "bindings-python/python/hopline/postgres.sql"]),
    Check::new(Lane::Python, "python: the measured crawlers and relays come to their result", |_| {
        ["crawlers", "relays"].iter().try_for_each(|what| {
            let bench = root().join("tests/bench/crawlers/bench.py");
            run(python()?.arg(bench).args([what, "--once"]).env("HOPLINE_SANDBOX", sandbox()?)).map(|_| ())
        })?;
        Ok(Outcome::ONE)
    })
    .needs(&["python: the wheel"])
    .reads(&["tests/bench/crawlers", "tests/hosts/python/sandbox.py"]),
    Check::new(Lane::Python, "python: pip builds the package from git", |_| from_git()).needs(&["python: the wheel"]).reads(PACKAGE),
];

/// The environment of the tests.
fn tools() -> Result<(), Fail> {
    environment(&host().join("requirements.txt"), &place()?.join("venv")).map(|_| ())
}

fn mypy() -> Result<Outcome, Fail> {
    let programs = typed_programs()?;
    for what in [["-p", "hopline"], ["--", "."]] {
        let mut mypy = python()?;
        run(mypy.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(place()?.join("mypy")).args(what).current_dir(&programs))?;
    }
    Ok(Outcome::ONE)
}

fn pyright() -> Result<Outcome, Fail> {
    if let Some(why) = npm::missing()? {
        return Ok(Outcome::NotRun(why));
    }
    let tool = place()?.join("pyright");
    std::fs::create_dir_all(&tool)?;
    for name in ["package.json", "package-lock.json"] {
        std::fs::copy(host().join(name), tool.join(name))?;
    }
    run(npm::npm(&["ci"]).current_dir(&tool))?;
    unpacked()?;
    let programs = typed_programs()?;
    let config = r#"{ "include": ["*.py", "../unpacked/hopline"], "strict": ["*.py"], "pythonVersion": "3.11" }"#;
    std::fs::write(programs.join("pyrightconfig.json"), config)?;
    let pyright = tool.join("node_modules/pyright/index.js");
    run(Command::new("node").arg(pyright).arg("--pythonpath").arg(program(&place()?.join("venv"))).current_dir(programs))
}

/// The sample and the programs of the README and of the site's pages, in a folder of their own.
fn typed_programs() -> Result<PathBuf, Fail> {
    let folder = place()?.join("types");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(host().join("sample.py"), folder.join("sample.py"))?;
    let readme = std::fs::read_to_string(root().join("bindings-python/README.md"))?;
    let programs: Vec<_> = readme.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    if programs.is_empty() {
        return Err("the README has no programs".into());
    }
    for (number, program) in programs.iter().enumerate() {
        std::fs::write(folder.join(format!("readme_{number}.py")), program)?;
    }
    for entry in std::fs::read_dir(root().join("core/docs/programs/python"))? {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name()))?;
        std::fs::copy(path, folder.join(name))?;
    }
    Ok(folder)
}

/// The story of the Rust demo through the package.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    install(Profile::Ci)?;
    let mut demo = python()?;
    demo.arg(host().join("demo.py")).args(arguments).env("HOPLINE_SANDBOX", sandbox()?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the wheel and returns it.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    tools()?;
    print_sources()?;
    let wheels = place()?.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let mut maturin = python()?;
    maturin.args(["-m", "maturin", "build", "--profile", profile.name(), "--locked", "--quiet", "--strip", "--manifest-path"]);
    maturin.arg(root().join("bindings-python/Cargo.toml")).arg("--out").arg(&wheels).env("CARGO_TARGET_DIR", target()?);
    run(paths::leave_out(&mut maturin)?)?;
    wheel()
}

/// Prints what the package has beside what is written by hand.
fn print_sources() -> Result<(), Fail> {
    let sources = root().join("bindings-python/python/hopline");
    bindgen(&[Path::new("python"), &sources])?;
    notices::write("hopline-python", &sources)
}

/// The systems that wheels are released for, with the tags of their wheels. The first letters of a target are its processor.
const RELEASED: [(&str, &str); 4] = [
    ("x86_64-unknown-linux-gnu", "manylinux2014"),
    ("aarch64-unknown-linux-gnu", "manylinux2014"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
    ("aarch64-unknown-linux-musl", "musllinux_1_2"),
];

/// Makes the wheels of a release. zig links each with the oldest C library of its tag. The one for this system is imported.
pub(crate) fn release() -> Result<Vec<PathBuf>, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    print_sources()?;
    let out = place()?.join("released");
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    for (target, tag) in RELEASED {
        if let Some(why) = targets::missing(target)? {
            return Err(why.into());
        }
        let mut maturin = sandbox_packages::maturin(target, &[tag], Profile::Release)?;
        run(maturin.arg("--out").arg(&out).current_dir(root().join("bindings-python")))?;
    }
    let wheels = std::fs::read_dir(&out)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    let own = format!("manylinux2014_{}.", std::env::consts::ARCH);
    if let Some(wheel) = wheels.iter().find(|wheel| wheel.to_string_lossy().contains(&own)) {
        let into = place()?.join("released-here");
        let quiet = ["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--upgrade", "--target"];
        run(Command::new(interpreter()).args(quiet).arg(&into).arg(wheel))?;
        let import = "import hopline; hopline.AgentClient(base_url='https://api.example/v1').close(); print(hopline.__file__)";
        run(Command::new(interpreter()).args(["-c", import]).env("PYTHONPATH", &into))?;
    }
    Ok(wheels)
}

/// The wheel that was made.
fn wheel() -> Result<PathBuf, Fail> {
    Ok(std::fs::read_dir(place()?.join("wheels"))?.next().ok_or("there is no wheel")??.path())
}

/// The measuring program, with the wheel as it ships.
pub(crate) fn bench() -> Result<Command, Fail> {
    programs()?;
    measure(&package(Profile::Release)?)
}

/// The program that measures a PostgreSQL server; it needs no package.
pub(crate) fn database() -> Result<Command, Fail> {
    let mut measure = Command::new(interpreter());
    measure.arg(root().join("tests/bench/python/database.py")).env("PYTHONDONTWRITEBYTECODE", "1");
    Ok(measure)
}

/// The measuring program, with a wheel and its peers in an environment of their own.
fn measure(wheel: &Path) -> Result<Command, Fail> {
    measure_in("python", &place()?.join("bench"), wheel)
}

/// Crawlers over a pool, beside the same with a list of proxies.
pub(crate) fn crawlers() -> Result<Command, Fail> {
    measure_crawls("crawlers")
}

/// The loopback port, beside other relays.
pub(crate) fn relays() -> Result<Command, Fail> {
    measure_crawls("relays")
}

fn measure_crawls(what: &str) -> Result<Command, Fail> {
    programs()?;
    let (scripts, modules) = (root().join("tests/bench/crawlers"), place()?.join("relays"));
    std::fs::create_dir_all(&modules)?;
    for name in ["package.json", "package-lock.json", "relay.mjs"] {
        std::fs::copy(scripts.join(name), modules.join(name))?;
    }
    run(npm::npm(&["ci"]).current_dir(&modules))?;
    let mut measure = measure_in("crawlers", &place()?.join("bench-crawlers"), &package(Profile::Release)?)?;
    measure.arg(what).env("HOPLINE_SANDBOX", sandbox()?).env("HOPLINE_BENCH_NODE", modules);
    Ok(measure)
}

/// The program of a folder below `tests/bench`, with a wheel and its peers in an environment of their own.
fn measure_in(folder: &str, venv: &Path, wheel: &Path) -> Result<Command, Fail> {
    let scripts = root().join("tests/bench").join(folder);
    let python = environment(&scripts.join("requirements.txt"), venv)?;
    let quiet = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--force-reinstall"];
    run(Command::new(&python).args(quiet).arg(wheel))?;
    let mut measure = Command::new(python);
    measure.arg(scripts.join("bench.py")).env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
    Ok(measure)
}

/// The wheel's files.
fn unpacked() -> Result<PathBuf, Fail> {
    let unpacked = place()?.join("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    run(python()?.args(["-m", "zipfile", "-e"]).arg(wheel()?).arg(&unpacked))?;
    Ok(unpacked)
}

/// Does the same as `pip install git+…` for the last commit: nothing is printed beforehand. The test is that the package can be imported.
fn from_git() -> Result<Outcome, Fail> {
    let made = place()?.join("from-git");
    if made.exists() {
        std::fs::remove_dir_all(&made)?;
    }
    let mut pip = python()?;
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-build-isolation", "--no-deps", "--target"]);
    pip.arg(&made).arg(format!("git+file://{}#subdirectory=bindings-python", root().display()));
    // Without an environment of its own pip looks for the program `maturin` where programs are.
    let places = std::env::var_os("PATH").unwrap_or_default();
    let venv = program(&place()?.join("venv")).parent().map(Path::to_owned);
    let places = std::env::join_paths(venv.into_iter().chain(std::env::split_paths(&places)))?;
    pip.env("CARGO_TARGET_DIR", target()?).env("PATH", places);
    // The test is that a build finds all its inputs.
    run(paths::leave_out(pip.env("MATURIN_PEP517_ARGS", format!("--profile {}", Profile::Ci.name())))?)?;
    run(python()?.args(["-c", "import hopline; hopline.AgentClient(base_url='https://api.example/v1').close()"]).env("PYTHONPATH", &made))
}

/// The size of the package, in bytes.
pub(crate) fn sizes() -> Result<crate::weight::Weighed, Fail> {
    Ok(vec![("wheel", std::fs::metadata(package(Profile::Release)?)?.len())])
}

/// Makes the wheel and installs it beside what the tests need.
fn install(profile: Profile) -> Result<(), Fail> {
    let wheel = package(profile)?;
    run(python()?.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall"]).arg(wheel)).map(|_| ())
}

/// pytest over all tests, as many at once as wait well side by side. They lie in the tree; the package does not.
/// Only those whose names have some words in them, where there are any.
pub(crate) fn tests(only: Option<&str>) -> Result<Outcome, Fail> {
    let report = place()?.join("junit.xml");
    let mut tests = python()?;
    tests.args(["-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "--quiet", "--numprocesses=4", "--junit-xml"]).arg(&report);
    tests.args(only.iter().flat_map(|words| ["-k", words]));
    tests
        .arg(host())
        .current_dir(place()?)
        .env("HOPLINE_VECTORS", vectors()?)
        .env("HOPLINE_SANDBOX", sandbox()?)
        .env("HOPLINE_PEERS", peers()?);
    junit::counted(&report, &mut tests)
}

/// The missing tool, if any, which is a failure where everything is to be checked.
pub(crate) fn missing() -> Result<Option<String>, Fail> {
    let wanted = "import sys, venv; sys.exit(sys.version_info < (3, 11))";
    let why = match Command::new(interpreter()).args(["-c", wanted]).stderr(Stdio::null()).status() {
        Ok(status) if status.success() => return Ok(None),
        Ok(_) => "Python 3.11 or later with `venv` is needed, and this one is older or has none",
        Err(_) => "Python is not installed; Python 3.11 or later is needed",
    };
    if is_ci() { Err(why.into()) } else { Ok(Some(why.to_owned())) }
}

/// Python as this machine has it: `PYTHON` names another.
fn interpreter() -> std::ffi::OsString {
    std::env::var_os("PYTHON").unwrap_or_else(|| if cfg!(windows) { "python" } else { "python3" }.into())
}

/// An environment, made anew when what it is to hold has changed, and its Python.
pub(crate) fn environment(wanted: &Path, venv: &Path) -> Result<PathBuf, Fail> {
    let (made, python) = (venv.join("requirements.txt"), program(venv));
    let text = std::fs::read_to_string(wanted)?;
    if std::fs::read_to_string(&made).is_ok_and(|there| there == text) {
        return Ok(python);
    }
    run(Command::new(interpreter()).args(["-m", "venv", "--clear"]).arg(venv))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(wanted))?;
    std::fs::write(made, text)?;
    Ok(python)
}

fn program(venv: &Path) -> PathBuf {
    venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// Returns Python of the tests' environment, which leaves nothing in the tree.
fn python() -> Result<Command, Fail> {
    let mut command = Command::new(program(&place()?.join("venv")));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
    Ok(command)
}

/// Python with the wheel, where somebody has installed it.
pub(crate) fn with_wheel() -> Result<Option<PathBuf>, Fail> {
    let python = program(&place()?.join("venv"));
    let has_wheel = python.exists() && Command::new(&python).args(["-c", "import hopline"]).stderr(Stdio::null()).status()?.success();
    Ok(has_wheel.then_some(python))
}

fn host() -> PathBuf {
    root().join("tests/hosts/python")
}

/// Where all that is made for Python lies.
fn place() -> Result<PathBuf, Fail> {
    let place = target()?.join("python");
    std::fs::create_dir_all(&place)?;
    Ok(place)
}
