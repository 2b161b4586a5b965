//! The wheel: built, installed into a clean environment, and tested there.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::cargo::{Profile, bindgen, built, is_ci, root, run, target};
use crate::test::{Outcome, Report};
use crate::{Fail, paths};

/// Everything that is checked of the package.
pub(crate) fn test(report: &mut Report) {
    report.check("the wheel", || match missing()? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => install().map(|()| Outcome::ONE),
    });
    if matches!(missing(), Ok(None)) {
        report.check("the wheel names no folder of this machine", || paths::none_in(&unpacked()?));
        report.check("pip builds the package from git", from_git);
        report.check("mypy --strict on the package and on a program", || {
            run(python()?.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(place()?.join("mypy")).args(["-p", "hopline"]))?;
            run(python()?.args(["-m", "mypy", "--strict", "--cache-dir"]).arg(place()?.join("mypy")).arg(host().join("sample.py")))
        });
        report.check("python: vectors, real HTTP, crashes, input", python_tests);
    }
}

/// The story of the Rust demo through the package.
pub(crate) fn demo(arguments: &[String]) -> Result<ExitCode, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    install()?;
    let mut demo = python()?;
    demo.arg(host().join("demo.py")).args(arguments).env("HOPLINE_SANDBOX", built("hopline-sandbox")?);
    Ok(if demo.status()?.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Makes the wheel and returns it.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    if let Some(why) = missing()? {
        return Err(why.into());
    }
    environment(&host().join("requirements.txt"), &place()?.join("venv"))?;
    let sources = root().join("bindings-python/python/hopline");
    bindgen(&[Path::new("python"), &sources])?;
    let wheels = place()?.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let mut maturin = python()?;
    maturin.args(["-m", "maturin", "build", "--profile", profile.name(), "--locked", "--quiet", "--strip", "--manifest-path"]);
    maturin.arg(root().join("bindings-python/Cargo.toml")).arg("--out").arg(&wheels).env("CARGO_TARGET_DIR", target()?);
    run(paths::leave_out(&mut maturin)?)?;
    let mut made = std::fs::read_dir(&wheels)?;
    Ok(made.next().ok_or("maturin made no wheel")??.path())
}

/// The wheel's files.
fn unpacked() -> Result<PathBuf, Fail> {
    let unpacked = place()?.join("unpacked");
    if unpacked.exists() {
        std::fs::remove_dir_all(&unpacked)?;
    }
    let wheel = std::fs::read_dir(place()?.join("wheels"))?.next().ok_or("there is no wheel")??.path();
    run(python()?.args(["-m", "zipfile", "-e"]).arg(wheel).arg(&unpacked))?;
    Ok(unpacked)
}

/// What `pip install git+…` does, for the last commit: nothing is printed beforehand. That the package can be imported is the test.
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
    // What is tested is that a build finds all that it takes.
    run(pip.env("MATURIN_PEP517_ARGS", format!("--profile {}", Profile::Ci.name())))?;
    run(python()?.args(["-c", "import hopline; hopline.AgentClient(base_url='https://api.example/v1').close()"]).env("PYTHONPATH", &made))
}

/// What the package weighs, in bytes.
pub(crate) fn sizes() -> Result<Vec<(&'static str, u64)>, Fail> {
    Ok(vec![("wheel", std::fs::metadata(package(Profile::Release)?)?.len())])
}

/// Makes the wheel and installs it beside what the tests need.
fn install() -> Result<(), Fail> {
    let wheel = package(Profile::Ci)?;
    run(python()?.args(["-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--force-reinstall"]).arg(wheel)).map(|_| ())
}

/// pytest over all tests, which it counts. They lie in the tree; the package does not.
fn python_tests() -> Result<Outcome, Fail> {
    let vectors = std::env::var_os("HOPLINE_VECTORS").map_or(root().join("tests/vectors"), PathBuf::from);
    let mut tests = python()?;
    tests.args(["-m", "pytest", "-p", "no:cacheprovider", "--tb=short", "--quiet"]).arg(host()).current_dir(place()?);
    tests.env("HOPLINE_VECTORS", std::path::absolute(vectors)?).env("HOPLINE_SANDBOX", built("hopline-sandbox")?);
    let told = tests.stdout(Stdio::piped()).stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&told.stdout);
    print!("{text}");
    let summary = text.lines().rev().find(|line| line.contains(" in ")).unwrap_or_default().replace('=', " ");
    let count = |word: &str| counted(&summary, word);
    let (passed, failed) = (count("passed"), count("failed") + count("error") + count("errors"));
    if !told.status.success() && failed == 0 || passed == 0 {
        return Err(format!("it ended with {}", told.status).into());
    }
    Ok(Outcome::Counted { passed, failed, ignored: count("skipped") })
}

/// The number before a word of a line such as `3 failed, 512 passed, 1 skipped in 70.12s`.
fn counted(summary: &str, word: &str) -> u32 {
    let words: Vec<&str> = summary.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let mut pairs = words.windows(2);
    pairs
        .find_map(|pair| {
            if let [number, known] = pair
                && *known == word
            {
                number.parse().ok()
            } else {
                None
            }
        })
        .unwrap_or(0)
}

/// What is missing to do any of this, which is a failure where all was to be checked.
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

/// Python of the tests' environment. It leaves nothing in the tree.
fn python() -> Result<Command, Fail> {
    let mut command = Command::new(program(&place()?.join("venv")));
    command.env("PYTHONDONTWRITEBYTECODE", "1").env_remove("PYTHONPATH");
    Ok(command)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pytests_summary_is_counted() {
        let line = "3 failed, 512 passed, 1 skipped, 2 errors in 70.12s (0:01:10)";
        assert_eq!(["failed", "passed", "skipped", "errors", "error"].map(|word| counted(line, word)), [3, 512, 1, 2, 0]);
    }
}
