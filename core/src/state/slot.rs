//! One name: its use, its data as far as this client knows, and its steps, one out at a time, the newest data last.

use arcstr::ArcStr;

use super::ids::PoolNo;
use super::names::{Name, Version};
use super::record::Data;
use super::store::{STORE_AGAIN, StoreCall};
use crate::time::{At, Millis};

/// A number that names a job inside the client.
pub(crate) type JobId = u32;

/// The use of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum User {
    /// A call, by its job.
    Job(JobId),
    /// A session with a handle, by its id.
    Session(ArcStr),
    /// The marker of a renewal, by its job.
    Marker(JobId),
    /// A slot of this pool, until the pool decides about it.
    Pool(PoolNo),
    /// A result that was not taken yet; taking it deletes the record.
    Result,
}

/// A write of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum StoreWrite {
    /// Puts this data.
    Put {
        data: Vec<u8>,
        keep_for: Option<Millis>,
        /// True if the name is released, since nothing here uses it any more.
        release: bool,
    },
    /// Deletes the data.
    Delete,
    /// Releases the name as it is.
    Release,
}

impl StoreWrite {
    /// Returns true if this client does not own the name any more after the write.
    fn lets_go(&self) -> bool {
        !matches!(self, StoreWrite::Put { release: false, .. })
    }

    /// Combines two writes into one step: a release of data that is still to be written keeps that data; any other write replaces the
    /// first.
    fn then(self, next: StoreWrite) -> StoreWrite {
        match (self, next) {
            (StoreWrite::Put { data, keep_for, .. }, StoreWrite::Release) => StoreWrite::Put { data, keep_for, release: true },
            (StoreWrite::Delete, StoreWrite::Release) => StoreWrite::Delete,
            (_, next) => next,
        }
    }
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum WriteResult {
    Done,
    Failed,
    /// The write failed, and was certainly not done.
    Never,
    Lost,
}

#[derive(Debug, Clone, Hash)]
struct QueuedWrite {
    write: StoreWrite,
    /// The jobs that wait for the write.
    waiters: Vec<JobId>,
    /// True if the write is tried again until it is done.
    insists: bool,
    /// True if data was under the name, or may have been, before this write went out.
    was_put: bool,
}

#[derive(Debug, Clone, Hash)]
enum Out {
    Claim {
        /// True if the claim ended while its answer was under way.
        ended: bool,
    },
    Write(Box<QueuedWrite>),
}

/// One name.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct NameEntry {
    pub(super) user: Option<User>,
    /// True if this client owns the name.
    owned: bool,
    /// True if the store is to make the name.
    new: bool,
    /// True if data was put under the name, or may have been.
    pub(super) is_put: bool,
    /// The number of puts under the name, and the version of the last one.
    pub(super) puts: u32,
    pub(super) version: Version,
    /// The moment of that put, for a session that only a person named.
    pub(super) named_at: Option<Box<At>>,
    out: Option<Out>,
    /// Boxed, since most names wait for nothing.
    next: Option<Box<QueuedWrite>>,
    /// The number of failures of the store in a row, and the time of the next attempt.
    failures: u32,
    resting: bool,
}

/// The consequences of an answer to a write.
#[derive(Debug)]
pub(crate) struct AfterWrite {
    /// The result of the write and of the one that was to follow it.
    pub(crate) result: WriteResult,
    /// The jobs that waited for it.
    pub(crate) waiters: Vec<JobId>,
    /// The time until the next attempt, in milliseconds.
    pub(crate) again: Option<Millis>,
    /// The use of the name, if the name was lost.
    pub(crate) lost: Option<User>,
    /// True if a name that was to be made was there already.
    pub(crate) was_there: bool,
}

impl AfterWrite {
    pub(super) fn new(result: WriteResult, waiters: Vec<JobId>) -> Self {
        AfterWrite { result, waiters, again: None, lost: None, was_there: false }
    }
}

impl NameEntry {
    /// A new name: the first put makes it.
    pub(super) fn made(user: Option<User>) -> Self {
        NameEntry { user, owned: true, new: true, ..NameEntry::default() }
    }

    /// Returns true if this client owns the name, as far as is known.
    pub(super) fn is_owned(&self) -> bool {
        self.owned
    }

    /// Returns true if nothing is left to know about the name.
    pub(super) fn is_idle(&self) -> bool {
        !self.owned && self.out.is_none() && self.next.is_none()
    }

    /// Returns true if a step is out, or a step that was not tried before is to go out.
    pub(super) fn is_busy(&self) -> bool {
        self.out.is_some() || (self.next.is_some() && !self.resting)
    }

    /// Returns true if a put that was to make the name has failed: a store whose calls may be late may still do it.
    pub(super) fn may_be_made_late(&self) -> bool {
        self.new && self.is_put
    }

    /// Returns true if a step is out.
    pub(super) fn is_out(&self) -> bool {
        self.out.is_some()
    }

    /// Returns true if the name is about to be released, or may belong to another client.
    pub(super) fn is_leaving(&self) -> bool {
        let out = self.out.as_ref().is_some_and(|out| match out {
            Out::Claim { .. } => true,
            Out::Write(queued) => queued.write.lets_go(),
        });
        out || self.next.as_ref().is_some_and(|next| next.write.lets_go())
    }

    /// Notes data that is under the name, or is about to be put there.
    pub(super) fn note(&mut self, data: &Data, version: Version) {
        (self.puts, self.version) = (data.puts, version);
        let is_unconfirmed = data.session.as_ref().is_some_and(|session| session.unconfirmed);
        self.named_at = is_unconfirmed.then(|| Box::new(data.at));
    }

    /// Begins a claim. Returns false if this client owns the name, or a step of it is out.
    pub(super) fn claim(&mut self) -> bool {
        let free = !self.owned && self.out.is_none();
        if free {
            self.out = Some(Out::Claim { ended: false });
        }
        free
    }

    /// Returns true if the claim that is out has ended before its answer came.
    pub(super) fn has_ended(&self) -> bool {
        matches!(self.out, Some(Out::Claim { ended: true }))
    }

    /// Takes the answer to a claim: whether this client owns the name now, and the version of its data.
    pub(super) fn claimed(&mut self, owned: bool, version: Option<Version>) {
        (self.out, self.owned, self.is_put) = (None, owned, version.is_some());
        (self.puts, self.version, self.named_at) = (0, version.unwrap_or_default(), None);
    }

    /// Requests a write. A newer write replaces an older one, and the jobs that wait for the older one then wait for it.
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

    /// Returns true if a step has failed and is tried again later.
    pub(super) fn is_resting(&self) -> bool {
        self.resting && self.next.is_some()
    }

    /// How long it rests after its last failure.
    pub(super) fn rest(&self) -> Millis {
        STORE_AGAIN.wait(self.failures.saturating_sub(1))
    }

    /// Lets a failed step be tried again.
    pub(super) fn wake(&mut self) {
        self.resting = false;
    }

    /// Takes the answer to a write.
    pub(super) fn written(&mut self, result: WriteResult) -> Option<AfterWrite> {
        let Some(Out::Write(queued)) = self.out.take() else { return None };
        let QueuedWrite { write, waiters, insists, was_put } = *queued;
        let was_lost = !self.owned;
        let result = match (result, &write) {
            // A store that was never opened has nothing of this client's.
            (WriteResult::Never, StoreWrite::Release) => WriteResult::Done,
            (WriteResult::Never, StoreWrite::Delete) => WriteResult::Failed,
            (WriteResult::Never, StoreWrite::Put { .. }) => {
                self.is_put = was_put;
                WriteResult::Failed
            }
            (result, _) => result,
        };
        // A put that makes a name makes this client its owner, even after the name was lost: then it is released.
        let may_be_made = was_lost && self.new && result != WriteResult::Lost && matches!(write, StoreWrite::Put { release: false, .. });
        // INVARIANT: the job that makes a name waits for that put, so no other write is requested before: a record that was to be deleted
        // is never only released.
        debug_assert!(!may_be_made || self.next.is_none(), "a name is made, and something else is wanted of it");
        let result = match result {
            // The following write can't be made any more.
            _ if was_lost && self.next.is_some() => WriteResult::Lost,
            // The data is deleted, but another client may have taken over before, and deleted it.
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

    /// Returns the delay of the next attempt, if there is one.
    fn failed(&mut self, write: StoreWrite, insists: bool) -> Option<Millis> {
        let again = STORE_AGAIN.wait(self.failures);
        self.failures = self.failures.saturating_add(1);
        // Newer data replaces this write; a release waits until this was written.
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

    /// Notes that this client does not own the name any more. Returns the name's use. A write that was to be tried again is dropped; the
    /// jobs that wait for a step that is out lose with its answer.
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
