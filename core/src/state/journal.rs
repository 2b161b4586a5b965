//! The records of this client: whose each is, and those on their way to the host's store. At most one Save of a record is
//! out at a time, and the newest wins.

use std::collections::BTreeMap;

use crate::engine::RecordId;

/// A number that names a job inside the client.
pub(crate) type JobId = u32;

/// What a record is kept for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Owner {
    /// A call, by its job.
    Job(JobId),
    /// A session, by its id.
    Session(String),
    /// An accepted intent, by its name.
    Intent(String),
    /// A day's total under a cap, in a client that has none.
    Total,
    /// A result that was not taken yet: the record goes when it is.
    Result,
}

#[derive(Debug, Clone, Default, Hash)]
struct Slot {
    /// The Save that is out, and who waits for it.
    out: Option<Vec<JobId>>,
    /// What to save next, and who waits for that.
    next: Option<(Option<Vec<u8>>, Vec<JobId>)>,
}

/// The Saves of all records.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Store {
    slots: BTreeMap<RecordId, Slot>,
    owners: BTreeMap<RecordId, Owner>,
}

impl Store {
    /// From now on the record is kept for this.
    pub(crate) fn own(&mut self, record: &RecordId, owner: Owner) {
        self.owners.insert(record.clone(), owner);
    }

    /// The record is kept for nothing any more.
    pub(crate) fn disown(&mut self, record: &RecordId) {
        self.owners.remove(record);
    }

    /// What a record is kept for.
    pub(crate) fn owner(&self, record: &RecordId) -> Option<&Owner> {
        self.owners.get(record)
    }

    /// The records that are kept for something.
    pub(crate) fn records(&self) -> impl Iterator<Item = &RecordId> {
        self.owners.keys()
    }

    /// Whether this client has a use for the record, or has not heard yet that it is gone.
    pub(crate) fn is_alive(&self, record: &RecordId) -> bool {
        self.owners.contains_key(record) || self.slots.contains_key(record)
    }

    /// Asks for a Save, which goes out with the next `send`.
    pub(crate) fn want(&mut self, record: &RecordId, data: Option<Vec<u8>>, waiter: Option<JobId>) {
        let slot = self.slots.entry(record.clone()).or_default();
        let mut waiters = slot.next.take().map(|(_, waiters)| waiters).unwrap_or_default();
        waiters.extend(waiter);
        slot.next = Some((data, waiters));
    }

    /// The next Save of this record, if none is out.
    pub(crate) fn send(&mut self, record: &RecordId) -> Option<Option<Vec<u8>>> {
        let slot = self.slots.get_mut(record)?;
        if slot.out.is_some() {
            return None;
        }
        let (data, waiters) = slot.next.take()?;
        slot.out = Some(waiters);
        Some(data)
    }

    /// The Save was answered: who waited for it, and whether another is to go out.
    pub(crate) fn answered(&mut self, record: &RecordId) -> (Vec<JobId>, bool) {
        let Some(slot) = self.slots.get_mut(record) else { return (Vec::new(), false) };
        let waiters = slot.out.take().unwrap_or_default();
        let more = slot.next.is_some();
        if !more {
            self.slots.remove(record);
        }
        (waiters, more)
    }
}
