//! The client for Kotlin and Swift: one class that takes and gives text, bytes and numbers.
//!
//! All that there is to know about driving it is in the documentation of `hopline`; nothing is decided here. Parameters,
//! options are JSON text. Answers, errors, events and lists are packed bytes (`packed.rs`), which the native types that are printed from
//! the table are read from.

pub mod direct;
mod moves;
mod packed;
mod store;
mod types;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hopline::client::{
    CommandId, Name, RESPONSE_HEADERS, RecordId, host_text as answer, misfit_text, page_params_text, page_turn_text, quote_from_text,
};
use hopline::contract::pools::LeaseRef;
use hopline::policy::{is_shared_text, parse_ip_range};
use hopline::pool::PoolClient;
use hopline::{Now, Outcome};

use crate::packed::{pack_page, packed};

pub use moves::*;
pub use store::*;
pub use types::*;

uniffi::setup_scaffolding!("hopline");

/// How many steps come at once at most.
const MOST_STEPS: usize = 64;

/// The response headers to pass to `respond`; leave out all others.
#[uniffi::export]
pub fn response_headers() -> Vec<String> {
    RESPONSE_HEADERS.map(str::to_owned).to_vec()
}

/// The error, packed, for an answer that `take` gave and that is of another type than its operation's; `place` says so.
#[uniffi::export]
pub fn misfit(operation: &str, facts: &str, raw: &str, place: &str) -> Vec<u8> {
    packed(&misfit_text(operation, facts, raw, place))
}

/// A page of what the store holds, packed, from the `raw` of what `saved` was answered with.
#[uniffi::export]
pub fn saved_page(raw: &str) -> Vec<u8> {
    pack_page(raw)
}

/// Answers a question that needs no client, both as JSON: `proxy`, `use_with`, `refusal`, `walk` or `session_event`.
#[uniffi::export]
pub fn host_text(question: &str, given: &str) -> Result<String, ClientError> {
    answer(question, given).map_err(ClientError::refused)
}

/// Prices a quantity of a product of a list, both as JSON, exactly; the quote is packed.
#[uniffi::export]
pub fn quote(product: &str, quantity: &str) -> Result<Vec<u8>, ClientError> {
    quote_from_text(product, quantity).map(|quote| packed(&quote)).map_err(ClientError::refused)
}

/// The parameters of the page that comes next, all as JSON text.
#[uniffi::export]
pub fn page_params(position: &str, params: &str) -> Result<String, ClientError> {
    page_params_text(position, params).map_err(ClientError::refused)
}

/// What comes after a page, all as JSON text: `{"position":"…"}`, `{"end":"last_page"}`, or both at the cap.
#[uniffi::export]
pub fn page_turn(position: &str, facts: &str) -> Result<String, ClientError> {
    page_turn_text(position, facts).map_err(ClientError::refused)
}

/// Whether a product of the reseller API, as JSON, is shared static; then an order of it must name a project.
#[uniffi::export]
pub fn is_shared(product: &str) -> bool {
    is_shared_text(product)
}

/// Reads a range of addresses, packed: its text, and its ends where it can be read.
#[uniffi::export]
pub fn ip_range(text: &str) -> Vec<u8> {
    packed(&parse_ip_range(text))
}

/// The client of one account. Drain `poll` until it says wait, answer each step once, drain again. It may be used from any
/// thread.
#[derive(uniffi::Object)]
pub struct Client {
    core: Mutex<PoolClient>,
    expecting: Mutex<moves::Expecting>,
    /// Its name where calls name it by a number.
    number: u64,
}

impl Client {
    fn lock(&self) -> MutexGuard<'_, PoolClient> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, step: u32, outcome: Outcome<'_>, now: Now) -> Result<(), ClientError> {
        self.lock().resolve_text(step, outcome, now).map_err(ClientError::refused)
    }
}

fn at(unix_ms: i64, monotonic_ms: i64) -> Now {
    Now { unix: unix_ms, monotonic: monotonic_ms }
}

#[uniffi::export]
impl Client {
    /// A client. `entropy` is 16 bytes from the system's secure generator, new ones for each client.
    #[uniffi::constructor]
    pub fn new(options: &str, entropy: Vec<u8>) -> Result<Arc<Self>, ClientError> {
        let core = PoolClient::from_text(options, &entropy).map_err(ClientError::refused)?;
        Ok(direct::numbered(|number| Client { core: Mutex::new(core), expecting: Mutex::default(), number }))
    }

    /// The number that `hopline_advance` takes for this client.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Starts an operation and names its command. Whatever is wrong with it comes back as its result. The texts are given as UTF-8, since
    /// bytes cross from Java in a tenth of the time.
    pub fn start(&self, operation: &[u8], params: &[u8], options: &[u8]) -> u32 {
        let [operation, params, options] = [operation, params, options].map(String::from_utf8_lossy);
        self.lock().start_text(&operation, &params, &options).0
    }

    /// What to do next. Drain it until it says wait.
    pub fn poll(&self, unix_ms: i64, monotonic_ms: i64) -> Step {
        self.lock().poll(at(unix_ms, monotonic_ms)).into()
    }

    /// The same, up to 64 steps at once, of which a wait is the last one; without it there are more. With `results`, a command that
    /// has ended comes with what it ended with, which stays until it is taken or abandoned; to do that brings further steps.
    pub fn steps(&self, results: bool, unix_ms: i64, monotonic_ms: i64) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut client = self.lock();
        while steps.len() < MOST_STEPS && !matches!(steps.last(), Some((hopline::Step::Wait { .. }, _))) {
            let step = client.poll(at(unix_ms, monotonic_ms));
            let result = match &step {
                hopline::Step::Completed { command } if results => client.result_to_read(*command),
                _ => None,
            };
            steps.push((step, result));
        }
        drop(client);
        // Nobody waits for the client while answers are read.
        steps.into_iter().map(|(step, result)| Step::of(step, result.map(Taken::from))).collect()
    }

    /// What the store answered to a Store.
    pub fn stored(&self, step: u32, answer: StoreAnswer, unix_ms: i64, monotonic_ms: i64) -> Result<(), ClientError> {
        self.answer(step, Outcome::Store(answer.into()), at(unix_ms, monotonic_ms))
    }

    /// A Send was answered.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer, and the hosts have argument names")]
    pub fn respond(
        &self,
        step: u32,
        status: u16,
        headers: Vec<Header>,
        body: &[u8],
        truncated: bool,
        unix_ms: i64,
        monotonic_ms: i64,
    ) -> Result<(), ClientError> {
        let headers: Vec<(&str, &str)> = headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
        self.answer(step, Outcome::Response { status, headers: &headers, body, truncated }, at(unix_ms, monotonic_ms))
    }

    /// A Send was not answered.
    pub fn fail(&self, step: u32, kind: FailureKind, sent: Sent, unix_ms: i64, monotonic_ms: i64) -> Result<(), ClientError> {
        self.answer(step, Outcome::Failed { kind, sent }, at(unix_ms, monotonic_ms))
    }

    /// A Send was not sent, since a header of the caller's own can't be sent with it: its command ends at once.
    pub fn refuse_headers(&self, step: u32, rule: &str, unix_ms: i64, monotonic_ms: i64) -> Result<(), ClientError> {
        self.lock().refuse_headers_text(step, rule, at(unix_ms, monotonic_ms)).map_err(ClientError::refused)
    }

    /// Stops further sends of a command. Returns the Send of it that is out, if there is one: abort that, and say that it
    /// failed.
    pub fn cancel(&self, command: u32, unix_ms: i64, monotonic_ms: i64) -> Option<u32> {
        self.lock().cancel(CommandId(command), at(unix_ms, monotonic_ms)).map(|step| step.0)
    }

    /// The result of a command that completed, once.
    pub fn take(&self, command: u32) -> Option<Taken> {
        let taken = self.lock().take_to_read(CommandId(command));
        taken.map(Taken::from)
    }

    /// The same, and the result stays until it is taken or abandoned.
    pub fn result(&self, command: u32) -> Option<Taken> {
        let taken = self.lock().result_to_read(CommandId(command));
        taken.map(Taken::from)
    }

    /// Drops the result of a command that was read already. Returns whether there was one.
    pub fn taken(&self, command: u32) -> bool {
        self.lock().take_to_read(CommandId(command)).is_some()
    }

    /// Drops the result of a command whose caller is gone. A write without an intent that was done, or may have been, stays in what
    /// `saved` lists, a lease goes back, and a pool is closed. Returns whether there was a result.
    pub fn abandon(&self, command: u32, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.lock().abandon(CommandId(command), at(unix_ms, monotonic_ms))
    }

    /// Lists what the store holds, as a command: its answer's `raw` is a page, `{"entries":[…],"after":name}`, and where there is
    /// `after`, the next page is the one behind it. Nothing is sent.
    pub fn saved(&self, after: Option<String>) -> u32 {
        self.lock().saved(after.map(Name::from)).command.0
    }

    /// Closes a doubt by hand, as a command; `became` is the session or the order that came of it, where that is known. `early` says
    /// that it did not happen even before an hour has passed. `raw` is whether there was a doubt.
    pub fn settle(&self, record: String, happened: bool, became: Option<String>, early: bool) -> u32 {
        self.lock().settle_text(record, happened, became, early).0
    }

    /// Forgets a session, what was accepted, or a record that can't be read, as a command. `raw` is whether something was forgotten.
    pub fn forget(&self, record: String) -> u32 {
        self.lock().forget(&RecordId(record)).command.0
    }

    /// Goes on with what a record holds, as a command; its options are JSON as those of `start`.
    pub fn resume(&self, record: String, options: &str) -> u32 {
        self.lock().resume_text(record, options).0
    }

    /// Goes on with what an intent stands for, as a command, which is answered with `null` if it stands for nothing.
    pub fn resume_intent(&self, intent: &str, options: &str) -> u32 {
        self.lock().resume_intent_text(intent, options).0
    }

    /// Goes on with all that can be resumed, as a command. `raw` is a list of commands that have ended: take each.
    pub fn resume_all(&self, options: &str) -> u32 {
        self.lock().resume_all_text(options).0
    }

    /// Follows a session no more, without ending it: another client may have it then. Returns whether it was followed.
    pub fn release_session(&self, session_id: &str) -> bool {
        self.lock().release_session(session_id)
    }

    /// The store's claims of these names have ended while this client lives; of all of them, where none are given.
    pub fn lost(&self, names: Option<Vec<String>>, unix_ms: i64, monotonic_ms: i64) {
        let names: Option<Vec<Name>> = names.map(|names| names.into_iter().map(Name::from).collect());
        self.lock().lost(names.as_deref(), at(unix_ms, monotonic_ms));
    }

    /// Says what was seen through a lease, as `observe` does; `wait_ms` is the Retry-After of the target. Returns `keep`, `give_back` or `wait`; null
    /// where the lease is not valid any more, or its session has another exit by now.
    pub fn observe_lease(
        &self,
        pool: u32,
        lease: i64,
        seen: &str,
        wait_ms: Option<i64>,
        unix_ms: i64,
        monotonic_ms: i64,
    ) -> Result<Option<String>, ClientError> {
        let advice = self.lock().observe_lease_text(&LeaseRef { pool, lease }, seen, wait_ms, at(unix_ms, monotonic_ms));
        advice.map(|advice| advice.map(str::to_owned)).map_err(ClientError::refused)
    }

    /// Gives a lease back. Returns whether it was valid.
    pub fn release_lease(&self, pool: u32, lease: i64, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.lock().give_back(&LeaseRef { pool, lease }, at(unix_ms, monotonic_ms))
    }

    /// Whether what a lease was given for is this client's still.
    pub fn is_valid(&self, pool: u32, lease: i64) -> bool {
        self.lock().is_valid(&LeaseRef { pool, lease })
    }

    /// Of the reseller API: the token that is used at present, to keep where secrets are kept.
    pub fn token(&self) -> Option<String> {
        self.lock().token().map(|token| token.reveal().to_owned())
    }

    /// Advice, packed, on what was seen through a session: `{"status":403}`, `"captcha"`, `"timeout"` or `"block"`. Null
    /// if this client does not follow the session.
    pub fn observe(&self, session_id: &str, seen: &str, unix_ms: i64, monotonic_ms: i64) -> Result<Option<Vec<u8>>, ClientError> {
        self.lock()
            .observe_text(session_id, seen, at(unix_ms, monotonic_ms))
            .map(|told| told.as_ref().map(packed))
            .map_err(ClientError::refused)
    }
}

#[cfg(test)]
mod tests;
