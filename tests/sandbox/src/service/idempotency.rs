//! The answers that are kept for a day under the key of their write.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::HeaderMap;

use super::envelope::{Answer, Code, Refusal};

/// How long an answer is kept after its write completed.
const KEPT_MS: i64 = 24 * 60 * 60 * 1000;

/// The longest key.
const KEY_LENGTH: usize = 64;

/// The store of finished and running writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Store(BTreeMap<Arc<str>, Arc<Entry>>);

#[derive(Debug)]
struct Entry {
    path: String,
    body: Vec<u8>,
    /// When the write was finished, or will be.
    completes_at: i64,
    /// None while the write is in progress.
    answer: Option<Answer>,
}

impl Store {
    /// The stored answer of this very write; nothing when the key is free, and a conflict when it is not.
    pub(crate) fn recall(&mut self, key: &str, path: &str, body: &[u8], now_ms: i64) -> Result<Option<Answer>, Refusal> {
        self.0.retain(|_, entry| now_ms < entry.completes_at.saturating_add(KEPT_MS));
        let Some(entry) = self.0.get(key) else {
            return Ok(None);
        };
        if entry.path != path || entry.body != body {
            return Err(conflict("the key was used for a different request"));
        }
        match &entry.answer {
            Some(answer) => Ok(Some(answer.clone())),
            None => Err(conflict("the request of this key is still in progress")),
        }
    }

    /// Keeps the answer of a write; without one its key is in progress.
    pub(crate) fn keep(&mut self, key: Arc<str>, path: &str, body: &[u8], completes_at: i64, answer: Option<Answer>) {
        let entry = Entry { path: path.to_owned(), body: body.to_vec(), completes_at, answer };
        self.0.insert(key, Arc::new(entry));
    }

    /// Forgets a key whose write failed in a way that is not kept.
    pub(crate) fn free(&mut self, key: &str) {
        self.0.remove(key);
    }
}

/// The key of a write, when it was sent with one.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<Arc<str>>, Refusal> {
    const NAME: &str = "Idempotency-Key";
    let mut values = headers.get_all(NAME).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Refusal::invalid(NAME, "must be given once"));
    }
    let bytes = value.as_bytes();
    if bytes.is_empty() || bytes.len() > KEY_LENGTH || !bytes.iter().all(u8::is_ascii_graphic) {
        return Err(Refusal::invalid(NAME, "must be 1 to 64 visible ascii characters"));
    }
    Ok(value.to_str().ok().map(Arc::from))
}

fn conflict(message: &str) -> Refusal {
    Refusal::new(Code::IdempotencyConflict, message)
}
