//! The client of one account. A client holds every call, purchase and session, and never touches a socket or a clock.
//!
//! A host drains [`Client::poll`] until [`Step::Wait`], carries out the steps, answers with [`Client::resolve`], and drains again. Extra
//! polls change nothing.

mod account;
mod act;
mod admit;
mod ask;
mod away;
mod became;
mod cancel;
mod changes;
mod check;
mod deferred;
mod drive;
mod ending;

mod errand;
mod event;
mod finishing;
mod for_pools;
mod found;
mod free_doubts;
mod go_on;
mod holding;
mod host_params;
mod host_text;
mod host_types;
mod job;
mod jobs;
mod join;
mod json;
mod keep;
mod list;
mod login;
mod lost;
mod markers;
mod name_queue;
mod news;
mod observe;
mod order;
mod outbox;
mod pages;
mod places;
mod pool_record;
mod pool_slots;
mod public;
mod reclaim;
mod reconcile;
mod refused;
mod renewals;
mod resolve;
mod results;
mod resume;
mod resume_all;
mod router;
mod run;
mod same_request;
mod saved;
mod session;
mod settle;
mod spend;
mod start;
mod store_answers;
mod taken;
#[cfg(test)]
mod testing;
mod timers;
mod types;
mod visits;
mod wait_session;
mod waiting;

pub use crate::contract::{OptionEntry, OptionKind, Taker};
pub use crate::engine::Until;
pub use crate::options::{CallOptions, ClientOptions};
pub use crate::state::{
    BadRecord, CommandId, Description, Listed, Name, RecordKind, Saved, SavedPage, Seen, Space, StepId, StoreAnswer, StoreCall, Verdict,
    VerdictName, Whose, describe,
};
pub use act::Acted;
pub use drive::{AsyncHost, Driven, Host, Responded, drive, drive_async};
pub use event::Event;
pub(crate) use news::{NewsOf, PoolFound, PoolNo, Slot};
pub use order::{OrderReply, PlaceOrder};
pub use pages::{PagesEnd, Position, Turn};
pub use public::Client;
pub use reconcile::Reconcile;
pub use resume_all::Resumed;
pub use router::RESPONSE_HEADERS;
pub use saved::SavedRecords;
pub use session::{OpenSession, SessionReply};
pub use types::*;
pub use waiting::Settlement;

// Functions for bindings, which use texts instead of Rust's types; they are in no documentation.
#[doc(hidden)]
pub use crate::state::Memory;
#[doc(hidden)]
pub use host_text::host_text;
#[doc(hidden)]
pub use host_types::host_types;
#[doc(hidden)]
pub use json::{AnswerFacts, TakenText, facts_text, misfit_text, quote_from_text, quote_text};
#[doc(hidden)]
pub use pages::{page_params_text, page_turn_text};
