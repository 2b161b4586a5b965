//! Every world of every scope.

use hopline_world::{SCOPES, explore};

#[test]
fn every_world_of_every_scope_is_as_it_should_be() {
    let only = std::env::var("SCOPE").unwrap_or_default();
    for scope in SCOPES.iter().filter(|scope| scope.name.contains(&only)) {
        let begun = std::time::Instant::now();
        let explored = explore(scope, None, None);
        println!("{}: {} states, {} ends, {:?}", scope.name, explored.states, explored.ends, begun.elapsed());
        if let Some(found) = explored.found {
            println!("{found}");
        }
    }
}
