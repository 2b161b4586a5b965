//! The output of `cargo xtask world workers` and `cargo xtask bench workers`.

use std::time::Instant;

use cap::Cap;
use hopline_world::{Fleet, PLAN_SEED, Phase, WorkersLived, plot};
use serde_json::json;

/// Counts the bytes in use, for what a client takes.
#[global_allocator]
static ALLOCATED: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

fn allocated() -> usize {
    ALLOCATED.allocated()
}

/// The sizes of the table: a hundred sessions a worker, and a pool for a hundred workers.
const SIZES: [Fleet; 3] = [
    Fleet { workers: 10, sessions: 1_000, pools: 1 },
    Fleet { workers: 100, sessions: 10_000, pools: 1 },
    Fleet { workers: 1_000, sessions: 100_000, pools: 10 },
];

const COLUMNS: [&str; 11] = [
    "Workers × sessions, pools",
    "Purchases a minute",
    "Statements each",
    "Statements a second: most",
    "in use",
    "KB a worker",
    "B a session there",
    "B a session in the store",
    "µs an event: purchases",
    "in use",
    "Seconds to the first takeover, half of them, 99 %, the last one",
];

/// A fleet of that size, line by line.
pub(crate) fn one(workers: &str, sessions: &str, pools: Option<&str>) -> Result<bool, String> {
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    let fleet = Fleet { workers: number(workers)?, sessions: number(sessions)?, pools: pools.map_or(Ok(1), number)? };
    let begun = Instant::now();
    let lived = fleet.live(PLAN_SEED, allocated)?;
    COLUMNS.iter().zip(row(fleet, &lived)).for_each(|(column, cell)| println!("{column}: {cell}"));
    for (what, phase) in [("purchases", &lived.bought), ("a minute of use", &lived.used), ("takeovers", &lived.taken)] {
        println!("{what}: {phase:?}");
    }
    println!("first leases in place of those that died: {} s", seconds(&lived.first_leases));
    println!("{:.0} s", begun.elapsed().as_secs_f64());
    Ok(true)
}

/// A row for each size, and a drawing of the takeovers.
pub(crate) fn table(drawing: &str) -> Result<serde_json::Value, String> {
    let lived: Vec<(Fleet, WorkersLived)> =
        SIZES.into_iter().map(|fleet| Ok((fleet, fleet.live(PLAN_SEED, allocated)?))).collect::<Result<_, String>>()?;
    let curves: Vec<_> = lived.iter().map(|(fleet, lived)| (format!("{} workers", fleet.workers), lived.takeovers.as_slice())).collect();
    std::fs::write(drawing, plot(&curves)).map_err(|error| format!("{drawing}: {error}"))?;
    let rows: Vec<Vec<String>> = lived.iter().map(|(fleet, lived)| row(*fleet, lived)).collect();
    Ok(json!({ "versions": { "hopline": env!("CARGO_PKG_VERSION") }, "columns": COLUMNS, "rows": rows }))
}

fn row(fleet: Fleet, lived: &WorkersLived) -> Vec<String> {
    let sessions = f64::from(fleet.sessions);
    let minutes = lived.bought.lasts as f64 / 60_000.0;
    let [clients, store] = lived.memory.map(|bytes| bytes as f64);
    vec![
        format!("{} × {}, {}", fleet.workers, fleet.sessions, fleet.pools),
        format!("{:.0}", sessions / minutes),
        format!("{:.1}", lived.bought.statements.all() as f64 / sessions),
        lived.bought.busiest.max(lived.taken.busiest).to_string(),
        format!("{:.1}", lived.used.statements.all() as f64 / (lived.used.lasts as f64 / 1000.0)),
        format!("{:.0}", clients / f64::from(fleet.workers) / 1000.0),
        format!("{:.0}", clients / sessions),
        format!("{:.0}", store / sessions),
        per_event(&lived.bought),
        per_event(&lived.used),
        seconds(&lived.takeovers),
    ]
}

fn per_event(phase: &Phase) -> String {
    format!("{:.0}", phase.took.as_secs_f64() * 1e6 / phase.events as f64)
}

/// The first, the middle, the 99th of a hundred and the last.
fn seconds(times: &[i64]) -> String {
    let last = times.len().saturating_sub(1);
    let at = [0, last / 2, last * 99 / 100, last]
        .map(|place| times.get(place).map_or(String::new(), |at| format!("{:.0}", *at as f64 / 1000.0)));
    at.join(", ")
}
