//! The arrows that no `use` line shows: methods of one type that stand in several files call each other.

use std::collections::{BTreeMap, BTreeSet};

use super::source::{Graph, core, files, knot, reached};

/// The counts for a type whose methods stand in several files. They may only become smaller.
#[derive(Debug)]
struct Knots {
    /// The files with methods of the type.
    files: usize,
    /// The largest number of files that can each reach each other by calls.
    knot: usize,
    /// The methods that can end up in themselves.
    recursive: usize,
    /// The fields that are parts: structs that keep their own fields to themselves, so that any file may call them.
    parts: Vec<String>,
    /// The other fields, and the number of files that touch each.
    touched: Vec<(String, usize)>,
}

#[test]
fn the_methods_of_a_type_are_no_larger_knot_than_they_were() {
    let parts = ["spending", "commands", "name_requests", "timers", "jobs", "deferred", "outbox", "journal", "sessions", "account"];
    for (folder, name, root, files, most, parts) in
        [("client", "Router", "router", 39, 6, &parts[..]), ("pool::machine", "Machine", "root", 11, 11, &[])]
    {
        let found = knots(folder, name, root);
        assert!((found.knot, found.recursive) == (0, 0) && found.files <= files, "{name} has {found:?}");
        for (field, number) in &found.touched {
            assert!(*number <= most, "{name}::{field} is touched by {number} files, and is to be by at most {most}");
        }
        println!("{name}: {found:?}");
        let lost: Vec<&&str> = parts.iter().filter(|part| !found.parts.iter().any(|found| found == *part)).collect();
        assert!(lost.is_empty(), "{name} has no parts {lost:?} any more that keep their fields to themselves, but {:?}", found.parts);
    }
}

/// The methods of a type whose struct stands in this file of a folder.
fn knots(folder: &str, name: &str, root: &str) -> Knots {
    let files: BTreeMap<String, String> = files(&core()).into_iter().filter(|(module, _)| module.starts_with(folder)).collect();
    let methods: BTreeMap<String, (&str, String)> = files
        .iter()
        .flat_map(|(module, text)| methods(text, name).into_iter().map(|(method, body)| (method, (module.as_str(), body))))
        .collect();
    let calls: Graph = methods.iter().map(|(method, (_, body))| (method.clone(), called(body, &methods))).collect();
    let mut between = Graph::new();
    for (method, (from, _)) in &methods {
        let to = calls[method].iter().map(|other| methods[other].0).filter(|to| to != from);
        between.entry((*from).to_owned()).or_default().extend(to.map(str::to_owned));
    }
    let fields = fields(&files[&format!("{folder}::{root}")], name);
    assert!(methods.len() > 50 && fields.len() > 5, "{} methods and {} fields are read", methods.len(), fields.len());
    let all = self::files(&core());
    let is_part = |kind: &str| all.values().any(|text| keeps_its_fields(text, kind));
    let (parts, others): (Vec<_>, Vec<_>) = fields.into_iter().partition(|(_, kind)| is_part(kind));
    let touching = |field: &str| {
        let marks = ["self", "client", "router"].map(|holder| format!("{holder}.{field}"));
        let touches = |text: &String| marks.iter().any(|mark| words_at(text, mark).any(|after| !after.starts_with('(')));
        files.values().filter(|text| touches(text)).count()
    };
    Knots {
        files: between.len(),
        knot: knot(&between),
        recursive: calls.keys().filter(|method| reached(&calls, method).contains(method.as_str())).count(),
        parts: parts.into_iter().map(|(field, _)| field).collect(),
        touched: others.into_iter().map(|(field, _)| (field.clone(), touching(&field))).collect(),
    }
}

/// The methods in the `impl` blocks of a type, and their bodies.
fn methods(text: &str, name: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let code = line.split("//").next().unwrap_or_default();
        match code {
            "}" => inside = false,
            _ if code == format!("impl {name} {{") => inside = true,
            _ if !inside => {}
            _ if code.starts_with("    ") && !code.starts_with("     ") && code.contains("fn ") => {
                let method = code.split("fn ").nth(1).unwrap_or_default();
                let end = method.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(method.len());
                found.push((method[..end].to_owned(), String::new()));
            }
            _ => found.iter_mut().next_back().into_iter().for_each(|(_, body)| *body = format!("{body}{}\n", code.trim())),
        }
    }
    found
}

/// The methods that a body calls.
fn called(body: &str, methods: &BTreeMap<String, (&str, String)>) -> BTreeSet<String> {
    let flat: String = body.split_whitespace().collect::<Vec<_>>().join(" ").replace(" .", ".");
    let is_called = |method: &str| {
        let marks = ["self.", "client.", "Self::", "Client::"].map(|holder| format!("{holder}{method}"));
        marks.iter().any(|mark| words_at(&flat, mark).any(|after| after.starts_with('(')))
    };
    methods.keys().filter(|method| is_called(method)).cloned().collect()
}

/// The text behind each place where a text has these words, whole.
fn words_at<'a>(text: &'a str, words: &'a str) -> impl Iterator<Item = &'a str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(words).filter_map(move |(at, _)| {
        let after = &text[at + words.len()..];
        let is_whole = !after.starts_with(is_word) && !text[..at].ends_with(is_word);
        is_whole.then_some(after)
    })
}

/// The fields of a struct, and their types.
fn fields(text: &str, name: &str) -> Vec<(String, String)> {
    let (_, body) = text.split_once(&format!("struct {name} {{")).expect("the struct is there");
    let lines = body.lines().take_while(|line| *line != "}").filter(|line| !line.trim_start().starts_with("//"));
    let field = |line: &str| {
        let (field, kind) = line.split_once(':')?;
        Some((field.split_whitespace().next_back()?.to_owned(), kind.trim().trim_end_matches(',').to_owned()))
    };
    lines.filter_map(field).collect()
}

/// Returns true if a text has this struct, and none of its fields is seen from elsewhere, but in tests.
fn keeps_its_fields(text: &str, name: &str) -> bool {
    let Some((_, body)) = text.split_once(&format!("struct {name}")) else { return false };
    if let Some(only) = body.strip_prefix('(') {
        return !only.starts_with("pub");
    }
    let Some(body) = body.strip_prefix(" {\n") else { return false };
    let lines: Vec<&str> = body.lines().take_while(|line| *line != "}").map(str::trim).collect();
    let is_for_tests = |at: usize| at > 0 && lines[at - 1] == "#[cfg(test)]";
    lines.iter().enumerate().all(|(at, line)| !line.starts_with("pub") || is_for_tests(at))
}
