//! Every sequence of outcomes and crashes within a small scope.

use hopline::policy::Rule;
use hopline_simulation::{Scope, Story, walk};

#[test]
fn nothing_is_bought_twice_lost_or_denied_on_any_path() {
    let mut all = 0;
    for story in Story::ALL {
        let walked = walk(Scope { story, fates: 4, without: None });
        println!("{story:?}: {} paths", walked.paths);
        assert_eq!(walked.violation, None, "{story:?}");
        all += walked.paths;
    }
    println!("walked {all} paths, and every one ended as it should");
}

#[test]
fn every_rule_is_needed_without_it_the_search_finds_harm() {
    const TWICE: &str = "it was done 2 times for one intent";
    const DENIED: &str = "it was said that nothing happened, and it did";
    const LOST: &str = "accepted and lost without a word";
    for rule in Rule::ALL {
        let harm = match rule {
            Rule::ConflictKeepsKey | Rule::PaidFailureStops => TWICE,
            Rule::OldKeyRests | Rule::AgeSurvives | Rule::AgeAfterSave => TWICE,
            Rule::LostIsUnanswered | Rule::PageIsUnanswered | Rule::DoorSettlesNothing => DENIED,
            Rule::RestoredIsUnanswered | Rule::GivenIsUnanswered | Rule::DeleteBeforeNone => DENIED,
            Rule::SaveBeforeSend | Rule::KeepUntilTaken => LOST,
        };
        let mut paths = 0;
        // The shortest story of the harm is the best one, and the quickest to find.
        let scopes = (1..=4).flat_map(|fates| Story::ALL.map(|story| Scope { story, fates, without: Some(rule) }));
        let found = scopes.into_iter().find_map(|scope| {
            let walked = walk(scope);
            paths += walked.paths;
            walked.violation
        });
        let violation = found.unwrap_or_else(|| panic!("without {rule:?} nothing goes wrong, so nothing shows that it is needed"));
        println!("without {rule:?}, after {paths} paths: {violation}\n");
        assert!(violation.starts_with(harm), "without {rule:?} the harm was to be `{harm}`, and is {violation}");
    }
}
