//! Prints the types and the operations of the Swift package. What they do is written by hand, in `Sources/Hopline`; here
//! are only names, types and documentation.

use std::fmt::Write;

use hopline::contract::{Endpoint, Field, Record, Safety, Shape, Words, endpoint, endpoints};

use crate::model::{Type, about, camel, lines, types};

const HEADER: &str = "// Printed from the table by hopline-bindgen. Do not edit: change the table.\n\nimport Foundation\n";

/// Words of the language that can't be names of members or parameters as they are.
const RESERVED: &[&str] = &[
    "as",
    "associatedtype",
    "break",
    "case",
    "catch",
    "class",
    "continue",
    "default",
    "defer",
    "deinit",
    "do",
    "else",
    "enum",
    "extension",
    "fallthrough",
    "false",
    "fileprivate",
    "for",
    "func",
    "guard",
    "if",
    "import",
    "in",
    "init",
    "inout",
    "internal",
    "is",
    "let",
    "nil",
    "operator",
    "precedencegroup",
    "private",
    "protocol",
    "public",
    "repeat",
    "rethrows",
    "return",
    "self",
    "static",
    "struct",
    "subscript",
    "super",
    "switch",
    "throw",
    "throws",
    "true",
    "try",
    "typealias",
    "var",
    "where",
    "while",
];

/// The files to write, each with its name and its text.
pub fn files() -> Vec<(&'static str, String)> {
    vec![("Types.swift", print_types()), ("Operations.swift", print_operations())]
}

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

fn print_types() -> String {
    let mut out = HEADER.to_owned();
    for found in types() {
        match found {
            Type::Words(words) => print_words(&mut out, words),
            Type::Record(record) => print_record(&mut out, record),
        }
    }
    out
}

/// An open list: a service may say what the contract does not name.
fn print_words(out: &mut String, words: &Words) {
    put!(out, "");
    doc(out, "", lines(words.doc));
    put!(out, "public struct {}: RawRepresentable, Codable, Hashable, Sendable, Parameter {{", words.name);
    put!(out, "    /// The word as it is sent and answered.\n    public let rawValue: String\n");
    put!(out, "    /// Any word. One that the contract does not name is refused before it is sent.");
    put!(out, "    public init(rawValue: String) {{\n        self.rawValue = rawValue\n    }}\n");
    for word in words.words {
        doc(out, "    ", lines(word.doc));
        put!(out, "    public static let {} = {}(rawValue: {:?})", name(&lower(word.name)), words.name, word.word);
    }
    put!(out, "}}");
}

fn print_record(out: &mut String, record: &Record) {
    put!(out, "");
    doc(out, "", lines(record.doc));
    put!(out, "public struct {}: Decodable, Hashable, Sendable {{", record.name);
    for field in record.fields {
        doc(out, "    ", lines(field.doc));
        put!(out, "    public let {}: {}{}", name(&camel(field.name)), answer_type(field.shape), if field.required { "" } else { "?" });
    }
    put!(out, "\n    enum CodingKeys: String, CodingKey {{");
    for field in record.fields {
        put!(out, "        case {} = {:?}", name(&camel(field.name)), field.name);
    }
    put!(out, "    }}\n}}");
}

fn print_operations() -> String {
    let mut out = HEADER.to_owned();
    put!(out, "\nextension AgentClient {{");
    for endpoint in endpoints() {
        Method { path: "", id: None, ..Method::of(endpoint) }.print(&mut out);
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

/// A method to print.
struct Method {
    /// In snake case.
    name: String,
    /// The lines before the parameters.
    doc: Vec<String>,
    fields: Vec<&'static Field>,
    /// What stands before the function that is called.
    path: &'static str,
    /// The function that is called, with the name of the operation.
    call: String,
    /// A field that is a member here and no parameter.
    id: Option<&'static str>,
    /// Further parameters, each with its type, its default and what it does.
    options: Vec<[&'static str; 4]>,
    answer: String,
}

const INTENT: [&str; 4] =
    ["intent", "String?", "nil", "Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it."];
const WAITING: [[&str; 4]; 3] = [
    ["credentials", "Bool", "false", "Whether the username and password are wanted once the session is active."],
    [
        "deadline",
        "Duration?",
        "nil",
        "How long to wait before a session comes back that is not usable yet; 5 minutes where it is left out.",
    ],
    ["ends", "[String]", "[]", "Further statuses that end it."],
];
const OPTIONS: [&str; 4] = ["options", "CallOptions", "CallOptions()", "How to send it; whatever is left out is as the client has it."];

impl Method {
    fn of(endpoint: &'static Endpoint) -> Method {
        let writes = (endpoint.safety != Safety::Safe).then_some(INTENT);
        Method {
            name: endpoint.name.to_owned(),
            doc: about(endpoint),
            fields: endpoint.request.fields.iter().collect(),
            path: "",
            call: format!("call({:?}", endpoint.name),
            id: None,
            options: writes.into_iter().chain([OPTIONS]).collect(),
            answer: format!(
                "Reply<{}>",
                if let Shape::Json = endpoint.response { "Unshown".to_owned() } else { answer_type(endpoint.response) }
            ),
        }
    }

    fn print(&self, out: &mut String) {
        let (must, may): (Vec<&Field>, Vec<&Field>) =
            self.fields.iter().filter(|field| self.id != Some(field.name)).partition(|field| field.required);
        put!(out, "");
        doc(out, "    ", self.doc.iter().map(String::as_str));
        put!(out, "    ///\n    /// - Parameters:");
        for field in must.iter().chain(&may) {
            put!(out, "    ///   - {}: {}", camel(field.name), one_line(field.doc));
        }
        self.options.iter().for_each(|[name, _, _, about]| put!(out, "    ///   - {name}: {about}"));
        put!(out, "    @discardableResult\n    public func {}(", name(&camel(&self.name)));
        must.iter().for_each(|field| put!(out, "        {}: {},", name(&camel(field.name)), request_type(field.shape)));
        may.iter().for_each(|field| put!(out, "        {}: {},", name(&camel(field.name)), optional(field)));
        let options: Vec<String> =
            self.options.iter().map(|[name, kind, default, _]| format!("        {name}: {kind} = {default}")).collect();
        put!(out, "{}", options.join(",\n"));
        put!(out, "    ) async throws(HoplineError) -> {} {{", self.answer);
        let none = must.is_empty() && may.is_empty() && self.id.is_none();
        put!(out, "        {} params = Parameters()", if none { "let" } else { "var" });
        if let Some(id) = self.id {
            put!(out, "        params.add({id:?}, {})", camel(id));
        }
        must.iter().chain(&may).for_each(|field| put!(out, "        params.add({:?}, {})", field.name, name(&camel(field.name))));
        let passed: Vec<String> = self.options.iter().map(|[name, ..]| format!("{name}: {name}")).collect();
        put!(out, "        return try await {}{}, params, {})", self.path, self.call, passed.join(", "));
        put!(out, "    }}");
    }
}

/// The two methods that wait, which are no entries of the table: `open_session` and `wait_session`.
fn print_waiting(out: &mut String) {
    let method = |name: &str, doc: &str, fields: Vec<&'static Field>, options: Vec<[&'static str; 4]>| Method {
        name: name.to_owned(),
        doc: vec![doc.to_owned()],
        fields,
        path: "",
        call: "wait(".to_owned() + &format!("{name:?}"),
        id: None,
        options,
        answer: "OpenSession".to_owned(),
    };
    let options = |intent: Option<[&'static str; 4]>| intent.into_iter().chain(WAITING).chain([OPTIONS]).collect::<Vec<_>>();
    if let Some(create) = endpoint("create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come.";
        method("open_session", doc, create.request.fields.iter().collect(), options(Some(INTENT))).print(out);
    }
    if let Some(read) = endpoint("get_session") {
        let doc = "Waits for a session that is known by its id, as `openSession` does after its purchase.";
        let id = read.request.fields.iter().filter(|field| field.name == "session_id").collect();
        method("wait_session", doc, id, options(None)).print(out);
    }
}

fn answer_type(shape: Shape) -> String {
    match shape {
        Shape::Text => "String".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "Bool".to_owned(),
        Shape::Integer => "Int".to_owned(),
        Shape::Decimal => "Decimal".to_owned(),
        Shape::Json => "JSON".to_owned(),
        Shape::Word(words) => words.name.to_owned(),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) => format!("[{}]", answer_type(*item)),
    }
}

/// An object of a request is free JSON: no operation has one, but a list of the table may.
fn request_type(shape: Shape) -> String {
    match shape {
        Shape::Record(_) => "JSON".to_owned(),
        Shape::List(item) => format!("[{}]", request_type(*item)),
        plain => answer_type(plain),
    }
}

fn optional(field: &Field) -> String {
    let kind = request_type(field.shape);
    if field.nullable { format!("Patch<{kind}> = .absent") } else { format!("{kind}? = nil") }
}

/// A name, in backticks where the language has it for itself.
fn name(known: &str) -> String {
    if RESERVED.contains(&known) { format!("`{known}`") } else { known.to_owned() }
}

/// `OnDemand` as `onDemand`, `Http403` as `http403`.
fn lower(upper: &str) -> String {
    let mut letters = upper.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

fn one_line(doc: &str) -> String {
    lines(doc).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn doc<'a>(out: &mut String, indent: &str, said: impl Iterator<Item = &'a str>) {
    let said: Vec<&str> = said.collect();
    let end = said.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    said[..end].iter().for_each(|line| put!(out, "{}", format!("{indent}/// {line}").trim_end()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_documented_method() {
        let printed = print_operations();
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
    fn every_type_is_printed_once_and_every_member_is_documented() {
        let printed = print_types();
        for found in types() {
            assert_eq!(printed.matches(&format!("public struct {}: ", found.name())).count(), 1, "{}", found.name());
        }
        let lines: Vec<&str> = printed.lines().map(str::trim).collect();
        let bare = lines.windows(2).find(|pair| pair[1].starts_with("public ") && !pair[0].starts_with("///"));
        assert_eq!(bare, None, "is not documented");
    }

    #[test]
    fn words_of_the_language_are_names_in_backticks() {
        assert_eq!([name("default"), name("type"), name(&lower("OnDemand"))], ["`default`", "type", "onDemand"]);
        assert!(
            print_operations().contains("        protocol: Protocol? = nil,")
                || print_operations().contains("        `protocol`: Protocol? = nil,")
        );
    }

    #[test]
    fn what_a_request_leaves_out_takes_away_or_sets_are_three_things() {
        let nullable = endpoints().flat_map(|endpoint| endpoint.request.fields).filter(|field| field.nullable).count();
        assert_eq!(print_operations().matches("> = .absent,").count(), nullable);
    }
}
