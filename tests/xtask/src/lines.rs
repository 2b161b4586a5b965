//! `cargo xtask lines`: how many lines of the hosts are written by hand. What is printed from the table is not in the tree.

use std::path::Path;
use std::process::{Command, ExitCode};

use crate::Fail;
use crate::cargo::root;

/// A host, where it is written, in which kind of file, and how a comment begins there.
const HOSTS: &[(&str, &str, &str, &[&str])] = &[
    ("JavaScript", "bindings-wasm/js", "js", &["//", "/*", "*"]),
    ("JavaScript's types", "bindings-wasm/js", "ts", &["//", "/*", "*"]),
    ("Python", "bindings-python/python", "py", &["#"]),
    ("Kotlin", "bindings-uniffi/kotlin/src", "kt", &["//", "/*", "*"]),
    ("Swift", "bindings-uniffi/swift/Sources", "swift", &["//"]),
    ("Rust, for JavaScript", "bindings-wasm/src", "rs", &["//"]),
    ("Rust, for Python", "bindings-python/src", "rs", &["//"]),
    ("Rust, for Kotlin and Swift", "bindings-uniffi/src", "rs", &["//"]),
];

pub(crate) fn command() -> Result<ExitCode, Fail> {
    for (host, folder, kind, comments) in HOSTS {
        let listed = Command::new("git").args(["ls-files", folder]).current_dir(root()).output()?;
        let files = String::from_utf8(listed.stdout)?;
        let files = files.lines().map(Path::new).filter(|file| has_kind(file, kind) && !file.ends_with("tests.rs"));
        let mut lines = 0;
        for file in files {
            lines += count(&std::fs::read_to_string(root().join(file))?, comments, *kind == "py");
        }
        println!("{lines:5}  {host}");
    }
    Ok(ExitCode::SUCCESS)
}

/// `index.js`, `node.mjs` and `node.cjs` are all of kind `js`.
fn has_kind(file: &Path, kind: &str) -> bool {
    file.extension().and_then(|found| found.to_str()).is_some_and(|found| found == kind || (kind == "js" && matches!(found, "mjs" | "cjs")))
}

/// The lines that are neither empty nor a comment. Python's documentation is text: what stands between `"""` is none of them.
fn count(text: &str, comments: &[&str], is_python: bool) -> usize {
    let (mut lines, mut in_docs) = (0, false);
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let quotes = if is_python { line.matches("\"\"\"").count() } else { 0 };
        if in_docs || (quotes > 0 && line.starts_with("\"\"\"")) {
            in_docs ^= quotes % 2 == 1;
        } else if !comments.iter().any(|comment| line.starts_with(comment)) {
            lines += 1;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_no_line() {
        let javascript = "// a\n\n/**\n * b\n */\nexport const c = 1; // d\n  return 2;\n";
        assert_eq!(count(javascript, &["//", "/*", "*"], false), 2);
        let python = "\"\"\"a\n\nb\n\"\"\"\n# c\ndef d():\n    \"\"\"e\"\"\"\n    f = \"g\"\n";
        assert_eq!(count(python, &["#"], true), 2);
    }
}
