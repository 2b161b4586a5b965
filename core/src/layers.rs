//! The arrows between the parts of this crate, read from the `use` lines: they run downwards only, and in a circle nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The modules, those below first. Those that stand side by side do not know each other.
const LAYERS: [&[&str]; 7] =
    [&["time", "entropy", "json", "map", "thin"], &["contract"], &["wire", "policy"], &["engine"], &["state"], &["client"], &["pool"]];

/// Every file of the crate, by the path of its module, without what is for tests only.
fn files() -> BTreeMap<String, String> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the sources are there").flatten() {
            let path = entry.path();
            if path.is_dir() { walk(&path, into) } else { into.push(path) }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    let is_for_tests = |path: &Path| path.with_extension("").iter().any(|part| part == "tests" || part == "testing");
    let rust = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs") && !is_for_tests(path));
    rust.map(|path| {
        let text = std::fs::read_to_string(&path).expect("is text");
        let module = path.strip_prefix(&root).expect("is below").with_extension("").to_string_lossy().replace('/', "::");
        let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
        (module, text.split("#[cfg(test)]").next().unwrap_or_default().to_owned())
    })
    .collect()
}

/// The paths that the body of a `use` names.
fn paths(body: &str) -> Vec<String> {
    let Some((before, inside)) = body.split_once('{') else { return vec![body.to_owned()] };
    let inside = inside.strip_suffix('}').unwrap_or(inside);
    let (mut parts, mut depth, mut part) = (Vec::new(), 0, String::new());
    for c in inside.chars() {
        match c {
            ',' if depth == 0 => parts.push(std::mem::take(&mut part)),
            _ => {
                depth += i32::from(c == '{') - i32::from(c == '}');
                part.push(c);
            }
        }
    }
    parts.push(part);
    parts.iter().filter(|part| !part.is_empty()).flat_map(|part| paths(part)).map(|path| format!("{before}{path}")).collect()
}

/// Which files a file names in its `use` lines: the longest path that is one.
fn named(module: &str, text: &str, files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let parent = |module: &str| module.rsplit_once("::").map(|(parent, _)| parent.to_owned()).unwrap_or_default();
    let uses = text.split(';').filter_map(|part| {
        let line = part.trim_start().lines().skip_while(|line| !line.trim_start().contains("use ")).collect::<String>();
        let (visibility, body) = line.split_once("use ")?;
        // A file that only hands on what its parts offer does not need them.
        let hands_on = visibility.trim_start().starts_with("pub");
        (!hands_on && !visibility.contains("//")).then(|| body.split_whitespace().collect::<String>())
    });
    let is_folder = files.keys().any(|known| parent(known) == module);
    let whole = uses.flat_map(|body| paths(&body)).filter_map(|path| {
        let here = if is_folder { module.to_owned() } else { parent(module) };
        let (first, rest) = path.split_once("::")?;
        let whole = match first {
            "crate" => rest.to_owned(),
            "self" => format!("{module}::{rest}"),
            "super" if is_folder => format!("{}::{rest}", parent(module)),
            "super" => format!("{here}::{rest}"),
            _ => return None,
        };
        let mut known = whole.trim_start_matches("::").to_owned();
        while !known.is_empty() && !files.contains_key(&known) {
            known = parent(&known);
        }
        Some(known).filter(|known| !known.is_empty() && known != module)
    });
    whole.collect()
}

fn graph() -> BTreeMap<String, BTreeSet<String>> {
    let files = files();
    files.iter().map(|(module, text)| (module.clone(), named(module, text, &files))).collect()
}

#[test]
fn a_module_knows_only_those_below_it() {
    let layer = |module: &str| {
        let first = module.split("::").next().unwrap_or_default();
        let found = LAYERS.iter().position(|layer| layer.contains(&first));
        (found.unwrap_or_else(|| panic!("`{module}` is in no layer")), first.to_owned())
    };
    let mut seen = 0;
    for (module, named) in graph().into_iter().filter(|(module, _)| !matches!(module.as_str(), "lib" | "layers")) {
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
    let graph = graph();
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
