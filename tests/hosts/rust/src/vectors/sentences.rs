//! The sentences for users: those of all errors that came while vectors ran in this process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;

/// By kind and effect, what was said; with the first in order of those of whom it was said.
static SENTENCES: Mutex<BTreeMap<[String; 2], BTreeMap<String, String>>> = Mutex::new(BTreeMap::new());

/// Keeps the sentence of an error, and those of its causes.
pub(super) fn heard(error: &Value) {
    let text = |member: &str| error[member].as_str().unwrap_or_default();
    let message = readable(text("message"));
    let (whom, what) = message.split_once(": ").unwrap_or(("", &message));
    let mut sentences = SENTENCES.lock().unwrap_or_else(PoisonError::into_inner);
    let same = sentences.entry(["kind", "effect"].map(|member| text(member).to_owned())).or_default();
    let known = same.entry(what.to_owned()).or_insert_with(|| whom.to_owned());
    if whom < known.as_str() {
        whom.clone_into(known);
    }
    drop(sentences);
    if !error["cause"].is_null() {
        heard(&error["cause"]);
    }
}

/// All of them, each with one of the operations of which it was said.
pub fn sentences() -> String {
    let sentences = SENTENCES.lock().unwrap_or_else(PoisonError::into_inner);
    let group = |([kind, effect], same): (&[String; 2], &BTreeMap<String, String>)| {
        let lines: String = same.iter().map(|(what, whom)| format!("{whom}: {what}\n")).collect();
        format!("# {kind}, effect {effect}\n\n{lines}")
    };
    sentences.iter().map(group).collect::<Vec<_>>().join("\n")
}

/// The sentence with `…` for what the client made up, and without what the service said: its text, its code and the status.
fn readable(sentence: &str) -> String {
    let is_made_up = |word: &&str| word.len() >= 20 && word.bytes().any(|byte| byte.is_ascii_digit());
    let words = sentence.split_inclusive(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '.'));
    let sentence: String = words.map(|word| if is_made_up(&word) { "…" } else { word }).collect();
    without(without(sentence, ": \"", '"'), " (", ')')
}

/// Without what stands between an opening and its end.
fn without(sentence: String, opening: &str, end: char) -> String {
    let mut parts = sentence.split(opening);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |told, part| match part.split_once(end) {
        Some((_, rest)) => told + rest,
        None => told + opening + part,
    })
}
