//! The client: one for an account. It holds every call, purchase and session, and never touches a socket or a clock.
//!
//! A host drains [`Client::poll`] until [`Step::Wait`], does what the steps say, answers with [`Client::resolve`], and
//! drains again. Extra polls change nothing.

mod account;
mod admit;
mod ask;
mod away;
mod cancel;
mod drive;
mod ending;
mod errand;
mod finishing;
mod found;
mod holding;
mod host_text;
mod job;
mod json;
mod keep;
mod list;
mod login;
mod lookup;
mod lost;
mod members;
mod observe;
mod options;
mod order;
mod outbox;
mod pages;
mod people;
mod resolve;
mod root;
mod run;
mod session;
mod spend;
mod start;
#[cfg(test)]
mod testing;
mod timers;
mod types;
mod untaken;
mod waiting;

pub use crate::engine::Until;
pub use crate::state::{
    BadRecord, CommandId, Description, Holds, Listed, Name, Saved, SavedPage, Seen, Space, StepId, StoreAnswer, StoreCall, Verdict, Whose,
    describe,
};
pub use drive::{AsyncHost, Host, Responded, drive, drive_async};
pub use host_text::host_text;
pub use json::{TakenText, error_text, event_text, misfit_text, quote_text, verdict_text};
pub use list::{Resumed, SavedRecords};
pub use lookup::Reconcile;
pub use options::{CallOptions, ClientOptions};
pub use order::{OrderReply, PlaceOrder};
pub use pages::{PagesEnd, Position, Turn, page_params_text, page_turn_text};
pub use people::Acted;
pub use root::{Client, RESPONSE_HEADERS};
pub use session::{OpenSession, SessionReply};
pub use types::*;
pub use waiting::Settlement;
