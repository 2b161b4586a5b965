//! The methods of the client and of a session: one for each operation, and those that wait or walk.

use std::fmt::Write;

use hopline::contract::{Endpoint, Field, Safety, Shape, endpoint, endpoints};

use super::{HEADER, answer_type, doc, name, one_line, optional, request_type};
use crate::model::{about, camel};

/// The text of `Operations.swift`.
pub(super) fn print() -> String {
    let mut out = HEADER.to_owned();
    put!(out, "\nextension AgentClient {{");
    for endpoint in endpoints() {
        Method::of(endpoint).print(&mut out);
        if let Some(walk) = Method::walk(endpoint) {
            walk.print(&mut out);
        }
    }
    print_waiting(&mut out);
    put!(out, "}}\n\nextension OpenSession {{");
    for changed in ["rotate_session", "renew_session", "terminate_session"] {
        if let Some(found) = endpoint(changed) {
            let name = changed.trim_end_matches("_session").to_owned();
            Method { name, path: "client.", id: Some("session_id"), ..Method::of(found) }.print(&mut out);
        }
    }
    put!(out, "}}");
    out
}

/// An argument that is no parameter of the operation.
#[derive(Clone, Copy)]
struct Given {
    /// In camel case.
    name: &'static str,
    /// Its type, with its default.
    kind: &'static str,
    doc: &'static str,
    /// What the core calls it, where it is an option of the core.
    told: Option<&'static str>,
}

const fn given(told: &'static str, name: &'static str, kind: &'static str, doc: &'static str) -> Given {
    Given { name, kind, doc, told: Some(told) }
}

const fn own(name: &'static str, kind: &'static str, doc: &'static str) -> Given {
    Given { name, kind, doc, told: None }
}

const INTENT: Given = given(
    "intent",
    "intent",
    "String? = nil",
    "Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.",
);
const UNIT_PRICE: Given = given(
    "max_unit_price",
    "maxUnitPrice",
    "Decimal? = nil",
    "The highest price of one unit that is paid, in USD; the account's own list is read first.",
);
const CHARGE: Given = given(
    "expected_charge_usd",
    "expectedChargeUsd",
    "Decimal? = nil",
    "What it is to cost, in USD, where the client has a `dailyCapUsd` and can't know it from the price.",
);
const WATCHING: [Given; 2] = [
    given("until", "until", "Until? = nil", "What the read is repeated for; the answer's `phase` says whether it holds."),
    given("deadline_ms", "deadline", "Duration? = nil", "How long `until` is waited for; 5 minutes where it is left out."),
];
const WAITING: [Given; 4] = [
    given("credentials", "credentials", "Bool = false", "Whether the username and password are wanted once the session is active."),
    given("auto_rotate", "autoRotate", "Bool = false", "Whether `observe` rotates the session, a dynamic one, where it would advise to."),
    given(
        "deadline_ms",
        "deadline",
        "Duration? = nil",
        "How long to wait before a session comes back that is not usable yet; 5 minutes where it is left out.",
    ),
    given("ends", "ends", "[String] = []", "Further statuses that end it."),
];
const WALK: [Given; 2] = [
    own("position", "String? = nil", "The `position` of an earlier walk of this list, to go on from there."),
    own("maxPages", "Int? = nil", "How many pages are read at most, those before `position` included; 1000 where it is left out."),
];
const OPTIONS: Given = own("options", "CallOptions = CallOptions()", "How to send it; whatever is left out is as the client has it.");

/// A method to print.
struct Method {
    /// In snake case.
    name: String,
    /// The lines before the parameters.
    doc: Vec<String>,
    fields: Vec<&'static Field>,
    /// What stands before the function that is called.
    path: &'static str,
    /// How it is called, with `params` and `told`.
    call: String,
    /// A field that is a member here and no parameter.
    id: Option<&'static str>,
    /// Further arguments; `options` comes after them.
    given: Vec<Given>,
    answer: String,
    /// Whether it is done by the time that it returns, and need not be waited for.
    at_once: bool,
}

impl Method {
    fn of(endpoint: &'static Endpoint) -> Method {
        let reads = endpoint.safety == Safety::Safe;
        let own = [
            (!reads, INTENT),
            (endpoint.name == "create_session", UNIT_PRICE),
            (["create_session", "renew_session"].contains(&endpoint.name), CHARGE),
        ];
        let own = own.into_iter().filter_map(|(has, given)| has.then_some(given));
        Method {
            name: endpoint.name.to_owned(),
            doc: about(endpoint),
            fields: endpoint.request.fields.iter().collect(),
            path: "",
            call: format!("call({:?}, params, told)", endpoint.name),
            id: None,
            given: own.chain(WATCHING.into_iter().filter(|_| reads)).collect(),
            answer: format!(
                "Reply<{}>",
                if let Shape::Json = endpoint.response { "Unshown".to_owned() } else { answer_type(endpoint.response) }
            ),
            at_once: false,
        }
    }

    /// The walk of a list that comes in pages.
    fn walk(endpoint: &'static Endpoint) -> Option<Method> {
        let Shape::Record(list) = endpoint.response else { return None };
        list.field("next_cursor")?;
        let (items, item) = list.fields.iter().find_map(|field| match field.shape {
            Shape::List(item) => Some((field.name, answer_type(*item))),
            _ => None,
        })?;
        let doc = [
            format!("Walks all pages of `{}`, each read when it is come to.", camel(endpoint.name)),
            String::new(),
            format!("To iterate gives the `{}` of all pages, to iterate its `pages` whole pages.", camel(items)),
        ];
        Some(Method {
            name: endpoint.name.replacen("list_", "walk_", 1),
            doc: doc.to_vec(),
            fields: endpoint.request.fields.iter().filter(|field| field.name != "cursor").collect(),
            call: format!("walk({:?}, params, told, position, maxPages) {{ $0.{} }}", endpoint.name, name(&camel(items))),
            given: WALK.to_vec(),
            answer: format!("Walk<{}, {item}>", list.name),
            at_once: true,
            ..Method::of(endpoint)
        })
    }

    fn print(&self, out: &mut String) {
        let (must, may): (Vec<&Field>, Vec<&Field>) =
            self.fields.iter().filter(|field| self.id != Some(field.name)).partition(|field| field.required);
        let given = || self.given.iter().chain([&OPTIONS]);
        put!(out, "");
        doc(out, "    ", self.doc.iter().map(String::as_str));
        put!(out, "    ///\n    /// - Parameters:");
        for field in must.iter().chain(&may) {
            put!(out, "    ///   - {}: {}", camel(field.name), one_line(field.doc));
        }
        given().for_each(|Given { name, doc, .. }| put!(out, "    ///   - {name}: {doc}"));
        if !self.at_once {
            put!(out, "    @discardableResult");
        }
        put!(out, "    public func {}(", name(&camel(&self.name)));
        must.iter().for_each(|field| put!(out, "        {}: {},", name(&camel(field.name)), request_type(field.shape)));
        may.iter().for_each(|field| put!(out, "        {}: {},", name(&camel(field.name)), optional(field)));
        let arguments: Vec<String> = given().map(|Given { name, kind, .. }| format!("        {name}: {kind}")).collect();
        put!(out, "{}", arguments.join(",\n"));
        let (waits, awaits) = if self.at_once { ("", "") } else { ("async ", "await ") };
        put!(out, "    ) {waits}throws(HoplineError) -> {} {{", self.answer);
        let none = must.is_empty() && may.is_empty() && self.id.is_none();
        put!(out, "        {} params = Parameters()", if none { "let" } else { "var" });
        if let Some(id) = self.id {
            put!(out, "        params.add({id:?}, {})", camel(id));
        }
        must.iter().chain(&may).for_each(|field| put!(out, "        params.add({:?}, {})", field.name, name(&camel(field.name))));
        let told: Vec<(&str, &str)> = given().filter_map(|given| Some((given.told?, given.name))).collect();
        put!(out, "        {} told = options.told", if told.is_empty() { "let" } else { "var" });
        told.iter().for_each(|(told, name)| put!(out, "        told.add({told:?}, {name})"));
        put!(out, "        return try {awaits}{}{}", self.path, self.call);
        put!(out, "    }}");
    }
}

/// The two methods that wait, which are no entries of the table: `open_session` and `wait_session`.
fn print_waiting(out: &mut String) {
    let method = |name: &str, doc: &str, fields: Vec<&'static Field>, own: &[Given]| Method {
        name: name.to_owned(),
        doc: vec![doc.to_owned()],
        fields,
        path: "",
        call: format!("wait({name:?}, params, told)"),
        id: None,
        given: own.iter().copied().chain(WAITING).collect(),
        answer: "OpenSession".to_owned(),
        at_once: false,
    };
    if let Some(create) = endpoint("create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come.";
        method("open_session", doc, create.request.fields.iter().collect(), &[INTENT, UNIT_PRICE, CHARGE]).print(out);
    }
    if let Some(read) = endpoint("get_session") {
        let doc = "Waits for a session that is known by its id, as `openSession` does after its purchase.";
        let id = read.request.fields.iter().filter(|field| field.name == "session_id").collect();
        method("wait_session", doc, id, &[]).print(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::lines;

    #[test]
    fn every_operation_is_a_documented_method() {
        let printed = super::print();
        for endpoint in endpoints() {
            let method = format!("    public func {}(\n", name(&camel(endpoint.name)));
            assert_eq!(printed.matches(&method).count(), 1, "{}", endpoint.name);
            assert!(lines(endpoint.doc).all(|line| printed.contains(line)), "{} has another text", endpoint.name);
        }
        for method in ["openSession", "waitSession", "rotate", "renew", "terminate"] {
            assert_eq!(printed.matches(&format!("    public func {method}(\n")).count(), 1, "{method}");
        }
    }

    #[test]
    fn every_list_that_comes_in_pages_can_be_walked_from_a_position() {
        let printed = super::print();
        for list in ["walkProducts", "walkPublicProducts"] {
            let signature = printed.split(&format!("    public func {list}(\n")).nth(1).and_then(|rest| rest.split('{').next());
            let signature = signature.unwrap_or_else(|| panic!("{list}"));
            assert!(signature.contains(" position: String?") && signature.contains(" maxPages: Int?") && !signature.contains("cursor"));
        }
        assert!(!printed.contains("walkTransactions("), "its answer is not shown");
    }

    #[test]
    fn options_are_printed_just_where_they_mean_something() {
        let printed = super::print();
        let of = |method: &str| printed.split(&format!("    public func {method}(\n")).nth(1).and_then(|rest| rest.split('{').next());
        let has = |method: &str, option: &str| of(method).unwrap_or_else(|| panic!("{method}")).contains(&format!(" {option}: "));
        for (option, methods) in [
            ("maxUnitPrice", &["createSession", "openSession"][..]),
            ("expectedChargeUsd", &["createSession", "openSession", "renewSession", "renew"]),
            ("intent", &["createSession", "rotate", "updateBudget"]),
            ("until", &["getBalance", "listProducts", "getSession"]),
        ] {
            methods.iter().for_each(|method| assert!(has(method, option), "{method} {option}"));
        }
        for (method, option) in
            [("getBalance", "intent"), ("rotateSession", "maxUnitPrice"), ("createSession", "until"), ("renew", "maxUnitPrice")]
        {
            assert!(!has(method, option), "{method} {option}");
        }
    }

    #[test]
    fn what_a_request_leaves_out_takes_away_or_sets_are_three_things() {
        let nullable = endpoints().flat_map(|endpoint| endpoint.request.fields).filter(|field| field.nullable).count();
        assert_eq!(super::print().matches("> = .absent,").count(), nullable);
    }
}
