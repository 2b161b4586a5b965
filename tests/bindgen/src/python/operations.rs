//! The methods of both clients: one for each operation, and those that wait, walk or go beyond the table.

use std::fmt::Write;

use hopline::contract::{Endpoint, Safety, Shape, endpoint, endpoints};

use super::method::{Given, Host, Method, Option3, Param, params};
use super::{HEADER, answer_type, record_of};
use crate::model::about;

const INTENT: Option3 =
    ("intent", "str", "Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.");
const KEY: Option3 = ("idempotency_key", "str", "A key of your own. It counts as sent before and is never replaced.");
const RETRY_PAID: Option3 =
    ("retry_paid", "bool", "Whether to buy again with a new key when the service failed. It may have sold all the same.");
const ALWAYS: [Option3; 4] = [
    ("attempts", "int", "How often it is sent at most, the first time included."),
    ("window", "float", "Seconds from the first send within which another may be made."),
    ("timeout", "float", "Seconds that one attempt may take."),
    ("headers", "Mapping[str, str | Secret]", "Further headers of the request. They are not kept in records."),
];
const UNIT_PRICE: Option3 =
    ("max_unit_price", "Decimal | float", "The highest price of one unit that is paid, in USD; the account's own list is read first.");
const CHARGE: Option3 = (
    "expected_charge_usd",
    "Decimal | float",
    "What it is to cost, in USD, where the client has a `daily_cap_usd` and can't know it from the price.",
);
const WATCHING: [Option3; 2] = [
    ("until", "Until", "What the read is repeated for; the answer's `phase` says whether it holds."),
    ("deadline", "float", "Seconds after which `until` is no longer waited for; 5 minutes where it is left out."),
];
const WAITING: [Option3; 4] = [
    ("credentials", "bool", "Whether the username and password are wanted once the session is active."),
    ("auto_rotate", "bool", "Whether `observe` rotates the session, a dynamic one, where it would advise to."),
    ("deadline", "float", "Seconds after which waiting ends with a handle; 5 minutes where it is left out."),
    ("ends", "Sequence[str]", "Further statuses that end it."),
];
/// Which parameters `request` has, and which of the two clients' own arguments `open_session` and the walks have.
const REQUEST: [Given; 5] = [
    ("method", "Method", "", "The HTTP method."),
    ("path", "str", "", "The path below the base URL, percent-encoded, such as `/billing/invoices`."),
    ("query", "Mapping[str, str] | Unset", " = UNSET", "The parameters of the query; they are percent-encoded here."),
    ("body", "Any", " = UNSET", "The JSON body. Its record keeps what may be sent again: put no secret in it unless it is `at_most_once`."),
    ("safety", "Safety | Unset", " = UNSET", "What may be done after a failure; of a GET it is `safe`, else `at_most_once`."),
];
const KEEP: Given = ("keep", "bool", " = False", "Whether the session lives on when the `with` block is left. A static one always does.");
const WALK: [Given; 2] = [
    ("position", "str | None", " = None", "The `position` of an earlier walk of this list, to go on from there."),
    ("max_pages", "int | None", " = None", "How many pages are read at most, those before `position` included; 1000 where it is left out."),
];

/// The text of `_operations.py`.
pub(super) fn print() -> String {
    let mut out = format!("{HEADER}\"\"\"The operations of the API, one method each.\"\"\"\n\n");
    put!(out, "from collections.abc import Mapping, Sequence");
    put!(out, "from decimal import Decimal");
    put!(out, "from typing import Any\n");
    put!(out, "from ._bases import AsyncCaller, Caller");
    put!(out, "from ._pages import AsyncPages, Pages");
    put!(out, "from ._session import AsyncOpening, OpenSession, SessionReply");
    put!(out, "from ._types import *  # noqa: F403");
    put!(out, "from ._values import UNSET, Method, Reply, Safety, Secret, Unset, Until\n");
    for host in [Host::Sync, Host::Async] {
        let (class, base) = if host == Host::Sync { ("Operations", "Caller") } else { ("AsyncOperations", "AsyncCaller") };
        put!(out, "\n\nclass {class}({base}):");
        put!(out, "    \"\"\"One method for each operation of the API, those that wait for a session, and those that walk a list.\"\"\"");
        put!(out, "\n    __slots__ = ()");
        for endpoint in endpoints() {
            print_method(&mut out, host, endpoint);
            print_walk(&mut out, host, endpoint);
        }
        print_waiting(&mut out, host);
        print_request(&mut out, host);
    }
    out
}

fn print_method(out: &mut String, host: Host, endpoint: &Endpoint) {
    let reads = endpoint.safety == Safety::Safe;
    let own = [
        (!reads, INTENT),
        (endpoint.safety == Safety::Keyed, KEY),
        (endpoint.paid, RETRY_PAID),
        (endpoint.name == "create_session", UNIT_PRICE),
        (["create_session", "renew_session"].contains(&endpoint.name), CHARGE),
    ];
    let own = own.into_iter().filter_map(|(has, option)| has.then_some(option));
    let answer = answer_of(endpoint);
    Method {
        host,
        name: endpoint.name,
        doc: about(endpoint),
        params: params(endpoint.request.fields),
        positional: 0,
        options: own.chain(ALWAYS).chain(WATCHING.into_iter().filter(|_| reads)).collect(),
        beside: &[],
        call: [format!("self._call({:?}, ", endpoint.name), format!(", {answer})")],
        answer,
        awaits: true,
    }
    .print(out);
}

/// The walk of a list that comes in pages.
fn print_walk(out: &mut String, host: Host, endpoint: &Endpoint) {
    let Some(list) = record_of(endpoint.response).filter(|list| list.field("next_cursor").is_some()) else { return };
    let items = list.fields.iter().find_map(|field| match field.shape {
        Shape::List(item) => Some((field.name, answer_type(*item))),
        _ => None,
    });
    let Some((items, item)) = items else { return };
    let walk = endpoint.name.replacen("list_", "walk_", 1);
    let class = if host == Host::Sync { "Pages" } else { "AsyncPages" };
    let doc = [
        format!("Walks all pages of `{}`, each read when it is come to.", endpoint.name),
        String::new(),
        format!("To iterate gives the `{items}` of all pages, to iterate its `pages()` whole pages."),
    ];
    Method {
        host,
        name: &walk,
        doc: doc.to_vec(),
        params: params(endpoint.request.fields.iter().filter(|field| field.name != "cursor")),
        positional: 0,
        options: ALWAYS.to_vec(),
        beside: &WALK,
        call: [format!("self._walk({:?}, ", endpoint.name), format!(", {}, lambda page: page.{items})", list.name)],
        answer: format!("{class}[{item}, {}]", list.name),
        awaits: false,
    }
    .print(out);
}

/// The two methods that wait, which are no entries of the table: `open_session` and `wait_session`.
fn print_waiting(out: &mut String, host: Host) {
    let opened = if host == Host::Sync { "OpenSession" } else { "AsyncOpening" };
    if let Some(create) = endpoint("create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come.\n\nLeaving a `with` block of it ends a dynamic \
                   session, unless `keep` is true.";
        let options = [INTENT, KEY, RETRY_PAID, UNIT_PRICE, CHARGE].into_iter().chain(ALWAYS).chain(WAITING).collect();
        Method {
            host,
            name: "open_session",
            doc: doc.lines().map(str::to_owned).collect(),
            params: params(create.request.fields),
            positional: 0,
            options,
            beside: &[KEEP],
            answer: opened.to_owned(),
            // `async with` needs the purchase itself, before it is awaited.
            awaits: false,
            call: ["self._open(", ")"].map(str::to_owned),
        }
        .print(out);
    }
    if let Some(read) = endpoint("get_session") {
        Method {
            host,
            name: "wait_session",
            doc: vec!["Waits for a session that is known by its id, as `open_session` does after its purchase.".to_owned()],
            params: params(read.request.fields.iter().filter(|field| field.name == "session_id")),
            positional: 0,
            options: ALWAYS.into_iter().chain(WAITING).collect(),
            beside: &[],
            answer: "SessionReply".to_owned(),
            awaits: true,
            call: ["self._wait(", ")"].map(str::to_owned),
        }
        .print(out);
    }
}

/// The way to what the table does not have.
fn print_request(out: &mut String, host: Host) {
    let doc = "Sends a request that has no method here, with the account's key; the answer's `raw` is all that is known of it.";
    Method {
        host,
        name: "request",
        doc: vec![doc.to_owned()],
        params: REQUEST.iter().map(Param::from).collect(),
        positional: 2,
        options: [INTENT, KEY].into_iter().chain(ALWAYS).chain(WATCHING).collect(),
        beside: &[],
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
    use super::super::one_line;
    use super::*;

    #[test]
    fn every_operation_is_a_documented_method_of_both_clients() {
        let printed = super::print();
        for endpoint in endpoints() {
            let (blocking, awaited) = (format!("    def {}(\n", endpoint.name), format!("    async def {}(\n", endpoint.name));
            assert!(printed.contains(&blocking) && printed.contains(&awaited), "{}", endpoint.name);
            assert!(printed.matches(&format!("\"\"\"{}", one_line(endpoint.doc).split('.').next().unwrap_or_default())).count() >= 2);
        }
    }

    #[test]
    fn every_list_that_comes_in_pages_can_be_walked_from_a_position() {
        let printed = super::print();
        let lists: Vec<&str> = endpoints().map(|endpoint| endpoint.name).filter(|name| name.ends_with("products")).collect();
        assert!(!lists.is_empty());
        for name in lists {
            let start = printed.find(&format!("    def {}(\n", name.replacen("list_", "walk_", 1))).unwrap_or_else(|| panic!("{name}"));
            let signature = printed[start..].split(":\n").next().unwrap_or_default();
            assert!(signature.contains(" position: str") && signature.contains(" max_pages: int") && !signature.contains(" cursor:"));
        }
        assert!(!printed.contains("def walk_transactions("), "its answer is not shown");
    }

    #[test]
    fn options_are_printed_just_where_they_mean_something() {
        let printed = super::print();
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
        assert!(takes("request", "until") && !takes("request", "max_unit_price"));
    }
}
