//! A life of many workers: they open their pools, buy what each needs, lend it, and a tenth of them dies.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hopline::client::{ClientOptions, CommandId, Millis, Now, Outcome, Seen, Step, StepId, StoreAnswer, StoreCall, Ticket};
use hopline::contract::pools::{AcquireLease, LeaseRef, OpenPool};
use hopline::contract::{Decimal, Secret, agent::SessionType};
use hopline::pool::PoolClient;
use hopline::wire::Request;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::{FxHashMap, FxHashSet};

use super::service::{Service, number};
use super::store::{RENEWAL, Store};
use super::told::{Fleet, Phase};
use crate::pools::{Wrong, is_pool};
use crate::service::API_KEY;
use crate::swarm::Source;

const START: Millis = 1_800_000_000_000;
const SECOND: Millis = 1000;
/// The workers begin within this time.
const ROLLOUT: Millis = 10 * SECOND;
/// Workers take the places of those that died after this.
const REPLACED: Millis = 20 * SECOND;
/// Nothing takes longer.
const PATIENCE: Millis = 3600 * SECOND;
/// Callers of each worker, each with a lease nearly all the time, for about so long.
const CALLERS: u32 = 4;
const WORK: usize = 4000;
/// So long a call of the store takes, and a request of the service.
const STORE: Millis = 10;
const SERVICE: Millis = 200;

/// An event that is due.
#[derive(Debug)]
enum Due {
    /// A worker begins, in a place of the fleet.
    Begins(u32, u32),
    /// A worker opens the pool of that place.
    Opens(u32, u32),
    Call(u32, StepId, StoreCall, Millis),
    Called(u32, StepId, StoreAnswer),
    Request(u32, StepId, Request),
    Answer(u32, StepId, String),
    Wakes(u32),
    Asks(u32),
    GivesBack(u32, LeaseRef, usize),
}

pub(super) struct Program {
    client: PoolClient,
    pool: Option<u32>,
    opening: Option<CommandId>,
    /// The callers that wait.
    waits: FxHashSet<CommandId>,
    wakes: Option<Millis>,
    began: Millis,
    /// When its connection to the store is free: it has one, for a call after the other.
    is_free: Millis,
    has_leased: bool,
}

impl Program {
    fn clock(&self, now: Millis) -> Now {
        Now { unix: START + now, monotonic: now - self.began }
    }
}

pub(super) struct Life {
    fleet: Fleet,
    chance: Xoshiro256PlusPlus,
    now: Millis,
    due: BTreeMap<(Millis, u64), Due>,
    written: u64,
    numbers: u32,
    pub(super) programs: FxHashMap<u32, Program>,
    pub(super) store: Store,
    service: Service,
    /// The lease of each session that is lent.
    lent: FxHashMap<usize, (u32, LeaseRef)>,
    phase: Phase,
    /// The second of the last call, and the calls within it.
    second: (Millis, u64),
    /// The sessions of those that died, and when.
    lost: FxHashSet<usize>,
    died: Millis,
    takeovers: Vec<Millis>,
    first_leases: Vec<Millis>,
}

impl Life {
    pub(super) fn new(fleet: Fleet, seed: u64) -> Life {
        Life {
            fleet,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0,
            due: BTreeMap::new(),
            written: 0,
            numbers: 0,
            programs: FxHashMap::default(),
            store: Store::default(),
            service: Service::default(),
            lent: FxHashMap::default(),
            phase: Phase::default(),
            second: (0, 0),
            lost: FxHashSet::default(),
            died: 0,
            takeovers: Vec::new(),
            first_leases: Vec::new(),
        }
    }

    /// All begin, and buy what each needs.
    pub(super) fn buys(&mut self) -> Result<Phase, Wrong> {
        (0..self.fleet.workers).for_each(|place| self.begins_in(place, 0));
        let all = self.fleet.sessions as usize;
        self.run("buy its sessions", |life| life.service.ready == all)
    }

    /// A minute in which nothing is bought.
    pub(super) fn uses(&mut self) -> Result<Phase, Wrong> {
        let until = self.now + 60 * SECOND;
        self.run("use its sessions", |life| life.now >= until)
    }

    /// A tenth of the workers die at once, and others take their places.
    pub(super) fn loses_a_rack(&mut self) -> Result<(Phase, Vec<Millis>, Vec<Millis>), Wrong> {
        let rack = (self.fleet.workers / 10).max(1);
        self.died = self.now;
        self.lost = self.service.read_by(|client| client <= rack).collect();
        for number in 1..=rack {
            self.programs.remove(&number);
            self.store.dies(number, self.now);
            self.lent.retain(|_, (lender, _)| *lender != number);
            self.begins_in(number - 1, REPLACED);
        }
        let many = rack as usize;
        let phase = self.run("take over what a rack had", |life| life.lost.is_empty() && life.first_leases.len() == many)?;
        Ok((phase, std::mem::take(&mut self.takeovers), std::mem::take(&mut self.first_leases)))
    }

    /// Each session was bought once, and its charge was counted.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let (bought, spent) = (self.service.bought(), self.store.spent());
        if bought != self.fleet.sessions as usize {
            return Err(format!("{bought} sessions were bought for pools of {}", self.fleet.sessions));
        }
        if spent != rust_decimal::Decimal::from(bought) {
            return Err(format!("{bought} sessions were bought for 1 USD each, and {spent} were counted"));
        }
        Ok(())
    }

    fn write(&mut self, at: Millis, due: Due) {
        self.written += 1;
        self.due.insert((at, self.written), due);
    }

    fn takes(&mut self, about: Millis) -> Millis {
        about / 4 + self.chance.below(about as usize) as Millis
    }

    fn begins_in(&mut self, place: u32, after: Millis) {
        self.numbers += 1;
        let at = self.now + after + self.chance.below(ROLLOUT as usize) as Millis;
        self.write(at, Due::Begins(self.numbers, place));
    }

    /// Lives until something is so, and gives what happened meanwhile.
    fn run(&mut self, what: &str, is_over: impl Fn(&Life) -> bool) -> Result<Phase, Wrong> {
        let (since, begun, processor) = (self.now, Instant::now(), processor_time());
        self.phase = Phase::default();
        let mut lived = 0;
        while !is_over(self) {
            let Some(((at, _), due)) = self.due.pop_first() else { return Err(format!("nothing is due, and the fleet can't {what}")) };
            // Each worker gives a sign of life four times a minute.
            lived += (at - self.now) * self.programs.len() as Millis;
            self.now = at;
            if at - since > PATIENCE {
                return Err(format!("the fleet can't {what}: {} are bought, {} ready", self.service.bought(), self.service.ready));
            }
            self.happens(due)?;
        }
        // On a busy machine the clock runs on while others have the processor.
        let part = processor_time().zip(processor).map_or(1.0, |(now, then)| (now - then).as_secs_f64() / begun.elapsed().as_secs_f64());
        self.phase.took = self.phase.took.mul_f64(part.min(1.0));
        self.phase.lasts = self.now - since;
        self.phase.statements.renewals = (lived / RENEWAL).unsigned_abs();
        Ok(std::mem::take(&mut self.phase))
    }

    /// Gives a client something to do, and counts the time that it takes.
    fn tell<T>(&mut self, number: u32, tell: impl FnOnce(&mut Program, Now) -> T) -> Option<T> {
        let program = self.programs.get_mut(&number)?;
        let (now, begun) = (program.clock(self.now), Instant::now());
        let told = tell(program, now);
        self.phase.took += begun.elapsed();
        self.phase.events += 1;
        Some(told)
    }

    fn happens(&mut self, due: Due) -> Result<(), Wrong> {
        let number = match due {
            Due::Begins(number, place) => return self.begins(number, place),
            Due::Call(number, id, call, back) => {
                if self.programs.contains_key(&number) {
                    self.counts(&call);
                    let answer = self.store.call(&call, number, self.now);
                    self.write(back, Due::Called(number, id, answer));
                }
                return Ok(());
            }
            Due::Request(number, id, request) => {
                let (reply, taken) = self.service.execute(&request, number, self.now)?;
                if taken.is_some_and(|session| self.lost.remove(&session)) {
                    self.takeovers.push(self.now - self.died);
                }
                let at = self.now + self.takes(SERVICE / 2);
                self.write(at, Due::Answer(number, id, reply));
                return Ok(());
            }
            Due::Called(number, id, answer) => {
                self.tell(number, |program, now| program.client.resolve(id, Outcome::Store(answer), now)).transpose().map_err(wrong)?;
                number
            }
            Due::Answer(number, id, body) => {
                let outcome = Outcome::Response { status: 200, headers: &[], body: body.as_bytes(), truncated: false };
                self.tell(number, |program, now| program.client.resolve(id, outcome, now)).transpose().map_err(wrong)?;
                number
            }
            Due::Wakes(number) => {
                let Some(program) = self.programs.get_mut(&number).filter(|program| program.wakes == Some(self.now)) else { return Ok(()) };
                program.wakes = None;
                self.phase.events += 1;
                number
            }
            Due::Opens(number, place) => {
                let request = self.request(place);
                self.tell(number, |program, _| program.opening = Some(program.client.open_pool(request).command));
                number
            }
            Due::Asks(number) => {
                self.tell(number, |program, _| {
                    let Some(pool) = program.pool else { return };
                    program.waits.insert(program.client.acquire(AcquireLease { pool, ..AcquireLease::default() }).command);
                });
                number
            }
            Due::GivesBack(number, lease, session) => {
                self.lent.remove(&session);
                self.tell(number, |program, now| {
                    program.client.observe_lease(&lease, Seen::Status(200), None, now);
                    program.client.give_back(&lease, now)
                });
                self.write(self.now + 1, Due::Asks(number));
                number
            }
        };
        self.drain(number)
    }

    fn counts(&mut self, call: &StoreCall) {
        let (statements, names) = (
            &mut self.phase.statements,
            match call {
                StoreCall::Claim { names, .. } | StoreCall::Release { names: Some(names) } => names.as_slice(),
                StoreCall::Put { name, .. } | StoreCall::Delete { name } => std::slice::from_ref(name),
                _ => &[],
            },
        );
        *match call {
            StoreCall::Spend { .. } => &mut statements.spends,
            _ if names.iter().all(is_pool) => &mut statements.record,
            _ => &mut statements.slots,
        } += 1;
        let second = self.now / SECOND;
        self.second = if self.second.0 == second { (second, self.second.1 + 1) } else { (second, 1) };
        self.phase.busiest = self.phase.busiest.max(self.second.1);
    }

    fn begins(&mut self, number: u32, place: u32) -> Result<(), Wrong> {
        let options = ClientOptions {
            base_url: "https://api.example/v1".into(),
            api_key: Some(Secret::new(API_KEY)),
            store: true,
            daily_cap_usd: Some(Decimal(rust_decimal::Decimal::from(100_000_000))),
            ..ClientOptions::default()
        };
        let mut entropy = [0; 16];
        entropy[..4].copy_from_slice(&number.to_be_bytes());
        let client = PoolClient::new(options, entropy).map_err(wrong)?;
        let (pool, opening, waits, wakes) = (None, None, FxHashSet::default(), None);
        let program = Program { client, pool, opening, waits, wakes, began: self.now, is_free: self.now, has_leased: false };
        self.programs.insert(number, program);
        self.store.begins(number, self.now);
        self.happens(Due::Opens(number, place))
    }

    /// Each worker needs its part of the sessions: those that its callers use, and the others at hand.
    fn request(&self, place: u32) -> OpenPool {
        OpenPool {
            name: format!("shop-{}", place % self.fleet.pools),
            size: self.fleet.sessions / self.fleet.pools,
            keep_ready: Some((self.fleet.sessions / self.fleet.workers).saturating_sub(CALLERS)),
            session_type: SessionType::Dynamic,
            product_no: "dynamic-world".into(),
            expected_charge_usd: Some(Decimal(rust_decimal::Decimal::ONE)),
            ..OpenPool::default()
        }
    }

    /// A worker goes on until it waits.
    fn drain(&mut self, number: u32) -> Result<(), Wrong> {
        let mut completed = Vec::new();
        while let Some(program) = self.programs.get_mut(&number) {
            let (now, begun) = (program.clock(self.now), Instant::now());
            let step = program.client.poll(now);
            self.phase.took += begun.elapsed();
            match step {
                Step::Store { id, call, .. } => {
                    let begins = program.is_free.max(self.now);
                    let (there, back) = (self.takes(STORE / 2), self.takes(STORE / 2));
                    let (arrives, is_back) = (begins + there, begins + there + back);
                    self.programs.entry(number).and_modify(|program| program.is_free = is_back);
                    self.write(arrives, Due::Call(number, id, call, is_back));
                }
                Step::Send { id, request, .. } => {
                    let at = self.now + self.takes(SERVICE / 2);
                    self.write(at, Due::Request(number, id, request));
                }
                Step::Completed { command } => completed.push(command),
                Step::Notify(_) => {}
                Step::Wait { until } if completed.is_empty() => {
                    let wakes = until.map(|until| (until + program.began).max(self.now + 1));
                    if wakes != program.wakes {
                        program.wakes = wakes;
                        wakes.into_iter().for_each(|at| self.write(at, Due::Wakes(number)));
                    }
                    return Ok(());
                }
                Step::Wait { .. } => std::mem::take(&mut completed).into_iter().try_for_each(|command| self.completed(number, command))?,
            }
        }
        Ok(())
    }

    fn completed(&mut self, number: u32, command: CommandId) -> Result<(), Wrong> {
        let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
        if program.opening == Some(command) {
            let opened = program.client.take(Ticket::<OpenPool>::of(command)).ok_or("a completed command has no result")?;
            program.pool = opened.as_ref().ok().map(|opened| opened.pool);
            for _ in 0..CALLERS {
                let at = self.now + self.chance.below(50) as Millis;
                match opened.is_ok() {
                    true => self.write(at, Due::Asks(number)),
                    false => return Err(format!("a worker can't open the pool: {opened:?}")),
                }
            }
            return Ok(());
        }
        if !program.waits.remove(&command) {
            let now = program.clock(self.now);
            program.client.abandon(command, now);
            return Ok(());
        }
        let lease = program.client.lease_of(command);
        let answered = program.client.take_answer(command).ok_or("a completed command has no result")?;
        let (Ok(answered), Some(lease)) = (answered, lease) else {
            self.write(self.now + SECOND, Due::Asks(number));
            return Ok(());
        };
        let told: serde_json::Value = answered.raw.read().map_err(wrong)?;
        let session = told["session_id"].as_str().and_then(self::number).ok_or("a lease has no session")?;
        if !std::mem::replace(&mut program.has_leased, true) && self.died > 0 {
            self.first_leases.push(self.now - self.died);
        }
        self.phase.leases += 1;
        let is_valid =
            |life: &Life, lender: u32, lease: &LeaseRef| life.programs.get(&lender).is_some_and(|program| program.client.is_valid(lease));
        if let Some((lender, other)) = self.lent.insert(session, (number, lease.clone()))
            && is_valid(self, lender, &other)
        {
            return Err(format!("session {session} is lent twice, by workers {lender} and {number}"));
        }
        let at = self.now + (WORK / 2 + self.chance.below(WORK)) as Millis;
        self.write(at, Due::GivesBack(number, lease, session));
        Ok(())
    }
}

/// The processor time of this process, where the system tells it.
fn processor_time() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split(' ').next()?.parse().ok()?))
}

fn wrong(error: impl std::fmt::Debug) -> Wrong {
    format!("{error:?}")
}
