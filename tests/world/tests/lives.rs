//! Lives of many jobs at once, from seeds that are the same in each run; `cargo xtask swarm` lives others.

use hopline_world::{Kind, seeded};

const LIVES: u64 = 2000;

#[test]
fn whatever_happens_in_a_life_everything_is_as_it_should_be() {
    for kind in Kind::ALL {
        let mut steps = 0;
        for seed in 0..LIVES {
            match seeded(kind, seed, None) {
                Ok(some) => steps += some,
                Err(found) => panic!("{found}\n  again: cargo xtask world seed {} {seed}", format!("{kind:?}").to_lowercase()),
            }
        }
        println!("{kind:?}: {steps} steps in {LIVES} lives");
    }
}
