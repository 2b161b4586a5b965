//! What crosses of the store: a call as a kind with getters, its answer by one of six functions. Data is bytes; that of several names
//! is one piece, with the length of each part. A word or a number that can't be read stands for `failed`.

use hopline::client::{Listed, Name, StoreAnswer, StoreCall, Whose};
use hopline::{Outcome, Step};
use wasm_bindgen::prelude::*;

use crate::{Client, Refused, at};

/// What a store is asked.
#[wasm_bindgen]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreCallKind {
    /// Own `names`, at most `most` of them: `claimed` or `busy`.
    Claim = 0,
    /// Keep `data` under `name`, as `isNew`, `keepFor` and `letsGo` say: `stored`.
    Put = 1,
    /// Delete what is under `name`: `stored`.
    Delete = 2,
    /// Let go of `names`, of all where there are none: `stored`.
    Release = 3,
    /// List the names of `space` behind `after`, only what is `open` where that is true: `listed`.
    List = 4,
    /// Set what `entry` counts in `space` on `day` to `amount`, under `cap`: `granted` or `over`.
    Spend = 5,
}

/// The parts of one piece of bytes; a negative length is no data.
fn parts(lengths: &[i32], mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let part = |length: &i32| {
        let (data, rest) = bytes.split_at(usize::try_from(*length).ok()?.min(bytes.len()));
        bytes = rest;
        Some(data.to_vec())
    };
    lengths.iter().map(part).collect()
}

impl Client {
    fn call_of(&self) -> Option<&StoreCall> {
        if let Step::Store { call, .. } = &self.step { Some(call) } else { None }
    }

    fn resolve_store(&mut self, step: u32, answer: StoreAnswer, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.client.resolve_text(step, Outcome::Store(answer), at(unix_ms, monotonic_ms)).map_err(Refused)
    }
}

#[wasm_bindgen]
impl Client {
    /// Of a Store: what it asks.
    #[wasm_bindgen(getter)]
    pub fn call(&self) -> Option<StoreCallKind> {
        Some(match self.call_of()? {
            StoreCall::Claim { .. } => StoreCallKind::Claim,
            StoreCall::Put { .. } => StoreCallKind::Put,
            StoreCall::Delete { .. } => StoreCallKind::Delete,
            StoreCall::Release { .. } => StoreCallKind::Release,
            StoreCall::List { .. } => StoreCallKind::List,
            StoreCall::Spend { .. } => StoreCallKind::Spend,
        })
    }

    /// Of a Claim and a Release: the names.
    #[wasm_bindgen(getter)]
    pub fn names(&self) -> Option<Vec<String>> {
        match self.call_of()? {
            StoreCall::Claim { names, .. } | StoreCall::Release { names: Some(names) } => {
                Some(names.iter().map(|name| name.to_string()).collect())
            }
            _ => None,
        }
    }

    /// Of a Claim: how many of the names, at least 1.
    #[wasm_bindgen(getter)]
    pub fn most(&self) -> Option<u32> {
        if let StoreCall::Claim { most, .. } = self.call_of()? { Some(*most) } else { None }
    }

    /// Of a Put and a Delete: the name.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> Option<String> {
        if let StoreCall::Put { name, .. } | StoreCall::Delete { name } = self.call_of()? { Some(name.to_string()) } else { None }
    }

    /// Of a Put: the data.
    #[wasm_bindgen(getter)]
    pub fn data(&self) -> Option<Vec<u8>> {
        if let StoreCall::Put { data, .. } = self.call_of()? { Some(data.clone()) } else { None }
    }

    /// Of a Put: whether the name must not be there, and is this client's from now on.
    #[wasm_bindgen(getter, js_name = isNew)]
    pub fn is_new(&self) -> Option<bool> {
        if let StoreCall::Put { new, .. } = self.call_of()? { Some(*new) } else { None }
    }

    /// Of a Put: milliseconds after which the store may drop it; `undefined` for never.
    #[wasm_bindgen(getter, js_name = keepFor)]
    pub fn keep_for(&self) -> Option<f64> {
        if let StoreCall::Put { keep_for, .. } = self.call_of()? { keep_for.map(|ms| ms as f64) } else { None }
    }

    /// Of a Put: whether this client lets go of the name in the same step.
    #[wasm_bindgen(getter, js_name = letsGo)]
    pub fn lets_go(&self) -> Option<bool> {
        if let StoreCall::Put { release, .. } = self.call_of()? { Some(*release) } else { None }
    }

    /// Of a List and a Spend: whose names or day.
    #[wasm_bindgen(getter)]
    pub fn space(&self) -> Option<String> {
        if let StoreCall::List { space, .. } | StoreCall::Spend { space, .. } = self.call_of()? { Some(space.0.clone()) } else { None }
    }

    /// Of a List: only names behind this one.
    #[wasm_bindgen(getter)]
    pub fn after(&self) -> Option<String> {
        if let StoreCall::List { after, .. } = self.call_of()? { after.as_ref().map(|name| name.to_string()) } else { None }
    }

    /// Of a List: whether to leave out what has a time to be kept for.
    #[wasm_bindgen(getter)]
    pub fn open(&self) -> Option<bool> {
        if let StoreCall::List { open, .. } = self.call_of()? { Some(*open) } else { None }
    }

    /// Of a Spend: the UTC day, counted from 1970; `undefined` for today.
    #[wasm_bindgen(getter)]
    pub fn day(&self) -> Option<f64> {
        if let StoreCall::Spend { day, .. } = self.call_of()? { day.map(|day| day as f64) } else { None }
    }

    /// Of a Spend: what is counted.
    #[wasm_bindgen(getter)]
    pub fn entry(&self) -> Option<String> {
        if let StoreCall::Spend { entry, .. } = self.call_of()? { Some(entry.clone()) } else { None }
    }

    /// Of a Spend: in USD, digit for digit.
    #[wasm_bindgen(getter)]
    pub fn amount(&self) -> Option<String> {
        if let StoreCall::Spend { amount, .. } = self.call_of()? { Some(amount.to_string()) } else { None }
    }

    /// Of a Spend: what all entries of the day may come to, in USD; `undefined` for any sum.
    #[wasm_bindgen(getter)]
    pub fn cap(&self) -> Option<String> {
        if let StoreCall::Spend { cap, .. } = self.call_of()? { cap.map(|cap| cap.to_string()) } else { None }
    }

    /// A Store is `done`, `lost`, or has `failed`: then perhaps it was done, perhaps not. `failed` answers any of its kinds.
    pub fn stored(&mut self, step: u32, word: &str, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        let answer = match word {
            "done" => StoreAnswer::Done,
            "lost" => StoreAnswer::Lost,
            _ => StoreAnswer::Failed,
        };
        self.resolve_store(step, answer, unix_ms, monotonic_ms)
    }

    /// A Claim: these names are this client's. `data` is that of all of them, one after the other; each has its length, negative
    /// where there is no data.
    pub fn claimed(
        &mut self,
        step: u32,
        names: Vec<String>,
        lengths: &[i32],
        data: &[u8],
        unix_ms: f64,
        monotonic_ms: f64,
    ) -> Result<(), Refused> {
        let answer = StoreAnswer::Claimed(names.into_iter().map(Name::from).zip(parts(lengths, data)).collect());
        self.resolve_store(step, answer, unix_ms, monotonic_ms)
    }

    /// A Claim: another living client owns all of them; what it put last.
    pub fn busy(&mut self, step: u32, data: Option<Vec<u8>>, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.resolve_store(step, StoreAnswer::Busy(data), unix_ms, monotonic_ms)
    }

    /// A List: the names, their data as of `claimed`, whose each is (`mine`, `free`, `other`), and whether more follow.
    #[allow(clippy::too_many_arguments, reason = "one crossing an answer")]
    pub fn listed(
        &mut self,
        step: u32,
        names: Vec<String>,
        lengths: &[i32],
        data: &[u8],
        whose: Vec<String>,
        more: bool,
        unix_ms: f64,
        monotonic_ms: f64,
    ) -> Result<(), Refused> {
        let whose = whose.iter().map(|whose| match whose.as_str() {
            "mine" => Some(Whose::Mine),
            "free" => Some(Whose::Free),
            "other" => Some(Whose::Other),
            _ => None,
        });
        let entries = names.into_iter().map(Name::from).zip(parts(lengths, data)).zip(whose);
        let entries = entries.map(|((name, data), whose)| Some(Listed { name, data: data?, whose: whose? }));
        let answer = entries.collect::<Option<_>>().map_or(StoreAnswer::Failed, |entries| StoreAnswer::Listed { entries, more });
        self.resolve_store(step, answer, unix_ms, monotonic_ms)
    }

    /// A Spend: the entry counts on this day.
    pub fn granted(&mut self, step: u32, day: f64, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.resolve_store(step, StoreAnswer::Granted { day: day as i64 }, unix_ms, monotonic_ms)
    }

    /// A Spend: it does not count, since the others of the day come to this total, in USD.
    pub fn over(&mut self, step: u32, total: &str, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        let answer = total.parse().map_or(StoreAnswer::Failed, |total| StoreAnswer::Over { total });
        self.resolve_store(step, answer, unix_ms, monotonic_ms)
    }
}
