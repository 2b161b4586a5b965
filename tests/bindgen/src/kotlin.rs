//! Prints the types and the operations of the Kotlin package. What they do is written by hand, in `bindings-uniffi/kotlin`;
//! here are only names, types and documentation.

use std::fmt::Write;

use hopline::contract::{Endpoint, Field, Record, Safety, Shape, Words, endpoint, endpoints};

use crate::model::{Type, about, camel, lines, types};

const HEADER: &str = "// Printed from the table by hopline-bindgen. Do not edit: change the table.\n\npackage hopline\n\n";

/// The files of the package that are printed: their names and their text.
pub fn files() -> Vec<(&'static str, String)> {
    vec![("Types.kt", print_types()), ("Operations.kt", print_operations())]
}

/// One option of a call: its name, its type, what it does.
type Option3 = (&'static str, &'static str, &'static str);

const INTENT: Option3 =
    ("intent", "String", "your own name for this write, such as `job-17`: starting it again joins, resumes or returns it");
const KEY: Option3 = ("idempotencyKey", "String", "a key of your own; it counts as sent before and is never replaced");
const RETRY_PAID: Option3 =
    ("retryPaid", "Boolean", "whether to buy again with a new key when the service failed; it may have sold all the same");
/// Of the purchase of a session.
const PRICE: [Option3; 2] = [
    ("maxUnitPrice", "BigDecimal", "the highest price, in USD for one unit, that is paid"),
    ("expectedChargeUsd", "BigDecimal", "under a daily cap: what it is to cost, where the client can't know it from the price"),
];
const ALWAYS: [Option3; 4] = [
    ("attempts", "Int", "how often it is sent at most, the first time included"),
    ("window", "Duration", "from the first send, the time within which another may be made"),
    ("timeout", "Duration", "how long one attempt may take"),
    ("headers", "Map<String, Secret>", "further headers of the request; they are not kept in records"),
];
const WAITING: [Option3; 3] = [
    ("credentials", "Boolean", "whether the username and password are wanted once the session is active"),
    ("deadline", "Duration", "after which waiting ends with a handle; 5 minutes where it is left out"),
    ("ends", "List<String>", "further statuses that end it"),
];

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

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

fn print_types() -> String {
    let mut out = HEADER.to_owned();
    put!(out, "import java.math.BigDecimal");
    put!(out, "import kotlinx.serialization.json.JsonElement");
    let answers: Vec<&str> = endpoints().filter_map(|endpoint| record_of(endpoint.response)).map(|record| record.name).collect();
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
    put!(out, "public value class {}(override val word: String) : Word {{", words.name);
    put!(out, "    override fun toString(): String = word\n");
    put!(out, "    public companion object {{");
    for word in words.words {
        print_doc(out, "        ", &said(word.doc));
        put!(out, "        public val {}: {} = {}({})\n", word.name, words.name, words.name, quoted(word.word));
    }
    let all: Vec<&str> = words.words.iter().map(|word| word.name).collect();
    put!(out, "        /** The words that the contract names. */");
    put!(out, "        public val entries: List<{}> = listOf({})", words.name, all.join(", "));
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
    }
    put!(out, "){}\n", if is_answer { " : Reply" } else { "" });
    let more = if is_answer { ", raw: Raw = Raw.NONE, requestId: String? = null" } else { "" };
    put!(out, "internal fun read{}(value: JsonElement, place: String{more}): {} {{", record.name, record.name);
    put!(out, "    val of = members(value, place)");
    put!(out, "    return {}(", record.name);
    for field in record.fields {
        let how = if field.required { "must" } else { "may" };
        put!(out, "        {} = of.{how}({}, {}),", member(field.name, is_answer), quoted(field.name), reader(field.shape));
    }
    if is_answer {
        put!(out, "        raw = raw,\n        requestId = requestId,");
    }
    put!(out, "    )\n}}");
}

fn print_operations() -> String {
    let mut out = HEADER.to_owned();
    put!(out, "import java.math.BigDecimal");
    put!(out, "import kotlin.time.Duration");
    put!(out, "import kotlinx.serialization.json.JsonElement\n");
    put!(out, "/** One method for each operation of the API, and those that wait for a session. */");
    put!(out, "public abstract class Operations internal constructor() : Caller() {{");
    endpoints().for_each(|endpoint| print_method(&mut out, endpoint));
    print_waiting(&mut out);
    put!(out, "}}");
    out
}

/// A method to print.
struct Method<'a> {
    name: String,
    /// The lines before the parameters.
    doc: Vec<String>,
    fields: &'a [Field],
    options: Vec<Option3>,
    answer: String,
    /// What is called: its text before and after the parameters and the options.
    call: [String; 2],
}

fn print_method(out: &mut String, endpoint: &Endpoint) {
    let writes = endpoint.safety != Safety::Safe;
    let own = [(writes, INTENT), (endpoint.safety == Safety::Keyed, KEY), (endpoint.paid, RETRY_PAID)];
    let price = PRICE.into_iter().filter(|_| endpoint.name == "create_session");
    let options = own.into_iter().filter_map(|(has, option)| has.then_some(option)).chain(price).chain(ALWAYS).collect();
    let (answer, read) = match record_of(endpoint.response) {
        Some(record) => {
            let read = format!("{{ data, raw, requestId -> read{}(data, \"data\", raw, requestId) }}", record.name);
            (record.name, format!(") {read}"))
        }
        None => ("RawReply", ", ::rawReply)".to_owned()),
    };
    let call = [format!("call({}, ", quoted(endpoint.name)), read];
    let method = Method {
        name: camel(endpoint.name),
        doc: about(endpoint),
        fields: endpoint.request.fields,
        options,
        answer: answer.to_owned(),
        call,
    };
    method.print(out);
}

/// The two methods that wait, which are no entries of the table: `openSession` and `waitSession`.
fn print_waiting(out: &mut String) {
    if let Some(create) = endpoint("create_session") {
        let options = [INTENT, KEY, RETRY_PAID].into_iter().chain(PRICE).chain(ALWAYS).chain(WAITING).collect();
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come. It can charge money.".to_owned();
        let (fields, call) = (create.request.fields, ["open(", ")"].map(str::to_owned));
        Method { name: "openSession".to_owned(), doc: vec![doc], fields, options, answer: "OpenSession".to_owned(), call }.print(out);
    }
    if let Some(read) = endpoint("get_session") {
        let fields: Vec<Field> = read.request.fields.iter().copied().filter(|field| field.name == "session_id").collect();
        let options = ALWAYS.into_iter().chain(WAITING).collect();
        let doc = "Waits for a session that is known by its id, as [openSession] does after its purchase.".to_owned();
        let call = ["waitFor(", ")"].map(str::to_owned);
        let answer = "OpenSession".to_owned();
        Method { name: "waitSession".to_owned(), doc: vec![doc], fields: &fields, options, answer, call }.print(out);
    }
}

impl Method<'_> {
    fn print(&self, out: &mut String) {
        let (must, may): (Vec<&Field>, Vec<&Field>) = self.fields.iter().partition(|field| field.required);
        let mut doc = self.doc.clone();
        doc.push(String::new());
        let fields = must.iter().chain(&may).map(|field| (parameter(field.name), said(field.doc).join(" ")));
        let options = self.options.iter().map(|(name, _, about)| ((*name).to_owned(), (*about).to_owned()));
        doc.extend(fields.chain(options).map(|(name, about)| format!("@param {} {}", name.replace('`', ""), about.trim())));
        put!(out, "");
        print_doc(out, "    ", &doc);
        put!(out, "    public suspend fun {}(", self.name);
        must.iter().for_each(|field| put!(out, "        {}: {},", parameter(field.name), request_type(field.shape)));
        for field in &may {
            let (name, kind) = (parameter(field.name), request_type(field.shape));
            match field.nullable {
                true => put!(out, "        {name}: Patch<{kind}> = Patch.Absent,"),
                false => put!(out, "        {name}: {kind}? = null,"),
            }
        }
        self.options.iter().for_each(|(name, kind, _)| put!(out, "        {name}: {kind}? = null,"));
        let params: Vec<String> =
            must.iter().chain(&may).map(|field| format!("{} to {}", quoted(field.name), parameter(field.name))).collect();
        let options: Vec<String> = self.options.iter().map(|(name, _, _)| format!("{name} = {name}")).collect();
        let [before, after] = &self.call;
        put!(out, "    ): {} =\n        {before}encode({}), Call({}){after}", self.answer, params.join(", "), options.join(", "));
    }
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
    if is_answer && ["raw", "requestId"].contains(&name.as_str()) { format!("{name}_") } else { escaped(name) }
}

/// The name of a parameter, which may not be that of an option.
fn parameter(wire: &str) -> String {
    let (name, mut options) = (camel(wire), [INTENT, KEY, RETRY_PAID].into_iter().chain(PRICE).chain(ALWAYS).chain(WAITING));
    if options.any(|(option, _, _)| option == name) { format!("{name}_") } else { escaped(name) }
}

fn escaped(name: String) -> String {
    if KEYWORDS.contains(&name.as_str()) { format!("`{name}`") } else { name }
}

fn answer_type(shape: Shape) -> String {
    match shape {
        Shape::Text => "String".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "Boolean".to_owned(),
        Shape::Integer => "Long".to_owned(),
        Shape::Decimal => "BigDecimal".to_owned(),
        Shape::Json => "Raw".to_owned(),
        Shape::Word(words) => words.name.to_owned(),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) => format!("List<{}>", answer_type(*item)),
    }
}

fn request_type(shape: Shape) -> String {
    match shape {
        Shape::Json | Shape::Record(_) => "JsonElement".to_owned(),
        Shape::List(item) => format!("List<{}>", request_type(*item)),
        plain => answer_type(plain),
    }
}

fn reader(shape: Shape) -> String {
    match shape {
        Shape::Text => "::text".to_owned(),
        Shape::Secret => "::secret".to_owned(),
        Shape::Bool => "::flag".to_owned(),
        Shape::Integer => "::whole".to_owned(),
        Shape::Decimal => "::decimal".to_owned(),
        Shape::Json => "::anything".to_owned(),
        Shape::Word(words) => format!("{{ word, at -> {}(text(word, at)) }}", words.name),
        Shape::Record(record) => format!("{{ value, at -> read{}(value, at) }}", record.name),
        Shape::List(item) => format!("list({})", reader(*item)),
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
    let safe = |line: &String| line.replace("*/", "*&#47;").replace("/*", "&#47;*");
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
    fn every_operation_is_a_documented_method() {
        let printed = print_operations();
        for endpoint in endpoints() {
            let at = printed.find(&format!("    public suspend fun {}(\n", camel(endpoint.name)));
            let at = at.unwrap_or_else(|| panic!("{} has no method", endpoint.name));
            assert!(printed[..at].ends_with("*/\n"), "{} is not documented", endpoint.name);
            assert!(printed.contains(&format!("call(\"{}\", ", endpoint.name)), "{}", endpoint.name);
        }
    }

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
            (member("object", false), member("raw", true), parameter("timeout")),
            ("`object`".into(), "raw_".into(), "timeout_".into())
        );
        assert_eq!(quoted("a \"$\" b"), "\"a \\\"\\$\\\" b\"");
    }
}
