//! The options of a client and of a call, as types of the caller's.

use std::fmt::Write;

use hopline::contract::{Field, Shape};

use super::operations::{Given, SENDING};
use super::{doc, lines, request_type};
use crate::model::{CLIENT, CallOption, OPTIONS, RETRY, camel, pool_fields, pool_requests};

/// An option that a caller gives as a function, since a token may have to be renewed.
const HEADERS: Given = Given {
    name: String::new(),
    kind: "(@Sendable () async throws -> [String: Secret])? = nil",
    doc: "Headers for every request of the client, such as the access token of your own backend; by default none. The function is called before each request, so it may renew a token, and its time counts as the request's. If it throws, the request is not sent.",
    told: None,
};

/// An option that only a test gives.
const CLOCK: Given = Given {
    name: String::new(),
    kind: "any _Concurrency.Clock<Duration> = ContinuousClock()",
    doc: "The clock by which the client waits, and requests are late. By default the system's, which goes on while the device sleeps; a test may give one that it moves.",
    told: None,
};

pub(super) fn print(out: &mut String) {
    let client = || CLIENT.iter().map(given);
    let retry = || RETRY.iter().map(given);
    let headers = Given { name: "headers".to_owned(), ..HEADERS };
    let clock = Given { name: "clock".to_owned(), ..CLOCK };
    let all: Vec<Given> = client().chain(retry()).chain([headers, clock]).collect();
    declare(out, "ClientOptions", "The options of repeats, waits and reads. Omitted options keep their defaults.", &all);
    put!(out, "\n    /// The options in the core's form. Those of one API are added by its client.");
    put!(out, "    func told(_ baseURL: String) -> Parameters {{\n        var retry = Parameters()");
    retry().for_each(|given| add(out, "retry", &given));
    put!(out, "        var told = Parameters()\n        told.add(\"base_url\", baseURL)");
    client().for_each(|given| add(out, "told", &given));
    put!(out, "        told.add(\"retry\", retry.json)\n        return told\n    }}\n}}");

    let call: Vec<Given> = OPTIONS.iter().filter(|option| SENDING.contains(&option.name)).map(given).collect();
    declare(out, "CallOptions", "The options of one call. Omitted options are the client's.", &call);
    put!(out, "\n    /// The options in the core's form.\n    var told: Parameters {{\n        var told = Parameters()");
    call.iter().for_each(|given| add(out, "told", given));
    put!(out, "        return told\n    }}\n}}");
    pool_requests().filter(|record| record.name == "OpenPool").for_each(|record| print_pool(out, record.doc, pool_fields(record)));
}

/// Prints the options of a pool, beside its name.
fn print_pool(out: &mut String, about: &str, fields: &[Field]) {
    let (mut declared, mut given, mut set, mut told) = (String::new(), Vec::new(), String::new(), String::new());
    for field in fields.iter().filter(|field| field.name != "name") {
        let (name, kind) = match field.name.strip_suffix("_ms") {
            Some(span) if matches!(field.shape, Shape::Integer) => (camel(span), "Duration".to_owned()),
            _ => (camel(field.name), request_type(field.shape)),
        };
        let (mark, default) = if field.required { ("", "") } else { ("?", " = nil") };
        doc(&mut declared, "    ", lines(field.doc));
        let member = super::name(&name);
        put!(declared, "    public var {member}: {kind}{mark}");
        given.push((!field.required, format!("{member}: {kind}{mark}{default}")));
        put!(set, "        self.{name} = {member}");
        put!(told, "        told.add({:?}, {member})", field.name);
    }
    // Required members come first.
    given.sort_by_key(|(may, _)| *may);
    let given: Vec<String> = given.into_iter().map(|(_, parameter)| parameter).collect();
    put!(out, "");
    doc(out, "", lines(about));
    put!(out, "public struct PoolOptions: Sendable {{\n{declared}\n    /// Omitted options keep their defaults.");
    put!(out, "    public init({}) {{\n{set}    }}\n", given.join(", "));
    put!(
        out,
        "    /// The options in the core's form.\n    var told: Parameters {{\n        var told = Parameters()\n{told}        return told\n    }}\n}}"
    );
}

fn given(option: &CallOption) -> Given {
    let plain = Given::from(option);
    let name = if option.name == "allow_http" { "allowHTTP".to_owned() } else { plain.name };
    // A flag that is left out has its default, too.
    Given { name, kind: if plain.kind == "Bool = false" { "Bool? = nil" } else { plain.kind }, ..plain }
}

/// The type with its members and its initialiser.
fn declare(out: &mut String, name: &str, about: &str, options: &[Given]) {
    put!(out, "\n/// {about}\npublic struct {name}: Sendable {{");
    for given in options {
        doc(out, "    ", [given.doc].into_iter());
        put!(out, "    public var {}: {}", given.name, given.kind.split(" =").next().unwrap_or_default());
    }
    let parameters: Vec<String> = options.iter().map(|given| format!("{}: {}", given.name, given.kind)).collect();
    put!(out, "\n    /// {}\n    public init({}) {{", about.split(". ").last().unwrap_or_default(), parameters.join(", "));
    options.iter().for_each(|given| put!(out, "        self.{0} = {0}", given.name));
    put!(out, "    }}");
}

fn add(out: &mut String, to: &str, given: &Given) {
    let empty = if given.kind.starts_with('[') { format!("{}.isEmpty ? nil : ", given.name) } else { String::new() };
    put!(out, "        {to}.add({:?}, {empty}{})", given.told.unwrap_or_default(), given.name);
}
