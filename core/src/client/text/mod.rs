//! The client for other languages, in text.

pub(crate) mod event;
pub(crate) mod host_params;
pub(crate) mod host_text;
pub(crate) mod host_types;
pub(crate) mod json;
pub(crate) mod pages;
