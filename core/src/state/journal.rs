//! The names that this client owns or is about to.

use super::names::{Name, Version};
use super::record::Data;
use super::slot::{AfterWrite, JobId, Slot, StoreWrite, User, WriteResult};
use super::store::StoreCall;
use crate::collections::Map;

/// The names of this client.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Journal {
    /// Boxed, as a map's lists have room for more than they hold.
    slots: Map<Name, Box<Slot>>,
    /// Whether the store may do a call later than it was given up.
    late_calls: bool,
}

impl Journal {
    pub(crate) fn new(late_calls: bool) -> Self {
        Journal { slots: Map::default(), late_calls }
    }

    pub(crate) fn slot(&self, name: &Name) -> Option<&Slot> {
        self.slots.get(name).map(|slot| &**slot)
    }

    fn slot_mut(&mut self, name: &Name) -> Option<&mut Slot> {
        self.slots.get_mut(name).map(|slot| &mut **slot)
    }

    /// What is this client's, or may be.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.slots.keys()
    }

    /// A name that nobody has: the first put makes it.
    pub(crate) fn make(&mut self, name: Name, user: Option<User>) {
        self.slots.insert(name, Box::new(Slot::made(user)));
    }

    /// From now on it is used for this.
    pub(crate) fn give(&mut self, name: &Name, user: Option<User>) {
        if let Some(slot) = self.slot_mut(name) {
            slot.user = user;
        }
    }

    /// What uses it.
    pub(crate) fn user(&self, name: &Name) -> Option<&User> {
        self.slot(name)?.user.as_ref()
    }

    /// Whether it is this client's, for all that is known.
    pub(crate) fn is_owned(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(Slot::is_owned)
    }

    /// Whether a step of it is out, or is to go out, that was not tried before.
    pub(crate) fn is_busy(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(Slot::is_busy)
    }

    /// Whether the name may be made though the put that was to make it has failed, and it is deleted by then.
    pub(crate) fn may_be_made_late(&self, name: &Name) -> bool {
        self.late_calls && self.slot(name).is_some_and(Slot::may_be_made_late)
    }

    /// Whether a step of it is out.
    pub(crate) fn is_out(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(Slot::is_out)
    }

    /// Whether it is about to be let go of, or may not be this client's.
    pub(crate) fn is_leaving(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(Slot::is_leaving)
    }

    /// This is under it, or about to be put there.
    pub(crate) fn note(&mut self, name: &Name, data: &Data, version: Version) {
        if let Some(slot) = self.slot_mut(name) {
            slot.note(data, version);
        }
    }

    /// It is to be claimed. False where it is this client's, or a step of it is out.
    pub(crate) fn claim(&mut self, name: &Name) -> bool {
        self.slots.get_or_insert_with(name.clone(), Box::default).claim()
    }

    /// Whether the claim that is out has ended before its answer came.
    pub(crate) fn has_ended(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(Slot::has_ended)
    }

    /// A claim was answered. Whether it is this client's now, and the version of what is there.
    pub(crate) fn claimed(&mut self, name: &Name, owned: bool, version: Option<Version>) {
        if let Some(slot) = self.slot_mut(name) {
            slot.claimed(owned, version);
        }
        self.tidy(name);
    }

    /// Asks for a write of a name that is this client's; the newest counts, and whoever waits for an older one waits for it.
    pub(crate) fn want(&mut self, name: &Name, write: StoreWrite, waiter: Option<JobId>, insists: bool) {
        if let Some(slot) = self.slot_mut(name).filter(|slot| slot.is_owned()) {
            slot.want(write, waiter, insists);
        }
    }

    /// The next step of it, if there is one and none is out.
    pub(crate) fn next(&mut self, name: &Name) -> Option<StoreCall> {
        self.slot_mut(name)?.next(name)
    }

    /// The time has come to try again.
    pub(crate) fn wake(&mut self, name: &Name) {
        if let Some(slot) = self.slot_mut(name) {
            slot.wake();
        }
    }

    /// A write was answered.
    pub(crate) fn written(&mut self, name: &Name, result: WriteResult) -> AfterWrite {
        let after = self.slot_mut(name).and_then(|slot| slot.written(result));
        self.tidy(name);
        after.unwrap_or_else(|| AfterWrite::new(result, Vec::new()))
    }

    /// The name is not this client's any more, says its host. Returns who had it.
    pub(crate) fn lose(&mut self, name: &Name) -> Option<User> {
        let user = self.slot_mut(name)?.lose();
        self.tidy(name);
        user
    }

    /// A name of which nothing is to be known any more is forgotten.
    fn tidy(&mut self, name: &Name) {
        if self.slot(name).is_some_and(Slot::is_idle) {
            self.slots.remove(name);
        }
    }
}
