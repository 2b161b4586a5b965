//! Hopline's own types: errors, events, what a store holds, quotes, their words, and the options of a client.

use std::fmt::Write;

use hopline::client::{EVENTS, Level, PagesEnd};
use hopline::contract::pools::LeaseAdvice;
use hopline::contract::{Field, Method, Record, Safety, Shape, Shaped, Words};
use hopline::policy::{CODES, FailureKind, Sent};

use super::{HEADER, answer_type, option_type, print_doc, print_words, quoted};
use crate::model::{CLIENT, CallOption, Kind, OPTIONS, RETRY, Type, lines, snake, told_types, unlinked};

/// Types that the package shows in a way of its own, or only passes back.
const OWN: [&str; 8] = ["SavedPage", "AnswerFacts", "Verdict", "VerdictName", "IpRange", "OpenedPool", "PoolLease", "KnownPools"];

/// Lists that are in nothing that is told.
const LISTS: [Shape; 6] = [Method::SHAPE, Safety::SHAPE, PagesEnd::SHAPE, FailureKind::SHAPE, Sent::SHAPE, LeaseAdvice::SHAPE];

/// Exceptions whose plain names mean something else.
const EXCEPTIONS: [(&str, &str); 2] = [("Protocol", "ProtocolError"), ("Store", "StoreError")];

/// Events of the package's own, since it is the package that sends: their words, and the members that go with them.
const EXCHANGES: [(&str, &str); 2] = [("sent", "A request was sent."), ("answered", "A request was answered, or failed.")];
const EXCHANGE: [(&str, &str, &str); 5] = [
    ("method", "str", "Of `sent` and `answered`: the HTTP method."),
    ("path", "str", "Of `sent` and `answered`: the path of the URL."),
    ("http_status", "int", "Of `answered`: the HTTP status; `None` if there was no response."),
    ("failure", "FailureKind", "Of `answered`: the reason why there was no response."),
    ("duration", "float", "Of `answered`: the duration of the request. In seconds."),
];

/// An option that is a parameter by itself.
const PARAMETER: &str = "same_account";

pub(super) fn print() -> String {
    let mut out =
        format!("{HEADER}\"\"\"Hopline's own types: errors, events, what a store holds, quotes, and the options of a client.\"\"\"\n\n");
    put!(out, "from __future__ import annotations\n");
    put!(out, "from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict\n");
    put!(out, "from ._failure import Failure, money, moment, seconds");
    put!(out, "from ._value import Value\n");
    put!(out, "if TYPE_CHECKING:\n    from datetime import datetime\n    from decimal import Decimal\n");
    let own: Vec<Type> = told_types().into_iter().filter(|told| !OWN.contains(&told.name())).collect();
    let lists = LISTS.into_iter().filter_map(|shape| if let Shape::Word(words) = shape { Some(words) } else { None });
    let words = own.iter().filter_map(|told| if let Type::Words(words) = told { Some(*words) } else { None });
    let words: Vec<&Words> = words.chain(lists).collect();
    let records: Vec<&Record> = own.iter().filter_map(|told| told.record()).collect();
    let classes = records.iter().map(|record| name_of(record.name));
    let exceptions = words.iter().filter(|words| words.name == "Kind").flat_map(|words| words.words).map(|word| exception(word.name));
    let names: Vec<&str> =
        words.iter().map(|words| name_of(words.name)).chain(classes).chain(exceptions).chain(["Code", "Options"]).collect();
    put!(out, "__all__ = [\n{}]\n", names.iter().map(|name| format!("    {name:?},\n")).collect::<String>());
    for words in &words {
        print_words(&mut out, name_of(words.name), words, if words.name == "EventName" { &EXCHANGES } else { &[] });
    }
    print_codes(&mut out);
    for record in records {
        let is_error = record.name == "ErrorFields";
        put!(out, "\n\nclass {}({}):", name_of(record.name), if is_error { "Failure" } else { "Value" });
        print_doc(&mut out, "    ", &said(record.doc));
        put!(out, "");
        record.fields.iter().filter(|field| is_shown(field)).for_each(|field| print_member(&mut out, field, is_error));
        for (name, kind, doc) in EXCHANGE.into_iter().filter(|_| record.name == "Event") {
            put!(out, "    {name}: {kind} | None = None\n    \"\"\"{doc}\"\"\"");
        }
        if let Some(kinds) = words.iter().find(|words| is_error && words.name == "Kind") {
            print_exceptions(&mut out, kinds);
        }
        print_reader(&mut out, record, is_error);
    }
    print_levels(&mut out);
    print_options(&mut out);
    out
}

/// The name of a type of the table here.
fn name_of(name: &'static str) -> &'static str {
    match name {
        "ErrorFields" => "HoplineError",
        "PagesEnd" => "End",
        name => name,
    }
}

/// A number of the core's own means nothing to anybody else, and the sentence is the exception itself.
fn is_shown(field: &Field) -> bool {
    !matches!(field.name, "command" | "message")
}

fn member(field: &Field) -> &str {
    match (field.name, field.shape) {
        ("refused_by_us", _) => "is_refused_by_us",
        (name, Shape::Span) => name.trim_end_matches("_ms"),
        (name, _) => name,
    }
}

fn print_member(out: &mut String, field: &Field, is_error: bool) {
    let kind = match (field.name, field.shape) {
        ("code", _) => "Code | str".to_owned(),
        (_, Shape::Word(words)) if words.closed => name_of(words.name).to_owned(),
        (_, Shape::Span) => "float".to_owned(),
        (_, shape) => answer_type(shape),
    };
    let (optional, default) = match field.shape {
        Shape::Bool if !field.required => ("", "False"),
        Shape::List(_) if !field.required => ("", "()"),
        Shape::Json => ("", "None"),
        _ if !field.required => (" | None", "None"),
        // An exception that somebody makes by hand needs nothing but its text.
        Shape::Integer if is_error => ("", "0"),
        _ if is_error => match field.name {
            "kind" => ("", "\"misuse\""),
            "effect" => ("", "\"none\""),
            "advice" => ("", "\"nothing\""),
            _ => ("", "\"\""),
        },
        _ => ("", ""),
    };
    let default = if default.is_empty() { String::new() } else { format!(" = {default}") };
    put!(out, "    {}: {kind}{optional}{default}", member(field));
    let mut doc = said(field.doc);
    if let (Shape::Span, Some(last)) = (field.shape, doc.last_mut()) {
        last.push_str(" In seconds.");
    }
    print_doc(out, "    ", &doc);
}

/// The level of each event, as a number of `logging`.
fn print_levels(out: &mut String) {
    let each = EVENTS.iter().filter_map(|event| match event.level {
        Level::Debug => None,
        Level::Info => Some(format!("    {}: 20,\n", quoted(event.name))),
        Level::Warning => Some(format!("    {}: 30,\n", quoted(event.name))),
    });
    put!(out, "\n\nLEVELS = {{\n{}}}", each.collect::<String>());
    put!(out, "\"\"\"The levels of events as `logging` has them: 20 is `INFO`, 30 is `WARNING`. All others are `DEBUG`.\"\"\"");
}

/// One exception for each kind of failure.
fn print_exceptions(out: &mut String, kinds: &Words) {
    for kind in kinds.words {
        put!(out, "\n\nclass {}(HoplineError):", exception(kind.name));
        print_doc(out, "    ", &said(kind.doc));
        put!(out, "\n    kind = {}", quoted(kind.word));
        if kind.word == "not_ready" {
            put!(out, "    session: Any = None");
            put!(out, "    \"\"\"The handle of the session, an `OpenSession`; of an `AsyncAgentClient` an `AsyncOpenSession`.\"\"\"");
        }
    }
    let each: Vec<String> = kinds.words.iter().map(|kind| format!("    {}: {},\n", quoted(kind.word), exception(kind.name))).collect();
    put!(out, "\n\nKINDS: dict[str, type[HoplineError]] = {{\n{}}}\n\"\"\"The exception of each kind of failure.\"\"\"", each.concat());
}

fn exception(name: &'static str) -> &'static str {
    EXCEPTIONS.into_iter().find(|(kind, _)| *kind == name).map_or(name, |(_, own)| own)
}

/// Prints the function that makes the object from the core's JSON.
fn print_reader(out: &mut String, record: &Record, is_error: bool) {
    let name = name_of(record.name);
    put!(out, "\n\ndef {}(told: dict[str, Any]) -> {name}:\n    \"\"\"Reads the core's JSON.\"\"\"", reader(record));
    put!(out, "    return {}(", if is_error { "KINDS[told[\"kind\"]]" } else { name });
    if is_error {
        put!(out, "        told[\"message\"],");
    }
    for field in record.fields.iter().filter(|field| is_shown(field) && !(is_error && field.name == "kind")) {
        let key = quoted(field.name);
        let there = if field.required { format!("told[{key}]") } else { format!("told.get({key})") };
        let read = match field.shape {
            Shape::Time => format!("moment({there})"),
            Shape::Span => format!("seconds({there})"),
            Shape::Decimal => format!("money({there})"),
            Shape::Bool => format!("told.get({key}, False)"),
            Shape::List(Shape::Record(item)) => format!("tuple({}(one) for one in told.get({key}, ()))", reader(item)),
            Shape::List(_) => format!("tuple(told.get({key}, ()))"),
            Shape::Record(record) => format!("{}(told[{key}]) if {key} in told else None", reader(record)),
            Shape::Error => format!("read_error(told[{key}]) if {key} in told else None"),
            _ => there,
        };
        put!(out, "        {}={read},", member(field));
    }
    put!(out, "    )");
}

/// The function that reads it.
fn reader(record: &Record) -> String {
    let name = if record.name == "ErrorFields" { "_error".to_owned() } else { snake(record.name) };
    format!("read{name}")
}

/// The codes that the contract of the agent API names.
fn print_codes(out: &mut String) {
    let union: Vec<String> = CODES.iter().map(|row| format!("    {},\n", quoted(row.code))).collect();
    put!(out, "\nCode: TypeAlias = Literal[\n{}]", union.concat());
    let each = CODES.iter().map(|row| format!("- `{}`: {}", row.code, row.meaning));
    let doc = ["The codes that the contract of the agent API names.".to_owned(), String::new()];
    print_doc(out, "", &doc.into_iter().chain(each).collect::<Vec<_>>());
}

/// The options of a client, and which of all options are times.
fn print_options(out: &mut String) {
    let client = || CLIENT.iter().filter(|option| option.name != PARAMETER);
    put!(out, "\n\nclass Options(TypedDict, total=False):");
    put!(out, "    \"\"\"How a client repeats, waits and reads. Omitted options keep their defaults.\"\"\"\n");
    for option in client().chain(RETRY.iter()) {
        put!(out, "    {}: {}", option.plain(), option_type(option.kind));
        print_doc(out, "    ", &[in_python(&option.told("seconds"))]);
    }
    let list = |options: &mut dyn Iterator<Item = &CallOption>| options.map(|option| quoted(option.plain())).collect::<Vec<_>>().join(", ");
    put!(out, "\n\nRETRY = ({})\n\"\"\"The options of repeats.\"\"\"", list(&mut RETRY.iter()));
    let is_new = |option: &&CallOption| !RETRY.iter().any(|known| known.name == option.name);
    let mut times = RETRY.iter().chain(OPTIONS.iter().filter(is_new)).filter(|option| option.kind == Kind::Time);
    put!(out, "SECONDS = ({})\n\"\"\"The options, also of calls, that are times.\"\"\"", list(&mut times));
}

/// A text of the table in Python's own spelling.
pub(super) fn in_python(line: &str) -> String {
    unlinked(line)
        .replace(", Unix milliseconds", "")
        .replace("`refused_by_us`", "`is_refused_by_us`")
        .replace("Default: no.", "Default: False.")
        .replace("Default: false", "Default: False")
        .replace("The caller's own", "Your own")
        .replace("the caller's own", "your own")
}

fn said(doc: &str) -> Vec<String> {
    lines(doc).map(in_python).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AGENT, RESELLER, assert_documents};

    #[test]
    fn every_member_and_every_word_is_printed_once_with_its_documentation() {
        let printed = print();
        for told in told_types().into_iter().filter(|told| !OWN.contains(&told.name())) {
            let name = name_of(told.name());
            match told {
                Type::Words(words) => {
                    assert_eq!(printed.matches(&format!("\n{name}: TypeAlias = Literal[")).count(), 1, "{name}");
                    words.words.iter().for_each(|word| assert!(printed.contains(&format!("\n- `{}`: ", word.word)), "{}", word.word));
                }
                Type::Record(record) => {
                    let class = printed.split(&format!("\nclass {name}(")).nth(1).and_then(|rest| rest.split("\n\n\n").next());
                    let lines: Vec<&str> = class.unwrap_or_else(|| panic!("{name}")).lines().collect();
                    for field in record.fields.iter().filter(|field| is_shown(field)) {
                        let begin = format!("    {}: ", member(field));
                        let at = lines.iter().position(|line| line.starts_with(&begin)).unwrap_or_else(|| panic!("{name}.{}", field.name));
                        assert!(lines[at + 1].starts_with("    \"\"\""), "{name}.{}", field.name);
                    }
                }
            }
        }
        for line in [
            "    advice: Advice = \"nothing\"\n",
            "    code: Code | str | None = None\n",
            "    retry_at: datetime | None = None\n",
            "    is_refused_by_us: bool = False\n",
            "    delay: float | None = None\n",
            "    members: tuple[str, ...] = ()\n",
            "        delay=seconds(told.get(\"delay_ms\")),\n",
            "class ProtocolError(HoplineError):\n",
        ] {
            assert!(printed.contains(line), "{line}");
        }
    }

    #[test]
    fn nothing_is_said_in_the_words_of_another_host() {
        let printed = print();
        for word in ["[`", "::", "Unix milliseconds", "_ms`", "Default: no"] {
            assert_eq!(printed.lines().find(|line| line.contains(word)), None, "{word}");
        }
    }

    #[test]
    fn every_option_of_a_client_is_there_with_its_default() {
        let printed = print();
        for option in CLIENT.iter().filter(|option| option.name != PARAMETER).chain(RETRY.iter()) {
            let at = printed.find(&format!("    {}: {}\n", option.plain(), option_type(option.kind)));
            let doc = &printed[at.unwrap_or_else(|| panic!("{}", option.name))..];
            let doc = doc.lines().nth(1).unwrap_or_default();
            assert!(doc.contains("Default: ") || option.name == "account", "{doc}");
        }
        assert!(printed.contains(
            "SECONDS = (\"window\", \"timeout\", \"backoff\", \"throttled_backoff\", \"max_backoff\", \"conflict\", \"deadline\")"
        ));
    }

    #[test]
    fn constructors_say_of_their_options_what_the_table_says() {
        assert_documents("bindings-python/python/hopline/_async_agent.py", &AGENT);
        assert_documents("bindings-python/python/hopline/_async_reseller.py", &RESELLER);
    }
}
