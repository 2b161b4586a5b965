//! Lives of many jobs at once, of one program and of several on one store: from seeds that are the same in each run, and from some that
//! the commit chooses, so that each run of another commit sees others. `cargo xtask swarm` lives as many as you like.

use std::io::Write;
use std::process::Command;

use hopline_world::{Kind, seeded, side_by_side};

const LIVES: u64 = 2000;
/// So many steps at least are lived of a commit's own: some seconds.
const STEPS: u64 = 2_000_000;
/// So many seeds are lived at a time, so that a commit always lives the same.
const AT_ONCE: u64 = 64;

#[test]
fn whatever_happens_in_a_life_everything_is_as_it_should_be() {
    let steps = live(0..LIVES);
    println!("{steps} steps in {} lives", LIVES * Kind::ALL.len() as u64);
}

#[test]
fn whatever_happens_in_the_lives_of_a_commit_everything_is_as_it_should_be() {
    let (commit, first) = own_seeds();
    // Past what a test prints only when it fails.
    let tells = |said: String| _ = writeln!(std::io::stderr(), "{said}");
    tells(format!("lives from seed {first} on, which is of commit {commit}"));
    let (mut steps, mut next) = (0, first);
    while steps < STEPS {
        steps += live(next..next + AT_ONCE);
        next += AT_ONCE;
    }
    tells(format!("{steps} steps in the lives of {} seeds", next - first));
}

/// Lives the lives of these seeds; how many steps they took.
fn live(seeds: std::ops::Range<u64>) -> u64 {
    let lives: Vec<(Kind, u64)> = seeds.flat_map(|seed| Kind::ALL.map(|kind| (kind, seed))).collect();
    let lived = side_by_side(&lives, |(kind, seed)| seeded(*kind, *seed, None));
    let steps = lives.iter().zip(lived).map(|((kind, seed), lived)| {
        lived.unwrap_or_else(|found| panic!("{found}\n  again: cargo xtask world seed {} {seed}", format!("{kind:?}").to_lowercase()))
    });
    steps.sum()
}

/// The commit that is tried, and the seed that its own lives begin with, far from all that others begin with. A tree without a
/// history is tried with the seeds of none.
fn own_seeds() -> (String, u64) {
    let asked = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let commit = asked.ok().filter(|asked| asked.status.success()).and_then(|asked| String::from_utf8(asked.stdout).ok());
    let commit = commit.map_or_else(|| "0000000000000000".to_owned(), |commit| commit.trim().to_owned());
    let number = commit.get(..12).and_then(|hash| u64::from_str_radix(hash, 16).ok()).unwrap_or_default();
    (commit, (1 << 60) + (number << 12))
}
