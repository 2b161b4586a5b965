//! Calls and answers of a store, as tuples: a word first, then its values.

use std::str::FromStr;

use hopline::client::{Listed, Name, StoreAnswer, StoreCall, Whose};
use hopline::contract::Decimal;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// A call:
///
/// - `("claim", names, most)`
/// - `("put", name, data, new, keep_for_ms, release)`
/// - `("delete", name)`
/// - `("release", names)`, all where they are `None`
/// - `("list", space, after, open)`
/// - `("spend", space, day, entry, amount, cap)`: money is text
pub(crate) fn call_tuple(py: Python<'_>, call: StoreCall) -> PyResult<Bound<'_, PyTuple>> {
    let texts = |names: Vec<Name>| names.into_iter().map(|name| name.to_string()).collect::<Vec<_>>();
    match call {
        StoreCall::Claim { names, most } => ("claim", texts(names), most).into_pyobject(py),
        StoreCall::Put { name, data, new, keep_for, release } => {
            ("put", name.as_str(), PyBytes::new(py, &data), new, keep_for, release).into_pyobject(py)
        }
        StoreCall::Delete { name } => ("delete", name.as_str()).into_pyobject(py),
        StoreCall::Release { names } => ("release", names.map(texts)).into_pyobject(py),
        StoreCall::List { space, after, open } => ("list", space.0, after.map(|name| name.to_string()), open).into_pyobject(py),
        StoreCall::Spend { space, day, entry, amount, cap } => {
            ("spend", space.0, day, entry, amount.to_string(), cap.map(|cap| cap.to_string())).into_pyobject(py)
        }
    }
}

/// An answer: `("done",)`, `("claimed", [(name, data)])`, `("busy", data)`, `("lost",)`, `("listed", [(name, data, whose)], more)`,
/// `("granted", day)`, `("over", day, total)`, `("failed",)`, or `("never",)` where the store could not be opened at all.
pub(crate) fn answer(told: &Bound<'_, PyTuple>) -> PyResult<StoreAnswer> {
    let wrong = |what: &str| PyValueError::new_err(format!("a store can't answer {what}"));
    let word: String = told.get_item(0)?.extract()?;
    Ok(match word.as_str() {
        "done" => StoreAnswer::Done,
        "lost" => StoreAnswer::Lost,
        "failed" => StoreAnswer::Failed,
        "never" => StoreAnswer::Never,
        "claimed" => {
            let claimed: Vec<(String, Option<Vec<u8>>)> = told.get_item(1)?.extract()?;
            StoreAnswer::Claimed(claimed.into_iter().map(|(name, data)| (Name::from(name), data)).collect())
        }
        "busy" => StoreAnswer::Busy(told.get_item(1)?.extract()?),
        "listed" => {
            let entries: Vec<(String, Vec<u8>, String)> = told.get_item(1)?.extract()?;
            let listed = |(name, data, whose): (String, Vec<u8>, String)| {
                let whose = match whose.as_str() {
                    "mine" => Whose::Mine,
                    "free" => Whose::Free,
                    "other" => Whose::Other,
                    _ => return Err(wrong("whose a name is with another word than `mine`, `free` or `other`")),
                };
                Ok(Listed { name: Name::from(name), data, whose })
            };
            StoreAnswer::Listed { entries: entries.into_iter().map(listed).collect::<PyResult<_>>()?, more: told.get_item(2)?.extract()? }
        }
        "granted" => StoreAnswer::Granted { day: told.get_item(1)?.extract()? },
        "over" => {
            let total: String = told.get_item(2)?.extract()?;
            StoreAnswer::Over {
                day: told.get_item(1)?.extract()?,
                total: Decimal::from_str(&total).map_err(|_| wrong("a total that is not a number"))?,
            }
        }
        _ => return Err(wrong("with an unknown word")),
    })
}
