//! Prints each host's types and clients from the table, so that a new entry appears in every host by itself.
//!
//! [`model`] walks the descriptors once; each host has a printer of its own.

pub mod coverage;
pub mod kotlin;
pub mod model;
pub mod openapi;
pub mod python;
pub mod swift;
pub mod typescript;
