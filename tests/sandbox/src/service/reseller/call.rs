//! A request to the backend as its endpoints see it, and on whose behalf it comes.

use std::borrow::Cow;

use crate::service::input::Query;

/// A reseller or one of its sub-users: each has a balance and orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The place of the reseller among the accounts.
    pub(crate) agent: usize,
    /// The place of the sub-user among all users.
    pub(crate) user: Option<usize>,
}

impl Owner {
    /// True if a caller sees the records of an owner: its own, and a reseller those of its sub-users.
    pub(crate) fn sees(self, other: Self) -> bool {
        self.agent == other.agent && (self.user.is_none() || self.user == other.user)
    }
}

/// The parameters of a path, in order.
pub(crate) type Ids<'a> = Vec<Cow<'a, str>>;

/// An admitted request.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) now_ms: i64,
    /// The caller; meaningless for a public endpoint.
    pub(crate) caller: Owner,
    pub(crate) ids: Ids<'a>,
    pub(crate) query: Query,
    pub(crate) body: &'a [u8],
}

impl Call<'_> {
    /// A parameter of the path, by its place.
    pub(crate) fn id(&self, place: usize) -> &str {
        self.ids.get(place).map_or("", AsRef::as_ref)
    }
}
