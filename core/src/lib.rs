//! The client core for two HTTP APIs: proxy sessions that automated programs buy and run, and a reseller's sub-users and
//! orders. Buying is asynchronous, costs real money and fails halfway; Hopline is right about that once, for every
//! language, and never touches a socket, a clock or entropy.
//!
//! # The drive contract
//!
//! **Start, drain `poll` until it says wait, answer each step once, drain again.** A [`Client`] is one account. What it
//! wants is a [`Step`]: keep a record, send a request, take a result, wait. What came of it is an [`Outcome`]. Time and 16
//! bytes of entropy are arguments, so the same inputs give the same steps.
//!
//! ```
//! use hopline::client::{CallOptions, Client, ClientOptions, Now, Outcome, Step};
//! use hopline::contract::{Secret, agent::GetBalance};
//!
//! let options = ClientOptions {
//!     base_url: "https://api.example/v1".into(),
//!     api_key: Some(Secret::new("key")),
//!     ..ClientOptions::default()
//! };
//! let mut client = Client::new(options, [7; 16]).expect("the options are sound");
//! let ticket = client.start(GetBalance {}, CallOptions::default());
//! let now = Now { unix: 1_700_000_000_000, monotonic: 0 };
//! let reply = loop {
//!     match client.poll(now) {
//!         Step::Send { id, request, .. } => {
//!             // A host sends it with the HTTP client it has.
//!             assert_eq!(request.url, "https://api.example/v1/billing/balance");
//!             let body = br#"{"success":true,"data":{"balance":12.50}}"#;
//!             let answer = Outcome::Response { status: 200, headers: &[], body, truncated: false };
//!             client.resolve(id, answer, now).expect("each step is answered once");
//!         }
//!         Step::Save { id, .. } => client.resolve(id, Outcome::Saved, now).expect("each step is answered once"),
//!         Step::Completed { .. } => break client.take(ticket).expect("it has completed"),
//!         Step::Notify(_) | Step::Wait { .. } => {}
//!     }
//! };
//! assert_eq!(reply.expect("it was answered").raw.text(), r#"{"balance":12.50}"#);
//! ```
//!
//! [`client::drive`] is that loop for Rust. Three things make it safe to buy with:
//!
//! - **Save before send.** Every send that is not a plain read waits until its record is saved, so a crash loses nothing.
//! - **Keys.** A purchase whose answer was lost is sent again with the same bytes and the same key, or not at all.
//! - **Doubt is said.** What may have happened is never called a failure: [`Effect`] says none, unknown or done.
//!
//! What this rests on: a request that was answered is not executed again later; the service stores refusals with their
//! keys as its contract says; and a store never brings an older record back, nor serves two clients at once.
//!
//! # The house
//!
//! [`contract`] is the table of every endpoint and type; [`wire`] builds requests and reads envelopes; [`policy`] decides
//! what an answer means; [`client`] runs it all.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, clippy::disallowed_methods))]

pub mod client;
pub mod contract;
mod engine;
mod entropy;
#[cfg(test)]
mod layers;
pub mod policy;
mod state;
mod time;
pub mod wire;

pub use client::{CallOptions, Client, ClientOptions, Millis, Now, Outcome, Step, drive, drive_async};
pub use policy::{Advice, Effect, Error, Kind};
