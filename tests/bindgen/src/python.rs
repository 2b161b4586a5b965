//! Prints the types and the operations of the Python package: names, types and documentation. Their code is written by hand, in
//! `python/hopline`. The files for tasks are printed for threads, too.

use std::fmt::Write;

use hopline::contract::{Field, FieldPlace, REPLIES, Record, Shape, Words, endpoints};

use crate::model::{APIS, Kind, Type, client, is_choice, lines, snake, types};

const HEADER: &str = "# Printed from the table by hopline-bindgen. Do not edit: change the table.\n";

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

mod blocking;
mod method;
mod operations;
mod told;

/// The files of the package that are printed: their names and their text.
pub fn files() -> Vec<(String, String)> {
    let operations = APIS.map(|api| (format!("_async_{}_operations.py", client(api).to_lowercase()), operations::print(api)));
    let blocking = operations.iter().map(|(name, text)| (blocking::renamed(name), blocking::made(text))).chain(blocking::files());
    let types = [("_types.py", print_types()), ("_told.py", told::print())].map(|(name, text)| (name.to_owned(), text));
    types.into_iter().chain(blocking).chain(operations.clone()).collect()
}

fn print_types() -> String {
    let mut out = format!("{HEADER}\"\"\"The types of the API.\"\"\"\n\n");
    put!(out, "from __future__ import annotations\n");
    put!(out, "from typing import TYPE_CHECKING, Any, Literal, TypeAlias\n");
    put!(out, "from ._hopline import make_of");
    put!(out, "from ._proxy import Reachable");
    put!(out, "from ._value import Reply, Value, field");
    put!(out, "from ._values import Secret, loads\n");
    put!(out, "if TYPE_CHECKING:\n    from decimal import Decimal\n");
    let found = types();
    let names: Vec<String> = found.iter().map(|known| format!("    {:?},\n", known.name())).collect();
    put!(out, "__all__ = [\n{}]\n", names.concat());
    let shapes = endpoints().map(|endpoint| endpoint.response).chain(REPLIES);
    let answers: Vec<&str> = shapes.filter_map(record_of).map(|record| record.name).collect();
    for known in found {
        match known {
            Type::Words(words) => print_words(&mut out, words.name, words, &[]),
            Type::Record(record) => print_record(&mut out, record, answers.contains(&record.name)),
        }
    }
    put!(out, "\n\n_CLASSES = (");
    types().into_iter().filter_map(Type::record).for_each(|record| put!(out, "    {},", record.name));
    put!(out, ")");
    put!(out, "_made = {{kind.__name__: (kind, kind._own, issubclass(kind, Reply)) for kind in _CLASSES}}");
    put!(out, "make_of({{**_made, \"\": (Reply, [], True)}}, Secret, loads)");
    out
}

/// A list of words; some of them are this package's own.
fn print_words(out: &mut String, name: &str, words: &Words, own: &[(&str, &str)]) {
    let each = || words.words.iter().map(|word| (word.word, word.doc)).chain(own.iter().copied());
    let list: Vec<String> = each().map(|(word, _)| quoted(word)).collect();
    put!(out, "\n{name}: TypeAlias = Literal[{}]", list.join(", "));
    let mut doc: Vec<String> = lines(words.doc).map(told::in_python).collect();
    doc.push(String::new());
    doc.extend(each().map(|(word, doc)| format!("- `{word}`: {}", told::in_python(&one_line(doc)))));
    print_doc(out, "", &doc);
}

fn print_record(out: &mut String, record: &Record, is_answer: bool) {
    put!(out, "\n");
    let base = match (is_answer, record.name) {
        (true, _) => "Reply",
        (false, "Proxy") => "Reachable",
        (false, _) => "Value",
    };
    put!(out, "class {}({base}):", record.name);
    print_doc(out, "    ", &lines(record.doc).map(str::to_owned).collect::<Vec<_>>());
    put!(out, "");
    for field in record.fields {
        let (optional, default) = match (field.required, is_open(field.shape)) {
            (true, false) => ("", ""),
            (false, false) => (" | None", " = None"),
            // An undocumented value may hold a secret, so it does not print.
            (true, true) => ("", " = field(repr=False)"),
            (false, true) => (" | None", " = field(default=None, repr=False)"),
        };
        put!(out, "    {}: {}{optional}{default}", python_name(field), answer_type(field.shape));
        print_doc(out, "    ", &lines(field.doc).map(str::to_owned).collect::<Vec<_>>());
    }
}

/// A field's name in Python: of its words, one that is none of the language's own.
fn python_name(field: &Field) -> String {
    match snake(field.name) {
        keyword if keyword == "async" => format!("{keyword}_"),
        name => name,
    }
}

/// Returns true if a value is undocumented.
fn is_open(shape: Shape) -> bool {
    match shape {
        Shape::Json => true,
        Shape::List(item) | Shape::OneOrMany(item) => is_open(*item),
        _ => false,
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
        Shape::Text | Shape::Label => "str".to_owned(),
        Shape::Secret => "Secret".to_owned(),
        Shape::Bool => "bool".to_owned(),
        Shape::Integer => "int".to_owned(),
        Shape::Time => "datetime".to_owned(),
        Shape::Span => "timedelta".to_owned(),
        Shape::Error => "HoplineError".to_owned(),
        Shape::Decimal => "Decimal".to_owned(),
        Shape::Json => "Any".to_owned(),
        Shape::Word(words) => format!("{} | str", words.name),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) | Shape::OneOrMany(item) => format!("tuple[{}, ...]", answer_type(*item)),
    }
}

fn request_type(field: &Field) -> String {
    match field.place {
        // An object of the caller's own.
        FieldPlace::Whole | FieldPlace::WholeQuery => "Mapping[str, Any]".to_owned(),
        _ if field.takes_any_number() => format!("{} | float", given_type(field.shape)),
        _ => given_type(field.shape),
    }
}

fn given_type(shape: Shape) -> String {
    match shape {
        Shape::Secret => "Secret | str".to_owned(),
        Shape::Decimal => "Decimal | float".to_owned(),
        Shape::Word(words) => words.name.to_owned(),
        Shape::Record(record) if is_choice(record.name) => record.name.to_owned(),
        Shape::Record(_) => "Mapping[str, Any]".to_owned(),
        Shape::List(item) => format!("Sequence[{}]", given_type(*item)),
        Shape::OneOrMany(item) => format!("{0} | Sequence[{0}]", given_type(*item)),
        plain => answer_type(plain),
    }
}

/// The type of an option.
fn option_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Text => "str",
        Kind::Secret => "str | Secret",
        Kind::Flag | Kind::FlagOn => "bool",
        Kind::Count => "int",
        Kind::Time => "float",
        Kind::Decimal => "Decimal | float",
        Kind::Headers => "Mapping[str, str | Secret]",
        Kind::Until => "Until",
        Kind::Texts => "Sequence[str]",
        Kind::Product => "Cheapest",
        Kind::UseWith => "UseWith",
        Kind::IfEnded => "IfEnded",
    }
}

/// A text of Python.
fn quoted(text: &str) -> String {
    format!("{text:?}")
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
    fn every_type_is_printed_with_its_members() {
        let printed = print_types();
        for known in types() {
            match known {
                Type::Record(record) => {
                    assert!(printed.contains(&format!("class {}(", record.name)), "{}", record.name);
                    record
                        .fields
                        .iter()
                        .for_each(|field| assert!(printed.contains(&format!("    {}: ", python_name(field))), "{}", field.name));
                }
                Type::Words(words) => assert!(printed.contains(&format!("\n{}: TypeAlias", words.name)), "{}", words.name),
            }
        }
    }

    #[test]
    fn a_member_has_a_name_of_pythons() {
        let printed = print_types();
        for line in ["    order_no: str", "    async_: bool | None = None"] {
            assert!(printed.contains(&format!("\n{line}\n")), "{line}");
        }
    }

    #[test]
    fn what_is_not_shown_does_not_print() {
        let printed = print_types();
        assert!(printed.contains("    items: tuple[Any, ...] = field(repr=False)\n"));
        let open = printed.lines().filter(|line| line.starts_with("    ") && line.contains(": ") && line.contains("Any"));
        assert!(open.clone().count() >= 4);
        open.for_each(|line| assert!(line.contains("repr=False"), "{line}"));
    }

    #[test]
    fn no_text_of_the_table_can_end_a_docstring() {
        let mut out = String::new();
        print_doc(&mut out, "", &[r#"a """ and a \ and a ""#.to_owned()]);
        assert_eq!(out, "\"\"\"a \\\"\\\"\\\" and a \\\\ and a \" \"\"\"\n");
    }
}
