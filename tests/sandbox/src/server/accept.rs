//! Accept loops. They are our own because a fault must be able to do with a connection what HTTP does not.

use std::error::Error as _;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::server::TlsStream;

/// Runs a handler for each connection; dropping the loop drops the connections with it.
pub(super) async fn each<H, F>(listener: TcpListener, handler: H)
where
    H: Fn(TcpStream, SocketAddr) -> F,
    F: Future<Output = ()> + Send + 'static,
{
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, peer)) => {
                connections.spawn(handler(stream, peer));
            }
            // Out of descriptors, most likely: a short rest lets some of them close.
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// The fate of a connection on which hyper is not to answer: an extension of a response, which is not sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Takeover {
    /// The bytes that are written all the same, unchanged.
    pub(super) bytes: Vec<u8>,
    /// How many of the bytes are written at once; the others follow one by one.
    pub(super) at_once: usize,
    /// The time before each byte that follows.
    pub(super) pause: Duration,
    pub(super) end: End,
}

/// How a connection ends that was taken over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum End {
    /// The connection closes.
    #[default]
    Closed,
    /// The connection breaks, as when a machine restarts.
    Reset,
    /// The connection stays open until the client closes it.
    Open,
}

impl fmt::Display for Takeover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fault has taken the connection over")
    }
}

impl std::error::Error for Takeover {}

/// A connection that HTTP is spoken over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin {
    fn tcp(&self) -> &TcpStream;
}

impl Stream for TcpStream {
    fn tcp(&self) -> &TcpStream {
        self
    }
}

impl Stream for TlsStream<TcpStream> {
    fn tcp(&self) -> &TcpStream {
        self.get_ref().0
    }
}

/// Serves a router on a connection.
pub(super) async fn http(stream: impl Stream, peer: SocketAddr, router: Router) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.call(request);
        async move {
            let mut response = answer.await.unwrap_or_else(|never| match never {});
            // hyper stops when its service fails, and writes nothing.
            match response.extensions_mut().remove::<Takeover>() {
                Some(takeover) => Err(takeover),
                None => Ok(response),
            }
        }
    });
    let mut connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    let ended = (&mut connection).await;
    let takeover = ended.as_ref().err().and_then(|error| error.source()?.downcast_ref::<Takeover>());
    if let Some(takeover) = takeover {
        // A client that goes away in the middle is no concern of the sandbox.
        let _ = take_over(connection.into_parts().io.into_inner(), takeover).await;
    }
}

async fn take_over(mut stream: impl Stream, Takeover { bytes, at_once, pause, end }: &Takeover) -> io::Result<()> {
    let (first, others) = bytes.split_at(bytes.len().min(*at_once));
    stream.write_all(first).await?;
    for byte in others {
        tokio::time::sleep(*pause).await;
        stream.write_all(&[*byte]).await?;
    }
    match end {
        End::Closed => stream.shutdown().await,
        End::Reset => stream.tcp().set_zero_linger(),
        End::Open => tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(|_| ()),
    }
}

/// Breaks a connection off when a request is there, which nobody has read.
pub(super) async fn reset(stream: TcpStream) {
    // Before that, the client might not know of the connection yet.
    if stream.peek(&mut [0]).await.is_ok() {
        let _ = stream.set_zero_linger();
    }
}
