//! Lives of many jobs at once, of one program and of several on one store, from seeds that are the same in each run; `cargo xtask swarm`
//! lives others.

use hopline_world::{Kind, seeded, side_by_side};

const LIVES: u64 = 2000;

#[test]
fn whatever_happens_in_a_life_everything_is_as_it_should_be() {
    let lives: Vec<(Kind, u64)> = (0..LIVES).flat_map(|seed| Kind::ALL.map(|kind| (kind, seed))).collect();
    let lived = side_by_side(&lives, |(kind, seed)| seeded(*kind, *seed, None));
    let mut steps = 0;
    for ((kind, seed), lived) in lives.iter().zip(lived) {
        match lived {
            Ok(some) => steps += some,
            Err(found) => panic!("{found}\n  again: cargo xtask world seed {} {seed}", format!("{kind:?}").to_lowercase()),
        }
    }
    println!("{steps} steps in {} lives", lives.len());
}
