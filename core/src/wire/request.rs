//! A request as data, for any HTTP client to send.

use std::fmt;

use crate::client::Millis;
use crate::contract::Method;

/// A request to send. Its `Debug` shows neither the key nor the body.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// The whole URL.
    pub url: String,
    /// The headers, in the order to send them in. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty for none.
    pub body: Vec<u8>,
    /// Give up this many milliseconds after the send began, and resolve it as failed by `Timeout`.
    pub timeout_ms: u32,
    /// Monotonic milliseconds. A host that comes to it later resolves it as failed by `Late`, never sent.
    pub send_before: Millis,
    /// Read no more than this many bytes of the answer's body; more is `truncated`.
    pub max_body: u32,
}

impl Request {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.url.split('?').next().unwrap_or_default();
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Request")
            .field("method", &self.method.as_str())
            .field("url", &path)
            .field("headers", &names)
            .field("body", &format_args!("[{} bytes]", self.body.len()))
            .finish_non_exhaustive()
    }
}

/// The same request in the types of the `http` crate, which many clients take as they are.
impl TryFrom<&Request> for http::Request<Vec<u8>> {
    type Error = http::Error;

    fn try_from(request: &Request) -> Result<Self, http::Error> {
        let start = http::Request::builder().method(request.method.as_str()).uri(&request.url);
        let with = request.headers.iter().fold(start, |builder, (name, value)| builder.header(name, value));
        with.body(request.body.clone())
    }
}
