//! Both APIs on HTTP and their OpenAPI documents, with CORS for dashboards that are developed against it; and the target site.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::{ConnectInfo, State};
use axum::http::{Request, Response, StatusCode};
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

/// The routes of the target site.
pub(super) fn target_router(shared: Arc<Shared>) -> Router {
    Router::new().route("/", get(welcome)).with_state(shared)
}

async fn welcome(State(shared): State<Arc<Shared>>, ConnectInfo(peer): ConnectInfo<SocketAddr>) -> impl IntoResponse {
    let (status, welcome) = shared.lock().target.visit(peer.ip());
    (status, Json(welcome))
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
