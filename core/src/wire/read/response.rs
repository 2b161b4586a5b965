//! A received response, the type that it is read as, and its content.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use super::found::FactMembers;
use crate::contract::{Api, Endpoint, Shape};
use crate::json::{ends_early, text_of};
use crate::wire::text::LONGEST_CURSOR;

/// The type that a response is read as.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub(crate) api: Api,
    /// The operation that is sent.
    pub(crate) operation: &'static str,
    /// The type of `data`.
    pub(crate) shape: &'static Shape,
    /// The longest body that is read, in bytes.
    pub(crate) max_body: u32,
}

impl Expected {
    /// The answer of an operation, in a body of at most so many bytes.
    pub fn of(endpoint: &'static Endpoint, max_body: u32) -> Self {
        Expected { api: endpoint.api, operation: endpoint.name, shape: &endpoint.response, max_body }
    }

    /// The operation that is sent: the name of the request in a host's telemetry.
    pub fn operation(self) -> &'static str {
        self.operation
    }

    /// The type of a success's `data`.
    pub fn shape(self) -> &'static Shape {
        self.shape
    }
}

/// There is one shape for each operation.
impl PartialEq for Expected {
    fn eq(&self, other: &Self) -> bool {
        (self.api, self.max_body) == (other.api, other.max_body) && std::ptr::eq(self.shape, other.shape)
    }
}

impl Eq for Expected {}

impl Hash for Expected {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.api, self.max_body).hash(state);
    }
}

/// A response as it came over HTTP.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, as far as it came.
    pub body: &'a [u8],
    /// True if the body did not come to its end.
    pub truncated: bool,
}

/// The content of a response that was read.
#[derive(Clone)]
pub struct Response<'a> {
    pub(crate) received: Received<'a>,
    /// The type that the response was read as.
    pub(super) expected: Expected,
    pub(crate) content: ContentRef<'a>,
    pub(crate) meta: Meta<'a>,
}

/// `meta.request_id` and `meta.timestamp`, as they are written.
pub(super) type Meta<'a> = [Option<Cow<'a, str>>; 2];

impl<'a> Response<'a> {
    /// The response read as this type: the response itself, unless it was read as another type.
    pub(crate) fn read_as(self, expected: Expected) -> Self {
        if self.expected == expected { self } else { super::read(expected, self.received, &mut ()).0 }
    }

    /// The `data` of a success, as it is written.
    pub fn raw(&self) -> Option<&'a str> {
        if let ContentRef::Success(data) = &self.content { Some(data.raw) } else { None }
    }

    /// Returns an error if the `data` of a success does not fit its type: the first place where it does not. Other responses always fit.
    pub fn fit(&self) -> Result<(), &DecodeError> {
        if let ContentRef::Success(data) = &self.content
            && let Err(error) = &data.fit
        {
            return Err(error);
        }
        Ok(())
    }
}

/// The content of an envelope.
#[derive(Clone)]
pub(crate) enum ContentRef<'a> {
    Success(Box<DataRef<'a>>),
    Failure(FailureRef<'a>),
    /// There is no envelope: a gateway's page, a truncated or an empty body, or anything else.
    NoEnvelope {
        /// The reason why the body is not an envelope.
        flaw: Flaw,
    },
}

/// The reason why a response is not an answer of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The sender is unknown; it may be a gateway.
    Page,
    /// The body is the beginning of a success whose rest was lost.
    BrokeOff,
    /// The response is a page of a list whose next cursor is longer than the longest that is passed on.
    LongCursor,
    /// The response is about another session or order than the requested one.
    Another,
    /// The response to the first send of a key names a session that this client had before.
    HadBefore,
    /// The service accepted the request but did not return the id of the result.
    NoId,
    /// The response has no list, and the decision depends on one.
    NoList,
}

impl Flaw {
    /// Returns true if the same request may get an answer later.
    pub(crate) fn may_pass(self) -> bool {
        !matches!(self, Flaw::Page | Flaw::LongCursor)
    }
}

/// The `data` of a success.
#[derive(Clone)]
pub(crate) struct DataRef<'a> {
    /// As it is written.
    pub(crate) raw: &'a str,
    /// The members that the engine looks at.
    pub(crate) members: FactMembers<'a>,
    /// An error if the data does not fit its type: the first place where it does not.
    pub(crate) fit: Result<(), DecodeError>,
    /// True if a value is written in another way than the table writes it.
    pub(crate) rewritten: bool,
    /// True if the data has a whole number that no double holds.
    pub(crate) beyond_doubles: bool,
    /// Members that came in two spellings with two values.
    pub(crate) differing: Vec<String>,
    /// Numbers that were rounded.
    pub(crate) rounded: Vec<String>,
}

impl DataRef<'_> {
    /// Returns true if the data is a page of a list whose next cursor is too long.
    pub(super) fn has_long_cursor(&self, shape: &Shape) -> bool {
        let [.., cursor] = self.members;
        let is_list = matches!(shape, Shape::Record(record) if record.field("next_cursor").is_some());
        is_list && cursor.and_then(text_of).is_some_and(|cursor| cursor.len() > LONGEST_CURSOR)
    }
}

/// The findings of one read of an answer, kept so that the answer is read once.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Reading {
    /// The first place that does not fit its type.
    pub(crate) misfit: Option<Box<DecodeError>>,
    /// True if a value is written in another way than the table writes it.
    pub(crate) rewritten: bool,
    /// True if the answer has a whole number that no double holds.
    pub(crate) beyond_doubles: bool,
    /// True if an undocumented member has the name of a secret.
    pub(crate) undocumented_secrets: bool,
}

/// The error of a failure.
#[derive(Clone)]
pub(crate) struct FailureRef<'a> {
    pub(crate) code: Cow<'a, str>,
    pub(crate) message: Cow<'a, str>,
    /// As it is written.
    pub(crate) details: Option<Cow<'a, str>>,
}

impl FailureRef<'_> {
    pub(super) fn into_owned<'b>(self) -> FailureRef<'b> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        FailureRef { code: owned(self.code), message: owned(self.message), details: self.details.map(owned) }
    }
}

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("`{place}` is {}{expected}", if *.missing { "missing, and should be " } else { "not " })]
pub struct DecodeError {
    /// The place of the value, in the names of the table, such as `data.items[3].price`.
    pub place: String,
    /// The expected type.
    pub expected: &'static str,
    /// True if the value is missing.
    pub missing: bool,
}

impl<'a> Received<'a> {
    /// The values of a header.
    pub(crate) fn header(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Returns true if the body is longer than may be read, so that the rest was left unread.
    pub(super) fn is_too_long(&self, most: u32) -> bool {
        self.body.len() > most as usize || (self.truncated && self.body.len() >= most as usize)
    }

    /// The body without the byte order mark that some services write before it.
    pub(super) fn text(&self) -> &'a [u8] {
        self.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.body)
    }

    /// Returns true if only a part of a success came: the connection broke, or a gateway closed it within a JSON text. Half an envelope
    /// counts whatever its `Content-Type`.
    pub(super) fn broke_off(&self, most: u32, is_json: bool) -> bool {
        // These two have no body.
        let has_body = (200..300).contains(&self.status) && !matches!(self.status, 204 | 205);
        has_body && !self.is_too_long(most) && (self.truncated || ((is_json || self.begins_object()) && ends_early(self.text())))
    }

    fn begins_object(&self) -> bool {
        self.text().trim_ascii_start().starts_with(b"{")
    }
}
