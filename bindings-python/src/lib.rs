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
mod turns;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopline::client::{
    CommandId, Event, FailureKind, Name, RecordId, StepId, StoreAnswer, Taken, Verdict, facts_text, host_text as answer, page_params_text,
    page_turn_text, quote_text,
};
use hopline::contract::pools::LeaseRef;
use hopline::contract::{Safety, endpoints, json_of};
use hopline::policy::{is_shared_text, parse_ip_range};
use hopline::pool::PoolClient;
use hopline::turns::{Driver, NextTurn, Nudge, OwnerNo};
use hopline::wire::Received;
use hopline::{Now, Outcome, Step};
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyFrozenSet, PyList, PyTuple};

use crate::objects::{Classes, Made};
use crate::readings::Readings;
use crate::requests::Requests;
use crate::turns::{Hearers, Owner, locked};

/// The client of one account, with its turns. An owner starts its command by `begin`, does the work that each turn gives it, and tells what
/// came of it by `respond`, `failed` or `stored`, each of which returns the next turn:
///
/// - `("ask", step, call)`: make that call of the store, a tuple of its name and its arguments (see `store::call_tuple`), and answer by
///   `stored`;
/// - `("send", step, request, is_here, patience)`: send it and answer by `respond` or `failed`; where `is_here` is true, before anything
///   else. Where `patience` is not `None`, the store is to vouch for its claims first, within that many seconds, and `begin_send` says
///   whether to send;
/// - `("wait", seconds)`: wait, or (`None`) until woken, and ask for a `turn`;
/// - `("ended", results)`: the results are there; once they are surely the caller's, say so by `heard`, or leave;
/// - `("done", results)`: leave.
///
/// The client may be used from any thread. A call that is refused raises `ValueError` with the error as JSON. A program that drives it by hand
/// drains `poll` until it returns a wait, answers each step once, and drains again.
#[pyclass(frozen, module = "hopline._hopline")]
pub struct Client {
    core: Mutex<Driver>,
    hearers: Hearers,
    is_heard: AtomicBool,
    readings: Readings,
    /// The package may be imported a second time while this client lives.
    classes: Arc<Classes>,
    requests: Arc<Requests>,
}

impl Client {
    /// The owner of the command of a send.
    fn owner_of(&self, step: u32) -> Option<OwnerNo> {
        let mut driver = self.driver();
        let (command, _) = driver.turns().send_of(StepId(step))?;
        driver.turns().owner_of(command)
    }

    fn driver(&self) -> MutexGuard<'_, Driver> {
        locked(&self.core)
    }

    /// Asks the client itself.
    fn ask<T>(&self, question: impl FnOnce(&mut PoolClient) -> T) -> T {
        question(self.driver().client())
    }

    /// Starts a command, for an owner where there is one.
    fn enter(&self, owner: Option<&Bound<'_, Owner>>, start: impl FnOnce(&mut PoolClient) -> Option<CommandId>) -> PyResult<Option<u32>> {
        let Some(owner) = owner else { return Ok(self.ask(start).map(|command| command.0)) };
        self.hearers.add(owner);
        let Owner { no, kind, place, command, is_in, .. } = owner.get();
        let entered = self.driver().enter(*no, *kind, *place, start);
        let Some(begun) = entered else {
            self.hearers.remove(*no);
            return Err(Closed::new_err(()));
        };
        command.store(begun.map_or(-1, |begun| begun.0.into()), Ordering::Relaxed);
        is_in.store(true, Ordering::Relaxed);
        Ok(begun.map(|command| command.0))
    }

    /// Moves the client, and carries out what is to be done at once.
    fn moved<T>(&self, py: Python<'_>, what: impl FnOnce(&mut Driver, Now) -> T) -> PyResult<T> {
        let now = clocks();
        let (done, news) = {
            let mut driver = self.driver();
            let done = what(&mut driver, now);
            (done, driver.take_news())
        };
        self.deliver(py, news, now)?;
        Ok(done)
    }

    fn deliver(&self, py: Python<'_>, mut news: (Vec<Nudge>, Vec<Event>), now: Now) -> PyResult<()> {
        let mut interrupt = None;
        while !news.0.is_empty() || !news.1.is_empty() {
            let delivered = self.hearers.deliver(py, news, now.monotonic);
            if !delivered.can_look() {
                self.driver().turns().background_failed();
            }
            for owner in &delivered.deserted {
                self.desert(owner.get(), now);
            }
            interrupt = interrupt.or(delivered.interrupt);
            news = if delivered.deserted.is_empty() { Default::default() } else { self.driver().take_news() };
        }
        interrupt.map_or(Ok(()), Err)
    }

    /// An owner can't be woken any more, since its event loop is closed.
    fn desert(&self, owner: &Owner, now: Now) {
        if owner.is_in.swap(false, Ordering::Relaxed) {
            owner.give_up();
            self.driver().desert(owner.no, now);
            self.hearers.remove(owner.no);
        }
    }

    /// The next turn of an owner.
    fn next<'py>(&self, py: Python<'py>, owner: &Bound<'py, Owner>) -> PyResult<Bound<'py, PyTuple>> {
        let no = owner.get().no;
        owner.get().goes_on();
        let turn = self.moved(py, |driver, now| driver.turn(no, now))?;
        self.turn_tuple(py, Some(owner.get()), turn)
    }

    fn turn_tuple<'py>(&self, py: Python<'py>, owner: Option<&Owner>, turn: NextTurn) -> PyResult<Bound<'py, PyTuple>> {
        match turn {
            NextTurn::Send { step, request, is_here, patience } => {
                let made = match request {
                    None => self.hearers.request(py, step.0),
                    Some(request) => {
                        let made = requests::made(py, &self.requests, &request)?;
                        let of = {
                            let mut driver = self.driver();
                            let command = driver.turns().send_of(step).map(|(command, _)| command);
                            command.map(|command| (command, driver.turns().owner_of(command)))
                        };
                        self.hearers.give(py, step.0, &made, of.and_then(|(_, owner)| owner));
                        match of {
                            Some((command, _)) => self.readings.sent(step.0, command.0, request.expects),
                            // Another thread has broken it off meanwhile.
                            None => _ = self.hearers.break_off(py, step.0, FailureKind::Aborted)?,
                        }
                        Some(made)
                    }
                };
                if patience.is_none() && self.is_heard.load(Ordering::Relaxed) {
                    self.hearers.begun(py, step.0)?;
                }
                ("send", step.0, made, is_here, patience.map(|ms| ms as f64 / 1000.0)).into_pyobject(py)
            }
            NextTurn::Ended | NextTurn::Done => {
                let word = if turn == NextTurn::Done { "done" } else { "ended" };
                let Some(owner) = owner else { return (word, py.None()).into_pyobject(py) };
                let results = owner.results(py, || {
                    let ended = self.driver().results(owner.no).to_vec();
                    let results = PyList::empty(py);
                    for (command, result) in ended {
                        results.append(result_tuple(py, &self.classes, result, self.readings.of(py, command.0))?)?;
                        self.readings.forget(command.0);
                    }
                    Ok(results)
                })?;
                (word, results).into_pyobject(py)
            }
            turn => turns::plain(py, turn, clocks().monotonic),
        }
    }
}

create_exception!(_hopline, Closed, PyException, "The client was closed before a command of it could begin.");

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
    /// `needs_vouching` is true if the claims of its store can end.
    #[new]
    #[pyo3(signature = (options, entropy, needs_vouching=false))]
    fn new(options: &str, entropy: &[u8], needs_vouching: bool) -> PyResult<Self> {
        let core = PoolClient::from_text(options, entropy).map_err(refused)?;
        Ok(Client {
            core: Mutex::new(Driver::new(core, needs_vouching)),
            hearers: Hearers::default(),
            is_heard: AtomicBool::default(),
            readings: Readings::default(),
            classes: objects::classes()?,
            requests: requests::requests()?,
        })
    }

    /// Turns on events from now on.
    fn listen(&self) {
        self.is_heard.store(true, Ordering::Relaxed);
        self.driver().listen();
    }

    /// Calls these from now on, without a lock: `hear` with a list of events, each the text of the core's or `(request, operation, status,
    /// failure, seconds)` of a send that begins or is over; `look` with milliseconds, after which the background is to call `tend`, and
    /// which returns false if it can't; `wake` to wake the background.
    fn serve(&self, hear: Py<PyAny>, look: Py<PyAny>, wake: Py<PyAny>) {
        self.hearers.serve(hear, look, wake);
    }

    /// Starts an operation for an owner, and returns the first turn.
    fn begin<'py>(&self, owner: &Bound<'py, Owner>, operation: &str, params: &str, options: &str) -> PyResult<Bound<'py, PyTuple>> {
        self.enter(Some(owner), |client| Some(client.start_text(operation, params, options)))?;
        self.next(owner.py(), owner)
    }

    /// The next turn of an owner, which comes with it where it has no command.
    fn turn<'py>(&self, owner: &Bound<'py, Owner>) -> PyResult<Bound<'py, PyTuple>> {
        if !owner.get().is_in.load(Ordering::Relaxed) {
            self.enter(Some(owner), |_| None)?;
        }
        self.next(owner.py(), owner)
    }

    /// The results of an owner's command are surely its caller's. Returns its next turn: its record may be deleted.
    fn heard<'py>(&self, owner: &Bound<'py, Owner>) -> PyResult<Bound<'py, PyTuple>> {
        let py = owner.py();
        let turn = self.moved(py, |driver, now| driver.heard(owner.get().no, now))?;
        self.turn_tuple(py, Some(owner.get()), turn)
    }

    /// The next work of the background, in the thread with that number.
    fn tend<'py>(&self, py: Python<'py>, thread: u64) -> PyResult<Bound<'py, PyTuple>> {
        let turn = self.moved(py, |driver, now| driver.tend(thread, now))?;
        self.turn_tuple(py, None, turn)
    }

    /// Returns whether a send that waited for its store is to be made now. `here`: by this owner, which does nothing else meanwhile.
    #[pyo3(signature = (step, is_sure, here=None))]
    fn begin_send(&self, py: Python<'_>, step: u32, is_sure: bool, here: Option<&Bound<'_, Owner>>) -> PyResult<bool> {
        let owner = if is_sure { None } else { self.owner_of(step) };
        let is_begun = self.moved(py, |driver, now| driver.begin(StepId(step), is_sure, here.map(|owner| owner.get().no), now))?;
        if is_begun && self.is_heard.load(Ordering::Relaxed) {
            self.hearers.begun(py, step)?;
        }
        if !is_begun && !is_sure {
            self.hearers.note(py, owner, "the store did not vouch for its claims".to_owned());
        }
        Ok(is_begun)
    }

    /// Takes back what the last turn of an interrupted owner gave it.
    fn take_back(&self, py: Python<'_>, owner: &Bound<'_, Owner>) -> PyResult<()> {
        let Owner { no, .. } = owner.get();
        self.moved(py, |driver, now| driver.take_back(*no, owner.get().was_sending(), now))
    }

    /// Takes back what the last turn of the background gave it, which failed.
    fn take_back_in_background(&self, py: Python<'_>, is_sent: bool) -> PyResult<()> {
        self.moved(py, |driver, now| driver.take_back(OwnerNo::BACKGROUND, is_sent, now))
    }

    /// Cancels the command of an owner, which works on until it is done.
    fn give_up(&self, py: Python<'_>, owner: &Bound<'_, Owner>) -> PyResult<()> {
        owner.get().give_up();
        self.moved(py, |driver, now| driver.give_up(owner.get().no, now))
    }

    /// An owner goes, whose caller surely has the results if it `has_heard` them. Returns true if the client is to be finished.
    #[pyo3(signature = (owner, has_heard=false))]
    fn leave(&self, py: Python<'_>, owner: &Bound<'_, Owner>, has_heard: bool) -> PyResult<bool> {
        let Owner { no, is_in, .. } = owner.get();
        if !is_in.swap(false, Ordering::Relaxed) {
            return Ok(false);
        }
        let left = self.moved(py, |driver, now| driver.leave(*no, has_heard, now));
        self.hearers.remove(*no);
        left?;
        Ok(self.is_to_finish())
    }

    /// Closes the client: every owner ends. Returns true if the client is to be finished, since nobody is in it any more.
    fn close(&self, py: Python<'_>) -> PyResult<bool> {
        self.moved(py, |driver, now| driver.close(None, now))?;
        Ok(self.is_to_finish())
    }

    /// Returns true if the client is closed, and nobody is in it any more.
    fn is_to_finish(&self) -> bool {
        let mut driver = self.driver();
        driver.turns().is_closed() && driver.turns().is_empty()
    }

    /// The background works for pools from now on, or not any more.
    fn carry(&self, py: Python<'_>, has_carrier: bool) -> PyResult<()> {
        self.moved(py, |driver, _| driver.turns().carry(has_carrier))
    }

    /// Wakes the background, which may have work for a pool.
    fn look(&self, py: Python<'_>) -> PyResult<()> {
        self.moved(py, |driver, _| driver.look())
    }

    /// Returns true if an owner that this thread made is in the client.
    fn is_used_by(&self, thread: u64) -> bool {
        self.hearers.has_of(thread)
    }

    /// For tests: the number of commands that owners wait for, whether one of these sends by itself, whether nothing is kept, and whether
    /// the background works.
    fn present(&self) -> (usize, bool, bool, bool) {
        let mut driver = self.driver();
        let turns = driver.turns();
        (turns.commands().len(), turns.is_exchanging(), turns.is_at_rest(), turns.has_background())
    }

    /// How much longer than its timeout a send may take, in milliseconds.
    fn set_grace(&self, ms: i64) {
        self.driver().turns().set_grace(ms);
    }

    /// Starts an operation and returns its command. Its faults come back as its result.
    fn start(&self, operation: &str, params: &str, options: &str) -> u32 {
        self.ask(|client| client.start_text(operation, params, options)).0
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
            let step = self.ask(|client| client.poll(at(unix_ms, monotonic_ms)));
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
    fn store_told(&self, step: u32, answer: &Bound<'_, PyTuple>, unix_ms: i64, monotonic_ms: i64) -> PyResult<()> {
        let outcome = Outcome::Store(store::answer(answer)?);
        self.ask(|client| client.resolve_text(step, outcome, at(unix_ms, monotonic_ms))).map_err(refused)
    }

    /// Takes the store's answer, as `store_told` does, and returns the next turn of the owner. Raises `ValueError` if the answer does not fit its call.
    #[pyo3(signature = (step, answer, owner=None))]
    fn stored<'py>(
        &self,
        py: Python<'py>,
        step: u32,
        answer: &Bound<'py, PyTuple>,
        owner: Option<&Bound<'py, Owner>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let answer = store::answer(answer)?;
        let is_failed = matches!(answer, StoreAnswer::Failed | StoreAnswer::Never);
        let fits = self.moved(py, |driver, now| driver.stored(StepId(step), answer, now))?;
        if !fits && !is_failed {
            return Err(PyValueError::new_err("the answer does not fit the call"));
        }
        owner.map(|owner| self.turn(owner)).transpose()
    }

    /// Takes the answer of a Send; `headers` are a mapping or pairs. The objects of the answer are made here, without a lock on the client,
    /// since Python's allocations may run a garbage collection, and that any code. Returns the next turn of the owner.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer, and the host has argument names")]
    #[pyo3(signature = (step, status, headers, body, truncated, owner=None))]
    fn respond<'py>(
        &self,
        py: Python<'py>,
        step: u32,
        status: u16,
        headers: &Bound<'py, PyAny>,
        body: &[u8],
        truncated: bool,
        owner: Option<&Bound<'py, Owner>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let headers = requests::wanted(headers)?;
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let mut interrupt = None;
        let outcome = match self.readings.expected(step) {
            None => Outcome::Response { status, headers: &headers, body, truncated },
            Some(expected) => {
                let (response, made) =
                    objects::receive(py, &self.classes, expected, Received { status, headers: &headers, body, truncated });
                let made = made.unwrap_or_else(|error| {
                    // The taker tries again; an exception that ends the program is raised here.
                    interrupt = Some(error).filter(|error| !error.is_instance_of::<PyException>(py));
                    None
                });
                self.readings.keep(step, made);
                Outcome::Read(response)
            }
        };
        let wanted = self.moved(py, |driver, now| driver.answered(StepId(step), outcome, now))?;
        if wanted.is_some() {
            self.hearers.answered(py, step, Some(status), None)?;
        }
        match interrupt {
            Some(interrupt) => Err(interrupt),
            None => owner.map(|owner| self.turn(owner)).transpose(),
        }
    }

    /// Takes the failure of a Send, with a note for people, and returns the next turn of the owner. `kind` and `sent` are as in `fail`.
    #[pyo3(signature = (step, kind, sent, note=None, owner=None))]
    fn failed<'py>(
        &self,
        py: Python<'py>,
        step: u32,
        kind: &str,
        sent: Option<&str>,
        note: Option<String>,
        owner: Option<&Bound<'py, Owner>>,
    ) -> PyResult<Option<Bound<'py, PyTuple>>> {
        if let Some(note) = note {
            self.hearers.note(py, self.owner_of(step), note);
        }
        let wanted = self.moved(py, |driver, now| driver.failed(StepId(step), kind, sent, now))?.map_err(refused)?;
        self.readings.failed(step);
        if wanted.is_some() {
            self.hearers.answered(py, step, None, Some(kind))?;
        }
        owner.map(|owner| self.turn(owner)).transpose()
    }

    /// Takes an answer as `respond` does, of a client that is driven by hand.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer, and the host has argument names")]
    fn answer(
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
            return self.ask(|client| client.resolve_text(step, outcome, now)).map_err(refused);
        };
        let (response, made) = objects::receive(py, &self.classes, expected, Received { status, headers: &headers, body, truncated });
        self.readings.keep(step, made.unwrap_or_default());
        self.ask(|client| client.resolve_text(step, Outcome::Read(response), now)).map_err(refused)
    }

    /// Takes the failure of a Send. `kind` is `dns`, `connect`, `tls`, `timeout`, `closed`, `aborted`, `late` or `other`; `sent` is `never`
    /// or `maybe`.
    fn fail(&self, step: u32, kind: &str, sent: &str, unix_ms: i64, monotonic_ms: i64) -> PyResult<()> {
        self.readings.failed(step);
        self.ask(|client| client.fail_text(step, kind, sent, at(unix_ms, monotonic_ms))).map_err(refused)
    }

    /// Stops further sends of a command. Returns the step of its request that is out, if no other command waits for that one: abort it, and
    /// report that it failed.
    fn cancel(&self, command: u32, unix_ms: i64, monotonic_ms: i64) -> Option<u32> {
        self.driver().client().cancel(CommandId(command), at(unix_ms, monotonic_ms)).map(|step| step.0)
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
        drop(self.ask(|client| client.take_to_read(CommandId(command))));
        Ok(result)
    }

    /// Returns the result of a command, and leaves it where it is.
    fn result<'py>(&self, py: Python<'py>, command: u32) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let result = self.ask(|client| client.result_to_read(CommandId(command)));
        result.map(|result| result_tuple(py, &self.classes, result, self.readings.of(py, command))).transpose()
    }

    /// Drops the result of a command that completed, because its caller is gone. A write without an intent that took effect, or may have,
    /// keeps its record; a lease goes back. Returns true if there was a result.
    fn abandon(&self, command: u32, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.readings.forget(command);
        self.driver().client().abandon(CommandId(command), at(unix_ms, monotonic_ms))
    }

    /// Gives a lease of a pool back. Returns true if it was valid.
    fn give_back(&self, pool: u32, lease: i64, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.driver().client().give_back(&LeaseRef { pool, lease }, at(unix_ms, monotonic_ms))
    }

    /// Returns true if the lease is still this client's.
    fn is_valid(&self, pool: u32, lease: i64) -> bool {
        self.driver().client().is_valid(&LeaseRef { pool, lease })
    }

    /// Discards the session of a lease, which is not lent again. Returns true if the lease was valid.
    fn discard(&self, pool: u32, lease: i64, unix_ms: i64, monotonic_ms: i64) -> bool {
        self.driver().client().discard(&LeaseRef { pool, lease }, at(unix_ms, monotonic_ms))
    }

    /// Keeps data of the callers' for the next lease of this exit: an object of JSON.
    fn set_lease_data(&self, pool: u32, lease: i64, data: &str, unix_ms: i64, monotonic_ms: i64) -> PyResult<()> {
        self.driver().client().set_lease_data(&LeaseRef { pool, lease }, data, at(unix_ms, monotonic_ms)).map_err(refused)
    }

    /// When a lease for the target is worth asking for, after the advice `wait`; Unix milliseconds.
    fn retry_at(&self, pool: u32, lease: i64) -> Option<i64> {
        self.driver().client().retry_at(&LeaseRef { pool, lease })
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
        self.driver().client().observe_lease_text(&LeaseRef { pool, lease }, seen, wait_ms, now).map_err(refused)
    }

    /// Resumes a record, as a command; its options are JSON as those of `start`.
    #[pyo3(signature = (record, options, owner=None))]
    fn resume(&self, record: String, options: &str, owner: Option<&Bound<'_, Owner>>) -> PyResult<Option<u32>> {
        self.enter(owner, |client| Some(client.resume_text(record, options)))
    }

    /// Resumes an intent, as a command; its `raw` is null if the intent is not known.
    #[pyo3(signature = (intent, options, owner=None))]
    fn resume_intent(&self, intent: &str, options: &str, owner: Option<&Bound<'_, Owner>>) -> PyResult<Option<u32>> {
        self.enter(owner, |client| Some(client.resume_intent_text(intent, options)))
    }

    /// Resumes everything that is open, as a command; its `raw` is a list of the commands that have ended, for `take`.
    #[pyo3(signature = (options, owner=None))]
    fn resume_all(&self, options: &str, owner: Option<&Bound<'_, Owner>>) -> PyResult<Option<u32>> {
        self.enter(owner, |client| Some(client.resume_all_text(options)))
    }

    /// Settles a doubt by hand, as a command; its `raw` is true if there was one. `became` is the resulting session or order, if it is
    /// known; `early` settles as not happened before that is certain.
    #[pyo3(signature = (record, happened, became, early, owner=None))]
    fn settle(
        &self,
        record: String,
        happened: bool,
        became: Option<String>,
        early: bool,
        owner: Option<&Bound<'_, Owner>>,
    ) -> PyResult<Option<u32>> {
        self.enter(owner, |client| Some(client.settle_text(record, happened, became, early)))
    }

    /// Forgets a session or an accepted intent, as a command; its `raw` is true if something was forgotten.
    #[pyo3(signature = (record, owner=None))]
    fn forget(&self, record: String, owner: Option<&Bound<'_, Owner>>) -> PyResult<Option<u32>> {
        self.enter(owner, |client| Some(client.forget(&RecordId(record)).command))
    }

    /// Reads a page of the store's entries, behind a name, as a command; its `raw` is `{"entries":[…],"after"}`. Nothing is sent.
    #[pyo3(signature = (after, owner=None))]
    fn saved(&self, after: Option<String>, owner: Option<&Bound<'_, Owner>>) -> PyResult<Option<u32>> {
        self.enter(owner, |client| Some(client.saved(after.map(Name::from)).command))
    }

    /// Stops following a session, so that another client may take it. Returns true if it was followed.
    fn release_session(&self, session_id: &str) -> bool {
        self.driver().client().release_session(session_id)
    }

    /// Takes claims that have ended while this client lives: of these names, or of all.
    #[pyo3(signature = (names, by_hand=None))]
    fn lost(&self, py: Python<'_>, names: Option<Vec<String>>, by_hand: Option<(i64, i64)>) -> PyResult<()> {
        let names: Option<Vec<Name>> = names.map(|names| names.into_iter().map(Name::from).collect());
        self.moved(py, |driver, now| driver.lost(names.as_deref(), by_hand.map_or(now, |(unix, monotonic)| at(unix, monotonic))))
    }

    /// Returns true if the client follows a session, which has not ended as far as it knows.
    fn follows(&self, session_id: &str) -> bool {
        self.driver().client().follows(session_id)
    }

    /// Of the reseller API: the token that is used at present.
    fn token(&self) -> Option<String> {
        self.driver().client().token().map(|token| token.reveal().to_owned())
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.hearers.traverse(&visit)
    }

    fn __clear__(&self) {
        self.hearers.clear();
    }

    /// Returns advice, as JSON, after an observation through a session: `{"status":403}` or a word. `None` if this client does not follow
    /// the session.
    #[pyo3(signature = (session_id, seen, unix_ms, monotonic_ms, owner=None))]
    fn observe(
        &self,
        session_id: &str,
        seen: &str,
        unix_ms: i64,
        monotonic_ms: i64,
        owner: Option<&Bound<'_, Owner>>,
    ) -> PyResult<Option<String>> {
        let mut told = Ok(None);
        self.enter(owner, |client| {
            told = client.observe_text(session_id, seen, at(unix_ms, monotonic_ms));
            match &told {
                Ok(Some(Verdict::Rotating(_, command))) => Some(*command),
                _ => None,
            }
        })?;
        told.map(|told| told.as_ref().map(json_of)).map_err(refused)
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
    let now = clocks();
    (now.unix, now.monotonic)
}

fn clocks() -> Now {
    static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);
    let ms = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    at(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ms), ms(BEGAN.elapsed()))
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
    module.add("Closed", module.py().get_type::<Closed>())?;
    module.add_class::<Owner>()?;
    module.add_class::<Client>()
}
