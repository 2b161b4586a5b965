//! What surrounds the client of one case: its clocks, its store, what is out, and the names of all of it.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{Client, CommandId, Now, Outcome, RecordId, Step, StepId};
use serde_json::{Map, Value, json};

use super::format::Case;
use super::names::Names;
use super::steps::{Crash, Shift, Word};

/// Where a case begins, unless it says otherwise: 15 June 2025, 15:06:40 UTC.
const BEGIN: Now = Now { unix: 1_750_000_000_000, monotonic: 1_000_000 };
/// No text that begins like this may show in a record, an event or an error.
const CANARY: &str = "canary";

pub(super) struct World {
    pub(super) client: Client,
    pub(super) options: Value,
    pub(super) now: Now,
    pub(super) commands: BTreeMap<String, CommandId>,
    pub(super) records: Names,
    pub(super) keys: Names,
    /// Steps that were given to us, by the name a script gave them.
    pub(super) steps: BTreeMap<String, StepId>,
    /// Those that were not answered yet.
    pub(super) out: BTreeSet<StepId>,
    /// What each Save that was given a name is about.
    saves: BTreeMap<StepId, (RecordId, Option<Vec<u8>>)>,
    store: BTreeMap<RecordId, Vec<u8>>,
    /// Saves that nobody confirmed: they may be on the disk.
    unsure: BTreeMap<RecordId, Option<Vec<u8>>>,
    sent: BTreeMap<String, String>,
    /// Where each walk stopped; nothing for one that is over.
    pub(super) walks: BTreeMap<String, Option<String>>,
    crashes: u8,
}

impl World {
    /// The world of a case, or the error that creating its client ends with.
    pub(super) fn new(case: &Case) -> Result<Result<World, Value>, String> {
        let mut options = json!({ "base_url": "https://api.example/v1", "api_key": "canary-key" });
        overlay(&mut options, &case.client);
        let client = match client(&options, &entropy(case.entropy.as_deref(), 0)?)? {
            Ok(client) => client,
            Err(error) => return Ok(Err(error)),
        };
        Ok(Ok(World {
            client,
            options,
            now: case.now.unwrap_or(BEGIN),
            commands: BTreeMap::new(),
            records: Names::default(),
            keys: Names::default(),
            steps: BTreeMap::new(),
            out: BTreeSet::new(),
            saves: BTreeMap::new(),
            store: BTreeMap::new(),
            unsure: BTreeMap::new(),
            sent: BTreeMap::new(),
            walks: BTreeMap::new(),
            crashes: 0,
        }))
    }

    /// The next step that is no notification.
    pub(super) fn next(&mut self) -> Result<Step, String> {
        loop {
            match self.client.poll(self.now) {
                Step::Notify(event) => {
                    let event = serde_json::to_value(event).map_err(|error| error.to_string())?;
                    no_secret("an event", &event.to_string())?;
                }
                step => return Ok(step),
            }
        }
    }

    /// Nothing may be left to do; until when.
    pub(super) fn drained(&mut self) -> Result<Option<i64>, String> {
        match self.next()? {
            Step::Wait { until } => Ok(until),
            step => Err(format!("expected nothing more to do, came {}", show(&step))),
        }
    }

    pub(super) fn advance(&mut self, shift: Shift) {
        let (unix, monotonic) = match shift {
            Shift::Both(ms) => (ms, ms),
            Shift::Each { unix, monotonic } => (unix, monotonic),
        };
        self.now = Now { unix: self.now.unix + unix, monotonic: self.now.monotonic + monotonic };
    }

    /// A Save or a deletion is given to the store.
    pub(super) fn save_given(&mut self, id: StepId, record: &RecordId, data: Option<Vec<u8>>) -> Result<(), String> {
        if let Some(data) = &data {
            no_secret("a record", &String::from_utf8_lossy(data))?;
        }
        self.unsure.insert(record.clone(), data.clone());
        self.saves.insert(id, (record.clone(), data));
        self.out.insert(id);
        Ok(())
    }

    /// The store answers.
    pub(super) fn save_answered(&mut self, id: StepId, word: Word) -> Result<(), String> {
        let outcome = match word {
            Word::Failed => Outcome::Failed { kind: hopline::client::FailureKind::Store, sent: hopline::client::Sent::Never },
            Word::Saved => Outcome::Saved,
        };
        self.resolve(id, outcome)?;
        if let (Word::Saved, Some((record, data))) = (word, self.saves.remove(&id)) {
            self.unsure.remove(&record);
            self.put(record, data);
        }
        Ok(())
    }

    pub(super) fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) -> Result<(), String> {
        self.client.resolve(id, outcome, self.now).map_err(|misuse| format!("the answer was refused: {misuse}"))?;
        self.out.remove(&id);
        Ok(())
    }

    fn put(&mut self, record: RecordId, data: Option<Vec<u8>>) {
        match data {
            Some(data) => drop(self.store.insert(record, data)),
            None => drop(self.store.remove(&record)),
        }
    }

    /// One key, one request: whatever a case is about.
    pub(super) fn same_key_same_bytes(&mut self, key: &str, request: String) -> Result<(), String> {
        match self.sent.insert(key.to_owned(), request.clone()) {
            Some(before) if before != request => Err(format!("the same key was sent with other bytes: {before}, then {request}")),
            _ => Ok(()),
        }
    }

    /// The process dies and another one begins.
    pub(super) fn crash(&mut self, crash: &Crash) -> Result<(), String> {
        self.crashes += 1;
        overlay(&mut self.options, &crash.client);
        let bytes = entropy(crash.entropy.as_deref(), self.crashes)?;
        self.client = client(&self.options, &bytes)?.map_err(|error| format!("the new client was refused: {error}"))?;
        self.commands.clear();
        self.steps.clear();
        self.out.clear();
        self.saves.clear();
        for name in &crash.also {
            let record = RecordId(self.records.value(name)?.to_owned());
            let data = self.unsure.remove(&record).ok_or_else(|| format!("every Save of `{name}` was answered `saved`"))?;
            self.put(record, data);
        }
        self.unsure.clear();
        if let Some(shift) = crash.after {
            self.advance(shift);
        }
        Ok(())
    }

    /// A record as the store holds it.
    pub(super) fn stored(&self, name: &str) -> Result<(RecordId, &[u8]), String> {
        let record = RecordId(self.records.value(name)?.to_owned());
        match self.store.get(&record) {
            Some(data) => Ok((record, data)),
            None => Err(format!("the store holds no `{name}`")),
        }
    }

    /// Puts a record into the store behind the client's back.
    pub(super) fn put_by_hand(&mut self, name: &str, text: Option<&str>, change: Option<&Value>) -> Result<(), String> {
        let data = match (text, change) {
            (Some(text), None) => text.as_bytes().to_vec(),
            (None, Some(Value::Object(change))) => {
                let (_, data) = self.stored(name)?;
                let mut record: Value = serde_json::from_slice(data).map_err(|error| error.to_string())?;
                overlay(&mut record, change);
                record.to_string().into_bytes()
            }
            _ => return Err("`put` takes `text`, or `change` with members".to_owned()),
        };
        if self.records.value(name).is_err() {
            self.records.bind(name, name)?;
        }
        let record = RecordId(self.records.value(name)?.to_owned());
        self.store.insert(record, data);
        Ok(())
    }

    /// A JSON value of the client's, with the names of the script in it.
    pub(super) fn named(&self, mut value: Value) -> Value {
        self.records.put_into(&mut value);
        self.keys.put_into(&mut value);
        value
    }

    pub(super) fn command(&self, name: &str) -> Result<CommandId, String> {
        self.commands.get(name).copied().ok_or_else(|| format!("no command is named `{name}`"))
    }
}

pub(super) fn no_secret(what: &str, text: &str) -> Result<(), String> {
    if text.contains(CANARY) { Err(format!("{what} holds a secret: {text}")) } else { Ok(()) }
}

/// A step in a failure message.
pub(super) fn show(step: &Step) -> String {
    match step {
        Step::Save { record, data: Some(data), .. } => format!("a save of {record}: {}", String::from_utf8_lossy(data)),
        Step::Save { record, data: None, .. } => format!("a delete of {record}"),
        Step::Send { request, .. } => {
            format!("a send of {} {} {}", request.method.as_str(), request.url, String::from_utf8_lossy(&request.body))
        }
        Step::Completed { command } => format!("the end of command {}", command.0),
        Step::Notify(event) => serde_json::to_string(event).unwrap_or_default(),
        Step::Wait { until } => format!("a wait until {until:?}"),
    }
}

fn overlay(base: &mut Value, over: &Map<String, Value>) {
    let Value::Object(base) = base else { return };
    for (name, value) in over {
        match (base.get_mut(name), value) {
            (Some(below @ Value::Object(_)), Value::Object(members)) => overlay(below, members),
            _ => drop(base.insert(name.clone(), value.clone())),
        }
    }
}

/// 16 bytes: as given, or the number of the crash in every byte.
fn entropy(hex: Option<&str>, crash: u8) -> Result<[u8; 16], String> {
    match hex {
        None => Ok([crash; 16]),
        Some(hex) => super::exchange::from_hex(hex)?.try_into().map_err(|_| "`entropy` takes 32 hexadecimal digits".to_owned()),
    }
}

fn client(options: &Value, entropy: &[u8; 16]) -> Result<Result<Client, Value>, String> {
    let options = serde_json::from_str(&options.to_string()).map_err(|error| format!("`client`: {error}"))?;
    Client::new(options, *entropy)
        .map_or_else(|error| serde_json::to_value(error).map(Err), |client| Ok(Ok(client)))
        .map_err(|error| error.to_string())
}
