//! Every sequence of outcomes and crashes within a small scope.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hopline::policy::Rule;
use hopline_simulation::{Scope, Story, Walked, logins, walk};

/// Walks the stories, as many at once as the machine has cores.
fn walk_all(stories: &[Story], fates: u8) -> u64 {
    let next = AtomicUsize::new(0);
    let walk_more = || {
        let mut paths = 0;
        while let Some(story) = stories.get(next.fetch_add(1, Ordering::Relaxed)) {
            let walked = walk(Scope { story: *story, fates, without: None });
            println!("{story:?}: {} paths", walked.paths);
            assert_eq!(walked.violation, None, "{story:?}");
            paths += walked.paths;
        }
        paths
    };
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let walkers: Vec<_> = (0..cores).map(|_| scope.spawn(walk_more)).collect();
        walkers.into_iter().map(|walker| walker.join().expect("no story goes wrong")).sum()
    })
}

#[test]
fn nothing_is_bought_twice_lost_or_denied_on_any_path() {
    let all = walk_all(&Story::AGENT, 4);
    println!("walked {all} paths, and every one ended as it should");
}

#[test]
fn no_order_or_adjustment_is_made_twice_lost_or_denied_on_any_path() {
    let all = walk_all(&Story::RESELLER, 4);
    println!("walked {all} paths, and every one ended as it should");
}

#[test]
fn any_number_of_calls_share_one_login_on_any_path() {
    let walked = logins(3, None);
    println!("walked {} paths, and every one ended as it should", walked.paths);
    assert_eq!(walked.violation, None);
}

const TWICE: &str = "it was done 2 times for one intent";
const DENIED: &str = "it was said that nothing happened, and it did";
const LOST: &str = "accepted and lost without a word";

/// The shortest story of the harm is the best one, and the quickest to find.
fn show(rule: Rule, harm: &str, stories: &[Story], also: fn(u8, Option<Rule>) -> Walked) {
    let mut paths = 0;
    let found = (1..=4).find_map(|fates| {
        let stories = stories.iter().map(|story| walk(Scope { story: *story, fates, without: Some(rule) }));
        stories.chain(std::iter::once_with(|| also(fates, Some(rule)))).find_map(|walked| {
            paths += walked.paths;
            walked.violation
        })
    });
    let violation = found.unwrap_or_else(|| panic!("without {rule:?} nothing goes wrong, so nothing shows that it is needed"));
    println!("without {rule:?}, after {paths} paths: {violation}\n");
    assert!(violation.starts_with(harm), "without {rule:?} the harm was to be `{harm}`, and is {violation}");
}

fn nothing_more(_: u8, _: Option<Rule>) -> Walked {
    Walked::default()
}

#[test]
fn every_rule_is_needed_without_it_the_search_finds_harm() {
    for rule in Rule::ALL {
        let harm = match rule {
            Rule::ConflictKeepsKey | Rule::PaidFailureStops | Rule::ReplaySettlesNoEarlierSend => TWICE,
            Rule::GivenKeyHasOneRequest => "a key was sent with two requests",
            Rule::OldKeyRests | Rule::AgeSurvives | Rule::AgeAfterSave => TWICE,
            Rule::LostIsUnanswered | Rule::PageIsUnanswered | Rule::DoorSettlesNothing => DENIED,
            Rule::RestoredIsUnanswered | Rule::GivenIsUnanswered | Rule::DeleteBeforeNone => DENIED,
            Rule::SaveBeforeSend | Rule::KeepUntilTaken => LOST,
            _ => continue,
        };
        // A given key is never replaced: without the rule its purchase is denied, not made twice.
        let replaces = |story: &Story| rule != Rule::ReplaySettlesNoEarlierSend || *story != Story::CreateWithGivenKey;
        let stories: Vec<Story> = Story::AGENT.into_iter().filter(replaces).collect();
        show(rule, harm, &stories, nothing_more);
    }
}

#[test]
fn every_rule_of_the_reseller_api_is_needed_without_it_the_search_finds_harm() {
    for rule in Rule::ALL {
        let (harm, stories): (_, &[Story]) = match rule {
            Rule::OpenWriteRests | Rule::HeldWriteRests | Rule::TokenRefusalHasEnvelope => (TWICE, &Story::RESELLER),
            Rule::FailureIsUnanswered | Rule::OrderOutlivesReads => (DENIED, &Story::RESELLER),
            Rule::OrderIsSaved => ("the number of an order was known and is known no more", &Story::RESELLER),
            Rule::RenewOnce => ("a call renewed its token twice", &[]),
            Rule::RefusedLoginRests => ("a login was sent again after it was refused", &[]),
            Rule::OneLogin => ("two logins were under way", &[]),
            Rule::NewerTokenStays => ("a good token was thrown away", &[]),
            // These hold for both.
            Rule::LostIsUnanswered | Rule::PageIsUnanswered => (DENIED, &Story::RESELLER),
            Rule::SaveBeforeSend | Rule::KeepUntilTaken => (LOST, &Story::RESELLER),
            _ => continue,
        };
        let logins = if stories.is_empty() { logins } else { nothing_more };
        show(rule, harm, stories, logins);
    }
}
