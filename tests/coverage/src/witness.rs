//! A witness: a case of the vectors or a test in Rust, which is known to be there and can be run alone.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use syn::{Item, Meta};

/// The test programs whose tests can be witnesses: of which package, under which name, from which file on.
const PROGRAMS: [(&str, &str, &str); 2] =
    [("hopline", "lib", "core/src/lib.rs"), ("hopline-host-rust", "real_http", "tests/hosts/rust/tests/real_http/main.rs")];

/// The witness of a row. Its text is `vectors/FILE: CASE` or `PACKAGE/PROGRAM: PATH`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Witness {
    /// A case of a file of vectors.
    Vector { file: String, case: String },
    /// A test of one of a package's test programs.
    Test { package: String, program: String, path: String },
}

impl Witness {
    pub(crate) fn read(text: &str) -> Option<Witness> {
        let (place, name) = text.split_once(": ")?;
        match place.split_once('/')? {
            ("vectors", file) => Some(Witness::Vector { file: file.to_owned(), case: name.to_owned() }),
            (package, program) => Some(Witness::Test { package: package.to_owned(), program: program.to_owned(), path: name.to_owned() }),
        }
    }

    /// Runs it alone, and expects that it is run.
    pub(crate) fn passes(&self, root: &Path) -> Result<bool, String> {
        let mut command = cargo(root);
        let ran = match self {
            Witness::Vector { file, case } => {
                command.args(["run", "--quiet", "--package", "hopline-host-rust", "--bin", "hopline-vectors", "--"]);
                command.arg(root.join("tests/vectors").join(file)).arg(case);
                "1 cases, 0 failed"
            }
            Witness::Test { package, program, path } => {
                let program: &[&str] = if program == "lib" { &["--lib"] } else { &["--test", program] };
                command.args(["test", "--quiet", "--package", package]).args(program).args(["--", "--exact", path]);
                "1 passed; 0 failed"
            }
        };
        let output = command.stderr(Stdio::inherit()).output().map_err(|error| format!("{self}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let passes = output.status.success() && text.contains(ran);
        if !passes {
            print!("{text}");
        }
        Ok(passes)
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Witness::Vector { file, case } => write!(f, "vectors/{file}: {case}"),
            Witness::Test { package, program, path } => write!(f, "{package}/{program}: {path}"),
        }
    }
}

/// Cargo, as it was called.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

/// Every test of the programs, found as the compiler finds it: from the program's first file on, module by module.
pub(crate) fn tests(root: &Path) -> Result<BTreeSet<Witness>, String> {
    let mut found = BTreeSet::new();
    for (package, program, file) in PROGRAMS {
        let file = root.join(file);
        let folder = file.parent().unwrap_or(root).to_owned();
        let mut add = |path: String| {
            found.insert(Witness::Test { package: package.to_owned(), program: program.to_owned(), path });
        };
        walk(&parsed(&file)?, &folder, "", &mut add)?;
    }
    Ok(found)
}

fn parsed(file: &Path) -> Result<Vec<Item>, String> {
    let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    Ok(syn::parse_file(&text).map_err(|error| format!("{}: {error}", file.display()))?.items)
}

/// The tests among the items of a module, whose own modules lie in that folder.
fn walk(items: &[Item], folder: &Path, prefix: &str, add: &mut dyn FnMut(String)) -> Result<(), String> {
    for item in items {
        match item {
            Item::Fn(item) if is_run(&item.attrs) => add(format!("{prefix}{}", item.sig.ident)),
            Item::Mod(item) if !has(&item.attrs, "path") => {
                let name = item.ident.to_string();
                let (inner, prefix) = (folder.join(&name), format!("{prefix}{name}::"));
                match &item.content {
                    Some((_, items)) => walk(items, &inner, &prefix, add)?,
                    None => walk(&parsed(&file_of(folder, &name))?, &inner, &prefix, add)?,
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn file_of(folder: &Path, module: &str) -> PathBuf {
    let plain = folder.join(module).with_extension("rs");
    if plain.exists() { plain } else { folder.join(module).join("mod.rs") }
}

/// `#[test]` or `#[tokio::test]`, and not ignored.
fn is_run(attributes: &[syn::Attribute]) -> bool {
    has(attributes, "test") && !has(attributes, "ignore")
}

fn has(attributes: &[syn::Attribute], name: &str) -> bool {
    let named = |meta: &Meta| meta.path().segments.last().is_some_and(|last| last.ident == name);
    attributes.iter().any(|attribute| named(&attribute.meta))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_is_read_as_it_is_written() {
        for text in ["vectors/keys/ours.json: a: b", "hopline/lib: wire::facts::tests::x"] {
            assert_eq!(Witness::read(text).expect("a witness").to_string(), text);
        }
        for text in ["a name alone", "lib: x", ""] {
            assert_eq!(Witness::read(text), None);
        }
    }

    #[test]
    fn a_test_is_a_function_that_is_marked_and_not_ignored() {
        let text = "fn new() {} #[test] fn a() {} mod m { #[tokio::test(flavor = \"x\")] async fn b() {} #[test] #[ignore] fn c() {} }\n// #[test] fn d() {}";
        let mut found = Vec::new();
        walk(&syn::parse_file(text).expect("Rust").items, Path::new(""), "", &mut |path| found.push(path)).expect("no files");
        assert_eq!(found, ["a", "m::b"]);
    }
}
