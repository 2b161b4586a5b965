//! Purchases that are begun at once, in a client that keeps its names in its own memory: whether each takes longer beside many, with a day's cap
//! and without.

use std::time::Instant;

use hopline::client::{CallOptions, ClientOptions};
use hopline::contract::Secret;

use crate::rounds::{Beside, Row, Scale};
use crate::service::{PURCHASE, Service};
use crate::spaced;

const ROUNDS: usize = 5;

pub(crate) fn at_once(scale: Scale) -> Vec<Row> {
    let sizes = [1_000, 4_000, 16_000].map(|many| scale.many(many));
    let mut rows = Vec::new();
    for (capped, how) in [(true, " under a cap"), (false, "")] {
        // Sizes take turns, as a machine changes its speed.
        let rounds: Vec<[f64; 3]> = (0..ROUNDS).map(|_| sizes.map(|many| each(many, capped))).collect();
        let figures = |size: usize| rounds.iter().map(|round| round[size]).collect::<Vec<_>>();
        rows.extend((1..3).map(|size| Row {
            work: format!("one of {} purchases at once{how}", spaced(sizes[size])),
            figures: figures(size),
            unit: "µs",
            beside: Some(Beside { what: format!("of {}", spaced(sizes[0])), figures: figures(0) }),
            goal: Some(1.3),
        }));
    }
    rows
}

/// The time of one of so many purchases, in microseconds.
fn each(many: u32, capped: bool) -> f64 {
    let mut service = Service::of(ClientOptions {
        base_url: "https://api.example/v1".into(),
        api_key: Some(Secret::new("key")),
        daily_cap_usd: capped.then(|| i64::from(many).into()),
        ..ClientOptions::default()
    });
    let begun = Instant::now();
    for _ in 0..many {
        let options = CallOptions { expected_charge_usd: Some(1.into()), ..CallOptions::default() };
        service.client.start_json("create_session", PURCHASE, options);
    }
    let (completed, _) = service.drain();
    assert_eq!((completed.len(), service.sends), (many as usize, many), "each was bought");
    for command in completed {
        service.client.take_answer(command).expect("it has completed").expect("it was bought");
    }
    service.drain();
    begun.elapsed().as_secs_f64() * 1e6 / f64::from(many)
}
