//! One pool in one client: who waits, which slots this client has, and what it does about them. [`root`] has its state, [`turn`] what it
//! is told and the order of what it does; each other file is one part of that.

mod action;
mod asking;
mod callers;
mod closing;
mod exits;
mod input;
mod kept;
mod needs;
mod opened;
mod outcome;
mod parts;
mod root;
mod shared;
mod sharing;
mod slots;
mod status;
mod takeover;
mod turn;

pub(super) use self::action::PoolAction;
pub(super) use self::input::{FoundSlot, ListedPage, PoolInput};
pub(super) use self::root::{Machine, call_options, is_closed};
