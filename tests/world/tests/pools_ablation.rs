//! Rules of pools are needed: without one a plan misses a figure, or a drawn life breaks a law. Each witness is the same in each run.

use hopline::pool::PoolRule;
use hopline_world::{PoolWitness, side_by_side};

/// The witness that finds the harm without a rule. None for a rule whose harm no plan finds today, and none of the first 40 drawn lives.
fn witness(rule: PoolRule) -> Option<PoolWitness> {
    let plan = match rule {
        PoolRule::FirstIsATrial | PoolRule::OneTries | PoolRule::TrialsAreMarked | PoolRule::DrainPauses => "drained",
        PoolRule::HoldsWait | PoolRule::OwnLimitsAreOwn => "canary",
        PoolRule::HoldsDouble => "nostock",
        PoolRule::RefusalsStop => "refused",
        PoolRule::TrialKeepsKey => "unknown",
        PoolRule::UnreadIsTriedThere => "reads403",
        PoolRule::FewAtOnce => "begins",
        PoolRule::ShortLivedHolds => "ends",
        PoolRule::SpareComesFirst | PoolRule::SpareIsTold => "spare",
        PoolRule::ShortIsTold | PoolRule::OthersComeFirst => "six",
        PoolRule::DryIsTold | PoolRule::WhatIsThereIsShared => "limit",
        PoolRule::TurnsAreTaken | PoolRule::TurnsRest | PoolRule::ShareIsTheMost => "few",
        PoolRule::PauseForbids => "pause",
        PoolRule::NoExitHelps => "blocked",
        PoolRule::ExitsStay | PoolRule::BlockedIsChanged | PoolRule::DueIsLent | PoolRule::NeedsLast => "targets",
        PoolRule::ChangesAreRare | PoolRule::ExitsRest | PoolRule::RestsDouble | PoolRule::NotesAreTakenOver => "useless",
        PoolRule::UnreadIsKept | PoolRule::VainIsTold => "away",
        PoolRule::DataIsTakenOver => "discards",
        PoolRule::UnneededGoesBack => "storeless",
        PoolRule::ChangesAreBelieved => "killed",
        PoolRule::RecordIsReadOften => "late",
        PoolRule::DiscardedIsNotLent => "given-up",
        PoolRule::ReplacedIsNotReplaced | PoolRule::OldIsNotLent => "replaced",
        PoolRule::FewChangeAtOnce => "lockstep",
        PoolRule::WaitIsKept => "asked",
        PoolRule::SecondThrottleBlocks => "throttled",
        PoolRule::BlocksCountOnce => "pages",
        PoolRule::RefusedRests => "noproxy",
        PoolRule::LongestRestedFirst => "paced",
        PoolRule::AvoidIsAvoided => "avoiding",
        PoolRule::FewestKeysFirst => "own",
        PoolRule::KeysCountOnce => "one-at-once",
        PoolRule::KeysShare => "many-keys",
        PoolRule::ReadyIsNeeded => "ready",
        PoolRule::ShareIsALevel => "level",
        PoolRule::EntriesArePutAgain => "long",
        PoolRule::FailingHolds => "discarding",
        PoolRule::ProductsAreReadFirst => "backend",
        PoolRule::RestIsNoReason => "rests",
        PoolRule::AnotherHasWorked => "noproxy",
        PoolRule::KeysLeaveResting => "resting-keys",
        PoolRule::BreaksAreShort => "pairs",
        PoolRule::RestingIsLeftAlone => "left",
        PoolRule::OrderIsRandom | PoolRule::EmptyIsLeftAlone => "sparse",
        PoolRule::DataEndsWithExit => return Some(PoolWitness::Fleet(2)),
        PoolRule::DataIsPutOnReturn => return Some(PoolWitness::Fleet(3)),
        PoolRule::ChangesAreApart => return Some(PoolWitness::Fleet(8)),
        PoolRule::KeysStay => return Some(PoolWitness::Fleet(1)),
        _ => return None,
    };
    Some(PoolWitness::Plan(plan))
}

#[test]
fn without_a_rule_of_pools_its_witness_comes_to_harm() {
    let rules: Vec<(PoolRule, PoolWitness)> = PoolRule::ALL.into_iter().filter_map(|rule| Some((rule, witness(rule)?))).collect();
    let found = side_by_side(&rules, |(rule, witness)| (witness.finds(None), witness.finds(Some(*rule))));
    let mut wrong = Vec::new();
    for ((rule, witness), (before, found)) in rules.iter().zip(found) {
        println!("without {rule:?}, {witness:?}: {found:?}");
        if !before.is_empty() {
            wrong.push(format!("{witness:?} comes to harm with all rules: {before:?}"));
        }
        if found.is_empty() {
            wrong.push(format!(
                "without {rule:?} {witness:?} comes to no harm; look for another one by `cargo xtask world without {rule:?}`"
            ));
        }
    }
    println!("{} of {} rules have a witness", rules.len(), PoolRule::ALL.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
