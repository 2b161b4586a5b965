//! The client: one for an account. It holds every call, purchase and session, and never touches a socket or a clock.
//!
//! A host drains [`Client::poll`] until [`Step::Wait`], does what the steps say, answers with [`Client::resolve`], and
//! drains again. Extra polls change nothing.

mod ask;
mod cancel;
mod drive;
mod ending;
mod errand;
mod guard;
mod host_text;
mod intent;
mod job;
mod json;
mod keep;
mod login;
mod lookup;
mod members;
mod observe;
mod options;
mod order;
mod pages;
mod refused;
mod resolve;
mod restore;
mod root;
mod run;
mod saved;
mod session;
mod settle;
mod start;
#[cfg(test)]
mod testing;
mod types;
mod untaken;

pub use crate::engine::Until;
pub use crate::state::{BadRecord, CommandId, Description, Holds, Saved, Seen, StepId, Verdict, describe};
pub use drive::{AsyncHost, Host, Responded, drive, drive_async};
pub use host_text::host_text;
pub use json::{TakenText, error_text, event_text, misfit_text, quote_text, verdict_text};
pub use lookup::Reconcile;
pub use options::{CallOptions, ClientOptions};
pub use order::{OrderReply, PlaceOrder};
pub use pages::{PagesEnd, Position, Turn, page_params_text, page_turn_text};
pub use restore::Restored;
pub use root::{Client, RESPONSE_HEADERS};
pub use session::{OpenSession, SessionReply};
pub use settle::Settlement;
pub use types::*;
