//! The envelopes of the two APIs. Of the agent API `success` decides, then `error.code`; of the reseller API `code`.

use std::borrow::Cow;

use super::place::{error_at, way};
use super::response::{ContentRef, DataRef, Expected, FailureRef, Meta};
use super::walk::{FirstMisfit, Walk};
use crate::contract::{Api, Shape, Sink};
use crate::json::{NotJson, pick, text_of};
use crate::wire::text::is_number;

/// The content of an envelope, its `meta.request_id` and `meta.timestamp` as they are written, and the value that was built from its
/// `data`.
type ReadEnvelope<'a, V> = (ContentRef<'a>, Meta<'a>, Option<V>);

/// Reads the whole of a body as an envelope; `None` if it is not one.
pub(super) fn read<'a, S: Sink>(body: &'a [u8], expected: Expected, sink: &mut S) -> Option<ReadEnvelope<'a, S::Value>> {
    let Ok(text) = std::str::from_utf8(body) else { return read_in_other_letters(body, expected) };
    let envelope = Envelope::read(text, expected, sink).ok()?;
    let meta = envelope.meta(expected.api).map(|json| json.map(Cow::Borrowed));
    envelope.content(expected).map(|(content, value)| (content, meta, value))
}

/// A refusal whose words are in another encoding, such as GBK, is read with these letters replaced. A success in another encoding is not an
/// answer, since its data can't be read.
#[cold]
fn read_in_other_letters<'a, V>(body: &'a [u8], expected: Expected) -> Option<ReadEnvelope<'a, V>> {
    let replaced = |text: &str| {
        let envelope = Envelope::read(text, expected, &mut ()).ok()?;
        let meta = envelope.meta(expected.api).map(|json| json.map(|json| Cow::Owned(json.to_owned())));
        match envelope.content(expected)?.0 {
            ContentRef::Failure(failure) => Some((ContentRef::Failure(failure.into_owned()), meta, None)),
            _ => None,
        }
    };
    replaced(&String::from_utf8_lossy(body)).or_else(|| replaced(&without_pairs(body)))
}

/// A text of such bytes, where the second byte of a letter may be one of ASCII, such as a backslash.
fn without_pairs(body: &[u8]) -> String {
    let mut bytes = body.iter().copied().peekable();
    let mut text = String::with_capacity(body.len());
    while let Some(byte) = bytes.next() {
        if byte.is_ascii() {
            text.push(char::from(byte));
        } else {
            bytes.next_if(|second| *second >= 0x40);
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

/// An envelope, its members in the order of [`names`].
pub(super) struct Envelope<'a, V> {
    members: [Option<&'a str>; 4],
    /// Where `data` begins, and what was built from it.
    data: Option<(usize, V)>,
    walk: Walk<'a>,
}

const fn names(api: Api) -> [&'static str; 4] {
    match api {
        Api::Agent => ["data", "success", "error", "meta"],
        Api::Reseller => ["data", "code", "message", "msg"],
    }
}

impl<'a, V> Envelope<'a, V> {
    /// Reads an envelope; unknown members are skipped.
    pub(super) fn read<S: Sink<Value = V>>(text: &'a str, expected: Expected, sink: &mut S) -> Result<Self, NotJson> {
        let mut envelope = Envelope { members: [None; 4], data: None, walk: Walk::new(text) };
        let mut seen = [false; 4];
        if envelope.walk.scan.peek() != b'{' {
            return Err(NotJson);
        }
        let mut more = envelope.walk.scan.open(b'}')?;
        while more {
            let name = envelope.walk.scan.name()?.plain().unwrap_or_default();
            envelope.walk.scan.peek();
            let from = envelope.walk.scan.at();
            let at = names(expected.api).iter().position(|known| *known == name);
            // A member that comes twice makes the envelope invalid: the right one can't be known.
            if at.and_then(|at| seen.get_mut(at)).is_some_and(|seen| std::mem::replace(seen, true)) {
                return Err(NotJson);
            }
            match at {
                Some(0) => envelope.data = Some((from, envelope.walk.outermost(expected.shape, sink)?)),
                _ => _ = envelope.walk.scan.skip()?,
            }
            if let Some(member) = at.and_then(|at| envelope.members.get_mut(at)) {
                *member = Some(envelope.walk.scan.since(from)).filter(|json| *json != "null");
            }
            more = envelope.walk.scan.more(b'}')?;
        }
        envelope.walk.scan.end().map(|()| envelope)
    }

    /// `request_id` and `timestamp` of an agent's `meta`.
    pub(super) fn meta(&self, api: Api) -> [Option<&'a str>; 2] {
        let [_, _, _, meta] = self.members;
        meta.filter(|_| api == Api::Agent).and_then(|meta| pick(meta, ["request_id", "timestamp"])).unwrap_or_default()
    }

    /// The content of the envelope; `None` if the members do not make one.
    pub(super) fn content(self, expected: Expected) -> Option<(ContentRef<'a>, Option<V>)> {
        let failure = match (expected.api, self.members) {
            (Api::Agent, [_, success, error, _]) => match success? {
                "true" => None,
                "false" => Some(fault(error?)?),
                _ => return None,
            },
            (Api::Reseller, [data, code, message, msg]) => match code? {
                number if is_number(number) && is_zero(number) => None,
                json => {
                    let code = if is_number(json) { Cow::Borrowed(json) } else { text_of(json).filter(|code| !code.is_empty())? };
                    let said = [message, msg].into_iter().flatten().filter_map(text_of).find(|text| !text.is_empty());
                    (code != "0").then(|| FailureRef { code, message: said.unwrap_or_default(), details: data.map(Cow::Borrowed) })
                }
            },
        };
        match failure {
            Some(failure) => Some((ContentRef::Failure(failure), None)),
            None => {
                let (data, value) = self.success(expected.shape);
                Some((ContentRef::Success(Box::new(data)), value))
            }
        }
    }

    fn success(self, shape: &'static Shape) -> (DataRef<'a>, Option<V>) {
        let Envelope { members: [raw, ..], data, walk } = self;
        let (begin, value) = data.map_or((0, None), |(begin, value)| (begin, Some(value)));
        // `data` may be missing, which is a valid value only of an undocumented type.
        let absent = || FirstMisfit { at: begin, missing: None, expected: shape.expected() };
        let misfit = walk.misfit.or_else(|| (value.is_none() && !matches!(shape, Shape::Json)).then(absent));
        let mut scan = walk.scan;
        scan.seek(begin);
        let fit = misfit.map_or(Ok(()), |misfit| Err(error_at(misfit, scan.clone(), shape)));
        let places = |at: &[usize]| at.iter().map(|at| way(scan.clone(), shape, *at).trim_start_matches('.').to_owned()).collect();
        let (differing, rounded) = (places(&walk.differing), places(&walk.rounded));
        let (raw, members, beyond_doubles) = (raw.unwrap_or("null"), walk.found.members(), walk.beyond_doubles);
        (DataRef { raw, members, fit, rewritten: walk.rewritten, beyond_doubles, differing, rounded }, value)
    }
}

/// The `error` of an agent's failure.
fn fault(error: &str) -> Option<FailureRef<'_>> {
    let [code, message, details] = pick(error, ["code", "message", "details"])?;
    let code = code.and_then(text_of).filter(|code| !code.is_empty())?;
    Some(FailureRef { code, message: message.and_then(text_of).unwrap_or_default(), details: details.map(Cow::Borrowed) })
}

/// 0 may be written as 0.0.
fn is_zero(number: &str) -> bool {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'))
}
