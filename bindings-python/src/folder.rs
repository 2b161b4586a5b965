//! A store in a folder, for one client.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use hopline_store::{Claim, Decimal, Error, Put, Spend, Spent, Store, Whose, Written, system_clock};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// The six calls. Each may be made in any thread.
#[pyclass(frozen, module = "hopline._hopline")]
pub(crate) struct Folder(hopline_store::Folder);

fn failed(error: Error) -> PyErr {
    PyOSError::new_err(error.to_string())
}

fn money(text: &str) -> PyResult<Decimal> {
    Decimal::from_str(text).map_err(|_| PyValueError::new_err("an amount is a decimal number"))
}

/// Returns true if the change was made; otherwise the name is lost.
fn is_done(result: Result<Written, Error>) -> PyResult<bool> {
    result.map(|written| written == Written::Done).map_err(failed)
}

#[pymethods]
impl Folder {
    /// Opens a folder; a missing one is made. `clock` returns the time in milliseconds since 1970. Default: the machine's.
    #[new]
    #[pyo3(signature = (path, clock=None))]
    fn new(py: Python<'_>, path: PathBuf, clock: Option<Py<PyAny>>) -> PyResult<Self> {
        let clock = match clock {
            // A clock that fails counts as the beginning of time: nothing is dropped then.
            Some(clock) => Arc::new(move || Python::attach(|py| clock.call0(py).and_then(|now| now.extract(py)).unwrap_or_default())),
            None => system_clock(),
        };
        py.detach(|| hopline_store::Folder::with_clock(path, clock)).map(Folder).map_err(failed)
    }

    /// `("claimed", [(name, data)])` or `("busy", data)`.
    #[allow(clippy::needless_pass_by_value, reason = "what Python gives is extracted")]
    fn claim<'py>(&self, py: Python<'py>, names: Vec<String>, most: usize) -> PyResult<Bound<'py, PyTuple>> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let bytes = |data: Option<Vec<u8>>| data.map(|data| PyBytes::new(py, &data));
        match py.detach(|| self.0.claim(&names, most)).map_err(failed)? {
            Claim::Claimed(claimed) => {
                ("claimed", claimed.into_iter().map(|(name, data)| (name, bytes(data))).collect::<Vec<_>>()).into_pyobject(py)
            }
            Claim::Busy(data) => ("busy", bytes(data)).into_pyobject(py),
        }
    }

    fn put(&self, py: Python<'_>, name: &str, data: &[u8], new: bool, keep_for_ms: Option<u64>, release: bool) -> PyResult<bool> {
        let how = Put { new, keep_for: keep_for_ms.map(Duration::from_millis), release };
        is_done(py.detach(|| self.0.put(name, data, &how)))
    }

    fn delete(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        is_done(py.detach(|| self.0.delete(name)))
    }

    #[allow(clippy::needless_pass_by_value, reason = "what Python gives is extracted")]
    fn release(&self, py: Python<'_>, names: Option<Vec<String>>) -> PyResult<()> {
        let names: Option<Vec<&str>> = names.as_ref().map(|names| names.iter().map(String::as_str).collect());
        py.detach(|| self.0.release(names.as_deref())).map_err(failed)
    }

    /// `([(name, data, whose)], more)`.
    fn list<'py>(&self, py: Python<'py>, space: &str, after: Option<&str>, open: bool) -> PyResult<Bound<'py, PyTuple>> {
        let page = py.detach(|| self.0.list(space, after, open)).map_err(failed)?;
        let whose = |whose| match whose {
            Whose::Mine => "mine",
            Whose::Free => "free",
            Whose::Other => "other",
        };
        let entries = page.entries.into_iter().map(|entry| (entry.name, PyBytes::new(py, &entry.data), whose(entry.whose)));
        (entries.collect::<Vec<_>>(), page.more).into_pyobject(py)
    }

    /// `("granted", day)` or `("over", day, total)`; money is text.
    fn spend<'py>(
        &self,
        py: Python<'py>,
        space: &str,
        day: Option<i64>,
        entry: &str,
        amount: &str,
        cap: Option<&str>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let spend = Spend { space, day, entry, amount: money(amount)?, cap: cap.map(money).transpose()? };
        match py.detach(|| self.0.spend(&spend)).map_err(failed)? {
            Spent::Granted { day } => ("granted", day).into_pyobject(py),
            Spent::Over { day, total } => ("over", day, total.to_string()).into_pyobject(py),
        }
    }

    /// Releases everything.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }
}
