//! The objects of an answer, made while it is read: instances of the printed classes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use hopline::Error;
use hopline::client::{Answered, Taken};
use hopline::contract::{REPLIES, Record, Shape, Sink, Word, endpoints};
use hopline::wire::{self, Expected, Received, Response};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyBytes, PyInt, PyString, PyTuple, PyType};

use crate::slots::Slots;

/// The slots of an answer after those of its members.
const TAIL: [&str; 3] = ["_raw", "request_id", "phase"];

/// The number of short texts that are reused: those of a list are often the same.
const SHORT: usize = 32;

/// The classes of values.
pub(crate) struct Classes {
    /// The classes of records, by their names: a record may have several addresses.
    records: HashMap<&'static str, Slots>,
    /// The class of an undocumented answer.
    reply: Slots,
    secret: Py<PyAny>,
    loads: Py<PyAny>,
}

/// The classes of the last import of the package. A client keeps its own.
static CLASSES: Mutex<Option<Arc<Classes>>> = Mutex::new(None);
/// Imported with the first number, since that takes a while.
static DECIMAL: PyOnceLock<Py<PyType>> = PyOnceLock::new();

/// Sets the classes, by the names of their records and with those of their members in the order of the table; that of other answers has no
/// name. `loads` reads undocumented JSON.
#[pyfunction]
pub(crate) fn make_of(
    classes: HashMap<String, (Bound<'_, PyType>, Vec<String>, bool)>,
    secret: Py<PyAny>,
    loads: Py<PyAny>,
) -> PyResult<()> {
    let class = |name: &str| {
        let (class, names, is_answer) = classes.get(name).ok_or_else(|| PyTypeError::new_err(format!("`{name}` has no class")))?;
        let tail = TAIL.iter().filter(|_| *is_answer).map(|name| (*name).to_owned());
        Slots::new(class, &names.iter().cloned().chain(tail).collect::<Vec<_>>())
    };
    let records = endpoints().map(|endpoint| endpoint.response).chain(REPLIES).flat_map(records_of);
    let records = records.map(|record| Ok((record.name, class(record.name)?))).collect::<PyResult<_>>()?;
    let made = Arc::new(Classes { records, reply: class("")?, secret, loads });
    let before = CLASSES.lock().unwrap_or_else(PoisonError::into_inner).replace(made);
    drop(before);
    Ok(())
}

/// The classes of a client that is made now.
pub(crate) fn classes() -> PyResult<Arc<Classes>> {
    let classes = CLASSES.lock().unwrap_or_else(PoisonError::into_inner).clone();
    classes.ok_or_else(|| PyTypeError::new_err("no classes were named"))
}

/// The records that a value of this shape is made of.
fn records_of(shape: Shape) -> Vec<&'static Record> {
    match shape {
        Shape::Record(record) => std::iter::once(record).chain(record.fields.iter().flat_map(|field| records_of(field.shape))).collect(),
        Shape::List(item) | Shape::OneOrMany(item) => records_of(*item),
        _ => Vec::new(),
    }
}

/// The object of an answer, and the text that it was made from.
pub(crate) struct Made {
    shape: &'static Shape,
    raw: Py<PyBytes>,
    object: Py<PyAny>,
}

impl Made {
    pub(crate) fn clone_ref(&self, py: Python<'_>) -> Self {
        Made { shape: self.shape, raw: self.raw.clone_ref(py), object: self.object.clone_ref(py) }
    }

    /// Returns true if it is the object of this answer, which is the same text, read as the same type.
    fn is_of(&self, py: Python<'_>, taken: &Taken) -> bool {
        std::ptr::eq(self.shape, taken.shape()) && self.raw.as_bytes(py) == taken.raw().as_bytes()
    }
}

/// Reads a response, and makes the object of a success that fits its type.
pub(crate) fn receive<'a>(
    py: Python<'_>,
    classes: &Classes,
    expected: Expected,
    received: Received<'a>,
) -> (Response<'a>, PyResult<Option<Made>>) {
    if !matches!(expected.shape(), Shape::Record(_)) {
        // An undocumented answer has no members to make.
        return (wire::read(expected, received, &mut ()).0, Ok(None));
    }
    let mut objects = Objects::new(py, classes);
    let (response, object) = wire::read(expected, received, &mut objects);
    let raw = response.raw().filter(|_| response.fit().is_ok()).map(|raw| PyBytes::new(py, raw.as_bytes()).unbind());
    let made = raw.zip(object).map(|(raw, object)| Made { shape: expected.shape(), raw, object: object.unbind() });
    (response, objects.failed.map_or(Ok(made), Err))
}

/// Returns the answer of a command as an object: the one that was made from the response, if it is that; or the failure, such as a misfit
/// of its type.
pub(crate) fn read<'py>(
    py: Python<'py>,
    classes: &Classes,
    taken: Taken,
    made: Option<Made>,
) -> PyResult<Result<(Bound<'py, PyAny>, Answered), Error>> {
    // An answer that the package reads by itself, such as a pool's, has no class here.
    let own = if let Shape::Record(record) = taken.shape() { classes.records.get(record.name) } else { None };
    let slots = own.unwrap_or(&classes.reply);
    let (reply, raw, answered) = match made.filter(|made| made.is_of(py, &taken)) {
        Some(made) => (made.object.into_bound(py), made.raw.into_bound(py), taken.answered()),
        None => {
            let mut objects = Objects::new(py, classes);
            let read = match own {
                Some(_) => taken.read(&mut objects),
                // An undocumented answer is parsed on first use.
                None => taken.read(&mut ()).map(|((), answered)| (objects.made(classes.reply.instance(py)), answered)),
            };
            match (objects.failed, read) {
                (Some(failed), _) => return Err(failed),
                (None, Err(error)) => return Ok(Err(error)),
                (None, Ok((reply, answered))) => {
                    (reply.unbind().into_bound(py), PyBytes::new(py, answered.raw.text().as_bytes()), answered)
                }
            }
        }
    };
    let first = slots.len() - TAIL.len();
    let tail = [
        raw.into_any(),
        answered.facts.request_id.as_deref().into_pyobject(py)?,
        answered.phase.map(|phase| phase.as_str()).into_pyobject(py)?,
    ];
    for (n, value) in tail.into_iter().enumerate() {
        slots.set(&reply, first + n, value)?;
    }
    Ok(Ok((reply, answered)))
}

impl Classes {
    /// The class of a record. Each record of the table has one: `make_of` checks that.
    fn of(&self, record: &Record) -> &Slots {
        self.records.get(record.name).unwrap_or(&self.reply)
    }
}

/// Makes objects. The first exception of Python is kept, and nothing is made after it.
struct Objects<'py> {
    py: Python<'py>,
    classes: &'py Classes,
    failed: Option<PyErr>,
    /// The class of the last object: most often the next one's, too.
    last: Option<(&'static Record, &'py Slots)>,
    /// Texts of up to 16 bytes that came before, each with its bytes and their number, in the place that these determine.
    short: [Option<(u128, usize, Bound<'py, PyAny>)>; SHORT],
}

/// An object or a list that is being made.
enum Nest<'py> {
    /// `set` has a bit for each slot: those of at most 64 members, and of the tail.
    Object {
        slots: &'py Slots,
        instance: Bound<'py, PyAny>,
        set: u128,
    },
    List(Vec<Bound<'py, PyAny>>),
}

impl<'py> Objects<'py> {
    fn new(py: Python<'py>, classes: &'py Classes) -> Self {
        Objects { py, classes, failed: None, last: None, short: Default::default() }
    }

    fn none(&self) -> Bound<'py, PyAny> {
        self.py.None().into_bound(self.py)
    }

    /// A text, which is the same object as an earlier equal one, if it is short.
    fn same(&mut self, text: &str, make: impl Fn(Python<'py>, &str) -> Bound<'py, PyString>) -> Bound<'py, PyAny> {
        let mut bytes = [0; 16];
        let Some(room) = bytes.get_mut(..text.len()) else { return make(self.py, text).into_any() };
        room.copy_from_slice(text.as_bytes());
        let bytes = u128::from_le_bytes(bytes);
        let mixed = (bytes as u64 ^ (bytes >> 64) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let place = &mut self.short[(mixed >> 32) as usize % SHORT];
        match place {
            Some((known, length, made)) if (*known, *length) == (bytes, text.len()) => made.clone(),
            _ => {
                let made = make(self.py, text).into_any();
                *place = Some((bytes, text.len(), made.clone()));
                made
            }
        }
    }

    fn made(&mut self, made: PyResult<Bound<'py, PyAny>>) -> Bound<'py, PyAny> {
        made.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            self.none()
        })
    }
}

impl<'py> Sink for Objects<'py> {
    type Value = Bound<'py, PyAny>;
    type Nest = Nest<'py>;

    fn null(&mut self) -> Bound<'py, PyAny> {
        self.none()
    }

    fn flag(&mut self, value: bool) -> Bound<'py, PyAny> {
        PyBool::new(self.py, value).to_owned().into_any()
    }

    fn integer(&mut self, value: i64) -> Bound<'py, PyAny> {
        PyInt::new(self.py, value).into_any()
    }

    fn decimal(&mut self, digits: &str) -> Bound<'py, PyAny> {
        let made = DECIMAL.import(self.py, "decimal", "Decimal").and_then(|class| class.call1((digits,)));
        self.made(made)
    }

    fn text(&mut self, text: &str, secret: bool) -> Bound<'py, PyAny> {
        if !secret {
            return self.same(text, PyString::new);
        }
        let text = PyString::new(self.py, text);
        let made = self.classes.secret.bind(self.py).call1((text,));
        self.made(made)
    }

    fn word(&mut self, text: &str, known: Option<&'static Word>) -> Bound<'py, PyAny> {
        match known {
            Some(word) => self.same(word.word, PyString::intern),
            None => PyString::new(self.py, text).into_any(),
        }
    }

    fn json(&mut self, text: &str) -> Bound<'py, PyAny> {
        let made = self.classes.loads.bind(self.py).call1((text,));
        self.made(made)
    }

    fn object(&mut self, record: &'static Record) -> Nest<'py> {
        let (_, slots) = match self.last {
            Some((known, slots)) if std::ptr::eq(known, record) => (known, slots),
            _ => *self.last.insert((record, self.classes.of(record))),
        };
        let made = slots.instance(self.py);
        Nest::Object { slots, instance: self.made(made), set: 0 }
    }

    fn list(&mut self) -> Nest<'py> {
        Nest::List(Vec::new())
    }

    fn put(&mut self, nest: &mut Nest<'py>, index: usize, value: Bound<'py, PyAny>) {
        if self.failed.is_some() {
            return;
        }
        match nest {
            Nest::Object { slots, instance, set } => {
                *set |= 1 << index;
                self.failed = slots.set(instance, index, value).err();
            }
            Nest::List(items) => items.push(value),
        }
    }

    fn end(&mut self, nest: Nest<'py>) -> Bound<'py, PyAny> {
        match nest {
            Nest::Object { slots, instance, set } => {
                for index in (0..slots.len()).filter(|index| set >> index & 1 == 0) {
                    if self.failed.is_none() {
                        self.failed = slots.set(&instance, index, self.none()).err();
                    }
                }
                instance
            }
            Nest::List(items) => {
                let made = PyTuple::new(self.py, items);
                self.made(made.map(Bound::into_any))
            }
        }
    }
}
