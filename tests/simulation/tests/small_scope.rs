//! Every sequence of outcomes and crashes within a small scope.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hopline::policy::Rule;
use hopline_simulation::{Scope, Story, logins, walk};

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

/// Tells how many paths were walked, and that README says so.
fn quoted(paths: u64, what: &str) {
    println!("walked {paths} paths {what}, and every one ended as it should");
    let digits = paths.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    let (said, readme) = (format!("{} {what}", groups.join(" ")), include_str!("../../../README.md").replace('\n', " "));
    assert!(readme.contains(&said), "the README must say `{said}`");
}

#[test]
fn nothing_is_bought_twice_lost_or_denied_on_any_path() {
    quoted(walk_all(&Story::AGENT, 4), "of the agent API");
}

#[test]
fn no_order_or_adjustment_is_made_twice_lost_or_denied_on_any_path() {
    quoted(walk_all(&Story::RESELLER, 4), "of orders and adjustments");
}

#[test]
fn any_number_of_calls_share_one_login_on_any_path() {
    let walked = logins(3, None);
    assert_eq!(walked.violation, None);
    quoted(walked.paths, "of logins");
}

const TWICE: &str = "it was done 2 times for one intent";
const DENIED: &str = "it was said that nothing happened, and it did";
const LOST: &str = "accepted and lost without a word";

/// Where the harm of a rule that is taken away shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    Agent,
    Reseller,
    Logins,
    /// `spending.rs`, which walks what is bought under a daily cap.
    Spending,
}

/// What goes wrong without a rule, and where. The match has no other arm, so that a new rule needs its harm.
fn harms(rule: Rule) -> &'static [(Where, &'static str)] {
    use Where::{Agent, Logins, Reseller, Spending};
    match rule {
        Rule::ConflictKeepsKey | Rule::PaidFailureStops | Rule::ReplaySettlesNoEarlierSend => &[(Agent, TWICE)],
        Rule::GivenKeyHasOneRequest => &[(Agent, "a key was sent with two requests")],
        Rule::OldKeyRests | Rule::AgeSurvives | Rule::AgeAfterSave => &[(Agent, TWICE)],
        Rule::DoorSettlesNothing => &[(Agent, DENIED)],
        Rule::RestoredIsUnanswered | Rule::GivenIsUnanswered | Rule::DeleteBeforeNone => &[(Agent, DENIED)],
        Rule::LostIsUnanswered | Rule::PageIsUnanswered => &[(Agent, DENIED), (Reseller, DENIED)],
        Rule::SaveBeforeSend | Rule::KeepUntilTaken => &[(Agent, LOST), (Reseller, LOST)],
        Rule::OpenWriteRests | Rule::HeldWriteRests | Rule::TokenRefusalHasEnvelope => &[(Reseller, TWICE)],
        Rule::FailureIsUnanswered | Rule::OrderOutlivesReads => &[(Reseller, DENIED)],
        Rule::OrderIsSaved => &[(Reseller, "the number of an order was known and is known no more")],
        Rule::RenewOnce => &[(Logins, "a call renewed its token twice")],
        Rule::RefusedLoginRests => &[(Logins, "a login was sent again after it was refused")],
        Rule::OneLogin => &[(Logins, "two logins were under way")],
        Rule::NewerTokenStays => &[(Logins, "a good token was thrown away")],
        Rule::NewKeyCounts | Rule::NewDayCounts | Rule::TotalIsSaved | Rule::TotalIsHandedOver => &[(Spending, "the cap was passed")],
    }
}

/// The shortest story of the harm is the best one, and the quickest to find.
fn show(rule: Rule, place: Where, harm: &str) {
    let stories: &[Story] = match place {
        Where::Agent => &Story::AGENT,
        Where::Reseller => &Story::RESELLER,
        Where::Logins | Where::Spending => &[],
    };
    // A given key is never replaced: without this rule its purchase is denied, not made twice.
    let replaces = |story: &&Story| rule != Rule::ReplaySettlesNoEarlierSend || **story != Story::CreateWithGivenKey;
    let mut paths = 0;
    let found = (1..=4).find_map(|fates| {
        let walked = stories.iter().filter(replaces).map(|story| walk(Scope { story: *story, fates, without: Some(rule) }));
        let logins = (place == Where::Logins).then_some(()).into_iter().map(|()| logins(fates, Some(rule)));
        walked.chain(logins).find_map(|walked| {
            paths += walked.paths;
            walked.violation
        })
    });
    let violation = found.unwrap_or_else(|| panic!("without {rule:?} nothing goes wrong, so nothing shows that it is needed"));
    println!("without {rule:?}, after {paths} paths: {violation}\n");
    assert!(violation.starts_with(harm), "without {rule:?} the harm was to be `{harm}`, and is {violation}");
}

fn show_all(wanted: impl Fn(Where) -> bool) {
    let all = Rule::ALL.into_iter().flat_map(|rule| harms(rule).iter().map(move |(place, harm)| (rule, *place, *harm)));
    all.filter(|(_, place, _)| wanted(*place)).for_each(|(rule, place, harm)| show(rule, place, harm));
}

#[test]
fn every_rule_of_the_agent_api_is_needed_without_it_the_search_finds_harm() {
    show_all(|place| place == Where::Agent);
}

#[test]
fn every_rule_of_the_reseller_api_is_needed_without_it_the_search_finds_harm() {
    show_all(|place| matches!(place, Where::Reseller | Where::Logins));
}

#[test]
fn every_rule_has_its_harm() {
    assert!(Rule::ALL.into_iter().all(|rule| !harms(rule).is_empty()));
    let said = format!("the {} rules that it rests on", Rule::ALL.len());
    assert!(include_str!("../../../README.md").replace('\n', " ").contains(&said), "the README must say `{said}`");
}
