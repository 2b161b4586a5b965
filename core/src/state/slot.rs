//! One name: what it is used for, what is under it as far as this client knows, and its steps, one out at a time, the newest data last.

use arcstr::ArcStr;

use super::names::{Name, Version};
use super::record::Data;
use super::store::{StoreCall, again_after};
use crate::time::{At, Millis};

/// A number that names a job inside the client.
pub(crate) type JobId = u32;

/// What a name is used for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum User {
    /// A call, by its job.
    Job(JobId),
    /// A session that is held, by its id.
    Session(ArcStr),
    /// The marker of a renewal, by its job.
    Marker(JobId),
    /// A slot of a pool, until the pool says what it does with it.
    Pool,
    /// A result that was not taken yet: the record goes when it is.
    Result,
}

/// What is to become of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum StoreWrite {
    /// This is under it from now on.
    Put {
        data: Vec<u8>,
        keep_for: Option<Millis>,
        /// Nobody here uses it any more.
        release: bool,
    },
    /// Nothing is.
    Delete,
    /// It is anybody's, as it is.
    Release,
}

impl StoreWrite {
    /// Whether the name is not this client's any more once it was done.
    fn lets_go(&self) -> bool {
        !matches!(self, StoreWrite::Put { release: false, .. })
    }

    /// This and then that, in one step: letting go of what is still to be written keeps that, anything else takes its place.
    fn then(self, next: StoreWrite) -> StoreWrite {
        match (self, next) {
            (StoreWrite::Put { data, keep_for, .. }, StoreWrite::Release) => StoreWrite::Put { data, keep_for, release: true },
            (StoreWrite::Delete, StoreWrite::Release) => StoreWrite::Delete,
            (_, next) => next,
        }
    }
}

/// What came of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WriteResult {
    Done,
    Failed,
    /// It failed, and was surely not done.
    Never,
    Lost,
}

#[derive(Debug, Clone, Hash)]
struct QueuedWrite {
    write: StoreWrite,
    /// The jobs that wait for it.
    waiters: Vec<JobId>,
    /// Whether it is tried again until it is done.
    insists: bool,
    /// Whether something was under the name, or may have been, before this went out.
    was_put: bool,
}

#[derive(Debug, Clone, Hash)]
enum Out {
    Claim {
        /// Whether it ended while its answer was under way.
        ended: bool,
    },
    Write(Box<QueuedWrite>),
}

/// One name.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Slot {
    pub(crate) user: Option<User>,
    /// Whether it is this client's.
    owned: bool,
    /// Whether the store is to make it.
    new: bool,
    /// Whether something was put under it, or may have been.
    pub(crate) is_put: bool,
    /// How often something was put under it, and the version of what was put last.
    pub(crate) puts: u32,
    pub(crate) version: Version,
    /// When that was, of a session that only a person named.
    pub(crate) named_at: Option<Box<At>>,
    out: Option<Out>,
    /// Boxed, as most names wait for nothing.
    next: Option<Box<QueuedWrite>>,
    /// How often in a row the store has failed, and when it is tried again.
    failures: u32,
    resting: bool,
}

/// What follows from the answer to a write.
#[derive(Debug)]
pub(crate) struct AfterWrite {
    /// What came of it, and of what was to follow it.
    pub(crate) result: WriteResult,
    /// The jobs that waited for it.
    pub(crate) waiters: Vec<JobId>,
    /// When it is tried again, in milliseconds from now.
    pub(crate) again: Option<Millis>,
    /// Who had the name and has it no more.
    pub(crate) lost: Option<User>,
    /// Whether a name that was to be made was there already.
    pub(crate) was_there: bool,
}

impl AfterWrite {
    pub(super) fn new(result: WriteResult, waiters: Vec<JobId>) -> Self {
        AfterWrite { result, waiters, again: None, lost: None, was_there: false }
    }
}

impl Slot {
    /// A name that nobody has: the first put makes it.
    pub(super) fn made(user: Option<User>) -> Self {
        Slot { user, owned: true, new: true, ..Slot::default() }
    }

    /// Whether the name is this client's, for all that is known.
    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// Whether nothing is to be known of the name any more.
    pub(super) fn is_idle(&self) -> bool {
        !self.owned && self.out.is_none() && self.next.is_none()
    }

    /// Whether a step is out, or is to go out, that was not tried before.
    pub(super) fn is_busy(&self) -> bool {
        self.out.is_some() || (self.next.is_some() && !self.resting)
    }

    /// Whether a put that was to make the name has failed: a store whose calls may be late may still do it.
    pub(super) fn may_be_made_late(&self) -> bool {
        self.new && self.is_put
    }

    /// Whether a step is out.
    pub(super) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// Whether the name is about to be let go of, or may not be this client's.
    pub(super) fn is_leaving(&self) -> bool {
        let out = self.out.as_ref().is_some_and(|out| match out {
            Out::Claim { .. } => true,
            Out::Write(queued) => queued.write.lets_go(),
        });
        out || self.next.as_ref().is_some_and(|next| next.write.lets_go())
    }

    /// This is under it, or about to be put there.
    pub(super) fn note(&mut self, data: &Data, version: Version) {
        (self.puts, self.version) = (data.puts, version);
        let is_only_named = data.session.as_ref().is_some_and(|session| session.only_named);
        self.named_at = is_only_named.then(|| Box::new(data.at));
    }

    /// It is to be claimed. False where it is this client's, or a step of it is out.
    pub(super) fn claim(&mut self) -> bool {
        let free = !self.owned && self.out.is_none();
        if free {
            self.out = Some(Out::Claim { ended: false });
        }
        free
    }

    /// Whether the claim that is out has ended before its answer came.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.out, Some(Out::Claim { ended: true }))
    }

    /// A claim was answered. Whether it is this client's now, and the version of what is there.
    pub(super) fn claimed(&mut self, owned: bool, version: Option<Version>) {
        (self.out, self.owned, self.is_put) = (None, owned, version.is_some());
        (self.puts, self.version, self.named_at) = (0, version.unwrap_or_default(), None);
    }

    /// Asks for a write; the newest counts, and whoever waits for an older one waits for it.
    pub(super) fn want(&mut self, write: StoreWrite, waiter: Option<JobId>, insists: bool) {
        let (write, mut waiters) = match self.next.take() {
            Some(before) => (before.write.then(write), before.waiters),
            None => (write, Vec::new()),
        };
        waiters.extend(waiter);
        self.resting = false;
        self.next = Some(Box::new(QueuedWrite { write, waiters, insists, was_put: false }));
    }

    /// The next step, if there is one and none is out.
    pub(super) fn next(&mut self, name: &Name) -> Option<StoreCall> {
        if self.out.is_some() || self.resting {
            return None;
        }
        let queued = self.next.take()?;
        let name = name.clone();
        let call = match queued.write.clone() {
            StoreWrite::Put { data, keep_for, release } => StoreCall::Put { name, data, new: self.new, keep_for, release },
            StoreWrite::Delete => StoreCall::Delete { name },
            StoreWrite::Release => StoreCall::Release { names: Some(vec![name]) },
        };
        self.out = Some(Out::Write(Box::new(QueuedWrite { was_put: self.is_put, ..*queued })));
        self.is_put |= matches!(call, StoreCall::Put { .. });
        Some(call)
    }

    /// The time has come to try again.
    pub(super) fn wake(&mut self) {
        self.resting = false;
    }

    /// A write was answered.
    pub(super) fn written(&mut self, result: WriteResult) -> Option<AfterWrite> {
        let Some(Out::Write(queued)) = self.out.take() else { return None };
        let QueuedWrite { write, waiters, insists, was_put } = *queued;
        let was_lost = !self.owned;
        let result = match (result, &write) {
            // A store that was never opened holds nothing of this client's.
            (WriteResult::Never, StoreWrite::Release) => WriteResult::Done,
            (WriteResult::Never, StoreWrite::Delete) => WriteResult::Failed,
            (WriteResult::Never, StoreWrite::Put { .. }) => {
                self.is_put = was_put;
                WriteResult::Failed
            }
            (result, _) => result,
        };
        // A put that makes a name makes it this client's, also after it was lost: then it is let go of.
        let may_be_made = was_lost && self.new && result != WriteResult::Lost && matches!(write, StoreWrite::Put { release: false, .. });
        // INVARIANT: whoever makes a name waits for that put, so nothing else is wanted of the name before: no record that was to be
        // deleted is only let go of.
        debug_assert!(!may_be_made || self.next.is_none(), "a name is made, and something else is wanted of it");
        let result = match result {
            // What was to follow can't be written any more.
            _ if was_lost && self.next.is_some() => WriteResult::Lost,
            // It is gone. But another client may have gone on with it, and deleted it.
            WriteResult::Done if was_lost && write == StoreWrite::Delete => WriteResult::Lost,
            result => result,
        };
        let mut after = AfterWrite::new(result, waiters);
        match result {
            WriteResult::Done => self.done(&write),
            WriteResult::Failed | WriteResult::Never => after.again = self.failed(write, insists),
            WriteResult::Lost => {
                after.was_there = self.owned && self.new && matches!(write, StoreWrite::Put { .. });
                after.lost = self.user.take();
                after.waiters.extend(self.next.take().map(|next| next.waiters).unwrap_or_default());
                (self.owned, self.is_put, self.resting) = (false, false, false);
            }
        }
        if may_be_made {
            self.owned = true;
            self.want(StoreWrite::Release, None, true);
        }
        Some(after)
    }

    fn done(&mut self, write: &StoreWrite) {
        self.failures = 0;
        if let StoreWrite::Put { .. } = write {
            self.new = false;
        }
        if write.lets_go() {
            (self.owned, self.is_put, self.user) = (false, false, None);
        }
    }

    /// Where it is to be tried again, says when.
    fn failed(&mut self, write: StoreWrite, insists: bool) -> Option<Millis> {
        let again = again_after(self.failures);
        self.failures = self.failures.saturating_add(1);
        // Newer data takes its place; a name that is to be let go of is not, before this was written.
        let still_counts = self.next.as_ref().is_none_or(|next| next.write == StoreWrite::Release);
        if !insists || !self.owned || !still_counts {
            return None;
        }
        let write = match self.next.take() {
            Some(next) => write.then(next.write),
            None => write,
        };
        self.next = Some(Box::new(QueuedWrite { write, waiters: Vec::new(), insists: true, was_put: false }));
        self.resting = true;
        Some(again)
    }

    /// The name is not this client's any more, says its host. Returns who had it. What was to be tried again is dropped; what waits for
    /// the answer to a step that is out is lost with that answer.
    pub(super) fn lose(&mut self) -> Option<User> {
        if let Some(Out::Claim { ended }) = &mut self.out {
            *ended = true;
        }
        self.owned.then_some(())?;
        self.owned = false;
        if self.out.is_none() {
            self.next = None;
        }
        self.user.take()
    }
}
