//! Every world of every scope is as it should be, and there are as many as were reviewed.

use std::fmt::Write;

use hopline_world::{SCOPES, Scope, explore, side_by_side};

/// How many worlds each scope has, and what README says of all of them.
const REVIEWED: &str = include_str!("scopes.txt");

#[test]
fn every_world_of_every_scope_is_as_it_should_be() {
    let (mut counted, mut all) = (String::new(), 0);
    let scopes: Vec<&'static Scope> = SCOPES.iter().collect();
    let explored = side_by_side(&scopes, |scope| explore(scope, None, None));
    for (scope, explored) in scopes.iter().zip(explored) {
        if let Some(found) = explored.found {
            panic!("{}: {found}", scope.name);
        }
        writeln!(counted, "{:>8} worlds, {:>7} ends  {}", explored.states, explored.ends, scope.name).expect("a text takes all");
        all += explored.states;
    }
    print!("{counted}");
    assert_eq!(counted, REVIEWED, "if the difference is meant, review it and write what was counted to tests/scopes.txt");
    let digits = all.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    let said = format!("{} different worlds", groups.join(" "));
    let readme = include_str!("../../../README.md").replace('\n', " ");
    for said in [said, format!("{} situations", scopes.len())] {
        assert!(readme.contains(&said), "the README must say `{said}`");
    }
}
