//! How time is measured: contenders take turns in rounds, since a machine changes its speed, and what counts is the ratio within a round.

use std::time::{Duration, Instant};

use serde::Serialize;

/// How much is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Enough for a figure.
    Full,
    /// Once and with little, for the result only.
    Once,
}

impl Scale {
    fn rounds(self) -> usize {
        if self == Scale::Full { 25 } else { 1 }
    }

    fn turn(self) -> Duration {
        if self == Scale::Full { Duration::from_millis(5) } else { Duration::ZERO }
    }

    /// A number of things, or few.
    pub(crate) fn many(self, things: u32) -> u32 {
        if self == Scale::Full { things } else { things.min(8) }
    }
}

/// One line of the table.
#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) work: String,
    /// Those of all rounds, or one where nothing is timed.
    pub(crate) figures: Vec<f64>,
    pub(crate) unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beside: Option<Beside>,
    /// The most that the ratio may be; the figure itself where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) goal: Option<f64>,
}

/// The peer in the same rounds.
#[derive(Serialize)]
pub(crate) struct Beside {
    pub(crate) what: String,
    pub(crate) figures: Vec<f64>,
}

/// Does some work, and says how many times it was done.
pub(crate) type Contender<'a> = Box<dyn FnMut() -> u32 + 'a>;

/// Microseconds that the work took, once: for each contender those of each round.
pub(crate) fn rounds(scale: Scale, contenders: &mut [Contender<'_>]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); contenders.len()];
    // The first round warms up.
    for round in 0..=scale.rounds() {
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let (begun, mut done) = (Instant::now(), 0);
            let took = loop {
                done += contender();
                let took = begun.elapsed();
                if took >= scale.turn() {
                    break took;
                }
            };
            if round > 0 {
                times.push(took.as_secs_f64() * 1e6 / f64::from(done));
            }
        }
    }
    times
}
