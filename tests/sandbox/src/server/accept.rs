//! Accept loops. They are our own because a fault must be able to close a connection without an answer.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

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

/// The mark, an extension of a response, that the connection is to be closed instead of answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Severed;

impl fmt::Display for Severed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fault closed the connection")
    }
}

impl std::error::Error for Severed {}

/// Serves a router on a connection.
pub(super) async fn http(stream: impl AsyncRead + AsyncWrite + Unpin, peer: SocketAddr, router: Router) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        let answer = router.call(request);
        async move {
            let response = answer.await.unwrap_or_else(|never| match never {});
            // hyper closes an HTTP/1 connection when its service fails, and writes nothing.
            match response.extensions().get::<Severed>() {
                Some(severed) => Err(*severed),
                None => Ok(response),
            }
        }
    });
    // A client that goes away in the middle is no concern of the sandbox.
    let _ = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service).await;
}
