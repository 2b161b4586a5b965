//! The texts of the licences of all that is in a package, which each licence asks for: one file, `LICENSES.txt`, that is made with the package.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::Fail;
use crate::cargo::{cargo, root};

/// The name of the file in every package.
pub(crate) const FILE: &str = "LICENSES.txt";

/// Writes the file for the package that is made of a crate, into a folder.
pub(crate) fn write(krate: &str, folder: &Path) -> Result<(), Fail> {
    std::fs::create_dir_all(folder)?;
    Ok(std::fs::write(folder.join(FILE), text(krate)?)?)
}

/// Hopline's own two licences, then each other text once, below the names of the crates that it is of.
pub(crate) fn text(krate: &str) -> Result<String, Fail> {
    let mut text = "Hopline may be used under either of two licences, MIT or Apache-2.0. This package also has parts of others, with licences of their own,\n\
                    which follow below, each with the names of its parts.\n"
        .to_owned();
    for name in ["LICENSE-MIT", "LICENSE-APACHE"] {
        section(&mut text, "Hopline", std::fs::read_to_string(root().join(name))?.trim());
    }
    let mut crates_by_text = BTreeMap::<String, Vec<String>>::new();
    for part in others(krate)? {
        crates_by_text.entry(part.text()?).or_default().push(format!("{} {}", part.name, part.version));
    }
    for (licence, crates) in crates_by_text {
        section(&mut text, &crates.join(", "), &licence);
    }
    Ok(text)
}

fn section(text: &mut String, of: &str, licence: &str) {
    *text += &format!("\n{}\n{of}\n\n{licence}\n", "-".repeat(80));
}

/// A crate of others.
struct Part {
    name: String,
    version: String,
    licence: String,
    /// Where its sources are told to be.
    sources: String,
    /// The folder of its sources on this machine.
    folder: std::path::PathBuf,
}

impl Part {
    /// The licence's text: of MIT where that is one of several, else of all that it comes with, else its name and where both are found.
    fn text(&self) -> Result<String, Fail> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let (name, path) = entry.map(|entry| (entry.file_name().to_string_lossy().to_uppercase(), entry.path()))?;
            if path.is_file() && ["LICEN", "COPYING", "NOTICE"].iter().any(|word| name.starts_with(word)) {
                files.push((name, path));
            }
        }
        files.sort();
        let is_one_of_several = self.licence.contains(" OR ") || self.licence.contains('/');
        if let Some(at) = files.iter().position(|(name, _)| is_one_of_several && name.contains("MIT")) {
            files = vec![files.swap_remove(at)];
        }
        let texts =
            files.iter().map(|(_, path)| Ok(String::from_utf8_lossy(&std::fs::read(path)?).replace("\r\n", "\n").trim().to_owned()));
        let texts = texts.collect::<Result<Vec<_>, Fail>>()?;
        if texts.is_empty() {
            return Ok(format!("{}: https://spdx.org/licenses\nIts sources: {}", self.licence, self.sources));
        }
        Ok(texts.join("\n\n"))
    }
}

/// The crates of others that are in a crate as it ships, by name and version.
fn others(krate: &str) -> Result<Vec<Part>, Fail> {
    let mut tree = cargo(&["tree", "--package", krate, "--edges", "normal,no-proc-macro", "--target", "all", "--prefix", "none"]);
    let shipped = told(tree.args(["--all-features", "--format", "{p}"]))?;
    let shipped: Vec<&str> = shipped.lines().map(|line| line.trim_end_matches(" (*)")).collect();
    let metadata: Value = serde_json::from_str(&told(&mut cargo(&["metadata", "--format-version", "1"]))?)?;
    let text = |package: &Value, name: &str| package[name].as_str().unwrap_or_default().to_owned();
    let mut parts: Vec<Part> = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten().filter(|package| package["source"].is_string()) {
        let (name, version) = (text(package, "name"), text(package, "version"));
        if shipped.iter().any(|line| line.strip_prefix(&name).and_then(|rest| rest.strip_prefix(" v")) == Some(&version)) {
            let folder = Path::new(&text(package, "manifest_path")).with_file_name("");
            parts.push(Part { name, version, licence: text(package, "license"), sources: text(package, "repository"), folder });
        }
    }
    parts.sort_by(|one, two| (&one.name, &one.version).cmp(&(&two.name, &two.version)));
    Ok(parts)
}

/// The output of a command of cargo.
fn told(command: &mut std::process::Command) -> Result<String, Fail> {
    let told = command.output()?;
    if !told.status.success() {
        return Err(format!("cargo does not tell what ships: {}", String::from_utf8_lossy(&told.stderr)).into());
    }
    Ok(String::from_utf8(told.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_package_is_named_once_with_a_text_and_no_folder_of_this_machine() {
        let text = text("hopline-python").unwrap();
        for name in ["Hopline\n", "pyo3 ", "serde_json ", "Permission is hereby granted", "Apache License"] {
            assert!(text.contains(name), "{name}");
        }
        for part in others("hopline-python").unwrap() {
            assert_eq!(text.matches(&format!("{} {}", part.name, part.version)).count(), 1, "{}", part.name);
            assert!(!text.contains(&*part.folder.to_string_lossy()), "{}", part.name);
        }
        assert!(!text.contains("proptest "), "only tests need it");
    }
}
