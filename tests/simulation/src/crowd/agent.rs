//! What the callers of the agent API do, and what must be true in the end.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Answered, CallOptions, CommandId, Holds, Saved};
use hopline::{Effect, Error, Kind};

use super::Crowd;

/// What the callers want to buy, over all processes. Each has a quantity of its own, so that a charge tells what it is for.
#[derive(Debug, Default)]
pub(super) struct Purchases {
    /// By the intent; two that were given one key are one purchase.
    of: BTreeMap<String, u64>,
    all: BTreeMap<u64, Purchase>,
    /// The purchases that living commands are about.
    open: BTreeMap<CommandId, u64>,
}

#[derive(Debug, Default)]
struct Purchase {
    /// How often it may have been charged.
    most: usize,
    /// It was started, and neither was it said that nothing happened nor did a person settle it.
    started: bool,
    /// A person settled it without a look.
    settled: bool,
}

impl Purchases {
    /// A purchase is started; so often it was charged before. What was given a key is bought once under it, whatever is said.
    fn start(&mut self, intent: &str, number: u64, charged: usize, has_key: bool) {
        self.of.insert(intent.to_owned(), number);
        let purchase = self.all.entry(number).or_default();
        if !std::mem::replace(&mut purchase.started, true) {
            purchase.most = if has_key { 1 } else { purchase.most.max(charged) + 1 };
        }
    }

    /// It was said that nothing happened, when it had been charged so often: then nothing may come of it any more.
    fn denied(&mut self, number: u64, charged: usize) {
        if let Some(purchase) = self.all.get_mut(&number).filter(|_| number < GIVEN) {
            (purchase.started, purchase.most) = (false, charged);
        }
    }

    pub(super) fn settled(&mut self, saved: &Saved) {
        let number = saved.intent.as_ref().and_then(|intent| self.of.get(intent));
        if let Some(purchase) = number.and_then(|number| self.all.get_mut(number)) {
            (purchase.started, purchase.settled) = (false, true);
        }
    }

    pub(super) fn follow(&mut self, command: CommandId, intent: Option<&str>) {
        self.open.extend(intent.and_then(|intent| self.of.get(intent)).map(|number| (command, *number)));
    }

    pub(super) fn crash(&mut self) {
        self.open.clear();
    }
}

/// Purchases from this number on were given a key.
const GIVEN: u64 = 20;

/// A purchase of so many hundredths of a GB.
fn buy(number: u64) -> String {
    format!(r#"{{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.{number:02}}}"#)
}

/// What that is charged, at 4 USD a GB.
fn charge(number: u64) -> String {
    let text = format!("{}.{:02}", 4 * number / 100, 4 * number % 100);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Crowd {
    pub(super) fn start_at_agent(&mut self) -> CommandId {
        let sessions = self.world.service.sessions(self.world.now.unix);
        let any = if sessions.is_empty() { None } else { Some(sessions[self.below(sessions.len() as u64) as usize].session_id.clone()) };
        match (self.below(9), any) {
            (7, _) => {
                // Two intents may be given one key: then they are one purchase.
                let operation = if self.below(2) == 0 { "open_session" } else { "create_session" };
                let number = GIVEN + self.below(2);
                let name = format!("{operation}-{}-{number}", self.below(4));
                self.begin(&name, number, true);
                let key = Some(format!("mine-{number}"));
                let options = CallOptions { idempotency_key: key, attempts: Some(2), ..CallOptions::intent(name.as_str()) };
                let command = self.client.start_json(operation, &buy(number), options);
                self.purchases.follow(command, Some(&name));
                command
            }
            (8, Some(id)) => {
                let options = CallOptions::intent(format!("turn-{}", self.below(3)));
                self.client.start_json("rotate_session", &format!("{{\"session_id\":\"{id}\"}}"), options)
            }
            (0..=2, _) | (_, None) => {
                let number = 1 + self.below(6);
                let name = format!("job-{number}");
                self.begin(&name, number, false);
                let command = self.client.start_json("open_session", &buy(number), CallOptions::intent(name.as_str()));
                self.purchases.follow(command, Some(&name));
                command
            }
            (3, Some(id)) => self.client.start_json("rotate_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (5, Some(id)) => self.client.start_json("terminate_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (4, Some(id)) => self.client.start_json("get_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (_, Some(id)) => self.client.start_json("wait_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
        }
    }

    fn begin(&mut self, intent: &str, number: u64, has_key: bool) {
        let charged = self.charged(number);
        self.purchases.start(intent, number, charged, has_key);
    }

    /// How often a purchase was charged.
    fn charged(&self, number: u64) -> usize {
        let amount = charge(number);
        self.world.service.charges().iter().filter(|charge| charge.amount.normalize().to_string() == amount).count()
    }

    /// Notes what was said not to have happened, unless others are still about it.
    pub(super) fn learn_at_agent(&mut self, command: CommandId, result: &Result<Answered, Error>) {
        let Some(number) = self.purchases.open.remove(&command) else { return };
        let Err(error) = result else { return };
        // These say nothing of the purchase itself.
        let is_own = !matches!(error.kind, Kind::Busy | Kind::Ended | Kind::Invalid | Kind::Misuse) && error.operation == "create_session";
        if is_own && error.effect == Effect::None && !self.purchases.open.values().any(|other| *other == number) {
            let charged = self.charged(number);
            self.purchases.denied(number, charged);
        }
    }

    /// Nothing was bought more often than it was free to be, and nothing that was sold is unknown.
    pub(super) fn count_at_agent(&mut self) -> Result<(), String> {
        for (number, purchase) in &self.purchases.all {
            let charged = self.charged(*number);
            if charged > purchase.most {
                return Err(format!("purchase {number} was charged {charged} times, and might be {} times", purchase.most));
            }
        }
        let saved = self.client.saved();
        let known: BTreeSet<&str> = saved.iter().filter_map(|saved| saved.session_id.as_deref()).collect();
        let is_doubt = |saved: &&Saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood);
        let doubts = saved.iter().filter(is_doubt).filter_map(|saved| self.purchases.of.get(saved.intent.as_ref()?));
        let doubtful: BTreeSet<String> = doubts.map(|number| charge(*number)).collect();
        let settled = self.purchases.all.iter().filter(|(_, purchase)| purchase.settled).map(|(number, _)| charge(*number));
        let excused: BTreeSet<String> = settled.chain(doubtful).collect();
        let sold = self.world.service.charges().iter().filter(|charge| charge.operation == "create_session");
        let lost = sold.filter(|charge| !known.contains(&*charge.session_id));
        let lost = lost.filter(|charge| !excused.contains(&charge.amount.normalize().to_string()));
        let lost: Vec<&str> = lost.map(|charge| &*charge.session_id).collect();
        if lost.is_empty() { Ok(()) } else { Err(format!("sold and forgotten: {lost:?}")) }
    }
}
