//! Commands begin: checked, let in by their names, joined to what is under way, or gone on with.

pub(crate) mod changes;
pub(crate) mod check;
pub(crate) mod go_on;
pub(crate) mod join;
pub(crate) mod next_purchase;
pub(crate) mod order;
pub(crate) mod resume;
pub(crate) mod resume_all;
pub(crate) mod same_request;
pub(crate) mod start;
pub(crate) mod terms;
pub(crate) mod wait_session;
