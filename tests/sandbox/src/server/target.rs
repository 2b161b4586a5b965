//! A small site to reach through the proxies: it tells each visitor the address it comes from, and can block some.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use axum::http::StatusCode;
use serde::Serialize;

/// The visitors of the target, and the blocked ones.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Target {
    pub(super) blocked: BTreeSet<IpAddr>,
    /// True if the next proxy exit that comes is blocked from then on; set back to false by that visit.
    pub(super) block_first_exit: bool,
    visits: BTreeMap<IpAddr, u32>,
}

#[derive(Serialize)]
pub(super) struct Welcome {
    address: IpAddr,
    visits: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocked: Option<bool>,
}

impl Target {
    pub(super) fn visit(&mut self, address: IpAddr) -> (StatusCode, Welcome) {
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
