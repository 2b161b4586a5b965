//! A request to the agent API as its endpoints see it.

use std::borrow::Cow;
use std::sync::Arc;

use http::HeaderMap;

use super::input::Query;

/// An admitted request.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) now_ms: i64,
    /// The place of the account that calls; of a public endpoint it means nothing.
    pub(crate) account: usize,
    /// The one parameter of the path; empty where there is none.
    pub(crate) id: Cow<'a, str>,
    pub(crate) query: Query,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: &'a [u8],
    pub(crate) key: Option<Arc<str>>,
}
