//! The methods of the client: one for each operation, and those that wait, walk or go beyond the table.

use std::fmt::Write;

use hopline::contract::{Endpoint, Record, Safety, Shape, endpoint, endpoints};

use super::method::{Given, Method, Option3, Param, params};
use super::{HEADER, answer_type, escaped, member, quoted, record_of};
use crate::model::{about, camel};

const INTENT: Option3 =
    ("intent", "String", "your own name for this write, such as `job-17`: starting it again joins, resumes or returns it");
const KEY: Option3 = ("idempotencyKey", "String", "a key of your own; it counts as sent before and is never replaced");
const RETRY_PAID: Option3 =
    ("retryPaid", "Boolean", "whether to buy again with a new key when the service failed; it may have sold all the same");
const UNIT_PRICE: Option3 =
    ("maxUnitPrice", "BigDecimal", "the highest price, in USD for one unit, that is paid; the account's own list is read first");
const CHARGE: Option3 =
    ("expectedChargeUsd", "BigDecimal", "what it is to cost, in USD, where a daily cap is set and it can't be known from the price");
const WATCHING: [Option3; 2] = [
    ("until", "Until", "what the read is repeated for; the answer's `phase` says whether it holds"),
    ("deadline", "Duration", "after which `until` is no longer waited for; 5 minutes where it is left out"),
];
const ALWAYS: [Option3; 4] = [
    ("attempts", "Int", "how often it is sent at most, the first time included"),
    ("window", "Duration", "from the first send, the time within which another may be made"),
    ("timeout", "Duration", "how long one attempt may take"),
    ("headers", "Map<String, Secret>", "further headers of the request; they are not kept in records"),
];
const WAITING: [Option3; 4] = [
    ("credentials", "Boolean", "whether the username and password are wanted once the session is active"),
    ("autoRotate", "Boolean", "whether `observe` rotates the session, a dynamic one, where it would advise to"),
    ("deadline", "Duration", "after which waiting ends with a handle; 5 minutes where it is left out"),
    ("ends", "List<String>", "further statuses that end it"),
];

/// Which parameters `request` has, by their names in the core.
const REQUEST: [Given; 5] = [
    ("method", "Method", "", "the HTTP method"),
    ("path", "String", "", "the path below the base URL, percent-encoded, such as `/billing/invoices`"),
    ("query", "Map<String, String>?", " = null", "the parameters of the query; they are percent-encoded here"),
    (
        "body",
        "JsonElement?",
        " = null",
        "the JSON body; its record keeps what may be sent again: put no secret in it unless it is `AT_MOST_ONCE`",
    ),
    ("safety", "Safety?", " = null", "what may be done after a failure; of a GET it is `SAFE`, else `AT_MOST_ONCE`"),
];
const WALK: [Given; 2] = [
    ("position", "String?", " = null", "the `position` of an earlier walk of this list, to go on from there"),
    ("maxPages", "Int?", " = null", "how many pages are read at most, those before `position` included; 1000 where it is left out"),
];

/// The text of `Operations.kt`.
pub(super) fn print() -> String {
    let mut out = HEADER.to_owned();
    put!(out, "import java.math.BigDecimal");
    put!(out, "import kotlin.time.Duration");
    put!(out, "import kotlinx.serialization.json.JsonElement\n");
    put!(out, "/** One method for each operation of the API, those that wait for a session, and those that walk a list. */");
    put!(out, "public abstract class Operations internal constructor() : Caller() {{");
    for endpoint in endpoints() {
        print_method(&mut out, endpoint);
        print_walk(&mut out, endpoint);
    }
    print_waiting(&mut out);
    print_request(&mut out);
    put!(out, "}}");
    out
}

fn print_method(out: &mut String, endpoint: &Endpoint) {
    let reads = endpoint.safety == Safety::Safe;
    let own = [
        (!reads, INTENT),
        (endpoint.safety == Safety::Keyed, KEY),
        (endpoint.paid, RETRY_PAID),
        (endpoint.name == "create_session", UNIT_PRICE),
        (["create_session", "renew_session"].contains(&endpoint.name), CHARGE),
    ];
    let own = own.into_iter().filter_map(|(has, option)| has.then_some(option));
    let (answer, read) = match record_of(endpoint.response) {
        Some(record) => (record.name, format!(") {}", reader_of(record))),
        None => ("RawReply", ", ::rawReply)".to_owned()),
    };
    Method {
        fun: "suspend fun",
        name: camel(endpoint.name),
        doc: about(endpoint),
        params: params(endpoint.request.fields),
        options: own.chain(ALWAYS).chain(WATCHING.into_iter().filter(|_| reads)).collect(),
        beside: Vec::new(),
        answer: answer.to_owned(),
        call: [format!("call({}, ", quoted(endpoint.name)), read],
    }
    .print(out);
}

/// The walk of a list that comes in pages.
fn print_walk(out: &mut String, endpoint: &Endpoint) {
    let Some(list) = record_of(endpoint.response).filter(|list| list.field("next_cursor").is_some()) else { return };
    let items = list.fields.iter().find_map(|field| match field.shape {
        Shape::List(item) => Some((member(field.name, true), answer_type(*item))),
        _ => None,
    });
    let Some((items, item)) = items else { return };
    let doc = [
        format!("Walks all pages of `{}`, each read when it is come to.", camel(endpoint.name)),
        String::new(),
        format!("To collect gives the `{items}` of all pages, to collect its `pages()` whole pages."),
    ];
    Method {
        fun: "fun",
        name: camel(&endpoint.name.replacen("list_", "walk_", 1)),
        doc: doc.to_vec(),
        params: params(endpoint.request.fields.iter().filter(|field| field.name != "cursor")),
        options: ALWAYS.to_vec(),
        beside: WALK.iter().map(Param::from).collect(),
        answer: format!("Pages<{item}, {}>", list.name),
        call: [format!("walk({}, ", quoted(endpoint.name)), format!(", {}) {{ it.{items} }}", reader_of(list))],
    }
    .print(out);
}

/// The two methods that wait, which are no entries of the table: `openSession` and `waitSession`.
fn print_waiting(out: &mut String) {
    if let Some(create) = endpoint("create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come. It can charge money.".to_owned();
        Method {
            fun: "suspend fun",
            name: "openSession".to_owned(),
            doc: vec![doc],
            params: params(create.request.fields),
            options: [INTENT, KEY, RETRY_PAID, UNIT_PRICE, CHARGE].into_iter().chain(ALWAYS).chain(WAITING).collect(),
            beside: Vec::new(),
            answer: "OpenSession".to_owned(),
            call: ["open(", ")"].map(str::to_owned),
        }
        .print(out);
    }
    if let Some(read) = endpoint("get_session") {
        let doc = "Waits for a session that is known by its id, as [openSession] does after its purchase.".to_owned();
        Method {
            fun: "suspend fun",
            name: "waitSession".to_owned(),
            doc: vec![doc],
            params: params(read.request.fields.iter().filter(|field| field.name == "session_id")),
            options: ALWAYS.into_iter().chain(WAITING).collect(),
            beside: Vec::new(),
            answer: "OpenSession".to_owned(),
            call: ["waitFor(", ")"].map(str::to_owned),
        }
        .print(out);
    }
}

/// The way to what the table does not have.
fn print_request(out: &mut String) {
    let doc = "Sends a request that has no method here, with the account's key; the answer's `raw` is all that is known of it.";
    Method {
        fun: "suspend fun",
        name: "request".to_owned(),
        doc: vec![doc.to_owned()],
        params: REQUEST.iter().map(Param::from).collect(),
        options: [INTENT, KEY].into_iter().chain(ALWAYS).chain(WATCHING).collect(),
        beside: Vec::new(),
        answer: "RawReply".to_owned(),
        call: ["call(\"request\", ", ", ::rawReply)"].map(str::to_owned),
    }
    .print(out);
}

/// A function of Kotlin that reads an answer.
fn reader_of(record: &Record) -> String {
    format!("{{ data, told -> read{}(data, \"data\", told) }}", record.name)
}

/// The name of a parameter, which may not be that of an option.
pub(super) fn parameter(wire: &str) -> String {
    let (name, own) = (camel(wire), [INTENT, KEY, RETRY_PAID, UNIT_PRICE, CHARGE]);
    if own.into_iter().chain(ALWAYS).chain(WATCHING).chain(WAITING).any(|(option, _, _)| option == name) {
        format!("{name}_")
    } else {
        escaped(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_documented_method() {
        let printed = super::print();
        for endpoint in endpoints() {
            let at = printed.find(&format!("    public suspend fun {}(\n", camel(endpoint.name)));
            let at = at.unwrap_or_else(|| panic!("{} has no method", endpoint.name));
            assert!(printed[..at].ends_with("*/\n"), "{} is not documented", endpoint.name);
            assert!(printed.contains(&format!("call(\"{}\", ", endpoint.name)), "{}", endpoint.name);
        }
    }

    /// What a method takes, as it is printed.
    fn signature<'a>(printed: &'a str, name: &str) -> &'a str {
        let start = printed.find(&format!("fun {}(\n", camel(name))).unwrap_or_else(|| panic!("{name} is not printed"));
        printed[start..].split("    ): ").next().unwrap_or_default()
    }

    #[test]
    fn every_list_that_comes_in_pages_can_be_walked_from_a_position() {
        let printed = super::print();
        for name in ["walk_products", "walk_public_products"] {
            let taken = signature(&printed, name);
            assert!(taken.contains(" position: String?") && taken.contains(" maxPages: Int?") && !taken.contains(" cursor: "), "{taken}");
        }
        assert!(!printed.contains("fun walkTransactions("), "its answer is not shown");
    }

    #[test]
    fn options_are_printed_just_where_they_mean_something() {
        let printed = super::print();
        let takes = |name: &str, option: &str| signature(&printed, name).contains(&format!(" {option}: "));
        for endpoint in endpoints() {
            assert_eq!(takes(endpoint.name, "until"), endpoint.safety == Safety::Safe, "{}", endpoint.name);
            assert_eq!(takes(endpoint.name, "maxUnitPrice"), endpoint.name == "create_session", "{}", endpoint.name);
        }
        assert!(takes("open_session", "maxUnitPrice") && takes("open_session", "expectedChargeUsd"));
        assert!(takes("renew_session", "expectedChargeUsd") && !takes("create_recharge", "expectedChargeUsd"));
        assert!(takes("request", "until") && takes("request", "safety") && !takes("request", "maxUnitPrice"));
    }
}
