//! A small fleet: each session is bought once, what a rack had is taken over, and the store is asked for little.

use hopline_world::{Fleet, PLAN_SEED, plot};

#[test]
fn a_rack_of_workers_dies_and_others_have_its_sessions_a_minute_later() {
    let fleet = Fleet { workers: 10, sessions: 500, pools: 1 };
    let lived = fleet.live(PLAN_SEED, || 0).unwrap_or_else(|wrong| panic!("{wrong}; again: cargo xtask world workers 10 500"));
    let statements = lived.bought.statements.all();
    assert!(statements < 12 * 500, "a purchase is some nine statements: {statements}");
    assert_eq!(lived.used.statements.spends, 0, "nothing is bought beside");
    let a_minute = lived.used.statements.all() / 10;
    assert!(a_minute <= 60, "four signs of life and twenty looks at the pool's record, by each worker: {a_minute}");
    let (first, last) = (lived.takeovers[0], *lived.takeovers.last().expect("a rack had sessions"));
    assert!(first <= 65_000, "claims end after a minute: {first} ms");
    assert!(lived.takeovers.len() == 50 && last <= 90_000, "all are with others: {last} ms");
    let drawn = plot(&[("10 workers".to_owned(), &lived.takeovers)]);
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n") && drawn.contains("10 workers"));
}
