//! The sandbox as packages that need no Rust: a wheel and an npm package for each system, both with the same program, linked statically.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::cargo::{printed, root, run, target};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::profile::Profile;
use crate::{Fail, node, npm, paths, python, targets};

/// A system that the program is built for. With musl linked statically, it needs no C library there.
struct System {
    /// The architecture, as Rust calls it.
    arch: &'static str,
    /// The target of the compiler.
    target: &'static str,
    /// The system, as npm calls it.
    npm: &'static str,
}

const SYSTEMS: [System; 2] = [
    System { arch: "x86_64", target: "x86_64-unknown-linux-musl", npm: "linux-x64" },
    System { arch: "aarch64", target: "aarch64-unknown-linux-musl", npm: "linux-arm64" },
];

/// The tags of the wheels. Both are true: the program needs no C library, and no kernel that is newer than those of the oldest.
const TAGS: [&str; 2] = ["manylinux2014", "musllinux_1_1"];

const NAME: &str = "hopline-sandbox";
const TOOLS: &str = "sandbox: what its packages are built with";
const MADE: &str = "sandbox: the wheels and npm packages";

pub(crate) const CHECKS: &[Check] = &[
    Check::new(Lane::Fetched, TOOLS, 600, |profile| match missing(profile)? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tools().map(|_| Outcome::ONE),
    })
    .reads(&["tests/sandbox/python/requirements.txt"])
    .makes(&["sandbox/venv/requirements.txt"]),
    Check::new(Lane::Scripts, MADE, 1200, |profile| package(profile).map(|_| Outcome::ONE))
        .needs(&[TOOLS])
        .reads(&["core", "tests/bindgen", "tests/sandbox"])
        .makes(&["sandbox/wheels", "sandbox/npm"]),
    Check::new(Lane::Scripts, "sandbox: its packages name no folder of this machine", 60, |_| paths::none_in(&place()?.join("npm")))
        .needs(&[MADE]),
    Check::new(Lane::Scripts, "sandbox: what Python's README says to type fetches a page, without Rust", 300, |_| first_python())
        .needs(&[PROGRAMS, MADE, "python: the wheel"])
        .reads(&["bindings-python/README.md"]),
    Check::new(Lane::Scripts, "sandbox: what JavaScript's README says to type fetches a page, without Rust", 300, |_| first_node())
        .needs(&[PROGRAMS, MADE, node::MADE])
        .reads(&["bindings-wasm/README.md"]),
];

/// The systems that packages are made for: where they are only tested, this one.
fn systems(profile: Profile) -> impl Iterator<Item = &'static System> {
    SYSTEMS.iter().filter(move |system| profile == Profile::Release || system.arch == std::env::consts::ARCH)
}

/// The reason why the packages can't be made, which is a failure where everything is to be checked.
fn missing(profile: Profile) -> Result<Option<String>, Fail> {
    if !cfg!(target_os = "linux") {
        return Ok(Some("the packages of the sandbox are made on Linux".to_owned()));
    }
    let mut why = python::missing()?.or(npm::missing()?);
    for system in systems(profile) {
        why = why.or(targets::missing(system.target)?);
    }
    Ok(why)
}

/// The environment with the tools, and its Python.
fn tools() -> Result<PathBuf, Fail> {
    python::environment(&folder().join("python/requirements.txt"), &place()?.join("venv"))
}

/// Makes the wheels and the npm packages, and returns the folder with both.
pub(crate) fn package(profile: Profile) -> Result<PathBuf, Fail> {
    if let Some(why) = missing(profile)? {
        return Err(why.into());
    }
    let (python, wheels) = (tools()?, place()?.join("wheels"));
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let mut pack = Command::new("node");
    pack.arg(folder().join("npm/pack.mjs")).arg(place()?.join("npm")).arg(env!("CARGO_PKG_VERSION"));
    for system in systems(profile) {
        let mut maturin = Command::new(&python);
        maturin.args(["-m", "maturin", "build", "--profile", profile.name(), "--locked", "--quiet", "--strip", "--zig"]);
        maturin.args(["--target", system.target, "--compatibility"]).args(TAGS);
        maturin.arg("--out").arg(&wheels).current_dir(folder().join("python")).env("CARGO_TARGET_DIR", target()?);
        // zig is looked for by the Python that is called so.
        run(paths::leave_out(maturin.env("PATH", before_path(&[python.parent().unwrap_or(Path::new("."))])?))?)?;
        let program = target()?.join(system.target).join(profile.name()).join(NAME);
        pack.arg(format!("{}={}", system.npm, program.display()));
    }
    run(&mut pack)?;
    place()
}

/// The commands of Python's README, in a shell of its own. The packages are those that were made.
fn first_python() -> Result<Outcome, Fail> {
    let readme = std::fs::read_to_string(root().join("bindings-python/README.md"))?;
    let clean = clean("first-python")?;
    let programs: Vec<&str> = readme.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let pool = programs.iter().find(|program| program.contains("open_pool")).ok_or("the README has no program with a pool")?;
    std::fs::write(clean.join("first.py"), programs[0])?;
    std::fs::write(clean.join("pool.py"), pool)?;
    let wheels = [only_file(&target()?.join("python/wheels"), "")?, only_file(&place()?.join("wheels"), std::env::consts::ARCH)?];
    let script = commands(&readme)?.replace("install hopline hopline-sandbox", &format!("install -q {}", wheels.join(" ")));
    let script = format!("python3 -m venv venv\nPATH=\"$PWD/venv/bin:$PATH\"\n{script}");
    fetches_a_page(&clean, &script, &["200 keep", "dynamic-world"])
}

/// The same for JavaScript's.
fn first_node() -> Result<Outcome, Fail> {
    let readme = std::fs::read_to_string(root().join("bindings-wasm/README.md"))?;
    let clean = clean("first-node")?;
    for program in readme.split("```js\n// ").skip(1).filter_map(|rest| rest.split("```").next()) {
        let (name, text) = program.split_once('\n').ok_or("a program of the README is empty")?;
        std::fs::write(clean.join(name), text)?;
    }
    let made = place()?.join("npm");
    let system = SYSTEMS.iter().find(|system| system.arch == std::env::consts::ARCH).ok_or("there is no package for this system")?;
    let version = env!("CARGO_PKG_VERSION");
    let tarballs =
        [node::tarball()?, made.join(format!("{NAME}-{version}.tgz")), made.join(format!("{NAME}-{}-{version}.tgz", system.npm))];
    let tarballs = tarballs.map(|path| path.display().to_string()).join(" ");
    let script = commands(&readme)?.replace("install hopline hopline-sandbox", &format!("install --no-audit --no-fund {tarballs}"));
    fetches_a_page(&clean, &script, &["advice: 'keep'", "dynamic-world"])
}

/// The commands of a README that begin with the sandbox: the lines that are indented, around the one that starts it.
fn commands(readme: &str) -> Result<String, Fail> {
    let block = readme.split("\n\n").find(|block| block.starts_with("    ") && block.contains("hopline-sandbox --shell"));
    let block = block.ok_or("the README does not say how to start the sandbox")?;
    Ok(block.lines().map(str::trim_start).collect::<Vec<_>>().join("\n"))
}

/// Types commands into a shell that knows no Rust, and expects some words of their output.
fn fetches_a_page(folder: &Path, script: &str, words: &[&str]) -> Result<Outcome, Fail> {
    let bare = folder.join("bin");
    std::fs::create_dir_all(&bare)?;
    let mut shell = Command::new("sh");
    let script = format!(
        "if command -v cargo || command -v rustc; then echo 'Rust is there'; exit 1; fi\n\
         trap '[ -z \"$HOPLINE_SANDBOX_PID\" ] || kill \"$HOPLINE_SANDBOX_PID\"' EXIT\n{script}\n"
    );
    shell.args(["-ec", &script]).current_dir(folder).env("PATH", without_rust(&bare)?).env_remove("PYTHONPATH");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("HOPLINE_")) {
        shell.env_remove(name);
    }
    let begun = Instant::now();
    let (status, text) = printed(&mut shell)?;
    println!("from an empty folder to a page in {:.1} s", begun.elapsed().as_secs_f32());
    match words.iter().find(|word| !text.contains(**word)) {
        _ if !status.success() => Err(format!("the commands ended with {status}").into()),
        Some(word) => Err(format!("the commands did not print `{word}`").into()),
        None => Ok(Outcome::ONE),
    }
}

/// A PATH with all programs but Rust's: the folders that have one of those are replaced by one with links to what is needed of them.
fn without_rust(links: &Path) -> Result<std::ffi::OsString, Fail> {
    const NEEDED: [&str; 6] = ["sh", "env", "python3", "node", "npm", "npx"];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let has_rust = |folder: &PathBuf| ["cargo", "rustc", "rustup"].iter().any(|name| folder.join(name).exists());
    let (rusty, mut others): (Vec<_>, Vec<_>) = std::env::split_paths(&path).partition(has_rust);
    for (folder, name) in rusty.iter().flat_map(|folder| NEEDED.map(|name| (folder, name))) {
        let (program, link) = (folder.join(name), links.join(name));
        if program.exists() && !link.exists() {
            #[cfg(unix)]
            std::os::unix::fs::symlink(program, link)?;
        }
    }
    others.push(links.to_owned());
    Ok(std::env::join_paths(others)?)
}

/// PATH with folders in front.
fn before_path(folders: &[&Path]) -> Result<std::ffi::OsString, Fail> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    Ok(std::env::join_paths(folders.iter().map(|folder| folder.to_path_buf()).chain(std::env::split_paths(&path)))?)
}

/// The path of the one file in a folder with a text in its name.
fn only_file(folder: &Path, text: &str) -> Result<String, Fail> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.to_string_lossy().contains(text) {
            return Ok(path.display().to_string());
        }
    }
    Err(format!("{} has no file with `{text}` in its name", folder.display()).into())
}

/// An empty folder.
fn clean(name: &str) -> Result<PathBuf, Fail> {
    let folder = place()?.join(name);
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    std::fs::create_dir_all(&folder)?;
    Ok(folder)
}

fn folder() -> PathBuf {
    root().join("tests/sandbox")
}

/// The folder of all that is made for the sandbox.
fn place() -> Result<PathBuf, Fail> {
    let place = target()?.join("sandbox");
    std::fs::create_dir_all(&place)?;
    Ok(place)
}
