//! The objects that hosts are told, for whoever prints their types.

use super::event::Event;
use super::json::AnswerFacts;
use crate::contract::pools::{KnownPools, OpenedPool, PoolLease, PoolStatus};
use crate::contract::{Record, Shape, Shaped};
use crate::policy::{ERROR, IpRange, Quote};
use crate::state::{SavedPage, Verdict};

/// Each of them, without those that they are made of.
pub fn told() -> Vec<&'static Record> {
    let answers = [OpenedPool::SHAPE, PoolLease::SHAPE, PoolStatus::SHAPE, KnownPools::SHAPE];
    let shapes = [Event::SHAPE, SavedPage::SHAPE, Verdict::SHAPE, Quote::SHAPE, IpRange::SHAPE, AnswerFacts::SHAPE];
    let shapes = shapes.into_iter().chain(answers);
    let records = shapes.filter_map(|shape| if let Shape::Record(record) = shape { Some(record) } else { None });
    std::iter::once(&ERROR).chain(records).collect()
}
