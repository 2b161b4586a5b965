//! Each rule is needed: without it the same checker finds harm, in a scope and, where lives can come to it, in lives.

use hopline::policy::Rule;
use hopline_world::{
    CAPPED, CROWDED, DEAR, DENIED, DOUBLED, EARLY, FORGOTTEN, HELD, INTRUDED, INVENTED, Kind, LOGINS, LOST, MISCOUNTED, PUT_OFF, REFUSED,
    REKEYED, RENEWED, RESENT, SCOPES, STALE, SWAPPED, THROWN, TWICE, UNCOUNTED, UNSAVED, explore, seeded, side_by_side,
};

/// Where the harm of a rule that is taken away shows: a scope and how much must go wrong in it; the harm; the lives that come to it.
struct Shown {
    scope: &'static str,
    limits: (u8, u8, u8),
    harm: &'static str,
    lives: Option<Kind>,
}

const OPENED: &str = "a session is opened";
const UNNAMED: &str = "a session is bought without a name";
const GIVEN: &str = "a session is bought with a key that was used before";
const RELAYED: &str = "a session is bought through an app's own backend";
const RENEWED_TWICE: &str = "a session is renewed twice, once without a name";
const SET_TWICE: &str = "two budgets are set, one after the other";
const LATE: &str = "a session is bought without a name, on a store that does things late";
const CHOSEN: &str = "a session of the cheapest product is opened, while prices rise and products run out";
const UNDER_A_LIMIT: &str = "a session of the cheapest product is opened under a limit";
const NEXT: &str = "the next session is opened where the one before is over, under a cap";
const PLACED: &str = "a static order is placed";
const SHARED: &str = "a read and a write share a token";
const PAID: &str = "money is paid in";
const NOTED: &str = "somebody looks at a doubt, and settles it when it may have changed";
const OF_TWO: &str = "two programs open one session";
const DROPPED: &str = "somebody drops the record of a session that they may have";
const WITH_ONE_KEY: &str = "two programs buy a session with one key of their caller's, under a cap";
const ODD_STORE: &str = "a session is opened, on a store that answers what nobody asked it";
const MIXED_UP: &str = "two sessions are bought while the network mixes up its answers";
const ONE_AT_A_TIME: &str = "two sessions are bought where one may be bought at a time";
const UNDER_A_CAP: &str = "three sessions are bought under a cap for two";

/// The harm without a rule. The match has no other arm, so that a new rule needs its harm. None for a rule whose harm the network of the
/// proof does not reach.
fn shown(rule: Rule) -> Option<Shown> {
    let shown = |scope, limits, harm, lives| Some(Shown { scope, limits, harm, lives });
    let (agent, capped, reseller) = (Some(Kind::Agent), Some(Kind::Capped), Some(Kind::Reseller));
    let shared = Some(Kind::Shared);
    match rule {
        Rule::SaveBeforeSend => shown(OPENED, (0, 0, 0), UNSAVED, agent),
        Rule::LostIsUnanswered => shown(PLACED, (1, 0, 0), DENIED, agent),
        Rule::PageIsUnanswered => shown(OPENED, (1, 0, 0), DENIED, agent),
        Rule::ConflictKeepsKey => shown(OPENED, (1, 0, 0), REKEYED, agent),
        Rule::DoorSettlesNothing => shown(GIVEN, (1, 0, 0), DENIED, agent),
        Rule::RestoredIsUnanswered => shown(OPENED, (1, 1, 0), DENIED, agent),
        Rule::GivenIsUnanswered => shown(GIVEN, (1, 0, 0), DENIED, None),
        Rule::ReplaySettlesNoEarlierSend => shown(OPENED, (2, 1, 0), TWICE, agent),
        Rule::GivenKeyHasOneRequest => shown(GIVEN, (1, 1, 0), INVENTED, None),
        Rule::PaidFailureStops => shown(OPENED, (1, 0, 0), REKEYED, agent),
        Rule::OldKeyRests => shown(OPENED, (1, 1, 0), TWICE, agent),
        Rule::AgeSurvives => shown(OPENED, (1, 1, 0), TWICE, agent),
        Rule::AgeAfterSave => shown(OPENED, (1, 1, 0), TWICE, None),
        Rule::DeleteBeforeNone => shown(OPENED, (1, 1, 0), DENIED, agent),
        Rule::KeepUntilTaken => shown(UNNAMED, (1, 1, 0), LOST, agent),
        Rule::OpenWriteRests => shown(PLACED, (1, 0, 0), RESENT, reseller),
        Rule::HeldWriteRests => shown(PLACED, (1, 1, 1), RESENT, reseller),
        Rule::FailureIsUnanswered => shown(PLACED, (1, 0, 0), DENIED, reseller),
        Rule::OnlyRefusalsUndo => shown(PLACED, (1, 0, 0), DENIED, reseller),
        Rule::BackendSettlesNothing => shown(RELAYED, (2, 0, 0), DENIED, shared),
        Rule::RenewalsShareAName => shown(RENEWED_TWICE, (1, 1, 1), DOUBLED, agent),
        Rule::NewerSettingStands => shown(SET_TWICE, (1, 0, 2), STALE, None),
        Rule::LateIsNotNone => shown(LATE, (0, 1, 1), DENIED, agent),
        Rule::RefusedKeepsKey => shown(RELAYED, (1, 0, 1), REKEYED, shared),
        // No job is a write without a key at the agent API.
        Rule::LaterIsUnanswered => None,
        Rule::TokenRefusalHasEnvelope => shown(PLACED, (1, 0, 0), RESENT, reseller),
        Rule::RenewOnce => shown(SHARED, (3, 0, 0), RENEWED, reseller),
        Rule::RefusedLoginRests => shown(PLACED, (1, 1, 0), REFUSED, reseller),
        Rule::OneLogin => shown(SHARED, (1, 0, 0), LOGINS, reseller),
        Rule::NewerTokenStays => shown(SHARED, (1, 0, 0), THROWN, reseller),
        Rule::OrderIsSaved => shown(PLACED, (1, 1, 0), FORGOTTEN, None),
        Rule::OrderOutlivesReads => shown(PLACED, (1, 0, 0), DENIED, reseller),
        Rule::NewKeyCounts => shown(UNDER_A_CAP, (2, 0, 0), MISCOUNTED, capped),
        Rule::NewDayCounts => shown(UNDER_A_CAP, (0, 1, 0), CAPPED, capped),
        Rule::SpendBeforeSend => shown(UNDER_A_CAP, (0, 0, 0), UNCOUNTED, capped),
        Rule::EntryIsItsOwn => shown(WITH_ONE_KEY, (1, 1, 0), UNCOUNTED, None),
        Rule::UnaskedIsUnknown => shown(OPENED, (0, 2, 0), DENIED, None),
        Rule::UnreadableIsSomething => shown(OPENED, (0, 1, 0), REKEYED, agent),
        Rule::VersionIsNamed => shown(NOTED, (1, 1, 2), TWICE, None),
        Rule::HeldIsNotForgotten => shown(DROPPED, (0, 0, 1), HELD, agent),
        Rule::HourBeforeNone => shown(PAID, (1, 1, 1), DENIED, None),
        Rule::LateIsNotSent => shown(OF_TWO, (0, 1, 0), UNSAVED, shared),
        Rule::LostNameEnds => shown(OF_TWO, (0, 1, 0), UNSAVED, shared),
        Rule::LostIsNotNone => shown(OF_TWO, (1, 1, 0), DENIED, shared),
        Rule::OnlyOwnersPut => shown(OF_TWO, (0, 1, 0), UNSAVED, shared),
        Rule::UnfitIsNoAnswer => shown(ODD_STORE, (0, 2, 0), REKEYED, agent),
        Rule::OthersAreLeft => shown(DROPPED, (0, 1, 1), INTRUDED, agent),
        Rule::AnothersIsNoAnswer => shown(MIXED_UP, (1, 0, 0), LOST, agent),
        Rule::FewAreOut => shown(ONE_AT_A_TIME, (0, 0, 0), CROWDED, Some(Kind::SharedReseller)),
        Rule::ThrottleHoldsAll => shown(SHARED, (1, 0, 0), EARLY, agent),
        Rule::ChoiceStays => shown(UNDER_A_LIMIT, (1, 1, 0), SWAPPED, None),
        Rule::FirstChoiceLimits => shown(CHOSEN, (1, 0, 0), DEAR, None),
        Rule::LimitHolds => shown(UNDER_A_LIMIT, (2, 0, 0), DEAR, None),
        Rule::LivingIsKept => shown(NEXT, (0, 0, 1), REKEYED, None),
        Rule::LongThrottleIsOwn => shown(SHARED, (1, 0, 0), PUT_OFF, reseller),
    }
}

#[test]
fn without_any_rule_a_scope_shows_its_harm() {
    let rules: Vec<(Rule, Shown)> = Rule::ALL.into_iter().filter_map(|rule| Some((rule, shown(rule)?))).collect();
    let explored = side_by_side(&rules, |(rule, shown)| {
        let scope = SCOPES.iter().find(|scope| scope.name == shown.scope).expect("there is such a scope");
        explore(scope, Some(shown.limits), Some(*rule))
    });
    for ((rule, shown), explored) in rules.into_iter().zip(explored) {
        let found = explored.found.unwrap_or_else(|| panic!("without {rule:?} nothing goes wrong, so nothing shows that it is needed"));
        println!("without {rule:?}, after {} worlds: {found}\n", explored.states);
        assert!(found.wrong.starts_with(shown.harm), "without {rule:?} the harm was to be `{}`, and is {found}", shown.harm);
    }
}

/// So many lives at most come to the harm of a rule, where lives do.
const LIVES: u64 = 40_000;

#[test]
fn without_most_rules_lives_come_to_harm() {
    let rules: Vec<(Rule, Kind)> = Rule::ALL.into_iter().filter_map(|rule| Some((rule, shown(rule)?.lives?))).collect();
    let found = side_by_side(&rules, |(rule, kind)| {
        (0..LIVES).find_map(|seed| seeded(*kind, seed, Some(*rule)).err().map(|found| (seed, found.wrong)))
    });
    let mut missed = Vec::new();
    for ((rule, _), found) in rules.into_iter().zip(found) {
        match found {
            Some((seed, wrong)) => println!("without {rule:?}, in life {seed}: {wrong}"),
            None => missed.push(rule),
        }
    }
    assert_eq!(missed, [], "no life of these comes to harm without its rule");
}

#[test]
fn readme_says_how_many_rules_there_are() {
    let said = format!("the {} rules that it rests on", Rule::ALL.len());
    assert!(include_str!("../../../README.md").replace('\n', " ").contains(&said), "the README must say `{said}`");
}
