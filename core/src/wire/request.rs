//! A request as data, for any HTTP client to send.

use std::fmt;

use super::read::Expected;
use crate::contract::Method;
use crate::time::Millis;

/// The headers that the client sets, and `host`, which HTTP clients set. A caller can't replace one.
pub(crate) const OWN_HEADERS: [&str; 6] = ["x-api-key", "authorization", "idempotency-key", "content-type", "accept", "host"];

/// A request to send. `Debug` shows neither the key nor the body.
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
    /// The deadline for the beginning of the send, in monotonic milliseconds. A host that is later, or whose store does not confirm its
    /// claims, does not send the request and resolves it as failed by `Late`. With [`Millis::MAX`] there is no deadline, and the store is
    /// not consulted.
    pub send_before: Millis,
    /// Read no more than this many bytes of the answer's body; more is `truncated`.
    pub max_body: u32,
    /// The type that the response is read as.
    pub expects: Expected,
}

impl Request {
    /// Returns true for a termination: it is sent at any time, whatever the store says, and while the client is being closed.
    pub fn ends_session(&self) -> bool {
        self.send_before == Millis::MAX
    }

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

/// Converts the request to the types of the `http` crate, which many clients accept as they are.
impl TryFrom<&Request> for http::Request<Vec<u8>> {
    type Error = http::Error;

    fn try_from(request: &Request) -> Result<Self, http::Error> {
        let start = http::Request::builder().method(request.method.as_str()).uri(&request.url);
        let with = request.headers.iter().fold(start, |builder, (name, value)| builder.header(name, value));
        with.body(request.body.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Operation;
    use crate::contract::agent::CreateSession;

    fn request() -> Request {
        Request {
            method: Method::Post,
            url: "https://api.example/v1/sessions?a=secret".to_owned(),
            headers: vec![("x-api-key".to_owned(), "secret".to_owned())],
            body: b"secret".to_vec(),
            timeout_ms: 1,
            send_before: 2,
            max_body: 3,
            expects: Expected::of(CreateSession::ENDPOINT, 3),
        }
    }

    #[test]
    fn a_request_is_printed_without_its_secrets() {
        let printed = format!("{:?}", request());
        let shown = ["POST", "https://api.example/v1/sessions", "x-api-key", "[6 bytes]"];
        assert!(shown.iter().all(|part| printed.contains(part)) && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn the_http_crate_takes_all_of_a_request() {
        let taken = http::Request::try_from(&request()).expect("it is a request");
        assert_eq!((taken.method().as_str(), taken.uri().to_string()), ("POST", request().url));
        assert_eq!((taken.headers()["x-api-key"].as_bytes(), taken.body()), (&b"secret"[..], &request().body));
    }
}
