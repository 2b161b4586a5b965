//! The sandbox as packages that need no Rust: a wheel and an npm package for each system, both with the same program, linked statically.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::cargo::{printed, root, run, target};
use crate::check::{Check, Lane, Outcome, PROGRAMS};
use crate::profile::Profile;
use crate::{Fail, debian, node, notices, npm, paths, python, targets};

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
    Check::new(Lane::Others, TOOLS, |profile| match missing(profile)? {
        Some(why) => Ok(Outcome::NotRun(why)),
        None => tools().map(|_| Outcome::ONE),
    })
    .reads(&["tests/sandbox/python/requirements.txt"])
    .makes(&["sandbox/venv/requirements.txt"]),
    Check::new(Lane::Python, MADE, |profile| package(profile).map(|_| Outcome::ONE))
        .needs(&[TOOLS])
        .reads(&["core", "tests/bindgen", "tests/sandbox"])
        .makes(&["sandbox/wheels", "sandbox/npm"]),
    Check::new(Lane::Python, "sandbox: its packages name no folder of this machine", |_| paths::none_in(&place()?.join("npm")))
        .needs(&[MADE]),
    Check::new(Lane::Python, "sandbox: what Python's README says to type fetches a page, without Rust", |_| first_python())
        .needs(&[PROGRAMS, MADE, "python: the wheel"])
        .reads(&["bindings-python/README.md"]),
    Check::new(Lane::Python, "sandbox: what JavaScript's README says to type fetches a page, without Rust", |_| first_node())
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

/// maturin with zig, which builds for other systems; the arguments that both need follow.
pub(crate) fn maturin(target: &str, tags: &[&str], profile: Profile) -> Result<Command, Fail> {
    let python = tools()?;
    let mut maturin = Command::new(&python);
    maturin.args(["-m", "maturin", "build", "--profile", profile.name(), "--locked", "--quiet", "--strip", "--zig", "--target", target]);
    maturin.arg("--compatibility").args(tags).env("CARGO_TARGET_DIR", crate::cargo::target()?);
    // zig is looked for by the Python that is called so.
    maturin.env("PATH", before_path(&[python.parent().unwrap_or(Path::new("."))])?);
    paths::leave_out(&mut maturin)?;
    Ok(maturin)
}

/// The files of a release.
pub(crate) fn release() -> Result<Vec<PathBuf>, Fail> {
    let made = package(Profile::Release)?;
    let mut files = Vec::new();
    for folder in ["wheels", "npm"] {
        let entries = std::fs::read_dir(made.join(folder))?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
        files.extend(entries.into_iter().filter(|path| path.is_file()));
    }
    Ok(files)
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
    let wheels = place()?.join("wheels");
    if wheels.exists() {
        std::fs::remove_dir_all(&wheels)?;
    }
    let wheel = folder().join("python");
    notices::write(NAME, &wheel)?;
    let mut pack = Command::new("node");
    pack.arg(folder().join("npm/pack.mjs")).arg(place()?.join("npm")).arg(env!("CARGO_PKG_VERSION")).arg(wheel.join(notices::FILE));
    for system in systems(profile) {
        let mut maturin = maturin(system.target, &TAGS, profile)?;
        run(maturin.arg("--out").arg(&wheels).current_dir(&wheel))?;
        let program = target()?.join(system.target).join(profile.name()).join(NAME);
        try_it(system, &program)?;
        pack.arg(format!("{}={}", system.npm, program.display()));
    }
    run(&mut pack)?;
    place()
}

/// Checks that a program needs nothing of the system, and starts it where that can be done here.
fn try_it(system: &System, program: &Path) -> Result<(), Fail> {
    if has_interpreter(&std::fs::read(program)?).ok_or("the program is not an ELF file of 64 bits")? {
        return Err(format!("{} is not linked statically, so its wheel's tags are not true", program.display()).into());
    }
    let qemu = format!("qemu-{}-static", system.arch);
    let mut start = match debian::program(&[&qemu]) {
        _ if system.arch == std::env::consts::ARCH => Command::new(program),
        Some(qemu) => {
            let mut start = Command::new(qemu);
            start.arg(program);
            start
        }
        None => {
            println!("not run: the program for {}; {qemu} (Debian's qemu-user-static) would run it", system.target);
            return Ok(());
        }
    };
    let (status, text) = printed(start.arg("--version"))?;
    let expected = format!("{NAME} {}\n", env!("CARGO_PKG_VERSION"));
    if status.success() && text == expected { Ok(()) } else { Err(format!("the program ended with {status} and said `{text}`").into()) }
}

/// True if a program asks for a loader, which links it with a C library when it starts. Nothing if it is not an ELF file of 64 bits.
fn has_interpreter(elf: &[u8]) -> Option<bool> {
    const PT_INTERP: u32 = 3;
    let field = |at: usize, length: usize| {
        elf.get(at..at + length)?.iter().rev().try_fold(0, |sum: usize, byte| Some(sum << 8 | usize::from(*byte)))
    };
    // The magic number, and the class: 64 bits, least byte first.
    if !elf.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (first, size, count) = (field(0x20, 8)?, field(0x36, 2)?, field(0x38, 2)?);
    (0..count).map(|number| field(first + number * size, 4)).try_fold(false, |found, kind| Some(found || kind? == PT_INTERP as usize))
}

/// The commands of Python's README, in a shell of its own. The packages are those that were made.
fn first_python() -> Result<Outcome, Fail> {
    let readme = std::fs::read_to_string(root().join("bindings-python/README.md"))?;
    let clean = clean("first-python")?;
    let programs: Vec<&str> = readme.split("```python\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    for (number, name) in ["first.py", "program.py"].into_iter().enumerate() {
        std::fs::write(clean.join(name), programs.get(number).ok_or("the README lacks a program")?)?;
    }
    let wheels = [only_file(&target()?.join("python/wheels"), "")?, only_file(&place()?.join("wheels"), std::env::consts::ARCH)?];
    let script = commands(&readme)?.replace("install hopline hopline-sandbox", &format!("install -q {}", wheels.map(quoted).join(" ")));
    let script = format!("python3 -m venv venv\nPATH=\"$PWD/venv/bin:$PATH\"\n{script}");
    fetches_a_page(&clean, &script, &["200 for 2 USD", "dynamic-world"])
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
    let tarballs = tarballs.map(|path| quoted(path.display().to_string())).join(" ");
    let script = commands(&readme)?.replace("install hopline hopline-sandbox", &format!("install --no-audit --no-fund {tarballs}"));
    fetches_a_page(&clean, &script, &["200 for 2 USD", "dynamic-world"])
}

/// A path as a word of a shell: the folder of a clone may have any name.
fn quoted(path: String) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_needs_a_loader_is_told_from_one_that_does_not() {
        // Two program headers of 56 bytes, right behind the header of the file.
        let elf = |kinds: [u8; 2]| {
            let mut bytes = vec![0; 64 + 2 * 56];
            bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
            (bytes[0x20], bytes[0x36], bytes[0x38]) = (64, 56, 2);
            (bytes[64], bytes[64 + 56]) = (kinds[0], kinds[1]);
            bytes
        };
        assert_eq!(has_interpreter(&elf([1, 1])), Some(false));
        assert_eq!(has_interpreter(&elf([1, 3])), Some(true));
        assert_eq!(has_interpreter(&elf([1, 3])[..64 + 56]), None);
        assert_eq!(has_interpreter(b"#!/bin/sh"), None);
        #[cfg(target_os = "linux")]
        assert_eq!(has_interpreter(&std::fs::read("/bin/sh").unwrap()), Some(true));
    }

    #[test]
    fn the_commands_of_a_readme_are_its_indented_lines() {
        let readme = "Words.\n\n    cargo build\n\nThen:\n\n    pip install hopline\n    eval \"$(hopline-sandbox --shell)\"\n\nMore.";
        assert_eq!(commands(readme).unwrap(), "pip install hopline\neval \"$(hopline-sandbox --shell)\"");
        assert!(commands("    cargo build").is_err());
    }
}
