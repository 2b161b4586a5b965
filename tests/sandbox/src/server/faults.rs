//! Applies the faults of a connection: what a client sees of a bad network or a bad gateway.

use std::collections::HashMap;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version, header};
use bytes::Bytes;
use http_body_util::channel::Channel;

use super::accept::{End, Takeover};
use super::connection_fault::ConnectionFault;
use super::shared::Shared;

/// The size that the `huge` fault claims.
const HUGE: usize = 100 * 1024 * 1024;

/// Delivers a request through a fault, or plainly without one.
pub(super) async fn deliver(shared: &Shared, request: &Request<Vec<u8>>, fault: Option<ConnectionFault>) -> Response<Body> {
    use ConnectionFault as Fault;
    let Some(fault) = fault else {
        return plain(shared.deliver(request).await);
    };
    if let Fault::Reset { after: true }
    | Fault::Html { after: true, .. }
    | Fault::Answer { after: true, .. }
    | Fault::Huge { after: true, .. }
    | Fault::BadUtf8 { after: true }
    | Fault::Deep { after: true } = fault
    {
        shared.deliver(request).await;
    }
    match fault {
        Fault::DropBefore {} => take_over(Takeover::default()),
        Fault::DropAfter {} => {
            shared.deliver(request).await;
            take_over(Takeover::default())
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
        Fault::Truncate {} => half(shared.deliver(request).await, End::Closed),
        Fault::Stall {} => half(shared.deliver(request).await, End::Open),
        Fault::Drip { ms, head: is_slow } => {
            let (head, body) = written(shared.deliver(request).await);
            let at_once = if is_slow { 0 } else { head.len() };
            take_over(Takeover { bytes: [head, body].concat(), at_once, pause: Duration::from_millis(ms.into()), end: End::Open })
        }
        Fault::HangUp {} => {
            let (head, body) = written(shared.deliver(request).await);
            take_over(Takeover { at_once: usize::MAX, bytes: [head, body].concat(), ..Takeover::default() })
        }
        Fault::Reset { .. } => take_over(Takeover { end: End::Reset, ..Takeover::default() }),
        Fault::Html { status, .. } => html(status),
        Fault::Answer { status, headers, body, .. } => answer(status, &headers, body),
        Fault::Huge { silent, .. } => huge(silent),
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

fn take_over(takeover: Takeover) -> Response<Body> {
    let mut response = Response::default();
    response.extensions_mut().insert(takeover);
    response
}

/// The head of an answer and half of its body.
fn half(response: Response<Vec<u8>>, end: End) -> Response<Body> {
    let (head, body) = written(response);
    take_over(Takeover { at_once: usize::MAX, bytes: [&head, &body[..body.len() / 2]].concat(), end, ..Takeover::default() })
}

/// An answer as it is written: its head and its body.
fn written(response: Response<Vec<u8>>) -> (Vec<u8>, Vec<u8>) {
    let (mut parts, body) = response.into_parts();
    parts.headers.insert(header::CONTENT_LENGTH, body.len().into());
    let mut head = format!("HTTP/1.1 {}\r\n", parts.status).into_bytes();
    parts.headers.iter().for_each(|(name, value)| head.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat()));
    head.extend(b"\r\n");
    (head, body)
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

fn huge(silent: bool) -> Response<Body> {
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
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
    if silent {
        // By the older HTTP an answer ends with its connection.
        *response.version_mut() = Version::HTTP_10;
    } else {
        response.headers_mut().insert(header::CONTENT_LENGTH, HUGE.into());
    }
    response.map(|_| Body::new(body))
}
