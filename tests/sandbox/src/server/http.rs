//! The API on HTTP and its OpenAPI document, with CORS for dashboards that are developed against it.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request, Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use hopline::contract::Api;
use hopline_bindgen::openapi;
use tower_http::cors::{AllowHeaders, Any, CorsLayer};

use super::control;
use super::faults;
use super::shared::Shared;
use crate::service::{BASE_PATH, Service};

const LARGEST_REQUEST: usize = 2 * 1024 * 1024;

pub(super) fn router(shared: Arc<Shared>, agent_url: &str) -> Router {
    let document = openapi::document(Api::Agent, agent_url);
    let documented = get(move || async move { Json(document) });
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods(Any)
        // Mirrored, since a wildcard does not cover `Authorization`.
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(Any);
    Router::new()
        .nest("/control", control::router())
        .route("/openapi.json", documented.clone())
        .route(&format!("{BASE_PATH}/openapi.json"), documented)
        .fallback(agent)
        .with_state(shared)
        .layer(cors)
}

async fn agent(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let Ok(body) = to_bytes(body, LARGEST_REQUEST).await else {
        return (StatusCode::PAYLOAD_TOO_LARGE, "the request body could not be read").into_response();
    };
    let request = Request::from_parts(parts, body.to_vec());
    let fault = Service::operation(&request).and_then(|operation| shared.take_fault(operation));
    faults::deliver(&shared, &request, fault).await
}
