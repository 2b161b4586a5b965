//! Every sequence of outcomes, failures and crashes of purchases under a daily cap.

use hopline::policy::Rule;
use hopline_simulation::spending;

#[test]
fn no_more_is_bought_in_a_day_than_its_cap_allows_on_any_path() {
    let walked = spending(2, None);
    println!("walked {} paths under a cap, and every one ended as it should", walked.paths);
    assert_eq!(walked.violation, None);
}

#[test]
fn every_rule_of_the_cap_is_needed_without_it_the_search_finds_harm() {
    for rule in [Rule::NewKeyCounts, Rule::NewDayCounts, Rule::TotalIsSaved, Rule::TotalIsHandedOver] {
        let mut paths = 0;
        let found = (0..=2).find_map(|fates| {
            let walked = spending(fates, Some(rule));
            paths += walked.paths;
            walked.violation
        });
        let violation = found.unwrap_or_else(|| panic!("without {rule:?} nothing goes wrong, so nothing shows that it is needed"));
        println!("without {rule:?}, after {paths} paths: {violation}\n");
        assert!(violation.contains("USD were bought in a day under a cap"), "{violation}");
    }
}
