//! From what came over HTTP to what it says: one pass over the body, outside the client, which has a sink build the host's
//! values on the way. Total: any bytes with any status give a response, and the status is never lost.

mod aliases;
mod envelope;
mod found;
mod place;
mod response;
mod text;
mod walk;

use super::media_type;
use crate::contract::Sink;
use envelope::Envelope;
pub(crate) use found::{Members, NAMES};
pub(crate) use response::{Data, Failure, Verdict};
pub use response::{DecodeError, Expected, Received, Response};
pub use text::Text;

/// Reads a response. The value is what the sink built from the `data` of a success, whether or not it fits its type.
pub fn read<'a, S: Sink>(expected: Expected, received: Received<'a>, sink: &mut S) -> (Response<'a>, Option<S::Value>) {
    let is_json = received.header("content-type").next().is_none_or(media_type::is_json);
    let is_whole = !received.truncated && !received.is_too_long(expected.max_body);
    let text = std::str::from_utf8(received.body).ok().filter(|_| is_whole && is_json && !(300..400).contains(&received.status));
    let envelope = text.and_then(|text| Envelope::read(text, expected, sink).ok());
    let meta = envelope.as_ref().map(|envelope| envelope.meta(expected.api)).unwrap_or_default();
    match envelope.and_then(|envelope| envelope.verdict(expected)) {
        Some((verdict, value)) => (Response { received, verdict, meta }, value),
        None => {
            let broke_off = received.broke_off(expected.max_body, is_json);
            (Response { received, verdict: Verdict::NoEnvelope { broke_off }, meta: [None; 2] }, None)
        }
    }
}

#[cfg(test)]
mod tests;
