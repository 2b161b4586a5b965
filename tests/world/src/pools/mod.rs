//! Lives of pools: programs that share a store keep sessions ready through lost answers, refusals, blocks, expiry, crashes and lost
//! claims, drawn at random. The checks use only outside observations: the service's sessions, the leases, and the records of the store.

mod fleet;
mod long;
mod watch;
mod witness;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopline::client::{
    CallOptions, ClientOptions, CommandId, FailureKind, Millis, Now, Outcome, Seen, Sent, Step, StepId, StoreAnswer, StoreCall,
};
use hopline::contract::Secret;
use hopline::contract::agent::SessionType;
use hopline::contract::pools::{AcquireLease, ClosePool, LeaseAdvice, LeaseRef, OpenPool, PoolReplace};
use hopline::pool::PoolClient;
use hopline::wire::Request;
use hopline_sandbox::{Config, ErrorFault, Fault, FaultRule, Service};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rust_decimal::Decimal;

use crate::service::API_KEY;
use crate::store::Store;
use crate::swarm::Source;

use self::watch::Watch;
pub(crate) use self::watch::{Wrong, is_pool};

pub use self::fleet::{Bound, Figure, FleetLived, FleetPlan, Law, Measure, Measured, PLAN_SEED, PLANS, PlanLived, Who, fleet_life};
pub use self::long::{pool_fleet, pool_month};
pub use self::witness::PoolWitness;

const START: Millis = 1_800_000_000_000;
const MINUTE: Millis = 60_000;
/// No message is under way for longer.
const UNDER_WAY: Millis = 60 * MINUTE;
/// Claims outlast the last sign of life by so much.
const OUTLASTS: Millis = 61_000;
const NAME: &str = "shop";

/// The counts of a life.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolsLived {
    /// Steps of clients.
    pub steps: u64,
    /// Sessions that were bought.
    pub bought: usize,
    /// Leases that were granted.
    pub granted: usize,
    /// Exits that were changed.
    pub rotated: usize,
}

/// A message to the store or to the service that has no answer yet.
#[derive(Debug)]
enum Out {
    Store(StepId, StoreCall),
    Send(StepId, Request),
}

/// A lease: of which pool, and which one.
type Lease = (u32, i64);

fn lease_ref((pool, lease): Lease) -> LeaseRef {
    LeaseRef { pool, lease }
}

struct Program {
    number: u8,
    client: PoolClient,
    /// None before it is open, or where it could not be opened.
    pool: Option<u32>,
    /// The one that it drains, and may open anew meanwhile.
    drains: Option<u32>,
    opening: CommandId,
    out: VecDeque<Out>,
    waits: BTreeSet<CommandId>,
    /// The leases that callers have: the session of each, and how often that had been rotated.
    leases: BTreeMap<Lease, (String, u32)>,
    wakes: Option<Millis>,
    /// How many sessions it may have at most.
    size: u32,
    /// When it was alive first, as its clock does not run on before that.
    began: Millis,
}

pub(crate) fn is_purchase(request: &Request) -> bool {
    request.url.ends_with("/sessions") && request.method.as_str() == "POST"
}

/// The terms on which a pool lends; each life draws its own.
#[derive(Debug, Clone, Default)]
struct Terms {
    replace: Option<PoolReplace>,
    leases_per_session: Option<u32>,
    rotate_after_uses: Option<u32>,
    rotate_after_ms: Option<Millis>,
    idle_release_ms: Option<Millis>,
    max_lease_ms: Option<Millis>,
}

impl Terms {
    fn draw(chance: &mut impl Source) -> Terms {
        let mut draw = |of: [Option<Millis>; 4]| of[chance.below(4)];
        Terms {
            replace: draw([None, None, None, Some(0)]).map(|_| PoolReplace::Failing),
            leases_per_session: draw([None, None, Some(2), Some(3)]).map(|most| most as u32),
            rotate_after_uses: draw([None, None, Some(1), Some(3)]).map(|most| most as u32),
            rotate_after_ms: draw([None, None, None, Some(5 * MINUTE)]),
            idle_release_ms: draw([None, None, Some(0), Some(MINUTE)]),
            max_lease_ms: draw([None, None, None, Some(MINUTE)]),
        }
    }
}

/// One life.
struct Life {
    chance: Xoshiro256PlusPlus,
    now: Millis,
    service: Service,
    store: Store,
    programs: Vec<Program>,
    numbers: u8,
    /// Purchases that arrive after they were given up.
    late: Vec<(Millis, Request)>,
    /// The largest size that the pool was opened with.
    size: u32,
    ready: u32,
    /// The terms on which it lends.
    terms: Terms,
    /// The daily cap, in USD.
    cap: i64,
    watch: Watch,
    faults: usize,
    /// True if the whole service fails.
    is_out: bool,
    /// True if the store fails now and then, as the service does.
    store_fails: bool,
    /// True if leases are requested.
    is_wanted: bool,
    lived: PoolsLived,
    story: Vec<String>,
}

/// A life of pools that a seed makes.
pub fn pool_life(seed: u64) -> Result<PoolsLived, String> {
    let mut life = Life::new(seed);
    let acts = 100 + life.chance.below(300);
    let lived = (0..acts).try_for_each(|_| life.act()).and_then(|()| life.end());
    lived.map_err(|wrong| format!("{wrong}\n  {}", life.story.join("\n  ")))?;
    Ok(life.lived)
}

impl Life {
    fn new(seed: u64) -> Life {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut service = Service::new(Config { api_key: API_KEY.to_owned(), session_limit: 12, ..Config::new(seed) });
        service.set_balance(Decimal::from(10_000));
        let size = 1 + chance.below(6) as u32;
        let ready = [0, 0, 1, size][chance.below(4)];
        let mut life = Life::of(chance, service, size, ready);
        life.cap = [5000, 5000, 5000, 40][life.chance.below(4)];
        life.terms = Terms::draw(&mut life.chance);
        life.faults = [0, 1, 4][life.chance.below(3)];
        life.store_fails = true;
        life.is_wanted = life.chance.below(8) > 0;
        for _ in 0..1 + life.chance.below(3) {
            life.begin();
        }
        life
    }

    /// A life without programs yet, in which nothing goes wrong.
    fn of(chance: Xoshiro256PlusPlus, service: Service, size: u32, ready: u32) -> Life {
        Life {
            now: START,
            service,
            store: Store::default(),
            programs: Vec::new(),
            numbers: 0,
            late: Vec::new(),
            size,
            ready,
            terms: Terms::default(),
            cap: 1_000_000,
            watch: Watch::default(),
            faults: 0,
            is_out: false,
            store_fails: false,
            is_wanted: true,
            lived: PoolsLived::default(),
            story: Vec::new(),
            chance,
        }
    }

    fn clock(&self, program: &Program) -> Now {
        Now { unix: self.now, monotonic: self.now - program.began }
    }

    fn tell(&mut self, what: impl FnOnce() -> String) {
        let at = self.now - START;
        self.story.push(format!("{at:>9} {}", what()));
    }

    /// A program begins, and opens the pool, some with a smaller one.
    fn begin(&mut self) {
        let size = if self.chance.below(3) == 0 { 1 + self.chance.below(self.size as usize) as u32 } else { self.size };
        self.begin_with(size);
    }

    fn begin_with(&mut self, size: u32) {
        self.numbers += 1;
        let number = self.numbers;
        let options = ClientOptions {
            base_url: "https://api.example/v1".into(),
            api_key: Some(Secret::new(API_KEY)),
            store: true,
            daily_cap_usd: Some(hopline::contract::Decimal(Decimal::from(self.cap))),
            ..ClientOptions::default()
        };
        let mut client = PoolClient::new(options, [number; 16]).expect("the options are sound");
        let opening = client.open_pool(self.request(size)).command;
        self.tell(|| format!("program {number} begins"));
        self.programs.push(Program {
            number,
            client,
            pool: None,
            drains: None,
            opening,
            size,
            out: VecDeque::new(),
            waits: BTreeSet::new(),
            leases: BTreeMap::new(),
            wakes: Some(0),
            began: self.now,
        });
    }

    fn request(&self, size: u32) -> OpenPool {
        let Terms { replace, leases_per_session, rotate_after_uses, rotate_after_ms, idle_release_ms, max_lease_ms } = self.terms.clone();
        OpenPool {
            replace,
            leases_per_session,
            rotate_after_uses,
            rotate_after_ms,
            idle_release_ms,
            max_lease_ms,
            name: NAME.to_owned(),
            size,
            keep_ready: Some(self.ready.min(size)),
            session_type: SessionType::Dynamic,
            product_no: "dynamic-world".into(),
            ..OpenPool::default()
        }
    }

    /// Something happens.
    fn act(&mut self) -> Result<(), Wrong> {
        if self.programs.is_empty() {
            self.begin();
        }
        let at = self.chance.below(self.programs.len());
        match self.chance.below(32) {
            0..=5 if self.is_wanted => self.acquire(at),
            6..=9 => self.give_back(at),
            10..=12 => self.observe(at),
            13 => self.cancel(at),
            14 => self.crash(at)?,
            15 if self.chance.below(4) == 0 => self.lose(at),
            16 => self.expire(),
            17 => self.trouble(),
            18 if self.programs.len() < 3 => self.begin(),
            19 if !self.late.is_empty() => self.arrive(),
            27 => self.person(at),
            20..=26 => {
                let wait = [100, 1000, 5000, MINUTE, 10 * MINUTE, 60 * MINUTE][self.chance.below(6)];
                self.pass(wait)?;
            }
            _ => {
                for _ in 0..8 {
                    self.answer(at, true)?;
                }
            }
        }
        self.drain()?;
        self.check()
    }

    fn acquire(&mut self, at: usize) {
        let targets = [None, Some("shop.example".to_owned()), Some("news.example".to_owned())];
        let target = targets[self.chance.below(3)].clone();
        let key = (self.chance.below(4) == 0).then(|| format!("caller-{}", self.chance.below(3)));
        let timeout_ms = [None, Some(0), Some(5 * MINUTE)][self.chance.below(3)];
        let program = &mut self.programs[at];
        let Some(pool) = program.pool else { return self.reopen(at) };
        let ticket = program.client.acquire(AcquireLease { pool, target, key, timeout_ms, ..AcquireLease::default() });
        program.waits.insert(ticket.command);
        let number = program.number;
        self.tell(|| format!("somebody asks program {number} for a lease ({timeout_ms:?})"));
    }

    fn some_lease(&mut self, at: usize) -> Option<Lease> {
        let leases: Vec<Lease> = self.programs[at].leases.keys().copied().collect();
        (!leases.is_empty()).then(|| leases[self.chance.below(leases.len())])
    }

    fn give_back(&mut self, at: usize) {
        let Some(lease) = self.some_lease(at) else { return };
        let now = self.clock(&self.programs[at]);
        let program = &mut self.programs[at];
        program.client.give_back(&lease_ref(lease), now);
        // Once more does nothing.
        program.client.give_back(&lease_ref(lease), now);
        let gone = program.leases.remove(&lease);
        let number = program.number;
        self.tell(|| format!("program {number} gets back a lease of {gone:?}"));
    }

    fn give_all_back(&mut self) {
        for at in 0..self.programs.len() {
            while self.some_lease(at).is_some() {
                self.give_back(at);
            }
        }
    }

    fn observe(&mut self, at: usize) {
        let Some(lease) = self.some_lease(at) else { return };
        let sights = [Seen::Status(200), Seen::Status(403), Seen::Status(429), Seen::Status(407), Seen::Timeout, Seen::Captcha];
        let seen = sights[self.chance.below(sights.len())];
        let now = self.clock(&self.programs[at]);
        let program = &mut self.programs[at];
        let advised = program.client.observe_lease(&lease_ref(lease), seen, None, now);
        let number = program.number;
        self.tell(|| format!("program {number} sees {seen:?}: {advised:?}"));
        if advised.is_some_and(|advised| advised != LeaseAdvice::Keep) && self.chance.below(2) == 0 {
            self.give_back(at);
        }
    }

    fn cancel(&mut self, at: usize) {
        let now = self.clock(&self.programs[at]);
        let program = &mut self.programs[at];
        let Some(command) = program.waits.iter().next().copied() else { return };
        let number = program.number;
        program.client.cancel(command, now);
        if self.chance.below(2) == 0 {
            // Its caller is gone, too, and hears of nothing.
            self.programs[at].waits.remove(&command);
            self.programs[at].client.abandon(command, now);
        }
        self.tell(|| format!("somebody gives up waiting in program {number}"));
    }

    /// A program dies. Its claims end with it; what it had sent may arrive.
    fn crash(&mut self, at: usize) -> Result<(), Wrong> {
        if self.chance.below(4) > 0 {
            return Ok(());
        }
        let program = self.programs.remove(at);
        for out in program.out {
            match out {
                Out::Send(_, request) if self.chance.below(2) == 0 => _ = self.execute(&request),
                Out::Store(_, call) if self.chance.below(2) == 0 => _ = self.store(&call, program.number)?,
                _ => {}
            }
        }
        self.store.ends_claims(program.number);
        self.tell(|| format!("program {} dies", program.number));
        Ok(())
    }

    /// The claims of a program end while it lives, and it is told so. No message that it was about to send is younger than that.
    fn lose(&mut self, at: usize) {
        let program = &mut self.programs[at];
        if program.out.iter().any(|out| matches!(out, Out::Send(..))) {
            return;
        }
        let number = program.number;
        self.store.ends_claims(number);
        let now = Now { unix: self.now, monotonic: self.now - program.began };
        program.client.lost(None, now);
        self.tell(|| format!("the claims of program {number} end"));
    }

    /// A session uses up what was bought.
    fn expire(&mut self) {
        let living: Vec<String> = self.living();
        if let Some(session) = (!living.is_empty()).then(|| living[self.chance.below(living.len())].clone()) {
            self.service.add_traffic(&session, 1 << 50);
            self.tell(|| format!("{session} is used up"));
        }
    }

    /// A person pauses the pool, resumes it, or drains it everywhere, so that it has to be opened again.
    fn person(&mut self, at: usize) {
        let what = self.chance.below(12);
        let program = &mut self.programs[at];
        let Some(pool) = program.pool else { return self.reopen(at) };
        let params = format!(r#"{{"pool":{pool}}}"#);
        let (operation, params) = match what {
            0 => ("pause_pool", params),
            1..=8 => ("resume_pool", params),
            9 => ("drain_pool", format!(r#"{{"pool":{pool},"grace_ms":1000,"everywhere":true}}"#)),
            _ => ("drain_pool", format!(r#"{{"pool":{pool},"grace_ms":1000}}"#)),
        };
        if operation == "drain_pool" {
            program.drains = program.pool.take();
        }
        let command = program.client.start_json(operation, &params, CallOptions::default());
        program.waits.insert(command);
        let number = program.number;
        if operation == "resume_pool" {
            self.watch.resumed(number, self.now);
        }
        self.tell(|| format!("somebody says {operation} in program {number}"));
    }

    /// A person resumes the pool in a program that has it open.
    fn resume(&mut self, at: usize) {
        let program = &mut self.programs[at];
        let Some(pool) = program.pool else { return };
        let resumed = program.client.start_json("resume_pool", &format!(r#"{{"pool":{pool}}}"#), CallOptions::default());
        program.waits.insert(resumed);
        let number = program.number;
        self.watch.resumed(number, self.now);
    }

    /// The pool was closed or drained, or could not be opened.
    fn reopen(&mut self, at: usize) {
        let again = self.request(self.programs[at].size);
        let program = &mut self.programs[at];
        if program.pool.is_none() && !program.client.is_pending(program.opening) {
            program.opening = program.client.open_pool(again).command;
        }
    }

    /// The store does what it is asked.
    fn store(&mut self, call: &StoreCall, number: u8) -> Result<StoreAnswer, Wrong> {
        let before = if let StoreCall::Put { name, .. } = call { self.store.data(name).cloned() } else { None };
        let answer = self.store.call(call, number, self.now);
        if answer == StoreAnswer::Done {
            let living = self.living();
            self.watch.put(number, call, before.as_ref(), &living, self.now)?;
        }
        Ok(answer)
    }

    fn trouble(&mut self) {
        match self.chance.below(6) {
            0 => self.service.set_balance(Decimal::ZERO),
            1 => self.service.set_balance(Decimal::from(10_000)),
            2 if self.faults > 0 => self.is_out = true,
            3 => self.is_out = false,
            4 if self.faults > 0 => {
                let codes = ["PRODUCT_OUT_OF_STOCK", "BACKEND_ERROR", "SESSION_LIMIT_REACHED", "INTERNAL_ERROR", "RATE_LIMIT_EXCEEDED"];
                let code = codes[self.chance.below(codes.len())];
                // An answer about the work itself is repeated under the same key.
                let stored = code != "RATE_LIMIT_EXCEEDED";
                let sold = code.starts_with("BACKEND") && self.chance.below(2) == 0;
                let error = ErrorFault { code: code.to_owned(), stored, sold, ..ErrorFault::default() };
                let operation = Some(["create_session", "get_session", "rotate_session"][self.chance.below(3)].to_owned());
                self.service.inject(FaultRule { operation, times: 1 + self.chance.below(3) as u32, fault: Fault::Error(error) });
                self.tell(|| format!("the service is to fail with {code}"));
            }
            _ => {}
        }
    }

    /// A purchase that was given up arrives all the same.
    fn arrive(&mut self) {
        let at = self.chance.below(self.late.len());
        let (sent, request) = self.late.remove(at);
        if self.now - sent <= UNDER_WAY {
            self.tell(|| "a purchase arrives late".to_owned());
            self.execute(&request);
        }
    }

    fn execute(&mut self, request: &Request) -> (u16, Vec<(String, String)>, Vec<u8>) {
        if self.is_out {
            return (503, Vec::new(), Vec::new());
        }
        let request = http::Request::try_from(request).expect("is a request");
        let (parts, body) = self.service.handle(&request, self.now).into_parts();
        let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        (parts.status.as_u16(), headers.collect(), body)
    }

    /// One message of a program is answered; or meets something else.
    fn answer(&mut self, at: usize, may_fail: bool) -> Result<bool, Wrong> {
        let Some(program) = self.programs.get_mut(at) else { return Ok(false) };
        let Some(out) = program.out.pop_front() else { return Ok(false) };
        let now = Now { unix: self.now, monotonic: self.now - program.began };
        let number = program.number;
        let is_store = matches!(out, Out::Store(..));
        let fails = may_fail && self.chance.below(32) < self.faults && (!is_store || self.store_fails);
        let lost = Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe };
        match out {
            Out::Store(id, call) => {
                let is_done = !fails || self.chance.below(2) == 0;
                let answer = if is_done { self.store(&call, number)? } else { StoreAnswer::Failed };
                let answer = if fails { StoreAnswer::Failed } else { answer };
                // Where it has the same pool twice, nobody knows which of the two has read it.
                let program = &self.programs[at];
                let is_drained = program.drains.is_none_or(|pool| program.client.status(pool).is_none());
                if answer != StoreAnswer::Failed && is_drained {
                    self.watch.read(number, &call, &answer, self.now);
                }
                self.programs[at].client.resolve(id, Outcome::Store(answer), now).expect("is answered once");
            }
            Out::Send(id, request) if fails => {
                let is_purchase = is_purchase(&request);
                match self.chance.below(3) {
                    0 => _ = self.execute(&request),
                    1 if is_purchase => self.late.push((self.now, request)),
                    _ => {}
                }
                self.tell(|| format!("an answer to program {number} is lost"));
                self.programs[at].client.resolve(id, lost, now).expect("is answered once");
            }
            Out::Send(id, request) => {
                let (status, headers, body) = self.execute(&request);
                if is_purchase(&request) && status < 300 {
                    self.watch.freed(self.now);
                }
                let said = format!("program {number}: {} {} is answered {status}", request.method.as_str(), request.url);
                self.tell(|| said);
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let outcome = Outcome::Response { status, headers: &headers, body: &body, truncated: false };
                self.programs[at].client.resolve(id, outcome, now).expect("is answered once");
            }
        }
        Ok(true)
    }

    /// All programs go on until they wait; whatever is out then is still out.
    fn drain(&mut self) -> Result<(), Wrong> {
        for at in 0..self.programs.len() {
            for round in 0.. {
                if round > 10_000 {
                    return Err("a client never waits".into());
                }
                self.lived.steps += 1;
                let now = self.clock(&self.programs[at]);
                let program = &mut self.programs[at];
                match program.client.poll(now) {
                    Step::Store { id, call, .. } => {
                        self.watch.asked(program.number, &call, self.now)?;
                        self.programs[at].out.push_back(Out::Store(id, call));
                    }
                    Step::Send { id, request, .. } => {
                        if is_purchase(&request) {
                            let key = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"));
                            self.watch.sent(key.map(|(_, value)| value.as_str()))?;
                        }
                        program.out.push_back(Out::Send(id, request));
                    }
                    Step::Completed { command } => self.completed(at, command)?,
                    Step::Notify(_) => {}
                    Step::Wait { until } => {
                        program.wakes = until.map(|until| until + program.began);
                        // Another one may have drained it everywhere.
                        program.pool = program.pool.filter(|pool| program.client.status(*pool).is_some());
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    fn completed(&mut self, at: usize, command: CommandId) -> Result<(), Wrong> {
        let now = self.clock(&self.programs[at]);
        let program = &mut self.programs[at];
        if command == program.opening {
            let ticket = hopline::client::Ticket::<OpenPool>::of(command);
            let opened = program.client.take(ticket).ok_or("a completed command has no result")?;
            program.pool = opened.as_ref().ok().map(|opened| opened.pool);
            let number = program.number;
            self.tell(|| format!("the pool of program {number} is open: {:?}", opened.as_ref().map_err(ToString::to_string)));
            return Ok(());
        }
        if !program.waits.remove(&command) {
            // The caller is gone.
            program.client.abandon(command, now);
            return Ok(());
        }
        let lease = program.client.lease_of(command);
        let result = program.client.take_answer(command).ok_or("a completed command has no result")?;
        let number = program.number;
        match (result, lease) {
            (Ok(answered), Some(lease)) => {
                let told: serde_json::Value = answered.raw.read().map_err(|error| error.to_string())?;
                let session = told["session_id"].as_str().unwrap_or_default().to_owned();
                if told["proxy"]["username"].as_str().is_none() {
                    return Err(format!("a lease of {session} has no credentials: {told}"));
                }
                let rotations = self.rotations(&session);
                self.programs[at].leases.insert((lease.pool, lease.lease), (session.clone(), rotations));
                self.lived.granted += 1;
                self.tell(|| format!("program {number} lends {session}"));
            }
            (Ok(_), None) => {}
            (Err(error), _) => self.tell(|| format!("program {number}: {error}")),
        }
        Ok(())
    }

    fn rotations(&self, session: &str) -> u32 {
        self.service.sessions(self.now).iter().find(|view| view.session_id == session).map_or(0, |view| view.rotations)
    }

    fn living(&self) -> Vec<String> {
        let sessions = self.service.sessions(self.now).into_iter();
        sessions.filter(|view| matches!(view.status, "creating" | "active")).map(|view| view.session_id).collect()
    }

    /// Checks the properties that must hold at all times.
    fn check(&mut self) -> Result<(), Wrong> {
        let sessions = self.service.sessions(self.now);
        self.lived.bought = sessions.len();
        self.lived.rotated = sessions.iter().map(|view| view.rotations as usize).sum();
        let living = self.living();
        if living.len() > self.size as usize {
            return Err(format!("more sessions than the pool may have: {} of {}", living.len(), self.size));
        }
        if self.service.charges().len() > sessions.len() {
            return Err("more was charged than was bought".into());
        }
        let total = self.store.total();
        if total.amount > self.cap * 1000 {
            return Err(format!("more counts than may: {total:?} of {}", self.cap));
        }
        if !self.is_wanted && self.ready == 0 && !sessions.is_empty() {
            return Err("something was bought that nobody waits for".into());
        }
        let rotations: BTreeMap<&str, u32> = sessions.iter().map(|view| (view.session_id.as_str(), view.rotations)).collect();
        let mut lent: BTreeMap<&str, (u8, u32)> = BTreeMap::new();
        for program in &self.programs {
            for (lease, (session, had)) in program.leases.iter().filter(|(lease, _)| program.client.is_valid(&lease_ref(**lease))) {
                let (lender, times) = lent.entry(session).or_insert((program.number, 0));
                *times += 1;
                if *lender != program.number {
                    return Err(format!("{session} is lent twice, by programs {lender} and {}", program.number));
                }
                if *times > self.terms.leases_per_session.unwrap_or(1) {
                    return Err(format!("{session} is lent {times} times by program {lender}"));
                }
                if rotations.get(session.as_str()) != Some(had) {
                    return Err(format!("the exit of {session} was changed under the lease {lease:?} of program {}", program.number));
                }
            }
            if let Some(status) = program.pool.and_then(|pool| program.client.status(pool)) {
                let own = status.ready + status.leased + status.creating + status.changing + status.resting;
                let others = status.with_others + status.free_in_store + status.unknown;
                if own + others + status.in_doubt + status.empty != status.size || status.size < program.size {
                    return Err(format!("the status of program {} does not add up: {status:?}", program.number));
                }
            }
        }
        Ok(())
    }

    /// Time passes, and whatever is due meanwhile happens.
    fn pass(&mut self, time: Millis) -> Result<(), Wrong> {
        let until = self.now + time;
        for _ in 0..2000 {
            self.drain()?;
            let mut answered = false;
            for at in 0..self.programs.len() {
                answered |= self.answer(at, true)?;
            }
            if answered {
                self.now += self.chance.below(20) as Millis;
                self.check()?;
                continue;
            }
            let next = self.programs.iter().filter_map(|program| program.wakes).min().filter(|at| *at <= until);
            let Some(next) = next else { break };
            if next <= self.now {
                self.now += 1;
            }
            self.now = self.now.max(next);
        }
        self.now = self.now.max(until);
        self.drain()
    }

    /// All is well again; then whoever asks gets a session, and closed pools leave nothing but a record a slot.
    fn end(&mut self) -> Result<(), Wrong> {
        self.tell(|| "all is well again".to_owned());
        (self.faults, self.is_out) = (0, false);
        self.service.clear_faults();
        self.service.set_balance(Decimal::from(10_000));
        while !self.late.is_empty() {
            self.arrive();
        }
        self.give_all_back();
        self.pass(OUTLASTS)?;
        self.pass(30 * MINUTE)?;
        if self.programs.is_empty() {
            self.begin();
        }
        self.is_wanted = true;
        // Others may keep at hand all that there may be.
        let at = self.chance.below(self.programs.len());
        let stays = self.programs.remove(at);
        for program in std::mem::replace(&mut self.programs, vec![stays]) {
            self.store.ends_claims(program.number);
            self.tell(|| format!("program {} dies", program.number));
        }
        let at = 0;
        let before = self.lived.granted;
        if self.programs[at].pool.is_none() {
            // Its store failed when it opened the pool.
            self.reopen(at);
            self.pass(MINUTE)?;
        }
        let program = &self.programs[at];
        let pool = program.pool.ok_or_else(|| format!("all is well, and a pool can't be opened: {:?}", program.client))?;
        // A person may have paused the pool, and the day's cap may be used up.
        self.resume(at);
        self.pass(if self.cap < 5000 { 24 * 60 * MINUTE } else { MINUTE })?;
        // Those who had waited may have all that there is.
        self.give_all_back();
        let program = &mut self.programs[at];
        let asked = AcquireLease { pool, timeout_ms: Some(60 * MINUTE), ..AcquireLease::default() };
        let command = program.client.acquire(asked).command;
        program.waits.insert(command);
        self.pass(60 * MINUTE)?;
        self.check()?;
        let program = &self.programs[at];
        let status = program.pool.and_then(|pool| program.client.status(pool));
        if self.lived.granted == before
            && status.as_ref().is_none_or(|status| status.in_doubt == 0 && status.with_others + status.free_in_store + status.unknown > 0)
        {
            return Err(format!("all is well, and nobody gets a session: {status:?}"));
        }
        self.give_all_back();
        for at in 0..self.programs.len() {
            let program = &mut self.programs[at];
            let Some(pool) = program.pool else { continue };
            let closed = program.client.close_pool(ClosePool { pool, grace_ms: Some(0) });
            program.waits.insert(closed);
        }
        self.pass(10 * MINUTE)?;
        for program in &self.programs {
            if !program.waits.is_empty() {
                return Err(format!("program {} has not closed its pool", program.number));
            }
            let owned: Vec<String> = self.store.owned_by(program.number).map(ToString::to_string).collect();
            if !owned.is_empty() {
                return Err(format!("program {} has closed its pool and still owns {owned:?}", program.number));
            }
        }
        self.check()
    }
}
