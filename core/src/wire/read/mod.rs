//! From what came over HTTP to what it says: one pass over the body, outside the client, which has a sink build the host's
//! values on the way. Total: any bytes with any status give a response, and the status is never lost.

mod aliases;
mod envelope;
mod found;
mod place;
mod response;
mod secrets;
mod walk;

use super::media_type;
use crate::contract::{Shape, Sink, Text};
use crate::json::{NotJson, Scanner};
use envelope::Envelope;
pub(crate) use found::{FactMembers, NAMES};
use place::error_at;
pub(crate) use response::{ContentRef, Data, Failure, Flaw};
pub use response::{DecodeError, Expected, Reading, Received, Response};
pub(crate) use secrets::{Undocumented, is_secret_name, names_a_secret};
pub(crate) use walk::integer;
use walk::{FirstMisfit, Walk};

/// Reads a response. The value is what the sink built from the `data` of a success, whether or not it fits its type.
pub fn read<'a, S: Sink>(expected: Expected, received: Received<'a>, sink: &mut S) -> (Response<'a>, Option<S::Value>) {
    let is_json = received.header("content-type").next().is_none_or(media_type::is_json);
    let is_whole = !received.truncated && !received.is_too_long(expected.max_body);
    let text = std::str::from_utf8(received.body).ok().filter(|_| is_whole && is_json && !(300..400).contains(&received.status));
    let envelope = text.and_then(|text| Envelope::read(text, expected, sink).ok());
    let meta = envelope.as_ref().map(|envelope| envelope.meta(expected.api)).unwrap_or_default();
    match envelope.and_then(|envelope| envelope.content(expected)) {
        Some((ContentRef::Success(data), _)) if data.has_long_cursor(expected.shape) => {
            (Response { received, expected, content: ContentRef::NoEnvelope { flaw: Flaw::LongCursor }, meta }, None)
        }
        Some((content, value)) => (Response { received, expected, content, meta }, value),
        None => {
            let flaw = if received.broke_off(expected.max_body, is_json) { Flaw::BrokeOff } else { Flaw::Page };
            (Response { received, expected, content: ContentRef::NoEnvelope { flaw }, meta: [None; 2] }, None)
        }
    }
}

/// Reads JSON as a type, and has a sink build its value, which fits.
pub fn read_as<S: Sink>(shape: &'static Shape, json: &str, sink: &mut S) -> Result<S::Value, DecodeError> {
    let mut walk = Walk::new(json);
    let value = walk.value(shape, sink);
    finish(&walk, shape, json, value)
}

/// Reads JSON as a type, to find out what there is to know of it.
pub(crate) fn reading(shape: &'static Shape, json: &str) -> Reading {
    let (mut walk, mut undocumented) = (Walk::new(json), Undocumented::default());
    let value = walk.value(shape, &mut undocumented);
    let misfit = finish(&walk, shape, json, value).err().map(Box::new);
    Reading { misfit, rewritten: walk.rewritten, undocumented_secrets: undocumented.secrets }
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

/// Whether the service may write a value in another way than the table does.
pub(crate) fn may_differ(shape: &Shape) -> bool {
    match shape {
        Shape::Label => true,
        Shape::Word(words) => words.words.iter().any(|word| word.number.is_some()),
        Shape::List(item) | Shape::OneOrMany(item) => may_differ(item),
        Shape::Record(record) => record.aliased || record.fields.iter().any(|field| may_differ(&field.shape)),
        _ => false,
    }
}

/// JSON as the table writes it; none where it is written so already.
pub(crate) fn view(shape: &'static Shape, json: &str) -> Option<String> {
    if !may_differ(shape) {
        return None;
    }
    let (mut walk, mut text) = (Walk::new(json), Text::default());
    walk.value(shape, &mut text).ok()?;
    walk.rewritten.then(|| text.into_text())
}

#[cfg(test)]
mod tests;
