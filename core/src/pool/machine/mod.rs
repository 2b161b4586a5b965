//! One pool in one client: who waits, which slots this client has, and what it does about them. [`root`] has its state and the order of
//! things; each other file is one part of what it does.

mod asking;
mod callers;
mod closing;
mod exits;
mod opened;
mod parts;
mod root;
mod shared;
mod sharing;
mod slots;
mod status;
mod takeover;

pub(super) use self::root::{Machine, call_options, is_closed};
