//! Prints the types and the operations of the Python package. What they do is written by hand, in `python/hopline`; here
//! are only names, types and documentation.

use std::fmt::Write;

use hopline::contract::{Endpoint, Field, Place, Record, Safety, Shape, Words, endpoint, endpoints};

use crate::model::{Type, about, lines, types};

const HEADER: &str = "# Printed from the table by hopline-bindgen. Do not edit: change the table.\n";

/// The files of the package that are printed: their names and their text.
pub fn files() -> Vec<(&'static str, String)> {
    vec![("_types.py", print_types()), ("_operations.py", print_operations())]
}

/// One option of a call: its name, its type, what it does.
type Option3 = (&'static str, &'static str, &'static str);

const INTENT: Option3 =
    ("intent", "str", "Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it.");
const KEY: Option3 = ("idempotency_key", "str", "A key of your own. It counts as sent before and is never replaced.");
const RETRY_PAID: Option3 =
    ("retry_paid", "bool", "Whether to buy again with a new key when the service failed. It may have sold all the same.");
const ALWAYS: [Option3; 4] = [
    ("attempts", "int", "How often it is sent at most, the first time included."),
    ("window", "float", "Seconds from the first send within which another may be made."),
    ("timeout", "float", "Seconds that one attempt may take."),
    ("headers", "Mapping[str, str | Secret]", "Further headers of the request. They are not kept in records."),
];
const WAITING: [Option3; 3] = [
    ("credentials", "bool", "Whether the username and password are wanted once the session is active."),
    ("deadline", "float", "Seconds after which waiting ends with a handle; 5 minutes where it is left out."),
    ("ends", "Sequence[str]", "Further statuses that end it."),
];
const KEEP: &str = "Whether the session lives on when the `with` block is left. A static one always does.";

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

fn print_types() -> String {
    let mut out = format!("{HEADER}\"\"\"The types of the API.\"\"\"\n\n");
    put!(out, "from dataclasses import dataclass");
    put!(out, "from decimal import Decimal");
    put!(out, "from typing import Any, ClassVar, Literal, TypeAlias\n");
    put!(out, "from . import _values as _v");
    put!(out, "from ._values import Members, Reply, Secret, Value\n");
    let found = types();
    let names: Vec<String> = found.iter().map(|known| format!("    {:?},\n", known.name())).collect();
    put!(out, "__all__ = [\n{}]\n", names.concat());
    let answers: Vec<&str> = endpoints().filter_map(|endpoint| record_of(endpoint.response)).map(|record| record.name).collect();
    for known in found {
        match known {
            Type::Words(words) => print_words(&mut out, words),
            Type::Record(record) => print_record(&mut out, record, answers.contains(&record.name)),
        }
    }
    out
}

fn print_words(out: &mut String, words: &Words) {
    let list: Vec<String> = words.words.iter().map(|word| format!("{:?}", word.word)).collect();
    put!(out, "\n{}: TypeAlias = Literal[{}]", words.name, list.join(", "));
    let mut doc: Vec<String> = lines(words.doc).map(str::to_owned).collect();
    doc.push(String::new());
    for word in words.words {
        doc.push(format!("- `{}`: {}", word.word, one_line(word.doc)));
    }
    print_doc(out, "", &doc);
}

fn print_record(out: &mut String, record: &Record, is_answer: bool) {
    put!(out, "\n\n@dataclass(frozen=True, slots=True, kw_only=True)");
    put!(out, "class {}({}):", record.name, if is_answer { "Reply" } else { "Value" });
    print_doc(out, "    ", &lines(record.doc).map(str::to_owned).collect::<Vec<_>>());
    put!(out, "");
    for field in record.fields {
        let (optional, default) = if field.required { ("", "") } else { (" | None", " = None") };
        put!(out, "    {}: {}{optional}{default}", field.name, answer_type(field.shape));
        print_doc(out, "    ", &lines(field.doc).map(str::to_owned).collect::<Vec<_>>());
    }
    put!(out, "\n    _members: ClassVar[Members] = {{");
    for field in record.fields {
        put!(out, "        {:?}: ({}, {}),", field.name, reader(field.shape), if field.required { "True" } else { "False" });
    }
    put!(out, "    }}");
}

fn print_operations() -> String {
    let mut out = format!("{HEADER}\"\"\"The operations of the API, one method each.\"\"\"\n\n");
    put!(out, "from collections.abc import Mapping, Sequence");
    put!(out, "from decimal import Decimal");
    put!(out, "from typing import Any\n");
    put!(out, "from ._bases import AsyncCaller, Caller");
    put!(out, "from ._session import AsyncOpening, OpenSession, SessionReply");
    put!(out, "from ._types import *  # noqa: F403");
    put!(out, "from ._values import UNSET, Reply, Secret, Unset\n");
    for host in [Host::Sync, Host::Async] {
        let (class, base) = if host == Host::Sync { ("Operations", "Caller") } else { ("AsyncOperations", "AsyncCaller") };
        put!(out, "\n\nclass {class}({base}):");
        put!(out, "    \"\"\"One method for each operation of the API, and those that wait for a session.\"\"\"");
        put!(out, "\n    __slots__ = ()");
        endpoints().for_each(|endpoint| print_method(&mut out, host, endpoint));
        print_waiting(&mut out, host);
    }
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Sync,
    Async,
}

/// A method to print.
struct Method<'a> {
    host: Host,
    name: &'a str,
    /// The lines before the parameters.
    doc: Vec<String>,
    fields: &'a [Field],
    options: Vec<Option3>,
    answer: String,
    /// Whether the method takes `keep`.
    opens: bool,
    /// What is called: its text before and after the parameters and the options.
    call: [String; 2],
}

fn print_method(out: &mut String, host: Host, endpoint: &Endpoint) {
    let writes = endpoint.safety != Safety::Safe;
    let own = [(writes, INTENT), (endpoint.safety == Safety::Keyed, KEY), (endpoint.paid, RETRY_PAID)];
    let options = own.into_iter().filter_map(|(has, option)| has.then_some(option)).chain(ALWAYS).collect();
    let answer = record_of(endpoint.response).map_or("Reply", |record| record.name).to_owned();
    let call = [format!("self._call({:?}, ", endpoint.name), format!(", {answer})")];
    Method { host, name: endpoint.name, doc: about(endpoint), fields: endpoint.request.fields, options, answer, opens: false, call }
        .print(out);
}

/// The two methods that wait, which are no entries of the table: `open_session` and `wait_session`.
fn print_waiting(out: &mut String, host: Host) {
    let opened = if host == Host::Sync { "OpenSession" } else { "AsyncOpening" };
    if let Some(create) = endpoint("create_session") {
        let doc = "Buys a session and waits until it is usable, over, or the deadline has come.\n\nLeaving a `with` block of it ends a dynamic \
                   session, unless `keep` is true.";
        let options = [INTENT, KEY, RETRY_PAID].into_iter().chain(ALWAYS).chain(WAITING).collect();
        let (doc, call) = (doc.lines().map(str::to_owned).collect(), ["self._open(", ", keep)"].map(str::to_owned));
        Method { host, name: "open_session", doc, fields: create.request.fields, options, answer: opened.to_owned(), opens: true, call }
            .print(out);
    }
    if let Some(read) = endpoint("get_session") {
        let fields: Vec<Field> = read.request.fields.iter().copied().filter(|field| field.name == "session_id").collect();
        let doc = "Waits for a session that is known by its id, as `open_session` does after its purchase.".to_owned();
        let options = ALWAYS.into_iter().chain(WAITING).collect();
        let call = ["self._wait(", ")"].map(str::to_owned);
        Method {
            host,
            name: "wait_session",
            doc: vec![doc],
            fields: &fields,
            options,
            answer: "SessionReply".to_owned(),
            opens: false,
            call,
        }
        .print(out);
    }
}

impl Method<'_> {
    fn print(&self, out: &mut String) {
        // `async with` needs the purchase itself, before it is awaited.
        let awaits = self.host == Host::Async && !self.opens;
        put!(out, "\n    {}def {}(", if awaits { "async " } else { "" }, self.name);
        put!(out, "        self,\n        *,");
        let (must, may): (Vec<&Field>, Vec<&Field>) = self.fields.iter().partition(|field| field.required);
        must.iter().for_each(|field| put!(out, "        {}: {},", field.name, request_type(field)));
        let null = |field: &Field| if field.nullable { " | None" } else { "" };
        may.iter().for_each(|field| put!(out, "        {}: {}{} | Unset = UNSET,", field.name, request_type(field), null(field)));
        self.options.iter().for_each(|(name, kind, _)| put!(out, "        {name}: {kind} | None = None,"));
        if self.opens {
            put!(out, "        keep: bool = False,");
        }
        put!(out, "    ) -> {}:", self.answer);
        let mut doc = self.doc.clone();
        doc.extend(["".to_owned(), "Args:".to_owned()]);
        let fields = must.iter().chain(&may).map(|field| (field.name, one_line(field.doc)));
        let options = self.options.iter().map(|(name, _, about)| (*name, (*about).to_owned()));
        let keep = self.opens.then(|| ("keep", KEEP.to_owned()));
        doc.extend(fields.chain(options).chain(keep).map(|(name, about)| format!("    {name}: {about}")));
        print_doc(out, "        ", &doc);
        let params: Vec<String> = must.iter().chain(&may).map(|field| format!("{:?}: {}", field.name, field.name)).collect();
        let options: Vec<String> = self.options.iter().map(|(name, _, _)| format!("{name:?}: {name}")).collect();
        let ([before, after], wait) = (&self.call, if awaits { "await " } else { "" });
        put!(out, "        return {wait}{before}{{{}}}, {{{}}}{after}", params.join(", "), options.join(", "));
    }
}

fn record_of(shape: Shape) -> Option<&'static Record> {
    match shape {
        Shape::Record(record) => Some(record),
        _ => None,
    }
}

fn answer_type(shape: Shape) -> String {
    match shape {
        Shape::Text => "str".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Integer => "int".to_owned(),
        Shape::Decimal => "Decimal".to_owned(),
        Shape::Json => "Any".to_owned(),
        Shape::Word(words) => format!("{} | str", words.name),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) => format!("tuple[{}, ...]", answer_type(*item)),
    }
}

fn request_type(field: &Field) -> String {
    // A whole body is an object of the caller's own.
    if field.place == Place::Whole { "Mapping[str, Any]".to_owned() } else { given_type(field.shape) }
}

fn given_type(shape: Shape) -> String {
    match shape {
        Shape::Secret => "Secret | str".to_owned(),
        Shape::Decimal => "Decimal | float".to_owned(),
        Shape::Word(words) => words.name.to_owned(),
        Shape::Record(_) => "Mapping[str, Any]".to_owned(),
        Shape::List(item) => format!("Sequence[{}]", given_type(*item)),
        plain => answer_type(plain),
    }
}

fn reader(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Word(_) => "_v.text".to_owned(),
        Shape::Secret => "_v.secret".to_owned(),
        Shape::Bool => "_v.flag".to_owned(),
        Shape::Integer => "_v.whole".to_owned(),
        Shape::Decimal => "_v.decimal".to_owned(),
        Shape::Json => "_v.anything".to_owned(),
        Shape::Record(record) => format!("{}._read", record.name),
        Shape::List(item) => format!("_v.many({})", reader(*item)),
    }
}

fn one_line(doc: &str) -> String {
    lines(doc).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn print_doc(out: &mut String, indent: &str, doc: &[String]) {
    let text: Vec<String> = doc.iter().map(|line| line.replace('\\', "\\\\").replace("\"\"\"", "\\\"\\\"\\\"")).collect();
    let (mut first, rest) = (text.first().cloned().unwrap_or_default(), text.get(1..).unwrap_or_default());
    let end = rest.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
    if end == 0 {
        if first.ends_with('"') {
            first.push(' ');
        }
        return put!(out, "{indent}\"\"\"{first}\"\"\"");
    }
    put!(out, "{indent}\"\"\"{first}");
    for line in &rest[..end] {
        put!(out, "{}", if line.is_empty() { String::new() } else { format!("{indent}{line}") });
    }
    put!(out, "{indent}\"\"\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_a_documented_method_of_both_clients() {
        let printed = print_operations();
        for endpoint in endpoints() {
            let (blocking, awaited) = (format!("    def {}(\n", endpoint.name), format!("    async def {}(\n", endpoint.name));
            assert!(printed.contains(&blocking) && printed.contains(&awaited), "{}", endpoint.name);
            assert!(printed.matches(&format!("\"\"\"{}", one_line(endpoint.doc).split('.').next().unwrap_or_default())).count() >= 2);
        }
    }

    #[test]
    fn every_type_is_printed_with_its_members() {
        let printed = print_types();
        for known in types() {
            match known {
                Type::Record(record) => {
                    assert!(printed.contains(&format!("class {}(", record.name)), "{}", record.name);
                    record.fields.iter().for_each(|field| assert!(printed.contains(&format!("    {}: ", field.name)), "{}", field.name));
                }
                Type::Words(words) => assert!(printed.contains(&format!("\n{}: TypeAlias", words.name)), "{}", words.name),
            }
        }
    }

    #[test]
    fn no_text_of_the_table_can_end_a_docstring() {
        let mut out = String::new();
        print_doc(&mut out, "", &[r#"a """ and a \ and a ""#.to_owned()]);
        assert_eq!(out, "\"\"\"a \\\"\\\"\\\" and a \\\\ and a \" \"\"\"\n");
    }
}
