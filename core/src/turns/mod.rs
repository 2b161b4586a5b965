//! Who takes which step, for a host with several callers on one client.
//!
//! An *owner* is a caller's thread, a task, or the host's background work. Each waits for one command, does the work that its turns give it,
//! and takes the result. [`Turns`] is the distribution alone: it is told things, answers with values, and knows no client. [`Driver`] is a
//! client with its turns: every call that moves the client does so at once, so an interrupt of a caller falls before it or after it.

mod driver;
mod routing;
mod sends;

pub use self::driver::{Driver, Ended};
pub use self::routing::{OwnerKind, OwnerNo, Place, Turns};

use crate::client::{FailureKind, Millis};
use crate::state::{StepId, StoreCall};
use crate::wire::Request;

/// The next work of an owner.
#[derive(Debug, Clone, PartialEq)]
pub enum NextTurn {
    /// Make that call of the store.
    Ask {
        /// To answer with.
        step: StepId,
        /// The call.
        call: StoreCall,
    },
    /// Send a request.
    Send {
        /// To answer with.
        step: StepId,
        /// The request, the first time that the send is given out.
        request: Option<Request>,
        /// True if the owner sends by itself, and does nothing else before the answer. Otherwise the send is another one's work meanwhile.
        is_here: bool,
        /// Of a send that has not begun: how long the store may take to vouch for its claims, before [`Driver::begin`].
        patience: Option<Millis>,
    },
    /// Wait until that time, or (`None`) until woken.
    Wait(Option<Millis>),
    /// The owner's command has ended: read its results. Once they are surely the caller's, [`Driver::heard`] has the next turn, or the owner
    /// leaves. Until then they are kept, and a caller that is interrupted on its way back leaves them in the store.
    Ended,
    /// Nothing is left to do: leave.
    Done,
}

/// The work that a host is to do at once, beside the turn of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nudge {
    /// Wake an owner, which waits.
    Wake(OwnerNo),
    /// Let the background work begin, at that time.
    Look(Millis),
    /// Break off a send, which the client has as failed already; the last word says whether it had begun.
    Over(StepId, FailureKind, bool),
}
