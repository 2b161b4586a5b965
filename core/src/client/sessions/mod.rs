//! What is known of sessions, who has them, and the renewals and slots that their names stand for.

pub(crate) mod free_doubts;
pub(crate) mod holding;
pub(crate) mod markers;
pub(crate) mod observe;
pub(crate) mod pool_record;
pub(crate) mod pool_slots;
pub(crate) mod reclaim;
pub(crate) mod renewals;
pub(crate) mod session;
