//! `cargo xtask swarm`, and what looks into one part of the proof: `cargo xtask world`.

mod fleets;

use std::num::NonZero;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hopline::policy::Rule;
use hopline::pool::PoolRule;
use hopline_world::{
    FleetPlan, Kind, Limits, Measure, PLAN_SEED, PLANS, PoolWitness, SCOPES, Scope, Who, explore, fleet_life, pool_life, seeded,
    side_by_side,
};
use serde_json::json;

const HELP: &str = "\
cargo xtask world scope NAME [FAULTS,TROUBLES,ACTS] [RULE]   every world of the scopes whose name has this in it
cargo xtask world seed KIND N [RULE]                         one life: agent, capped, reseller, or with more programs on one
                                                             store: shared, sharedcap, sharedreseller
cargo xtask world seed pools N                               one life of a pool
cargo xtask world seed fleet N [story]                        one life of several programs of one pool in virtual time
cargo xtask world plan NAME [SEED] [story]                   the figures of a plan of several programs of one pool, or of `all` but `big`
cargo xtask world plans                                      the counts of all plans but `big`, for `cargo xtask bench fleets`
cargo xtask world without RULE [SEEDS|PLAN|fleet:SEED]       the plans and lives of pools that come to harm without a rule of pools,
                                                             or without each of `all`; that plan or life alone
cargo xtask world workers WORKERS SESSIONS [POOLS]           a fleet of that size in virtual time: purchases, memory, takeovers
cargo xtask world deep                                       every scope, with more that goes wrong than in every run
cargo xtask swarm [--minutes N] [--seed S] [--pools]         lives on all cores, from a seed on; lives of pools in their place,
                                                             of both kinds";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let is_well = match words.as_slice() {
        ["scope", name, rest @ ..] => scope(name, rest),
        ["plan", name, rest @ ..] => plan(name, rest),
        ["workers", "table", drawing] => fleets::table(drawing).map(|table| {
            println!("{table}");
            true
        }),
        ["workers", workers, sessions, rest @ ..] => fleets::one(workers, sessions, rest.first().copied()),
        ["plans"] => table(PLANS.iter().filter(|plan| plan.name != BIG)).map(|table| {
            println!("{table}");
            true
        }),
        ["deep"] => deep(),
        ["without", rule, rest @ ..] => without(rule, rest.first().copied()),
        ["seed", "pools", seed] => one_of_pools(seed),
        ["seed", "fleet", seed, rest @ ..] => one_fleet(seed, rest),
        ["seed", kind, seed, rest @ ..] => kind_of(kind).and_then(|kind| one(kind, seed, rest.first().copied())),
        ["swarm", rest @ ..] => swarm(rest),
        [] => {
            println!("{HELP}");
            Ok(true)
        }
        [other, ..] => Err(format!("there is no `{other}`\n{HELP}")),
    };
    match is_well {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("hopline-world: {error}");
            ExitCode::FAILURE
        }
    }
}

/// A rule by its name.
fn rule(name: Option<&str>) -> Result<Option<Rule>, String> {
    let Some(name) = name else { return Ok(None) };
    let found = Rule::ALL.into_iter().find(|rule| format!("{rule:?}") == name);
    found.map(Some).ok_or_else(|| format!("there is no rule `{name}`; they are: {:?}", Rule::ALL))
}

fn scope(name: &str, rest: &[&str]) -> Result<bool, String> {
    let (limits, names): (Vec<&str>, Vec<&str>) = rest.iter().partition(|word| word.contains(','));
    let (limits, without) = (limits.first(), names.first().copied());
    let numbers = |limits: &str| -> Option<(u8, u8, u8)> {
        let mut numbers = limits.split(',').map(|number| number.parse().ok());
        Some((numbers.next()??, numbers.next()??, numbers.next()??))
    };
    let limits = match limits {
        Some(limits) => Some(numbers(limits).ok_or_else(|| format!("`{limits}` are not three numbers with commas between them"))?),
        None => None,
    };
    let (without, mut is_well, mut any) = (rule(without)?, true, false);
    for scope in SCOPES.iter().filter(|scope| scope.name.contains(name)) {
        is_well &= walk(scope, limits, without);
        any = true;
    }
    if any { Ok(is_well) } else { Err(format!("no scope has `{name}` in its name")) }
}

/// Walks one scope and prints the result. Returns true if there is no violation.
fn walk(scope: &'static Scope, limits: Limits, without: Option<Rule>) -> bool {
    let begun = Instant::now();
    let explored = explore(scope, limits, without);
    println!("{}: {} worlds, {} ends, {:.1} s", scope.name, explored.states, explored.ends, begun.elapsed().as_secs_f64());
    explored.found.iter().for_each(|found| println!("{found}"));
    explored.found.is_none()
}

fn deep() -> Result<bool, String> {
    Ok(SCOPES.iter().filter(|scope| !walk(scope, Some(scope.deep), None)).count() == 0)
}

fn name_of(kind: Kind) -> String {
    format!("{kind:?}").to_lowercase()
}

fn kind_of(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| name_of(*kind) == name);
    found.ok_or_else(|| format!("there are no lives of the kind `{name}`; they are {}", Kind::ALL.map(name_of).join(", ")))
}

fn number_of(seed: &str) -> Result<u64, String> {
    seed.parse().map_err(|_| format!("`{seed}` is no number"))
}

fn one_of_pools(seed: &str) -> Result<bool, String> {
    let lived = pool_life(number_of(seed)?);
    println!("{}", lived.as_ref().map_or_else(String::clone, |lived| format!("{lived:?}, and everything is as it should be")));
    Ok(lived.is_ok())
}

/// The plan that takes much longer than the others, and is not one of `all`.
const BIG: &str = "big";

fn plan(name: &str, rest: &[&str]) -> Result<bool, String> {
    let seed = rest.iter().find(|word| **word != "story").map_or(Ok(PLAN_SEED), |seed| number_of(seed))?;
    let (mut is_well, mut any) = (true, false);
    for plan in PLANS.iter().filter(|plan| (name == "all" && plan.name != BIG) || plan.name == name) {
        any = true;
        let begun = Instant::now();
        let lived = plan.live(seed, rest.contains(&"story"));
        println!("{}: {} ({:.1} s)", plan.name, plan.tells, begun.elapsed().as_secs_f64());
        match lived {
            Ok(lived) => {
                lived.story.iter().for_each(|line| println!("{line}"));
                println!("    {}", lived.told);
                lived.figures.iter().for_each(|figure| println!("    {figure}"));
                is_well &= lived.figures.iter().all(|figure| figure.is_met());
            }
            Err(wrong) => {
                println!("    HARM {wrong}");
                is_well = false;
            }
        }
    }
    let names = || PLANS.iter().map(|plan| plan.name).collect::<Vec<_>>().join(", ");
    if any { Ok(is_well) } else { Err(format!("there is no plan `{name}`; they are {}", names())) }
}

/// The counts of plans, as a row each and one of all together.
fn table<'a>(plans: impl Iterator<Item = &'a FleetPlan>) -> Result<serde_json::Value, String> {
    let (mut rows, mut sums) = (Vec::new(), [0.0, 0.0]);
    for plan in plans {
        let lived = plan.live(PLAN_SEED, false)?;
        let rate = lived.is(Measure::Rate { who: Who::All, from: 0, until: i64::MAX });
        let first = Some(lived.is(Measure::LeaseAfter { from: 0 })).filter(|first| first.is_finite());
        let least = lived.figures.iter().find(|one| matches!(one.figure.measure, Measure::Least { .. })).map(|one| one.is);
        let counts = [Measure::Bought, Measure::NeverLent].map(|measure| lived.is(measure));
        sums = [sums[0] + counts[0], sums[1] + counts[1]];
        let numbers = [Some(rate), first, least].map(|number| number.map_or(String::new(), |number| format!("{number:.2}")));
        rows.push(
            [vec![format!("`{}`: {}", plan.name, plan.tells)], numbers.into(), counts.map(|count| count.to_string()).into()].concat(),
        );
    }
    rows.push([vec!["all".to_owned()], vec![String::new(); 3], sums.map(|sum| sum.to_string()).into()].concat());
    let columns = ["Plan", "Leases a second", "Seconds to the first", "Least served, over the mean", "Bought", "Never lent"];
    Ok(json!({ "versions": { "hopline": env!("CARGO_PKG_VERSION") }, "columns": columns, "rows": rows }))
}

/// Prints which plans and lives come to harm without a rule, and not with it.
fn without(name: &str, which: Option<&str>) -> Result<bool, String> {
    if let Some(seed) = which.and_then(|which| which.strip_prefix("fleet:")) {
        for rule in PoolRule::ALL.into_iter().filter(|rule| format!("{rule:?}") == name) {
            println!("without {rule:?}: {:?}", PoolWitness::Fleet(number_of(seed)?).finds(Some(rule)));
        }
        return Ok(true);
    }
    let one = which.and_then(|which| PLANS.iter().find(|plan| plan.name == which));
    let seeds = if one.is_some() { 0 } else { which.map_or(Ok(40), number_of)? };
    let plans =
        PLANS.iter().filter(|plan| one.map_or(plan.name != BIG, |one| one.name == plan.name)).map(|plan| PoolWitness::Plan(plan.name));
    let lives = (0..seeds).flat_map(|seed| [PoolWitness::Fleet(seed), PoolWitness::Life(seed)]);
    let all: Vec<PoolWitness> = plans.chain(lives).collect();
    let kinds = |found: &[String]| found.iter().map(|harm| kind_of_harm(harm).to_owned()).collect::<Vec<_>>();
    let before = side_by_side(&all, |witness| kinds(&witness.finds(None)));
    let is_named = |rule: &PoolRule| name == "all" || format!("{rule:?}") == name;
    let rules: Vec<PoolRule> = PoolRule::ALL.into_iter().filter(is_named).collect();
    if rules.is_empty() {
        return Err(format!("there is no rule `{name}`; they are: {:?}", PoolRule::ALL));
    }
    if let Some(plan) = one {
        for rule in [None].into_iter().chain(rules.into_iter().map(Some)) {
            let lived = hopline::pool::without(rule, || plan.live(PLAN_SEED, false))?;
            println!("without {}: {}", rule.map_or_else(|| "any rule taken away".to_owned(), |rule| format!("{rule:?}")), lived.told);
            lived.figures.iter().for_each(|figure| println!("    {figure}"));
        }
        return Ok(true);
    }
    for rule in rules {
        println!("without {rule:?}");
        let found = side_by_side(&all, |witness| {
            let begun = Instant::now();
            (witness.finds(Some(rule)), begun.elapsed().as_secs_f64())
        });
        for ((witness, (found, took)), before) in all.iter().zip(found).zip(&before) {
            for harm in found.iter().filter(|harm| !before.iter().any(|known| known == kind_of_harm(harm))) {
                println!("  {took:.2} s {witness:?}: {}", harm.trim());
            }
        }
    }
    Ok(true)
}

/// The part of a harm that is the same whenever it happens.
fn kind_of_harm(harm: &str) -> &str {
    harm.split_once(':').map_or(harm, |(kind, _)| kind)
}

fn one_fleet(seed: &str, rest: &[&str]) -> Result<bool, String> {
    match fleet_life(number_of(seed)?, rest.contains(&"story")) {
        Ok(lived) => {
            lived.story.iter().for_each(|line| println!("{line}"));
            println!("{} steps, {} leases, {} bought", lived.steps, lived.granted, lived.bought);
            lived.broken.iter().for_each(|(law, how)| println!("{law:?}: {how}"));
            Ok(lived.broken.is_empty())
        }
        Err(harm) => {
            println!("HARM {harm}");
            Ok(false)
        }
    }
}

fn one(kind: Kind, seed: &str, without: Option<&str>) -> Result<bool, String> {
    let seed = number_of(seed)?;
    match seeded(kind, seed, rule(without)?) {
        Ok(steps) => println!("{steps} steps, and everything is as it should be"),
        Err(found) => {
            println!("{found}");
            return Ok(false);
        }
    }
    Ok(true)
}

fn swarm(rest: &[&str]) -> Result<bool, String> {
    let number = |name: &str| {
        let at = rest.iter().position(|word| *word == name)?;
        Some(rest.get(at + 1).and_then(|number| number.parse::<u64>().ok()).ok_or_else(|| format!("`{name}` takes a number")))
    };
    if let Some(other) = rest.iter().find(|word| word.starts_with("--") && !["--minutes", "--seed", "--pools"].contains(*word)) {
        return Err(format!("there is no option `{other}`; the options are --minutes, --seed and --pools"));
    }
    let minutes = number("--minutes").transpose()?.unwrap_or(1);
    let first = number("--seed").transpose()?.unwrap_or(0);
    let one_of = |kind: Kind, seed: u64| {
        let lived = seeded(kind, seed, None);
        lived.map_err(|found| format!("{found}\n  again: cargo xtask world seed {} {seed}", name_of(kind)))
    };
    let one_pool = |seed: u64| {
        let lived = pool_life(seed).map(|lived| lived.steps);
        lived.map_err(|wrong| format!("{wrong}\n  again: cargo xtask world seed pools {seed}"))
    };
    let one_fleet = |seed: u64| {
        let lived = fleet_life(seed, false)
            .and_then(|lived| if lived.broken.is_empty() { Ok(lived.steps) } else { Err(format!("{:?}", lived.broken)) });
        lived.map_err(|wrong| format!("{wrong}\n  again: cargo xtask world seed fleet {seed} story"))
    };
    let one_of_pools = |seed: u64| Ok(one_pool(seed)? + one_fleet(seed)?);
    let kinds: &[Option<Kind>] = if rest.contains(&"--pools") { &[None] } else { &Kind::ALL.map(Some) };
    let (next, steps, is_wrong, begun) = (AtomicU64::new(first), AtomicU64::new(0), AtomicBool::new(false), Instant::now());
    let live = || {
        while begun.elapsed() < Duration::from_secs(60 * minutes) && !is_wrong.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            for kind in kinds {
                match kind.map_or_else(|| one_of_pools(seed), |kind| one_of(kind, seed)) {
                    Ok(some) => _ = steps.fetch_add(some, Ordering::Relaxed),
                    Err(wrong) => {
                        println!("{wrong}");
                        is_wrong.store(true, Ordering::Relaxed);
                    }
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(live);
        }
    });
    let (lives, steps) = (kinds.len() as u64 * (next.into_inner() - first), steps.into_inner());
    println!("{lives} lives, {steps} steps in {:.0} s", begun.elapsed().as_secs_f64());
    Ok(!is_wrong.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_plans_has_a_row_of_each_and_one_of_all() {
        let told = table(PLANS.iter().filter(|plan| ["slow", "reads403"].contains(&plan.name))).expect("no harm is done");
        let rows: Vec<Vec<String>> = serde_json::from_value(told["rows"].clone()).expect("are texts");
        assert_eq!(rows.iter().map(|row| row[4..].join(" ")).collect::<Vec<_>>(), ["12 0", "1 1", "13 1"]);
        assert!(rows[0][0].starts_with("`slow`: ") && rows[1][2..4] == ["", ""], "{told}");
    }
}
