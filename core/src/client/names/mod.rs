//! Names, who waits for them, and what the store has under them.

pub(crate) mod claims;
pub(crate) mod deletion;
pub(crate) mod keep;
pub(crate) mod list;
pub(crate) mod name_queue;
pub(crate) mod name_requests;
pub(crate) mod read_record;
pub(crate) mod saved;
pub(crate) mod store_answers;
pub(crate) mod unavailable;
