//! The inputs of a check. A check that has passed is not run again while its inputs are unchanged, except where everything is to be
//! checked.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::process::slug;
use crate::Fail;
use crate::cargo::{root, target};
use crate::check::Check;
use crate::profile::Profile;

/// The inputs of every check: the runner, and the files that the workspace is built from.
const ALWAYS: &[&str] = &["tests/xtask", "Cargo.toml", "Cargo.lock", ".cargo", "LICENSE-MIT", "LICENSE-APACHE"];
/// The contract and the test data beside the repository, where there are any.
const BESIDE: &str = "../shared";
/// The pages of the documentation, below a folder that most checks read: only those that name it read it.
const PAGES: &str = "core/docs";
/// The tools whose versions count.
const TOOLS: &[(&str, &str)] =
    &[("rustc", "-vV"), ("python3", "-VV"), ("node", "--version"), ("java", "-version"), ("swift", "--version"), ("chromium", "--version")];
/// The beginnings of the names of settings that count.
const SETTINGS: &[&str] = &["CARGO_PROFILE", "HOPLINE_", "RUST", "PYTHON"];
/// The setting that counts only for checks that read vectors: `cargo xtask vector` makes nothing anew by it.
const VECTORS: &str = "HOPLINE_VECTORS";

/// The digests of all that the checks read, by check.
pub(super) struct Inputs {
    digests: BTreeMap<&'static str, u64>,
}

impl Inputs {
    /// Reads the tree. Nothing where git can't tell which files belong to it.
    pub(super) fn read<'a>(checks: impl Iterator<Item = &'a Check>, profile: Profile) -> Option<Self> {
        let mut files = listed()?;
        walk(&root().join(BESIDE), &mut files);
        let contents: Vec<(PathBuf, u64)> =
            files.into_iter().filter_map(|path| Some((path.clone(), digest(std::fs::read(root().join(path)).ok()?)))).collect();
        let machine = digest(machine(profile));
        let mut digests = BTreeMap::new();
        for check in checks {
            let mut hasher = DefaultHasher::new();
            // The prerequisites of a check come before it in the list.
            let needed: Vec<&u64> = check.needs.iter().filter_map(|need| digests.get(need)).collect();
            let is_in = |path: &Path, folder: &str| path.starts_with(folder) && (!path.starts_with(PAGES) || folder.starts_with(PAGES));
            let reads = |path: &Path| ALWAYS.iter().chain(check.reads).any(|folder| is_in(path, folder));
            let vectors = std::env::var_os(VECTORS).filter(|_| reads(Path::new("tests/vectors")));
            (check.name, machine, needed, vectors).hash(&mut hasher);
            contents.iter().filter(|(path, _)| reads(path)).for_each(|file| file.hash(&mut hasher));
            digests.insert(check.name, hasher.finish());
        }
        Some(Inputs { digests })
    }

    /// True if the check has passed with its present inputs, and its products are still there.
    pub(super) fn are_known(&self, check: &Check) -> Result<bool, Fail> {
        let (target, place) = (target()?, place(check)?);
        let made = check.makes.iter().all(|made| target.join(made).exists());
        let digest = self.digests.get(check.name).map(u64::to_string);
        Ok(made && place.exists() && Some(std::fs::read_to_string(place)?) == digest)
    }

    /// Remembers that the check has passed.
    pub(super) fn keep(&self, check: &Check) -> Result<(), Fail> {
        let digest = self.digests.get(check.name).ok_or("the check is in no list")?;
        Ok(std::fs::write(place(check)?, digest.to_string())?)
    }
}

/// Forgets that a check has passed, before it begins: what it makes is not to be trusted until it has passed again.
pub(super) fn forget(check: &Check) -> Result<(), Fail> {
    let place = place(check)?;
    if place.exists() { Ok(std::fs::remove_file(place)?) } else { Ok(()) }
}

fn place(check: &Check) -> Result<PathBuf, Fail> {
    let folder = target()?.join("xtask/passed");
    std::fs::create_dir_all(&folder)?;
    Ok(folder.join(slug(check.name)))
}

/// The files of the repository that git knows or would know, by their paths in it.
fn listed() -> Option<Vec<PathBuf>> {
    let mut git = Command::new("git");
    git.args(["ls-files", "--cached", "--others", "--exclude-standard", "-z"]).current_dir(root());
    let told = git.stderr(Stdio::null()).output().ok().filter(|told| told.status.success())?;
    Some(String::from_utf8_lossy(&told.stdout).split_terminator('\0').map(PathBuf::from).collect())
}

/// The files below a folder, by their paths from the repository.
fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.path() {
            path if path.is_dir() => walk(&path, files),
            path => files.extend(path.strip_prefix(root()).map(Path::to_owned)),
        }
    }
}

/// The versions of the tools, and the settings that checks heed.
fn machine(profile: Profile) -> impl Hash {
    let told = |(tool, argument): &(&str, &str)| Command::new(tool).arg(argument).output().ok().map(|told| (told.stdout, told.stderr));
    let versions: Vec<_> = TOOLS.iter().map(told).collect();
    let counts = |name: &String| name != VECTORS && SETTINGS.iter().any(|beginning| name.starts_with(beginning));
    let settings: BTreeMap<String, String> = std::env::vars().filter(|(name, _)| counts(name)).collect();
    (profile.name(), versions, settings)
}

fn digest(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}
