//! The client of one account. A client holds every call, purchase and session, and never touches a socket or a clock.
//!
//! A host drains [`Client::poll`] until [`Step::Wait`], carries out the steps, answers with [`Client::resolve`], and drains again. Extra
//! polls change nothing.

mod account;
mod begin;
mod deferred;
mod doubts;
mod drive;
mod end;
mod jobs;
mod names;
mod sessions;
mod text;

mod facts;
#[cfg(feature = "pools")]
mod for_pools;
mod news;
mod outbox;
mod public;
mod requests;
mod resolve;
mod router;
#[cfg(test)]
mod testing;
mod timers;
mod types;

pub use crate::contract::{Cheapest, OptionEntry, OptionKind, Taker};
pub use crate::engine::Until;
pub use crate::options::{CallOptions, ClientOptions, IfEnded};
pub use crate::state::{
    BadRecord, CommandId, Description, Listed, Name, RecordKind, Saved, SavedPage, Seen, Space, StepId, StoreAnswer, StoreCall, Verdict,
    VerdictName, Whose, describe,
};
pub use begin::order::{OrderReply, PlaceOrder};
pub use drive::{AsyncHost, Driven, Host, Responded, drive, drive_async};
#[cfg(feature = "pools")]
pub(crate) use news::{PoolEventKind, PoolFound, PoolNo, SlotState, WorkNo};
pub use public::Client;
pub use requests::Settlement;
pub use router::RESPONSE_HEADERS;
pub use sessions::session::{OpenSession, SessionReply};
pub use text::event::Event;
pub use text::pages::{PagesEnd, Position, Turn};
pub use types::*;

// Functions for bindings, which use texts instead of Rust's types; they are in no documentation.
#[doc(hidden)]
pub use crate::state::Memory;
#[doc(hidden)]
pub use text::host_text::host_text;
#[doc(hidden)]
pub use text::host_types::host_types;
#[doc(hidden)]
pub use text::json::{AnswerFacts, TakenText, facts_text, misfit_text, quote_from_text, quote_text};
#[doc(hidden)]
pub use text::pages::{page_params_text, page_turn_text};
