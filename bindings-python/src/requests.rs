//! Requests and responses as Python objects.

use std::sync::{Arc, Mutex, PoisonError};

use hopline::client::RESPONSE_HEADERS;
use hopline::wire::Request;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyType};

use crate::slots::Slots;

/// The members of a request, in the order in which they are set.
const MEMBERS: [&str; 8] = ["method", "url", "headers", "body", "timeout", "max_body", "_aborts", "_is_over"];

/// The class of requests, and their `user-agent`.
pub(crate) struct Requests {
    slots: Slots,
    user_agent: String,
}

/// The class of the last import of the package. A client keeps its own.
static REQUESTS: Mutex<Option<Arc<Requests>>> = Mutex::new(None);

/// Sets the class of requests, and their `user-agent`.
#[pyfunction]
pub(crate) fn requests_of(class: &Bound<'_, PyType>, user_agent: String) -> PyResult<()> {
    let slots = Slots::new(class, &MEMBERS.map(str::to_owned))?;
    let before = REQUESTS.lock().unwrap_or_else(PoisonError::into_inner).replace(Arc::new(Requests { slots, user_agent }));
    drop(before);
    Ok(())
}

/// The requests of a client that is made now.
pub(crate) fn requests() -> PyResult<Arc<Requests>> {
    let requests = REQUESTS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    requests.ok_or_else(|| PyTypeError::new_err("no class was named"))
}

/// A request as an object.
pub(crate) fn made<'py>(py: Python<'py>, Requests { slots, user_agent }: &Requests, request: &Request) -> PyResult<Bound<'py, PyAny>> {
    let headers = PyDict::new(py);
    headers.set_item("user-agent", user_agent)?;
    request.headers.iter().try_for_each(|(name, value)| headers.set_item(name, value))?;
    let body = Some(&request.body).filter(|body| !body.is_empty()).map(|body| PyBytes::new(py, body));
    let made = slots.instance(py)?;
    let members = [
        request.method.as_str().into_pyobject(py)?.into_any(),
        request.url.as_str().into_pyobject(py)?.into_any(),
        headers.into_any(),
        body.into_pyobject(py)?,
        (f64::from(request.timeout_ms) / 1000.0).into_pyobject(py)?.into_any(),
        request.max_body.into_pyobject(py)?.into_any(),
        PyList::empty(py).into_any(),
        false.into_pyobject(py)?.to_owned().into_any(),
    ];
    members.into_iter().enumerate().try_for_each(|(n, value)| slots.set(&made, n, value))?;
    Ok(made)
}

/// The headers of a response that the client needs, from a mapping or from pairs.
pub(crate) fn wanted(headers: &Bound<'_, PyAny>) -> PyResult<Vec<(String, String)>> {
    let mut wanted = Vec::new();
    let mut pass = |name: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>| {
        let name: String = name.extract()?;
        if RESPONSE_HEADERS.iter().any(|known| known.eq_ignore_ascii_case(&name)) {
            wanted.push((name, value.extract()?));
        }
        PyResult::Ok(())
    };
    if let Ok(headers) = headers.cast_exact::<PyDict>() {
        headers.iter().try_for_each(|(name, value)| pass(&name, &value))?;
        return Ok(wanted);
    }
    let pairs = headers.getattr_opt("items")?.map_or_else(|| Ok(headers.clone()), |items| items.call0())?;
    for pair in pairs.try_iter()? {
        let (name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
        pass(&name, &value)?;
    }
    Ok(wanted)
}
