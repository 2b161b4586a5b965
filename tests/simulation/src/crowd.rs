//! Many commands at once, in any order: a client under random starts, losses, cancels, crashes and settlements.

mod agent;
mod reseller;

use std::collections::BTreeSet;

use hopline::Error;
use hopline::client::{Answered, CallOptions, Client, CommandId, FailureKind, Holds, Outcome, RecordId, Sent, Settlement, Step, StepId};
use hopline::contract::{Api, Method};
use hopline::wire::Request;

use self::agent::Purchases;
use self::reseller::Books;
use crate::fate::Fate;
use crate::world::{Heard, World, is_login};

/// What one run came to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ran {
    /// Commands that were started or resumed.
    pub commands: u32,
    /// Sends.
    pub sends: u32,
    /// Crashes.
    pub crashes: u32,
}

/// Runs one seed against one of the APIs. An error is a violation; the same seed gives the same run.
pub fn crowd(api: Api, seed: u64) -> Result<Ran, String> {
    let mut world = World::new(api);
    let client = world.client(None);
    let mut crowd = Crowd {
        random: seed,
        client,
        world,
        out: Vec::new(),
        open: BTreeSet::new(),
        purchases: Purchases::default(),
        books: Books::default(),
        ran: Ran::default(),
        faulty: true,
    };
    for _ in 0..150 {
        crowd.act()?;
    }
    crowd.end()
}

struct Crowd {
    random: u64,
    client: Client,
    world: World,
    /// Requests and Saves that are out.
    out: Vec<Out>,
    /// Commands that have not completed.
    open: BTreeSet<CommandId>,
    /// What the callers of the agent API want to buy.
    purchases: Purchases,
    /// What the callers of the reseller API did and know.
    books: Books,
    ran: Ran,
    /// Whether faults happen.
    faulty: bool,
}

enum Out {
    Send(StepId, Request),
    Save(StepId, RecordId, Option<Vec<u8>>),
}

impl Crowd {
    fn below(&mut self, most: u64) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % most
    }

    fn act(&mut self) -> Result<(), String> {
        match self.below(20) {
            0..=2 => {
                let command = match self.world.api {
                    Api::Agent => self.start_at_agent(),
                    Api::Reseller => self.start_at_reseller(),
                };
                self.follow(command);
            }
            3 => {
                let open: Vec<CommandId> = self.open.iter().copied().collect();
                if !open.is_empty() {
                    let command = open[self.below(open.len() as u64) as usize];
                    self.client.cancel(command, self.world.now);
                }
            }
            4 => self.crash(),
            5 => {
                let held = self.client.saved();
                if !held.is_empty() {
                    let one = &held[self.below(held.len() as u64) as usize];
                    // A doubt that can be resolved by asking is asked about; a person settles only what can't.
                    if one.holds == Holds::InDoubtForGood {
                        if self.client.settle(&one.record, Settlement::Happened) {
                            self.books.settled = true;
                            self.purchases.settled(one);
                        }
                    } else {
                        let command = self.client.resume(&one.record, CallOptions::default());
                        self.purchases.follow(command, one.intent.as_deref());
                        self.follow(command);
                    }
                }
            }
            6 => self.world.pass(30_000),
            7 => {
                // What is alive in the client is refused, and nothing comes of it.
                self.client.restore(self.world.records());
            }
            _ => {
                self.answer_one()?;
            }
        }
        self.drain()
    }

    fn follow(&mut self, command: CommandId) {
        self.ran.commands += 1;
        self.open.insert(command);
    }

    fn crash(&mut self) {
        self.ran.crashes += 1;
        for out in std::mem::take(&mut self.out) {
            // What was under way arrives or not; what was being written is kept or not.
            match out {
                Out::Send(_, request) if self.below(2) == 0 => _ = self.world.send(&request, Fate::Delayed),
                Out::Save(_, record, data) if self.below(2) == 0 => self.keep(record, data),
                _ => {}
            }
        }
        self.open.clear();
        self.purchases.crash();
        self.books.refused = false;
        self.client = self.world.client(None);
    }

    fn keep(&mut self, record: RecordId, data: Option<Vec<u8>>) {
        match data {
            Some(data) => _ = self.world.store.insert(record, data),
            None => _ = self.world.store.remove(&record),
        }
    }

    /// Answers one of the steps that are out, in any order.
    fn answer_one(&mut self) -> Result<bool, String> {
        if self.out.is_empty() {
            return Ok(false);
        }
        let at = self.below(self.out.len() as u64) as usize;
        match self.out.swap_remove(at) {
            Out::Save(id, record, data) => {
                let fails = self.faulty && self.below(12) == 0;
                if !fails || self.below(2) == 0 {
                    self.keep(record, data);
                }
                let failed = Outcome::Failed { kind: FailureKind::Store, sent: Sent::Never };
                self.client
                    .resolve(id, if fails { failed } else { Outcome::Saved }, self.world.now)
                    .map_err(|misuse| misuse.to_string())?;
            }
            Out::Send(id, request) => {
                let fate = self.fate(&request);
                self.ran.sends += 1;
                self.world.pass(20);
                let heard = self.world.send(&request, fate);
                let refused = matches!(heard, Heard::Response(401, ..));
                self.books.refused |= is_login(&request) && refused;
                let (client, now) = (&mut self.client, self.world.now);
                let mut told = Ok(());
                heard.tell(|outcome| told = client.resolve(id, outcome, now));
                told.map_err(|misuse| misuse.to_string())?;
                if self.client.resolve(id, Outcome::Saved, now).is_ok() {
                    return Err("a step was answered twice".into());
                }
            }
        }
        Ok(true)
    }

    fn fate(&mut self, request: &Request) -> Fate {
        let fates = match (self.world.api, request.method) {
            _ if !self.faulty || self.below(3) > 0 => return Fate::Answered,
            (Api::Agent, Method::Get) => &[Fate::LostBefore, Fate::PageBefore, Fate::Throttled, Fate::Unreached],
            (Api::Agent, _) => Fate::REPEATABLE,
            (Api::Reseller, Method::Get) => Fate::READ,
            // A refused login is the end of a client; most are to live on.
            (Api::Reseller, _) if is_login(request) && self.below(4) > 0 => Fate::LOGIN.split_at(7).0,
            (Api::Reseller, _) if is_login(request) => Fate::LOGIN,
            (Api::Reseller, _) => Fate::WRITE,
        };
        fates[self.below(fates.len() as u64) as usize]
    }

    fn drain(&mut self) -> Result<(), String> {
        for _ in 0..10_000 {
            match self.client.poll(self.world.now) {
                Step::Save { id, record, data } => {
                    if self.out.iter().any(|out| matches!(out, Out::Save(_, other, _) if *other == record)) {
                        return Err(format!("two saves of {record} overlap"));
                    }
                    self.out.push(Out::Save(id, record, data));
                }
                Step::Send { id, request, .. } => {
                    self.check_login(&request)?;
                    if !self.is_saved(&request) {
                        return Err(format!("{} was sent before it was saved", request.url));
                    }
                    self.out.push(Out::Send(id, request));
                }
                Step::Completed { command } => self.took(command)?,
                Step::Notify(_) => {}
                Step::Wait { until } => {
                    // Nothing else can happen: let the time come.
                    if let (true, Some(until)) = (self.out.is_empty(), until) {
                        self.world.pass((until - self.world.now.monotonic).max(1));
                        continue;
                    }
                    return Ok(());
                }
            }
        }
        Err("the client never waits".into())
    }

    /// Whether the store holds a record of a write: one with its key or, where there are no keys, one more with its path than
    /// other writes to it are under way.
    fn is_saved(&self, request: &Request) -> bool {
        if matches!(request.method, Method::Get | Method::Delete) || is_login(request) {
            return true;
        }
        let records = |text: &str| self.world.store.values().filter(|data| String::from_utf8_lossy(data).contains(text)).count();
        match request.header("idempotency-key") {
            Some(key) => records(&format!("\"{key}\"")) > 0,
            None => {
                let same = |out: &&Out| matches!(out, Out::Send(_, other) if other.url == request.url);
                records(&format!("\"{}\"", request.url.split("/api").last().unwrap_or_default())) > self.out.iter().filter(same).count()
            }
        }
    }

    fn took(&mut self, command: CommandId) -> Result<(), String> {
        let result = self.client.take_answer(command).ok_or("a completed command must have a result")?;
        if !self.open.remove(&command) {
            return Err("a command completed twice, or unasked".into());
        }
        if self.client.take_answer(command).is_some() {
            return Err("a result was taken twice".into());
        }
        self.learn(command, &result);
        Ok(())
    }

    /// Lets everything end in a world without faults, and counts.
    fn end(mut self) -> Result<Ran, String> {
        self.faulty = false;
        for round in 0..4 {
            self.end_all()?;
            if round < 3 {
                self.world.arrive();
                self.crash();
                for command in self.client.resume_all() {
                    self.follow(command);
                }
            }
        }
        match self.world.api {
            Api::Agent => self.count_at_agent()?,
            Api::Reseller => self.count_at_reseller()?,
        }
        Ok(self.ran)
    }

    fn end_all(&mut self) -> Result<(), String> {
        for _ in 0..20_000 {
            self.drain()?;
            if !self.answer_one()? && self.open.is_empty() {
                return Ok(());
            }
        }
        Err(format!("{} commands never ended", self.open.len()))
    }

    fn learn(&mut self, command: CommandId, result: &Result<Answered, Error>) {
        match self.world.api {
            Api::Agent => self.learn_at_agent(command, result),
            Api::Reseller => self.books.learn(result),
        }
    }
}
