//! The client for Python: one class that takes and gives text, bytes and numbers.
//!
//! The documentation of `hopline` describes how to drive it; nothing is decided here. Parameters, options, facts, errors, events and lists
//! are JSON text; the package `hopline` makes objects and exceptions of them. The tuples of this module may hold secrets, so it is private
//! to that package.

mod folder;
mod objects;
mod readings;
mod requests;
mod slots;
mod store;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopline::client::{CommandId, Name, RecordId, Taken, facts_text, host_text as answer, page_params_text, page_turn_text, quote_text};
use hopline::contract::pools::LeaseRef;
use hopline::contract::{Safety, endpoints, json_of};
use hopline::policy::{is_shared_text, parse_ip_range};
use hopline::pool::PoolClient;
use hopline::wire::Received;
use hopline::{Now, Outcome, Step};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList, PyTuple};

use crate::objects::{Classes, Made};
use crate::readings::Readings;
use crate::requests::Requests;

/// The client of one account. Drain `poll` until it returns a wait, answer each step once, drain again. The client may be used from any
/// thread. A call that is refused raises `ValueError` with the error as JSON.
#[pyclass(frozen, module = "hopline._hopline")]
pub struct Client {
    core: Mutex<PoolClient>,
    last: Mutex<Option<u32>>,
    is_heard: AtomicBool,
    readings: Readings,
    /// The package may be imported a second time while this client lives.
    classes: Arc<Classes>,
    requests: Arc<Requests>,
}

impl Client {
    fn lock(&self) -> MutexGuard<'_, PoolClient> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a command, and keeps its number for `last`.
    fn begin(&self, start: impl FnOnce(&mut PoolClient) -> CommandId) -> u32 {
        let command = start(&mut self.lock()).0;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(command);
        command
    }
}

fn refused(error: hopline::Error) -> PyErr {
    PyValueError::new_err(json_of(&error))
}

fn at(unix_ms: i64, monotonic_ms: i64) -> Now {
    Now { unix: unix_ms, monotonic: monotonic_ms }
}

/// A result, whose objects may have been made from its response. The client is not locked meanwhile, as in `respond`.
fn result_tuple<'py>(
    py: Python<'py>,
    classes: &Classes,
    result: Result<Taken, hopline::Error>,
    made: Option<Made>,
) -> PyResult<Bound<'py, PyTuple>> {
    let read = match result {
        Ok(taken) => objects::read(py, classes, taken, made)?,
        Err(error) => Err(error),
    };
    match read {
        Ok((reply, answered)) => ("answered", reply, facts_text(&answered)).into_pyobject(py),
        Err(error) => ("failed", json_of(&error)).into_pyobject(py),
    }
}

#[pymethods]
impl Client {
    /// Makes a client. `entropy` is 16 bytes of `secrets.token_bytes`, new ones for each client.
    #[new]
    fn new(options: &str, entropy: &[u8]) -> PyResult<Self> {
        let core = PoolClient::from_text(options, entropy).map_err(refused)?;
        Ok(Client {
            core: Mutex::new(core),
            last: Mutex::default(),
            is_heard: AtomicBool::default(),
            readings: Readings::default(),
            classes: objects::classes()?,
            requests: requests::requests()?,
        })
    }

    /// Turns on events from now on.
    fn listen(&self) {
        self.is_heard.store(true, Ordering::Relaxed);
    }

    /// The command that was started last, for a caller that was interrupted before it got the number.
    fn last(&self) -> Option<u32> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts an operation and returns its command. Its faults come back as its result.
    fn start(&self, operation: &str, params: &str, options: &str) -> u32 {
        self.begin(|client| client.start_text(operation, params, options))
    }

    /// Puts the steps into `todo`, where an interrupt can't lose them, at most `most` of them. Then there is nothing until the monotonic
    /// time that is returned (`None`: no time), or until a command is started or a step answered. Each step is a tuple that begins with a
    /// word:
    ///
    /// - `("store", step, command, call)`: make that call of the store, where the command waits if there is one, and answer by `stored`; a
    ///   call is a tuple of its name and its arguments (see `store::call_tuple`);
    /// - `("send", step, command, request, send_before)`: send it and answer by `respond` or `fail`;
    /// - `("completed", command)`: take its result;
    /// - `("notify", event)`: an event, as JSON, from `listen` on.
    #[pyo3(signature = (unix_ms, monotonic_ms, todo, most=usize::MAX))]
    fn poll(&self, py: Python<'_>, unix_ms: i64, monotonic_ms: i64, todo: &Bound<'_, PyList>, most: usize) -> PyResult<Option<i64>> {
        for _ in 0..most {
            let step = self.lock().poll(at(unix_ms, monotonic_ms));
            todo.append(match step {
                Step::Wait { until } => return Ok(until),
                Step::Store { id, command, call } => {
                    ("store", id.0, command.map(|command| command.0), store::call_tuple(py, call)?).into_pyobject(py)
                }
                Step::Send { id, command, request } => {
                    self.readings.sent(id.0, command.0, request.expects);
                    ("send", id.0, command.0, requests::made(py, &self.requests, &request)?, request.send_before).into_pyobject(py)
                }
                Step::Completed { command } => ("completed", command.0).into_pyobject(py),
                Step::Notify(_) if !self.is_heard.load(Ordering::Relaxed) => continue,
                Step::Notify(event) => ("notify", json_of(&event)).into_pyobject(py),
            }?)?;
        }
        Ok(None)
    }

    /// Takes the store's answer: a tuple of a word and its values (see `store::answer`).
    fn stored(&self, step: u32, answer: &Bound<'_, PyTuple>, unix_ms: i64, monotonic_ms: i64) -> PyResult<()> {
        let outcome = Outcome::Store(store::answer(answer)?);
        self.lock().resolve_text(step, outcome, at(unix_ms, monotonic_ms)).map_err(refused)
    }

    /// Takes the answer of a Send; `headers` are a mapping or pairs. The objects of the answer are made here, without a lock on the client,
    /// since Python's allocations may run a garbage collection, and that any code.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer, and the host has argument names")]
    fn respond(
        &self,
        py: Python<'_>,
        step: u32,
        status: u16,
        headers: &Bound<'_, PyAny>,
        body: &[u8],
        truncated: bool,
        unix_ms: i64,
        monotonic_ms: i64,
    ) -> PyResult<()> {
        let headers = requests::wanted(headers)?;
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let now = at(unix_ms, monotonic_ms);
        let Some(expected) = self.readings.expected(step) else {
            let outcome = Outcome::Response { status, headers: &headers, body, truncated };
            return self.lock().resolve_text(step, outcome, now).map_err(refused);
        };
        let (response, made) = objects::receive(py, &self.classes, expected, Received { status, headers: &headers, body, truncated });
        let (made, interrupt) = match made {
            // The taker tries again; an exception that ends the program is raised here.
            Err(error) => (None, Some(error).filter(|error| !error.is_instance_of::<PyException>(py))),
            Ok(made) => (made, None),
        };
        self.readings.keep(step, made);
        self.lock().resolve_text(step, Outcome::Read(response), now).map_err(refused)?;
        interrupt.map_or(Ok(()), Err)
    }

    /// Takes the failure of a Send. `kind` is `dns`, `connect`, `tls`, `timeout`, `closed`, `aborted`, `late` or `other`; `sent` is `never`
    /// or `maybe`.
    fn fail(&self, step: u32, kind: &str, sent: &str, unix_ms: i64, monotonic_ms: i64) -> PyResult<()> {
        self.readings.failed(step);
        self.lock().fail_text(step, kind, sent, at(unix_ms, monotonic_ms)).map_err(refused)
    }

    /// Stops further sends of a command. Returns the step of its request that is out, if no other command waits for that one: abort it, and
    /// report that it failed.
    fn cancel(&self, command: u32, unix_ms: i64, monotonic_ms: i64) -> Option<u32> {
        self.lock().cancel(CommandId(command), at(unix_ms, monotonic_ms)).map(|step| step.0)
    }

    /// Returns the result of a command that completed, once: `("answered", reply, facts)` or `("failed", error)`, else `None`. The result
    /// is put into `taken`, too, if that is given, and stays where it is until it has been read: an interrupt may break that off.
    #[pyo3(signature = (command, taken=None))]
    fn take<'py>(&self, py: Python<'py>, command: u32, taken: Option<&Bound<'py, PyList>>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let result = self.result(py, command)?;
        if let (Some(result), Some(taken)) = (&result, taken) {
            taken.append(result)?;
        }
        self.readings.forget(command);
        drop(self.lock().take_to_read(CommandId(command)));
        Ok(result)
    }

    /// Returns the result of a command, and leaves it where it is.
    fn result<'py>(&self, py: Python<'py>, command: u32) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let result = self.lock().result_to_read(CommandId(command));
        result.map(|result| result_tuple(py, &self.classes, result, self.readings.of(py, command))).transpose()
    }

    /// Drops the result of a command that completed, because its caller is gone. A write without an intent that took effect, or may have,
    /// keeps its record; a lease goes back. Returns true if there was a result.
    fn abandon(&self, command: u32, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.readings.forget(command);
        self.lock().abandon(CommandId(command), at(unix_ms, monotonic_ms))
    }

    /// Gives a lease of a pool back. Returns true if it was valid.
    fn give_back(&self, pool: u32, lease: i64, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.lock().give_back(&LeaseRef { pool, lease }, at(unix_ms, monotonic_ms))
    }

    /// Returns true if the lease is still this client's.
    fn is_valid(&self, pool: u32, lease: i64) -> bool {
        self.lock().is_valid(&LeaseRef { pool, lease })
    }

    /// Discards the session of a lease, which is not lent again. Returns true if the lease was valid.
    fn discard(&self, pool: u32, lease: i64, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.lock().discard(&LeaseRef { pool, lease }, at(unix_ms, monotonic_ms))
    }

    /// Keeps data of the callers' for the next lease of this exit: an object of JSON.
    fn set_lease_data(&self, pool: u32, lease: i64, data: &str, unix_ms: i64, monotonic_ms: i64) -> PyResult<()> {
        self.lock().set_lease_data(&LeaseRef { pool, lease }, data, at(unix_ms, monotonic_ms)).map_err(refused)
    }

    /// When a lease for the target is worth asking for, after the advice `wait`; Unix milliseconds.
    fn retry_at(&self, pool: u32, lease: i64) -> Option<i64> {
        self.lock().retry_at(&LeaseRef { pool, lease })
    }

    /// Returns the advice after an observation through a lease, `{"status":403}` or a word: `keep`, `give_back` or `wait`; `wait_ms` is the
    /// Retry-After of the target. `None` if the lease is not valid any more, or its session has another exit by now.
    fn observe_lease(
        &self,
        pool: u32,
        lease: i64,
        seen: &str,
        wait_ms: Option<i64>,
        unix_ms: i64,
        monotonic_ms: i64,
    ) -> PyResult<Option<&'static str>> {
        let now = at(unix_ms, monotonic_ms);
        self.lock().observe_lease_text(&LeaseRef { pool, lease }, seen, wait_ms, now).map_err(refused)
    }

    /// Resumes a record, as a command; its options are JSON as those of `start`.
    fn resume(&self, record: String, options: &str) -> u32 {
        self.begin(|client| client.resume_text(record, options))
    }

    /// Resumes an intent, as a command; its `raw` is null if the intent is not known.
    fn resume_intent(&self, intent: &str, options: &str) -> u32 {
        self.begin(|client| client.resume_intent_text(intent, options))
    }

    /// Resumes everything that is open, as a command; its `raw` is a list of the commands that have ended, for `take`.
    fn resume_all(&self, options: &str) -> u32 {
        self.begin(|client| client.resume_all_text(options))
    }

    /// Settles a doubt by hand, as a command; its `raw` is true if there was one. `became` is the resulting session or order, if it is
    /// known; `early` settles as not happened before that is certain.
    fn settle(&self, record: String, happened: bool, became: Option<String>, early: bool) -> u32 {
        self.begin(|client| client.settle_text(record, happened, became, early))
    }

    /// Forgets a session or an accepted intent, as a command; its `raw` is true if something was forgotten.
    fn forget(&self, record: String) -> u32 {
        self.begin(|client| client.forget(&RecordId(record)).command)
    }

    /// Reads a page of the store's entries, behind a name, as a command; its `raw` is `{"entries":[…],"after"}`. Nothing is sent.
    fn saved(&self, after: Option<String>) -> u32 {
        self.begin(|client| client.saved(after.map(Name::from)).command)
    }

    /// Stops following a session, so that another client may take it. Returns true if it was followed.
    fn release_session(&self, session_id: &str) -> bool {
        self.lock().release_session(session_id)
    }

    /// Takes claims that have ended while this client lives: of these names, or of all.
    fn lost(&self, names: Option<Vec<String>>, unix_ms: i64, monotonic_ms: i64) {
        let names: Option<Vec<Name>> = names.map(|names| names.into_iter().map(Name::from).collect());
        self.lock().lost(names.as_deref(), at(unix_ms, monotonic_ms));
    }

    /// Returns true if the client follows a session, which has not ended as far as it knows.
    fn follows(&self, session_id: &str) -> bool {
        self.lock().follows(session_id)
    }

    /// Of the reseller API: the token that is used at present.
    fn token(&self) -> Option<String> {
        self.lock().token().map(|token| token.reveal().to_owned())
    }

    /// Returns advice, as JSON, after an observation through a session: `{"status":403}` or a word. `None` if this client does not follow
    /// the session.
    fn observe(&self, session_id: &str, seen: &str, unix_ms: i64, monotonic_ms: i64) -> PyResult<Option<String>> {
        self.lock().observe_text(session_id, seen, at(unix_ms, monotonic_ms)).map(|told| told.as_ref().map(json_of)).map_err(refused)
    }
}

/// Returns the parameters of the next page at a position, from those of the caller. All is JSON, as is the error in `ValueError`.
#[pyfunction]
fn page_params(position: &str, params: &str) -> PyResult<String> {
    page_params_text(position, params).map_err(refused)
}

/// Returns the continuation after a page with these facts: `{"position":"…"}`, `{"end":"last_page"}`, or both at the cap.
#[pyfunction]
fn page_turn(position: &str, facts: &str) -> PyResult<String> {
    page_turn_text(position, facts).map_err(refused)
}

/// Answers a question that needs no client, both as JSON: `proxy`, `use_with`, `refusal`, `walk` or `session_event`.
#[pyfunction]
fn host_text(question: &str, given: &str) -> PyResult<String> {
    answer(question, given).map_err(refused)
}

/// Prices a quantity of a product, exactly: `{"product_no","quantity","unit_price","total","currency","unit"}`.
#[pyfunction]
fn quote(product: &str, quantity: &str) -> PyResult<String> {
    quote_text(product, quantity).map_err(refused)
}

/// Returns true if a product of the reseller API, as JSON, is shared.
#[pyfunction]
fn is_shared(product: &str) -> bool {
    is_shared_text(product)
}

/// The addresses of a range: `{"text","first","last"}`.
#[pyfunction]
fn ip_range(text: &str) -> String {
    json_of(&parse_ip_range(text))
}

/// The module. The GIL is not needed: the class holds its own lock.
/// Both clocks of the system, in milliseconds: a test that stops Python's would stop every wait.
#[pyfunction]
fn now() -> (i64, i64) {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    (SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ms), ms(BEGAN.elapsed()))
}

#[pymodule(gil_used = false)]
fn _hopline(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("VERSION", env!("CARGO_PKG_VERSION"))?;
    let repeatable = endpoints().filter(|endpoint| matches!(endpoint.safety, Safety::Safe | Safety::Idempotent | Safety::Keyed));
    module.add("REPEATABLE", PyFrozenSet::new(module.py(), repeatable.map(|endpoint| endpoint.name))?)?;
    module.add_function(wrap_pyfunction!(objects::make_of, module)?)?;
    module.add_function(wrap_pyfunction!(requests::requests_of, module)?)?;
    module.add_function(wrap_pyfunction!(page_params, module)?)?;
    module.add_function(wrap_pyfunction!(page_turn, module)?)?;
    module.add_function(wrap_pyfunction!(host_text, module)?)?;
    module.add_function(wrap_pyfunction!(quote, module)?)?;
    module.add_function(wrap_pyfunction!(is_shared, module)?)?;
    module.add_function(wrap_pyfunction!(ip_range, module)?)?;
    module.add_function(wrap_pyfunction!(now, module)?)?;
    module.add_class::<folder::Folder>()?;
    module.add_class::<Client>()
}
