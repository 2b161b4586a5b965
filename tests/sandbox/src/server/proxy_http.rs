//! The HTTP proxy: CONNECT for tunnels, and requests in absolute form for plain http.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::uri::Authority;
use axum::http::{Method, Request, Response, StatusCode, Uri};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::proxy::{Pass, Refused};
use super::shared::Shared;

/// The headers of the hop between client and proxy.
const HOP_HEADERS: &[&str] = &["connection", "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "upgrade"];

/// Serves one client.
pub(super) async fn serve(shared: Arc<Shared>, client: TcpStream) {
    let service = service_fn(|request| {
        let shared = shared.clone();
        async move { Ok::<_, Infallible>(answer(shared, request).await) }
    });
    // A client that goes away in the middle is no concern of the sandbox.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(client), service).with_upgrades().await;
}

async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Response<Body> {
    let pass = credentials(request.headers()).and_then(|(name, word)| Pass::check(&shared, name, word));
    let Some(pass) = pass else {
        let mut response = text(StatusCode::PROXY_AUTHENTICATION_REQUIRED, "the credentials open no active session");
        let challenge = HeaderValue::from_static("Basic realm=\"hopline-sandbox\"");
        response.headers_mut().insert(header::PROXY_AUTHENTICATE, challenge);
        return response;
    };
    let tunnel = request.method() == Method::CONNECT;
    let is_http = request.uri().scheme_str() == Some("http");
    let target = request.uri().authority().cloned().filter(|_| tunnel || is_http);
    let Some((host, port)) = target.as_ref().and_then(|target| host_and_port(target, tunnel)) else {
        return text(StatusCode::BAD_REQUEST, "the proxy takes CONNECT and absolute http addresses");
    };
    let server = match pass.connect(host, port).await {
        Ok(server) => server,
        Err(Refused::NotLoopback) => {
            return text(StatusCode::FORBIDDEN, "the proxy reaches loopback addresses only");
        }
        Err(Refused::Unreachable(error)) => {
            return text(StatusCode::BAD_GATEWAY, error.to_string());
        }
    };
    if tunnel {
        tokio::spawn(async move {
            if let Ok(client) = hyper::upgrade::on(request).await {
                pass.carry(&shared, TokioIo::new(client), server).await;
            }
        });
        return Response::default();
    }
    forward(shared, pass, server, request).await.unwrap_or_else(|error| text(StatusCode::BAD_GATEWAY, error.to_string()))
}

/// Sends one request on, through the same `carry` as a tunnel, so that its bytes count and it closes in time.
async fn forward(shared: Arc<Shared>, pass: Pass, server: TcpStream, mut request: Request<Incoming>) -> hyper::Result<Response<Body>> {
    let (near, far) = tokio::io::duplex(16 * 1024);
    tokio::spawn(async move { pass.carry(&shared, far, server).await });
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(near)).await?;
    tokio::spawn(connection);
    let path = request.uri().path_and_query().cloned();
    *request.uri_mut() = path.map_or_else(|| Uri::from_static("/"), Uri::from);
    remove_hop_headers(request.headers_mut());
    let mut response = sender.send_request(request).await?.map(Body::new);
    remove_hop_headers(response.headers_mut());
    Ok(response)
}

fn host_and_port(target: &Authority, tunnel: bool) -> Option<(&str, u16)> {
    let port = target.port_u16().or((!tunnel).then_some(80))?;
    Some((target.host(), port))
}

fn remove_hop_headers(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in HOP_HEADERS {
        headers.remove(*name);
    }
}

fn credentials(headers: &HeaderMap) -> Option<(String, String)> {
    let value = headers.get(header::PROXY_AUTHORIZATION)?.to_str().ok()?;
    let (scheme, encoded) = value.split_once(' ')?;
    let decoded = BASE64_STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let pair = String::from_utf8(decoded).ok()?;
    let (username, password) = pair.split_once(':')?;
    Some((username.to_owned(), password.to_owned()))
}

fn text(status: StatusCode, message: impl Into<String>) -> Response<Body> {
    let mut response = Response::new(Body::from(message.into() + "\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}
