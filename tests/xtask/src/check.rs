//! A check: what it is called, what it needs, and what it ends with.

use serde_json::{Value, json};

use crate::Fail;
use crate::profile::Profile;

/// The name of the check that builds the sandbox, the peers and bindgen.
pub(crate) const PROGRAMS: &str = "the programs that all hosts share";

/// A part of `cargo xtask test`. Each check runs in a process of its own.
pub(crate) struct Check {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its lane: the checks of one lane follow one another, and the lanes run side by side.
    pub(crate) lane: Lane,
    /// The check; packages are built with that profile.
    pub(crate) run: fn(Profile) -> Result<Outcome, Fail>,
    /// The checks that must have passed before it begins.
    pub(crate) needs: &'static [&'static str],
    /// The files and folders of the repository that it reads, beside those of the checks that it needs.
    pub(crate) reads: &'static [&'static str],
    /// The files that must lie in the target folder afterwards, for others to use.
    pub(crate) makes: &'static [&'static str],
}

impl Check {
    pub(crate) const fn new(lane: Lane, name: &'static str, run: fn(Profile) -> Result<Outcome, Fail>) -> Self {
        Check { name, lane, run, needs: &[], reads: &[], makes: &[] }
    }

    pub(crate) const fn needs(self, needs: &'static [&'static str]) -> Self {
        Check { needs, ..self }
    }

    pub(crate) const fn reads(self, reads: &'static [&'static str]) -> Self {
        Check { reads, ..self }
    }

    pub(crate) const fn makes(self, makes: &'static [&'static str]) -> Self {
        Check { makes, ..self }
    }
}

/// The lanes that run side by side.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    /// Rust's own checks.
    Rust,
    /// The wheel, the sandbox's packages and the site.
    Python,
    /// The downloads of all hosts, which wait for the network more than for the processor; then the other hosts, one after the other.
    Others,
}

impl Lane {
    pub(crate) const ALL: [Lane; 3] = [Lane::Rust, Lane::Python, Lane::Others];
}

/// The result of a check.
pub(crate) enum Outcome {
    /// So many things passed, failed, and were left out.
    Counted { passed: u32, failed: u32, ignored: u32 },
    /// The check could not be run here, with the reason.
    NotRun(String),
    /// The check failed, with the reason.
    Failed(String),
}

impl Outcome {
    /// One thing passed.
    pub(crate) const ONE: Outcome = Outcome::Counted { passed: 1, failed: 0, ignored: 0 };

    /// True if all of it was run, and passed.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Outcome::Counted { failed: 0, ignored: 0, .. })
    }

    /// The JSON that the process of a check hands to its starter.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Outcome::Counted { passed, failed, ignored } => json!({ "passed": passed, "failed": failed, "ignored": ignored }),
            Outcome::NotRun(why) => json!({ "not_run": why }),
            Outcome::Failed(how) => json!({ "went_wrong": how }),
        }
    }

    /// Reads it back.
    pub(crate) fn from_json(value: &Value) -> Option<Outcome> {
        let count = |name: &str| value[name].as_u64().and_then(|number| u32::try_from(number).ok());
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        text("not_run")
            .map(Outcome::NotRun)
            .or(text("went_wrong").map(Outcome::Failed))
            .or_else(|| Some(Outcome::Counted { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_comes_back_as_it_went() {
        let all = [
            Outcome::Counted { passed: 3, failed: 2, ignored: 1 },
            Outcome::NotRun("no Swift".to_owned()),
            Outcome::Failed("it ended".to_owned()),
        ];
        for outcome in all {
            let json = outcome.to_json();
            assert_eq!(Outcome::from_json(&json).map(|back| back.to_json()), Some(json));
        }
        assert!(Outcome::from_json(&json!({ "passed": 3 })).is_none());
    }
}
