//! The members of each verb of a script.

use std::collections::BTreeMap;

use hopline::client::{FailureKind, Seen, Sent};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Start {
    pub(super) start: String,
    pub(super) operation: String,
    pub(super) params: Option<Value>,
    pub(super) params_text: Option<String>,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

/// Data is put under a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Put {
    pub(super) put: String,
    pub(super) has: Option<Value>,
    pub(super) new: Option<bool>,
    pub(super) releases: Option<bool>,
    /// Milliseconds, or null for none.
    #[serde(default, deserialize_with = "given")]
    pub(super) keep_for: Option<Option<i64>>,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    pub(super) delete: String,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    pub(super) claim: String,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Release {
    pub(super) release: String,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    pub(super) list: ListKind,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Word>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ListKind {
    Open,
    All,
}

/// An entry counts under a day's cap.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Spend {
    pub(super) spend: String,
    pub(super) usd: Option<String>,
    #[serde(default, deserialize_with = "given")]
    pub(super) day: Option<Option<i64>>,
    #[serde(default, deserialize_with = "given")]
    pub(super) cap: Option<Option<String>>,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Word>,
}

/// Null is a value of its own, beside being left out.
fn given<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The answer of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    Done,
    Lost,
    Failed,
    Never,
    Claimed,
    Busy,
    Listed,
    Counted,
    Over,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Send {
    pub(super) send: String,
    pub(super) r#for: Option<String>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, Option<String>>,
    pub(super) key: Option<String>,
    pub(super) body: Option<Value>,
    pub(super) body_text: Option<String>,
    pub(super) timeout_ms: Option<u32>,
    pub(super) max_body: Option<u32>,
    /// Milliseconds from now until `send_before`.
    pub(super) within: Option<Range>,
    pub(super) r#as: Option<String>,
    pub(super) answer: Option<Answer>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resolve {
    pub(super) resolve: String,
    pub(super) answer: Either,
    #[serde(default)]
    pub(super) misuse: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Either {
    Store(Word),
    Http(Box<Answer>),
}

/// The result of a send: one of `ok`, `error`, `text`, `hex` and `failed`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    pub(super) status: Option<u16>,
    #[serde(default)]
    pub(super) headers: BTreeMap<String, String>,
    pub(super) ok: Option<Value>,
    pub(super) error: Option<Value>,
    pub(super) meta: Option<Value>,
    pub(super) text: Option<String>,
    pub(super) repeat: Option<usize>,
    pub(super) hex: Option<String>,
    #[serde(default)]
    pub(super) truncated: bool,
    pub(super) failed: Option<FailureKind>,
    pub(super) sent: Option<Sent>,
}

/// Milliseconds: a number, or no less and no more than two numbers.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Range {
    Exactly(i64),
    Between { min: i64, max: i64 },
}

impl Range {
    pub(super) fn holds(self, number: i64) -> bool {
        match self {
            Range::Exactly(expected) => number == expected,
            Range::Between { min, max } => (min..=max).contains(&number),
        }
    }
}

/// How long the client waits; null for no time at all.
pub(super) type Bounds = Option<Range>;

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(super) enum Shift {
    Both(i64),
    Each { unix: i64, monotonic: i64 },
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Complete {
    pub(super) complete: String,
    /// Names the commands that it is answered with, where it resumed them.
    #[serde(default)]
    pub(super) parts: Vec<String>,
    pub(super) ok: Option<Success>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Take {
    pub(super) take: String,
    pub(super) ok: Option<Success>,
    pub(super) error: Option<Value>,
    /// There is nothing to take.
    #[serde(default)]
    pub(super) nothing: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Success {
    pub(super) facts: Option<Value>,
    pub(super) raw: Option<Value>,
    pub(super) raw_text: Option<String>,
    pub(super) phase: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Crash {
    pub(super) entropy: Option<String>,
    #[serde(default)]
    pub(super) client: Map<String, Value>,
    /// Records whose last put was not answered `done`, and which are on the disk all the same.
    #[serde(default)]
    pub(super) also: Vec<String>,
    pub(super) after: Option<Shift>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plant {
    pub(super) plant: String,
    /// The record that it is the name of, where nothing has named it yet.
    pub(super) name: Option<String>,
    pub(super) text: Option<String>,
    pub(super) change: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Resume {
    pub(super) resume: String,
    pub(super) r#as: String,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResumeIntent {
    pub(super) resume_intent: String,
    /// Names the command.
    pub(super) r#as: String,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ResumeAll {
    /// Names the command.
    pub(super) resume_all: String,
    #[serde(default)]
    pub(super) options: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Reconcile {
    pub(super) reconcile: String,
    pub(super) r#as: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Settle {
    pub(super) settle: String,
    /// Names the command.
    pub(super) r#as: String,
    pub(super) happened: bool,
    pub(super) became: Option<String>,
    #[serde(default)]
    pub(super) early: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Forget {
    pub(super) forget: String,
    /// Names the command.
    pub(super) r#as: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseSession {
    pub(super) release_session: String,
    /// False if the session was not followed. Default: true.
    pub(super) done: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Observe {
    pub(super) observe: String,
    pub(super) seen: Seen,
    /// `keep`, `rotate`, `rotating`, `unsure`, or null for a session that the client does not follow.
    pub(super) verdict: Option<String>,
    /// Of `rotate` and `rotating`.
    pub(super) reason: Option<String>,
    /// Of `unsure`: a part of what it says.
    pub(super) why: Option<String>,
    /// Of `rotating`: names the command.
    pub(super) r#as: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Walk {
    pub(super) walk: String,
    pub(super) operation: String,
    #[serde(default)]
    pub(super) params: Map<String, Value>,
    /// The walk whose position this one goes on from.
    pub(super) from: Option<String>,
    pub(super) position_text: Option<String>,
    pub(super) max_pages: Option<Value>,
    /// The reads, one for each page.
    #[serde(default)]
    pub(super) pages: Vec<Send>,
    pub(super) items: Option<Vec<Value>>,
    /// Why it is over; left out where it is not.
    pub(super) end: Option<String>,
    pub(super) error: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    pub(super) ask: String,
    pub(super) given: Value,
    pub(super) ok: Option<Value>,
    pub(super) error: Option<Value>,
}
