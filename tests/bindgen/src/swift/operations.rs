//! The methods of the client and of a session: one for each operation, and those that wait or walk.

use std::fmt::Write;

use hopline::contract::{Api, Endpoint, Field, Shape};

use super::{HEADER, answer_type, chosen, doc, name, one_line, optional, request_type};
use crate::model::{CallOption, Kind, Use, WALK, Walk, about, camel, client, operation, operations, options_of, request_fields, use_of};

/// The text of the file of an API.
pub(super) fn print(api: Api) -> String {
    let mut out = HEADER.to_owned();
    put!(out, "\nextension {} {{", client(api));
    operations(api).for_each(|endpoint| Method::of(endpoint).print(&mut out));
    print_waiting(&mut out, api);
    put!(out, "}}");
    put!(out, "\nextension {}Client {{", client(api));
    operations(api).filter_map(Walk::of).for_each(|walk| Method::walk(walk).print(&mut out));
    put!(out, "}}");
    let verbs = [("refresh", "get_session"), ("rotate", "rotate_session"), ("renew", "renew_session"), ("terminate", "terminate_session")];
    let verbs: Vec<_> = verbs.into_iter().filter_map(|(verb, name)| Some((verb, operation(api, name)?))).collect();
    if !verbs.is_empty() {
        put!(out, "\nextension OpenSession {{");
        for (verb, found) in verbs {
            Method { name: verb.to_owned(), id: Some("session_id"), ..Method::of(found) }.print(&mut out);
        }
        put!(out, "}}");
    }
    out
}

/// An argument that is no parameter of the operation.
pub(super) struct Given {
    /// In camel case.
    pub(super) name: String,
    /// Its type, with its default.
    pub(super) kind: &'static str,
    pub(super) doc: &'static str,
    /// The name in the core, if it is an option of the core.
    pub(super) told: Option<&'static str>,
}

/// The options that `CallOptions` has: how to send a request. The others are arguments.
pub(super) const SENDING: [&str; 6] = ["idempotency_key", "attempts", "window_ms", "timeout_ms", "retry_paid", "headers"];

const BUNDLE: &str = "How to send it; omitted options are the client's.";

impl From<&CallOption> for Given {
    fn from(option: &CallOption) -> Self {
        let kind = match option.kind {
            Kind::Text => "String? = nil",
            Kind::Secret => "Secret? = nil",
            Kind::Flag => "Bool = false",
            Kind::FlagOn => "Bool = true",
            Kind::Count => "Int? = nil",
            Kind::Time => "Duration? = nil",
            Kind::Decimal => "Decimal? = nil",
            Kind::Headers => "[String: Secret] = [:]",
            Kind::Until => "Until? = nil",
            Kind::Texts => "[String] = []",
            Kind::Product => "Cheapest? = nil",
            Kind::UseWith => "UseWith? = nil",
            Kind::IfEnded => "IfEnded? = nil",
        };
        Given { name: camel(option.plain()), kind, doc: option.doc, told: Some(option.name) }
    }
}

/// A method to print.
struct Method {
    /// In snake case.
    name: String,
    /// The lines before the parameters.
    doc: Vec<String>,
    fields: Vec<&'static Field>,
    /// How it is called, with `params` and `told`.
    call: String,
    /// A field that is a member here and no parameter.
    id: Option<&'static str>,
    /// The use, which decides the options; `options` comes after those that are arguments.
    takes: Use,
    /// True if the method takes the arguments of a walk.
    walks: bool,
    answer: String,
    /// True if the work is done when the method returns, so that it is not awaited.
    at_once: bool,
}

impl Method {
    fn of(endpoint: &'static Endpoint) -> Method {
        Method {
            name: endpoint.name.to_owned(),
            doc: about(endpoint),
            fields: chosen(request_fields(endpoint)),
            call: format!("call({:?}, params, told)", endpoint.name),
            id: None,
            takes: use_of(endpoint),
            walks: false,
            answer: format!(
                "Reply<{}>",
                if let Shape::Json = endpoint.response { "Undocumented".to_owned() } else { answer_type(endpoint.response) }
            ),
            at_once: false,
        }
    }

    /// The walk of a list that comes in pages. Nothing is awaited until it is iterated.
    fn walk(walk: Walk) -> Method {
        let (read, items) = (walk.endpoint.name, camel(walk.items.name));
        let doc = [
            format!("Walks all pages of `{}`, which are fetched lazily.", camel(read)),
            String::new(),
            format!("Iterating it gives the `{items}` of all pages; iterating its `pages` gives whole pages."),
        ];
        Method {
            name: walk.name(),
            doc: doc.to_vec(),
            fields: walk.fields().collect(),
            call: format!("walk({read:?}, params, told, position, maxPages) {{ $0.{} }}", name(&items)),
            takes: Use::Call,
            walks: true,
            answer: format!("Walk<{}, {}>", walk.page.name, answer_type(walk.item)),
            at_once: true,
            ..Method::of(walk.endpoint)
        }
    }

    /// Its arguments beside its parameters.
    fn given(&self) -> Vec<Given> {
        let options = options_of(self.takes).filter(|option| !SENDING.contains(&option.name)).map(Given::from);
        let walk = WALK.iter().filter(|_| self.walks).map(|own| Given { told: None, ..Given::from(own) });
        let bundle = Given { name: "options".to_owned(), kind: "CallOptions = CallOptions()", doc: BUNDLE, told: None };
        options.chain(walk).chain([bundle]).collect()
    }

    fn print(&self, out: &mut String) {
        let (must, may): (Vec<&Field>, Vec<&Field>) =
            self.fields.iter().filter(|field| self.id != Some(field.name)).partition(|field| field.required);
        let given = self.given();
        put!(out, "");
        doc(out, "    ", self.doc.iter().map(String::as_str));
        put!(out, "    ///\n    /// - Parameters:");
        for field in must.iter().chain(&may) {
            put!(out, "    ///   - {}: {}", camel(field.name), one_line(field.doc));
        }
        given.iter().for_each(|Given { name, doc, .. }| put!(out, "    ///   - {name}: {doc}"));
        if !self.at_once {
            put!(out, "    @discardableResult");
        }
        put!(out, "    public func {}(", name(&camel(&self.name)));
        must.iter().for_each(|field| put!(out, "        {}: {},", name(&camel(field.name)), request_type(field.shape)));
        may.iter().for_each(|field| put!(out, "        {}: {},", name(&camel(field.name)), optional(field)));
        let arguments: Vec<String> = given.iter().map(|Given { name, kind, .. }| format!("        {name}: {kind}")).collect();
        put!(out, "{}", arguments.join(",\n"));
        let (waits, awaits) = if self.at_once { ("", "") } else { ("async ", "await ") };
        put!(out, "    ) {waits}throws(HoplineError) -> {} {{", self.answer);
        let none = must.is_empty() && may.is_empty() && self.id.is_none();
        put!(out, "        {} params = Parameters()", if none { "let" } else { "var" });
        if let Some(id) = self.id {
            put!(out, "        params.add({id:?}, {})", camel(id));
        }
        must.iter().chain(&may).for_each(|field| put!(out, "        params.add({:?}, {})", field.name, name(&camel(field.name))));
        let told: Vec<(&str, &str)> = given.iter().filter_map(|given| Some((given.told?, given.name.as_str()))).collect();
        put!(out, "        {} told = options.told", if told.is_empty() { "let" } else { "var" });
        told.iter().for_each(|(told, name)| put!(out, "        told.add({told:?}, {name})"));
        match self.at_once || self.id.is_some() {
            true => put!(out, "        return try {awaits}{}", self.call),
            // A fake has the same methods, and another answer.
            false => put!(
                out,
                "        return try await answer(Call({:?}, params) {{ [params, told] client throws(HoplineError) in\n            try await client.{}\n        }})",
                self.name,
                self.call
            ),
        }
        put!(out, "    }}");
    }
}

/// The methods that wait, which are no entries of the table: for a session or for an order that is bought, and for one that
/// is known.
fn print_waiting(out: &mut String, api: Api) {
    let method = |name: &str, doc: &[&str], fields: Vec<&'static Field>, takes: Use, answer: &str| Method {
        name: name.to_owned(),
        doc: doc.iter().map(|line| (*line).to_owned()).collect(),
        fields,
        call: format!("wait({name:?}, params, told)"),
        id: None,
        takes,
        walks: false,
        answer: answer.to_owned(),
        at_once: false,
    };
    let handle = |endpoint: &'static Endpoint, id: &str| endpoint.request.field(id).into_iter().collect();
    if let Some(create) = operation(api, "create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come.";
        method("open_session", &[doc], chosen(request_fields(create)), Use::Open, "OpenSession").print(out);
    }
    if let Some(read) = operation(api, "get_session") {
        let doc = "Waits for a session by its id, as `openSession` does after its purchase.";
        method("wait_session", &[doc], handle(read, "session_id"), Use::Wait, "OpenSession").print(out);
    }
    if let Some(create) = operation(api, "create_static_order") {
        let doc = [
            "Places a static order and waits until its proxies can be used, it is over, or the deadline has come.",
            "",
            "The order is placed once: if it may have been placed, it stays in doubt, and `reconcile` shows candidates for its result.",
        ];
        method("place_order", &doc, chosen(request_fields(create)), Use::Place, "OrderReply").print(out);
    }
    if let Some(cancel) = operation(api, "cancel_static_order") {
        let doc = "Waits for a static order by its number, as `placeOrder` does after placing it.";
        method("wait_order", &[doc], handle(cancel, "order_no"), Use::Watch, "OrderReply").print(out);
    }
}

#[cfg(test)]
mod tests {
    use hopline::contract::{FieldRule, endpoints};

    use super::*;
    use crate::model::{APIS, lines, named_in_camel};

    fn printed() -> String {
        APIS.map(super::print).concat()
    }

    #[test]
    fn every_operation_is_a_documented_method() {
        let printed = printed();
        for endpoint in endpoints() {
            let method = format!("    public func {}(\n", name(&camel(endpoint.name)));
            assert_eq!(printed.matches(&method).count(), 1, "{}", endpoint.name);
            assert!(lines(endpoint.doc).all(|line| printed.contains(&named_in_camel(line))), "{} has another text", endpoint.name);
        }
        for method in ["openSession", "waitSession", "refresh", "rotate", "renew", "terminate", "placeOrder", "waitOrder"] {
            assert_eq!(printed.matches(&format!("    public func {method}(\n")).count(), 1, "{method}");
        }
    }

    #[test]
    fn every_list_that_comes_in_pages_can_be_walked_from_a_position() {
        let printed = printed();
        let walks: Vec<String> = endpoints().filter_map(Walk::of).map(|walk| camel(&walk.name())).collect();
        assert!(walks.len() >= 6);
        for list in walks {
            let signature = printed.split(&format!("    public func {list}(\n")).nth(1).and_then(|rest| rest.split('{').next());
            let signature = signature.unwrap_or_else(|| panic!("{list}"));
            assert!(signature.contains(" position: String?") && signature.contains(" maxPages: Int?"), "{list}");
            assert!(!signature.contains(" cursor:") && !signature.contains(" page:"), "{list}");
        }
        assert!(!printed.contains("walkTransactions("), "its answer is not documented");
    }

    #[test]
    fn options_are_printed_just_where_they_mean_something() {
        let printed = printed();
        let of = |method: &str| printed.split(&format!("    public func {method}(\n")).nth(1).and_then(|rest| rest.split('{').next());
        let has = |method: &str, option: &str| of(method).unwrap_or_else(|| panic!("{method}")).contains(&format!(" {option}: "));
        for (option, methods) in [
            ("maxUnitPrice", &["createSession", "openSession"][..]),
            ("expectedChargeUsd", &["createSession", "openSession", "renewSession", "renew"]),
            ("intent", &["createSession", "rotate", "updateBudget", "placeOrder", "createUser"]),
            ("deadline", &["getBalance", "openSession", "placeOrder", "waitOrder"]),
            ("until", &["getBalance", "listProducts", "getSession"]),
        ] {
            methods.iter().for_each(|method| assert!(has(method, option), "{method} {option}"));
        }
        for (method, option) in [
            ("getBalance", "intent"),
            ("rotateSession", "maxUnitPrice"),
            ("createSession", "until"),
            ("renew", "maxUnitPrice"),
            ("waitOrder", "intent"),
        ] {
            assert!(!has(method, option), "{method} {option}");
        }
    }

    #[test]
    fn what_leaves_no_choice_is_no_parameter_and_the_rest_goes_out_under_its_name_of_the_wire() {
        let printed = printed();
        for endpoint in endpoints() {
            let method = printed.split(&format!("    public func {}(\n", name(&camel(endpoint.name)))).nth(1);
            let method = method.and_then(|rest| rest.split("\n    }\n").next()).unwrap_or_else(|| panic!("{}", endpoint.name));
            for field in endpoint.request.fields {
                let sent = format!("params.add({:?}, {})\n", field.name, name(&camel(field.name)));
                let always = field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)));
                assert_eq!(method.contains(&sent), !always, "{} {sent}", endpoint.name);
            }
        }
    }

    #[test]
    fn what_a_request_leaves_out_takes_away_or_sets_are_three_things() {
        let nullable = endpoints().flat_map(|endpoint| endpoint.request.fields).filter(|field| field.nullable).count();
        assert_eq!(printed().matches("> = .absent,").count(), nullable);
    }
}
