//! Jobs and commands end: what is kept, what is said, and when.

pub(crate) mod cancel;
pub(crate) mod commands;
pub(crate) mod ending;
pub(crate) mod results;
pub(crate) mod taken_over;
