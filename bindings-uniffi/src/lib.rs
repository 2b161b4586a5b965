//! The client for Kotlin and Swift: one class that takes and gives text, bytes and numbers.
//!
//! The documentation of `hopline` describes how to drive it; nothing is decided here. Parameters and options are JSON text. Answers,
//! errors, events and lists are packed bytes (`packed.rs`), from which the printed native types are read.

pub mod direct;
mod driven;
mod moves;
mod packed;
mod spelling;
mod store;
mod types;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopline::client::{CommandId, RESPONSE_HEADERS, host_text as answer, misfit_text, page_params_text, page_turn_text, quote_from_text};
use hopline::contract::pools::LeaseRef;
use hopline::policy::{is_shared_text, parse_ip_range};
use hopline::pool::PoolClient;
use hopline::turns::Driver;

use crate::driven::Core;
use crate::packed::{pack_page, packed};

pub use driven::*;
pub use moves::*;
pub use spelling::{spelled, spelled_field};
pub use store::*;
pub use types::*;

uniffi::setup_scaffolding!("hopline");

/// The response headers to pass to `Respond`; leave out all others.
#[uniffi::export]
pub fn response_headers() -> Vec<String> {
    RESPONSE_HEADERS.map(str::to_owned).to_vec()
}

/// The error, packed, for an answer of another type than its operation's; `place` says where it differs.
#[uniffi::export]
pub fn misfit(operation: &str, facts: &str, raw: &str, place: &str) -> Vec<u8> {
    packed(&misfit_text(operation, facts, raw, place))
}

/// A page of the store's entries, packed, from the `raw` of the answer to `saved`.
#[uniffi::export]
pub fn saved_page(raw: &str) -> Vec<u8> {
    pack_page(raw)
}

/// Answers a question that needs no client, both as JSON: `proxy`, `use_with`, `refusal`, `walk` or `session_event`.
#[uniffi::export]
pub fn host_text(question: &str, given: &str) -> Result<String, ClientError> {
    Ok(answer(question, given)?)
}

/// Prices a quantity of a product of a list, both as JSON, exactly; the quote is packed.
#[uniffi::export]
pub fn quote(product: &str, quantity: &str) -> Result<Vec<u8>, ClientError> {
    Ok(packed(&quote_from_text(product, quantity)?))
}

/// The parameters of the next page, all as JSON text.
#[uniffi::export]
pub fn page_params(position: &str, params: &str) -> Result<String, ClientError> {
    Ok(page_params_text(position, params)?)
}

/// The continuation after a page, all as JSON text: `{"position":"…"}`, `{"end":"last_page"}`, or both at the cap.
#[uniffi::export]
pub fn page_turn(position: &str, facts: &str) -> Result<String, ClientError> {
    Ok(page_turn_text(position, facts)?)
}

/// Returns true if a product of the reseller API, as JSON, is shared static; then an order of it must name a project.
#[uniffi::export]
pub fn is_shared(product: &str) -> bool {
    is_shared_text(product)
}

/// Reads a range of addresses, packed: its text, and its ends where it can be read.
#[uniffi::export]
pub fn ip_range(text: &str) -> Vec<u8> {
    packed(&parse_ip_range(text))
}

/// The client of one account. `drive` moves it, and brings what the host is to do until the next call. Vectors drive it by hand with `advance`:
/// more steps are there until a wait comes; answer each once. The client may be used from any thread.
#[derive(uniffi::Object)]
pub struct Client {
    core: Mutex<Core>,
    expecting: Mutex<moves::Expecting>,
    /// The methods that were called, by the commands that they started, where they are no operation of the table.
    called: Mutex<HashMap<u32, String>>,
    /// The number by which calls from Java name the client.
    number: u64,
}

impl Client {
    fn lock(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[uniffi::export]
impl Client {
    /// A client. `entropy` is 16 bytes from the system's secure generator, new ones for each client.
    #[uniffi::constructor]
    pub fn new(options: &str, entropy: Vec<u8>) -> Result<Arc<Self>, ClientError> {
        let core = Core::by_hand(Driver::new(PoolClient::from_text(options, &entropy)?, false));
        Ok(direct::numbered(|number| Client { core: Mutex::new(core), expecting: Mutex::default(), called: Mutex::default(), number }))
    }

    /// A client for `drive`. `needs_vouching` is true if something is to be done between the hand-out of a Send and its begin: the claims of
    /// the store can end, or a function of the caller's is asked for headers. Then each Send but a termination has a `patience`.
    #[uniffi::constructor]
    pub fn driven(options: &str, entropy: Vec<u8>, needs_vouching: bool) -> Result<Arc<Self>, ClientError> {
        let core = Core::driven(Driver::new(PoolClient::from_text(options, &entropy)?, needs_vouching));
        Ok(direct::numbered(|number| Client { core: Mutex::new(core), expecting: Mutex::default(), called: Mutex::default(), number }))
    }

    /// The number that `hopline_drive` takes for this client.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The result of a command that completed, which stays until it is taken or abandoned.
    pub fn result(&self, command: u32) -> Option<Taken> {
        let taken = self.lock().client().result_to_read(CommandId(command));
        taken.map(|taken| Taken::of(None, taken, None))
    }

    /// Returns true if a command ends sessions, which cost money until then: a client that is being closed still carries it out.
    pub fn ends_sessions(&self, command: u32) -> bool {
        self.lock().client().ends_sessions(CommandId(command))
    }

    /// Returns true if the lease is still this client's.
    pub fn is_valid(&self, pool: u32, lease: i64) -> bool {
        self.lock().client().is_valid(&LeaseRef { pool, lease })
    }

    /// The time at which a lease for the target is worth asking for, after the advice `wait`; Unix milliseconds.
    pub fn retry_at(&self, pool: u32, lease: i64) -> Option<i64> {
        self.lock().client().retry_at(&LeaseRef { pool, lease })
    }

    /// Of the reseller API: the token that is used at present, to store where secrets are kept.
    pub fn token(&self) -> Option<String> {
        self.lock().client().token().map(|token| token.reveal().to_owned())
    }
}

#[cfg(test)]
mod tests;
