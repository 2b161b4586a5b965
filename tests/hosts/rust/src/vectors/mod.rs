//! Runs the shared vectors of `tests/vectors`. Their README is the definition of the format; nothing here adds to it.

mod exchange;
mod format;
mod matching;
mod migrate;
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

pub use migrate::{Migrated, migrate};
pub use sentences::sentences;

/// What became of a directory of vectors.
#[derive(Debug, Default)]
pub struct Report {
    /// Files that were read.
    pub files: usize,
    /// Cases that were run.
    pub cases: usize,
    /// What failed, each with its file, its case and its step.
    pub failures: Vec<String>,
}

/// Runs every case below a directory. A directory without a case is a failure, as is anything that can't be read.
pub fn run_directory(directory: &Path) -> Report {
    let mut report = run_all(directory, &mut |_, result| result);
    if report.cases == 0 {
        report.failures.push(format!("{}: no case was found", directory.display()));
    }
    report
}

/// Runs every case below a directory of what is not mended yet, and returns how many failed as they should. A case that passes is
/// a failure, as is one that can't be read or names no issue.
pub fn run_pending(directory: &Path) -> (Report, usize) {
    let mut failed = 0;
    let report = run_all(directory, &mut |case, result| expect_failure(case, result).inspect(|()| failed += 1));
    (report, failed)
}

/// Runs the cases of one file of what is not mended yet, given as text.
pub fn pending_text(name: &str, text: &str) -> (Report, usize) {
    let (mut report, mut failed) = (Report::default(), 0);
    let mut judge = |case: &format::Case, result| expect_failure(case, result).inspect(|()| failed += 1);
    run_file(name, text, &mut BTreeMap::new(), &mut report, &mut judge);
    (report, failed)
}

/// Turns what came of a pending case round.
fn expect_failure(case: &format::Case, result: Result<(), String>) -> Result<(), String> {
    let number = case.name.rsplit_once("(issue ").and_then(|(_, rest)| rest.strip_suffix(')'));
    if number.is_none_or(|number| number.parse::<u32>().is_err()) {
        return Err("it names no issue".to_owned());
    }
    run::read(case)?;
    match result {
        Ok(()) => Err("it passes now: move it to `tests/vectors`".to_owned()),
        Err(_) => Ok(()),
    }
}

/// What to make of what came of a case.
type Judge<'a> = &'a mut dyn FnMut(&format::Case, Result<(), String>) -> Result<(), String>;

fn run_all(directory: &Path, judge: Judge<'_>) -> Report {
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
            Ok(text) => run_file(&name, &text, &mut seen, &mut report, judge),
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
            run_cases(&name, &file, &mut BTreeMap::new(), &mut report, &mut |_, result| result);
        }
        Err(error) => report.failures.push(format!("{name}: {error}")),
    }
    report
}

/// Runs the cases of one file, given as text.
pub fn run_text(name: &str, text: &str) -> Report {
    let mut report = Report::default();
    run_file(name, text, &mut BTreeMap::new(), &mut report, &mut |_, result| result);
    report
}

fn run_file(name: &str, text: &str, seen: &mut BTreeMap<String, String>, report: &mut Report, judge: Judge<'_>) {
    report.files += 1;
    match format::File::read(text) {
        Ok(file) => run_cases(name, &file, seen, report, judge),
        Err(error) => report.failures.push(format!("{name}: {error}")),
    }
}

fn run_cases(name: &str, file: &format::File, seen: &mut BTreeMap<String, String>, report: &mut Report, judge: Judge<'_>) {
    if file.cases.is_empty() {
        report.failures.push(format!("{name}: no case was found"));
    }
    for case in &file.cases {
        report.cases += 1;
        if let Some(other) = seen.insert(case.name.clone(), name.to_owned()) {
            report.failures.push(format!("{name}: `{}`: {other} has a case of the same name", case.name));
        }
        if let Err(failure) = judge(case, run::run(case)) {
            report.failures.push(format!("{name}: `{}`: {failure}", case.name));
        }
    }
}

/// Rewrites every file below a directory that was written for saves and restores. A case that does not pass as it is written then is a
/// failure; its words are rewritten all the same.
pub fn migrate_directory(directory: &Path) -> Report {
    let mut report = Report::default();
    let mut paths = Vec::new();
    if let Err(error) = find(directory, &mut paths) {
        report.failures.push(format!("{}: {error}", directory.display()));
    }
    paths.sort();
    for path in &paths {
        let name = path.strip_prefix(directory).unwrap_or(path).display().to_string();
        let migrated = fs::read_to_string(path).map_err(|error| error.to_string()).and_then(|text| migrate(&text));
        match migrated.and_then(|migrated| fs::write(path, &migrated.text).map(|()| migrated).map_err(|error| error.to_string())) {
            Ok(migrated) => {
                report.files += 1;
                report.cases += migrated.passed + migrated.failed.len();
                report.failures.extend(migrated.failed.into_iter().map(|failure| format!("{name}: {failure}")));
            }
            Err(error) => report.failures.push(format!("{name}: {error}")),
        }
    }
    report
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
