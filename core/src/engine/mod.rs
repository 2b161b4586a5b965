//! The machines. Each waits for one thing at a time and takes its outcome as the next input; none of them knows a command, a record's name,
//! the store or a step of the drive contract.
//!
//! A job ([`Job`]) is a short script over parts: a part ends with [`Part::Done`] and its result, and the script begins the next one.

mod answer;
mod attempts;
mod call;
mod choice;
mod confirm;
mod context;
mod cost;
mod counted;
mod event;
mod exchange;
mod gate;
mod jobs;
mod key;
mod lookup;
mod machine;
mod order;
mod poller;
mod prices;
mod redact;
mod session;
mod status;
mod tokens;
mod until;
mod write;

pub use self::answer::{Answered, Phase};
pub(crate) use self::attempts::Attempts;
pub(crate) use self::call::TOO_LONG;
pub(crate) use self::choice::{Choice, SavedChoice};
pub(crate) use self::context::{Cx, DEADLINE, Known, Service, SessionOptions, Shared, Subject, WaitOptions};
pub(crate) use self::cost::Terms;
pub(crate) use self::counted::{Counted, pool_digest, pool_of, stored_entry, sum};
pub use self::event::{EVENTS, EventKind, EventName, RecordId};
pub(crate) use self::exchange::{Exchange, ExchangeResult, FailedSend};
pub(crate) use self::gate::{Gate, TRUSTED, Wake};
pub(crate) use self::jobs::open_session::{requested_protocol, requested_type};
pub(crate) use self::jobs::{Job, Place, Then};
pub(crate) use self::key::{Age, SavedAge};
pub(crate) use self::lookup::Lookup;
pub(crate) use self::machine::{Action, Bought, Grant, Input, Need, Note, SendResult, Stored};
pub(crate) use self::order::{Order, bad_order_no};
pub(crate) use self::session::Follow;
pub(crate) use self::status::{TERMINATED, is_over_for_good, is_over_until_renewed, phase_of, refuses_renewal, refuses_rotation};
pub(crate) use self::tokens::{LOGIN, Tokens};
pub use self::until::Until;
pub(crate) use self::write::Write;

#[cfg(test)]
pub(crate) mod testing;
