//! The names that this client owns or is about to own.

use super::names::{Name, Version};
use super::record::Data;
use super::slot::{AfterWrite, JobId, NameEntry, StoreWrite, User, WriteResult};
use super::store::StoreCall;
use crate::collections::Map;
use crate::engine::RecordId;

/// The names of this client.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Journal {
    /// Boxed, since a map's lists have spare room.
    slots: Map<Name, Box<NameEntry>>,
    /// True if the store may carry out a call after the host gave it up.
    late_calls: bool,
}

impl Journal {
    pub(crate) fn new(late_calls: bool) -> Self {
        Journal { slots: Map::default(), late_calls }
    }

    pub(crate) fn slot(&self, name: &Name) -> Option<&NameEntry> {
        self.slots.get(name).map(|slot| &**slot)
    }

    /// Returns the record of a name, in its present version.
    pub(crate) fn record_of(&self, name: &Name) -> Option<RecordId> {
        self.slot(name).map(|slot| name.at(slot.version))
    }

    fn slot_mut(&mut self, name: &Name) -> Option<&mut NameEntry> {
        self.slots.get_mut(name).map(|slot| &mut **slot)
    }

    /// The names that this client owns, or may own.
    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.slots.keys()
    }

    /// Adds a new name: the first put makes it.
    pub(crate) fn make(&mut self, name: Name, user: Option<User>) {
        self.slots.insert(name, Box::new(NameEntry::made(user)));
    }

    /// Sets the use of a name.
    pub(crate) fn give(&mut self, name: &Name, user: Option<User>) {
        if let Some(slot) = self.slot_mut(name) {
            slot.user = user;
        }
    }

    /// Returns the use of a name.
    pub(crate) fn user(&self, name: &Name) -> Option<&User> {
        self.slot(name)?.user.as_ref()
    }

    /// Returns true if this client owns the name, as far as is known.
    pub(crate) fn is_owned(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(NameEntry::is_owned)
    }

    /// Returns true if a step of the name is out, or a step that was not tried before is to go out.
    pub(crate) fn is_busy(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(NameEntry::is_busy)
    }

    /// Returns true if the store may still make the name: the put that was to make it has failed, and the name is deleted by then.
    pub(crate) fn may_be_made_late(&self, name: &Name) -> bool {
        self.late_calls && self.slot(name).is_some_and(NameEntry::may_be_made_late)
    }

    /// Returns true if a step of the name is out.
    pub(crate) fn is_out(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(NameEntry::is_out)
    }

    /// Returns true if the name is about to be released, or may belong to another client.
    pub(crate) fn is_leaving(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(NameEntry::is_leaving)
    }

    /// Notes data that is under a name, or is about to be put there.
    pub(crate) fn note(&mut self, name: &Name, data: &Data, version: Version) {
        if let Some(slot) = self.slot_mut(name) {
            slot.note(data, version);
        }
    }

    /// Begins a claim of a name. Returns false if this client owns it, or a step of it is out.
    pub(crate) fn claim(&mut self, name: &Name) -> bool {
        self.slots.get_or_insert_with(name.clone(), Box::default).claim()
    }

    /// Returns true if the claim that is out has ended before its answer came.
    pub(crate) fn has_ended(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(NameEntry::has_ended)
    }

    /// Takes the answer to a claim: whether this client owns the name now, and the version of its data.
    pub(crate) fn claimed(&mut self, name: &Name, owned: bool, version: Option<Version>) {
        if let Some(slot) = self.slot_mut(name) {
            slot.claimed(owned, version);
        }
        self.tidy(name);
    }

    /// Requests a write of a name that this client owns. A newer write replaces an older one, and the jobs that wait for the older one then
    /// wait for it.
    pub(crate) fn want(&mut self, name: &Name, write: StoreWrite, waiter: Option<JobId>, insists: bool) {
        if let Some(slot) = self.slot_mut(name).filter(|slot| slot.is_owned()) {
            slot.want(write, waiter, insists);
        }
    }

    /// Returns the next step of a name, if there is one and none is out.
    pub(crate) fn next(&mut self, name: &Name) -> Option<StoreCall> {
        self.slot_mut(name)?.next(name)
    }

    /// Lets a failed step be tried again.
    pub(crate) fn wake(&mut self, name: &Name) {
        if let Some(slot) = self.slot_mut(name) {
            slot.wake();
        }
    }

    /// Takes the answer to a write.
    pub(crate) fn written(&mut self, name: &Name, result: WriteResult) -> AfterWrite {
        let after = self.slot_mut(name).and_then(|slot| slot.written(result));
        self.tidy(name);
        after.unwrap_or_else(|| AfterWrite::new(result, Vec::new()))
    }

    /// Notes that this client does not own the name any more. Returns the name's use.
    pub(crate) fn lose(&mut self, name: &Name) -> Option<User> {
        let user = self.slot_mut(name)?.lose();
        self.tidy(name);
        user
    }

    /// Forgets a name with nothing left to know.
    fn tidy(&mut self, name: &Name) {
        if self.slot(name).is_some_and(NameEntry::is_idle) {
            self.slots.remove(name);
        }
    }
}
