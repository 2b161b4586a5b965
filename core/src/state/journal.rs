//! The names that this client owns or is about to: what is under each as far as it knows, and the steps of it, one out at a time, the
//! newest data last.

use std::collections::BTreeMap;

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
    /// A result that was not taken yet: the record goes when it is.
    Result,
}

/// What is to become of a name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Write {
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

impl Write {
    /// Whether the name is not this client's any more once it was done.
    fn lets_go(&self) -> bool {
        !matches!(self, Write::Put { release: false, .. })
    }

    /// This and then that, in one step: letting go of what is still to be written keeps that, anything else takes its place.
    fn then(self, next: Write) -> Write {
        match (self, next) {
            (Write::Put { data, keep_for, .. }, Write::Release) => Write::Put { data, keep_for, release: true },
            (Write::Delete, Write::Release) => Write::Delete,
            (_, next) => next,
        }
    }
}

/// What came of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Written {
    Done,
    Failed,
    Lost,
}

#[derive(Debug, Clone, Hash)]
struct Wanted {
    write: Write,
    /// The jobs that wait for it.
    waiters: Vec<JobId>,
    /// Whether it is tried again until it is done.
    insists: bool,
}

#[derive(Debug, Clone, Hash)]
enum Out {
    Claim {
        /// Whether it ended while its answer was under way.
        ended: bool,
    },
    Write(Box<Wanted>),
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
    next: Option<Box<Wanted>>,
    /// How often in a row the store has failed, and when it is tried again.
    failures: u32,
    resting: bool,
}

/// What is to be told of a step that was answered.
#[derive(Debug)]
pub(crate) struct Told {
    /// What came of it, and of what was to follow it.
    pub(crate) written: Written,
    /// The jobs that waited for it.
    pub(crate) waiters: Vec<JobId>,
    /// When it is tried again, in milliseconds from now.
    pub(crate) again: Option<Millis>,
    /// Who had the name and has it no more.
    pub(crate) lost: Option<User>,
    /// Whether a name that was to be made was there already.
    pub(crate) was_there: bool,
}

/// The names of this client.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Journal {
    /// Boxed, as a map's nodes have room for more than they hold.
    slots: BTreeMap<Name, Box<Slot>>,
}

impl Journal {
    pub(crate) fn slot(&self, name: &Name) -> Option<&Slot> {
        self.slots.get(name).map(|slot| &**slot)
    }

    /// What is this client's, or may be.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.slots.keys()
    }

    /// A name that nobody has: the first put makes it.
    pub(crate) fn make(&mut self, name: Name, user: User) {
        self.slots.insert(name, Box::new(Slot { user: Some(user), owned: true, new: true, ..Slot::default() }));
    }

    /// From now on it is used for this.
    pub(crate) fn give(&mut self, name: &Name, user: Option<User>) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.user = user;
        }
    }

    /// What uses it.
    pub(crate) fn user(&self, name: &Name) -> Option<&User> {
        self.slots.get(name)?.user.as_ref()
    }

    /// Whether it is this client's, for all that is known.
    pub(crate) fn is_owned(&self, name: &Name) -> bool {
        self.slots.get(name).is_some_and(|slot| slot.owned)
    }

    /// Whether a step of it is out, or is to go out, that was not tried before.
    pub(crate) fn is_busy(&self, name: &Name) -> bool {
        self.slots.get(name).is_some_and(|slot| slot.out.is_some() || (slot.next.is_some() && !slot.resting))
    }

    /// Whether it is about to be let go of, or may not be this client's.
    pub(crate) fn is_leaving(&self, name: &Name) -> bool {
        self.slots.get(name).is_some_and(|slot| {
            let out = slot.out.as_ref().is_some_and(|out| match out {
                Out::Claim { .. } => true,
                Out::Write(wanted) => wanted.write.lets_go(),
            });
            out || slot.next.as_ref().is_some_and(|next| next.write.lets_go())
        })
    }

    /// This is under it, or about to be put there.
    pub(crate) fn note(&mut self, name: &Name, data: &Data, version: Version) {
        if let Some(slot) = self.slots.get_mut(name) {
            (slot.puts, slot.version) = (data.puts, version);
            let is_only_named = data.session.as_ref().is_some_and(|session| session.only_named);
            slot.named_at = is_only_named.then(|| Box::new(data.at));
        }
    }

    /// It is to be claimed. False where it is this client's, or a step of it is out.
    pub(crate) fn claim(&mut self, name: &Name) -> bool {
        let slot = self.slots.entry(name.clone()).or_default();
        let free = !slot.owned && slot.out.is_none();
        if free {
            slot.out = Some(Out::Claim { ended: false });
        }
        free
    }

    /// Whether the claim that is out has ended before its answer came.
    pub(crate) fn has_ended(&self, name: &Name) -> bool {
        self.slots.get(name).is_some_and(|slot| matches!(slot.out, Some(Out::Claim { ended: true })))
    }

    /// A claim was answered. Whether it is this client's now, and the version of what is there.
    pub(crate) fn claimed(&mut self, name: &Name, owned: bool, version: Option<Version>) {
        let Some(slot) = self.slots.get_mut(name) else { return };
        (slot.out, slot.owned, slot.is_put) = (None, owned, version.is_some());
        (slot.puts, slot.version, slot.named_at) = (0, version.unwrap_or_default(), None);
        self.tidy(name);
    }

    /// Asks for a write; the newest counts, and whoever waits for an older one waits for it.
    pub(crate) fn want(&mut self, name: &Name, write: Write, waiter: Option<JobId>, insists: bool) {
        let Some(slot) = self.slots.get_mut(name).filter(|slot| slot.owned) else { return };
        let (write, mut waiters) = match slot.next.take() {
            Some(before) => (before.write.then(write), before.waiters),
            None => (write, Vec::new()),
        };
        waiters.extend(waiter);
        slot.resting = false;
        slot.next = Some(Box::new(Wanted { write, waiters, insists }));
    }

    /// The next step of it, if there is one and none is out.
    pub(crate) fn next(&mut self, name: &Name) -> Option<StoreCall> {
        let slot = self.slots.get_mut(name).filter(|slot| slot.out.is_none() && !slot.resting)?;
        let wanted = slot.next.take()?;
        let name = name.clone();
        let call = match wanted.write.clone() {
            Write::Put { data, keep_for, release } => StoreCall::Put { name, data, new: slot.new, keep_for, release },
            Write::Delete => StoreCall::Delete { name },
            Write::Release => StoreCall::Release { names: Some(vec![name]) },
        };
        slot.is_put |= matches!(call, StoreCall::Put { .. });
        slot.out = Some(Out::Write(wanted));
        Some(call)
    }

    /// The time has come to try again.
    pub(crate) fn wake(&mut self, name: &Name) {
        if let Some(slot) = self.slots.get_mut(name) {
            slot.resting = false;
        }
    }

    /// A write was answered.
    pub(crate) fn written(&mut self, name: &Name, written: Written) -> Told {
        let mut told = Told { written, waiters: Vec::new(), again: None, lost: None, was_there: false };
        let Some(slot) = self.slots.get_mut(name) else { return told };
        let Some(Out::Write(wanted)) = slot.out.take() else { return told };
        let Wanted { write, waiters, insists } = *wanted;
        told.waiters = waiters;
        if !slot.owned && slot.next.is_some() {
            // The name was lost meanwhile, and what was to follow can't be written any more.
            told.written = Written::Lost;
        }
        match told.written {
            Written::Done => {
                slot.failures = 0;
                // The name was lost meanwhile, and made all the same: it is let go of.
                if !slot.owned && slot.new && matches!(write, Write::Put { release: false, .. }) {
                    slot.owned = true;
                    slot.next = Some(Box::new(Wanted { write: Write::Release, waiters: Vec::new(), insists: true }));
                }
                if let Write::Put { .. } = write {
                    slot.new = false;
                }
                if write.lets_go() {
                    (slot.owned, slot.is_put, slot.user) = (false, false, None);
                }
            }
            Written::Failed => {
                let again = again_after(slot.failures);
                slot.failures = slot.failures.saturating_add(1);
                // Newer data takes its place; a name that is to be let go of is not, before this was written.
                let still_counts = slot.next.as_ref().is_none_or(|next| next.write == Write::Release);
                if insists && slot.owned && still_counts {
                    let write = match slot.next.take() {
                        Some(next) => write.then(next.write),
                        None => write,
                    };
                    slot.next = Some(Box::new(Wanted { write, waiters: Vec::new(), insists: true }));
                    (slot.resting, told.again) = (true, Some(again));
                }
            }
            Written::Lost => {
                told.was_there = slot.owned && slot.new && matches!(write, Write::Put { .. });
                told.lost = slot.user.take();
                told.waiters.extend(slot.next.take().map(|next| next.waiters).unwrap_or_default());
                (slot.owned, slot.is_put, slot.resting) = (false, false, false);
            }
        }
        self.tidy(name);
        told
    }

    /// The name is not this client's any more, says its host. Returns who had it. What was to be tried again is dropped; what waits for
    /// the answer to a step that is out is lost with that answer.
    pub(crate) fn lose(&mut self, name: &Name) -> Option<User> {
        let slot = self.slots.get_mut(name)?;
        if let Some(Out::Claim { ended }) = &mut slot.out {
            *ended = true;
        }
        slot.owned.then_some(())?;
        slot.owned = false;
        if slot.out.is_none() {
            slot.next = None;
        }
        let user = slot.user.take();
        self.tidy(name);
        user
    }

    fn tidy(&mut self, name: &Name) {
        if self.slots.get(name).is_some_and(|slot| !slot.owned && slot.out.is_none() && slot.next.is_none()) {
            self.slots.remove(name);
        }
    }
}
