//! The weight of packages, beside the weight that was accepted last, in `tests/bench/sizes.txt`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::Fail;
use crate::cargo::root;
use crate::check::Outcome;

/// The measured sizes: a name and bytes.
pub(crate) type Weighed = Vec<(&'static str, u64)>;

/// How much larger than it was something may be before it has to be said, in percent.
const MORE: u64 = 2;

/// Checks that no package is larger than before, but for a little.
pub(crate) fn judge(weighed: &Weighed) -> Result<Outcome, Fail> {
    let known = known()?;
    let larger = weighed.iter().filter_map(|(what, bytes)| match known.get(*what) {
        Some(was) if *bytes <= was + was * MORE / 100 => None,
        Some(was) => Some(format!("{what} weighs {bytes} bytes and weighed {was}")),
        None => Some(format!("{what} weighs {bytes} bytes, and nothing says what it weighed")),
    });
    let larger: Vec<String> = larger.collect();
    match larger.as_slice() {
        [] => Ok(Outcome::ONE),
        larger => Ok(Outcome::Failed(format!(
            "{}; if that is worth it, `cargo xtask sizes --accept` keeps it in tests/bench/sizes.txt",
            larger.join("; ")
        ))),
    }
}

pub(crate) fn snapshot() -> PathBuf {
    root().join("tests/bench/sizes.txt")
}

pub(crate) fn known() -> Result<BTreeMap<String, u64>, Fail> {
    let text = std::fs::read_to_string(snapshot()).unwrap_or_default();
    let line = |line: &str| -> Result<(String, u64), Fail> {
        let (what, bytes) = line.split_once(": ").ok_or_else(|| format!("`{line}` of tests/bench/sizes.txt is not a name and a number"))?;
        Ok((what.to_owned(), bytes.parse()?))
    };
    text.lines().map(line).collect()
}
