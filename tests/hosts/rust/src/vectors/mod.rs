//! Runs the shared vectors of `tests/vectors`. Their README is the definition of the format; nothing here adds to it.

mod exchange;
mod format;
mod matching;
mod names;
mod run;
mod sentences;
mod steps;
mod store;
mod walk;
mod world;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub use sentences::sentences;

/// The result of a directory of vectors.
#[derive(Debug, Default)]
pub struct Report {
    /// Files that were read.
    pub files: usize,
    /// Cases that were run.
    pub cases: usize,
    /// The failures, each with its file, its case and its step.
    pub failures: Vec<String>,
}

/// Runs every case below a directory. A directory without a case is a failure, as is anything that can't be read.
pub fn run_directory(directory: &Path) -> Report {
    let mut report = run_all(directory);
    if report.cases == 0 {
        report.failures.push(format!("{}: no case was found", directory.display()));
    }
    report
}

fn run_all(directory: &Path) -> Report {
    let mut report = Report::default();
    let mut paths = Vec::new();
    if let Err(error) = find(directory, &mut paths) {
        report.failures.push(format!("{}: {error}", directory.display()));
    }
    paths.sort();
    let mut seen = BTreeMap::new();
    for path in &paths {
        let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
        match fs::read_to_string(path) {
            Ok(text) => run_file(&name, &text, &mut seen, &mut report),
            Err(error) => report.failures.push(format!("{name}: {error}")),
        }
    }
    report
}

/// Runs the cases of one file, or the one of that name.
pub fn run_case(path: &Path, wanted: Option<&str>) -> Report {
    let (mut report, name) = (Report { files: 1, ..Report::default() }, path.display().to_string());
    match fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| format::File::read(&text)) {
        Ok(mut file) => {
            file.cases.retain(|case| wanted.is_none_or(|wanted| case.name == wanted));
            run_cases(&name, &file, &mut BTreeMap::new(), &mut report);
        }
        Err(error) => report.failures.push(format!("{name}: {error}")),
    }
    report
}

/// Runs the cases of one file, given as text.
pub fn run_text(name: &str, text: &str) -> Report {
    let mut report = Report::default();
    run_file(name, text, &mut BTreeMap::new(), &mut report);
    report
}

fn run_file(name: &str, text: &str, seen: &mut BTreeMap<String, String>, report: &mut Report) {
    report.files += 1;
    match format::File::read(text) {
        Ok(file) => run_cases(name, &file, seen, report),
        Err(error) => report.failures.push(format!("{name}: {error}")),
    }
}

fn run_cases(name: &str, file: &format::File, seen: &mut BTreeMap<String, String>, report: &mut Report) {
    if file.cases.is_empty() {
        report.failures.push(format!("{name}: no case was found"));
    }
    for case in &file.cases {
        report.cases += 1;
        if let Some(other) = seen.insert(case.name.clone(), name.to_owned()) {
            report.failures.push(format!("{name}: `{}`: {other} has a case of the same name", case.name));
        }
        if let Err(failure) = run::run(case) {
            report.failures.push(format!("{name}: `{}`: {failure}", case.name));
        }
    }
}

fn find(directory: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            found.push(path);
        }
    }
    Ok(())
}
