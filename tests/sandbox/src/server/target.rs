//! A small site to reach through the proxies: it tells each visitor the address it comes from, and can block some.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use super::shared::Shared;

/// Who came, and who is blocked.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Target {
    pub(super) blocked: BTreeSet<IpAddr>,
    /// Whether the next proxy exit that comes is blocked from then on; goes back to false with it.
    pub(super) block_first_exit: bool,
    visits: BTreeMap<IpAddr, u32>,
}

#[derive(Serialize)]
struct Welcome {
    address: IpAddr,
    visits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<bool>,
}

pub(super) fn router(shared: Arc<Shared>) -> Router {
    Router::new().route("/", get(welcome)).with_state(shared)
}

async fn welcome(State(shared): State<Arc<Shared>>, ConnectInfo(peer): ConnectInfo<SocketAddr>) -> Response {
    let (status, welcome) = shared.lock().target.visit(peer.ip());
    (status, Json(welcome)).into_response()
}

impl Target {
    fn visit(&mut self, address: IpAddr) -> (StatusCode, Welcome) {
        let comes_by_proxy = address != IpAddr::from([127, 0, 0, 1]) && address != IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]);
        if self.block_first_exit && comes_by_proxy {
            self.blocked.insert(address);
            self.block_first_exit = false;
        }
        let visits = self.visits.entry(address).or_default();
        *visits += 1;
        let blocked = self.blocked.contains(&address);
        let status = if blocked { StatusCode::FORBIDDEN } else { StatusCode::OK };
        (status, Welcome { address, visits: *visits, blocked: blocked.then_some(true) })
    }
}
