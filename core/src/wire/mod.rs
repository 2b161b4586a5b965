//! What goes over the wire: base URLs, requests, envelopes, times. Pure functions from text to values and back.

mod base_url;
mod build;
mod envelope;
mod media_type;
mod request;
pub(crate) mod time;

pub use base_url::BaseUrl;
pub(crate) use build::{Built, build, is_key};
pub use envelope::{Answer, Facts, Failure, Verdict};
pub(crate) use envelope::{Body, classify};
pub use request::Request;
