//! What a store answered, by one of six functions. Data is bytes; that of several names is one piece,
//! with the length of each part. A word or a number that can't be read stands for `failed`.

use hopline::Outcome;
use hopline::client::{Listed, Name, StoreAnswer, Whose};
use wasm_bindgen::prelude::*;

use crate::{Client, Refused, at};

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
    fn resolve_store(&mut self, step: u32, answer: StoreAnswer, unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        self.client.resolve_text(step, Outcome::Store(answer), at(unix_ms, monotonic_ms)).map_err(Refused)
    }
}

#[wasm_bindgen]
impl Client {
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
