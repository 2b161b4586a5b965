//! What a response is read from and as, and what it says.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use super::found::FactMembers;
use crate::contract::{Api, Endpoint, Shape};
use crate::json::{ends_early, text_of};
use crate::wire::text::LONGEST_CURSOR;

/// What a response is read as.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    pub(crate) api: Api,
    /// The operation that is sent.
    pub(crate) operation: &'static str,
    /// What `data` is.
    pub(crate) shape: &'static Shape,
    /// The longest body that is read, in bytes.
    pub(crate) max_body: u32,
}

impl Expected {
    /// The answer of an operation, in a body of at most so many bytes.
    pub fn of(endpoint: &'static Endpoint, max_body: u32) -> Self {
        Expected { api: endpoint.api, operation: endpoint.name, shape: &endpoint.response, max_body }
    }

    /// The operation that is sent: what a host calls the request where people look after a program.
    pub fn operation(self) -> &'static str {
        self.operation
    }

    /// What the `data` of a success is.
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

/// What came over HTTP.
#[derive(Clone, Copy)]
pub struct Received<'a> {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, as far as it came.
    pub body: &'a [u8],
    /// Whether it did not come to its end.
    pub truncated: bool,
}

/// What a response says, as it was read.
#[derive(Clone)]
pub struct Response<'a> {
    pub(crate) received: Received<'a>,
    /// What it was read as.
    pub(super) expected: Expected,
    pub(crate) content: ContentRef<'a>,
    pub(crate) meta: Meta<'a>,
}

/// `meta.request_id` and `meta.timestamp`, as they are written.
pub(super) type Meta<'a> = [Option<Cow<'a, str>>; 2];

impl<'a> Response<'a> {
    /// The response as this is read: itself, unless it was read as something else.
    pub(crate) fn read_as(self, expected: Expected) -> Self {
        if self.expected == expected { self } else { super::read(expected, self.received, &mut ()).0 }
    }

    /// The `data` of a success, as it is written.
    pub fn raw(&self) -> Option<&'a str> {
        if let ContentRef::Success(data) = &self.content { Some(data.raw) } else { None }
    }

    /// Whether the `data` of a success fits its type, and else where it first does not. What is no success always fits.
    pub fn fit(&self) -> Result<(), &DecodeError> {
        if let ContentRef::Success(data) = &self.content
            && let Err(error) = &data.fit
        {
            return Err(error);
        }
        Ok(())
    }
}

/// What an envelope says.
#[derive(Clone)]
pub(crate) enum ContentRef<'a> {
    Success(Box<Data<'a>>),
    Failure(Failure<'a>),
    /// There is no envelope: a gateway's page, a truncated or an empty body, something else altogether.
    NoEnvelope {
        /// Why it is none.
        flaw: Flaw,
    },
}

/// Why what came is no answer of the API's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// Nobody knows who answered: a gateway, perhaps.
    Page,
    /// It is the beginning of a success whose rest was lost.
    BrokeOff,
    /// It is a page of a list whose next cursor is longer than any that is passed on.
    LongCursor,
    /// It is about another session or order than the one that was requested.
    Another,
    /// It answers the first send of a key with a session that this client had before.
    HadBefore,
    /// It accepts what was requested without the id of what came of it.
    NoId,
    /// It has no list, where what is decided rests on one.
    NoList,
}

impl Flaw {
    /// Whether the same request may well get an answer.
    pub(crate) fn may_pass(self) -> bool {
        !matches!(self, Flaw::Page | Flaw::LongCursor)
    }
}

/// The `data` of a success.
#[derive(Clone)]
pub(crate) struct Data<'a> {
    /// As it is written.
    pub(crate) raw: &'a str,
    /// The members that the engine looks at.
    pub(crate) members: FactMembers<'a>,
    /// Whether it fits its type, and else where it first does not.
    pub(crate) fit: Result<(), DecodeError>,
    /// Whether something in it is written in another way than the table does.
    pub(crate) rewritten: bool,
    /// Whether there is a whole number in it that no double holds.
    pub(crate) beyond_doubles: bool,
    /// Members that came in two spellings with two values.
    pub(crate) differing: Vec<String>,
    /// Numbers that were rounded.
    pub(crate) rounded: Vec<String>,
}

impl Data<'_> {
    /// Whether it is a page of a list that says in too many words where the next one begins.
    pub(super) fn has_long_cursor(&self, shape: &Shape) -> bool {
        let [.., cursor] = self.members;
        let is_list = matches!(shape, Shape::Record(record) if record.field("next_cursor").is_some());
        is_list && cursor.and_then(text_of).is_some_and(|cursor| cursor.len() > LONGEST_CURSOR)
    }
}

/// What was found out when an answer was read, so that it is read once.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Reading {
    /// Where it first does not fit its type.
    pub(crate) misfit: Option<Box<DecodeError>>,
    /// Whether something in it is written in another way than the table does.
    pub(crate) rewritten: bool,
    /// Whether there is a whole number in it that no double holds.
    pub(crate) beyond_doubles: bool,
    /// Whether a member that nobody documents has the name of a secret.
    pub(crate) undocumented_secrets: bool,
}

/// The error of a failure.
#[derive(Clone)]
pub(crate) struct Failure<'a> {
    pub(crate) code: Cow<'a, str>,
    pub(crate) message: Cow<'a, str>,
    /// As it is written.
    pub(crate) details: Option<Cow<'a, str>>,
}

impl Failure<'_> {
    pub(super) fn into_owned<'b>(self) -> Failure<'b> {
        let owned = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Failure { code: owned(self.code), message: owned(self.message), details: self.details.map(owned) }
    }
}

/// A value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
#[error("`{place}` is {}{expected}", if *.missing { "missing, and should be " } else { "not " })]
pub struct DecodeError {
    /// Where it is, in the names of the table, such as `data.items[3].price`.
    pub place: String,
    /// What was expected there.
    pub expected: &'static str,
    /// Whether there is nothing at all.
    pub missing: bool,
}

impl<'a> Received<'a> {
    /// The values of a header.
    pub(crate) fn header(&self, name: &'static str) -> impl Iterator<Item = &'a str> + use<'a> {
        self.headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| *value)
    }

    /// Whether there is more than may be read, so that the rest was left unread.
    pub(super) fn is_too_long(&self, most: u32) -> bool {
        self.body.len() > most as usize || (self.truncated && self.body.len() >= most as usize)
    }

    /// The body without the byte order mark that some services write before it.
    pub(super) fn text(&self) -> &'a [u8] {
        self.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(self.body)
    }

    /// Whether a success came only in part: the connection broke, or a gateway closed it within a JSON text. Half an envelope is one whatever
    /// it is called.
    pub(super) fn broke_off(&self, most: u32, is_json: bool) -> bool {
        // These two have no body.
        let has_body = (200..300).contains(&self.status) && !matches!(self.status, 204 | 205);
        has_body && !self.is_too_long(most) && (self.truncated || ((is_json || self.begins_object()) && ends_early(self.text())))
    }

    fn begins_object(&self) -> bool {
        self.text().trim_ascii_start().starts_with(b"{")
    }
}
