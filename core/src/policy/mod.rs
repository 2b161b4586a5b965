//! Decisions about answers and missing answers. Nothing here reads a clock or does I/O.
//!
#![doc = include_str!("codes.md")]

mod codes;
mod error;
mod exceptions;
mod http_clients;
mod judge;
mod ledger;
mod lookups;
mod products;
mod quote;
mod refusals;
mod retry;
mod rules;

pub(crate) use codes::meaning;
pub use codes::{Advice, Automatic, CODES, CodeRow, code};
pub use error::{ERROR, Effect, Error, ErrorFields, Kind};
pub(crate) use error::{INVALID_KEY, SESSION_NOT_FOUND, one_line};
pub(crate) use exceptions::{Exception, Interpretation, interpret};
pub(crate) use http_clients::{CHOSEN_PROTOCOL, HttpClient, protocol_of};
pub(crate) use judge::{Again, JudgeContext, Judgement, SendFailure, is_passing, is_passing_read, judge, look_advice};
pub use judge::{FailureKind, Sent};
pub(crate) use ledger::{KEY_WINDOW, Ledger};
pub(crate) use lookups::{LookupRead, lookups};
pub use products::{IpRange, is_shared_text, parse_ip_range};
pub use quote::{Quote, quote};
pub(crate) use quote::{is_usd, quote_of, times};
pub(crate) use refusals::Codes;
pub use retry::RetryPolicy;
pub(crate) use retry::{Backoff, CONFLICT, Quota, jittered};
pub use rules::Rule;
pub(crate) use rules::{Rules, rules};
