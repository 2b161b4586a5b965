//! The names that this client owns or is about to own.

use super::names::{Name, Version};
use super::record::Data;
use super::slot::{AfterWrite, JobId, NameEntry, StoreWrite, User, WriteResult};
use super::store::StoreCall;
use crate::collections::Map;
use crate::engine::RecordId;
use crate::time::{At, Millis};

/// The names of this client.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Journal {
    /// Boxed, since a map's lists have spare room.
    slots: Map<Name, Box<NameEntry>>,
    /// Those with a write that has failed and is tried again later.
    resting: Map<Name, ()>,
    /// True if the store may carry out a call after the host gave it up.
    late_calls: bool,
}

impl Journal {
    pub(crate) fn new(late_calls: bool) -> Self {
        Journal { late_calls, ..Journal::default() }
    }

    fn slot(&self, name: &Name) -> Option<&NameEntry> {
        self.slots.get(name).map(|slot| &**slot)
    }

    /// Returns true if this client owns the name, may own it, or is about to.
    pub(crate) fn knows(&self, name: &Name) -> bool {
        self.slots.contains_key(name)
    }

    /// Returns the record of a name, in its present version.
    pub(crate) fn record_of(&self, name: &Name) -> Option<RecordId> {
        self.slot(name).map(|slot| name.at(slot.version))
    }

    /// Returns the version of the data under a name.
    pub(crate) fn version(&self, name: &Name) -> Version {
        self.slot(name).map(|slot| slot.version).unwrap_or_default()
    }

    /// Returns true if data was put under a name, or may have been.
    pub(crate) fn is_put(&self, name: &Name) -> bool {
        self.slot(name).is_some_and(|slot| slot.is_put)
    }

    /// Returns when the session under a name was put last, if only a person named it.
    pub(crate) fn named_at(&self, name: &Name) -> Option<At> {
        self.slot(name)?.named_at.as_deref().copied()
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

    /// Requests a put of data, as the next one under its name.
    pub(crate) fn put(
        &mut self,
        name: &Name,
        mut data: Data,
        keep_for: Option<Millis>,
        release: bool,
        (waiter, insists): (Option<JobId>, bool),
    ) {
        data.puts = self.slot(name).map_or(0, |slot| slot.puts).saturating_add(1);
        let bytes = data.bytes();
        self.note(name, &data, Version::of(&bytes));
        self.want(name, StoreWrite::Put { data: bytes, keep_for, release }, waiter, insists);
    }

    /// Requests that what is under a name is deleted, or that the name is released where nothing is.
    pub(crate) fn delete(&mut self, name: &Name, insists: bool) {
        let write = if self.is_put(name) { StoreWrite::Delete } else { StoreWrite::Release };
        self.want(name, write, None, insists);
    }

    /// Requests that a name is released as it is.
    pub(crate) fn release(&mut self, name: &Name) {
        self.want(name, StoreWrite::Release, None, true);
    }

    /// Requests a write of a name that this client owns. A newer write replaces an older one, and the jobs that wait for the older one then
    /// wait for it.
    fn want(&mut self, name: &Name, write: StoreWrite, waiter: Option<JobId>, insists: bool) {
        if let Some(slot) = self.slot_mut(name).filter(|slot| slot.is_owned()) {
            slot.want(write, waiter, insists);
        }
        self.note_rest(name);
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
        self.note_rest(name);
    }

    /// Returns true if a write of the name has failed and is tried again later.
    pub(crate) fn rests(&self, name: &Name) -> bool {
        self.resting.contains_key(name)
    }

    /// The names of which a write has failed and is tried again, and how long after that.
    pub(crate) fn resting(&self) -> Vec<(Name, Millis)> {
        self.resting.keys().filter_map(|name| Some((name.clone(), self.slot(name)?.rest()))).collect()
    }

    fn note_rest(&mut self, name: &Name) {
        match self.slot(name).is_some_and(NameEntry::is_resting) {
            true => _ = self.resting.insert(name.clone(), ()),
            false => _ = self.resting.remove(name),
        }
    }

    /// Takes the answer to a write.
    pub(crate) fn written(&mut self, name: &Name, result: WriteResult) -> AfterWrite {
        let after = self.slot_mut(name).and_then(|slot| slot.written(result));
        self.note_rest(name);
        self.tidy(name);
        after.unwrap_or_else(|| AfterWrite::new(result, Vec::new()))
    }

    /// Notes that this client does not own the name any more. Returns the name's use.
    pub(crate) fn lose(&mut self, name: &Name) -> Option<User> {
        let user = self.slot_mut(name)?.lose();
        self.note_rest(name);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn name() -> Name {
        Name::from("5e.r1".to_owned())
    }

    /// A journal with one name that is this client's: claimed, with data under it or without, or made.
    fn journal(name: &Name, is_made: bool, version: Option<Version>) -> Journal {
        let mut journal = Journal::new(true);
        if is_made {
            journal.make(name.clone(), None);
        } else {
            assert!(journal.claim(name));
            journal.claimed(name, true, version);
        }
        journal
    }

    /// The next step of the name, in a word.
    fn next(journal: &mut Journal) -> &'static str {
        match journal.next(&name()) {
            Some(StoreCall::Put { new: true, .. }) => "make",
            Some(StoreCall::Put { release: true, .. }) => "put and release",
            Some(StoreCall::Put { .. }) => "put",
            Some(StoreCall::Delete { .. }) => "delete",
            Some(StoreCall::Release { .. }) => "release",
            _ => "nothing",
        }
    }

    fn put(journal: &mut Journal, intent: &str, waiter: Option<JobId>, insists: bool) {
        let data = Data { intent: Some(intent.to_owned()), ..Data::default() };
        journal.put(&name(), data, None, false, (waiter, insists));
    }

    #[test]
    fn one_step_of_a_name_is_out_at_a_time_and_the_newest_data_goes_last() {
        let mut journal = journal(&name(), true, None);
        put(&mut journal, "first", Some(1), false);
        assert_eq!(next(&mut journal), "make");
        let first = journal.version(&name());
        put(&mut journal, "second", Some(2), false);
        put(&mut journal, "third", Some(3), false);
        assert!(journal.is_busy(&name()) && journal.version(&name()) != first);
        assert_eq!(next(&mut journal), "nothing", "a step is out");
        assert_eq!(journal.written(&name(), WriteResult::Done).waiters, [1]);
        assert_eq!(next(&mut journal), "put", "the name is there");
        assert_eq!(journal.written(&name(), WriteResult::Done).waiters, [2, 3], "one put is for both");
        assert_eq!(next(&mut journal), "nothing");
        assert!(journal.is_put(&name()) && !journal.is_busy(&name()));
    }

    #[test]
    fn writes_that_wait_are_one_step() {
        let of = |act: &dyn Fn(&mut Journal), version| {
            let mut journal = journal(&name(), false, version);
            act(&mut journal);
            let leaving = journal.is_leaving(&name());
            (next(&mut journal), leaving)
        };
        let there = Some(Version::of(b"{}"));
        let release = |journal: &mut Journal| journal.release(&name());
        assert_eq!(of(&|journal| journal.delete(&name(), true), there), ("delete", true));
        assert_eq!(of(&|journal| journal.delete(&name(), true), None), ("release", true), "nothing is there");
        assert_eq!(of(&release, there), ("release", true));
        assert_eq!(of(&|journal| put(journal, "x", None, true), None), ("put", false));
        let released = |journal: &mut Journal| [put(journal, "x", None, true), release(journal)].len();
        assert_eq!(of(&|journal| _ = released(journal), None), ("put and release", true));
        let deleted = |journal: &mut Journal| [journal.delete(&name(), true), release(journal)].len();
        assert_eq!(of(&|journal| _ = deleted(journal), there), ("delete", true));
    }

    #[test]
    fn a_write_that_has_failed_is_tried_again_where_somebody_insists_and_newer_data_replaces_it() {
        for (insists, again, then) in [(true, true, "put"), (false, false, "nothing")] {
            let mut journal = journal(&name(), false, None);
            put(&mut journal, "x", None, insists);
            assert_eq!(next(&mut journal), "put");
            assert_eq!(journal.written(&name(), WriteResult::Failed).again.is_some(), again);
            assert_eq!(next(&mut journal), "nothing", "it rests");
            let rests: Vec<Millis> = journal.resting().into_iter().map(|(_, wait)| wait).collect();
            assert_eq!((rests, journal.rests(&name())), (if insists { vec![1000] } else { vec![] }, insists));
            journal.wake(&name());
            assert!(!journal.rests(&name()) && journal.resting().is_empty());
            assert_eq!(next(&mut journal), then);
        }
        let mut journal = journal(&name(), false, None);
        put(&mut journal, "x", None, true);
        next(&mut journal);
        put(&mut journal, "y", Some(1), false);
        assert_eq!(journal.written(&name(), WriteResult::Failed).again, None);
        assert_eq!((next(&mut journal), journal.written(&name(), WriteResult::Done).waiters), ("put", vec![1]));
    }

    #[test]
    fn a_name_is_forgotten_once_it_is_let_go_of() {
        let mut journal = journal(&name(), false, None);
        journal.give(&name(), Some(User::Pool(1)));
        assert!(!journal.claim(&name()), "it is this client's");
        assert_eq!((journal.user(&name()), journal.record_of(&name()).is_some()), (Some(&User::Pool(1)), true));
        journal.delete(&name(), true);
        assert_eq!(next(&mut journal), "release");
        assert!(!journal.claim(&name()), "a step is out");
        journal.written(&name(), WriteResult::Done);
        assert!(!journal.knows(&name()) && journal.claim(&name()));
        journal.claimed(&name(), false, None);
        assert!(!journal.knows(&name()), "another client has it");
        put(&mut journal, "x", None, true);
        assert!(!journal.knows(&name()), "nothing is put under a name of another client");
    }

    #[test]
    fn who_waits_for_a_name_that_was_lost_hears_that_and_a_claim_that_has_ended_counts_no_more() {
        let mut lost = journal(&name(), false, None);
        lost.give(&name(), Some(User::Job(7)));
        put(&mut lost, "x", Some(1), false);
        next(&mut lost);
        put(&mut lost, "y", Some(2), false);
        let after = lost.written(&name(), WriteResult::Lost);
        assert_eq!((after.lost, after.waiters, after.was_there), (Some(User::Job(7)), vec![1, 2], false));
        assert!(!lost.knows(&name()));

        let mut there = journal(&name(), true, None);
        put(&mut there, "x", Some(1), false);
        next(&mut there);
        assert!(there.written(&name(), WriteResult::Lost).was_there, "somebody has a name that was to be made");

        let mut ended = Journal::new(false);
        ended.claim(&name());
        assert_eq!((ended.has_ended(&name()), ended.lose(&name())), (false, None));
        assert!(ended.has_ended(&name()));

        let mut deleted = journal(&name(), false, Some(Version::of(b"{}")));
        deleted.give(&name(), Some(User::Result));
        deleted.delete(&name(), true);
        next(&mut deleted);
        assert_eq!(deleted.lose(&name()), Some(User::Result));
        assert_eq!(deleted.written(&name(), WriteResult::Done).result, WriteResult::Lost, "another client may have deleted it");
    }

    #[test]
    fn a_name_may_be_made_late_only_by_a_store_whose_calls_are() {
        for late_calls in [true, false] {
            let mut journal = Journal::new(late_calls);
            journal.make(name(), None);
            put(&mut journal, "x", None, false);
            next(&mut journal);
            journal.written(&name(), WriteResult::Failed);
            assert_eq!(journal.may_be_made_late(&name()), late_calls);
        }
    }
}
