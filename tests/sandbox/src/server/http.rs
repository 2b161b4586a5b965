//! Both APIs on HTTP and their OpenAPI documents, with CORS for dashboards that are developed against it; and the target site.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get};
use axum::{Json, Router};
use hopline::contract::Api;
use hopline_bindgen::openapi;
use tower_http::cors::{AllowHeaders, Any, CorsLayer};

use super::Ready;
use super::control;
use super::faults;
use super::shared::{Arrival, Shared};
use super::target::{Answer, Visitor};
use crate::service::{BACKEND_PATH, BASE_PATH, Service};

const LARGEST_REQUEST: usize = 2 * 1024 * 1024;

pub(super) fn router(shared: Arc<Shared>, ready: &Ready) -> Router {
    let agents = documented(Api::Agent, &ready.agent_url);
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(Any)
        // Mirrored, since a wildcard does not cover `Authorization`.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(Any);
    Router::new()
        .nest("/control", control::router())
        .route("/openapi.json", agents.clone())
        .route(&format!("{BASE_PATH}/openapi.json"), agents)
        .route(&format!("{BACKEND_PATH}/openapi.json"), documented(Api::Reseller, &ready.backend_url))
        .fallback(api)
        .with_state(shared)
        .layer(cors)
}

/// The document of an API that is served at a base URL.
fn documented(api: Api, base_url: &str) -> MethodRouter<Arc<Shared>> {
    let document = openapi::document(api, base_url);
    get(move || async move { Json(document) })
}

/// The target site, which has every path.
pub(super) fn target_router(shared: Arc<Shared>, tls: bool) -> Router {
    let page = move |State(shared): State<Arc<Shared>>, ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request<Body>| async move {
        let host = request.headers().get(header::HOST).map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned());
        let (method, path) = (request.method().to_string(), request.uri().to_string());
        let visitor = Visitor { peer, tls, host: host.unwrap_or_default(), method, path };
        let Answer { status, retry_after, page } = shared.visit(visitor);
        let retry_after = retry_after.map(|seconds| [(header::RETRY_AFTER, seconds.to_string())]);
        (status, retry_after, Json(page)).into_response()
    };
    Router::new().fallback(page).with_state(shared)
}

async fn api(State(shared): State<Arc<Shared>>, ConnectInfo(peer): ConnectInfo<SocketAddr>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_REQUEST).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request body could not be read").into_response();
    };
    let request = Request::from_parts(parts, body.to_vec());
    shared.note(Arrival::new(peer, &request));
    let fault = shared.take_fault(Service::operation(&request));
    faults::deliver(&shared, &request, fault).await
}
