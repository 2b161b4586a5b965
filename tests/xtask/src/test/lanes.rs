//! The lanes: what checks run side by side, and what they wait for.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::inputs::{self, Inputs};
use super::process;
use crate::Fail;
use crate::check::{Check, Lane, Outcome};
use crate::profile::Profile;

/// A check that is over.
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// How long it took; nothing where it was known to pass.
    pub(super) took: Option<Duration>,
}

/// The checks that are over so far, of which the waiting ones are told.
#[derive(Default)]
struct Progress {
    ended: Mutex<BTreeMap<&'static str, Ended>>,
    changed: Condvar,
}

/// Runs the checks, each lane in the order of the list, and says how each ended.
pub(super) fn run(checks: &[&Check], inputs: Option<&Inputs>, profile: Profile) -> BTreeMap<&'static str, Ended> {
    let progress = Progress::default();
    thread::scope(|scope| {
        for lane in Lane::ALL {
            let (progress, mine) = (&progress, checks.iter().filter(move |check| check.lane == lane));
            scope.spawn(move || mine.for_each(|check| progress.run(check, inputs, profile)));
        }
    });
    progress.ended.into_inner().unwrap_or_else(PoisonError::into_inner)
}

impl Progress {
    fn run(&self, check: &Check, inputs: Option<&Inputs>, profile: Profile) {
        let ended = match self.hindrance(check) {
            Some(outcome) => Ended { outcome, took: None },
            None if inputs.is_some_and(|inputs| inputs.are_known(check).unwrap_or(false)) => {
                println!("{}: passed before, and nothing that it reads has changed", check.name);
                Ended { outcome: Outcome::ONE, took: None }
            }
            None => work(check, inputs, profile).unwrap_or_else(|error| Ended { outcome: Outcome::Failed(error.to_string()), took: None }),
        };
        let mut all = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(check.name, ended);
        self.changed.notify_all();
    }

    /// Waits for what the check needs, and says why it can't be run if that has not passed.
    fn hindrance(&self, check: &Check) -> Option<Outcome> {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        for need in check.needs {
            while !ended.contains_key(need) {
                ended = self.changed.wait(ended).unwrap_or_else(PoisonError::into_inner);
            }
            match &ended[need].outcome {
                Outcome::Counted { failed: 0, .. } => {}
                Outcome::NotRun(why) => return Some(Outcome::NotRun(why.clone())),
                _ => return Some(Outcome::Failed(format!("it was not run, since it needs \"{need}\""))),
            }
        }
        None
    }
}

fn work(check: &Check, inputs: Option<&Inputs>, profile: Profile) -> Result<Ended, Fail> {
    inputs::forget(check)?;
    println!("{}: begun", check.name);
    let begun = Instant::now();
    let (outcome, printed) = process::run(check, profile);
    let took = begun.elapsed();
    let how = match &outcome {
        Outcome::Counted { failed: 0, .. } => "passed".to_owned(),
        Outcome::Counted { failed, .. } => format!("{failed} failed"),
        Outcome::NotRun(why) => format!("not run: {why}"),
        Outcome::Failed(how) => format!("failed: {how}"),
    };
    // In one piece, since the other lanes print as well.
    println!("\n== {}\n{}-- {}: {how}, after {} s\n", check.name, printed, check.name, took.as_secs());
    if let Some(inputs) = inputs.filter(|_| outcome.is_whole()) {
        inputs.keep(check)?;
    }
    Ok(Ended { outcome, took: Some(took) })
}
