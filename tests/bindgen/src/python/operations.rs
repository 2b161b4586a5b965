//! The methods of the clients: one for each operation, and those that wait, walk or go beyond the table.

use std::fmt::Write;

use hopline::contract::{Api, Endpoint, Record};

use super::method::{Given, Method, Param, params};
use super::{HEADER, answer_type, python_name, record_of};
use crate::model::{Use, WALK, Walk, about, client, operation, operations, pool_fields, pool_requests, request_fields, use_of};

/// The parameters of `request`, and those of `open_session` beside its options.
const REQUEST: [Given; 5] = [
    ("method", "Method", "", "The HTTP method."),
    ("path", "str", "", "The path below the base URL, percent-encoded, such as `/billing/invoices`."),
    ("query", "Mapping[str, str] | Unset", " = UNSET", "The parameters of the query; they are percent-encoded here."),
    (
        "body",
        "Any",
        " = UNSET",
        "The JSON body. A record keeps the body of a write that may be sent again: put no secret in it unless it is `at_most_once`.",
    ),
    (
        "safety",
        "Safety | Unset",
        " = UNSET",
        "The repeats that are allowed after a failure. Default: `safe` for a GET, else `at_most_once`.",
    ),
];
const RECORD: Given = ("record", "str", "", "The record in doubt, as the error and `saved` name it.");
const ORDER: Given = ("order_no", "str", "", "Its number.");
const OPENING: [Given; 2] = [
    ("keep", "bool", " = False", "True to keep the session when the `with` block is left. A static one is always kept."),
    (
        "use_with",
        "UseWith | None",
        " = None",
        "The HTTP client that the proxy is for. If it does not support the session's protocol, the purchase is refused and nothing is sent.",
    ),
];
const BLOCKED: Given = (
    "blocked",
    "Callable[[Any], bool] | None",
    " = None",
    "A function of a response that `observe` is given: True if it is a block, such as a page with a captcha. It is not awaited.",
);

/// The text of the file of an API: the methods of the client for tasks.
pub(super) fn print(api: Api) -> String {
    let mut out = format!("{HEADER}\"\"\"The operations of the API, one method each.\"\"\"\n\n");
    // Python would take longer to evaluate the annotations than to import all else.
    put!(out, "from __future__ import annotations\n");
    put!(out, "from collections.abc import {}Mapping, Sequence", if api == Api::Agent { "Callable, " } else { "" });
    put!(out, "from typing import TYPE_CHECKING, Any\n");
    put!(out, "from ._async_client import AsyncClient");
    put!(out, "from ._async_pages import AsyncPages");
    match api {
        Api::Agent => {
            put!(out, "from ._async_pool import AsyncPoolOpening");
            put!(out, "from ._async_session import AsyncOpening");
            put!(out, "from ._proxy import UseWith");
            put!(out, "from ._session import SessionReply");
        }
        Api::Reseller => put!(out, "from ._order import OrderReply"),
    }
    put!(out, "from ._told import IfEnded, Method, PoolOnChange, PoolReplace, Safety");
    put!(out, "from ._types import *  # noqa: F403");
    put!(out, "from ._value import Cheapest, Reply, Until");
    put!(out, "from ._values import UNSET, Secret, Unset\n");
    put!(out, "if TYPE_CHECKING:\n    from decimal import Decimal");
    put!(out, "\n\nclass Async{}Operations(AsyncClient):", client(api));
    put!(out, "    \"\"\"One method for each operation of the API, and those that wait, walk a list, or send a request of your own.\"\"\"");
    put!(out, "\n    __slots__ = ()");
    for endpoint in operations(api) {
        print_method(&mut out, endpoint);
        if let Some(walk) = Walk::of(endpoint) {
            print_walk(&mut out, walk);
        }
    }
    print_waiting(&mut out, api);
    print_orders(&mut out, api);
    print_reconcile(&mut out);
    print_request(&mut out, api);
    if api == Api::Agent {
        pool_requests().filter(|record| record.name == "OpenPool").for_each(|open| print_pool(&mut out, open));
    }
    out
}

fn print_method(out: &mut String, endpoint: &Endpoint) {
    let answer = answer_of(endpoint);
    Method {
        name: endpoint.name,
        doc: about(endpoint),
        params: params(request_fields(endpoint)),
        positional: 0,
        takes: Some(use_of(endpoint)),
        beside: Vec::new(),
        call: [format!("self._call({:?}, ", endpoint.name), format!(", {answer})")],
        answer,
        awaits: true,
    }
    .print(out);
}

/// The walk of a list that comes in pages.
fn print_walk(out: &mut String, walk: Walk) {
    let (items, page, item) = (python_name(walk.items), walk.page.name, answer_type(walk.item));
    let doc = [
        format!("Walks all pages of `{}`, which are fetched lazily.", walk.endpoint.name),
        String::new(),
        format!("Iterating gives the `{items}` of all pages; iterating its `pages()` gives whole pages."),
    ];
    Method {
        name: &walk.name(),
        doc: doc.to_vec(),
        params: params(walk.fields()),
        positional: 0,
        takes: Some(Use::Call),
        beside: WALK.iter().map(Param::from).collect(),
        call: [format!("self._walk({:?}, ", walk.endpoint.name), format!(", {page}, lambda page: page.{items})")],
        answer: format!("AsyncPages[{item}, {page}]"),
        awaits: false,
    }
    .print(out);
}

/// The two methods that wait for a session, which are no entries of the table: `open_session` and `wait_session`.
fn print_waiting(out: &mut String, api: Api) {
    if let Some(create) = operation(api, "create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come.\n\nLeaving a `with` block of it ends a dynamic \
                   session, unless `keep` is true.";
        Method {
            name: "open_session",
            doc: doc.lines().map(str::to_owned).collect(),
            params: params(request_fields(create)),
            positional: 0,
            takes: Some(Use::Open),
            beside: OPENING[..1].iter().map(Param::from).collect(),
            answer: "AsyncOpening".to_owned(),
            // `async with` needs the purchase itself, before it is awaited.
            awaits: false,
            call: ["self._open(", ")"].map(str::to_owned),
        }
        .print(out);
    }
    if let Some(read) = operation(api, "get_session") {
        Method {
            name: "wait_session",
            doc: vec!["Waits for a session by its id, as `open_session` does after its purchase.".to_owned()],
            params: params(read.request.fields.iter().filter(|field| field.name == "session_id")),
            positional: 0,
            takes: Some(Use::Wait),
            beside: Vec::new(),
            answer: "SessionReply".to_owned(),
            awaits: true,
            call: ["self._wait(", ")"].map(str::to_owned),
        }
        .print(out);
    }
}

/// The two methods that wait for an order, which are no entries of the table either: `place_order` and `wait_order`.
fn print_orders(out: &mut String, api: Api) {
    let Some(create) = operation(api, "create_static_order") else { return };
    let place = "Places a static order and waits until its proxies can be used, it is over, or the deadline has come.\n\nIt is placed once: \
                 where it may have been placed, it stays in doubt, and `reconcile` shows what it may have become.";
    let wait = "Waits for a static order by its number, as `place_order` does after placing it.";
    let (fields, order_no) = (params(request_fields(create)), vec![Param::from(&ORDER)]);
    let each = [("place_order", place, fields, Use::Place), ("wait_order", wait, order_no, Use::Watch)];
    for (name, doc, params, takes) in each {
        Method {
            name,
            doc: doc.lines().map(str::to_owned).collect(),
            params,
            positional: 0,
            takes: Some(takes),
            beside: Vec::new(),
            answer: "OrderReply".to_owned(),
            awaits: true,
            call: [format!("self._order({name:?}, "), ")".to_owned()],
        }
        .print(out);
    }
}

/// The way out of a doubt.
fn print_reconcile(out: &mut String) {
    let doc = "Looks for what became of an operation in doubt, and shows what the service has that may be it.\n\nNothing is sent but \
               reads, and nothing is decided: once you know, say so with `settle`.";
    Method {
        name: "reconcile",
        doc: doc.lines().map(str::to_owned).collect(),
        params: vec![Param::from(&RECORD)],
        positional: 1,
        takes: Some(Use::Call),
        beside: Vec::new(),
        answer: "Reconciliation".to_owned(),
        awaits: true,
        call: ["self._call(\"reconcile\", ", ", Reconciliation)"].map(str::to_owned),
    }
    .print(out);
}

/// The method that opens a pool.
fn print_pool(out: &mut String, open: &'static Record) {
    let doc = "Opens a pool, which lends proxy sessions, and buys, rotates and replaces them as needed: at most `size` at a time over all \
               processes of one store.\n\nOpening it buys nothing before a caller waits for a lease, except for `keep_ready`. \
               Leaving a `with` block of it closes it; its sessions live on for the next opening. Clients that open a pool of this \
               name on the same store share its sessions by demand. Opening one that was opened with another request is `Invalid`, unless \
               `on_change` is `replace`.";
    let (must, may): (Vec<Param>, Vec<Param>) = pool_fields(open).iter().map(Param::of_pool).partition(Param::is_required);
    Method {
        name: "open_pool",
        doc: doc.lines().map(str::to_owned).collect(),
        params: must.into_iter().chain(may).collect(),
        positional: 1,
        takes: None,
        beside: OPENING[1..].iter().chain([&BLOCKED]).map(Param::from).collect(),
        answer: "AsyncPoolOpening".to_owned(),
        // As of a session.
        awaits: false,
        call: ["self._open_pool(", ")"].map(str::to_owned),
    }
    .print(out);
}

/// The way to what the table does not have.
fn print_request(out: &mut String, api: Api) {
    let proof = if api == Api::Agent { "key" } else { "token" };
    let doc = format!("Sends a request that has no method here, with the account's {proof}; the whole answer is in `raw`.");
    Method {
        name: "request",
        doc: vec![doc],
        params: REQUEST.iter().map(Param::from).collect(),
        positional: 2,
        takes: Some(Use::Request),
        beside: Vec::new(),
        answer: "Reply".to_owned(),
        awaits: true,
        call: ["self._call(\"request\", ", ", Reply)"].map(str::to_owned),
    }
    .print(out);
}

fn answer_of(endpoint: &Endpoint) -> String {
    record_of(endpoint.response).map_or("Reply", |record| record.name).to_owned()
}

#[cfg(test)]
mod tests {
    use hopline::contract::{FieldRule, Safety, endpoints};

    use super::super::{blocking, one_line};
    use crate::model::{APIS, Walk};

    fn printed() -> String {
        APIS.map(super::print).map(|awaited| format!("{}{awaited}", blocking::made(&awaited))).concat()
    }

    #[test]
    fn every_operation_is_a_documented_method_of_both_clients() {
        let printed = printed();
        for endpoint in endpoints() {
            let (blocking, awaited) = (format!("    def {}(\n", endpoint.name), format!("    async def {}(\n", endpoint.name));
            assert!(printed.contains(&blocking) && printed.contains(&awaited), "{}", endpoint.name);
            assert!(printed.matches(&format!("\"\"\"{}", one_line(endpoint.doc).split('.').next().unwrap_or_default())).count() >= 2);
        }
    }

    #[test]
    fn every_list_that_comes_in_pages_can_be_walked_from_a_position() {
        let printed = printed();
        let walks: Vec<String> = endpoints().filter_map(Walk::of).map(Walk::name).collect();
        assert!(walks.len() >= 6);
        for name in walks {
            let start = printed.find(&format!("    def {name}(\n")).unwrap_or_else(|| panic!("{name}"));
            let signature = printed[start..].split(":\n").next().unwrap_or_default();
            assert!(signature.contains(" position: str") && signature.contains(" max_pages: int"), "{name}");
            assert!(!signature.contains(" cursor:") && !signature.contains(" page:"), "{name}");
        }
        assert!(!printed.contains("def walk_transactions("), "its answer is not documented");
    }

    #[test]
    fn what_leaves_no_choice_is_no_parameter_and_the_rest_goes_out_under_its_name_of_the_wire() {
        let printed = printed();
        for endpoint in endpoints() {
            for field in endpoint.request.fields {
                let sent = format!("{:?}: {}", field.name, super::python_name(field));
                let start = printed.find(&format!("    def {}(\n", endpoint.name)).unwrap_or_else(|| panic!("{}", endpoint.name));
                let method = printed[start..].split("\n    def ").next().unwrap_or_default();
                let always = field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)));
                assert_eq!(method.contains(&sent), !always, "{} {sent}", endpoint.name);
            }
        }
    }

    #[test]
    fn options_are_printed_just_where_they_mean_something() {
        let printed = printed();
        let takes = |name: &str, option: &str| {
            let start = printed.find(&format!("    def {name}(\n")).unwrap_or_else(|| panic!("{name}"));
            printed[start..].split(":\n").next().unwrap_or_default().contains(&format!("        {option}: "))
        };
        for endpoint in endpoints() {
            assert_eq!(takes(endpoint.name, "until"), endpoint.safety == Safety::Safe, "{}", endpoint.name);
            assert_eq!(takes(endpoint.name, "max_unit_price"), endpoint.name == "create_session", "{}", endpoint.name);
        }
        assert!(takes("open_session", "max_unit_price") && takes("open_session", "expected_charge_usd"));
        assert!(takes("renew_session", "expected_charge_usd") && !takes("create_recharge", "expected_charge_usd"));
        assert!(takes("place_order", "intent") && takes("place_order", "deadline") && !takes("wait_order", "intent"));
        assert!(takes("request", "until") && !takes("request", "max_unit_price"));
    }
}
