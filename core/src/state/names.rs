//! Names, under which records are kept. Every process computes the same name for the same intent, and for the same key of a caller's own,
//! so that a later process finds the record.

use std::borrow::Borrow;
use std::fmt;

use arcstr::ArcStr;
use serde::{Deserialize, Serialize};

use crate::contract::pools::SlotPurchase;
use crate::contract::{Api, Encode, Shape, Shaped, Sink};
use crate::engine::RecordId;
use crate::entropy::digest;
use crate::json::{FromJson, FromJsonError, text_of};

/// The name of a record in a store: `<space>.<kind><hash>`, at most 66 characters of `0-9`, `a-z` and `.`, so it may be a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name(ArcStr);

impl From<String> for Name {
    fn from(name: String) -> Self {
        Name(name.into())
    }
}

impl Shaped for Name {
    const SHAPE: Shape = Shape::Text;
}

impl Encode for Name {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.0, false)
    }
}

impl FromJson for Name {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let name = text_of(json).and_then(|text| Name::of(&RecordId(text.into_owned())));
        name.filter(|(_, version)| version.is_none()).map(|(name, _)| name).ok_or_else(FromJsonError::here)
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The names of one account at one API: a hash of both.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Space(pub String);

impl Space {
    pub(crate) fn of(api: Api, account: &str) -> Self {
        Space(digest("space", &[api.as_str(), account]))
    }

    /// The name of an intent. All purchases of a pool's slot have one name.
    pub(crate) fn intent(&self, intent: &str) -> Name {
        match SlotPurchase::of(intent) {
            Some(purchase) => self.slot(purchase.slot),
            None => self.name('i', &digest("intent", &[intent])),
        }
    }

    /// The name of a pool's slot.
    pub(crate) fn slot(&self, slot: &str) -> Name {
        self.name('p', &digest("slot", &[slot]))
    }

    /// The space of a pool, whose purchases count on a day of its own beside the account's.
    pub(crate) fn of_pool(&self, pool: &str) -> Space {
        Space(digest("space of pool", &[&self.0, pool]))
    }

    /// The name of a pool's own record.
    pub(crate) fn pool(&self, pool: &str) -> Name {
        self.name('q', &digest("pool", &[pool]))
    }

    /// The name of a purchase with this key of a caller's own.
    pub(crate) fn key(&self, key: &str) -> Name {
        self.name('k', &digest("key", &[key]))
    }

    /// The name of the renewals of a session, one for all processes.
    pub(crate) fn renewals(&self, session: &str) -> Name {
        self.name('r', &digest("renew", &[session]))
    }

    /// The name of any other record, from a text that does not occur twice.
    pub(crate) fn random(&self, text: &str) -> Name {
        self.name('r', &digest("random", &[text]))
    }

    fn name(&self, kind: char, hash: &str) -> Name {
        Name(arcstr::format!("{}.{kind}{hash}", self.0))
    }

    /// Returns true if a name is in this space.
    pub(crate) fn has(&self, name: &Name) -> bool {
        name.0.strip_prefix(self.0.as_str()).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl Name {
    /// The text of the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns true if a later process can find the name without knowing its record: the name of an intent, a key, or a slot of a pool.
    pub(crate) fn is_findable(&self) -> bool {
        self.is_of_kind(&['i', 'k', 'p'])
    }

    /// Returns true if the name is a slot of a pool.
    pub(crate) fn is_of_a_pool(&self) -> bool {
        self.is_of_kind(&['p'])
    }

    /// Returns true if the name is a pool's own record, which holds no purchase.
    pub(crate) fn is_a_pool(&self) -> bool {
        self.is_of_kind(&['q'])
    }

    fn is_of_kind(&self, kinds: &[char]) -> bool {
        self.0.split('.').nth(1).is_some_and(|rest| rest.starts_with(kinds))
    }

    /// The record id that people see: the name, and the version of its data.
    pub(crate) fn at(&self, version: Version) -> RecordId {
        RecordId(format!("{}.{version}", self.0))
    }

    /// Splits a record id into the name and the version.
    pub(crate) fn of(record: &RecordId) -> Option<(Name, Option<String>)> {
        let mut parts = record.0.splitn(3, '.');
        let (space, hash, version) = (parts.next()?, parts.next()?, parts.next());
        let is_plain = |part: &str| !part.is_empty() && part.len() <= 64 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_plain(space) && is_plain(hash)).then(|| (Name(arcstr::format!("{space}.{hash}")), version.map(str::to_owned)))
    }
}

/// The version of a record, which every put changes. 0 if no data is known to be there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Version(u64);

impl Version {
    pub(crate) fn of(data: &[u8]) -> Self {
        let [a, b, c, d, e, f, g, h, ..] = crate::entropy::digest_bytes("version", data);
        Version(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "{:016x}", self.0) }
    }
}
