//! Many commands at once, in any order: a client under random starts, losses, cancels, crashes and settlements.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{CallOptions, Client, CommandId, FailureKind, Holds, Outcome, RecordId, Sent, Settlement, Step, StepId};
use hopline::contract::Method;
use hopline::wire::Request;
use hopline::{Effect, Kind};

use crate::fate::Fate;
use crate::world::World;

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

/// Runs one seed. An error is a violation; the same seed gives the same run.
pub fn crowd(seed: u64) -> Result<Ran, String> {
    let mut world = World::new(hopline::contract::Api::Agent);
    let client = world.client(None);
    let mut crowd = Crowd {
        random: seed,
        client,
        world,
        out: Vec::new(),
        open: BTreeSet::new(),
        names: BTreeMap::new(),
        ran: Ran::default(),
        kind: true,
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
    /// Of each intent: whether it was ever said that nothing happened, after which it may be bought anew.
    names: BTreeMap<String, u32>,
    ran: Ran,
    /// Whether faults happen.
    kind: bool,
}

enum Out {
    Send(StepId, Request),
    Save(StepId, RecordId, Option<Vec<u8>>),
}

const BUY: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.01}"#;

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
            0..=2 => self.start(),
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
                        self.client.settle(&one.record, Settlement::Happened);
                    } else {
                        let command = self.client.resume(&one.record);
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

    fn start(&mut self) {
        let sessions = self.world.service.sessions(self.world.now.unix);
        let any = if sessions.is_empty() { None } else { Some(sessions[self.below(sessions.len() as u64) as usize].session_id.clone()) };
        let command = match (self.below(9), any) {
            (7, _) => {
                // Two intents may be given one key: then they are one purchase.
                let operation = if self.below(2) == 0 { "open_session" } else { "create_session" };
                let name = format!("{operation}-{}", self.below(4));
                let key = Some(format!("mine-{}", self.below(2)));
                self.names.entry(name.clone()).or_default();
                let options = CallOptions { idempotency_key: key, attempts: Some(2), ..CallOptions::intent(name) };
                self.client.start_json(operation, BUY, options)
            }
            (8, Some(id)) => {
                let options = CallOptions::intent(format!("turn-{}", self.below(3)));
                self.client.start_json("rotate_session", &format!("{{\"session_id\":\"{id}\"}}"), options)
            }
            (0..=2, _) | (_, None) => {
                let name = format!("job-{}", self.below(6));
                self.names.entry(name.clone()).or_default();
                self.client.start_json("open_session", BUY, CallOptions::intent(name))
            }
            (3, Some(id)) => self.client.start_json("rotate_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (5, Some(id)) => self.client.start_json("terminate_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (4, Some(id)) => self.client.start_json("get_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (_, Some(id)) => self.client.start_json("wait_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
        };
        self.follow(command);
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
                let fails = self.kind && self.below(12) == 0;
                if !fails || self.below(2) == 0 {
                    self.keep(record, data);
                }
                let failed = Outcome::Failed { kind: FailureKind::Store, sent: Sent::Never };
                self.client
                    .resolve(id, if fails { failed } else { Outcome::Saved }, self.world.now)
                    .map_err(|misuse| misuse.to_string())?;
            }
            Out::Send(id, request) => {
                let fate = match request.method {
                    _ if !self.kind || self.below(3) > 0 => Fate::Answered,
                    Method::Get => [Fate::LostBefore, Fate::PageBefore, Fate::Throttled, Fate::Unreached][self.below(4) as usize],
                    _ => Fate::REPEATABLE[self.below(Fate::REPEATABLE.len() as u64) as usize],
                };
                self.ran.sends += 1;
                self.world.pass(20);
                let heard = self.world.send(&request, fate);
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
                    if request.method != Method::Get && self.world.store.is_empty() {
                        return Err("a write was sent before anything was saved".into());
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

    fn took(&mut self, command: CommandId) -> Result<(), String> {
        let result = self.client.take_answer(command).ok_or("a completed command must have a result")?;
        if !self.open.remove(&command) {
            return Err("a command completed twice, or unasked".into());
        }
        if self.client.take_answer(command).is_some() {
            return Err("a result was taken twice".into());
        }
        if let Err(error) = result {
            let mine = error.kind != Kind::Busy && error.kind != Kind::Invalid && error.operation == "create_session";
            if let (true, Effect::None, Some(name)) = (mine, error.effect, error.intent.as_ref()) {
                *self.names.entry(name.clone()).or_default() += 1;
            }
        }
        Ok(())
    }

    /// Lets everything end in a world without faults, and counts.
    fn end(mut self) -> Result<Ran, String> {
        self.kind = false;
        for round in 0..4 {
            for _ in 0..20_000 {
                self.drain()?;
                if !self.answer_one()? && self.open.is_empty() {
                    break;
                }
            }
            if !self.open.is_empty() {
                return Err(format!("{} commands never ended", self.open.len()));
            }
            if round < 3 {
                self.world.arrive();
                self.crash();
                for command in self.client.resume_all() {
                    self.follow(command);
                }
            }
        }
        self.count()?;
        Ok(self.ran)
    }

    /// No intent was bought more often than it was free to be, and nothing that was sold is unknown.
    fn count(&self) -> Result<(), String> {
        let charges = self.world.service.charges().len() as u32;
        let free: u32 = self.names.values().map(|refused| 1 + refused).sum();
        if charges > free {
            return Err(format!("{charges} charges for {} intents", self.names.len()));
        }
        let held = self.client.saved();
        let known: BTreeSet<&str> = held.iter().filter_map(|saved| saved.session_id.as_deref()).collect();
        let doubtful = held.iter().any(|saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood));
        let lost: Vec<String> = self.world.service.sessions(self.world.now.unix).into_iter().map(|session| session.session_id).collect();
        let lost: Vec<&String> = lost.iter().filter(|id| !known.contains(id.as_str())).collect();
        if !lost.is_empty() && !doubtful {
            return Err(format!("sold and forgotten: {lost:?}"));
        }
        Ok(())
    }
}
