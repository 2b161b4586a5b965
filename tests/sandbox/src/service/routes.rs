//! Every endpoint, once: to add one is to add its line here and its function.

use std::borrow::Cow;

use http::Method;
use percent_encoding::percent_decode_str;

use super::call::Call;
use super::envelope::{Code, Refusal, Reply};
use super::{Service, billing, budget, health, products, recharge, sessions, signup};

/// Where the agent API lives on its host.
pub const BASE_PATH: &str = "/v1";

/// The names of all operations, in the spelling that faults and counters use.
pub const OPERATIONS: [&str; ROUTES.len()] = {
    let mut names = [""; ROUTES.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = ROUTES[at].operation;
        at += 1;
    }
    names
};

/// The callers of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Auth {
    Public,
    Key,
}

/// True if an endpoint reads `Idempotency-Key`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    Plain,
    Keyed,
}

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) operation: &'static str,
    method: &'static str,
    path: &'static str,
    pub(crate) auth: Auth,
    pub(crate) repeat: Repeat,
    pub(crate) run: fn(&mut Service, &Call<'_>) -> Result<Reply, Refusal>,
}

use Auth::{Key, Public};
use Repeat::{Keyed, Plain};

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    route("list_public_products", "GET", "/public/products", Public, Plain, products::list_public),
    route("request_api_key", "POST", "/account/request-api-key", Public, Plain, signup::request_api_key),
    route("register_account", "POST", "/account/register", Public, Plain, signup::register),
    route("get_account", "GET", "/account/info", Key, Plain, signup::info),
    route("get_budget", "GET", "/account/budget", Key, Plain, budget::get),
    route("update_budget", "PUT", "/account/budget", Key, Keyed, budget::update),
    route("get_usage_alerts", "GET", "/account/usage-alerts", Key, Plain, budget::alerts),
    route("list_products", "GET", "/products", Key, Plain, products::list),
    route("create_session", "POST", "/sessions", Key, Keyed, sessions::create),
    route("get_session", "GET", "/sessions/{id}", Key, Plain, sessions::get),
    route("terminate_session", "DELETE", "/sessions/{id}", Key, Plain, sessions::terminate),
    route("rotate_session", "POST", "/sessions/{id}/rotate", Key, Keyed, sessions::rotate),
    route("renew_session", "POST", "/sessions/{id}/renew", Key, Keyed, sessions::renew),
    route("report_session_event", "POST", "/sessions/{id}/report-event", Key, Plain, health::report),
    route("get_session_health", "GET", "/sessions/{id}/health", Key, Plain, health::get),
    route("get_balance", "GET", "/billing/balance", Key, Plain, billing::balance),
    route("get_pricing", "GET", "/billing/pricing", Key, Plain, billing::pricing),
    route("create_recharge", "POST", "/billing/recharge", Key, Keyed, recharge::create),
    route("list_transactions", "GET", "/billing/transactions", Key, Plain, billing::transactions),
];

const fn route(
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    auth: Auth,
    repeat: Repeat,
    run: fn(&mut Service, &Call<'_>) -> Result<Reply, Refusal>,
) -> Route {
    Route { operation, method, path, auth, repeat, run }
}

/// The endpoint of a method and path, with the parameter of the path.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Option<(&'static Route, Cow<'a, str>)> {
    let path = path.strip_prefix(BASE_PATH)?;
    ROUTES.iter().filter(|route| route.method == method.as_str()).find_map(|route| parameter(route.path, path).map(|id| (route, id)))
}

pub(crate) fn not_found(method: &Method, path: &str) -> Refusal {
    Refusal::new(Code::RouteNotFound, "the method and path are not an api route").detail("method", method.as_str()).detail("path", path)
}

/// Matches segment by segment before decoding, so that an encoded slash stays inside its segment.
fn parameter<'a>(pattern: &str, path: &'a str) -> Option<Cow<'a, str>> {
    let mut id = Cow::Borrowed("");
    let mut given = path.split('/');
    for expected in pattern.split('/') {
        let segment = given.next()?;
        if expected == "{id}" && !segment.is_empty() {
            id = percent_decode_str(segment).decode_utf8().ok()?;
        } else if expected != segment {
            return None;
        }
    }
    given.next().is_none().then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_one_segment_decoded_once() {
        let pattern = "/sessions/{id}/rotate";
        assert_eq!(parameter(pattern, "/sessions/a%2Fb%2525/rotate").as_deref(), Some("a/b%25"));
        for path in ["/sessions//rotate", "/sessions/a/b/rotate", "/sessions/a/rotate/", "/sessions/a", "/sessions/%ff/rotate"] {
            assert_eq!(parameter(pattern, path), None, "{path}");
        }
    }
}
