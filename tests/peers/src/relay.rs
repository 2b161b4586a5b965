//! The way to the service and back.

use bytes::Bytes;
use http::Uri;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::connection::Head;

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The headers of one connection, and those that are made anew.
const HOP: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// An answer of the service, without what belongs to its connection.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
}

/// Sends a request on, over a connection of its own; `authority` is host and port.
pub(crate) async fn fetch(authority: &str, path: &str, head: &Head, body: Vec<u8>) -> Result<Answer, Failure> {
    let stream = TcpStream::connect(authority).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let driven = tokio::spawn(connection);
    let mut request = http::Request::builder().method(head.method.as_str()).uri(path.parse::<Uri>()?).header("host", authority);
    for (name, value) in head.headers.iter().filter(|(name, _)| !is_hop(name)) {
        request = request.header(name, value.as_slice());
    }
    let response = sender.send_request(request.body(Full::new(Bytes::from(body)))?).await?;
    let (parts, body) = response.into_parts();
    let body = body.collect().await?.to_bytes().to_vec();
    driven.abort();
    let headers = parts.headers.iter().filter(|(name, _)| !is_hop(name.as_str()));
    let headers = headers.map(|(name, value)| (name.to_string(), value.as_bytes().to_owned())).collect();
    Ok(Answer { status: parts.status.as_u16(), headers, body })
}

fn is_hop(name: &str) -> bool {
    HOP.iter().any(|hop| hop.eq_ignore_ascii_case(name))
}
