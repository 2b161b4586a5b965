//! Circles of files in folders beside this crate: none may grow.

use std::collections::BTreeSet;
use std::path::Path;

use super::source::{Graph, graph, knot};

/// The number of files in the largest circle of each folder. The numbers may only become smaller.
const CIRCLES: [(&str, usize); 10] = [
    ("the sandbox", 0),
    ("xtask", 0),
    ("the world", 0),
    ("the printer of hosts' types", 0),
    ("the folder store", 0),
    ("the crossing to Python", 0),
    ("the crossing to wasm", 0),
    ("the crossing to Kotlin and Swift", 0),
    ("the Python package", 0),
    ("the npm package", 0),
];

#[test]
fn the_circles_of_other_folders_are_no_larger_than_they_were() {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let rust = |folder: &str| knot(&graph(&repository.join(folder)));
    let found = [
        ("the sandbox", rust("tests/sandbox/src")),
        ("xtask", rust("tests/xtask/src")),
        ("the world", rust("tests/world/src")),
        ("the printer of hosts' types", rust("tests/bindgen/src")),
        ("the folder store", rust("core/store/src")),
        ("the crossing to Python", rust("bindings-python/src")),
        ("the crossing to wasm", rust("bindings-wasm/src")),
        ("the crossing to Kotlin and Swift", rust("bindings-uniffi/src")),
        ("the Python package", knot(&python(&repository.join("bindings-python/python/hopline")))),
        ("the npm package", knot(&javascript(&repository.join("bindings-wasm/js/src")))),
    ];
    for ((folder, found), (known, most)) in found.into_iter().zip(CIRCLES) {
        assert!(folder == known && found <= most, "a circle of {folder} has {found} files, and is to have at most {most}");
    }
}

/// The imports between the hand-written modules of a Python package, including those for type checks only. The printed ones are there only
/// once a wheel was built.
fn python(folder: &Path) -> Graph {
    imports(folder, "py", |line| {
        let (from, names) = line.trim_start().strip_prefix("from .")?.split_once(" import ")?;
        let of_package = || names.split(',').map(|name| name.split_whitespace().next().unwrap_or_default().to_owned()).collect();
        Some(if from.is_empty() { of_package() } else { vec![from.split('.').next().unwrap_or_default().to_owned()] })
    })
}

/// The imports between the files of the npm package.
fn javascript(folder: &Path) -> Graph {
    imports(folder, "js", |line| {
        let (_, path) = line.split_once("from \"./")?;
        Some(vec![path.split(".js\"").next()?.to_owned()])
    })
}

/// Returns true if a module of the Python package is printed from core's table, or from another one.
fn is_printed(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    ["_told", "_types"].contains(&&*name) || name.starts_with("_sync_") || name.ends_with("_operations")
}

/// The files directly in a folder, and what their lines name of each other.
fn imports(folder: &Path, ending: &str, named: impl Fn(&str) -> Option<Vec<String>>) -> Graph {
    let paths = std::fs::read_dir(folder).expect("the package is there").flatten().map(|entry| entry.path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == ending) && !is_printed(path));
    let graph: Graph = files
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("is text");
            let name = path.file_stem().expect("has a name").to_string_lossy().into_owned();
            let found: BTreeSet<String> = text.lines().filter_map(&named).flatten().collect();
            (name, found)
        })
        .collect();
    assert!(graph.values().map(BTreeSet::len).sum::<usize>() > 40, "the imports are not read as they should be");
    graph
}
