//! The envelopes of the two APIs. Of the agent API `success` decides, then `error.code`; of the reseller API `code`.

use std::borrow::Cow;

use super::place::{error_at, way};
use super::response::{ContentRef, Data, Expected, Failure};
use super::walk::{FirstMisfit, Walk};
use crate::contract::{Api, Shape, Sink};
use crate::json::{NotJson, pick, text_of};
use crate::wire::text::is_number;

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
    /// Reads an envelope; what is none of its members is passed over.
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
            // A member that came twice makes it none: nobody knows which is meant.
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

    /// What it says; none where it is no envelope.
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
                    (code != "0").then(|| Failure { code, message: said.unwrap_or_default(), details: data })
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

    fn success(self, shape: &'static Shape) -> (Data<'a>, Option<V>) {
        let Envelope { members: [raw, ..], data, walk } = self;
        let (begin, value) = data.map_or((0, None), |(begin, value)| (begin, Some(value)));
        // There may be no `data`, which fits just what nobody documents.
        let absent = || FirstMisfit { at: begin, missing: None, expected: shape.expected() };
        let misfit = walk.misfit.or_else(|| (value.is_none() && !matches!(shape, Shape::Json)).then(absent));
        let mut scan = walk.scan;
        scan.seek(begin);
        let fit = misfit.map_or(Ok(()), |misfit| Err(error_at(misfit, scan.clone(), shape)));
        let differing = walk.differing.iter().map(|at| way(scan.clone(), shape, *at).trim_start_matches('.').to_owned()).collect();
        let (raw, members) = (raw.unwrap_or("null"), walk.found.members());
        (Data { raw, members, fit, rewritten: walk.rewritten, differing }, value)
    }
}

/// The `error` of an agent's failure.
fn fault(error: &str) -> Option<Failure<'_>> {
    let [code, message, details] = pick(error, ["code", "message", "details"])?;
    let code = code.and_then(text_of).filter(|code| !code.is_empty())?;
    Some(Failure { code, message: message.and_then(text_of).unwrap_or_default(), details })
}

/// 0 may be written as 0.0.
fn is_zero(number: &str) -> bool {
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().all(|byte| matches!(byte, b'0' | b'.' | b'-'))
}
