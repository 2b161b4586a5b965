//! Prints the references of the documentation site from the table, as parts of pages in Markdown: a page of `core/docs` says where each goes.

use std::fmt::Write;

use hopline::client::{EVENTS, EventName, Phase, RecordKind};
use hopline::contract::agent::SessionStatus;
use hopline::contract::reseller::StaticOrderStatus;
use hopline::contract::{Api, Endpoint, Field, FieldPlace, Level, Record, Shape, Shaped, pools};
use hopline::policy::{Advice, Automatic, CODES, ERROR, Effect, Kind as ErrorKind};

use crate::model::{
    AGENT, CLIENT, CallOption, Kind, OPTIONS, RESELLER, RETRY, USES, Use, WALK, camel, lines, operations, own_options, pool_fields,
    pool_requests, snake, unlinked, use_doc,
};

/// Writes a line.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {
        // A text takes whatever is written to it.
        _ = writeln!($out, $($text)*)
    };
}

/// The parts: their names and their text.
pub fn files() -> Vec<(String, String)> {
    let parts = [
        ("codes", codes()),
        ("kinds", list(ErrorKind::SHAPE)),
        ("effects", list(Effect::SHAPE)),
        ("advice", list(Advice::SHAPE)),
        ("error_fields", members(ERROR.fields)),
        ("events", events()),
        ("levels", list(Level::SHAPE)),
        ("session_statuses", list(SessionStatus::SHAPE)),
        ("order_statuses", list(StaticOrderStatus::SHAPE)),
        ("phases", list(Phase::SHAPE)),
        ("agent_operations", operations_of(Api::Agent)),
        ("reseller_operations", operations_of(Api::Reseller)),
        ("client_options", options(CLIENT.iter())),
        ("agent_options", options(AGENT.iter())),
        ("reseller_options", options(RESELLER.iter())),
        ("retry_options", options(RETRY.iter())),
        ("call_options", call_options()),
        ("walk_options", options(WALK.iter())),
        ("pool_requests", requests_about_pools()),
        ("pool_reasons", list(pools::PoolHoldReason::SHAPE)),
        ("unavailable_reasons", list(pools::PoolReason::SHAPE)),
        ("slot_states", list(pools::PoolSlotState::SHAPE)),
        ("lease_advice", list(pools::LeaseAdvice::SHAPE)),
        ("record_kinds", list(RecordKind::SHAPE)),
        ("store_calls", store_calls()),
        ("rules", rules(include_str!("../../../core/src/policy/rules.rs"))),
        ("pool_rules", rules(include_str!("../../../core/src/pool/rules.rs"))),
        ("scopes", scopes()),
    ];
    parts.into_iter().map(|(name, text)| (format!("{name}.md"), text)).collect()
}

/// A description as one line.
fn said(doc: &str) -> String {
    lines(&unlinked(doc)).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// A description in a cell of a table.
fn cell(doc: &str) -> String {
    said(doc).replace('|', "\\|")
}

/// A name of the table as hosts spell it: Rust and Python, then JavaScript, Kotlin and Swift.
fn spelled(name: &str) -> String {
    let (snake, camel) = (snake(name), camel(name));
    if snake == camel { format!("`{snake}`") } else { format!("`{snake}`, `{camel}`") }
}

/// The words of a list, each with its meaning.
fn list(shape: Shape) -> String {
    let Shape::Word(words) = shape else { return String::new() };
    let mut out = String::from("| | |\n|---|---|\n");
    words.words.iter().for_each(|word| put!(out, "| `{}` | {} |", word.word, cell(word.doc)));
    out
}

fn codes() -> String {
    let mut out = String::new();
    for row in CODES {
        put!(out, "### {}\n", row.code);
        put!(out, "HTTP {}: {}.\n", row.status, row.meaning);
        put!(out, "- **What to do:** {}. `advice` is `{}`.", row.advice.in_words(), row.advice.as_str());
        let automatic = match row.automatic {
            Automatic::No => "Hopline does nothing by itself.".to_owned(),
            automatic => format!("{}.", automatic.as_str()),
        };
        put!(out, "- **By itself:** {automatic}");
        let settled = if row.settles { "this answer ends it, and its key can't charge any more" } else { "this answer does not end it" };
        put!(out, "- **The operation:** {settled}.\n");
    }
    out
}

/// The type of a member, for people.
fn kind(shape: Shape) -> String {
    match shape {
        Shape::Text | Shape::Label => "text".to_owned(),
        Shape::Secret => "secret".to_owned(),
        Shape::Bool => "yes or no".to_owned(),
        Shape::Integer => "whole number".to_owned(),
        Shape::Time => "time".to_owned(),
        Shape::Span => "duration".to_owned(),
        Shape::Error => "error".to_owned(),
        Shape::Decimal => "decimal".to_owned(),
        Shape::Json => "any JSON".to_owned(),
        Shape::Word(words) => words.words.iter().map(|word| format!("`{}`", word.word)).collect::<Vec<_>>().join(", "),
        Shape::Record(record) => record.name.to_owned(),
        Shape::List(item) => format!("list of: {}", kind(*item)),
        Shape::OneOrMany(item) => format!("one or more: {}", kind(*item)),
    }
}

fn members(fields: &[Field]) -> String {
    let mut out = String::from("| Member | Type | |\n|---|---|---|\n");
    for field in fields {
        put!(out, "| {} | {} | {} |", spelled(field.name), kind(field.shape), cell(field.doc));
    }
    out
}

fn events() -> String {
    let Shape::Word(names) = EventName::SHAPE else { return String::new() };
    let mut out = String::new();
    for (event, word) in EVENTS.iter().zip(names.words) {
        put!(out, "### {}\n", event.name);
        put!(out, "Level `{}`. {}\n", event.level.as_str(), said(word.doc));
        event.fields.iter().for_each(|field| put!(out, "- {}: {}", spelled(field.name), said(field.doc)));
        out.push('\n');
    }
    out
}

fn operations_of(api: Api) -> String {
    let mut out = String::new();
    operations(api).for_each(|endpoint| operation(&mut out, endpoint));
    out
}

fn operation(out: &mut String, endpoint: &Endpoint) {
    put!(out, "### {}\n", endpoint.name);
    let camel = camel(endpoint.name);
    put!(out, "`{} {}`; in JavaScript, Kotlin and Swift `{camel}`.\n", endpoint.method.as_str(), endpoint.path);
    put!(out, "{}\n", said(endpoint.doc));
    let charge = if endpoint.paid { "It can charge money. " } else { "" };
    let Shape::Word(safeties) = hopline::contract::Safety::SHAPE else { return };
    let safety = safeties.words.iter().find(|word| word.word == endpoint.safety.as_str()).map_or("", |word| word.doc);
    put!(out, "{charge}After a lost answer: {}\n", lower(&said(safety)));
    parameters(out, endpoint.request);
}

/// A sentence as it goes on after a colon.
fn lower(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

fn parameters(out: &mut String, request: &'static Record) {
    if request.fields.is_empty() {
        return;
    }
    put!(out, "| Parameter | Type | |\n|---|---|---|");
    for field in pool_fields(request) {
        let required = if field.required && !matches!(field.place, FieldPlace::Header(_)) { "Required. " } else { "" };
        put!(out, "| {} | {} | {required}{} |", spelled(field.name), kind(field.shape), cell(field.doc));
    }
    out.push('\n');
}

fn options<'a>(options: impl Iterator<Item = &'a CallOption>) -> String {
    let mut out = String::from("| Option | |\n|---|---|\n");
    for option in options {
        let name = match option.kind {
            Kind::Time => format!("`{}`, in JavaScript `{}`", option.plain(), camel(option.name)),
            _ => spelled(option.name),
        };
        put!(out, "| {name} | {} |", cell(option.doc));
    }
    out
}

fn call_options() -> String {
    let mut out = String::new();
    let is_of_calls = |of: &Use| !matches!(of, Use::Client | Use::AgentClient | Use::ResellerClient);
    for of in USES.into_iter().filter(is_of_calls) {
        let mut own = own_options(of).peekable();
        if own.peek().is_some() {
            put!(out, "### {}\n", heading(use_doc(of)));
            put!(out, "{}", options(own));
        }
    }
    debug_assert!(OPTIONS.iter().all(|option| out.contains(option.plain())), "every option is of some call");
    out
}

fn heading(doc: &str) -> String {
    let first = doc.split('.').next().unwrap_or(doc);
    format!("Of {first}")
}

fn requests_about_pools() -> String {
    let mut out = String::new();
    for request in pool_requests() {
        put!(out, "### {}\n", request.name);
        put!(out, "{}\n", said(request.doc));
        parameters(&mut out, request);
    }
    out
}

/// The calls of a store, by the comments of their source: they are no part of the table.
fn store_calls() -> String {
    let source = include_str!("../../../core/src/state/store.rs");
    let calls = source.split("pub enum StoreCall {\n").nth(1).and_then(|rest| rest.split("\n}\n").next()).unwrap_or_default();
    let (mut out, mut doc) = (String::new(), Vec::new());
    for line in calls.lines() {
        let (inner, line) = (line.starts_with("        "), line.trim());
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if let Some(name) = line.strip_suffix(" {").filter(|_| !inner) {
            put!(out, "### {}\n", name.to_lowercase());
            put!(out, "{}\n", said(&std::mem::take(&mut doc).join("\n")));
        } else if let Some((name, _)) = line.split_once(':').filter(|_| inner) {
            put!(out, "- `{name}`: {}", said(&std::mem::take(&mut doc).join("\n")));
        } else if line == "}," {
            out.push('\n');
        }
    }
    out
}

/// The rules of the proof, by the comments of their source.
fn rules(source: &str) -> String {
    let (mut out, mut doc) = (String::from("| | |\n|---|---|\n"), Vec::new());
    for line in source.split("\nrules! {").nth(1).unwrap_or_default().lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            doc.push(text.trim());
        } else if let Some(name) = line.strip_suffix(',').filter(|_| !doc.is_empty()) {
            put!(out, "| `{name}` | {} |", cell(&std::mem::take(&mut doc).join("\n")));
        } else if line == "}" {
            break;
        }
    }
    out
}

/// The situations of the proof, with how many worlds were visited in each.
fn scopes() -> String {
    let mut out = String::from("| Situation | Worlds |\n|---|---:|\n");
    for line in include_str!("../../world/tests/scopes.txt").lines() {
        let worlds = line.split_whitespace().next().unwrap_or_default();
        let (_, name) = line.split_once("ends  ").unwrap_or_default();
        put!(out, "| {name} | {worlds} |");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_part_is_empty_and_none_has_a_link_of_rusts_documentation() {
        for (name, text) in files() {
            assert!(text.lines().count() > 2, "{name} is empty");
            assert!(!text.contains("](") && !text.contains("[`"), "{name}: {text}");
        }
    }

    #[test]
    fn every_code_event_operation_and_call_of_a_store_has_a_heading() {
        let part = |wanted: &str| files().into_iter().find(|(name, _)| name == wanted).expect("is there").1;
        let headings = |name: &str| part(name).lines().filter(|line| line.starts_with("### ")).count();
        assert_eq!(headings("codes.md"), CODES.len());
        assert_eq!(headings("events.md"), EVENTS.len());
        assert_eq!(headings("agent_operations.md"), operations(Api::Agent).count());
        assert_eq!(headings("reseller_operations.md"), operations(Api::Reseller).count());
        assert_eq!(headings("store_calls.md"), 6);
    }
}
