//! The data under a name, as far as it can be used.

use crate::client::requests::StoredRecord;
use crate::client::router::Router;
use crate::policy::Rule;
use crate::state::{BadRecord, Name, Version, intent_of};

impl Router {
    /// A name is this client's now, with this under it.
    pub(crate) fn own_record(&mut self, name: &Name, data: Option<&[u8]>) -> StoredRecord {
        let version = data.map(Version::of);
        let found = data.map_or(StoredRecord::Empty, |data| self.read_record(data));
        self.journal.claimed(name, true, version);
        if let (StoredRecord::Readable(data), Some(version)) = (&found, version) {
            self.journal.note(name, data, version);
        }
        found
    }

    /// Reads what is under a name.
    pub(crate) fn read_record(&mut self, data: &[u8]) -> StoredRecord {
        match self.account.read(data, self.shared.rules) {
            Ok(data) => {
                self.avoid(data.call.as_ref().and_then(|call| call.key.as_deref()));
                StoredRecord::Readable(Box::new(data))
            }
            Err(bad) if !self.holds(Rule::UnreadableIsSomething) && matches!(bad, BadRecord::Damaged(_)) => StoredRecord::Empty,
            Err(bad) => StoredRecord::Unreadable(bad, intent_of(data)),
        }
    }

    /// Where this client's 16 bytes gave a key before, they are used up: a key that is sent again with another request would be a
    /// purchase that nobody knows of.
    fn avoid(&mut self, key: Option<&str>) {
        if key.is_some_and(|key| self.shared.rng.may_have_named(key)) {
            let ours = |client: &Router, key: &str| {
                let mut keys = client.jobs.values().filter_map(|entry| entry.job.write()?.call.ledger.key.as_deref());
                keys.any(|known| known == key)
            };
            if !key.is_some_and(|key| ours(self, key)) {
                self.shared.rng.turn();
            }
        }
    }
}
