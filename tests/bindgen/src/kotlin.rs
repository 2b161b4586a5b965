//! Prints the types and the operations of the Kotlin package: names, types and documentation. Their code is written by hand, in
//! `bindings-uniffi/kotlin`.

use std::fmt::Write;

use hopline::client::PagesEnd;
use hopline::contract::pools::LeaseAdvice;
use hopline::contract::{Field, Method, REPLIES, Record, Safety, Shape, Shaped, Words, endpoints};

use crate::model::{APIS, Kind, Type, camel, client, level_of, lines, named_in_camel, told_types, types};

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
mod options;

/// Types for the package itself, and their names there: the package shows them to its users in a way of its own.
const OWN: [(&str, &str); 7] = [
    ("ErrorFields", "ErrorFields"),
    ("KnownPools", "KnownPools"),
    ("OpenedPool", "OpenedPool"),
    ("PoolLease", "PoolLease"),
    ("SavedPage", "SavedPage"),
    ("Verdict", "VerdictFields"),
    ("VerdictName", "VerdictName"),
];

/// Events of the package's own, since it is the package that sends: their words, and the members that go with them.
const EXCHANGES: [(&str, &str); 2] = [("sent", "A request was sent."), ("answered", "A request was answered, or failed.")];
const EXCHANGE: [(&str, &str, &str); 5] = [
    ("method", "String", "Of `SENT` and `ANSWERED`: the HTTP method."),
    ("path", "String", "Of `SENT` and `ANSWERED`: the path of the URL."),
    ("httpStatus", "Int", "Of `ANSWERED`: the HTTP status; null if there was no response."),
    ("failure", "String", "Of `ANSWERED`: the reason why there was no response, in a word such as `timeout`."),
    ("duration", "Duration", "Of `ANSWERED`: the duration of the request."),
];

/// Lists of Hopline's own that are in nothing that is told: those of a request of the caller's own, of a walk, and of what was seen through a lease.
const LISTS: [Shape; 4] = [Method::SHAPE, Safety::SHAPE, PagesEnd::SHAPE, LeaseAdvice::SHAPE];

/// The type that the package passes back to the core as it came.
const UNREAD: &str = "AnswerFacts";

/// The files of the package that are printed: their names and their text.
pub fn files() -> Vec<(String, String)> {
    let operations = APIS.into_iter().map(|api| (format!("{}Operations.kt", client(api)), operations::print(api)));
    let other = [("Types.kt", print_types()), ("Options.kt", options::print())].map(|(name, text)| (name.to_owned(), text));
    other.into_iter().chain(operations).collect()
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
    put!(out, "import java.math.BigDecimal\nimport java.time.Instant\nimport kotlin.time.Duration");
    let shapes = endpoints().map(|endpoint| endpoint.response).chain(REPLIES);
    let answers: Vec<&str> = shapes.filter_map(record_of).map(|record| record.name).collect();
    for known in types() {
        match known {
            Type::Words(words) => print_words(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, if answers.contains(&record.name) { Role::Answer } else { Role::Part }),
        }
    }
    for told in told_types().into_iter().filter(|told| told.name() != UNREAD) {
        match told {
            Type::Words(words) => print_closed(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, Role::Told),
        }
    }
    for shape in LISTS {
        if let Shape::Word(words) = shape {
            print_closed(&mut out, words);
        }
    }
    out
}

/// The role of a record.
#[derive(Clone, Copy, PartialEq)]
enum Role {
    /// The answer of an operation.
    Answer,
    /// A part of an answer.
    Part,
    /// A record beside answers: a member that is true or false is left out if it is false.
    Told,
}

/// The name of a type, and who sees it.
fn seen(name: &'static str) -> (&'static str, &'static str) {
    OWN.into_iter().find(|(told, _)| *told == name).map_or(("public", name), |(_, own)| ("internal", own))
}

/// The name of a word of a closed list.
fn entry(word: &str) -> String {
    word.to_uppercase()
}

/// A list that is closed, so that `when` can tell all of it.
fn print_closed(out: &mut String, words: &Words) {
    put!(out, "");
    print_doc(out, "", &said(words.doc));
    let (visibility, name) = seen(words.name);
    let is_events = words.name == "EventName";
    let level = if is_events { ", /** The audience of the event. */ public val level: Level" } else { "" };
    put!(out, "{visibility} enum class {name}(override val word: String{level}) : Word {{");
    let own = EXCHANGES.into_iter().filter(|_| is_events);
    let all: Vec<(&str, &str)> = words.words.iter().map(|word| (word.word, word.doc)).chain(own).collect();
    for (index, (word, doc)) in all.iter().enumerate() {
        print_doc(out, "    ", &said(doc));
        let end = if index + 1 == all.len() { "\n}" } else { ",\n" };
        let level = if is_events { format!(", Level.{}", entry(level_of(word).as_str())) } else { String::new() };
        put!(out, "    {}({}{level}){end}", entry(word), quoted(word));
    }
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

fn print_record(out: &mut String, record: &Record, role: Role) {
    put!(out, "");
    print_doc(out, "", &said(record.doc));
    let (visibility, name) = seen(record.name);
    put!(out, "{visibility} data class {name}(");
    for field in record.fields {
        let (optional, default) = match otherwise(field, role) {
            _ if field.required => ("", "".to_owned()),
            "null" => ("?", " = null".to_owned()),
            other => ("", format!(" = {other}")),
        };
        print_doc(out, "    ", &if role == Role::Told { of_told(record, field) } else { said(field.doc) });
        // A number of the core's own, which means nothing to anybody else.
        let visibility = if field.name == "command" { "internal " } else { "" };
        put!(out, "    {visibility}val {}: {}{optional}{default},", member_of(field, role), type_of(field, role));
    }
    for (name, kind, doc) in EXCHANGE.into_iter().filter(|_| record.name == "Event") {
        print_doc(out, "    ", &[doc.to_owned()]);
        put!(out, "    val {name}: {kind}? = null,");
    }
    if role == Role::Answer {
        put!(out, "    override val raw: Raw = Raw.NONE,");
        put!(out, "    override val requestId: String? = null,");
        put!(out, "    override val phase: Phase? = null,");
    }
    let is = match role {
        Role::Answer => " : Reply",
        // Java writes an exception with what it holds.
        Role::Told if record.name == "ErrorFields" => " : java.io.Serializable",
        _ => "",
    };
    put!(out, "){is}\n");
    print_reader(out, record, role);
}

/// How it is read from what the core packed.
fn print_reader(out: &mut String, record: &Record, role: Role) {
    let parameter = if role == Role::Answer { "told: Told = Told.NOTHING" } else { "" };
    let (_, name) = seen(record.name);
    put!(out, "internal fun Packed.read{name}({parameter}): {name} {{");
    let looks = record.fields.iter().any(|field| !is_there(field));
    put!(out, "    {}members({})", if looks { "val of = " } else { "" }, record.fields.len());
    put!(out, "    return {name}(");
    for (index, field) in record.fields.iter().enumerate() {
        let (read, otherwise) = (reader_of(field, role), otherwise(field, role));
        let read = match otherwise {
            _ if is_there(field) => read,
            "false" => format!("of.has({index}) && {read}"),
            _ => format!("if (of.has({index})) {read} else {otherwise}"),
        };
        put!(out, "        {} = {read},", member_of(field, role));
    }
    if role == Role::Answer {
        put!(out, "        raw = told.raw,\n        requestId = told.requestId,\n        phase = told.phase,");
    }
    put!(out, "    )\n}}");
}

/// The type of a member. Whole numbers that are told are counts and statuses.
fn type_of(field: &Field, role: Role) -> String {
    if is_count(field, role) { "Int".to_owned() } else { answer_type(field.shape) }
}

fn reader_of(field: &Field, role: Role) -> String {
    let read = reader(field.shape);
    if is_count(field, role) { format!("{read}.toInt()") } else { read }
}

/// A number that grows with every lease is no count.
fn is_count(field: &Field, role: Role) -> bool {
    role == Role::Told && field.shape == Shape::Integer && field.name != "lease"
}

/// The value of a missing member.
fn otherwise(field: &Field, role: Role) -> &'static str {
    match field.shape {
        Shape::Bool if role == Role::Told => "false",
        _ if field.required => "Raw.NONE",
        _ => "null",
    }
}

/// Returns true if a member is always there. Undocumented JSON may be null.
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

/// The name of a member of a record. A duration has a type, which knows its unit.
fn member_of(field: &Field, role: Role) -> String {
    let name = if field.shape == Shape::Span { field.name.trim_end_matches("_ms") } else { field.name };
    member(name, role == Role::Answer)
}

/// The documentation of a member of a record beside answers: words in their own spelling, and times, which have a type, without a unit.
fn of_told(record: &Record, field: &Field) -> Vec<String> {
    let words = |shape| match shape {
        Shape::Word(words) if words.closed => words.words,
        _ => &[],
    };
    let known: Vec<&str> = record.fields.iter().flat_map(|field| words(field.shape)).map(|word| word.word).collect();
    let line = |line: String| {
        let parts = line.split('`').map(|part| if known.contains(&part) { entry(part) } else { part.to_owned() });
        parts.collect::<Vec<_>>().join("`").replace(", Unix milliseconds", "")
    };
    said(field.doc).into_iter().map(line).collect()
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
        Shape::Word(words) => seen(words.name).1.to_owned(),
        Shape::Record(record) => seen(record.name).1.to_owned(),
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
        Kind::Secret => "Secret",
        Kind::Flag | Kind::FlagOn => "Boolean",
        Kind::Count => "Int",
        Kind::Time => "Duration",
        Kind::Decimal => "BigDecimal",
        Kind::Headers => "Map<String, Secret>",
        Kind::Until => "Until",
        Kind::Texts => "List<String>",
        Kind::Product => "Cheapest",
        Kind::UseWith => "UseWith",
        Kind::IfEnded => "IfEnded",
    }
}

/// The reader of a packed value.
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
        Shape::Word(words) if words.closed => format!("entry({}.entries)", seen(words.name).1),
        Shape::Word(words) => format!("{}(word({}.words))", words.name, words.name),
        Shape::Record(record) => format!("read{}()", seen(record.name).1),
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

/// A line of a description, whose links to names of Rust are links to those of the package: `[Effect.DONE]`.
fn linked(line: &str) -> String {
    let mut parts = line.split("[`");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for (link, rest) in parts.filter_map(|part| part.split_once("`]")) {
        let (of, name) = link.split_once("::").map_or((link, None), |(of, name)| (of, Some(name)));
        let word = |told: Type| match told {
            Type::Words(words) if words.name == of => words.words.iter().find(|word| Some(word.name) == name),
            _ => None,
        };
        let known = told_types().into_iter().find_map(word).map(|word| entry(word.word));
        let name = known.or(name.map(camel)).map_or_else(String::new, |name| format!(".{name}"));
        out.push_str(&format!("[{}{name}]{rest}", if of == "Error" { "HoplineException" } else { of }));
    }
    out
}

fn print_doc(out: &mut String, indent: &str, said: &[String]) {
    // Neither may a comment end before its end, nor another begin in it.
    let safe = |line: &String| linked(&named_in_camel(line)).replace("*/", "*&#47;").replace("/*", "&#47;*");
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
    use crate::model::{AGENT, RESELLER, assert_documents};

    #[test]
    fn every_type_is_printed_with_its_members() {
        let printed = print_types();
        for known in types().into_iter().chain(told_types()).filter(|known| known.name() != UNREAD) {
            let (visibility, name) = seen(known.name());
            match known {
                Type::Record(record) => {
                    let at = printed.find(&format!("{visibility} data class {name}(")).expect(record.name);
                    let members = &printed[at..at + printed[at..].find("\n)").expect("ends")];
                    record.fields.iter().for_each(|field| {
                        assert!(members.contains(&format!("val {}", member_of(field, Role::Part))), "{}", field.name);
                    });
                }
                Type::Words(words) if words.closed => {
                    let at = printed.find(&format!("{visibility} enum class {name}(")).expect(words.name);
                    let entries = &printed[at..at + printed[at..].find("\n}").expect("ends")];
                    words
                        .words
                        .iter()
                        .for_each(|word| assert!(entries.contains(&format!(" {}(\"{}\"", entry(word.word), word.word)), "{name}"));
                }
                Type::Words(_) => assert!(printed.contains(&format!("public value class {name}(")), "{name}"),
            }
        }
    }

    #[test]
    fn no_text_of_the_table_can_end_a_comment_and_no_name_is_a_keyword() {
        let mut out = String::new();
        print_doc(&mut out, "", &["ends */ and begins /* here".to_owned()]);
        assert_eq!(out, "/** ends *&#47; and begins &#47;* here */\n");
        assert_eq!(
            (member("object", false), member("raw", true), method::parameter("timeout")),
            ("`object`".into(), "raw_".into(), "timeout_".into())
        );
        assert_eq!(
            linked("as [`Error::is_refused_by_us`] tells, unless it is [`Effect::Done`]"),
            "as [HoplineException.isRefusedByUs] tells, unless it is [Effect.DONE]"
        );
        assert_eq!(quoted("a \"$\" b"), "\"a \\\"\\$\\\" b\"");
    }

    #[test]
    fn constructors_say_of_their_options_what_the_table_says() {
        assert_documents("bindings-uniffi/kotlin/src/main/kotlin/hopline/AgentClient.kt", &AGENT);
        assert_documents("bindings-uniffi/kotlin/src/main/kotlin/hopline/ResellerClient.kt", &RESELLER);
    }
}
