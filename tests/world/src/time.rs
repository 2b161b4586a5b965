//! The lengths of time that the scopes and the world use.

use hopline::client::Millis;

pub(crate) const HOUR: Millis = 3_600_000;
/// A night in which a machine sleeps and a key grows too old.
pub(crate) const NIGHT: Millis = 25 * HOUR;
/// From the beginning of a run into the next UTC day; a key is not too old by then.
pub(crate) const OVERNIGHT: Millis = 17 * HOUR;
/// Clocks that are an hour late or early.
pub(crate) const HOURS: &[Millis] = &[-HOUR, HOUR];
