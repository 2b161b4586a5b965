//! A build tool: prints each host's types and clients from the table, so that a new entry appears in every host by itself. `cargo xtask`
//! calls it when it makes a package; nothing here is tested against the service.
//!
//! [`model`] walks the descriptors once; each host has a printer of its own.

pub mod docs;
pub mod kotlin;
pub mod model;
pub mod openapi;
pub mod python;
pub mod swift;
pub mod typescript;
