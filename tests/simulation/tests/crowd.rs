//! Many commands at once, in random worlds.

use hopline::contract::Api;
use hopline_simulation::crowd;

fn run(api: Api, runs: u64) {
    let first: u64 = std::env::var("HOPLINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut commands, mut sends, mut crashes) = (0, 0, 0);
    for seed in first..first + runs {
        let ran = crowd(api, seed).unwrap_or_else(|violation| panic!("HOPLINE_SEED={seed}: {violation}"));
        commands += ran.commands;
        sends += ran.sends;
        crashes += ran.crashes;
    }
    println!("{commands} commands, {sends} sends, {crashes} crashes");
    assert!(commands > 0 && sends > 0 && crashes > 0);
}

#[test]
fn a_crowd_of_commands_ends_as_it_should_whatever_happens() {
    run(Api::Agent, 10_000);
}

#[test]
fn a_crowd_of_orders_and_adjustments_ends_as_it_should_whatever_happens() {
    run(Api::Reseller, 2_000);
}
