//! Jobs: what is under way, what moves it on, and the places, caps and logins that it waits for.

pub(crate) mod charged;
pub(crate) mod entries;
pub(crate) mod job;
pub(crate) mod lifecycle;
pub(crate) mod login;
pub(crate) mod places;
pub(crate) mod run;
pub(crate) mod server_time;
pub(crate) mod shared_request;
pub(crate) mod spend;
pub(crate) mod spending;
