//! Reads a response: one pass over the body, outside the client, while a sink builds the host's values. Every status with any bytes gives a
//! response, and the status is never lost.

mod aliases;
mod envelope;
mod found;
mod number;
mod place;
mod response;
mod secrets;
mod walk;

use super::media_type;
use crate::contract::{Shape, Sink, Text};
use crate::json::{NotJson, Scanner};
pub(crate) use found::{FactMembers, NAMES};
pub(crate) use number::{decimal_of, is_id, whole_of};
use place::error_at;
pub(crate) use response::{ContentRef, DataRef, FailureRef, Flaw};
pub use response::{DecodeError, Expected, Reading, Received, Response};
pub(crate) use secrets::{Undocumented, names_a_secret};
pub use secrets::{is_secret_name, secret_endings};
use walk::{FirstMisfit, Walk};

/// Reads a response. The returned value is what the sink built from the `data` of a success, even if it does not fit its type.
pub fn read<'a, S: Sink>(expected: Expected, received: Received<'a>, sink: &mut S) -> (Response<'a>, Option<S::Value>) {
    let is_whole = !received.truncated && !received.is_too_long(expected.max_body) && !(300..400).contains(&received.status);
    let found = if is_whole { envelope::read(received.text(), expected, sink) } else { None };
    let (content, meta, value) = match found {
        Some((ContentRef::Success(data), ..)) if data.has_long_cursor(expected.shape) => {
            (ContentRef::NoEnvelope { flaw: Flaw::LongCursor }, Default::default(), None)
        }
        Some(found) => found,
        None => {
            let is_json = received.header("content-type").next().is_none_or(media_type::is_json);
            let flaw = if received.broke_off(expected.max_body, is_json) { Flaw::BrokeOff } else { Flaw::Page };
            (ContentRef::NoEnvelope { flaw }, Default::default(), None)
        }
    };
    (Response { received, expected, content, meta }, value)
}

/// Reads JSON as a type. A sink builds the value, which fits the type.
pub fn read_as<S: Sink>(shape: &'static Shape, json: &str, sink: &mut S) -> Result<S::Value, DecodeError> {
    let mut walk = Walk::new(json);
    let value = walk.value(shape, sink);
    finish(&walk, shape, json, value)
}

/// Reads JSON as a type and returns the findings.
pub(crate) fn reading(shape: &'static Shape, json: &str) -> Reading {
    let (mut walk, mut undocumented) = (Walk::new(json), Undocumented::default());
    let value = walk.value(shape, &mut undocumented);
    let misfit = finish(&walk, shape, json, value).err().map(Box::new);
    let (rewritten, beyond_doubles) = (walk.rewritten, walk.beyond_doubles);
    Reading { misfit, rewritten, beyond_doubles, undocumented_secrets: undocumented.secrets }
}

/// The value, where it fits.
fn finish<V>(walk: &Walk<'_>, shape: &'static Shape, json: &str, value: Result<V, NotJson>) -> Result<V, DecodeError> {
    match (walk.misfit, value) {
        (None, Ok(value)) => Ok(value),
        (Some(misfit), Ok(_)) => Err(error_at(misfit, Scanner::new(json), shape)),
        (_, Err(NotJson)) => {
            Err(error_at(FirstMisfit { at: 0, missing: None, expected: Shape::Json.expected() }, Scanner::new(json), shape))
        }
    }
}

/// JSON as the table writes it; `None` if it is written that way already.
pub(crate) fn view(shape: &'static Shape, json: &str) -> Option<String> {
    let (mut walk, mut text) = (Walk::new(json), Text::default());
    walk.value(shape, &mut text).ok()?;
    walk.rewritten.then(|| text.into_text())
}

/// JSON as the table writes it, with a whole number that no double holds as text; `None` if it is written that way already.
pub(crate) fn view_for_doubles(shape: &'static Shape, json: &str) -> Option<String> {
    let (mut walk, mut text) = (Walk::new(json), Text::for_doubles());
    walk.value(shape, &mut text).ok()?;
    (walk.rewritten || walk.beyond_doubles).then(|| text.into_text())
}

#[cfg(test)]
mod tests;
