#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "pools"), allow(dead_code, unused_imports))]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::disallowed_methods))]

pub mod client;
mod collections;
pub mod contract;
mod engine;
mod entropy;
mod json;
#[cfg(test)]
mod layers;
mod options;
pub mod policy;
#[cfg(feature = "pools")]
pub mod pool;
#[cfg(test)]
mod prose;
mod state;
mod time;
#[cfg(feature = "pools")]
pub mod turns;
pub mod wire;

pub use client::{CallOptions, Client, ClientOptions, Millis, Now, Outcome, Step, drive, drive_async};
pub use policy::{Advice, Effect, Error, Kind};
