//! The faults of a connection, as control calls name them.

use std::collections::HashMap;

use axum::http::{HeaderMap, HeaderValue};
use serde::{Deserialize, Serialize};

/// What happens to a request between the client and the service.
///
/// The last six come in the service's place; `after` says whether the request reached the service all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum ConnectionFault {
    /// The connection closes before the service sees the request.
    DropBefore {},
    /// The connection closes after the service has done the work.
    DropAfter {},
    /// The answer is late.
    Delay {
        /// By how many milliseconds of the sandbox's clock.
        ms: u32,
    },
    /// The request reaches the service twice, at a time; the first answer is given.
    Duplicate {},
    /// The answer breaks off in the middle, and the connection with it.
    Truncate {},
    /// The answer stops in the middle, and the connection stays open.
    Stall {},
    /// The body of the answer comes byte by byte.
    Drip {
        /// The milliseconds before each byte.
        ms: u32,
        /// True if the head comes so, too.
        #[serde(default)]
        head: bool,
    },
    /// The connection closes after the answer, which has not said so.
    HangUp {},
    /// The connection is reset.
    Reset {
        /// True if the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// A gateway answers with a page of its own.
    Html {
        /// The HTTP status of the page.
        status: u16,
        /// True if the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// Any answer at all.
    Answer {
        /// Its HTTP status.
        status: u16,
        /// Its headers.
        #[serde(default)]
        headers: HashMap<String, String>,
        /// Its body.
        #[serde(default)]
        body: String,
        /// True if the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// An answer that claims 100 MB, and sends them to who keeps reading.
    Huge {
        /// True if the answer does not state its length.
        #[serde(default)]
        silent: bool,
        /// True if the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// A success envelope, of either API, that is not UTF-8.
    BadUtf8 {
        /// True if the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// A success envelope, of either API, that is nested a hundred thousand deep.
    Deep {
        /// True if the request reached the service.
        #[serde(default)]
        after: bool,
    },
}

impl ConnectionFault {
    /// The reason why a fault cannot be applied.
    pub(super) fn problem(&self) -> Option<&'static str> {
        match self {
            Self::Html { status, .. } | Self::Answer { status, .. } if !(200..=599).contains(status) => {
                Some("status must be from 200 to 599")
            }
            Self::Answer { headers, .. } if HeaderMap::<HeaderValue>::try_from(headers).is_err() => {
                Some("headers must be names and values of HTTP")
            }
            _ => None,
        }
    }
}
