//! Lives of many jobs at once, from seeds.

use hopline::contract::Api;
use hopline_world::seeded;

#[test]
fn whatever_happens_in_a_life_everything_is_as_it_should_be() {
    for api in [Api::Agent, Api::Reseller] {
        let begun = std::time::Instant::now();
        let (mut steps, mut wrong) = (0, 0);
        for seed in 0..std::env::var("SEEDS").map_or(300, |seeds| seeds.parse().unwrap_or(300)) {
            match seeded(api, seed, None) {
                Ok(some) => steps += some,
                Err(found) => {
                    println!("seed {seed}: {found}");
                    wrong += 1;
                    if wrong > 3 {
                        break;
                    }
                }
            }
        }
        println!("{api:?}: {steps} steps in {:?}", begun.elapsed());
    }
}
