//! `cargo xtask release --dry-run`: all that a release would publish, made of a clean checkout as it ships, checked and listed. It publishes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::cargo::{cargo, programs, root, run, target};
use crate::profile::Profile;
use crate::{Fail, kotlin, licences, node, paths, python, sandbox, swift};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A part of the release.
struct Part {
    name: &'static str,
    /// The crate whose dependencies ship in it.
    krate: &'static str,
    /// Makes its files; a folder among them is packed.
    make: fn() -> Result<Vec<PathBuf>, Fail>,
}

const PARTS: [Part; 5] = [
    Part { name: "python", krate: "hopline-python", make: python::release },
    Part { name: "node", krate: "hopline-wasm", make: || Ok(vec![node::package(Profile::Release)?]) },
    Part { name: "kotlin", krate: "hopline-uniffi", make: || Ok(vec![kotlin::package(Profile::Release)?]) },
    Part { name: "swift", krate: "hopline-uniffi", make: || Ok(vec![swift::package(Profile::Release)?]) },
    Part { name: "sandbox", krate: "hopline-sandbox", make: sandbox::release },
];

/// `cargo xtask release --dry-run [PART…]`.
pub(crate) fn command(arguments: &[String]) -> Result<ExitCode, Fail> {
    let (options, names): (Vec<&str>, Vec<&str>) = arguments.iter().map(String::as_str).partition(|word| word.starts_with("--"));
    if options != ["--dry-run"] {
        return Err("nothing is published from here: `cargo xtask release --dry-run` makes and checks what would be".into());
    }
    let parts = chosen(&names)?;
    let commit = commit()?;
    licences::judge()?;
    programs()?;
    let out = target()?.join(format!("release-{VERSION}"));
    // The folder is of one run, so that all in it is of one commit.
    if out.exists() {
        std::fs::remove_dir_all(&out)?;
    }
    let unpacked = out.join("unpacked");
    for part in parts {
        println!("== {}", part.name);
        let folder = out.join(part.name);
        std::fs::create_dir_all(&folder)?;
        for made in (part.make)()? {
            let file = keep(&made, &folder)?;
            let contents = unpack(&file, &unpacked)?;
            paths::none_in(&contents).map_err(|error| format!("{}: {error}", file.display()))?;
            std::fs::remove_dir_all(contents)?;
        }
        let bill = serde_json::to_string_pretty(&bill(part.krate, &components(part.krate)?))?;
        std::fs::write(folder.join(format!("{}-{VERSION}.cdx.json", part.krate)), bill + "\n")?;
    }
    let list = digests(&out)?;
    std::fs::write(out.join("SHA256SUMS"), &list)?;
    std::fs::remove_dir_all(unpacked)?;
    println!("\n{list}\nthis is {VERSION} of the commit {commit}, in {}; nothing was published", out.display());
    Ok(ExitCode::SUCCESS)
}

/// The parts of those names, or all.
fn chosen(names: &[&str]) -> Result<Vec<&'static Part>, Fail> {
    let known = PARTS.iter().map(|part| part.name).collect::<Vec<_>>();
    if let Some(name) = names.iter().find(|name| !known.contains(name)) {
        return Err(format!("there is no part `{name}` of a release; the parts are: {}", known.join(", ")).into());
    }
    Ok(PARTS.iter().filter(|part| names.is_empty() || names.contains(&part.name)).collect())
}

/// The commit, and its tag if it has one. A checkout with changes is refused.
fn commit() -> Result<String, Fail> {
    let git = |arguments: &[&str]| {
        let told = Command::new("git").args(arguments).current_dir(root()).output()?;
        if told.status.success() {
            Ok(String::from_utf8(told.stdout)?.trim().to_owned())
        } else {
            Err(Fail::from("this is no git checkout"))
        }
    };
    let changes = git(&["status", "--porcelain"])?;
    if !changes.is_empty() {
        return Err(format!("the checkout has changes, and a release is made of a commit:\n{changes}").into());
    }
    git(&["describe", "--tags", "--always", "--abbrev=12"])
}

/// Puts a file into a folder; a folder as one archive. Its name is that of the version, so that two never share one.
fn keep(made: &Path, folder: &Path) -> Result<PathBuf, Fail> {
    let name = made.file_name().ok_or("what was made has no name")?.to_string_lossy().into_owned();
    if !made.is_dir() {
        if !name.contains(VERSION) {
            return Err(format!("{name} does not have the version {VERSION} in its name").into());
        }
        let file = folder.join(name);
        std::fs::copy(made, &file)?;
        return Ok(file);
    }
    let file = folder.join(format!("{name}-{VERSION}.tar.gz"));
    let above = made.parent().ok_or("what was made is in no folder")?;
    run(Command::new("tar").arg("-czf").arg(&file).arg("-C").arg(above).arg(name))?;
    Ok(file)
}

/// Unpacks an archive into a folder of its own.
fn unpack(file: &Path, below: &Path) -> Result<PathBuf, Fail> {
    let into = below.join(file.file_name().ok_or("an archive has no name")?);
    std::fs::create_dir_all(&into)?;
    let is_zip = file.extension().is_some_and(|extension| extension == "whl" || extension == "jar");
    let mut unpack = if is_zip { Command::new("python3") } else { Command::new("tar") };
    if is_zip {
        unpack.args(["-m", "zipfile", "-e"]).arg(file).arg(&into);
    } else {
        unpack.arg("-xzf").arg(file).arg("-C").arg(&into);
    }
    run(&mut unpack)?;
    Ok(into)
}

/// The crates that ship in a crate, as cargo lists them: `name v1.2.3|licence`.
fn components(krate: &str) -> Result<BTreeSet<String>, Fail> {
    let mut tree = cargo(&["tree", "--package", krate, "--edges", "normal,no-proc-macro", "--target", "all", "--prefix", "none"]);
    let told = tree.args(["--format", "{p}|{l}"]).output()?;
    if !told.status.success() {
        return Err(format!("cargo does not list the crates in {krate}: {}", String::from_utf8_lossy(&told.stderr)).into());
    }
    // A crate whose own dependencies were listed before is marked.
    Ok(String::from_utf8(told.stdout)?.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect())
}

/// A bill of materials in the format of CycloneDX.
fn bill(krate: &str, lines: &BTreeSet<String>) -> Value {
    let component = |line: &String| {
        let (package, licence) = line.split_once('|')?;
        // Behind the version of a crate of the workspace comes its folder.
        let mut words = package.split(' ');
        let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
        // Old crates write `MIT/Apache-2.0`.
        let licence = licence.replace('/', " OR ");
        Some(json!({
            "type": "library", "name": name, "version": version, "purl": format!("pkg:cargo/{name}@{version}"),
            "licenses": [{ "expression": licence }],
        }))
    };
    let components: Vec<Value> = lines.iter().filter_map(component).filter(|component| component["name"] != krate).collect();
    json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": { "component": { "type": "library", "name": krate, "version": VERSION, "purl": format!("pkg:cargo/{krate}@{VERSION}") } },
        "components": components,
    })
}

/// The SHA-256 of each file below a folder, as `sha256sum` prints them.
fn digests(folder: &Path) -> Result<String, Fail> {
    let mut lines = Vec::new();
    for part in PARTS {
        let Ok(entries) = std::fs::read_dir(folder.join(part.name)) else { continue };
        for entry in entries {
            let path = entry?.path();
            let digest: String = Sha256::digest(std::fs::read(&path)?).iter().map(|byte| format!("{byte:02x}")).collect();
            lines.push(format!("{digest}  {}\n", path.strip_prefix(folder)?.display()));
        }
    }
    lines.sort_by(|one, two| one[64..].cmp(&two[64..]));
    Ok(lines.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bill_of_materials_has_each_crate_once_with_its_licence() {
        let lines = ["ring v0.17.1|Apache-2.0 AND ISC", "old v1.0.0|MIT/Apache-2.0", "own v0.1.0 (/a/folder)|MIT"];
        let bill = bill("own", &lines.map(str::to_owned).into());
        let told = |at: usize| (bill["components"][at]["purl"].as_str().unwrap(), &bill["components"][at]["licenses"][0]["expression"]);
        assert_eq!(told(0), ("pkg:cargo/old@1.0.0", &"MIT OR Apache-2.0".into()));
        assert_eq!(told(1), ("pkg:cargo/ring@0.17.1", &"Apache-2.0 AND ISC".into()));
        assert_eq!(bill["components"].as_array().unwrap().len(), 2);
        assert!(!bill.to_string().contains("/a/folder"));
    }

    #[test]
    fn an_unknown_part_and_a_release_that_publishes_are_refused() {
        assert!(chosen(&["fortran"]).is_err());
        assert_eq!(chosen(&[]).unwrap().len(), PARTS.len());
        assert!(command(&[]).is_err());
    }

    #[test]
    fn every_crate_of_a_part_is_listed_by_cargo_with_a_version_and_a_licence() {
        for part in PARTS {
            let lines = components(part.krate).unwrap();
            let listed = bill(part.krate, &lines)["components"].as_array().unwrap().len();
            assert!(listed > 10 && listed + 1 == lines.len(), "{}: {listed} of {}", part.name, lines.len());
        }
    }
}
