//! Purchases under a daily cap: every fate of the first one, every failure of the store, and crashes, on one day and over
//! midnight. On no day is more bought than the cap allows.

use std::collections::BTreeMap;

use hopline::client::{CallOptions, Client, CommandId, FailureKind, Holds, Outcome, Sent, Step};
use hopline::contract::{Api, Decimal, Method};
use hopline::policy::Rule;
use hopline::wire::Request;

use crate::choices::Choices;
use crate::fate::Fate;
use crate::path::Walked;
use crate::world::World;

const BUY: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":1}"#;
/// The price of one purchase, what it rises to, and a cap that allows two of them.
const PRICE: i64 = 4;
const DEARER: i64 = 12;
const CAP: i64 = 2 * PRICE;
const DAY: i64 = 24 * 3_600_000;
/// From the beginning of a path into the next UTC day; a key is not too old by then.
const OVERNIGHT: i64 = 17 * 3_600_000;
/// No path needs more steps than this; one that does never ends.
const MAX_STEPS: u32 = 1000;

/// What can come of the first purchase.
const FATES: &[Fate] = &[Fate::Answered, Fate::LostBefore, Fate::LostAfter, Fate::Delayed, Fate::StoredSale, Fate::Dearer];

/// Walks every path of one purchase with the fates of so many of its sends chosen, of another one after it, and of two more in a
/// world without faults, up to the first violation.
pub fn spending(fates: u8, without: Option<Rule>) -> Walked {
    let mut choices = Choices::default();
    let mut walked = Walked::default();
    loop {
        let found = Spending::new(fates, without, &mut choices, false).run();
        walked.paths += 1;
        if let Err(violation) = found {
            // Once more, to tell it.
            choices.again();
            let mut path = Spending::new(fates, without, &mut choices, true);
            let _ = path.run();
            walked.violation = Some(format!("{violation}\n  {}", path.log.join("\n  ")));
            return walked;
        }
        if !choices.advance() {
            return walked;
        }
    }
}

struct Spending<'a> {
    choices: &'a mut Choices,
    world: World,
    client: Client,
    without: Option<Rule>,
    fates: u8,
    /// How many saves may still fail, and crashes happen.
    troubles: u8,
    /// Whether the path has had neither faults nor a second day.
    calm: bool,
    /// What the list of prices showed last, and what it showed before each key was first sent.
    shown: i64,
    quotes: BTreeMap<String, i64>,
    tells: bool,
    log: Vec<String>,
}

impl<'a> Spending<'a> {
    fn new(fates: u8, without: Option<Rule>, choices: &'a mut Choices, tells: bool) -> Self {
        let mut world = World::new(Api::Agent);
        world.daily_cap = Some(Decimal::from(CAP));
        let client = world.client(without);
        Spending {
            choices,
            world,
            client,
            without,
            fates,
            troubles: 2,
            calm: true,
            shown: PRICE,
            quotes: BTreeMap::new(),
            tells,
            log: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        let limit = Some(Decimal::from(DEARER));
        self.buy("first", CallOptions { retry_paid: Some(true), max_unit_price: limit, ..CallOptions::default() })?;
        self.fates = 0;
        if self.choices.choose(2) == 1 {
            self.calm = false;
            self.tell(|| "overnight".into());
            self.world.pass(OVERNIGHT);
        }
        self.restart();
        if self.choices.choose(2) == 1 {
            self.resume_all()?;
        }
        self.buy("second", CallOptions::default())?;
        self.troubles = 0;
        self.restart();
        self.buy("third", CallOptions::default())?;
        self.buy("fourth", CallOptions::default())?;
        self.resume_all()?;
        self.world.arrive();
        self.check()
    }

    /// What was bought on each day, at the prices that its keys might be charged, is within the cap.
    fn check(&self) -> Result<(), String> {
        let mut days: BTreeMap<i64, i64> = BTreeMap::new();
        for charge in self.world.service.charges() {
            let quote = charge.key.as_deref().and_then(|key| self.quotes.get(key));
            *days.entry(charge.at_ms.div_euclid(DAY)).or_default() += quote.ok_or("a key was charged that was never sent")?;
        }
        match days.values().find(|bought| **bought > CAP) {
            Some(bought) => Err(format!("{bought} USD were bought in a day under a cap of {CAP} USD")),
            None if self.calm && self.world.service.charges().len() != 2 => Err("a purchase within the cap was refused".into()),
            None => Ok(()),
        }
    }

    fn buy(&mut self, intent: &str, options: CallOptions) -> Result<(), String> {
        let options = CallOptions { intent: Some(intent.to_owned()), ..options };
        let command = self.client.start_json("create_session", BUY, options);
        self.drain(command)
    }

    fn resume_all(&mut self) -> Result<(), String> {
        let held: Vec<_> = self.client.saved().into_iter().filter(|saved| saved.holds == Holds::InDoubt).collect();
        for saved in held {
            // A crash leaves the rest to the next process.
            let command = self.client.resume(&saved.record, CallOptions::default());
            self.drain(command)?;
        }
        Ok(())
    }

    fn tell(&mut self, line: impl FnOnce() -> String) {
        if self.tells {
            self.log.push(line());
        }
    }

    /// A new process, with what the store holds.
    fn restart(&mut self) {
        self.client = self.world.client(self.without);
        self.tell(|| "restart".into());
    }

    /// Does what the client asks for until the command has ended, or is lost in a crash.
    fn drain(&mut self, command: CommandId) -> Result<(), String> {
        for _ in 0..MAX_STEPS {
            match self.client.poll(self.world.now) {
                Step::Save { id, record, data } => {
                    // Kept; not kept; lost with the process; kept, and then the process is lost.
                    let choice = self.trouble(4);
                    let say = if data.is_some() { "save" } else { "delete" };
                    self.tell(|| format!("{say} {record}: {}", ["kept", "failed", "crash before", "crash after"][usize::from(choice)]));
                    if matches!(choice, 0 | 3) {
                        match data {
                            Some(data) => _ = self.world.store.insert(record, data),
                            None => _ = self.world.store.remove(&record),
                        }
                    }
                    if choice > 1 {
                        self.restart();
                        return Ok(());
                    }
                    let failed = Outcome::Failed { kind: FailureKind::Store, sent: Sent::Never };
                    let outcome = if choice == 1 { failed } else { Outcome::Saved };
                    self.client.resolve(id, outcome, self.world.now).map_err(|misuse| misuse.to_string())?;
                }
                Step::Send { id, request, .. } => {
                    let fate = self.fate(&request);
                    self.note(&request);
                    self.tell(|| format!("{} {}: {fate:?}", request.method.as_str(), request.url));
                    self.world.pass(50);
                    let heard = self.world.send(&request, fate);
                    if request.method == Method::Post && self.trouble(2) == 1 {
                        self.tell(|| "crash after the send".into());
                        self.restart();
                        return Ok(());
                    }
                    let (client, now) = (&mut self.client, self.world.now);
                    let mut told = Ok(());
                    heard.tell(|outcome| told = client.resolve(id, outcome, now));
                    told.map_err(|misuse| misuse.to_string())?;
                }
                Step::Completed { command: done } => {
                    let result = self.client.take_answer(done).ok_or("a completed command must have a result")?;
                    self.tell(|| match &result {
                        Ok(_) => "ok".into(),
                        Err(error) => format!("error: {:?} {:?}: {error}", error.kind, error.effect),
                    });
                }
                Step::Notify(_) => {}
                Step::Wait { .. } if !self.client.is_pending(command) => return Ok(()),
                Step::Wait { until: Some(until) } => self.world.pass((until - self.world.now.monotonic).max(1)),
                Step::Wait { until: None } => return Err("the client waits for nothing, and a purchase has not ended".into()),
            }
        }
        Err("the path does not end".into())
    }

    /// One of so many things that may go wrong here; 0 for none.
    fn trouble(&mut self, of: u8) -> u8 {
        let choice = if self.troubles > 0 { self.choices.choose(of) } else { 0 };
        if choice > 0 {
            self.troubles -= 1;
            self.calm = false;
        }
        choice
    }

    fn fate(&mut self, request: &Request) -> Fate {
        if self.fates == 0 || request.method != Method::Post {
            return Fate::Answered;
        }
        self.fates -= 1;
        let fate = FATES[usize::from(self.choices.choose(FATES.len() as u8))];
        self.calm &= fate == Fate::Answered;
        fate
    }

    /// Notes what the caller may know of prices as a request goes out.
    fn note(&mut self, request: &Request) {
        match request.header("idempotency-key") {
            Some(key) => _ = self.quotes.entry(key.to_owned()).or_insert(self.shown),
            None => self.shown = if self.world.dearer { DEARER } else { PRICE },
        }
    }
}
