//! JSON as text: a scanner that pulls tokens from it, and the writer of its strings. This module knows nothing of the table.

mod from_json;
mod pick;
mod scan;
mod string;

pub(crate) use from_json::{FromJson, FromJsonError, Object, from_json, read_json, word};
pub(crate) use pick::{items, members, pick, plain, text_of};
pub use scan::NotJson;
pub(crate) use scan::{QuotedText, Scanner, ends_early, is_too_deep, whole};
pub(crate) use string::{push_quoted, quoted};
