//! The wire format: base URLs, requests, envelopes, times. Pure functions between texts and values.

mod base_url;
mod build;
mod check;
mod envelope;
mod facts;
mod host;
mod media_type;
mod near;
mod page;
mod read;
mod request;
mod stored_answer;
mod text;
pub(crate) mod time;

pub use base_url::{BadBaseUrl, BaseUrl};
pub(crate) use build::{Built, build, build_any, is_key, is_target, page_size, params_of};
pub(crate) use check::{Refusal, members};
pub(crate) use envelope::{Answer, Content, Failure, Success, classify, classify_read};
pub use facts::Facts;
pub(crate) use facts::{id_of, is_same_id, items, lacks_list, names_another_order, status_of};
pub(crate) use host::{encoded, host_of, is_host};
pub(crate) use near::unknown_word;
pub(crate) use page::page_mark;
pub use read::{DecodeError, Expected, Reading, Received, Response, read};
pub(crate) use read::{Flaw, decimal_of, names_a_secret, reading, view, view_for_doubles};
pub use read::{is_secret_name, read_as, secret_endings};
pub(crate) use request::OWN_HEADERS;
pub use request::Request;
pub(crate) use stored_answer::stored_answer;
pub(crate) use text::{KEPT_WORD, cut};
