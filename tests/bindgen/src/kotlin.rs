//! Prints the types and the operations of the Kotlin package. What they do is written by hand, in `bindings-uniffi/kotlin`;
//! here are only names, types and documentation.

use std::fmt::Write;

use hopline::contract::{Field, REPLIES, Record, Shape, Words, endpoints};

use crate::model::{APIS, Kind, Type, camel, client, lines, named_in_camel, types};

const HEADER: &str = "// Printed from the table by hopline-bindgen. Do not edit: change the table.\n\npackage hopline\n\n";

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

mod method;
mod operations;

/// The files of the package that are printed: their names and their text.
pub fn files() -> Vec<(String, String)> {
    let operations = APIS.into_iter().map(|api| (format!("{}Operations.kt", client(api)), operations::print(api)));
    [("Types.kt".to_owned(), print_types())].into_iter().chain(operations).collect()
}

/// The words that are no names in Kotlin.
const KEYWORDS: [&str; 28] = [
    "as",
    "break",
    "class",
    "continue",
    "do",
    "else",
    "false",
    "for",
    "fun",
    "if",
    "in",
    "interface",
    "is",
    "null",
    "object",
    "package",
    "return",
    "super",
    "this",
    "throw",
    "true",
    "try",
    "typealias",
    "typeof",
    "val",
    "var",
    "when",
    "while",
];

fn print_types() -> String {
    let mut out = HEADER.to_owned();
    put!(out, "import java.math.BigDecimal");
    let shapes = endpoints().map(|endpoint| endpoint.response).chain(REPLIES);
    let answers: Vec<&str> = shapes.filter_map(record_of).map(|record| record.name).collect();
    for known in types() {
        match known {
            Type::Words(words) => print_words(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, answers.contains(&record.name)),
        }
    }
    out
}

fn print_words(out: &mut String, words: &Words) {
    put!(out, "");
    print_doc(out, "", &said(words.doc));
    put!(out, "@JvmInline");
    let name = words.name;
    put!(out, "public value class {name}(override val word: String) : Word {{");
    put!(out, "    override fun toString(): String = word\n");
    put!(out, "    public companion object {{");
    for word in words.words {
        print_doc(out, "        ", &said(word.doc));
        put!(out, "        public val {}: {name} = {name}({})\n", word.name, quoted(word.word));
    }
    let all: Vec<&str> = words.words.iter().map(|word| word.name).collect();
    put!(out, "        /** The words that the contract names. */");
    put!(out, "        public val entries: List<{name}> = listOf({})\n", all.join(", "));
    put!(out, "        internal val words: Array<String> = Array(entries.size) {{ entries[it].word }}");
    put!(out, "    }}\n}}");
}

fn print_record(out: &mut String, record: &Record, is_answer: bool) {
    put!(out, "");
    print_doc(out, "", &said(record.doc));
    put!(out, "public data class {}(", record.name);
    for field in record.fields {
        let (optional, default) = if field.required { ("", "") } else { ("?", " = null") };
        print_doc(out, "    ", &said(field.doc));
        put!(out, "    val {}: {}{optional}{default},", member(field.name, is_answer), answer_type(field.shape));
    }
    if is_answer {
        put!(out, "    override val raw: Raw = Raw.NONE,");
        put!(out, "    override val requestId: String? = null,");
        put!(out, "    override val phase: Phase? = null,");
    }
    put!(out, "){}\n", if is_answer { " : Reply" } else { "" });
    print_reader(out, record, is_answer);
}

/// How it is read from what the core packed.
fn print_reader(out: &mut String, record: &Record, is_answer: bool) {
    let parameter = if is_answer { "told: Told = Told.NOTHING" } else { "" };
    put!(out, "internal fun Packed.read{}({parameter}): {} {{", record.name, record.name);
    let looks = record.fields.iter().any(|field| !is_there(field));
    put!(out, "    {}members({})", if looks { "val of = " } else { "" }, record.fields.len());
    put!(out, "    return {}(", record.name);
    for (index, field) in record.fields.iter().enumerate() {
        let (read, otherwise) = (reader(field.shape), if field.required { "Raw.NONE" } else { "null" });
        let read = if is_there(field) { read } else { format!("if (of.has({index})) {read} else {otherwise}") };
        put!(out, "        {} = {read},", member(field.name, is_answer));
    }
    if is_answer {
        put!(out, "        raw = told.raw,\n        requestId = told.requestId,\n        phase = told.phase,");
    }
    put!(out, "    )\n}}");
}

/// Whether a member is always there. JSON that nobody documents may be null.
fn is_there(field: &Field) -> bool {
    field.required && !matches!(field.shape, Shape::Json)
}

fn record_of(shape: Shape) -> Option<&'static Record> {
    match shape {
        Shape::Record(record) => Some(record),
        _ => None,
    }
}

/// The name of a member of a type. Those that an answer has of itself are its own.
fn member(wire: &str, is_answer: bool) -> String {
    let name = camel(wire);
    if is_answer && ["raw", "requestId", "phase"].contains(&name.as_str()) { format!("{name}_") } else { escaped(name) }
}

fn escaped(name: String) -> String {
    if KEYWORDS.contains(&name.as_str()) { format!("`{name}`") } else { name }
}

fn answer_type(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "String".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "Boolean".to_owned(),
        Shape::Integer => "Long".to_owned(),
        Shape::Time => "Instant".to_owned(),
        Shape::Span => "Duration".to_owned(),
        Shape::Error => "HoplineException".to_owned(),
        Shape::Decimal => "BigDecimal".to_owned(),
        Shape::Json => "Raw".to_owned(),
        Shape::Word(words) => words.name.to_owned(),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("List<{}>", answer_type(*item)),
    }
}

fn request_type(shape: Shape) -> String {
    match shape {
        Shape::Json | Shape::Record(_) => "JsonElement".to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("List<{}>", request_type(*item)),
        plain => answer_type(plain),
    }
}

/// The type of an option.
fn option_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "String",
        Kind::Flag => "Boolean",
        Kind::Count => "Int",
        Kind::Time => "Duration",
        Kind::Decimal => "BigDecimal",
        Kind::Headers => "Map<String, Secret>",
        Kind::Until => "Until",
        Kind::Texts => "List<String>",
    }
}

/// What reads a value from what the core packed.
fn reader(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "text()".to_owned(),
        Shape::Secret => "Secret(text())".to_owned(),
        Shape::Bool => "flag()".to_owned(),
        Shape::Integer => "integer()".to_owned(),
        Shape::Time => "time()".to_owned(),
        Shape::Span => "span()".to_owned(),
        Shape::Error => "exception()".to_owned(),
        Shape::Decimal => "decimal()".to_owned(),
        Shape::Json => "Raw(text())".to_owned(),
        Shape::Word(words) => format!("{}(word({}.words))", words.name, words.name),
        Shape::Record(record) => format!("read{}()", record.name),
        Shape::List(item) | Shape::OneOrMany(item) => format!("list {{ {} }}", reader(*item)),
    }
}

fn said(doc: &str) -> Vec<String> {
    lines(doc).map(str::to_owned).collect()
}

/// A text of Kotlin.
fn quoted(text: &str) -> String {
    format!("{text:?}").replace('$', "\\$")
}

fn print_doc(out: &mut String, indent: &str, said: &[String]) {
    // Neither may a comment end before its end, nor another begin in it.
    let safe = |line: &String| named_in_camel(line).replace("*/", "*&#47;").replace("/*", "&#47;*");
    let end = said.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    match &said[..end] {
        [] => {}
        [line] => put!(out, "{indent}/** {} */", safe(line)),
        several => {
            put!(out, "{indent}/**");
            several.iter().for_each(|line| put!(out, "{}", format!("{indent} * {}", safe(line)).trim_end()));
            put!(out, "{indent} */");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_is_printed_with_its_members() {
        let printed = print_types();
        for known in types() {
            match known {
                Type::Record(record) => {
                    let at = printed.find(&format!("public data class {}(", record.name)).expect(record.name);
                    let members = &printed[at..at + printed[at..].find("\n)").expect("ends")];
                    record
                        .fields
                        .iter()
                        .for_each(|field| assert!(members.contains(&format!("val {}", camel(field.name))), "{}", field.name));
                }
                Type::Words(words) => assert!(printed.contains(&format!("public value class {}(", words.name)), "{}", words.name),
            }
        }
    }

    #[test]
    fn no_text_of_the_table_can_end_a_comment_and_no_name_is_a_keyword() {
        let mut out = String::new();
        print_doc(&mut out, "", &["ends */ and begins /* here".to_owned()]);
        assert_eq!(out, "/** ends *&#47; and begins &#47;* here */\n");
        assert_eq!(
            (member("object", false), member("raw", true), operations::parameter("timeout")),
            ("`object`".into(), "raw_".into(), "timeout_".into())
        );
        assert_eq!(quoted("a \"$\" b"), "\"a \\\"\\$\\\" b\"");
    }
}
