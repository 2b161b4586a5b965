//! Hopline's own types: errors, events, what a store holds, quotes, verdicts, and their words.

use hopline::client::{EVENTS, Level, PagesEnd};
use hopline::contract::pools::LeaseAdvice;
use hopline::contract::{Field, Method, Record, Safety, Shape, Shaped, Words};

use super::{Side, doc, said};
use crate::model::{Type, told_types};

/// Types with another name here than in the table.
const NAMED: [(&str, &str); 5] =
    [("Kind", "ErrorKind"), ("Event", "ClientEvent"), ("PagesEnd", "WalkEnd"), ("Method", "HttpMethod"), ("rotating", "rotated")];

/// Types that the package reads itself, shows member by member, or does not need.
const UNPRINTED: [&str; 8] = ["AnswerFacts", "SavedPage", "EventName", "VerdictName", "OpenedPool", "PoolLease", "KnownPool", "KnownPools"];

/// Lists that are in nothing that is told.
const LISTS: [Shape; 4] = [Method::SHAPE, Safety::SHAPE, PagesEnd::SHAPE, LeaseAdvice::SHAPE];

/// Members with a server's text, which show only when they are read by name.
const QUIET: [&str; 3] = ["text", "details", "raw"];

pub(super) fn print(out: &mut String) {
    let lists = LISTS.into_iter().filter_map(|shape| if let Shape::Word(words) = shape { Some(Type::Words(words)) } else { None });
    for told in told_types().into_iter().filter(|told| !UNPRINTED.contains(&told.name())).chain(lists) {
        match told {
            Type::Words(words) => super::print_words(out, named(words.name), words),
            Type::Record(record) => match tag(record) {
                Some((tag, words)) => print_union(out, record, tag, words),
                None => print_record(out, record),
            },
        }
    }
}

/// The module that says for whom each event is. Those for whoever looks for a fault are not in it.
pub(super) fn levels() -> String {
    let levels = EVENTS.iter().filter_map(|event| {
        let level = match event.level {
            Level::Debug => return None,
            // As the methods of a log are called.
            Level::Warning => "warn",
            Level::Info => "info",
        };
        Some(format!("  {}: \"{level}\",\n", event.name))
    });
    format!(
        "/** By event: how much of interest to people it is; a `debug` where it is none of these. */\nexport const levels = {{\n{}}};\n",
        levels.collect::<String>()
    )
}

/// The name of a type or a word here.
fn named(known: &'static str) -> &'static str {
    NAMED.iter().find(|(core, _)| *core == known).map_or(known, |(_, here)| here)
}

/// The member of a record that says which others are there, and its words.
fn tag(record: &'static Record) -> Option<(&'static Field, &'static Words)> {
    record.fields.iter().find_map(|field| match field.shape {
        Shape::Word(words) if ["EventName", "VerdictName"].contains(&words.name) => Some((field, words)),
        _ => None,
    })
}

/// A number of the core's own means nothing to anybody else, and an error has its cause as every error of JavaScript has.
fn is_shown(record: &Record, field: &Field) -> bool {
    field.name != "command" && (record.name, field.name) != ("ErrorFields", "cause")
}

fn print_record(out: &mut String, record: &'static Record) {
    doc(out, "", &said(record.doc));
    out.push_str(&format!("export interface {} {{\n", named(record.name)));
    for field in record.fields.iter().filter(|field| is_shown(record, field)) {
        let mut about = said(field.doc);
        if let (true, Some(last)) = (QUIET.contains(&field.name), about.last_mut()) {
            last.push_str(" Not enumerable.");
        }
        member(out, "  ", field, !field.required, &about, kind(record, field));
    }
    out.push_str("}\n\n");
}

/// An object whose other members depend on a word: a union, so that the compiler knows which are there.
fn print_union(out: &mut String, record: &'static Record, tag: &'static Field, words: &'static Words) {
    let is_common = |field: &&Field| is_shown(record, field) && field.name != tag.name && belongs(field).is_none();
    doc(out, "", &said(record.doc));
    out.push_str(&format!("export type {} = ", named(record.name)));
    let common: Vec<&Field> = record.fields.iter().filter(is_common).collect();
    if !common.is_empty() {
        out.push_str("{\n");
        common.iter().for_each(|field| member(out, "  ", field, !field.required, &said(field.doc), kind(record, field)));
        out.push_str("} & ");
    }
    out.push_str("(\n");
    for word in words.words {
        out.push_str("  | {\n");
        doc(out, "      ", &if word.word == "rotating" { vec!["It was rotated, with the `reason`.".to_owned()] } else { said(word.doc) });
        out.push_str(&format!("      {}: \"{}\";\n", tag.name, named(word.word)));
        for field in members_of(record, word.word).iter().filter(|field| is_shown(record, field)) {
            member(out, "      ", field, !field.required, &said(field.doc), kind(record, field));
        }
        if word.word == "rotating" {
            doc(out, "      ", &["As `rotateSession` answers it, with its new exit.".to_owned()]);
            out.push_str("      session: Session;\n");
        }
        out.push_str("    }\n");
    }
    out.push_str(");\n\n");
}

/// The members that belong to a word: those of an event, or those whose documentation says so.
fn members_of(record: &'static Record, word: &str) -> Vec<Field> {
    if let Some(event) = EVENTS.iter().find(|event| record.name == "Event" && event.name == word) {
        return event.fields.to_vec();
    }
    let of = record.fields.iter().filter_map(|field| belongs(field).map(|(words, about)| (field, words, about)));
    let of = of.filter(|(_, words, _)| words.contains(&word));
    of.map(|(field, _, about)| Field { doc: about.leak(), required: true, ..*field }).collect()
}

/// The words that a member belongs to, as its documentation begins: "Of `rotate` and `rotating`: the reason."
fn belongs(field: &Field) -> Option<(Vec<&'static str>, String)> {
    let (of, about) = field.doc.trim().split_once(": ")?;
    let words = of.strip_prefix("Of `")?.split('`').step_by(2).filter(|word| !word.is_empty()).collect();
    let (first, rest) = about.split_at_checked(1)?;
    Some((words, first.to_uppercase() + rest))
}

fn member(out: &mut String, indent: &str, field: &Field, is_optional: bool, about: &[String], kind: String) {
    let mut about = about.to_vec();
    if let (Shape::Span, Some(last)) = (field.shape, about.last_mut()) {
        last.push_str(" In milliseconds.");
    }
    doc(out, indent, &about);
    out.push_str(&format!("{indent}{}{}: {kind};\n", field.name, if is_optional { "?" } else { "" }));
}

fn kind(record: &Record, field: &Field) -> String {
    match (record.name, field.name, field.shape) {
        (_, "code", _) => "Open<Code>".to_owned(),
        // Why a record can't be used is a text of the core.
        ("Saved", "reason", _) => "\"damaged\" | \"other_version\" | \"other_api\" | \"other_account\"".to_owned(),
        ("Event", _, Shape::Word(words)) if !words.closed => super::shape(field.shape, Side::Answer),
        // A false member is left out.
        (_, _, Shape::Bool) => "true".to_owned(),
        (_, _, Shape::Word(words)) => named(words.name).to_owned(),
        ("Event", _, Shape::Decimal) => "string".to_owned(),
        (_, _, shape) => super::shape(shape, Side::Answer),
    }
}

#[cfg(test)]
mod tests {
    use hopline::contract::Word;

    use super::*;

    fn printed() -> String {
        let mut out = String::new();
        print(&mut out);
        out
    }

    /// The printed text of a type.
    fn of(printed: &str, begin: &str) -> String {
        let rest = printed.split_once(begin).unwrap_or_else(|| panic!("{begin} is missing")).1;
        rest.split("\n\n").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn every_member_is_there_once_in_each_object_that_has_it_and_is_documented() {
        let printed = printed();
        for record in told_types().into_iter().filter(|told| !UNPRINTED.contains(&told.name())).filter_map(Type::record) {
            let name = named(record.name);
            let is_union = tag(record).is_some();
            let of = of(&printed, &if is_union { format!("export type {name} = ") } else { format!("export interface {name} {{") });
            let lines: Vec<&str> = of.lines().collect();
            for field in record.fields.iter().filter(|field| is_shown(record, field)) {
                let named = |line: &&str| line.trim().strip_prefix(field.name).is_some_and(|rest| rest.starts_with([':', '?']));
                let count = lines.iter().filter(|line| named(line)).count();
                let words = tag(record).map_or(&[][..], |(_, words)| words.words);
                let of = |word: &&Word| members_of(record, word.word).iter().any(|member| member.name == field.name);
                let expected = match belongs(field) {
                    Some(_) if is_union => words.iter().filter(of).count(),
                    None if tag(record).is_some_and(|(tag, _)| tag.name == field.name) => words.len(),
                    _ => 1,
                };
                assert_eq!(count, expected, "{name}.{}", field.name);
                let bare = lines.windows(2).find(|pair| named(&pair[1]) && !pair[0].ends_with("*/"));
                assert_eq!(bare, None, "{name}.{} is not documented", field.name);
            }
        }
    }

    #[test]
    fn the_words_that_a_member_belongs_to_are_those_of_its_union() {
        for record in told_types().into_iter().filter_map(Type::record) {
            let Some((_, words)) = tag(record) else { continue };
            let known: Vec<&str> = words.words.iter().map(|word| word.word).collect();
            let named = record.fields.iter().filter_map(belongs).flat_map(|(words, _)| words);
            assert_eq!(named.filter(|word| !known.contains(word)).collect::<Vec<_>>(), Vec::<&str>::new(), "{}", record.name);
        }
    }

    #[test]
    fn words_are_literal_types_and_the_compiler_can_tell_events_and_verdicts_apart() {
        let printed = printed();
        for line in [
            "export type Advice = \"stop\" | \"reauthenticate\" | ",
            "export type Effect = \"none\" | \"unknown\" | \"done\";\n",
            "export type ErrorKind = \"invalid\" | \"refused\" | ",
            "export type WalkEnd = \"last_page\" | ",
            "  advice: Advice;\n",
            "  code?: Open<Code>;\n",
            "  refused_by_us?: true;\n",
            "      event: \"accepted\";\n      /** The session. */\n      session_id: string;\n      /** The charge in USD, as the service estimates it. */\n      estimated_charge_usd?: string;\n",
            "      /** The time until the next send. In milliseconds. */\n      delay_ms: number;\n",
            "      verdict: \"rotated\";\n",
            "  unit_price: number;\n",
            "  /** The `data` of a success that does not fit its type; of `not_ready`, of the last read of the session. The value may hold secrets. Not enumerable. */\n  raw?: Json;\n",
        ] {
            assert!(printed.contains(line), "{line}\n{printed}");
        }
    }

    #[test]
    fn an_event_has_the_name_of_a_method_of_a_log() {
        let levels = levels();
        for line in ["  accepted: \"info\",\n", "  in_doubt: \"warn\",\n", "  pool_held: \"info\",\n"] {
            assert!(levels.contains(line), "{line}{levels}");
        }
        assert!(!levels.contains("sent") && !levels.contains("warning"), "{levels}");
    }

    #[test]
    fn nothing_is_said_in_the_words_of_another_host() {
        let printed = printed();
        for word in ["[`", "::", "is_refused_by_us", "aller's", "max_pages", "Default: no"] {
            assert_eq!(printed.lines().find(|line| line.contains(word)), None, "{word}");
        }
    }
}
