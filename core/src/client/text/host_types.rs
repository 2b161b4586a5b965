//! The objects that hosts get, for the printer of their types.

use std::sync::LazyLock;

use crate::client::text::event::Event;
use crate::client::text::json::AnswerFacts;
use crate::contract::pools::{KnownPools, OpenedPool, PoolLease, PoolStatus};
use crate::contract::{EventEntry, Field, Record, Shape, Shaped};
use crate::engine::EVENTS;
use crate::policy::{ERROR, IpRange, Quote};
use crate::state::{SavedPage, Verdict};

/// Each of them, without those that they are made of.
pub fn host_types() -> Vec<&'static Record> {
    let answers = [OpenedPool::SHAPE, PoolLease::SHAPE, PoolStatus::SHAPE, KnownPools::SHAPE];
    let shapes = [Shape::Record(event()), SavedPage::SHAPE, Verdict::SHAPE, Quote::SHAPE, IpRange::SHAPE, AnswerFacts::SHAPE];
    let shapes = shapes.into_iter().chain(answers);
    let records = shapes.filter_map(|shape| if let Shape::Record(record) = shape { Some(record) } else { None });
    std::iter::once(&ERROR).chain(records).collect()
}

/// An event, whose members that only some events have say which: "Of `ordered` and `order_status`: the order's number."
fn event() -> &'static Record {
    static EVENT: LazyLock<Record> = LazyLock::new(|| {
        let record = Event::SHAPE.record();
        let fields = record.fields.iter().map(|field| Field { doc: doc(field).leak(), ..*field });
        Record { fields: fields.collect::<Vec<_>>().leak(), ..*record }
    });
    &EVENT
}

/// The prose of a member of all events, from those that have it. Events that say the same of it are named together.
fn doc(member: &Field) -> String {
    let mut said: Vec<(&str, Vec<String>)> = Vec::new();
    for EventEntry { name, fields, .. } in EVENTS {
        let Some(field) = fields.iter().find(|field| field.name == member.name) else { continue };
        let events = match said.iter_mut().find(|(doc, _)| *doc == field.doc.trim()) {
            Some((_, events)) => events,
            None => &mut said.push_mut((field.doc.trim(), Vec::new())).1,
        };
        events.push(format!("`{name}`"));
    }
    if said.is_empty() {
        return member.doc.to_owned();
    }
    let said = said.into_iter().map(|(doc, events)| match events.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("Of {} and {last}: {}", others.join(", "), lower(doc)),
        events => format!("Of {}: {}", events.concat(), lower(doc)),
    });
    said.collect::<Vec<_>>().join(" ")
}

/// A sentence as it goes on after a colon. An abbreviation stays as it is.
fn lower(sentence: &str) -> String {
    match sentence.split_at_checked(1) {
        Some((first, rest)) if rest.starts_with(|second: char| !second.is_uppercase()) => first.to_lowercase() + rest,
        _ => sentence.to_owned(),
    }
}
