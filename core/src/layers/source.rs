//! Sources as text, and which file names which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The names that each thing has of the others.
pub(super) type Graph = BTreeMap<String, BTreeSet<String>>;

/// All things that can be reached from one, itself only if there is a way back to it.
pub(super) fn reached<'a>(graph: &'a Graph, from: &str) -> BTreeSet<&'a str> {
    let (mut reached, mut next) = (BTreeSet::new(), vec![from]);
    while let Some(one) = next.pop() {
        for other in graph.get(one).into_iter().flatten() {
            if reached.insert(other.as_str()) {
                next.push(graph.get_key_value(other).map_or("", |(known, _)| known));
            }
        }
    }
    reached
}

/// The size of the largest knot, in which each thing can be reached from each.
pub(super) fn knot(graph: &Graph) -> usize {
    let all: BTreeMap<&str, BTreeSet<&str>> = graph.keys().map(|one| (one.as_str(), reached(graph, one))).collect();
    let tied = |one: &str| all[one].iter().filter(|other| all.get(*other).is_some_and(|theirs| theirs.contains(one))).count();
    all.keys().map(|one| tied(one)).max().unwrap_or_default()
}

/// The sources of this crate.
pub(super) fn core() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Every file of a crate, by the path of its module, without what is for tests only.
pub(super) fn files(root: &Path) -> BTreeMap<String, String> {
    fn walk(folder: &Path, into: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).expect("the sources are there").flatten() {
            let path = entry.path();
            if path.is_dir() { walk(&path, into) } else { into.push(path) }
        }
    }
    let mut paths = Vec::new();
    walk(root, &mut paths);
    let is_for_tests =
        |path: &Path| path.strip_prefix(root).unwrap_or(path).with_extension("").iter().any(|part| part == "tests" || part == "testing");
    let rust = paths.into_iter().filter(|path| path.extension().is_some_and(|end| end == "rs") && !is_for_tests(path));
    rust.map(|path| {
        let text = std::fs::read_to_string(&path).expect("is text");
        let module = path.strip_prefix(root).expect("is below").with_extension("").to_string_lossy().replace('/', "::");
        let module = module.strip_suffix("::mod").unwrap_or(&module).to_owned();
        (module, without_tests(&text).to_owned())
    })
    .collect()
}

/// A file without its unit tests, which stand at its end.
fn without_tests(text: &str) -> &str {
    text.find("#[cfg(test)]\nmod tests").map_or(text, |at| &text[..at])
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

/// The files that a file names in its `use` lines: for each path the longest part of it that is a file.
fn named(module: &str, text: &str, files: &BTreeMap<String, String>) -> BTreeSet<String> {
    let parent = |module: &str| module.rsplit_once("::").map(|(parent, _)| parent.to_owned()).unwrap_or_default();
    let uses = text.split(';').filter_map(|part| {
        let line = part.trim_start().lines().skip_while(|line| !line.trim_start().contains("use ")).collect::<String>();
        let (visibility, body) = line.split_once("use ")?;
        // A file that only hands on what its parts offer does not need them.
        let hands_on = visibility.trim_start().starts_with("pub");
        (!hands_on && !visibility.contains("//")).then(|| body.split_whitespace().collect::<String>())
    });
    let whole = uses.flat_map(|body| paths(&body)).filter_map(|path| {
        let (first, mut rest) = path.split_once("::")?;
        let mut from = match first {
            "crate" => String::new(),
            "self" => module.to_owned(),
            "super" => parent(module),
            _ => return None,
        };
        while let Some(further) = rest.strip_prefix("super::") {
            (from, rest) = (parent(&from), further);
        }
        let whole = format!("{from}::{rest}");
        let mut known = whole.trim_start_matches("::").to_owned();
        while !known.is_empty() && !files.contains_key(&known) {
            known = parent(&known);
        }
        Some(known).filter(|known| !known.is_empty() && known != module)
    });
    whole.collect()
}

/// The files that each file of a crate names.
pub(super) fn graph(root: &Path) -> Graph {
    let files = files(root);
    files.iter().map(|(module, text)| (module.clone(), named(module, text, &files))).collect()
}
