//! The plans: stories of pools with the figures that they must come to.

use hopline::client::Millis;
use hopline::contract::pools::PoolReplace;

use super::caller::{Aim, CallerPlan, threads};
use super::laws::Law;
use super::life::Fleet;
use super::measures::{Bound, Figure, Lived, Measure, Measured, Who};
use super::story::{HOUR, MINUTE, Order, Outage, Part, SECOND, Story};
use super::targets::{EVER, Kind};

use Bound::{AtLeast, AtMost};

/// The seed of the plans in every run.
pub const PLAN_SEED: u64 = 1;

/// A story with its figures.
#[derive(Debug)]
pub struct FleetPlan {
    /// Its name.
    pub name: &'static str,
    /// The story in words.
    pub tells: &'static str,
    pub(super) story: fn() -> Story,
    /// The values that it must come to.
    pub figures: &'static [Figure],
    /// True if a figure is missed today. One that comes to all of its figures must lose the mark.
    pub missed_today: bool,
}

const NO_END: Millis = Millis::MAX;
/// The longest wait of a program, where there are sessions enough for one each.
const LONGEST: Bound = AtMost(10.0);
const THREE_QUARTERS: Bound = AtLeast(0.75);

const fn figure(what: &'static str, measure: Measure, bound: Bound) -> Figure {
    Figure { what, measure, bound }
}

const fn least(who: Who, from: Millis, until: Millis) -> Figure {
    figure("the least served program's leases over the mean", Measure::Least { who, from, until }, THREE_QUARTERS)
}

const fn gap(who: Who, from: Millis, bound: Bound) -> Figure {
    figure("the longest time of a program without a new lease", Measure::Gap { who, from }, bound)
}

const fn rate(what: &'static str, who: Who, from: Millis, bound: Bound) -> Figure {
    figure(what, Measure::Rate { who, from, until: NO_END }, bound)
}

const fn bought(bound: Bound) -> Figure {
    figure("sessions bought", Measure::Bought, bound)
}

const LATE: Figure = figure("waits that ended without a lease", Measure::Late, AtMost(0.0));
const BROKEN: Figure = figure("broken: rests, discards, avoided sessions, data, or too many changes", Measure::Broken, AtMost(0.0));
/// The cost of sharing for each program.
const fn calls(from: Millis) -> Figure {
    figure("calls of the store a second, of the program with the most", Measure::CallsASecond(from), AtMost(2.0))
}

fn part(begins: Millis, callers: Vec<CallerPlan>) -> Part {
    Part { begins, skew: 0, limit: None, country: None, callers }
}

fn story(size: u32, lasts: Millis, programs: Vec<Part>) -> Story {
    Story {
        size,
        keep_ready: 0,
        replace: None,
        there: 0,
        creation: 2000..=2000,
        lives: None,
        limit: 100_000,
        chooses: false,
        expects: None,
        claims_outlast: 0,
        programs,
        targets: Vec::new(),
        outages: Vec::new(),
        orders: Vec::new(),
        lasts,
    }
}

/// Programs that begin one after the other, each with so many threads that work for half a second.
fn programs(many: usize, threads_each: usize, apart: Millis) -> Vec<Part> {
    (0..many).map(|place| part(place as Millis * apart, threads(threads_each, 500))).collect()
}

fn aimed(aim: Aim, callers: Vec<CallerPlan>) -> Vec<CallerPlan> {
    callers.into_iter().map(|plan| CallerPlan { aim, ..plan }).collect()
}

fn keyed(callers: Vec<CallerPlan>) -> Vec<CallerPlan> {
    callers.into_iter().enumerate().map(|(at, plan)| CallerPlan { key: Some(format!("k{at}")), ..plan }).collect()
}

/// Targets of which one blocks an exit after three answers, and the other never does.
fn two_targets() -> Story {
    let caller = |aim| CallerPlan { is_exact: true, timeout: 10_000, ..aimed(aim, threads(1, 300)).remove(0) };
    Story {
        there: 2,
        targets: vec![Kind::BlocksAfter(3), Kind::Good],
        ..story(2, 10 * MINUTE, vec![part(0, vec![caller(Aim::One(0)), caller(Aim::One(1))])])
    }
}

/// 200 hosts, of which 30 % block everybody, for two hours.
fn hosts(callers: usize, keep_ready: u32) -> Story {
    let callers = aimed(Aim::Any, threads(callers, 1000)).into_iter().map(|plan| CallerPlan { timeout: 5000, ..plan }).collect();
    let kinds = (0..200).map(|host| if host % 10 < 3 { Kind::BlocksUntil(EVER) } else { Kind::Good }).collect();
    Story { keep_ready, targets: kinds, ..story(5, 2 * HOUR, vec![part(0, callers)]) }
}

/// Each of six programs is restarted in turn, five seconds apart.
fn rolling(how: fn(usize) -> Order) -> Story {
    let orders = (0..6).flat_map(|place| {
        let at = 25_000 + 5000 * place as Millis;
        [(at, how(place)), (at + 2000, Order::Begin(place))]
    });
    Story { orders: orders.collect(), ..story(20, 120 * SECOND, programs(6, 20, 300)) }
}

/// One of three programs has a clock that is off, and is killed after 40 s.
fn clock(skew: Millis) -> Story {
    let mut programs = programs(3, 20, 0);
    programs[0].skew = skew;
    Story { orders: vec![(40_000, Order::Kill(0))], ..story(20, 120 * SECOND, programs) }
}

const CLOCK: &[Figure] = &[least(Who::All, 15_000, 40_000), least(Who::From(1), 60_000, NO_END), gap(Who::All, 5000, LONGEST)];

/// Six programs want five sessions each for four seconds once a minute.
fn bursts() -> Story {
    let program = |place: Millis| {
        let caller = CallerPlan { is_exact: true, during: place * 10_000..NO_END, every: Some(MINUTE), ..threads(1, 4000).remove(0) };
        part(0, vec![caller; 5])
    };
    story(30, 4 * MINUTE + 30 * SECOND, (0..6).map(program).collect())
}

fn reads_refused(code: Option<&'static str>, status: u16) -> Story {
    Story { outages: vec![(0..NO_END, Outage::Reads(code, status))], ..story(20, 10 * MINUTE, programs(6, 5, 300)) }
}

const AT_MOST_TWO: &[Figure] = &[bought(AtMost(2.0))];

/// While a purchase is under way for a minute, somebody says something in another program.
fn person(operation: &'static str, members: &'static str) -> Story {
    let orders = vec![(10_000, Order::Person(1, operation, members))];
    Story { creation: 60_000..=60_000, orders, ..story(10, 3 * MINUTE, programs(2, 5, 300)) }
}

const AT_ONCE: Figure = figure("the longest that somebody's word took", Measure::OrdersTake, AtMost(5.0));

/// The plans. Their figures are the promise to those who run pools.
pub const PLANS: &[FleetPlan] = &[
    FleetPlan {
        name: "targets",
        tells: "two sessions; target a blocks an exit after 3 answers, b never; one caller each, 0.3 s, for 10 min",
        story: two_targets,
        figures: &[
            figure("the longest wait for b", Measure::Wait { caller: Some(1) }, AtMost(0.3)),
            rate("leases a second", Who::All, 0, AtLeast(4.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "hosts",
        tells: "five sessions, 200 hosts of which 30 % block all, one caller of 1 s a page, keep_ready 4, for 2 h",
        story: || hosts(1, 4),
        figures: &[figure("good answers", Measure::Good, AtLeast(4800.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "hosts5",
        tells: "the same with five callers, without keep_ready",
        story: || hosts(5, 0),
        figures: &[figure("good answers", Measure::Good, AtLeast(20_000.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "six",
        tells: "six programs of 20 callers on 20 sessions, 0.3 s apart",
        story: || story(20, 100 * SECOND, programs(6, 20, 300)),
        figures: &[
            least(Who::All, 16_500, NO_END),
            gap(Who::All, 1500, LONGEST),
            calls(20_000),
            rate("leases a second", Who::All, 16_500, AtLeast(32.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "late",
        tells: "a program of 20 callers has all 20 sessions; a second one comes after 20 s",
        story: || story(20, 100 * SECOND, programs(2, 20, 20_000)),
        figures: &[least(Who::All, 40_000, NO_END), gap(Who::All, 20_000, LONGEST)],
        missed_today: false,
    },
    FleetPlan {
        name: "slow",
        tells: "after a peak of 12 a program uses one session at a time; a second one of 12 callers comes",
        story: || {
            let mut callers = threads(12, 500);
            callers.iter_mut().for_each(|plan| plan.during = 0..15_000);
            callers.extend(threads(1, 300));
            story(12, 80 * SECOND, vec![part(0, callers), part(20_000, threads(12, 500))])
        },
        figures: &[figure("the second one has eleven after", Measure::HasAfter { place: 1, leases: 11, from: 20_000 }, LONGEST)],
        missed_today: false,
    },
    FleetPlan {
        name: "one",
        tells: "five programs of 20 callers and one that needs one session, on 20",
        story: || {
            let mut programs = programs(5, 20, 0);
            programs.push(part(5000, threads(1, 500)));
            story(20, 100 * SECOND, programs)
        },
        figures: &[
            least(Who::Before(5), 20_000, NO_END),
            gap(Who::Only(5), 5000, LONGEST),
            rate("leases a second of the one", Who::Only(5), 20_000, AtLeast(1.5)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "mixed",
        tells: "programs of 2, 5, 10, 20 and 20 callers on 20",
        story: || {
            story(20, 100 * SECOND, [2, 5, 10, 20, 20].iter().zip(0..).map(|(many, at)| part(300 * at, threads(*many, 500))).collect())
        },
        figures: &[
            rate("leases a second of the one with two callers", Who::Only(0), 20_000, AtLeast(3.0)),
            rate("leases a second of the one with five", Who::Only(1), 20_000, AtLeast(6.75)),
            least(Who::From(2), 20_000, NO_END),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "few",
        tells: "six programs of 4 callers on 3 sessions",
        story: || story(3, 2 * MINUTE, programs(6, 4, 300)),
        figures: &[gap(Who::All, 1500, AtMost(15.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "limit",
        tells: "three programs of 10 callers, size 20, of which six can be bought",
        story: || Story { limit: 6, ..story(20, 100 * SECOND, programs(3, 10, 300)) },
        figures: &[least(Who::All, 20_000, NO_END), rate("leases a second", Who::All, 20_000, AtLeast(9.6)), gap(Who::All, 900, LONGEST)],
        missed_today: false,
    },
    FleetPlan {
        name: "rolling",
        tells: "six programs of 20 callers on 20, each closed and begun anew, 5 s apart",
        story: || rolling(Order::Close),
        figures: &[gap(Who::All, 25_000, LONGEST), least(Who::All, 75_000, NO_END)],
        missed_today: false,
    },
    FleetPlan {
        name: "killed",
        tells: "the same, killed",
        story: || rolling(Order::Kill),
        figures: &[gap(Who::All, 25_000, LONGEST), least(Who::All, 75_000, NO_END)],
        missed_today: false,
    },
    FleetPlan {
        name: "dies",
        tells: "two programs of 20 callers on 20; a third one comes, and is killed 2.5 s later",
        story: || {
            let mut programs = programs(2, 20, 0);
            programs.push(part(30_000, threads(20, 500)));
            Story { orders: vec![(32_500, Order::Kill(2))], ..story(20, 90 * SECOND, programs) }
        },
        figures: &[least(Who::Before(2), 45_000, NO_END), rate("leases a second of the two", Who::Before(2), 45_000, AtLeast(32.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "clock",
        tells: "three programs of 20 callers on 20; one has a clock an hour ahead, and is killed after 40 s",
        story: || clock(HOUR),
        figures: CLOCK,
        missed_today: false,
    },
    FleetPlan { name: "behind", tells: "the same, an hour behind", story: || clock(-HOUR), figures: CLOCK, missed_today: false },
    FleetPlan {
        name: "big",
        tells: "50 programs of 20 callers on 200 sessions that are there, for 60 s",
        story: || Story { there: 200, ..story(200, MINUTE, programs(50, 20, 100)) },
        figures: &[least(Who::All, 20_000, NO_END), calls(20_000)],
        missed_today: false,
    },
    FleetPlan {
        name: "keys",
        tells: "eight callers with a key each on 8 sessions, 6 s to create",
        story: || Story { creation: 6000..=6000, ..story(8, MINUTE, vec![part(0, keyed(threads(8, 300)))]) },
        figures: &[
            figure("sessions lent", Measure::Sessions { place: 0, from: 0 }, AtLeast(8.0)),
            // Without keys it is 26.
            rate("leases a second", Who::All, 15_000, AtLeast(21.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "keys2",
        tells: "two programs of eight callers with a key each on 8, 20 s apart",
        story: || story(8, 100 * SECOND, (0..2).map(|at| part(20_000 * at, keyed(threads(8, 300)))).collect()),
        figures: &[
            figure("sessions of the first one", Measure::Sessions { place: 0, from: 60_000 }, AtLeast(4.0)),
            figure("sessions of the second one", Measure::Sessions { place: 1, from: 60_000 }, AtLeast(4.0)),
            rate("leases a second", Who::All, 60_000, AtLeast(21.0)),
            least(Who::All, 60_000, NO_END),
            LATE,
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "onekey",
        tells: "a program of 20 callers with one key beside one of 20 without, on 20",
        story: || {
            let one = threads(20, 500).into_iter().map(|plan| CallerPlan { key: Some("k".into()), ..plan }).collect();
            story(20, 100 * SECOND, vec![part(0, one), part(1000, threads(20, 500))])
        },
        figures: &[rate("leases a second of those without", Who::Only(1), 30_000, AtLeast(30.0)), bought(AtMost(20.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "bursts",
        tells: "six programs want five sessions for 4 s once a minute, 10 s apart, on 30; 2 s to create",
        story: bursts,
        figures: &[bought(AtMost(10.0)), LATE],
        missed_today: false,
    },
    FleetPlan {
        name: "reads403",
        tells: "six programs of 5 callers; purchases work, and reads of sessions are refused with 403, for 10 min",
        story: || reads_refused(Some("FORBIDDEN"), 403),
        figures: AT_MOST_TWO,
        missed_today: false,
    },
    FleetPlan {
        name: "reads404",
        tells: "the same, with a page and 404",
        story: || reads_refused(None, 404),
        figures: AT_MOST_TWO,
        missed_today: false,
    },
    FleetPlan {
        name: "reads500",
        tells: "the same, with 500",
        story: || reads_refused(Some("INTERNAL_ERROR"), 500),
        figures: AT_MOST_TWO,
        missed_today: false,
    },
    FleetPlan {
        name: "proxies",
        tells: "five callers on 5, replace failing; no proxy can be reached for half an hour",
        story: || {
            let callers = aimed(Aim::One(0), threads(5, 1000));
            Story {
                replace: Some(PoolReplace::Failing),
                targets: vec![Kind::Good],
                outages: vec![(5 * MINUTE..35 * MINUTE, Outage::Proxies)],
                ..story(5, 50 * MINUTE, vec![part(0, callers)])
            }
        },
        figures: &[bought(AtMost(8.0)), rate("leases a second from 10 min after", Who::All, 45 * MINUTE, AtLeast(3.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "blocked",
        tells: "five callers on 5, replace failing; the target blocks all for half an hour",
        story: || Story {
            replace: Some(PoolReplace::Failing),
            targets: vec![Kind::BlocksUntil(30 * MINUTE), Kind::Good],
            ..story(5, 40 * MINUTE, vec![part(0, aimed(Aim::One(0), threads(5, 1000))), part(0, aimed(Aim::One(1), threads(2, 1000)))])
        },
        figures: &[bought(AtMost(8.0)), gap(Who::Only(1), 0, LONGEST), calls(MINUTE)],
        missed_today: false,
    },
    FleetPlan {
        name: "shortlived",
        tells: "sessions that live for 25 s, and a restart every 5 min, for 6 h",
        story: || {
            let orders = (1..72).flat_map(|at| [(at * 5 * MINUTE, Order::Close(0)), (at * 5 * MINUTE + 12_000, Order::Begin(0))]);
            Story { lives: Some(25_000), orders: orders.collect(), ..story(5, 6 * HOUR, vec![part(0, threads(2, 1000))]) }
        },
        figures: &[bought(AtMost(20.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "storeless",
        tells: "four callers come while the store is away for 30 s, after another program has let go of its four sessions",
        story: || {
            let callers = |during: std::ops::Range<Millis>| {
                threads(4, 500).into_iter().map(move |plan| CallerPlan { during: during.clone(), ..plan })
            };
            let programs = vec![part(0, callers(0..10_000).collect()), part(0, callers(25_000..NO_END).collect())];
            Story { outages: vec![(20_000..50_000, Outage::Store)], ..story(8, 90 * SECOND, programs) }
        },
        figures: &[
            figure("the first lease after the store was away", Measure::LeaseAfter { from: 50_000 }, AtMost(5.0)),
            rate("leases a second from then on", Who::Only(1), 55_000, AtLeast(6.0)),
            bought(AtMost(4.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "away",
        tells: "five callers on 5, one of four hosts blocks all; the service is away for ten minutes",
        story: || {
            // Whoever waits for a host that all exits rest for does not ask for the others meanwhile.
            let callers = aimed(Aim::Any, threads(5, 1000)).into_iter().map(|plan| CallerPlan { timeout: 5000, ..plan }).collect();
            let hosts = vec![Kind::BlocksUntil(EVER), Kind::Good, Kind::Good, Kind::Good];
            let outages = vec![(5 * MINUTE..15 * MINUTE, Outage::Service)];
            Story { targets: hosts, outages, ..story(5, 15 * MINUTE, vec![part(0, callers)]) }
        },
        figures: &[gap(Who::All, 5 * MINUTE, LONGEST), rate("leases a second while it is away", Who::All, 5 * MINUTE, AtLeast(3.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "odd",
        tells: "purchases are refused with a code that nobody knows for 5 s, then all is well",
        story: || Story { outages: vec![(0..5000, Outage::Purchases("SOMETHING_NEW"))], ..story(5, 20 * MINUTE, programs(2, 3, 300)) },
        figures: &[figure("the first lease after", Measure::LeaseAfter { from: 0 }, AtMost(900.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "canary",
        tells: "a program that pays less than the price begins before two others",
        story: || {
            let mut programs = programs(3, 5, 2000);
            programs[0].limit = Some(1);
            story(10, 2 * MINUTE, programs)
        },
        // The canary has its share too, three of ten, and so has each of the others: 2 leases a second of each session, and three quarters of it.
        figures: &[gap(Who::From(1), 4000, LONGEST), rate("leases a second of the two others", Who::From(1), 15_000, AtLeast(9.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "pause",
        tells: "somebody says pause while the first purchase is under way for a minute",
        story: || person("pause_pool", ""),
        figures: &[AT_ONCE, figure("purchases after that", Measure::BoughtFrom(15_000), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "drained",
        tells: "somebody drains the pool everywhere while the first purchase is under way; both programs begin anew",
        story: || {
            let mut story = person("drain_pool", ",\"everywhere\":true,\"grace_ms\":4000");
            story.orders.extend([(30_000, Order::Kill(0)), (32_000, Order::Begin(0)), (40_000, Order::Kill(1)), (42_000, Order::Begin(1))]);
            story
        },
        figures: &[AT_ONCE, figure("purchases after that", Measure::BoughtFrom(15_000), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "restarted",
        tells: "somebody drains the pool everywhere while its sessions are lent; both programs begin anew",
        story: || {
            let orders = vec![
                (20_000, Order::Person(1, "drain_pool", ",\"everywhere\":true,\"grace_ms\":2000")),
                (30_000, Order::Kill(0)),
                (32_000, Order::Begin(0)),
                (40_000, Order::Kill(1)),
                (42_000, Order::Begin(1)),
            ];
            Story { orders, ..story(4, 2 * MINUTE, programs(2, 2, 300)) }
        },
        figures: &[AT_ONCE, figure("purchases after that", Measure::BoughtFrom(25_000), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "refused",
        tells: "purchases are refused for 5 s, since the account is disabled; nobody resumes the pool",
        story: || Story { outages: vec![(0..5000, Outage::Purchases("ACCOUNT_DISABLED"))], ..story(5, 10 * MINUTE, programs(2, 3, 300)) },
        figures: &[figure("purchases after that", Measure::BoughtFrom(6000), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "nostock",
        tells: "the product is out of stock for half an hour",
        story: || Story {
            outages: vec![(0..NO_END, Outage::Purchases("PRODUCT_OUT_OF_STOCK"))],
            ..story(5, 30 * MINUTE, programs(2, 2, 300))
        },
        figures: &[figure("purchases", Measure::BoughtFrom(0), AtMost(8.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "unknown",
        tells: "purchases are refused with a code that nobody knows for 3 min",
        story: || Story { outages: vec![(0..180_000, Outage::Purchases("SOMETHING_NEW"))], ..story(5, 4 * MINUTE, programs(2, 3, 300)) },
        figures: &[figure("purchases meanwhile, by their keys", Measure::BoughtUntil(180_000), AtMost(1.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "backend",
        tells: "purchases fail, and from 3 s on the products can't be read, for 10 min",
        story: || {
            let outages = vec![(0..3000, Outage::Purchases("BACKEND_ERROR")), (3000..NO_END, Outage::Backend("BACKEND_ERROR"))];
            Story { expects: Some(10), outages, ..story(5, 10 * MINUTE, programs(2, 3, 300)) }
        },
        figures: &[
            figure("purchases, by their keys", Measure::BoughtUntil(NO_END), AtMost(1.0)),
            figure("requests to buy", Measure::Requests, AtMost(4.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "begins",
        tells: "20 callers on 20, 6 s to create",
        story: || Story { creation: 6000..=6000, ..story(20, 40 * SECOND, programs(1, 20, 0)) },
        figures: &[figure("sessions that are created at once", Measure::CreatedAtOnce, AtMost(8.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "ends",
        tells: "sessions that live for 25 s, for an hour",
        story: || Story { lives: Some(25_000), ..story(2, HOUR, vec![part(0, threads(2, 1000))]) },
        figures: &[bought(AtMost(12.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "rests",
        tells: "one caller on 20, ten hosts of which three block all",
        story: || {
            let hosts = (0..10).map(|host| if host < 3 { Kind::BlocksUntil(EVER) } else { Kind::Good }).collect();
            Story { targets: hosts, ..story(20, 5 * MINUTE, vec![part(0, aimed(Aim::Any, threads(1, 500)))]) }
        },
        figures: &[bought(AtMost(2.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "spare",
        tells: "a program wants five sessions for 4 s; another one wants five 2.5 s after that, on 30; 2 s to create",
        story: || {
            let once = |from: Millis| CallerPlan { is_exact: true, during: from..from + 1000, ..threads(1, 4000).remove(0) };
            story(30, 40 * SECOND, vec![part(0, vec![once(500); 5]), part(0, vec![once(11_000); 5])])
        },
        figures: &[bought(AtMost(5.0)), LATE],
        missed_today: false,
    },
    FleetPlan {
        name: "over",
        tells: "sessions end while nobody has them, and the pool is paused in another program; then somebody asks",
        story: || {
            let callers = |from: Millis, until: Millis| {
                threads(2, 300).into_iter().map(move |plan| CallerPlan { during: from..until, timeout: 5000, ..plan })
            };
            let orders = vec![(40_000, Order::Person(1, "pause_pool", ""))];
            let callers = callers(0, 10_000).chain(callers(60_000, 80_000)).collect();
            Story { lives: Some(25_000), orders, ..story(4, 90 * SECOND, vec![part(0, callers), part(0, Vec::new())]) }
        },
        figures: &[figure("purchases after the pause", Measure::BoughtFrom(41_000), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "price",
        tells: "somebody pauses the pool while the service is away and a price is being read, for 40 s",
        story: || {
            let orders = vec![(10_000, Order::Person(1, "pause_pool", ""))];
            let late = threads(5, 500).into_iter().map(|plan| CallerPlan { during: 9000..NO_END, timeout: MINUTE, ..plan });
            let programs = vec![part(0, threads(1, 500).into_iter().chain(late).collect()), part(0, Vec::new())];
            Story { orders, outages: vec![(8000..40_000, Outage::Service)], ..story(8, 2 * MINUTE, programs) }
        },
        figures: &[figure("purchases after the pause", Measure::BoughtFrom(15_000), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "heard",
        tells: "somebody pauses the pool, and half a second later five callers come in another program that has a session",
        story: || {
            let late = threads(5, 500).into_iter().map(|plan| CallerPlan { during: 10_500..NO_END, ..plan });
            let callers = threads(1, 500).into_iter().chain(late).collect();
            let orders = vec![(10_000, Order::Person(1, "pause_pool", ""))];
            Story { expects: Some(10), orders, ..story(10, 30 * SECOND, vec![part(0, callers), part(0, Vec::new())]) }
        },
        figures: &[figure("purchases after the pause", Measure::BoughtFrom(10_400), AtMost(0.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "replaced",
        tells: "a second program opens the pool with another request in place of the first one's; a third one with the first again",
        story: || {
            let mut programs = programs(3, 4, 20_000);
            programs[1].country = Some("DE");
            programs[2].country = Some("FR");
            story(4, 80 * SECOND, programs)
        },
        figures: &[
            rate("leases a second of the first one after that", Who::Only(0), 30_000, AtMost(0.0)),
            rate("leases a second of the second one", Who::Only(1), 35_000, AtLeast(6.0)),
            bought(AtMost(8.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "discards",
        tells: "four callers on 4 who discard what a target blocks after 20 answers, and keep data with each exit; a restart each 15 s",
        story: || {
            let callers = aimed(Aim::One(0), threads(4, 500));
            let callers: Vec<_> = callers.into_iter().map(|plan| CallerPlan { discards: true, keeps_data: true, ..plan }).collect();
            let orders = (1..6).flat_map(|at| [(at * 15_000, Order::Close(0)), (at * 15_000 + 8000, Order::Begin(0))]);
            Story { targets: vec![Kind::BlocksAfter(20)], orders: orders.collect(), ..story(4, 100 * SECOND, vec![part(0, callers)]) }
        },
        figures: &[
            figure("sessions that were lent after they were discarded, and data that were lost", Measure::Broken, AtMost(0.0)),
            rate("leases a second", Who::All, 0, AtLeast(2.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "noproxy",
        tells: "four callers on 4, keep_ready 4, replace failing; no proxy works for half an hour",
        story: || Story {
            keep_ready: 4,
            replace: Some(PoolReplace::Failing),
            outages: vec![(20_000..NO_END, Outage::Proxies)],
            ..story(4, 30 * MINUTE, vec![part(0, threads(4, 1000))])
        },
        figures: &[bought(AtMost(4.0)), figure("bad answers", Measure::Bad, AtMost(60.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "oneproxy",
        tells: "the same where one proxy works, and the target blocks it",
        story: || {
            let callers = aimed(Aim::One(0), threads(4, 1000));
            Story {
                replace: Some(PoolReplace::Failing),
                targets: vec![Kind::BlocksUntil(EVER)],
                outages: vec![(20_000..NO_END, Outage::OtherProxies)],
                ..story(4, HOUR, vec![part(0, callers)])
            }
        },
        figures: &[bought(AtMost(14.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "useless",
        tells: "four callers on 4; the target blocks all for 10 min",
        story: || {
            let callers = aimed(Aim::One(0), threads(4, 1000));
            Story { targets: vec![Kind::BlocksUntil(EVER)], ..story(4, 10 * MINUTE, vec![part(0, callers)]) }
        },
        figures: &[figure("exits that were changed", Measure::Rotations, AtMost(16.0)), figure("bad answers", Measure::Bad, AtMost(40.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "discarding",
        tells: "two callers on 2 who discard each session that a target blocks, which it always does",
        story: || {
            let callers = aimed(Aim::One(0), threads(2, 1000)).into_iter().map(|plan| CallerPlan { discards: true, ..plan }).collect();
            Story { targets: vec![Kind::BlocksUntil(EVER)], ..story(2, 10 * MINUTE, vec![part(0, callers)]) }
        },
        figures: &[bought(AtMost(12.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "given-up",
        tells: "a caller discards what is asked to wait; another one has another target, on 2",
        story: || {
            let discards = CallerPlan { discards: true, during: 0..10_000, ..aimed(Aim::One(0), threads(1, 500)).remove(0) };
            let other = aimed(Aim::One(1), threads(2, 500));
            let callers = other.into_iter().chain([discards]).collect();
            Story { there: 2, targets: vec![Kind::Busy(10_000), Kind::Good], ..story(2, 30 * SECOND, vec![part(0, callers)]) }
        },
        figures: &[BROKEN],
        missed_today: false,
    },
    FleetPlan {
        name: "asked",
        tells: "four callers on 4; a target asks each exit to wait for 40 s",
        story: || Story {
            there: 4,
            targets: vec![Kind::Busy(40_000)],
            ..story(4, 3 * MINUTE, vec![part(0, aimed(Aim::One(0), threads(4, 500)))])
        },
        figures: &[BROKEN],
        missed_today: false,
    },
    FleetPlan {
        name: "throttled",
        tells: "two callers on 2; a target answers 429 for ever after five answers through an exit",
        story: || Story {
            there: 2,
            targets: vec![Kind::Throttles(5)],
            ..story(2, 5 * MINUTE, vec![part(0, aimed(Aim::One(0), threads(2, 500)))])
        },
        figures: &[figure("good answers", Measure::Good, AtLeast(60.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "paced",
        tells: "a caller of 0.3 s on 4; a target asks an exit to wait that comes again within a second",
        story: || {
            let callers = aimed(Aim::One(0), threads(1, 300)).into_iter().map(|plan| CallerPlan { is_exact: true, ..plan }).collect();
            Story { there: 4, keep_ready: 3, targets: vec![Kind::Paced(1000)], ..story(4, MINUTE, vec![part(0, callers)]) }
        },
        figures: &[figure("bad answers", Measure::Bad, AtMost(3.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "pages",
        tells: "four callers of five requests a lease on 4; the target blocks all for a minute",
        story: || {
            let callers = aimed(Aim::One(0), threads(4, 1000)).into_iter().map(|plan| CallerPlan { requests: 5, ..plan }).collect();
            Story { there: 4, targets: vec![Kind::BlocksUntil(MINUTE)], ..story(4, 6 * MINUTE, vec![part(0, callers)]) }
        },
        figures: &[figure("good answers", Measure::Good, AtLeast(600.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "avoiding",
        tells: "two callers on 3 who avoid what was asked to wait",
        story: || {
            let callers = aimed(Aim::Any, threads(2, 500)).into_iter().map(|plan| CallerPlan { avoids: true, ..plan }).collect();
            Story { there: 3, targets: vec![Kind::Busy(1000), Kind::Good], ..story(3, MINUTE, vec![part(0, callers)]) }
        },
        figures: &[BROKEN],
        missed_today: false,
    },
    FleetPlan {
        name: "resting-keys",
        tells: "two callers with a key each on 6; a target asks each exit to wait for 40 s after two answers",
        story: || {
            let callers =
                keyed(aimed(Aim::One(0), threads(2, 1000))).into_iter().map(|plan| CallerPlan { timeout: 5000, ..plan }).collect();
            Story { there: 6, targets: vec![Kind::Busy(40_000)], ..story(6, 11 * SECOND, vec![part(0, callers)]) }
        },
        figures: &[figure("good answers", Measure::Good, AtLeast(10.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "own",
        tells: "eight callers with a key each, who come one after the other and work for 0.1 s once a second, on 8 that are there",
        story: || {
            let from = |at: Millis| at * 1110..NO_END;
            let callers = keyed(threads(8, 100)).into_iter().zip(0..);
            let callers = callers.map(|(plan, at)| CallerPlan { is_exact: true, every: Some(1000), during: from(at), ..plan }).collect();
            Story { there: 8, ..story(8, MINUTE, vec![part(0, callers)]) }
        },
        figures: &[figure("sessions lent", Measure::Sessions { place: 0, from: 10_000 }, AtLeast(8.0)), calls(20_000)],
        missed_today: false,
    },
    FleetPlan {
        name: "one-at-once",
        tells: "eight callers with one key and seven without in another program, at once, on 8 that are there",
        story: || {
            let one = threads(8, 500).into_iter().map(|plan| CallerPlan { key: Some("k".into()), ..plan }).collect();
            Story { there: 8, ..story(8, 20 * SECOND, vec![part(0, one), part(20, threads(7, 500))]) }
        },
        figures: &[figure("the other one has seven after", Measure::HasAfter { place: 1, leases: 7, from: 20 }, AtMost(2.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "many-keys",
        tells: "eight callers with a key each on 4",
        story: || Story { there: 4, ..story(4, MINUTE, vec![part(0, keyed(threads(8, 300)))]) },
        figures: &[figure("the longest wait", Measure::Wait { caller: None }, AtMost(10.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "ready",
        tells: "one caller on 8, keep_ready 4",
        story: || Story { there: 8, keep_ready: 4, ..story(8, MINUTE, vec![part(0, threads(1, 500))]) },
        figures: &[figure("calls of the store a second", Measure::CallsASecond(10_000), AtMost(1.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "full",
        tells: "two programs of 4 callers have all 8 sessions; a third one comes after 20 s",
        story: || Story {
            there: 8,
            ..story(8, 100 * SECOND, vec![part(0, threads(4, 500)), part(0, threads(4, 500)), part(20_000, threads(4, 500))])
        },
        figures: &[least(Who::All, 40_000, NO_END), gap(Who::All, 20_000, LONGEST)],
        missed_today: false,
    },
    FleetPlan {
        name: "pairs",
        tells: "a program of 8 callers has all 8 sessions; one of a caller comes after 10 s, and a second caller in it after 20",
        story: || {
            let pair = [10_000, 20_000].map(|from| CallerPlan { during: from..NO_END, ..threads(1, 500).remove(0) }).into();
            Story { there: 8, ..story(8, MINUTE, vec![part(0, threads(8, 500)), part(10_000, pair)]) }
        },
        figures: &[figure("the second one has two after", Measure::HasAfter { place: 1, leases: 2, from: 20_000 }, LONGEST)],
        missed_today: false,
    },
    FleetPlan {
        name: "level",
        tells: "three programs of one caller and two of 20 on 20 that are there",
        story: || {
            let mut programs: Vec<Part> = (0..3).map(|_| part(0, threads(1, 500))).collect();
            programs.extend([part(300, threads(20, 500)), part(20_000, threads(20, 500))]);
            Story { there: 20, ..story(20, 100 * SECOND, programs) }
        },
        figures: &[least(Who::From(3), 40_000, NO_END), rate("leases a second", Who::From(3), 40_000, AtLeast(30.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "long",
        tells: "a program of 8 callers that work for half a minute has all 4 sessions; one of 2 callers comes",
        story: || {
            let long = threads(8, 30_000).into_iter().map(|plan| CallerPlan { is_exact: true, timeout: 2 * MINUTE, ..plan }).collect();
            let short = threads(2, 500).into_iter().map(|plan| CallerPlan { timeout: 2 * MINUTE, ..plan }).collect();
            Story { there: 4, ..story(4, 2 * MINUTE, vec![part(0, long), part(1000, short)]) }
        },
        figures: &[figure("the second one has a lease after", Measure::HasAfter { place: 1, leases: 1, from: 1000 }, AtMost(35.0))],
        missed_today: false,
    },
    FleetPlan {
        name: "sparse",
        tells: "three programs of 10 callers, size 1000, of which six can be bought",
        story: || Story { limit: 6, ..story(1000, 100 * SECOND, programs(3, 10, 300)) },
        figures: &[
            least(Who::All, 20_000, NO_END),
            rate("leases a second", Who::All, 20_000, AtLeast(9.6)),
            gap(Who::All, 900, LONGEST),
            figure("calls of the store a second, of the program with the most", Measure::CallsASecond(20_000), AtMost(8.0)),
        ],
        missed_today: false,
    },
    FleetPlan {
        name: "left",
        tells: "after a peak of 3 a caller waits for a target that asks each exit to wait for 40 s; another program has the fourth session",
        story: || {
            let mut callers = aimed(Aim::One(0), threads(3, 500));
            callers[1..].iter_mut().for_each(|plan| plan.during = 0..8000);
            Story {
                there: 4,
                targets: vec![Kind::Busy(40_000)],
                ..story(4, 40 * SECOND, vec![part(0, threads(1, 30_000)), part(500, callers)])
            }
        },
        figures: &[calls(8000)],
        missed_today: false,
    },
    FleetPlan {
        name: "lockstep",
        tells: "twelve callers on 12; a target blocks an exit after three answers",
        story: || {
            let callers = aimed(Aim::One(0), threads(12, 500)).into_iter().map(|plan| CallerPlan { is_exact: true, ..plan }).collect();
            Story { there: 12, targets: vec![Kind::BlocksAfter(3)], ..story(12, 30 * SECOND, vec![part(0, callers)]) }
        },
        figures: &[BROKEN],
        missed_today: false,
    },
];

/// A plan that was lived through.
#[derive(Debug)]
pub struct PlanLived {
    /// Its figures.
    pub figures: Vec<Measured>,
    /// Counts that are worth a look beside them.
    pub told: String,
    /// The events, one line each, if they were asked for.
    pub story: Vec<String>,
    lived: Lived,
}

impl PlanLived {
    /// A measure, also one that is none of the plan's figures.
    pub fn is(&self, measure: Measure) -> f64 {
        self.lived.is(measure)
    }
}

impl FleetPlan {
    /// Lives through it. `tells`: with its story.
    pub fn live(&self, seed: u64, tells: bool) -> Result<PlanLived, String> {
        let mut fleet = Fleet::new((self.story)(), seed, tells);
        let lived = fleet.live();
        let story = fleet.told.take().unwrap_or_default();
        if let Err(wrong) = lived {
            let last = story.len().saturating_sub(200);
            return Err(format!("{wrong}\n  {}", story[last..].join("\n  ")));
        }
        fleet.lived.broken = fleet
            .laws
            .broken
            .keys()
            .filter(|law| matches!(law, Law::DataLost | Law::LentDiscarded | Law::LentAvoided | Law::Rested | Law::Churn))
            .count();
        let lived = fleet.lived;
        let figures = self.figures.iter().map(|figure| Measured { figure: *figure, is: lived.is(figure.measure) }).collect();
        Ok(PlanLived { figures, told: lived.told(), story, lived })
    }
}
