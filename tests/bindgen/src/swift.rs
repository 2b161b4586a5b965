//! Prints the types and the operations of the Swift package. What they do is written by hand, in `Sources/Hopline`; here
//! are only names, types and documentation.

use std::fmt::Write;

use hopline::contract::{Field, FieldRule, Record, Shape, Words};

use crate::model::{APIS, Type, camel, client, lines, named_in_camel, types};

const HEADER: &str = "// Printed from the table by hopline-bindgen. Do not edit: change the table.\n\nimport Foundation\n";

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

mod operations;

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
pub fn files() -> Vec<(String, String)> {
    let operations = APIS.into_iter().map(|api| (format!("{}Operations.swift", client(api)), operations::print(api)));
    [("Types.swift".to_owned(), print_types())].into_iter().chain(operations).collect()
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
    put!(out, "public struct {}: RawRepresentable, Codable, Hashable, Sendable, Parameter, Words {{", words.name);
    put!(out, "    /// The word as it is sent and answered.\n    public let rawValue: String\n");
    put!(out, "    /// Any word. One that the contract does not name is refused before it is sent.");
    put!(out, "    public init(rawValue: String) {{\n        self.rawValue = rawValue\n    }}\n");
    for word in words.words {
        doc(out, "    ", lines(word.doc));
        put!(out, "    public static let {} = {}(rawValue: {:?})", name(&lower(word.name)), words.name, word.word);
    }
    let all: Vec<String> = words.words.iter().map(|word| name(&lower(word.name))).collect();
    put!(out, "\n    /// All of these, in the order of the contract.");
    put!(out, "    static let words: [{}] = [{}]", words.name, all.join(", "));
    put!(out, "}}");
}

fn print_record(out: &mut String, record: &'static Record) {
    put!(out, "");
    doc(out, "", lines(record.doc));
    put!(out, "public struct {}: Hashable, Sendable {{", record.name);
    for field in record.fields {
        doc(out, "    ", lines(field.doc));
        put!(out, "    public let {}: {}", name(&camel(field.name)), member_type(field));
    }
    put!(out, "\n    /// One of your own, such as for a preview or a test.");
    let default = |field: &Field| if field.required { "" } else { " = nil" };
    let given = |field: &Field| format!("{}: {}{}", name(&camel(field.name)), member_type(field), default(field));
    put!(out, "    public init({}) {{", record.fields.iter().map(given).collect::<Vec<_>>().join(", "));
    for field in record.fields {
        put!(out, "        self.{} = {}", camel(field.name), name(&camel(field.name)));
    }
    put!(out, "    }}\n}}\n");
    print_reader(out, record);
}

/// How it is read from what the core packed.
fn print_reader(out: &mut String, record: &Record) {
    put!(out, "extension {}: Packable {{\n    static let type = {:?}\n", record.name, record.name);
    put!(out, "    init(_ packed: inout Packed) {{");
    let looks = record.fields.iter().any(|field| !is_there(field));
    put!(out, "        {} = packed.members({})", if looks { "let there" } else { "_" }, record.fields.len());
    for (index, field) in record.fields.iter().enumerate() {
        let (read, otherwise) = (reader(field.shape), if field.required { "Raw(text: \"null\")" } else { "nil" });
        let read = if is_there(field) { read } else { format!("there.has({index}) ? {read} : {otherwise}") };
        put!(out, "        {} = {read}", name(&camel(field.name)));
    }
    put!(out, "    }}\n}}");
}

/// Whether a member is always there. JSON that nobody documents may be null.
fn is_there(field: &Field) -> bool {
    field.required && !matches!(field.shape, Shape::Json)
}

/// What reads a value from what the core packed.
fn reader(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "packed.text()".to_owned(),
        Shape::Secret => "packed.secret()".to_owned(),
        Shape::Bool => "packed.flag()".to_owned(),
        Shape::Integer => "packed.integer()".to_owned(),
        Shape::Time => "packed.time()".to_owned(),
        Shape::Span => "packed.span()".to_owned(),
        Shape::Error => "packed.error()".to_owned(),
        Shape::Decimal => "packed.decimal()".to_owned(),
        Shape::Json => "packed.raw()".to_owned(),
        Shape::Word(_) => "packed.word()".to_owned(),
        Shape::Record(record) => format!("{}(&packed)", record.name),
        Shape::List(item) | Shape::OneOrMany(item) => format!("packed.list {{ packed in {} }}", reader(*item)),
    }
}

fn member_type(field: &Field) -> String {
    format!("{}{}", answer_type(field.shape), if field.required { "" } else { "?" })
}

fn answer_type(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "String".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "Bool".to_owned(),
        Shape::Integer => "Int".to_owned(),
        Shape::Time => "Date".to_owned(),
        Shape::Span => "Duration".to_owned(),
        Shape::Error => "HoplineError".to_owned(),
        Shape::Decimal => "Decimal".to_owned(),
        Shape::Json => "Raw".to_owned(),
        Shape::Word(words) => words.name.to_owned(),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("[{}]", answer_type(*item)),
    }
}

/// What goes into a request. An object of it is the caller's own JSON.
fn request_type(shape: Shape) -> String {
    match shape {
        Shape::Json | Shape::Record(_) => "JSON".to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("[{}]", request_type(*item)),
        plain => answer_type(plain),
    }
}

fn optional(field: &Field) -> String {
    let kind = request_type(field.shape);
    if field.nullable { format!("Patch<{kind}> = .absent") } else { format!("{kind}? = nil") }
}

/// The fields that a caller fills in: what leaves no choice the core sends by itself.
fn chosen(fields: &'static [Field]) -> Vec<&'static Field> {
    fields.iter().filter(|field| !field.rules.iter().any(|rule| matches!(rule, FieldRule::Always(_)))).collect()
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
    named_in_camel(lines(doc).collect::<Vec<_>>().join(" ").trim())
}

fn doc<'a>(out: &mut String, indent: &str, said: impl Iterator<Item = &'a str>) {
    let said: Vec<&str> = said.collect();
    let end = said.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    said[..end].iter().for_each(|line| put!(out, "{}", format!("{indent}/// {}", named_in_camel(line)).trim_end()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_secret_is_never_written() {
        let printed = print_types();
        assert!(printed.contains("public struct Proxy: Hashable, Sendable {") && !printed.contains("JSON"));
        assert!(printed.matches("Codable").count() == types().iter().filter(|found| found.record().is_none()).count());
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
    fn a_member_is_read_in_its_place_of_the_table() {
        let printed = print_types();
        for record in types().into_iter().filter_map(Type::record) {
            let reader = printed.split(&format!("extension {}: Packable {{", record.name)).nth(1).and_then(|rest| rest.split("\n}").next());
            let lines: Vec<&str> = reader.unwrap_or_else(|| panic!("{}", record.name)).lines().collect();
            let read = lines.iter().skip_while(|line| !line.contains("packed.members(")).skip(1);
            for (field, line) in record.fields.iter().zip(read) {
                assert!(line.trim_start().starts_with(&format!("{} = ", name(&camel(field.name)))), "{} {line}", field.name);
                assert_eq!(line.contains("there.has("), !is_there(field), "{} {line}", field.name);
            }
        }
        assert!(printed.contains("    public static let month = OrderUnit(rawValue: \"month\")\n"));
    }

    #[test]
    fn documentation_uses_the_names_of_swift() {
        let printed = [print_types()].into_iter().chain(APIS.map(operations::print)).collect::<String>();
        // What is no name in Swift: members that only the service has, paths and words.
        let named: Vec<&str> = printed
            .lines()
            .filter(|line| line.trim_start().starts_with("///"))
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .filter(|name| name.contains('_') && !name.contains([' ', '/']))
            .collect();
        assert_eq!(named, [""; 0]);
    }

    #[test]
    fn words_of_the_language_are_names_in_backticks() {
        assert_eq!([name("default"), name("type"), name(&lower("OnDemand"))], ["`default`", "type", "onDemand"]);
        let printed = APIS.map(operations::print).concat();
        assert!(printed.contains("        protocol: Protocol? = nil,") || printed.contains("        `protocol`: Protocol? = nil,"));
    }
}
