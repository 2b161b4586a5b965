//! The answers of a store. Data is bytes; that of several names is one piece, with the length of each part. A word or a number that can't
//! be read counts as `failed`.

use hopline::Outcome;
use hopline::client::{Listed, Name, StoreAnswer, Whose};
use wasm_bindgen::prelude::*;

use crate::{Client, Refused, at};

/// The parts of one piece of bytes, by their lengths; a negative one is no data.
fn parts(lengths: &[&str], mut bytes: &[u8]) -> Vec<Option<Vec<u8>>> {
    let part = |length: &&str| {
        let (data, rest) = bytes.split_at(length.parse::<usize>().ok()?.min(bytes.len()));
        bytes = rest;
        Some(data.to_vec())
    };
    lengths.iter().map(part).collect()
}

#[wasm_bindgen]
impl Client {
    /// Takes the store's answer to a Store, by a word, in one function for all of them, since each costs a page some hundred bytes. The
    /// other values are lines:
    ///
    /// - `done` and `lost`; `failed` is for any call: it may or may not be done; `never`: the store could not be opened at all.
    /// - `claimed`: the names that are this client's, and then the length of the data of each, negative if there is none. `data` is that of
    ///   all of them, one after the other.
    /// - `busy`: another living client owns all of them; `data` is the data that it put last, with its length.
    /// - `listed`, or `more` if more follow: the names, then the owner of each (`mine`, `free`, `other`), then the lengths, as of
    ///   `claimed`.
    /// - `granted`: the entry counts on this day. `over`: it does not count, since the others of this day come to this total, in USD.
    pub fn stored(&mut self, step: u32, word: &str, lines: &str, data: &[u8], unix_ms: f64, monotonic_ms: f64) -> Result<(), Refused> {
        let lines: Vec<&str> = lines.lines().collect();
        let first = lines.first().copied().unwrap_or_default();
        let answer = match word {
            "done" => Some(StoreAnswer::Done),
            "lost" => Some(StoreAnswer::Lost),
            "never" => Some(StoreAnswer::Never),
            "claimed" => {
                let (names, lengths) = lines.split_at(lines.len() / 2);
                Some(StoreAnswer::Claimed(names.iter().map(|name| Name::from((*name).to_owned())).zip(parts(lengths, data)).collect()))
            }
            "busy" => Some(StoreAnswer::Busy(parts(&lines, data).pop().flatten())),
            "listed" | "more" => {
                let (names, rest) = lines.split_at(lines.len() / 3);
                let (whose, lengths) = rest.split_at(names.len());
                let entries = names.iter().map(|name| Name::from((*name).to_owned())).zip(parts(lengths, data)).zip(whose);
                let entries = entries.map(|((name, data), whose)| Some(Listed { name, data: data?, whose: owner(whose)? }));
                entries.collect::<Option<_>>().map(|entries| StoreAnswer::Listed { entries, more: word == "more" })
            }
            "granted" => first.parse().ok().map(|day| StoreAnswer::Granted { day }),
            "over" => {
                let total = lines.get(1).and_then(|total| total.parse().ok());
                first.parse().ok().zip(total).map(|(day, total)| StoreAnswer::Over { day, total })
            }
            _ => None,
        };
        let outcome = Outcome::Store(answer.unwrap_or(StoreAnswer::Failed));
        self.client.resolve_text(step, outcome, at(unix_ms, monotonic_ms)).map_err(Refused)
    }
}

fn owner(whose: &str) -> Option<Whose> {
    match whose {
        "mine" => Some(Whose::Mine),
        "free" => Some(Whose::Free),
        "other" => Some(Whose::Other),
        _ => None,
    }
}
