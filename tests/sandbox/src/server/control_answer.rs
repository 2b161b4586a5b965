//! The input and the answers of a control call.

use std::collections::BTreeMap;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

/// The problem of a control request, in one sentence.
pub(super) struct Wrong(String);

pub(super) type Answer = Result<Response, Wrong>;

pub(super) fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Wrong> {
    serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))
}

pub(super) fn wrong(error: impl Into<String>) -> Wrong {
    Wrong(error.into())
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        let body = Json(BTreeMap::from([("error", self.0)]));
        (StatusCode::BAD_REQUEST, body).into_response()
    }
}

pub(super) fn done() -> Response {
    Json(BTreeMap::from([("done", true)])).into_response()
}
