//! A check that witnesses see what they are named for: the code that keeps a row is changed, in a copy of the workspace, and a witness of the
//! row must then fail.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::rows::{Repository, Row};
use crate::witness::{Witness, cargo};

/// A sample of fewer rows says too little.
const LEAST: usize = 30;
/// A case takes milliseconds; a changed program may never end.
const LIMIT: Duration = Duration::from_secs(60);

/// A change of the code after which a row no longer holds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mutation {
    /// The row, as `part: row`.
    pub(crate) row: String,
    /// The file of core that keeps it.
    pub(crate) file: String,
    /// The present text, once.
    pub(crate) text: String,
    /// The replacement.
    pub(crate) instead: String,
}

impl Mutation {
    fn apply(&self, root: &Path) -> Result<(PathBuf, String), String> {
        let path = root.join(&self.file);
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", self.file))?;
        match text.matches(&self.text).count() {
            1 => Ok((path, text.replacen(&self.text, &self.instead, 1))),
            times => Err(format!("`{}` is {times} times in {}, and is to be there once", self.text, self.file)),
        }
    }
}

/// The faults of the sample by itself: a change that can't be made, a row without a vector, a part of the contracts that is left out.
pub(crate) fn faults(root: &Path, repository: &Repository, rows: &[Row]) -> Vec<String> {
    let mut faults = Vec::new();
    for mutation in &repository.mutations {
        if mutation.text == mutation.instead {
            faults.push(format!("the mutation of `{}` changes nothing", mutation.row));
        }
        if vectors(rows, mutation).is_empty() {
            faults.push(format!("`{}` is no row that a vector shows, and so no mutation can be tried on it", mutation.row));
        }
        if let Err(error) = mutation.apply(root) {
            faults.push(format!("the mutation of `{}`: {error}; name where the row is kept now", mutation.row));
        }
    }
    let sampled: BTreeSet<&str> = repository.mutations.iter().filter_map(|mutation| Some(mutation.row.split_once(": ")?.0)).collect();
    let parts: BTreeSet<&str> = repository.contracts.iter().flat_map(|contract| &contract.rows).map(|row| row.part.as_str()).collect();
    faults.extend(parts.difference(&sampled).map(|part| format!("no mutation is of a row of `{part}`")));
    if repository.mutations.len() < LEAST {
        faults.push(format!("there are {} mutations, fewer than {LEAST}", repository.mutations.len()));
    }
    faults
}

/// The vectors that show the row of a mutation.
fn vectors<'a>(rows: &'a [Row], mutation: &Mutation) -> Vec<&'a Witness> {
    let row = rows.iter().find(|row| row.to_string() == mutation.row);
    row.into_iter().flat_map(|row| &row.shown_by).filter(|witness| matches!(witness, Witness::Vector { .. })).collect()
}

/// The mutations of the rows with a text in them; so many of all, if it is a number; or all.
pub(crate) fn chosen<'a>(all: &'a [Mutation], which: Option<&str>) -> Result<Vec<&'a Mutation>, String> {
    let chosen: Vec<&Mutation> = match which.map(|which| (which, which.parse::<usize>())) {
        None => all.iter().collect(),
        // Spread over the list, and so over the contracts.
        Some((_, Ok(count))) => (0..count.min(all.len())).map(|at| &all[at * all.len() / count.min(all.len())]).collect(),
        Some((text, Err(_))) => all.iter().filter(|mutation| mutation.row.contains(text)).collect(),
    };
    if chosen.is_empty() { Err("no mutation was chosen".to_owned()) } else { Ok(chosen) }
}

/// Makes the changes, one after the other, and says of each which witness fails. The error says what went wrong.
pub(crate) fn run(root: &Path, rows: &[Row], chosen: &[&Mutation]) -> Result<(), String> {
    let copy = Copy::new(root)?;
    copy.build()?;
    for mutation in chosen {
        for witness in vectors(rows, mutation) {
            if !copy.holds(witness)? {
                return Err(format!("{witness} fails before anything is changed"));
            }
        }
    }
    let mut missed = 0;
    for mutation in chosen {
        let begun = Instant::now();
        let by = copy.with(mutation, || {
            for witness in vectors(rows, mutation) {
                if !copy.holds(witness)? {
                    return Ok(Some(witness));
                }
            }
            Ok(None)
        })?;
        missed += usize::from(by.is_none());
        let told = by.map_or_else(|| format!("NOT CAUGHT: `{}` for `{}`", mutation.instead, mutation.text), |by| format!("caught by {by}"));
        println!("{} ({} s)\n  {told}", mutation.row, begun.elapsed().as_secs());
    }
    println!("{} mutations, {missed} not caught", chosen.len());
    if missed == 0 { Ok(()) } else { Err(format!("{missed} of {} mutations were not caught", chosen.len())) }
}

/// A copy of the workspace with a target folder of its own.
struct Copy {
    tree: PathBuf,
    build: PathBuf,
}

impl Copy {
    /// Copies what git knows or would add into Cargo's target folder.
    fn new(root: &Path) -> Result<Copy, String> {
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let place = own.ancestors().nth(2).ok_or("this program is in no target folder; start it with `cargo xtask`")?.join("coverage");
        let copy = Copy { tree: place.join("tree"), build: place.join("build") };
        let fail = |error: std::io::Error| format!("the workspace can't be copied: {error}");
        if copy.tree.exists() {
            fs::remove_dir_all(&copy.tree).map_err(fail)?;
        }
        let listed = Command::new("git").args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"]).current_dir(root).output();
        for file in String::from_utf8_lossy(&listed.map_err(fail)?.stdout).split_terminator('\0') {
            let (from, to) = (root.join(file), copy.tree.join(file));
            // A file that is deleted and not committed is still listed.
            if from.is_file() {
                fs::create_dir_all(to.parent().unwrap_or(&copy.tree)).and_then(|()| fs::copy(from, to)).map_err(fail)?;
            }
        }
        Ok(copy)
    }

    /// Builds the runner of the vectors as quickly as can be: it runs for a moment only.
    fn build(&self) -> Result<(), String> {
        let mut command = cargo(&self.tree);
        command.args(["build", "--quiet", "--locked", "--package", "hopline-host-rust", "--bin", "hopline-vectors"]);
        command.args(["--config", "profile.dev.package.hopline.opt-level=0"]);
        // A change may leave something unused, which is nothing to hear of.
        command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("RUSTFLAGS", "-Awarnings").env("CARGO_TARGET_DIR", &self.build);
        let built = command.status().map_err(|error| error.to_string())?;
        if built.success() { Ok(()) } else { Err("the copy does not compile; what cargo said is above".to_owned()) }
    }

    /// Returns true if a case passes. One that does not end does not.
    fn holds(&self, witness: &Witness) -> Result<bool, String> {
        let Witness::Vector { file, case } = witness else { return Err(format!("{witness} is no vector")) };
        let mut command = Command::new(self.build.join("debug/hopline-vectors").with_extension(std::env::consts::EXE_EXTENSION));
        command.arg(self.tree.join("tests/vectors").join(file)).arg(case).stdout(Stdio::null()).stderr(Stdio::null());
        let fail = |error: std::io::Error| format!("{witness}: {error}");
        let (mut child, begun) = (command.spawn().map_err(fail)?, Instant::now());
        loop {
            match child.try_wait().map_err(fail)? {
                Some(status) => return Ok(status.success()),
                None if begun.elapsed() > LIMIT => {
                    child.kill().and_then(|()| child.wait()).map_err(fail)?;
                    return Ok(false);
                }
                None => sleep(Duration::from_millis(5)),
            }
        }
    }

    /// Does something while a change is made and built, and takes the change back.
    fn with<T>(&self, mutation: &Mutation, then: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let (path, changed) = mutation.apply(&self.tree)?;
        let fail = |error: std::io::Error| format!("{}: {error}", path.display());
        let before = fs::read(&path).map_err(fail)?;
        fs::write(&path, changed).map_err(fail)?;
        let done = self.build().map_err(|error| format!("`{}`: {error}", mutation.row)).and_then(|()| then());
        fs::write(&path, before).map_err(fail)?;
        done
    }
}
