//! The requests of a pool to the client below it. The machine notes them while it is told something, and they are carried out in their order
//! after that.

use arcstr::ArcStr;

use crate::client::{CallOptions, WorkNo};
use crate::engine::{Answered, EventKind, RecordId};
use crate::policy::Error;
use crate::state::{CommandId, Name};

/// A request of a pool.
#[derive(Debug)]
pub(in crate::pool) enum PoolAction {
    /// A caller's command ends.
    Complete(CommandId, Box<Result<Answered, Error>>),
    /// Something is new of the pool, for people.
    Notify(EventKind),
    /// An operation of the table begins.
    Start { work: WorkNo, operation: &'static str, params: String, options: Box<CallOptions> },
    /// What is under a slot goes on; where that is over, or nothing, this is bought.
    OpenSlot { work: WorkNo, slot: String, params: String, options: Box<CallOptions> },
    /// The record of a claimed slot goes on, and nothing is bought.
    ResumeSlot { work: WorkNo, name: Name, options: Box<CallOptions> },
    /// A renewal that is in doubt goes on.
    ResumeRenewal { work: WorkNo, record: RecordId },
    /// A purchase of which nothing was put is cancelled.
    Withdraw(WorkNo),
    /// Slots are claimed, at most `most` of these, those with something under them first.
    ClaimSlots { names: Vec<Name>, most: u32 },
    /// A slot that was claimed and not opened is let go of.
    ReleaseSlot(Name),
    /// The session of a slot is let go of.
    ReleaseSession(ArcStr),
    /// This is noted in the record of a slot's session; `writes`: now, and not with the next put.
    SetNotes { session: ArcStr, notes: Option<String>, writes: bool },
    /// The pool's record is claimed.
    ClaimRecord,
    /// The pool's record is put, and let go of.
    PutRecord(Vec<u8>),
    /// The pool's record is let go of as it is.
    ReleaseRecord,
    /// A page of what the store holds behind a name is read.
    List(Option<Name>),
}
