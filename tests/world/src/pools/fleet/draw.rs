//! Stories that a seed draws, and lives through them.

use hopline::client::Millis;
use hopline::contract::pools::PoolReplace;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::caller::{Aim, CallerPlan, threads};
use super::laws::Law;
use super::life::Fleet;
use super::story::{HOUR, MINUTE, Order, Outage, Part, SECOND, Story};
use super::targets::{EVER, Kind};
use crate::swarm::Source;

/// The outcome of a drawn life.
#[derive(Debug)]
pub struct FleetLived {
    /// Steps.
    pub steps: u64,
    /// Leases that were granted.
    pub granted: usize,
    /// Sessions that were bought.
    pub bought: usize,
    /// The laws that were broken first, and how.
    pub broken: Vec<(Law, String)>,
    /// The beginning of the life, and what happened, one line each, if it was asked for.
    pub story: Vec<String>,
}

impl Story {
    fn draw(seed: u64) -> Story {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut of = |some: &[Millis]| some[chance.below(some.len())];
        let lasts = 2 * MINUTE;
        let size = of(&[1, 2, 3, 5, 8]) as u32;
        let targets: Vec<Kind> = (0..of(&[1, 2, 4, 10]))
            .map(|_| match of(&[0, 0, 0, 1, 2, 3, 4]) {
                0 => Kind::Good,
                1 => Kind::BlocksAfter(of(&[1, 3, 10]) as u32),
                2 => Kind::BlocksUntil(of(&[20 * SECOND, EVER])),
                3 => Kind::Busy(of(&[2, 10, 40]) * SECOND),
                _ => Kind::Slow(of(&[3, 10]) * SECOND),
            })
            .collect();
        let programs = (0..of(&[1, 2, 2, 3, 4])).map(|_| {
            let begins = of(&[0, 0, 300, 5000, 20_000]);
            let mut callers = Vec::new();
            for group in 0..of(&[1, 1, 2]) {
                let many = of(&[1, 2, 4, 8]) as usize;
                let plan = CallerPlan {
                    aim: match of(&[0, 1, 2, 2]) {
                        0 => Aim::Nothing,
                        1 => Aim::One(of(&[0, 1, 2, 3]) as usize % targets.len()),
                        _ => Aim::Any,
                    },
                    pause: of(&[0, 0, 200, 5000]),
                    timeout: of(&[2000, 10_000, 30_000]),
                    avoids: of(&[0, 0, 1]) == 1,
                    keeps_data: of(&[0, 0, 1]) == 1,
                    every: [None, None, Some(20 * SECOND)][of(&[0, 1, 2]) as usize],
                    ..threads(1, of(&[100, 300, 1000, 4000])).remove(0)
                };
                let is_keyed = of(&[0, 0, 0, 1]) == 1;
                callers.extend((0..many).map(|at| CallerPlan { key: is_keyed.then(|| format!("k{group}-{at}")), ..plan.clone() }));
            }
            Part { begins, skew: of(&[0, 0, HOUR, -HOUR]), limit: None, country: None, callers }
        });
        let programs: Vec<Part> = programs.collect();
        let mut outages = Vec::new();
        for _ in 0..of(&[0, 0, 1, 2]) {
            let from = of(&[0, 10, 40, 70]) * SECOND;
            let outage = match of(&[0, 1, 2, 3, 4, 5]) {
                0 => Outage::Proxies,
                1 => Outage::Service,
                2 => Outage::Reads(Some("FORBIDDEN"), 403),
                3 => Outage::Reads(None, 404),
                4 => Outage::Purchases("PRODUCT_OUT_OF_STOCK"),
                _ => Outage::Purchases("SOMETHING_NEW"),
            };
            outages.push((from..from + of(&[1, 10, 40]) * SECOND, outage));
        }
        let mut orders = Vec::new();
        let somebody = |chance: Millis| chance as usize % programs.len();
        for _ in 0..of(&[0, 0, 1, 3]) {
            let (at, place) = (of(&[15, 35, 60, 80]) * SECOND, somebody(of(&[0, 1, 2, 3])));
            let how = if of(&[0, 1]) == 0 { Order::Kill(place) } else { Order::Close(place) };
            orders.extend([(at, how), (at + of(&[13_000, 14_000]), Order::Begin(place))]);
        }
        if of(&[0, 0, 0, 1]) == 1 {
            let (at, place) = (of(&[5, 30, 50]) * SECOND, somebody(of(&[0, 1, 2, 3])));
            match of(&[0, 1, 2]) {
                0 => orders.push((at, Order::Person(place, "drain_pool", ",\"everywhere\":true,\"grace_ms\":1000"))),
                1 => orders.push((at, Order::Person(place, "pause_pool", ""))),
                _ => orders
                    .extend([(at, Order::Person(place, "pause_pool", "")), (at + 20 * SECOND, Order::Person(place, "resume_pool", ""))]),
            }
        }
        let creation = of(&[1000, 2000, 6000, 20_000]);
        Story {
            size,
            keep_ready: of(&[0, 0, 0, 1]).min(Millis::from(size)) as u32,
            replace: [None, None, Some(PoolReplace::Failing)][of(&[0, 1, 2]) as usize],
            there: if of(&[0, 1]) == 0 { 0 } else { size },
            creation: creation..=creation + of(&[0, 1000]),
            lives: [None, None, None, Some(25 * SECOND), Some(MINUTE)][of(&[0, 1, 2, 3, 4]) as usize],
            limit: of(&[1, 3, 100, 100, 100]).max(1) as usize,
            chooses: seed % 5 == 4,
            expects: None,
            claims_outlast: of(&[0, 61 * SECOND]),
            programs,
            targets,
            outages,
            orders,
            lasts,
        }
    }
}

/// The life of several programs that a seed draws. `tells`: with its story.
pub fn fleet_life(seed: u64, tells: bool) -> Result<FleetLived, String> {
    let mut story = Story::draw(seed);
    // The sessions at the beginning are no more than there may be, and live for long.
    story.there = if story.lives.is_some() { 0 } else { story.there.min(story.limit as u32) };
    let beginning = format!("{story:#?}");
    let mut fleet = Fleet::new(story, seed, tells);
    fleet.has_laws = true;
    let lived = fleet.live().and_then(|()| fleet.end());
    let mut told = vec![beginning];
    told.extend(fleet.told.take().unwrap_or_default());
    lived.map_err(|wrong| format!("{wrong}\n  {}", told.join("\n  ")))?;
    Ok(FleetLived {
        steps: fleet.lived.steps,
        granted: fleet.lived.leases(),
        bought: fleet.lived.bought,
        broken: std::mem::take(&mut fleet.laws.broken).into_iter().collect(),
        story: told,
    })
}
