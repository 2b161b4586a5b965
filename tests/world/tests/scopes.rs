//! Every world of every scope.

use hopline_world::{SCOPES, explore};

#[test]
fn every_world_of_every_scope_is_as_it_should_be() {
    for scope in SCOPES {
        let begun = std::time::Instant::now();
        let explored = explore(scope, None, None);
        println!("{}: {} states, {} ends, {:?}", scope.name, explored.states, explored.ends, begun.elapsed());
        if let Some(found) = explored.found {
            println!("{found}");
        }
    }
}
