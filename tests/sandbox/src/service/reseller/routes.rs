//! Every endpoint of the backend, once: to add one is to add its line here and its function.

use http::Method;
use percent_encoding::percent_decode_str;

use super::call::{Call, Ids};
use super::{books, dashboard, dynamic, flow, login, people, products, renewal, static_create, static_list, usdt, users};
use crate::service::Service;
use crate::service::envelope::{Refusal, Reply};

/// Where the reseller backend API lives on its host.
pub const BACKEND_PATH: &str = "/api";

/// The names of all operations of the backend, in the spelling that faults and counters use.
pub const BACKEND_OPERATIONS: [&str; ROUTES.len()] = {
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
    /// A reseller or one of its sub-users.
    Anyone,
    Reseller,
}

/// An endpoint.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) operation: &'static str,
    method: &'static str,
    path: &'static str,
    pub(crate) auth: Auth,
    pub(crate) run: fn(&mut Service, &Call<'_>) -> Result<Reply, Refusal>,
}

use Auth::{Anyone, Public, Reseller};

#[rustfmt::skip]
const ROUTES: &[Route] = &[
    route("login", "POST", "/auth/login", Public, login::login),
    route("create_user", "POST", "/open/app/user/v2", Reseller, users::create),
    route("get_current_balance", "GET", "/open/app/user/balance/current", Anyone, people::balance),
    route("list_sub_users", "GET", "/open/app/agent/sub-users", Reseller, users::list),
    route("adjust_sub_user_balance", "POST", "/open/app/agent/sub-users/{}/balance", Reseller, users::adjust),
    route("edit_sub_user_account", "PATCH", "/open/app/agent/sub-users/{}/account", Reseller, users::edit),
    route("set_sub_user_status", "PATCH", "/open/app/agent/sub-users/{}/status", Reseller, users::set_status),
    route("delete_sub_user", "DELETE", "/open/app/agent/sub-users/{}", Reseller, users::delete),
    route("query_products", "POST", "/open/app/product/query-standard/v2", Anyone, products::query),
    route("list_ip_ranges", "GET", "/open/app/product/ip-ranges/v2", Anyone, products::ip_ranges),
    route("create_dynamic_order", "POST", "/open/app/order/create/v2", Anyone, dynamic::create),
    route("list_dynamic_orders", "GET", "/dynamic", Anyone, dynamic::list),
    route("get_dynamic_order", "GET", "/dynamic/{}", Anyone, dynamic::get),
    route("find_dynamic_order", "GET", "/dynamic/order-info/{}", Anyone, dynamic::find),
    route("extract_dynamic_proxies", "POST", "/business/dynamic-proxy/extract", Anyone, flow::extract),
    route("get_products_flow", "GET", "/user/{}/products-flow", Anyone, flow::all),
    route("get_remaining_flow", "GET", "/user/{}/remaining-flow/{}", Anyone, flow::one),
    route("create_static_order", "POST", "/open/app/static/order/create-standard/v2", Anyone, static_create::create),
    route("list_static_orders", "GET", "/open/app/static/order/list/v2", Anyone, static_list::list),
    route("get_static_order_statistics", "GET", "/open/app/static/order/statistics", Anyone, static_list::statistics),
    route("renew_static_order", "POST", "/open/app/static/order/renew", Anyone, renewal::renew),
    route("cancel_static_order", "POST", "/open/app/static/order/{}/cancel", Anyone, renewal::cancel),
    route("get_dashboard", "GET", "/open/app/dashboard/info/v2", Anyone, dashboard::get),
    route("list_consumption", "GET", "/open/app/user/transactions", Anyone, books::consumption),
    route("list_agent_transactions", "GET", "/transaction/agent/transactions", Anyone, books::funds),
    route("get_usdt_wallet", "GET", "/usdt/wallet-info", Anyone, usdt::wallet),
    route("create_usdt_order", "POST", "/usdt/create-order", Anyone, usdt::create),
    route("check_usdt_order", "GET", "/usdt/check-status", Anyone, usdt::check),
    route("list_usdt_orders", "GET", "/usdt/orders", Anyone, usdt::list),
    route("cancel_usdt_order", "POST", "/usdt/cancel-order", Anyone, usdt::cancel),
];

const fn route(
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    auth: Auth,
    run: fn(&mut Service, &Call<'_>) -> Result<Reply, Refusal>,
) -> Route {
    Route { operation, method, path, auth, run }
}

/// True if a path belongs to the backend.
pub(crate) fn is_own(path: &str) -> bool {
    path.strip_prefix(BACKEND_PATH).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The endpoint of a method and path, with the parameters of the path.
pub(crate) fn find<'a>(method: &Method, path: &'a str) -> Option<(&'static Route, Ids<'a>)> {
    let path = path.strip_prefix(BACKEND_PATH)?;
    ROUTES.iter().filter(|route| route.method == method.as_str()).find_map(|route| parameters(route.path, path).map(|ids| (route, ids)))
}

/// Matches segment by segment before decoding, so that an encoded slash stays inside its segment.
fn parameters<'a>(pattern: &str, path: &'a str) -> Option<Ids<'a>> {
    let mut ids = Vec::new();
    let mut given = path.split('/');
    for expected in pattern.split('/') {
        let segment = given.next()?;
        if expected == "{}" && !segment.is_empty() {
            ids.push(percent_decode_str(segment).decode_utf8().ok()?);
        } else if expected != segment {
            return None;
        }
    }
    given.next().is_none().then_some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_is_one_segment_decoded_once() {
        let pattern = "/user/{}/remaining-flow/{}";
        assert_eq!(parameters(pattern, "/user/7/remaining-flow/a%2Fb").unwrap(), ["7", "a/b"]);
        for path in ["/user//remaining-flow/a", "/user/7/remaining-flow", "/user/7/remaining-flow/a/b", "/user/7/remaining-flow/%ff"] {
            assert_eq!(parameters(pattern, path), None, "{path}");
        }
    }

    #[test]
    fn only_what_stands_below_the_base_path_is_the_backends() {
        assert!(is_own("/api") && is_own("/api/dynamic"));
        assert!(!is_own("/apis/dynamic") && !is_own("/v1/api"));
    }
}
