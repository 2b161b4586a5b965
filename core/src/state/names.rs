//! Names: what a record is kept under. Every process computes the same name for the same intent, and for the same key of a caller's own,
//! so that whoever comes later finds what is there.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::contract::Api;
use crate::engine::RecordId;
use crate::entropy::digest;

/// The name of a record in a store: `<space>.<kind><hash>`, at most 66 characters of `0-9`, `a-z` and `.`, so it may be a file's name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Name(pub String);

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

    /// The name of what a caller calls by this intent.
    pub(crate) fn intent(&self, intent: &str) -> Name {
        Name(format!("{}.i{}", self.0, digest("intent", &[intent])))
    }

    /// The name of what is bought with this key of a caller's own.
    pub(crate) fn key(&self, key: &str) -> Name {
        Name(format!("{}.k{}", self.0, digest("key", &[key])))
    }

    /// The name of anything else, from a text that does not come twice.
    pub(crate) fn random(&self, text: &str) -> Name {
        Name(format!("{}.r{}", self.0, digest("random", &[text])))
    }

    /// Whether a name is one of these.
    pub(crate) fn has(&self, name: &Name) -> bool {
        name.0.strip_prefix(self.0.as_str()).is_some_and(|rest| rest.starts_with('.'))
    }
}

impl Name {
    /// Whether a caller can come to it by a name of their own: an intent or a key.
    pub(crate) fn is_callers(&self) -> bool {
        self.0.split('.').nth(1).is_some_and(|rest| rest.starts_with(['i', 'k']))
    }

    /// What people are shown: the name, and the version of what is under it.
    pub(crate) fn at(&self, version: &str) -> RecordId {
        RecordId(format!("{}.{version}", self.0))
    }

    /// What people were shown, taken apart.
    pub(crate) fn of(record: &RecordId) -> Option<(Name, Option<String>)> {
        let mut parts = record.0.splitn(3, '.');
        let (space, hash, version) = (parts.next()?, parts.next()?, parts.next());
        let is_plain = |part: &str| !part.is_empty() && part.len() <= 64 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
        (is_plain(space) && is_plain(hash)).then(|| (Name(format!("{space}.{hash}")), version.map(str::to_owned)))
    }
}

/// The version of a record: every put has another one.
pub(crate) fn version_of(data: &[u8]) -> String {
    let mut version = crate::entropy::digest_bytes("version", data);
    version.truncate(16);
    version
}
