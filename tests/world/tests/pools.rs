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
