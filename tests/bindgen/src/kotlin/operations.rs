//! The methods of the client: one for each operation, and those that wait, walk or go beyond the table.

use std::fmt::Write;

use hopline::contract::{Api, Endpoint, Record};

use super::method::{Given, Method, Param, params};
use super::{HEADER, answer_type, member, quoted, record_of};
use crate::model::{Use, WALK, Walk, about, camel, client, operation, operations, request_fields, use_of};

/// The parameters of `request`, by their names in the core.
const REQUEST: [Given; 5] = [
    ("method", "Method", "", "The HTTP method."),
    ("path", "String", "", "The path below the base URL, percent-encoded, such as `/billing/invoices`."),
    ("query", "Map<String, String>?", " = null", "The parameters of the query; they are percent-encoded here."),
    (
        "body",
        "JsonElement?",
        " = null",
        "The JSON body. A record keeps the body of a write that may be sent again: put no secret in it unless it is `AT_MOST_ONCE`.",
    ),
    ("safety", "Safety?", " = null", "The repeats that are allowed after a failure. Default: `SAFE` for a GET, else `AT_MOST_ONCE`."),
];

/// The text of the file of an API: its interface, and the part of the client that implements it.
pub(super) fn print(api: Api) -> String {
    let (mut out, name) = (HEADER.to_owned(), client(api));
    put!(out, "import java.math.BigDecimal");
    put!(out, "import kotlin.time.Duration");
    put!(out, "import kotlinx.serialization.json.JsonElement\n");
    put!(out, "/** One method for each operation of the API, and those that wait, walk a list, or send a request of your own. */");
    put!(out, "public interface {name}Operations : Operations {{");
    methods(api).iter().for_each(|method| method.declare(&mut out));
    put!(out, "}}\n");
    put!(out, "/** The operations as the client carries them out. */");
    put!(out, "public abstract class {name}Calls internal constructor() : HoplineClient<{}>(), {name} {{", waited(api));
    methods(api).iter().for_each(|method| method.print(&mut out));
    put!(out, "}}");
    out
}

/// All methods of an API.
fn methods(api: Api) -> Vec<Method> {
    let of_table = operations(api).flat_map(|endpoint| [Some(method_of(endpoint)), Walk::of(endpoint).map(walk_of)]).flatten();
    of_table.chain(waiting_of(api)).chain([reconcile(), request()]).collect()
}

fn method_of(endpoint: &Endpoint) -> Method {
    let (answer, read) = match record_of(endpoint.response) {
        Some(record) => (record.name, format!(", {})", reader_of(record))),
        None => ("RawReply", ", rawReply)".to_owned()),
    };
    Method {
        fun: "suspend fun",
        name: camel(endpoint.name),
        doc: about(endpoint),
        params: params(request_fields(endpoint)),
        takes: use_of(endpoint),
        beside: Vec::new(),
        answer: answer.to_owned(),
        call: [format!("call({}, ", quoted(endpoint.name)), read],
    }
}

/// The walk of a list that comes in pages.
fn walk_of(walk: Walk) -> Method {
    let (items, read) = (member(walk.items.name, true), walk.endpoint.name);
    let doc = [
        format!("Walks all pages of `{}`, which are fetched lazily.", camel(read)),
        String::new(),
        format!("Collect its `items()` for the `{items}` of all pages, or its `pages()` for whole pages."),
    ];
    Method {
        fun: "fun",
        name: camel(&walk.name()),
        doc: doc.to_vec(),
        params: params(walk.fields()),
        takes: Use::Call,
        beside: WALK.iter().map(Param::from).collect(),
        answer: format!("Pages<{}, {}>", answer_type(walk.item), walk.page.name),
        call: [format!("walk({}, ", quoted(read)), format!(", {}) {{ it.{items} }}", reader_of(walk.page))],
    }
}

/// The result of the methods of an API that wait.
fn waited(api: Api) -> &'static str {
    match api {
        Api::Agent => "OpenSession",
        Api::Reseller => "OrderReply",
    }
}

/// A method that waits, which is no entry of the table.
struct Waiting {
    /// Its name in the core.
    name: &'static str,
    /// The operation of the table whose answers it reads.
    of: &'static str,
    params: fn(&Endpoint) -> Vec<Param>,
    takes: Use,
    doc: &'static str,
}

const WAITING: [Waiting; 4] = [
    Waiting {
        name: "open_session",
        of: "create_session",
        params: |buy| params(request_fields(buy)),
        takes: Use::Open,
        doc: "Buys a session and waits until it is usable, over, or the deadline has come. The call can charge money.",
    },
    Waiting {
        name: "wait_session",
        of: "get_session",
        params: |read| params(read.request.field("session_id")),
        takes: Use::Wait,
        doc: "Waits for a session by its id, as [openSession] does after its purchase.",
    },
    Waiting {
        name: "place_order",
        of: "create_static_order",
        params: |place| params(place.request.fields),
        takes: Use::Place,
        doc: "Orders static proxies and waits until they can be used, the order has ended, or the deadline has come. It can charge money. It is \
              placed once: where its effect is unknown, [reconcile] shows what may have become of it.",
    },
    Waiting {
        name: "wait_order",
        of: "list_static_orders",
        params: |_| vec![Param::from(&("order_no", "String", "", "Its number."))],
        takes: Use::Watch,
        doc: "Waits for a static order by its number, as [placeOrder] does after placing it.",
    },
];

/// The two methods of an API that wait.
fn waiting_of(api: Api) -> impl Iterator<Item = Method> {
    WAITING.iter().filter_map(move |waiting| {
        let endpoint = operation(api, waiting.of)?;
        Some(Method {
            fun: "suspend fun",
            name: camel(waiting.name),
            doc: vec![waiting.doc.to_owned()],
            params: (waiting.params)(endpoint),
            takes: waiting.takes,
            beside: Vec::new(),
            answer: waited(api).to_owned(),
            call: [format!("wait({}, {}, ", quoted(waiting.name), quoted(waiting.of)), ")".to_owned()],
        })
    })
}

/// The method that looks up what became of a doubt.
fn reconcile() -> Method {
    let doc = "Looks up what may have become of an operation in doubt, in what the service shows. It sends nothing but reads and decides \
               nothing: [settle] closes the doubt once you know.";
    Method {
        fun: "suspend fun",
        name: "reconcile".to_owned(),
        doc: vec![doc.to_owned()],
        params: vec![Param::from(&("record", "String", "", "The record of the operation in doubt."))],
        takes: Use::Call,
        beside: Vec::new(),
        answer: "Reconciliation".to_owned(),
        call: ["lookUp(record, ", ")"].map(str::to_owned),
    }
}

/// The way to what the table does not have.
fn request() -> Method {
    let doc = "Sends a request that has no method here, in the account's name; the whole answer is in `raw`.";
    Method {
        fun: "suspend fun",
        name: "request".to_owned(),
        doc: vec![doc.to_owned()],
        params: REQUEST.iter().map(Param::from).collect(),
        takes: Use::Request,
        beside: Vec::new(),
        answer: "RawReply".to_owned(),
        call: ["call(\"request\", ", ", rawReply)"].map(str::to_owned),
    }
}

/// The reader of an answer.
fn reader_of(record: &Record) -> String {
    format!("Reader({}, Packed::read{})", quoted(record.name), record.name)
}

#[cfg(test)]
mod tests {
    use hopline::contract::{Safety, endpoints};

    use super::*;
    use crate::model::APIS;

    fn printed() -> String {
        APIS.map(super::print).concat()
    }

    #[test]
    fn every_operation_is_a_documented_method() {
        let printed = printed();
        for endpoint in endpoints() {
            let at = printed.find(&format!("    public suspend fun {}(\n", camel(endpoint.name)));
            let at = at.unwrap_or_else(|| panic!("{} has no method", endpoint.name));
            assert!(printed[..at].ends_with("*/\n"), "{} is not documented", endpoint.name);
            assert!(printed.contains(&format!("call(\"{}\", ", endpoint.name)), "{}", endpoint.name);
        }
    }

    /// The parameters of a method, as they are printed.
    fn signature<'a>(printed: &'a str, name: &str) -> &'a str {
        let start = printed.find(&format!("fun {}(\n", camel(name))).unwrap_or_else(|| panic!("{name} is not printed"));
        printed[start..].split("    ): ").next().unwrap_or_default()
    }

    #[test]
    fn every_list_that_comes_in_pages_can_be_walked_from_a_position() {
        let printed = printed();
        for name in
            ["walk_products", "walk_public_products", "walk_sub_users", "walk_dynamic_orders", "walk_static_orders", "walk_consumption"]
        {
            let taken = signature(&printed, name);
            assert!(
                taken.contains(" position: String?")
                    && taken.contains(" maxPages: Int?")
                    && !taken.contains(" cursor: ")
                    && !taken.contains(" page: "),
                "{taken}"
            );
        }
        assert!(!printed.contains("fun walkTransactions("), "its answer is not documented");
    }

    #[test]
    fn an_order_is_placed_and_waited_for_and_a_doubt_is_looked_up_in_both_clients() {
        let printed = printed();
        let (place, wait) = (signature(&printed, "place_order"), signature(&printed, "wait_order"));
        assert!(place.contains(" poolId: String,") && place.contains(" unit: OrderUnit,") && !place.contains("orderType"), "{place}");
        assert!(place.contains(" intent: ") && !wait.contains(" intent: ") && wait.contains(" orderNo: String,"), "{wait}");
        assert!([place, wait].iter().all(|taken| taken.contains(" deadline: ") && taken.contains(" ends: ")));
        assert_eq!(printed.matches("public suspend fun reconcile(\n        record: String,\n").count(), APIS.len());
    }

    #[test]
    fn options_are_printed_just_where_they_mean_something() {
        let printed = printed();
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
