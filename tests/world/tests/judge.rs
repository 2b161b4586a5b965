//! The quickest judge of core as a whole, for `cargo xtask mutants`: the shared vectors, and every scope with little that may go wrong.

use std::path::Path;

use hopline_host_rust::vectors::run_directory;
use hopline_world::{SCOPES, Scope, explore, side_by_side};

/// A message and an act of a person, or trouble of a machine and an act: thousands of worlds, in a second.
const LITTLE: [(u8, u8, u8); 2] = [(1, 0, 1), (0, 1, 1)];

/// One test for both: what a vector has noticed need not be looked for in worlds.
#[test]
fn every_vector_holds_and_every_world_with_little_trouble_is_as_it_should_be() {
    let report = run_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../vectors"));
    assert!(report.failures.is_empty(), "\n{}", report.failures.join("\n"));
    let walks: Vec<(&'static Scope, (u8, u8, u8))> = SCOPES.iter().flat_map(|scope| LITTLE.map(|limits| (scope, limits))).collect();
    for ((scope, _), explored) in walks.iter().zip(side_by_side(&walks, |(scope, limits)| explore(scope, Some(*limits), None))) {
        if let Some(found) = explored.found {
            panic!("{}: {found}", scope.name);
        }
    }
}
