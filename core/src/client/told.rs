//! The objects that hosts are told, for whoever prints their types.

use super::event::Event;
use super::json::AnswerFacts;
use crate::contract::{Record, Shape, Shaped};
use crate::policy::{ERROR, IpRange, Quote};
use crate::state::{SavedPage, Verdict};

/// Each of them, without those that they are made of.
pub fn told() -> Vec<&'static Record> {
    let shapes = [Event::SHAPE, SavedPage::SHAPE, Verdict::SHAPE, Quote::SHAPE, IpRange::SHAPE, AnswerFacts::SHAPE];
    let records = shapes.into_iter().filter_map(|shape| if let Shape::Record(record) = shape { Some(record) } else { None });
    std::iter::once(&ERROR).chain(records).collect()
}
