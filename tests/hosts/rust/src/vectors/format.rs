//! The format, as types that take nothing they do not know.

use hopline::client::Now;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::steps::*;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    about: String,
    source: String,
    pub(super) cases: Vec<Case>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    pub(super) entropy: Option<String>,
    #[serde(default)]
    pub(super) client: Map<String, Value>,
    pub(super) now: Option<Now>,
    /// The error that creating the client is to end with.
    pub(super) refused: Option<Value>,
    #[serde(default)]
    pub(super) script: Vec<Value>,
}

impl File {
    pub(super) fn read(text: &str) -> Result<File, String> {
        let file: File = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if file.about.trim().is_empty() || file.source.trim().is_empty() {
            return Err("`about` and `source` must say something".to_owned());
        }
        Ok(file)
    }
}

/// A step of a script: one verb and the members that belong to it.
#[derive(Debug)]
pub(super) enum Verb {
    Start(Start),
    Put(Put),
    Delete(Delete),
    Claim(Claim),
    Release(Release),
    List(List),
    Spend(Spend),
    Send(Box<Send>),
    Resolve(Resolve),
    Wait(Bounds),
    Sleep(Bounds),
    Advance(Shift),
    Completed(String),
    Complete(Complete),
    Take(Take),
    Notify(Value),
    Cancel(String),
    Crash(Crash),
    Plant(Plant),
    Lost(Vec<String>),
    Resume(Resume),
    ResumeIntent(ResumeIntent),
    Reconcile(Reconcile),
    ResumeAll(ResumeAll),
    Settle(Settle),
    Forget(Forget),
    ReleaseSession(ReleaseSession),
    Saved(Vec<Value>),
    Observe(Observe),
    Walk(Walk),
    Ask(Ask),
}

macro_rules! verbs {
    ($step:ident, $verb:ident; whole: $($name:literal => $variant:ident),*; value: $($plain:literal => $bare:ident),*) => {
        match $verb {
            $($name => serde_json::from_value($step).map(Verb::$variant),)*
            $($plain => only($step, $plain).and_then(serde_json::from_value).map(Verb::$bare),)*
            _ => unreachable!("the list of verbs is complete"),
        }
    };
}

const VERBS: [&str; 31] = [
    "start",
    "put",
    "delete",
    "claim",
    "release",
    "list",
    "spend",
    "send",
    "resolve",
    "wait",
    "sleep",
    "advance",
    "completed",
    "complete",
    "take",
    "notify",
    "cancel",
    "crash",
    "plant",
    "lost",
    "resume",
    "resume_intent",
    "reconcile",
    "resume_all",
    "settle",
    "forget",
    "release_session",
    "saved",
    "observe",
    "walk",
    "ask",
];

impl Verb {
    /// Reads a step; returns its verb's name with it.
    pub(super) fn read(step: &Value) -> Result<(&'static str, Verb), String> {
        let members = step.as_object().ok_or("a step is an object")?;
        let mut found = VERBS.into_iter().filter(|verb| members.contains_key(*verb));
        let (Some(verb), None) = (found.next(), found.next()) else {
            let names: Vec<&String> = members.keys().collect();
            return Err(format!("a step has one verb, and this has the members {names:?}"));
        };
        let step = step.clone();
        let read = verbs!(step, verb;
            whole: "start" => Start, "put" => Put, "delete" => Delete, "claim" => Claim, "release" => Release, "list" => List,
                "spend" => Spend, "send" => Send, "resolve" => Resolve, "complete" => Complete, "take" => Take, "plant" => Plant,
                "resume" => Resume, "resume_intent" => ResumeIntent, "reconcile" => Reconcile, "resume_all" => ResumeAll,
                "settle" => Settle, "forget" => Forget, "release_session" => ReleaseSession, "observe" => Observe, "walk" => Walk,
                "ask" => Ask;
            value: "wait" => Wait, "sleep" => Sleep, "advance" => Advance, "completed" => Completed, "notify" => Notify,
                "cancel" => Cancel, "crash" => Crash, "lost" => Lost, "saved" => Saved);
        read.map(|read| (verb, read)).map_err(|error| format!("({verb}) {error}"))
    }
}

/// The value of the only member.
fn only(step: Value, verb: &str) -> Result<Value, serde_json::Error> {
    match step {
        Value::Object(mut members) if members.len() == 1 => Ok(members.remove(verb).unwrap_or_default()),
        _ => Err(serde::de::Error::custom(format!("`{verb}` has no other members beside it"))),
    }
}
