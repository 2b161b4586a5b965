//! The things that people do about what the store holds.

pub(crate) mod act;
pub(crate) mod became;
pub(crate) mod reconcile;
pub(crate) mod settle;
