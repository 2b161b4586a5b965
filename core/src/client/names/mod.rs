//! Names, who waits for them, and what the store has under them.

pub(crate) mod away;
pub(crate) mod found;
pub(crate) mod keep;
pub(crate) mod list;
pub(crate) mod name_queue;
pub(crate) mod saved;
pub(crate) mod store_answers;
pub(crate) mod visits;
