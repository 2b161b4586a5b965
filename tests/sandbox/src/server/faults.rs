//! Faults of a connection: what a client sees of a bad network or a bad gateway.

use std::collections::HashMap;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::channel::Channel;
use serde::{Deserialize, Serialize};
use std::time::Duration;

use super::accept::Severed;
use super::shared::Shared;

/// The size that the `huge` fault claims.
const HUGE: usize = 100 * 1024 * 1024;

/// What happens to a request between the client and the service.
///
/// The last five answer in the service's place; `after` says whether the request reached the service all the same.
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
    /// A gateway answers with a page of its own.
    Html {
        /// The HTTP status of the page.
        status: u16,
        /// Whether the request reached the service.
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
        /// Whether the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// An answer that claims 100 MB, and sends them to who keeps reading.
    Huge {
        /// Whether the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// A success envelope, of either API, that is not UTF-8.
    BadUtf8 {
        /// Whether the request reached the service.
        #[serde(default)]
        after: bool,
    },
    /// A success envelope, of either API, that is nested a hundred thousand deep.
    Deep {
        /// Whether the request reached the service.
        #[serde(default)]
        after: bool,
    },
}

impl ConnectionFault {
    /// What is wrong with a fault that could not be applied.
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

/// Delivers a request through a fault, or plainly without one.
pub(super) async fn deliver(shared: &Shared, request: &Request<Vec<u8>>, fault: Option<ConnectionFault>) -> Response<Body> {
    use ConnectionFault as Fault;
    let Some(fault) = fault else {
        return plain(shared.deliver(request).await);
    };
    if let Fault::Html { after: true, .. }
    | Fault::Answer { after: true, .. }
    | Fault::Huge { after: true }
    | Fault::BadUtf8 { after: true }
    | Fault::Deep { after: true } = fault
    {
        shared.deliver(request).await;
    }
    match fault {
        Fault::DropBefore {} => severed(),
        Fault::DropAfter {} => {
            shared.deliver(request).await;
            severed()
        }
        Fault::Delay { ms } => {
            let at = shared.now_ms().saturating_add(ms.into());
            let response = shared.deliver(request).await;
            shared.wait_until(at).await;
            plain(response)
        }
        Fault::Duplicate {} => {
            let (first, _) = tokio::join!(shared.deliver(request), shared.deliver(request));
            plain(first)
        }
        Fault::Truncate {} => truncated(shared.deliver(request).await),
        Fault::Html { status, .. } => html(status),
        Fault::Answer { status, headers, body, .. } => answer(status, &headers, body),
        Fault::Huge { .. } => huge(),
        Fault::BadUtf8 { .. } => {
            json(b"{\"success\":true,\"code\":0,\"message\":\"ok\",\"data\":{\"name\":\"\xff\xfe\"},\"meta\":{}}".to_vec())
        }
        Fault::Deep { .. } => {
            let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
            json(format!("{{\"success\":true,\"code\":0,\"message\":\"ok\",\"data\":{open}{close},\"meta\":{{}}}}").into_bytes())
        }
    }
}

fn plain(response: Response<Vec<u8>>) -> Response<Body> {
    response.map(Body::from)
}

fn severed() -> Response<Body> {
    let mut response = Response::default();
    response.extensions_mut().insert(Severed);
    response
}

fn json(body: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn html(status: u16) -> Response<Body> {
    let page = format!("<html><head><title>{status}</title></head><body><h1>{status}</h1><hr>gateway</body></html>\n");
    let mut response = Response::new(Body::from(page));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html"));
    response
}

fn answer(status: u16, headers: &HashMap<String, String>, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    *response.headers_mut() = HeaderMap::<HeaderValue>::try_from(headers).unwrap_or_default();
    response
}

fn huge() -> Response<Body> {
    let (mut sender, body) = Channel::<Bytes, Severed>::new(1);
    tokio::spawn(async move {
        const CHUNK: usize = 64 * 1024;
        let spaces = Bytes::from(vec![b' '; CHUNK]);
        for _ in 0..HUGE / CHUNK {
            if sender.send_data(spaces.clone()).await.is_err() {
                return;
            }
        }
    });
    let mut response = json(Vec::new());
    response.headers_mut().insert(header::CONTENT_LENGTH, HUGE.into());
    response.map(|_| Body::new(body))
}

/// Claims the whole body and sends half of it.
fn truncated(response: Response<Vec<u8>>) -> Response<Body> {
    let (mut parts, whole) = response.into_parts();
    parts.headers.insert(header::CONTENT_LENGTH, whole.len().into());
    let half = Bytes::from(whole[..whole.len() / 2].to_vec());
    let (mut sender, body) = Channel::<Bytes, Severed>::new(1);
    tokio::spawn(async move {
        // There is room for one frame, so the second is taken by the channel when hyper has the first.
        if sender.send_data(half).await.is_ok() && sender.send_data(Bytes::new()).await.is_ok() {
            // hyper drops what it has not flushed when a body fails, so the first half needs a moment.
            tokio::time::sleep(Duration::from_millis(50)).await;
            sender.abort(Severed);
        }
    });
    Response::from_parts(parts, Body::new(body))
}
