//! The life of several programs of one pool in virtual time: what is due is in an agenda, and each message takes its time.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hopline::client::{CallOptions, ClientOptions, CommandId, Millis, Name, Now, Outcome, Step, StoreAnswer, StoreCall, Ticket};
use hopline::contract::agent::SessionType;
use hopline::contract::pools::{ClosePool, LeaseRef, OpenPool, PoolOnChange};
use hopline::contract::{Cheapest, Secret};
use hopline::pool::PoolClient;
use hopline::wire::Request;
use hopline_sandbox::{Config, ErrorFault, Fault, FaultRule, Service};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rust_decimal::Decimal;

use super::agenda::{Agenda, Due, Reply};
use super::caller::{Caller, Out};
use super::laws::Laws;
use super::measures::Lived;
use super::story::{MINUTE, Order, Outage, Part, SECOND, SERVICE, START, STORE, Story};
use super::targets::Targets;
use crate::pools::is_purchase;
use crate::pools::watch::{Wrong, is_pool, is_slot};
use crate::service::API_KEY;
use crate::store::Store;
use crate::swarm::Source;

/// So long after its pool was closed a program lets go of the last slot: a purchase that is under way comes to its end.
const CLOSED: Millis = 2 * MINUTE;

/// The meaning of a command to the fleet.
#[derive(Debug, Clone, Copy)]
pub(super) enum Awaited {
    Opening,
    Closing,
    Lease(usize),
    Person(usize, Millis),
}

pub(super) struct Program {
    pub(super) place: usize,
    pub(super) client: PoolClient,
    pub(super) request: OpenPool,
    pub(super) pool: Option<u32>,
    pub(super) awaits: BTreeMap<CommandId, Awaited>,
    pub(super) wakes: Option<Millis>,
    pub(super) began: Millis,
    pub(super) skew: Millis,
    pub(super) is_closing: bool,
    /// When its last call reaches the store, and is answered: they keep their order.
    pub(super) last_call: (Millis, Millis),
}

impl Program {
    pub(super) fn clock(&self, now: Millis) -> Now {
        Now { unix: START + now + self.skew, monotonic: now - self.began }
    }
}

pub(super) struct Fleet {
    pub(super) chance: Xoshiro256PlusPlus,
    pub(super) now: Millis,
    /// When the story begins.
    pub(super) zero: Millis,
    pub(super) agenda: Agenda,
    pub(super) service: Service,
    pub(super) store: Store,
    /// How often each session was rotated.
    pub(super) rotated: BTreeMap<String, u32>,
    /// The last owner of each slot.
    pub(super) owned: BTreeMap<String, u8>,
    pub(super) programs: BTreeMap<u8, Program>,
    pub(super) numbers: u8,
    pub(super) callers: Vec<Caller>,
    pub(super) targets: Targets,
    /// The lease of each session that is lent.
    pub(super) lent: BTreeMap<String, (u8, LeaseRef)>,
    pub(super) story: Story,
    pub(super) lived: Lived,
    pub(super) laws: Laws,
    /// True if the laws are checked.
    pub(super) has_laws: bool,
    pub(super) told: Option<Vec<String>>,
}

impl Fleet {
    pub(super) fn new(story: Story, seed: u64, tells: bool) -> Fleet {
        let config = Config {
            api_key: API_KEY.to_owned(),
            session_limit: story.limit,
            requests_per_minute: 100_000_000,
            provisioning_ms: story.creation.clone(),
            ..Config::new(seed)
        };
        let mut service = Service::new(config);
        service.set_balance(Decimal::from(10_000_000));
        let plans = story.programs.iter().enumerate().flat_map(|(place, part)| part.callers.iter().map(move |plan| (place, plan.clone())));
        let callers: Vec<Caller> =
            plans.map(|(place, plan)| Caller { plan, place, waits: None, target: None, avoids: None, asked_to_avoid: None }).collect();
        Fleet {
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            now: 0,
            zero: 0,
            agenda: Agenda::default(),
            service,
            store: Store::default(),
            rotated: BTreeMap::new(),
            owned: BTreeMap::new(),
            programs: BTreeMap::new(),
            numbers: 0,
            targets: Targets::new(story.targets.clone()),
            lent: BTreeMap::new(),
            lived: Lived::new(callers.len()),
            callers,
            laws: Laws::default(),
            has_laws: false,
            story,
            told: tells.then(Vec::new),
        }
    }

    pub(super) fn tell(&mut self, what: impl FnOnce() -> String) {
        let at = self.now - self.zero;
        if let Some(told) = &mut self.told {
            told.push(format!("{:>9.3} {}", at as f64 / 1000.0, what()));
        }
    }

    fn takes(&mut self, of: RangeInclusive<Millis>) -> Millis {
        of.start() + self.chance.below((of.end() - of.start() + 1) as usize) as Millis
    }

    pub(super) fn is_out(&self, outage: Outage) -> bool {
        let now = self.now - self.zero;
        self.story.outages.iter().any(|(when, known)| *known == outage && when.contains(&now))
    }

    pub(super) fn is_valid(&self, number: u8, lease: &LeaseRef) -> bool {
        self.programs.get(&number).is_some_and(|program| program.client.is_valid(lease))
    }

    /// Lives through the story.
    pub(super) fn live(&mut self) -> Result<(), Wrong> {
        let outages = std::mem::take(&mut self.story.outages);
        self.stock()?;
        (self.story.outages, self.zero) = (outages, self.now);
        self.lived = Lived::new(self.callers.len());
        let begins = self.story.programs.iter().enumerate().map(|(place, part)| (part.begins, Order::Begin(place)));
        let orders: Vec<(Millis, Order)> = begins.chain(self.story.orders.iter().copied()).collect();
        for (order, (at, _)) in orders.iter().enumerate() {
            self.agenda.write(self.zero + at, Due::Order(order));
        }
        self.story.orders = orders;
        self.run(self.zero + self.story.lasts)?;
        let sessions = self.service.sessions(START + self.now);
        self.lived.bought = sessions.len();
        self.lived.rotations = sessions.iter().map(|session| session.rotations).sum();
        self.lived.is_over(&self.callers, self.now, self.zero);
        Ok(())
    }

    /// Before the story somebody buys what is to be there, and goes.
    fn stock(&mut self) -> Result<(), Wrong> {
        if self.story.there == 0 {
            return Ok(());
        }
        let place = self.story.programs.len();
        let number = self.begin(place, Part { begins: 0, skew: 0, limit: None, country: None, callers: Vec::new() }, self.story.there)?;
        for _ in 0..3600 {
            self.run(self.now + SECOND)?;
            let active = self.service.sessions(START + self.now).iter().filter(|session| session.status == "active").count();
            if active == self.story.there as usize && self.lent.is_empty() {
                // So that it has read them.
                self.run(self.now + 10 * SECOND)?;
                self.close(number);
                self.drain(number)?;
                self.run(self.now + 10 * SECOND)?;
                return if self.programs.is_empty() { Ok(()) } else { Err("the first program does not close".into()) };
            }
        }
        Err("what is to be there is not bought within an hour".into())
    }

    fn run(&mut self, until: Millis) -> Result<(), Wrong> {
        while let Some((at, due)) = self.agenda.next(until) {
            self.now = at;
            self.happens(due)?;
            if self.has_laws {
                self.check();
            }
        }
        self.now = until;
        Ok(())
    }

    fn happens(&mut self, due: Due) -> Result<(), Wrong> {
        self.lived.steps += 1;
        let number = match due {
            Due::Call(number, id, call, back) => {
                if !self.programs.contains_key(&number) {
                    return Ok(());
                }
                let answer = self.call(number, &call);
                self.agenda.write(self.now + back, Due::Called(number, id, answer));
                return Ok(());
            }
            Due::Request(number, id, request, back) => {
                // One that is under way arrives also where its program has ended.
                let reply = self.execute(number, &request)?;
                if is_purchase(&request) {
                    self.laws.buying -= 1;
                    self.laws.refused_at = Some(self.now - self.zero + back).filter(|_| reply.0 >= 400).or(self.laws.refused_at);
                }
                self.agenda.write(self.now + back, Due::Answer(number, id, about(&request), reply));
                return Ok(());
            }
            Due::ClaimsEnd(number) => {
                self.store.ends_claims(number);
                return Ok(());
            }
            Due::Dies(session) => {
                self.service.add_traffic(&session, 1_000_000_000_000);
                return Ok(());
            }
            Due::Ended(number, until) => {
                let owned = self.store.owned_by(number).next().cloned();
                match owned {
                    None => self.kill(number),
                    Some(name) if self.now > until => return Err(format!("program {number} has closed its pool and still owns {name}")),
                    Some(_) => self.agenda.write(self.now + SECOND, Due::Ended(number, until)),
                }
                return Ok(());
            }
            Due::Order(order) => return self.order(order),
            Due::Called(number, id, answer) => {
                let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
                let now = program.clock(self.now);
                program.client.resolve(id, Outcome::Store(answer), now).map_err(|error| format!("{error:?}"))?;
                number
            }
            Due::Answer(number, id, about, (status, headers, body)) => {
                if let Some((session, operation)) = &about {
                    self.laws.answered(number, session, operation, status, &body, self.now - self.zero);
                }
                let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
                let now = program.clock(self.now);
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                let outcome = Outcome::Response { status, headers: &headers, body: &body, truncated: false };
                program.client.resolve(id, outcome, now).map_err(|error| format!("{error:?}"))?;
                number
            }
            Due::Wakes(number) => {
                let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
                if program.wakes.is_none_or(|wakes| wakes > self.now) {
                    return Ok(());
                }
                program.wakes = None;
                number
            }
            Due::Opens(number) => {
                let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
                let opening = program.client.open_pool(program.request.clone()).command;
                program.awaits.insert(opening, Awaited::Opening);
                number
            }
            Due::Asks(number, caller) => {
                self.asks(number, caller);
                number
            }
            Due::GivesBack(number, caller, out) => {
                self.gives_back(number, caller, &out);
                number
            }
        };
        self.drain(number)
    }

    fn call(&mut self, number: u8, call: &StoreCall) -> StoreAnswer {
        let is_away = self.is_out(Outage::Store);
        let answer = if is_away { StoreAnswer::Failed } else { self.store.call(call, number, START + self.now) };
        self.lived.called(number, self.now - self.zero);
        self.laws.called(number, call, &answer);
        self.tell(|| format!("program {number}: {}", told(call, &answer)));
        if let StoreAnswer::Claimed(claimed) = &answer {
            for (name, data) in claimed.iter().filter(|(name, _)| is_slot(name)) {
                let before = self.owned.insert(name.to_string(), number);
                self.lived.moves += u32::from(data.is_some() && before.is_some_and(|before| before != number));
            }
        }
        answer
    }

    /// The service answers, or what is wrong with it.
    fn execute(&mut self, number: u8, request: &Request) -> Result<Reply, Wrong> {
        let http = http::Request::try_from(request).expect("is a request");
        let operation = Service::operation(&http);
        let now = self.now - self.zero;
        let mut fault = None;
        for (_, outage) in self.story.outages.iter().filter(|(when, _)| when.contains(&now)) {
            match (outage, operation) {
                (Outage::Service, _) => {
                    self.told.iter_mut().for_each(|told| told.push(format!("{now:>9} program {number}: {} is not answered", request.url)));
                    return Ok((503, Vec::new(), Vec::new()));
                }
                (Outage::Reads(None, status), Some("get_session")) => {
                    return Ok((*status, vec![("content-type".into(), "text/html".into())], b"<html>no</html>".to_vec()));
                }
                (Outage::Reads(Some(code), status), Some("get_session")) => fault = Some((*code, Some(*status))),
                (Outage::Backend(_), Some("list_products")) => return Ok((503, Vec::new(), Vec::new())),
                (Outage::Purchases(code) | Outage::Backend(code), Some("create_session")) => fault = Some((*code, None)),
                _ => {}
            }
        }
        if let Some((code, status)) = fault {
            let error = ErrorFault { code: code.to_owned(), status, ..ErrorFault::default() };
            self.service.inject(FaultRule { operation: None, times: 1, fault: Fault::Error(error) });
        }
        let (parts, body) = self.service.handle(&http, START + self.now).into_parts();
        self.service.clear_faults();
        let status = parts.status.as_u16();
        self.tell(|| format!("program {number}: {} {} is answered {status}", request.method.as_str(), request.url));
        if status < 300 && operation == Some("create_session") {
            self.bought(&body)?;
        }
        if status < 300 && operation == Some("rotate_session") {
            let session = http.uri().path().rsplit('/').nth(1).unwrap_or_default();
            if let Some((lender, lease)) = self.lent.get(session).filter(|(lender, lease)| self.is_valid(*lender, lease)) {
                return Err(format!("the exit of {session} was changed under the lease {lease:?} of program {lender}"));
            }
            *self.rotated.entry(session.to_owned()).or_default() += 1;
        }
        let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Ok((status, headers.collect(), body))
    }

    fn bought(&mut self, body: &[u8]) -> Result<(), Wrong> {
        let told: serde_json::Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        let session = told["data"]["session_id"].as_str().unwrap_or_default().to_owned();
        if let Some(lives) = self.story.lives {
            self.agenda.write(self.now + self.story.creation.end() + lives, Due::Dies(session));
        }
        let sessions = self.service.sessions(START + self.now);
        self.lived.creating(sessions.iter().filter(|session| session.status == "creating").count());
        let living = sessions.iter().filter(|session| matches!(session.status, "creating" | "active")).count();
        if living > self.story.size as usize {
            return Err(format!("more sessions than the pool may have: {living} of {}", self.story.size));
        }
        if self.service.charges().len() > sessions.len() {
            return Err("more was charged than was bought".into());
        }
        Ok(())
    }

    /// All programs close the pool.
    pub(super) fn end(&mut self) -> Result<(), Wrong> {
        self.story.outages.clear();
        for number in self.programs.keys().copied().collect::<Vec<_>>() {
            self.close(number);
            self.drain(number)?;
        }
        self.run(self.now + CLOSED + 30 * SECOND)?;
        if let Some((number, _)) = self.programs.first_key_value() {
            return Err(format!("program {number} has not closed its pool"));
        }
        Ok(())
    }

    /// A program begins, and opens the pool. Returns its number.
    fn begin(&mut self, place: usize, part: Part, keep_ready: u32) -> Result<u8, Wrong> {
        self.numbers = self.numbers.checked_add(1).ok_or("too many programs begin")?;
        let number = self.numbers;
        let options = ClientOptions {
            base_url: "https://api.example/v1".into(),
            api_key: Some(Secret::new(API_KEY)),
            store: true,
            daily_cap_usd: Some(hopline::contract::Decimal(Decimal::from(1_000_000))),
            ..ClientOptions::default()
        };
        let client = PoolClient::new(options, [number; 16]).map_err(|error| error.to_string())?;
        let chooses = self.story.chooses;
        let request = OpenPool {
            name: "shop".to_owned(),
            size: self.story.size,
            keep_ready: Some(keep_ready),
            replace: self.story.replace,
            session_type: SessionType::Dynamic,
            product_no: if chooses { String::new() } else { "dynamic-world".into() },
            product: chooses.then(|| Cheapest::of(&SessionType::Dynamic)),
            country_code: part.country.map(str::to_owned),
            on_change: part.country.map(|_| PoolOnChange::Replace),
            expected_charge_usd: self.story.expects.map(|usd| hopline::contract::Decimal(Decimal::from(usd))),
            max_unit_price: part.limit.map(|usd| hopline::contract::Decimal(Decimal::from(usd))),
            ..OpenPool::default()
        };
        let (began, skew) = (self.now, part.skew);
        let program = Program {
            place,
            client,
            request,
            pool: None,
            awaits: BTreeMap::new(),
            wakes: None,
            began,
            skew,
            is_closing: false,
            last_call: (0, 0),
        };
        self.programs.insert(number, program);
        self.lived.begins(number, place, self.now - self.zero);
        self.agenda.write(self.now, Due::Opens(number));
        self.tell(|| format!("program {number} begins in place {place}"));
        Ok(number)
    }

    fn close(&mut self, number: u8) {
        let Some(program) = self.programs.get_mut(&number) else { return };
        program.is_closing = true;
        let Some(pool) = program.pool else { return self.kill(number) };
        let closing = program.client.close_pool(ClosePool { pool, grace_ms: None });
        program.awaits.insert(closing, Awaited::Closing);
        self.lived.ends(number, self.now - self.zero);
        self.tell(|| format!("program {number} closes its pool"));
    }

    /// A program dies: its leases and waits are gone, and what it owned is free after the store's time.
    fn kill(&mut self, number: u8) {
        self.laws.killed(number, self.now - self.zero);
        let program = self.programs.remove(&number);
        if program.is_some_and(|program| program.awaits.values().any(|awaited| matches!(awaited, Awaited::Person(..)))) {
            self.laws.unsays();
        }
        self.lent.retain(|_, (lender, _)| *lender != number);
        self.callers
            .iter_mut()
            .filter(|caller| caller.waits.is_some_and(|(program, _)| program == number))
            .for_each(|caller| caller.waits = None);
        self.lived.ends(number, self.now - self.zero);
        self.agenda.write(self.now + self.story.claims_outlast, Due::ClaimsEnd(number));
        self.tell(|| format!("program {number} ends"));
    }

    fn order(&mut self, order: usize) -> Result<(), Wrong> {
        let at = |fleet: &Fleet, place| {
            fleet.programs.iter().find(|(_, program)| program.place == place && !program.is_closing).map(|(number, _)| *number)
        };
        let number = match self.story.orders[order].1 {
            Order::Begin(place) if at(self, place).is_some() => return Ok(()),
            Order::Begin(place) => self.begin(place, self.story.programs[place].clone(), self.story.keep_ready)?,
            Order::Close(place) => {
                let Some(number) = at(self, place) else { return Ok(()) };
                self.close(number);
                number
            }
            Order::Kill(place) => {
                if let Some(number) = at(self, place) {
                    self.kill(number);
                }
                return Ok(());
            }
            Order::Person(place, operation, members) => {
                let Some(number) = at(self, place) else { return Ok(()) };
                let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
                let Some(pool) = program.pool else { return Ok(()) };
                let command = program.client.start_json(operation, &format!("{{\"pool\":{pool}{members}}}"), CallOptions::default());
                program.awaits.insert(command, Awaited::Person(order, self.now));
                self.lived.orders.insert(order, None);
                self.laws.says(operation, self.now - self.zero);
                self.tell(|| format!("somebody says {operation} in program {number}"));
                number
            }
        };
        self.drain(number)
    }

    /// A program goes on until it waits.
    fn drain(&mut self, number: u8) -> Result<(), Wrong> {
        for round in 0.. {
            if round > 100_000 {
                return Err(format!("program {number} never waits"));
            }
            let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
            match program.client.poll(program.clock(self.now)) {
                Step::Store { id, call, .. } => {
                    let (there, back) = (self.takes(STORE), self.takes(STORE));
                    let (arrives, is_back) = (self.now + there / 2, self.now + there / 2 + back / 2 + 1);
                    let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
                    let arrives = arrives.max(program.last_call.0);
                    let is_back = is_back.max(program.last_call.1);
                    program.last_call = (arrives, is_back);
                    self.agenda.write(arrives, Due::Call(number, id, call, is_back - arrives));
                }
                Step::Send { id, request, .. } => {
                    let (there, back) = (self.takes(SERVICE) / 2, self.takes(SERVICE) / 2);
                    if is_purchase(&request) {
                        self.laws.buying += 1;
                        let key = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("idempotency-key"));
                        let (_, key) = key.ok_or("a purchase goes out without a key")?;
                        let key = key.as_str().to_owned();
                        self.lived.sent(&key, self.now - self.zero);
                        if self.has_laws {
                            self.check_purchase(number, &key);
                        }
                    }
                    if let Some((session, operation)) = about(&request) {
                        self.laws.sent(number, &session, operation, self.now - self.zero);
                    }
                    self.agenda.write(self.now + there, Due::Request(number, id, request, back));
                }
                Step::Completed { command } => self.completed(number, command)?,
                Step::Notify(_) => {}
                Step::Wait { until } => {
                    let wakes = until.map(|until| (until + program.began).max(self.now + 1));
                    if wakes != program.wakes {
                        program.wakes = wakes;
                        if let Some(wakes) = wakes {
                            self.agenda.write(wakes, Due::Wakes(number));
                        }
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn completed(&mut self, number: u8, command: CommandId) -> Result<(), Wrong> {
        let Some(program) = self.programs.get_mut(&number) else { return Ok(()) };
        let now = program.clock(self.now);
        let Some(awaited) = program.awaits.remove(&command) else {
            program.client.abandon(command, now);
            return Ok(());
        };
        match awaited {
            Awaited::Opening => {
                let opened = program.client.take(Ticket::<OpenPool>::of(command)).ok_or("a completed command has no result")?;
                let place = program.place;
                match opened {
                    Ok(opened) => {
                        program.pool = Some(opened.pool);
                        for caller in 0..self.callers.len() {
                            if self.callers[caller].place == place {
                                let at = self.now + self.chance.below(50) as Millis;
                                self.agenda.write(at, Due::Asks(number, caller));
                            }
                        }
                        self.tell(|| format!("program {number} has the pool open"));
                    }
                    Err(error) => {
                        self.agenda.write(self.now + SECOND, Due::Opens(number));
                        self.tell(|| format!("program {number} can't open the pool: {error}"));
                    }
                }
            }
            Awaited::Closing => self.agenda.write(self.now + SECOND, Due::Ended(number, self.now + CLOSED)),
            Awaited::Person(order, since) => {
                let result = program.client.take_answer(command).ok_or("a completed command has no result")?;
                self.lived.orders.insert(order, Some(self.now - since));
                if let Order::Person(_, operation, _) = self.story.orders[order].1 {
                    self.laws.said(operation, result.is_ok(), self.now - since, self.now - self.zero);
                }
                self.tell(|| {
                    format!("what somebody said in program {number} is done: {:?}", result.map(|_| ()).map_err(|error| error.to_string()))
                });
            }
            Awaited::Lease(caller) => {
                let lease = program.client.lease_of(command);
                let is_closing = program.is_closing;
                match (program.client.take_answer(command).ok_or("a completed command has no result")?, lease) {
                    (Ok(answered), Some(lease)) => {
                        let told: serde_json::Value = answered.raw.read().map_err(|error| error.to_string())?;
                        let session = told["session_id"].as_str().unwrap_or_default().to_owned();
                        let rotations = self.rotated.get(&session).copied().unwrap_or_default();
                        self.laws.found(number, &session, rotations, told["data"].to_string(), self.now - self.zero);
                        let has_data = told["data"].as_object().is_some_and(|data| !data.is_empty());
                        self.granted(number, caller, Out { lease, session, rotations, has_data })?;
                    }
                    (Ok(_), None) => return Err("a lease was granted without a number".into()),
                    (Err(_), _) if is_closing => self.callers[caller].waits = None,
                    (Err(error), _) => {
                        if error.kind.as_str() == "unavailable" && error.reason.is_none() {
                            self.laws.unsaid(caller, self.now - self.zero, &error.to_string());
                        }
                        self.refused(number, caller, &error.to_string());
                    }
                }
            }
        }
        Ok(())
    }
}

/// The session that a request is about, and the operation.
fn about(request: &Request) -> Option<(String, &'static str)> {
    let operation = Service::operation(&http::Request::try_from(request).ok()?)?;
    let session = request.url.split('/').find_map(|part| part.starts_with("ses_").then(|| part.split('?').next()))??;
    Some((session.to_owned(), operation))
}

/// A call of the store and its answer in a few words.
fn told(call: &StoreCall, answer: &StoreAnswer) -> String {
    let what = |name: &Name| {
        if is_slot(name) {
            "slot"
        } else if is_pool(name) {
            "pool"
        } else {
            "other"
        }
    };
    let asked = match call {
        StoreCall::Claim { names, most } => format!("claims {most} of {} {}s", names.len(), names.first().map_or("", what)),
        StoreCall::Put { name, release, .. } => format!("puts a {}{}", what(name), if *release { " and lets go" } else { "" }),
        StoreCall::Release { names } => format!("lets go of {:?}", names.as_ref().map(|names| names.iter().map(what).collect::<Vec<_>>())),
        StoreCall::Delete { .. } => "deletes".to_owned(),
        StoreCall::List { .. } => "lists".to_owned(),
        StoreCall::Spend { .. } => "spends".to_owned(),
    };
    let answered = match answer {
        StoreAnswer::Claimed(some) => format!("{} of them", some.len()),
        StoreAnswer::Busy(_) => "busy".to_owned(),
        StoreAnswer::Lost => "lost".to_owned(),
        StoreAnswer::Failed => "failed".to_owned(),
        _ => "done".to_owned(),
    };
    format!("{asked}: {answered}")
}
