//! Long lives of many jobs at once, as chance or a fuzzer has it. Each life draws how much goes wrong in it, and in which ways, so
//! that no trouble hides behind another.

use std::hash::Hasher;

use hopline::client::{CommandId, StoreCall};
use hopline::contract::Api;
use hopline::policy::Rule;
use hopline::wire::Request;
use rand::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::act::{Act, Leaves};
use crate::delivery::{Delivery, StoreResult};
use crate::explore::Found;
use crate::job::{Job, Manner, SESSIONS, Task};
use crate::scope::Plan;
use crate::scope::{Kind, Scope};
use crate::time::HOURS;
use crate::world::{Out, Process, Transcript, World};

/// Where choices come from.
pub trait Source {
    /// A number below `most`, which is at least 1.
    fn below(&mut self, most: usize) -> usize;
    /// True if the source has no more choices.
    fn is_over(&self) -> bool {
        false
    }
}

impl Source for Xoshiro256PlusPlus {
    fn below(&mut self, most: usize) -> usize {
        ((u64::from(self.next_u32()) * most as u64) >> 32) as usize
    }
}

/// A fuzzer's bytes; zeros after them.
#[derive(Debug)]
pub struct Bytes<'a>(pub &'a [u8]);

impl Source for Bytes<'_> {
    fn below(&mut self, most: usize) -> usize {
        // As many bytes as the number may need.
        let bytes = if most > 256 { 2 } else { 1 };
        let (drawn, rest) = self.0.split_at(bytes.min(self.0.len()));
        self.0 = rest;
        drawn.iter().fold(0, |number, byte| number << 8 | usize::from(*byte)) % most
    }

    fn is_over(&self) -> bool {
        self.0.is_empty()
    }
}

/// How much goes wrong in one life.
#[derive(Debug)]
struct Weights {
    /// Of 16 messages so many meet something else than to be answered.
    faults: usize,
    /// Of 64 steps so many are a trouble of the program, the store or the machine.
    troubles: usize,
    /// The chosen kinds, one bit for each.
    deliveries: usize,
    acts: usize,
    /// Of 16 chances so many are taken by people who err.
    errors: usize,
    /// So many programs do something.
    programs: usize,
    /// Of so many steps one is of another program than the step before: a program may stand still while the others go on.
    turns: usize,
}

impl Weights {
    fn draw(scope: &Scope, source: &mut impl Source) -> Weights {
        let is_shared = scope.others > 0;
        Weights {
            faults: [0, 1, 4, 8][source.below(4)],
            troubles: [0, 1, 2, 6][source.below(4)],
            deliveries: source.below(1 << 16) | source.below(1 << 16) << 16,
            acts: 40 + source.below(200),
            errors: [0, 0, 4, 16][source.below(4)],
            programs: if is_shared { 1 + source.below(1 + usize::from(scope.others)) } else { 1 },
            turns: if is_shared { [1, 4, 16, 64][source.below(4)] } else { 1 },
        }
    }
}

/// Lives one life, and returns the number of its steps. An error is the violation with its shortest story.
pub fn live(kind: Kind, source: &mut impl Source, without: Option<Rule>) -> Result<u64, Box<Found>> {
    let scope = kind.scope();
    let weights = Weights::draw(scope, source);
    let mut world = World::new(scope, without, false).map_err(|wrong| Box::new(Found { wrong, choices: Vec::new(), story: Vec::new() }))?;
    let (mut acts, mut program) = (Vec::new(), 0);
    for _ in 0..weights.acts {
        if source.is_over() {
            break;
        }
        let act = world.draw_of_any(&mut program, &weights, source);
        acts.push(act);
        if let Some(Err(_)) = acts.last().map(|act| world.act(act)) {
            return Err(Box::new(shrink(scope, without, acts)));
        }
    }
    acts.push(Act::End);
    match world.act(&Act::End) {
        Ok(()) => Ok(world.steps),
        Err(_) => Err(Box::new(shrink(scope, without, acts))),
    }
}

/// A life that a seed makes.
pub fn seeded(kind: Kind, seed: u64, without: Option<Rule>) -> Result<u64, Box<Found>> {
    live(kind, &mut Xoshiro256PlusPlus::seed_from_u64(seed), without)
}

/// The digest of all steps of the life of a seed: two libraries with the same digest behave alike.
pub fn transcript(kind: Kind, seed: u64) -> u64 {
    let source = &mut Xoshiro256PlusPlus::seed_from_u64(seed);
    let weights = Weights::draw(kind.scope(), source);
    let Ok(mut world) = World::new(kind.scope(), None, false) else { return 0 };
    world.transcript = Some(Transcript::default());
    let mut program = 0;
    for _ in 0..weights.acts {
        let act = world.draw_of_any(&mut program, &weights, source);
        if world.act(&act).is_err() {
            return 0;
        }
    }
    let ended = world.act(&Act::End);
    world.transcript.filter(|_| ended.is_ok()).map_or(0, |transcript| transcript.finish())
}

/// Lives through these acts; what was wrong in the end.
fn relive(scope: &'static Scope, without: Option<Rule>, acts: &[Act], tells: bool) -> Option<Found> {
    let found = |wrong, story: Option<Vec<String>>| Some(Found { wrong, choices: Vec::new(), story: story.unwrap_or_default() });
    let mut world = match World::new(scope, without, tells) {
        Ok(world) => world,
        Err(wrong) => return found(wrong, None),
    };
    let wrong = acts.iter().find_map(|act| world.act(act).err())?;
    found(wrong, world.story)
}

/// The shortest life with the same end that can be had by leaving something out.
fn shrink(scope: &'static Scope, without: Option<Rule>, mut acts: Vec<Act>) -> Found {
    let kind = |found: &Found| found.wrong.split(':').next().unwrap_or_default().to_owned();
    let wanted = relive(scope, without, &acts, false).as_ref().map(kind);
    let mut part = acts.len() / 2;
    while part > 0 {
        let mut at = 0;
        while at < acts.len() {
            let mut fewer = acts.clone();
            fewer.drain(at..(at + part).min(acts.len()));
            if relive(scope, without, &fewer, false).as_ref().map(kind) == wanted { acts = fewer } else { at += part }
        }
        part /= 2;
    }
    relive(scope, without, &acts, true).unwrap_or(Found { wrong: "it can't be lived again".into(), choices: Vec::new(), story: Vec::new() })
}

impl World {
    /// One of all that may happen next, to the program that was last or to another one.
    fn draw_of_any(&mut self, program: &mut usize, weights: &Weights, source: &mut impl Source) -> Act {
        if weights.programs > 1 && source.below(weights.turns) == 0 {
            *program = source.below(weights.programs);
        }
        let act = self.turn(*program, |world| world.draw(weights, source));
        if *program == 0 { act } else { Act::Of { program: *program, act: Box::new(act) } }
    }

    /// One of all that may happen to a program next.
    fn draw(&self, weights: &Weights, source: &mut impl Source) -> Act {
        let Some(process) = &self.process else { return self.draw_start(weights, source) };
        if source.below(64) < weights.troubles {
            return self.draw_trouble(source);
        }
        if self.shares()
            && let Some(act) = self.draw_shared(process, weights, source)
        {
            return act;
        }
        match source.below(16) {
            0 | 1 => return Act::Start(self.draw_job(source), if source.below(4) == 0 { Manner::Hasty } else { Manner::Usual }),
            8 if !self.late_calls.is_empty() => return Act::ComesTrue,
            2 if !self.network.is_empty() => return Act::Arrive { at: source.below(self.network.len()) },
            3 => {
                let open: Vec<CommandId> = process.commands.keys().copied().filter(|command| process.client.is_pending(*command)).collect();
                if !open.is_empty() && source.below(2) == 0 {
                    return Act::Cancel(open[source.below(open.len())]);
                }
            }
            4 => return Act::Plan([Plan::Again, Plan::Hurry, Plan::ResumeAll, Plan::Look][source.below(4)]),
            6 if !self.jobs.is_empty() => return Act::Resume(source.below(self.jobs.len())),
            7 if source.below(16) < weights.errors => return self.draw_error(process, source),
            5 if self.is_idle(60_000) => return Act::Pass,
            _ => {}
        }
        if !process.completed.is_empty() {
            return Act::Take;
        }
        match process.out.len() {
            0 => Act::Pass,
            several => self.draw_answer(source.below(several), weights, source),
        }
    }

    /// Draws the acts that need several programs on one store: claims end while their program lives, programs wait for one another, and a
    /// person settles a record that another program may have resumed.
    fn draw_shared(&self, process: &Process, weights: &Weights, source: &mut impl Source) -> Option<Act> {
        match source.below(32) {
            0 | 1 if process.untold => Some(Act::Told),
            2 if source.below(8) < weights.troubles => Some(Act::Lose { is_told: source.below(2) == 0 }),
            3 => Some(Act::Start(self.draw_job(source), Manner::Patient)),
            4 => Some(Act::Plan([Plan::Note, Plan::SettleNoted][source.below(2)])),
            _ => None,
        }
    }

    fn draw_start(&self, weights: &Weights, source: &mut impl Source) -> Act {
        let plan = [Plan::Nothing, Plan::Again, Plan::ResumeAll][source.below(3)];
        let (night, clock) = (source.below(8) < weights.troubles, source.below(8) < weights.troubles);
        let after = if night { self.scope.night } else { 0 };
        Act::Restart { after, skew: if clock { HOURS[source.below(HOURS.len())] } else { 0 }, plan }
    }

    fn draw_trouble(&self, source: &mut impl Source) -> Act {
        match source.below(8) {
            0 if self.is_idle(i64::MAX) => Act::Sleep,
            1 => Act::Clock(HOURS[source.below(HOURS.len())]),
            _ => Act::Crash { leaves: [Leaves::Nothing, Leaves::All, Leaves::Part][source.below(3)] },
        }
    }

    /// Draws the act of a person who does not check the service.
    fn draw_error(&self, process: &Process, source: &mut impl Source) -> Act {
        match source.below(5) {
            4 => Act::Plan(Plan::Intrude),
            0 => Act::Guess { at: source.below(4), happened: true },
            1 => Act::Guess { at: source.below(4), happened: false },
            2 => Act::Forget { at: source.below(8) },
            _ => process.completed.front().map_or(Act::Pass, |command| Act::Abandon(*command)),
        }
    }

    /// True if so much time may pass: a request is under way for an hour at most.
    fn is_idle(&self, most: i64) -> bool {
        let Some(process) = &self.process else { return true };
        let sends = process.out.iter().any(|out| matches!(out, Out::Send { .. }));
        let wait = process.wakes.map_or(0, |wakes| wakes - self.clock().monotonic);
        if sends { wait < most.min(60_000) && most < i64::MAX } else { true }
    }

    /// True if the service had no answer for the last send of a key, or throttled it.
    fn is_overloaded(&self, request: &Request) -> bool {
        self.remote.overloaded.is_some() && self.remote.overloaded.as_deref() == request.header("idempotency-key")
    }

    fn draw_answer(&self, at: usize, weights: &Weights, source: &mut impl Source) -> Act {
        let Some(out) = self.process.as_ref().and_then(|process| process.out.get(at)) else { return Act::Pass };
        match out {
            Out::Store { call, .. } if source.below(64) < 2 * weights.troubles => {
                let results = if self.shares() { &StoreResult::SHARED } else { &StoreResult::ALL[..3] };
                let drawn = results.iter().skip(1).chain(&StoreResult::OF_LIVES).nth(source.below(results.len() + 2));
                let has_store = self.process.as_ref().is_some_and(|process| process.has_store);
                let may_be = |result: &StoreResult| match result {
                    StoreResult::FailedThenDone => self.may_come_true_late(call),
                    StoreResult::Never => !has_store,
                    StoreResult::Unfit => matches!(call, StoreCall::Claim { .. }),
                    _ => true,
                };
                Act::Keep { at, result: drawn.copied().filter(may_be).unwrap_or(StoreResult::Failed) }
            }
            Out::Store { .. } => Act::Keep { at, result: StoreResult::Done },
            // A service that is overloaded is so for a while: two answers in a row that throttle one key are rare by themselves.
            Out::Send { request, .. } if self.is_overloaded(request) && source.below(4) == 0 => {
                Act::Deliver { at, delivery: Delivery::Throttled }
            }
            Out::Send { request, about, .. } => {
                let deliveries = match source.below(16) {
                    0 | 1 => Delivery::SELDOM,
                    2 if self.scope.api == Api::Agent => Delivery::MIXED_UP,
                    _ => self.deliveries_of(request, *about),
                };
                let chosen = source.below(deliveries.len());
                let is_there = weights.deliveries >> (deliveries[chosen] as usize % 32) & 1 == 1;
                let fails = source.below(16) < weights.faults && is_there;
                Act::Deliver { at, delivery: if fails { deliveries[chosen] } else { Delivery::Answered } }
            }
        }
    }

    fn draw_job(&self, source: &mut impl Source) -> Job {
        let session = source.below(self.remote.sessions.len().max(1)) as u16;
        // A start without a name is a purchase of its own.
        let fresh = 100 + self.jobs.len() as u16;
        if self.scope.cap.is_some() {
            return match source.below(8) {
                0..=2 => Job::named(Task::Open, source.below(5) as u16),
                3 | 4 => Job::named(Task::Create, 10 + source.below(4) as u16),
                5 => Job::unnamed(Task::Create, fresh),
                6 => Job::unnamed(Task::Terminate, session),
                _ => Job::unnamed(Task::Read, session),
            };
        }
        if self.scope.api == Api::Agent {
            return match source.below(15) {
                0..=2 => Job::named(Task::Open, source.below(5) as u16),
                3 => Job::named(Task::Create, 10 + source.below(2) as u16),
                4 => Job::given(Task::Create, 20 + source.below(2) as u16),
                5 => Job::unnamed(Task::Create, fresh),
                6 => Job::named(Task::Recharge, source.below(2) as u16),
                7 if source.below(2) == 0 => Job::named(Task::Rotate, session),
                7 => Job::unnamed(Task::Rotate, session),
                8 if self.shares() || source.below(2) == 0 => Job::named(Task::Budget, 0),
                8 => Job::unnamed(Task::Budget, fresh),
                9 => Job::unnamed(Task::Terminate, session),
                10 => Job::unnamed(Task::Wait, session),
                11 => Job::named(Task::Rent, 0),
                12 => Job::named(Task::Renew, session),
                13 => Job::unnamed(Task::Renew, session + SESSIONS * (1 + self.jobs.len() as u16 % 8)),
                _ => Job::unnamed(Task::Read, session),
            };
        }
        match source.below(9) {
            0..=2 => Job::named(Task::Order, source.below(3) as u16),
            3 => Job::unnamed(Task::Order, 10 + (fresh - 100) % 80),
            4 | 5 => Job::named(Task::Adjust, source.below(3) as u16),
            6 => Job::unnamed(Task::Adjust, fresh),
            7 => Job::named(Task::User, source.below(2) as u16),
            _ => Job::unnamed(Task::Balance, 0),
        }
    }
}
