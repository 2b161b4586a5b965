//! The arrows between the parts of this crate, read from the `use` lines: they run downwards only, and in a circle nowhere. An arrow that
//! no `use` line shows, between the methods of one type in several files, is in [`methods`], and those of other folders in [`elsewhere`].

mod elsewhere;
mod methods;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use source::{core, files, graph};

/// The modules, those below first. Those that stand side by side do not know each other.
const LAYERS: [&[&str]; 9] = [
    &["time", "entropy", "json", "collections"],
    &["contract"],
    &["wire", "policy"],
    &["engine"],
    &["options"],
    &["state"],
    &["client"],
    &["pool"],
    &["turns"],
];

#[test]
fn a_module_knows_only_those_below_it() {
    let layer = |module: &str| {
        let first = module.split("::").next().unwrap_or_default();
        let found = LAYERS.iter().position(|layer| layer.contains(&first));
        (found.unwrap_or_else(|| panic!("`{module}` is in no layer")), first.to_owned())
    };
    let mut seen = 0;
    for (module, named) in graph(&core()).into_iter().filter(|(module, _)| {
        !matches!(module.as_str(), "lib" | "prose" | "layers" | "layers::elsewhere" | "layers::methods" | "layers::source")
    }) {
        let (mine, first) = layer(&module);
        for other in named {
            let (theirs, their_first) = layer(&other);
            seen += 1;
            assert!(theirs < mine || their_first == first, "{module} must not know {other}");
        }
    }
    assert!(seen > 300, "only {seen} arrows were found, so the lines are not read as they should be");
}

#[test]
fn no_files_know_each_other_in_a_circle() {
    let graph = graph(&core());
    let mut circles = Vec::new();
    for start in graph.keys() {
        let (mut reached, mut next) = (BTreeSet::new(), vec![(start.clone(), vec![start.clone()])]);
        while let Some((module, way)) = next.pop() {
            for other in &graph[&module] {
                if other == start {
                    circles.push(format!("{way:?}, {other}"));
                }
                if reached.insert(other.clone()) {
                    next.push((other.clone(), [way.clone(), vec![other.clone()]].concat()));
                }
            }
        }
    }
    assert!(circles.is_empty(), "{circles:#?}");
}

/// Every `file.rs` and the functions that README names after it, in its flow of a purchase.
#[test]
fn readme_names_functions_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("is there");
    let (_, flow) = readme.split_once("# One purchase").expect("has the flow");
    let (flow, _) = flow.split_once("# To change something").expect("has what to touch");
    let (mut file, mut found) = (String::new(), 0);
    for name in flow.split('`').skip(1).step_by(2) {
        if name.ends_with(".rs") {
            file = std::fs::read_to_string(root.join("src").join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        } else if name.chars().all(|c| c.is_ascii_lowercase() || c == '_') && name != "open_session" {
            assert!(
                file.contains(&format!("fn {name}(")) || file.contains(&format!("fn {name}<")),
                "there is no `{name}` where README says"
            );
            found += 1;
        }
    }
    assert!(found > 25, "only {found} names were read");
}

/// The README's table of what to touch names files and folders of core's sources or of the repository.
#[test]
fn readme_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = std::fs::read_to_string(root.join("README.md")).expect("is there");
    let (_, table) = readme.split_once("# To change something").expect("has what to touch");
    let paths: Vec<&str> = table.split('`').skip(1).step_by(2).collect();
    assert!(paths.len() > 25, "only {} paths were read", paths.len());
    for path in paths {
        assert!(root.join("src").join(path).exists() || root.join("..").join(path).exists(), "there is no `{path}`");
    }
}

/// One word has one meaning: types of two files do not share a name.
#[test]
fn no_two_types_share_a_name() {
    let mut known = BTreeMap::new();
    for (module, text) in files(&core()) {
        for line in text.lines() {
            let line = line.trim_start();
            let line = line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")).map_or(line, |(_, rest)| rest);
            let line = line.strip_prefix("pub ").unwrap_or(line);
            let Some(name) = ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind)) else { continue };
            let name: String = name.chars().take_while(|c| c.is_ascii_alphanumeric()).collect();
            if name.starts_with(|first: char| first.is_ascii_uppercase()) {
                let other = known.insert(name.clone(), module.clone());
                assert!(other.is_none(), "`{name}` is a type of {module} and of {other:?}");
            }
        }
    }
    assert!(known.len() > 300, "only {} types were found, so the lines are not read as they should be", known.len());
}

/// The reasons to delete a record stand in one file.
#[test]
fn records_are_deleted_in_one_place() {
    let deletes = |text: &str| text.contains("journal.delete(");
    let known = ["client::names::deletion"];
    let others: Vec<String> = files(&core())
        .into_iter()
        .filter(|(module, text)| !module.starts_with("layers") && deletes(text))
        .map(|(module, _)| module)
        .collect();
    assert_eq!(others, known, "only `client/names/deletion.rs` deletes records");
}
