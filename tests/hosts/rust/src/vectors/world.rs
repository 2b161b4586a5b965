//! The surroundings of the client of one case: its clocks, its store, the open steps, and the names of all of them.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{ClientOptions, CommandId, Name, Now, Outcome, Step, StepId, StoreAnswer, StoreCall};
use hopline::contract::{Encode, json_of};
use hopline::pool::PoolClient;
use serde_json::{Map, Value, json};

use super::format::Case;
use super::names::Names;
use super::sentences;
use super::steps::{Crash, Shift, Word};
use super::store::Store;

/// Where a case begins, unless it says otherwise: 15 June 2025, 15:06:40 UTC.
const BEGIN: Now = Now { unix: 1_750_000_000_000, monotonic: 1_000_000 };
/// No text that begins like this may show in a record, an event or an error.
const CANARY: &str = "canary";

pub(super) struct World {
    pub(super) client: PoolClient,
    pub(super) options: Value,
    pub(super) now: Now,
    pub(super) commands: BTreeMap<String, CommandId>,
    pub(super) records: Names,
    pub(super) keys: Names,
    /// The entries that count under the day's cap.
    pub(super) entries: Names,
    /// Steps that were given to us, by the name a script gave them.
    pub(super) steps: BTreeMap<String, StepId>,
    /// Those that were not answered yet.
    pub(super) out: BTreeSet<StepId>,
    /// The request of each call of the store that is out.
    calls: BTreeMap<StepId, StoreCall>,
    pub(super) store: Store,
    sent: BTreeMap<String, String>,
    /// Where each walk stopped; nothing for one that is over.
    pub(super) walks: BTreeMap<String, Option<String>>,
    crashes: u8,
}

impl World {
    /// The world of a case, or the error that creating its client ends with.
    pub(super) fn new(case: &Case) -> Result<Result<World, Value>, String> {
        let mut options = json!({ "base_url": "https://api.example/v1", "api_key": "canary-key", "store": true });
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
            entries: Names::default(),
            steps: BTreeMap::new(),
            out: BTreeSet::new(),
            calls: BTreeMap::new(),
            store: Store::default(),
            sent: BTreeMap::new(),
            walks: BTreeMap::new(),
            crashes: 0,
        }))
    }

    /// The next step that is no notification, and no call of the store that answers itself.
    pub(super) fn next(&mut self) -> Result<Step, String> {
        loop {
            match self.next_of_store()? {
                Step::Store { id, call, .. } if answers_itself(&call) => self.answer_itself(id, call)?,
                step => return Ok(step),
            }
        }
    }

    /// The next step that is no notification, and no call of another kind that answers itself.
    pub(super) fn next_call(&mut self, kind: fn(&StoreCall) -> bool) -> Result<Step, String> {
        loop {
            match self.next_of_store()? {
                Step::Store { id, call, .. } if answers_itself(&call) && !kind(&call) => self.answer_itself(id, call)?,
                step => return Ok(step),
            }
        }
    }

    /// The next step that is no notification.
    fn next_of_store(&mut self) -> Result<Step, String> {
        loop {
            match self.client.poll(self.now) {
                Step::Notify(event) => {
                    let event = told(&event);
                    no_secret("an event", &event.to_string())?;
                }
                step => return Ok(step),
            }
        }
    }

    /// A call that the script does not name is answered by the store.
    pub(super) fn answer_itself(&mut self, id: StepId, call: StoreCall) -> Result<(), String> {
        let answer = self.store.call(&call, self.now.unix);
        self.resolve(id, Outcome::Store(answer))
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

    /// The store is asked.
    pub(super) fn called(&mut self, id: StepId, call: StoreCall) -> Result<(), String> {
        if let StoreCall::Put { data, .. } = &call {
            no_secret("a record", &String::from_utf8_lossy(data))?;
        }
        self.store.doubt(&call);
        self.calls.insert(id, call);
        self.out.insert(id);
        Ok(())
    }

    /// The store answers.
    pub(super) fn store_answered(&mut self, id: StepId, word: Word) -> Result<(), String> {
        let done = |world: &mut World| match world.calls.get(&id).cloned() {
            Some(call) => world.store.call(&call, world.now.unix),
            None => StoreAnswer::Done,
        };
        let answer = match word {
            Word::Failed => StoreAnswer::Failed,
            Word::Never => StoreAnswer::Never,
            Word::Lost => {
                let names = self.calls.get(&id).map(names_of).unwrap_or_default();
                self.store.take_away(&names);
                StoreAnswer::Lost
            }
            Word::Busy => {
                let names = self.calls.get(&id).map(names_of).unwrap_or_default();
                StoreAnswer::Busy(names.first().and_then(|name| self.store.data(name)))
            }
            Word::Over => StoreAnswer::Over { day: self.store.today(self.now.unix), total: 0.into() },
            Word::Done | Word::Claimed | Word::Listed | Word::Counted => done(self),
        };
        let fits = match word {
            Word::Done => matches!(answer, StoreAnswer::Done | StoreAnswer::Lost),
            Word::Claimed => matches!(answer, StoreAnswer::Claimed(_)),
            Word::Listed => matches!(answer, StoreAnswer::Listed { .. }),
            Word::Counted => matches!(answer, StoreAnswer::Granted { .. } | StoreAnswer::Over { .. }),
            Word::Failed | Word::Never | Word::Lost | Word::Busy | Word::Over => true,
        };
        if !fits {
            return Err(format!("the store would answer {answer:?}"));
        }
        self.resolve(id, Outcome::Store(answer))?;
        self.calls.remove(&id);
        Ok(())
    }

    pub(super) fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) -> Result<(), String> {
        self.client.resolve(id, outcome, self.now).map_err(|misuse| format!("the answer was refused: {misuse}"))?;
        self.out.remove(&id);
        Ok(())
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
        self.calls.clear();
        let also: Result<Vec<Name>, String> = crash.also.iter().map(|name| Ok(Name::from(self.records.value(name)?.to_owned()))).collect();
        self.store.crash(&also?)?;
        if let Some(shift) = crash.after {
            self.advance(shift);
        }
        Ok(())
    }

    /// Puts a record into the store behind the client's back.
    pub(super) fn plant(&mut self, name: &str, text: Option<&str>, change: Option<&Value>) -> Result<(), String> {
        let data = match (text, change) {
            (Some(text), None) => text.as_bytes().to_vec(),
            (None, Some(Value::Object(change))) => {
                let known = Name::from(self.records.value(name)?.to_owned());
                let data = self.store.data(&known).ok_or_else(|| format!("the store holds no `{name}`"))?;
                let mut record: Value = serde_json::from_slice(&data).map_err(|error| error.to_string())?;
                overlay(&mut record, change);
                record.to_string().into_bytes()
            }
            _ => return Err("`plant` takes `text`, or `change` with members".to_owned()),
        };
        let known = Name::from(self.records.value(name)?.to_owned());
        self.store.plant(known, data);
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

/// The JSON that a host gets.
pub(super) fn told(value: &impl Encode) -> Value {
    serde_json::from_str(&json_of(value)).expect("is JSON")
}

/// An error that came: it holds no secret, and its sentence belongs to those that users can see.
pub(super) fn heard(error: &Value) -> Result<(), String> {
    sentences::heard(error);
    no_secret("an error", &error.to_string())
}

/// True if the store answers a call where the script does not name it.
pub(super) fn answers_itself(call: &StoreCall) -> bool {
    !matches!(call, StoreCall::Put { .. } | StoreCall::Delete { .. })
}

/// The names that a call is about.
pub(super) fn names_of(call: &StoreCall) -> Vec<Name> {
    match call {
        StoreCall::Claim { names, .. } => names.clone(),
        StoreCall::Put { name, .. } | StoreCall::Delete { name } => vec![name.clone()],
        StoreCall::Release { names } => names.clone().unwrap_or_default(),
        StoreCall::List { .. } | StoreCall::Spend { .. } => Vec::new(),
    }
}

/// A step in a failure message.
pub(super) fn show(step: &Step) -> String {
    match step {
        Step::Store { call: StoreCall::Put { name, data, release, .. }, .. } => {
            format!("a put of {name} (release: {release}): {}", String::from_utf8_lossy(data))
        }
        Step::Store { call: StoreCall::Delete { name }, .. } => format!("a delete of {name}"),
        Step::Store { call, .. } => format!("{call:?}"),
        Step::Send { request, .. } => {
            format!("a send of {} {} {}", request.method.as_str(), request.url, String::from_utf8_lossy(&request.body))
        }
        Step::Completed { command } => format!("the end of command {}", command.0),
        Step::Notify(event) => json_of(event),
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

fn client(options: &Value, entropy: &[u8; 16]) -> Result<Result<PoolClient, Value>, String> {
    let Value::Object(options) = options else { return Err("`client` is no object".to_owned()) };
    // An option that null has removed is not given.
    let given: Map<String, Value> = options.clone().into_iter().filter(|(_, value)| !value.is_null()).collect();
    let made = Value::Object(given).to_string().parse().and_then(|options: ClientOptions| PoolClient::new(options, *entropy));
    Ok(made.map_err(|error| told(&error)))
}
