//! The owners of a client: its turns as tuples, and whatever Python code is to hear of them. No lock is held while that code runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Instant;

use hopline::client::{Event, FailureKind};
use hopline::contract::json_of;
use hopline::turns::{NextTurn, Nudge, OwnerKind, OwnerNo, Place};
use pyo3::exceptions::PyException;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

/// A value that several threads share.
pub(crate) fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A look at a shared value for Python's collector of cycles, which waits for no lock: what it can't look at, it takes for something that is used.
pub(crate) fn visited<T>(shared: &Mutex<T>, visit: impl FnOnce(&T) -> Result<(), PyTraverseError>) -> Result<(), PyTraverseError> {
    match shared.try_lock() {
        Ok(shared) => visit(&shared),
        Err(TryLockError::Poisoned(shared)) => visit(&shared.into_inner()),
        Err(TryLockError::WouldBlock) => Ok(()),
    }
}

/// A thread or task that waits for a command, or does the remaining work of one that needs no waiting.
#[pyclass(frozen, subclass, module = "hopline._hopline")]
pub struct Owner {
    pub(crate) no: OwnerNo,
    pub(crate) kind: OwnerKind,
    pub(crate) place: Place,
    /// The event loop of a task.
    event_loop: Mutex<Option<Py<PyAny>>>,
    #[pyo3(get)]
    operation: String,
    /// The thread that made it, as Python counts threads.
    #[pyo3(get)]
    thread: u64,
    /// Its command; negative for none.
    pub(crate) command: AtomicI64,
    /// True while it is in the client.
    pub(crate) is_in: AtomicBool,
    gave_up: AtomicBool,
    is_sending: AtomicBool,
    bell: Mutex<Bell>,
    notes: Mutex<Vec<String>>,
    results: OnceLock<Py<PyList>>,
}

/// Whom to wake, once it listens.
#[derive(Default)]
struct Bell {
    ring: Option<Py<PyAny>>,
    /// True if it rang before anybody listened.
    has_rung: bool,
}

#[pymethods]
impl Owner {
    /// An owner for this operation. `sends_itself` is true if it sends the requests of its own command by itself; a task has an event loop.
    #[new]
    #[pyo3(signature = (operation, sends_itself, thread, event_loop=None))]
    fn new(operation: String, sends_itself: bool, thread: u64, event_loop: Option<Py<PyAny>>) -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Owner {
            no: OwnerNo(LAST.fetch_add(1, Ordering::Relaxed) + 1),
            kind: if sends_itself { OwnerKind::Sending } else { OwnerKind::Delegating },
            // No other loop has its address as long as this owner lives.
            place: event_loop.as_ref().map_or(Place::THREADS, |event_loop| Place(event_loop.as_ptr() as u64)),
            event_loop: Mutex::new(event_loop),
            operation,
            thread,
            command: AtomicI64::new(-1),
            is_in: AtomicBool::default(),
            gave_up: AtomicBool::default(),
            is_sending: AtomicBool::default(),
            bell: Mutex::default(),
            notes: Mutex::default(),
            results: OnceLock::new(),
        }
    }

    /// Its command.
    #[getter]
    fn command(&self) -> Option<u32> {
        u32::try_from(self.command.load(Ordering::Relaxed)).ok()
    }

    /// True while it is in the client.
    #[getter]
    fn is_in(&self) -> bool {
        self.is_in.load(Ordering::Relaxed)
    }

    /// True once it has given up its command.
    #[getter]
    fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// True from the moment at which it is about to send what its last turn gave it.
    #[getter]
    fn is_sending(&self) -> bool {
        self.is_sending.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_sending(&self, is_sending: bool) {
        self.is_sending.store(is_sending, Ordering::Relaxed);
    }

    /// Calls this to wake the owner, from now on, and at once if it was woken before.
    fn listen(&self, ring: Py<PyAny>, py: Python<'_>) -> PyResult<()> {
        let (before, has_rung) = {
            let mut bell = locked(&self.bell);
            (bell.ring.replace(ring), std::mem::take(&mut bell.has_rung))
        };
        drop(before);
        if has_rung { self.ring(py).map(drop) } else { Ok(()) }
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visited(&self.event_loop, |event_loop| event_loop.iter().try_for_each(|event_loop| visit.call(event_loop)))?;
        visited(&self.bell, |bell| bell.ring.iter().try_for_each(|ring| visit.call(ring)))?;
        self.results.get().iter().try_for_each(|results| visit.call(*results))
    }

    fn __clear__(&self) {
        let before = locked(&self.bell).ring.take();
        drop(before);
    }

    /// The results of its command, once its turn was `done`.
    #[getter(results)]
    fn results_made(&self, py: Python<'_>) -> Option<Py<PyList>> {
        self.results.get().map(|results| results.clone_ref(py))
    }

    /// Adds a note to the failure that may follow.
    fn note(&self, note: String) {
        locked(&self.notes).push(note);
    }

    /// The notes.
    #[getter]
    fn notes(&self) -> Vec<String> {
        locked(&self.notes).clone()
    }
}

impl Owner {
    /// Wakes it. Returns false if its event loop is closed, so that it never runs again.
    pub(crate) fn ring(&self, py: Python<'_>) -> PyResult<bool> {
        let event_loop = locked(&self.event_loop).as_ref().map(|event_loop| event_loop.clone_ref(py));
        if let Some(event_loop) = event_loop
            && event_loop.call_method0(py, "is_closed")?.is_truthy(py)?
        {
            return Ok(false);
        }
        let ring = {
            let mut bell = locked(&self.bell);
            let ring = bell.ring.as_ref().map(|ring| ring.clone_ref(py));
            bell.has_rung = ring.is_none();
            ring
        };
        ring.map_or(Ok(true), |ring| ring.call0(py).map(|_| true))
    }

    pub(crate) fn give_up(&self) {
        self.gave_up.store(true, Ordering::Relaxed);
    }

    /// Its next turn begins: nothing of it is sent yet.
    pub(crate) fn goes_on(&self) {
        self.is_sending.store(false, Ordering::Relaxed);
    }

    pub(crate) fn was_sending(&self) -> bool {
        self.is_sending.load(Ordering::Relaxed)
    }

    /// The results of its command, which are made once.
    pub(crate) fn results<'py>(
        &self,
        py: Python<'py>,
        make: impl FnOnce() -> PyResult<Bound<'py, PyList>>,
    ) -> PyResult<Bound<'py, PyList>> {
        if let Some(made) = self.results.get() {
            return Ok(made.bind(py).clone());
        }
        let made = make()?;
        Ok(self.results.get_or_init(|| made.unbind()).bind(py).clone())
    }
}

/// A send that was given out.
struct SendGiven {
    request: Py<PyAny>,
    operation: String,
    /// When it began, if anybody listens.
    began: Option<Instant>,
}

/// A send that is over.
struct SendOver {
    request: Py<PyAny>,
    /// The list of events for listeners.
    told: Option<Py<PyList>>,
}

/// What Python code is told: owners that wake, requests that are broken off, events, and the background.
#[derive(Default)]
pub(crate) struct Hearers {
    owners: Mutex<HashMap<OwnerNo, Py<Owner>>>,
    sends: Mutex<HashMap<u32, SendGiven>>,
    host: OnceLock<HostCalls>,
}

/// The outcome of what Python code was told.
#[derive(Default)]
pub(crate) struct Delivered {
    /// True if the background can't begin.
    cant_look: bool,
    /// The owners that can't be woken any more.
    pub(crate) deserted: Vec<Py<Owner>>,
    /// An interrupt, which comes once all is done.
    pub(crate) interrupt: Option<PyErr>,
}

impl Delivered {
    pub(crate) fn can_look(&self) -> bool {
        !self.cant_look
    }
}

/// The functions of the package.
struct HostCalls {
    /// Takes a list of events: text of the core, or `(request, operation, status, failure, seconds)`.
    hear: Py<PyAny>,
    /// Lets the background begin in that many milliseconds.
    look: Py<PyAny>,
    /// Wakes the background.
    wake: Py<PyAny>,
}

impl Hearers {
    pub(crate) fn serve(&self, hear: Py<PyAny>, look: Py<PyAny>, wake: Py<PyAny>) {
        _ = self.host.set(HostCalls { hear, look, wake });
    }

    pub(crate) fn add(&self, owner: &Bound<'_, Owner>) {
        let before = locked(&self.owners).insert(owner.get().no, owner.clone().unbind());
        drop(before);
    }

    pub(crate) fn remove(&self, owner: OwnerNo) {
        let before = locked(&self.owners).remove(&owner);
        drop(before);
    }

    fn owner(&self, py: Python<'_>, owner: OwnerNo) -> Option<Py<Owner>> {
        locked(&self.owners).get(&owner).map(|owner| owner.clone_ref(py))
    }

    /// Returns true if an owner of this thread is in the client.
    pub(crate) fn has_of(&self, thread: u64) -> bool {
        locked(&self.owners).values().any(|owner| owner.get().thread == thread)
    }

    /// Adds a note to the failure of an owner.
    pub(crate) fn note(&self, py: Python<'_>, owner: Option<OwnerNo>, note: String) {
        if let Some(owner) = owner.and_then(|owner| self.owner(py, owner)) {
            owner.get().note(note);
        }
    }

    /// Keeps a request that was given out; `owner` waits for its command.
    pub(crate) fn give(&self, py: Python<'_>, step: u32, request: &Bound<'_, PyAny>, owner: Option<OwnerNo>) {
        let operation =
            owner.and_then(|owner| self.owner(py, owner)).map_or_else(|| "request".to_owned(), |owner| owner.get().operation.clone());
        let given = SendGiven { request: request.clone().unbind(), operation, began: None };
        let before = locked(&self.sends).insert(step, given);
        drop(before);
    }

    /// The request of a send that was given out before.
    pub(crate) fn request<'py>(&self, py: Python<'py>, step: u32) -> Option<Bound<'py, PyAny>> {
        locked(&self.sends).get(&step).map(|given| given.request.bind(py).clone())
    }

    /// A send begins.
    pub(crate) fn begun(&self, py: Python<'_>, step: u32) -> PyResult<()> {
        let told = locked(&self.sends).get_mut(&step).map(|given| {
            given.began = Some(Instant::now());
            (given.request.clone_ref(py), given.operation.clone())
        });
        let Some((request, operation)) = told else { return Ok(()) };
        self.hear(py, &PyList::new(py, [(request, operation, None::<u16>, None::<&str>, None::<f64>)])?)
    }

    /// A send is over. Returns its request, and what listeners are told of it.
    fn over(&self, py: Python<'_>, step: u32, status: Option<u16>, failure: Option<&str>) -> PyResult<Option<SendOver>> {
        let given = locked(&self.sends).remove(&step);
        let Some(SendGiven { request, operation, began }) = given else { return Ok(None) };
        let told = match began {
            Some(began) => {
                let told = (&request, operation, status, failure, began.elapsed().as_secs_f64()).into_pyobject(py)?;
                Some(PyList::new(py, [told])?.unbind())
            }
            None => None,
        };
        Ok(Some(SendOver { request, told }))
    }

    /// A send was answered.
    pub(crate) fn answered(&self, py: Python<'_>, step: u32, status: Option<u16>, failure: Option<&str>) -> PyResult<()> {
        match self.over(py, step, status, failure)?.and_then(|over| over.told) {
            Some(told) => self.hear(py, told.bind(py)),
            None => Ok(()),
        }
    }

    /// Breaks a send off that is not wanted any more.
    pub(crate) fn break_off(&self, py: Python<'_>, step: u32, kind: FailureKind) -> PyResult<Option<PyErr>> {
        let Some(SendOver { request, told }) = self.over(py, step, None, Some(kind.as_str()))? else { return Ok(None) };
        let mut interrupt = surely(py, || request.call_method0(py, "abort").map(drop));
        if let Some(told) = told {
            let heard = self.hear(py, told.bind(py));
            interrupt = interrupt.or(heard.err());
        }
        Ok(interrupt)
    }

    fn hear(&self, py: Python<'_>, events: &Bound<'_, PyList>) -> PyResult<()> {
        self.host.get().map_or(Ok(()), |host| host.hear.call1(py, (events,)).map(drop))
    }

    /// Carries out what is to be done at once.
    pub(crate) fn deliver(&self, py: Python<'_>, (nudges, events): (Vec<Nudge>, Vec<Event>), now: i64) -> Delivered {
        let mut delivered = Delivered::default();
        for nudge in nudges {
            let came = match nudge {
                Nudge::Wake(OwnerNo::BACKGROUND) => self.host.get().and_then(|host| surely(py, || host.wake.call0(py).map(drop))),
                Nudge::Wake(owner) => self.owner(py, owner).and_then(|owner| {
                    let mut is_heard = true;
                    let came = surely(py, || {
                        is_heard = owner.get().ring(py)?;
                        Ok(())
                    });
                    if !is_heard {
                        delivered.deserted.push(owner);
                    }
                    came
                }),
                Nudge::Look(until) => self.host.get().and_then(|host| {
                    surely(py, || {
                        delivered.cant_look = !host.look.call1(py, ((until - now).max(0),))?.extract::<bool>(py)?;
                        Ok(())
                    })
                }),
                Nudge::Over(step, kind, _) => self.break_off(py, step.0, kind).unwrap_or_else(Some),
            };
            delivered.interrupt = delivered.interrupt.or(came);
        }
        if !events.is_empty() {
            let heard = PyList::new(py, events.iter().map(json_of)).and_then(|events| self.hear(py, &events));
            delivered.interrupt = delivered.interrupt.or(heard.err());
        }
        delivered
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visited(&self.owners, |owners| owners.values().try_for_each(|owner| visit.call(owner)))?;
        visited(&self.sends, |sends| sends.values().try_for_each(|given| visit.call(&given.request)))?;
        self.host
            .get()
            .map_or(Ok(()), |HostCalls { hear, look, wake }| [hear, look, wake].into_iter().try_for_each(|call| visit.call(call)))
    }

    pub(crate) fn clear(&self) {
        let owners = self.owners.try_lock().map(|mut owners| std::mem::take(&mut *owners));
        let sends = self.sends.try_lock().map(|mut sends| std::mem::take(&mut *sends));
        drop((owners.ok(), sends.ok()));
    }
}

/// Makes a call, once more if an interrupt came in between, which is returned. A call that fails otherwise has nobody to tell.
fn surely(py: Python<'_>, mut call: impl FnMut() -> PyResult<()>) -> Option<PyErr> {
    let interrupt = call().err().filter(|error| !error.is_instance_of::<PyException>(py))?;
    _ = call();
    Some(interrupt)
}

/// A turn that needs no object of the package:
///
/// - `("ask", step, call)`: make that call of the store, and answer by `stored`
/// - `("wait", seconds)`, until woken where it is `None`
pub(crate) fn plain<'py>(py: Python<'py>, turn: NextTurn, now: i64) -> PyResult<Bound<'py, PyTuple>> {
    match turn {
        NextTurn::Ask { step, call } => ("ask", step.0, crate::store::call_tuple(py, call)?).into_pyobject(py),
        NextTurn::Wait(until) => ("wait", until.map(|until| (until - now).max(1) as f64 / 1000.0)).into_pyobject(py),
        NextTurn::Send { .. } | NextTurn::Ended | NextTurn::Done => ("done", py.None()).into_pyobject(py),
    }
}
