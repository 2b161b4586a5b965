//! Each rule is needed: without it the same checker finds harm.

use hopline::policy::Rule;
use hopline_world::{SCOPES, explore};

#[test]
fn every_rule_is_needed() {
    let only = std::env::var("RULE").unwrap_or_default();
    for rule in Rule::ALL.into_iter().filter(|rule| format!("{rule:?}").contains(&only)) {
        let begun = std::time::Instant::now();
        let mut states = 0;
        let found = [(1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 1, 0), (2, 1, 1)].into_iter().find_map(|limits| {
            SCOPES.iter().find_map(|scope| {
                let explored = explore(scope, Some(limits), Some(rule));
                states += explored.states;
                explored.found.map(|found| (scope.name, limits, found))
            })
        });
        match found {
            Some((scope, limits, found)) => {
                println!("without {rule:?}, {scope}, {limits:?}, {states} states, {:?}: {}", begun.elapsed(), found.wrong)
            }
            None => println!("WITHOUT {rule:?} NOTHING GOES WRONG after {states} states, {:?}", begun.elapsed()),
        }
    }
}
