//! Names, who waits for them, and what the store has under them.

pub(crate) mod deletion;
pub(crate) mod name_queue;
pub(crate) mod name_requests;
pub(crate) mod read_record;
pub(crate) mod saved;
pub(crate) mod store_calls;
pub(crate) mod unavailable;
