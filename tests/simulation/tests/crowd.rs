//! Many commands at once, in random worlds.

use hopline_simulation::crowd;

#[test]
fn a_crowd_of_commands_ends_as_it_should_whatever_happens() {
    let first: u64 = std::env::var("HOPLINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (mut commands, mut sends, mut crashes) = (0, 0, 0);
    for seed in first..first + 10_000 {
        let ran = crowd(seed).unwrap_or_else(|violation| panic!("HOPLINE_SEED={seed}: {violation}"));
        commands += ran.commands;
        sends += ran.sends;
        crashes += ran.crashes;
    }
    println!("{commands} commands, {sends} sends, {crashes} crashes");
    assert!(commands > 0 && sends > 0 && crashes > 0);
}
