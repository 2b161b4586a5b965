//! Lives of pools, from seeds that are the same in each run.

use hopline_world::{PoolsLived, pool_life, side_by_side};

const LIVES: u64 = 200;

#[test]
fn whatever_happens_pools_keep_to_their_size_and_lend_what_is_theirs() {
    let seeds: Vec<u64> = (0..LIVES).collect();
    let mut all = PoolsLived::default();
    for (seed, lived) in seeds.iter().zip(side_by_side(&seeds, |seed| pool_life(*seed))) {
        let lived = lived.unwrap_or_else(|wrong| panic!("{wrong}\n  in the life of seed {seed}"));
        all.steps += lived.steps;
        all.bought += lived.bought;
        all.granted += lived.granted;
        all.rotated += lived.rotated;
    }
    println!("{all:?}");
    assert!(all.bought > 1000 && all.granted > 1000 && all.rotated > 100, "something happens in them: {all:?}");
}

#[test]
fn a_large_pool_comes_back_from_an_outage_and_from_an_empty_balance() {
    let lived = hopline_world::pool_fleet(7).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{lived:?}");
    assert!(lived.bought > 300 && lived.granted > 10_000 && lived.rotated > 100, "something happens in it: {lived:?}");
}

#[test]
fn a_month_with_restarts_leaves_one_record_a_slot() {
    let lived = hopline_world::pool_month(7).unwrap_or_else(|wrong| panic!("{wrong}"));
    println!("{lived:?}");
    assert!(lived.bought > 100 && lived.granted > 1000, "something happens in it: {lived:?}");
}
