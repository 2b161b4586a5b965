//! Runs the cases of `tests/store` against a store.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hopline_store::{Claim, Clock, Decimal, Page, Put, Spend, Spent, Store, Whose, Written};
use serde::Deserialize;
use serde_json::Value;

/// A store under test.
pub(crate) trait Subject {
    /// The abilities of the runner that not every store has.
    const CAN: &'static [&'static str];
    type Client: Store;

    /// One more client.
    fn open(&self) -> Self::Client;

    /// The process of a client dies while it puts.
    fn die_in_put(&self, _client: Self::Client, _name: &str, _data: &str) {
        unreachable!("this runner can't do it");
    }

    /// Changes the stored bytes of a name.
    fn damage(&self, _name: &str, _how: &str) {
        unreachable!("this runner can't do it");
    }

    /// Ends the claims of a client that lives.
    fn end_claims(&self, _client: &Self::Client) {
        unreachable!("this runner can't do it");
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "about")]
    _about: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    needs: Vec<String>,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Call {
        #[serde(rename = "as")]
        client: String,
        #[serde(flatten)]
        call: Call,
    },
    Close(Close),
    Die(Die),
    Now(Now),
    EndClaims(EndClaims),
    Damage(Damage),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Close {
    close: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Die {
    die: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Now {
    now: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct EndClaims {
    end_claims: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Damage {
    damage: String,
    how: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Call {
    Claim(ClaimCall),
    Put(PutCall),
    Delete(DeleteCall),
    Release(ReleaseCall),
    List(ListCall),
    Spend(SpendCall),
    Fill(FillCall),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimCall {
    claim: Vec<String>,
    most: usize,
    answer: Claimed,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Claimed {
    Exactly { claimed: BTreeMap<String, Data> },
    SomeOf { claimed_count: usize, of: BTreeMap<String, Data> },
    Busy { busy: Data },
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Data {
    OneOf { one_of: Vec<Option<String>> },
    Unreadable { unreadable: bool },
    This(Option<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PutCall {
    put: String,
    data: String,
    #[serde(default)]
    new: bool,
    #[serde(default)]
    release: bool,
    keep_for: Option<u64>,
    #[serde(default)]
    dies: bool,
    answer: Option<Answer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeleteCall {
    delete: String,
    answer: Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Done,
    Lost,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseCall {
    release: Names,
    answer: Answer,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    These(Vec<String>),
    All(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListCall {
    list: String,
    after: Option<String>,
    #[serde(default)]
    open: bool,
    answer: Listed,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Listed {
    Entries { entries: Vec<Listing>, more: bool },
    Count { count: usize, first: String, last: String, more: bool },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    name: String,
    data: Data,
    whose: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SpendCall {
    spend: String,
    space: String,
    day: Option<i64>,
    amount: String,
    cap: Option<String>,
    answer: Spending,
}

#[derive(Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum Spending {
    Granted { granted: i64 },
    Over { over: String, day: i64 },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FillCall {
    fill: Fill,
    data: String,
    #[serde(default)]
    release: bool,
    keep_for: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fill {
    space: String,
    kind: String,
    first: u64,
    count: u64,
}

/// Runs all cases that a store's runner supports, and returns the failed ones with their faults.
pub(crate) fn run<S: Subject>(folder: &Path, new: &dyn Fn(Clock) -> S) -> Vec<String> {
    let (mut names, mut failed, mut left_out) = (BTreeSet::new(), Vec::new(), 0);
    let mut files: Vec<_> = fs::read_dir(folder).expect("the cases are there").map(|entry| entry.expect("is a file").path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "json"));
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).expect("is text");
        let file: File = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for case in file.cases {
            assert!(names.insert(case.name.clone()), "two cases are called `{}`", case.name);
            if !case.needs.iter().all(|need| S::CAN.contains(&need.as_str())) {
                left_out += 1;
                continue;
            }
            if let Err(what) = play(&case, new) {
                failed.push(format!("{}: {what}", case.name));
            }
        }
    }
    assert!(names.len() > left_out, "there are cases");
    println!("{} cases of {}, {left_out} left out, {} failed", names.len(), folder.display(), failed.len());
    failed
}

fn play<S: Subject>(case: &Case, new: &dyn Fn(Clock) -> S) -> Result<(), String> {
    let now = Arc::new(AtomicU64::new(1_750_000_000_000));
    let shown = Arc::clone(&now);
    let subject = new(Arc::new(move || shown.load(Ordering::Relaxed)));
    let mut clients: BTreeMap<String, S::Client> = BTreeMap::new();
    let gone = |client: &str| format!("the case uses `{client}` before it is opened or after it is gone");
    for (n, step) in case.steps.iter().enumerate() {
        let at = |what: String| format!("step {}: {what}", n + 1);
        match step {
            Step::Call { client, call } => {
                let opened = clients.entry(client.clone()).or_insert_with(|| subject.open());
                if let Call::Put(PutCall { put, data, dies: true, answer: None, .. }) = call {
                    let dead = clients.remove(client).ok_or_else(|| gone(client))?;
                    subject.die_in_put(dead, put, data);
                } else {
                    answer(opened, call).map_err(at)?;
                }
            }
            Step::Close(Close { close }) => clients.remove(close).ok_or_else(|| gone(close))?.close(),
            Step::Die(Die { die }) => drop(clients.remove(die).ok_or_else(|| gone(die))?),
            Step::Now(Now { now: to }) => now.store(*to, Ordering::Relaxed),
            Step::EndClaims(EndClaims { end_claims }) => subject.end_claims(clients.get(end_claims).ok_or_else(|| gone(end_claims))?),
            Step::Damage(Damage { damage, how }) => subject.damage(damage, how),
        }
    }
    Ok(())
}

/// Makes a call and compares its answer.
fn answer(client: &impl Store, call: &Call) -> Result<(), String> {
    let failed = |error: hopline_store::Error| format!("failed: {error}");
    match call {
        Call::Claim(call) => {
            let names: Vec<&str> = call.claim.iter().map(String::as_str).collect();
            claimed(&client.claim(&names, call.most).map_err(failed)?, &call.answer)
        }
        Call::Put(call) => {
            let how = Put { new: call.new, release: call.release, keep_for: call.keep_for.map(Duration::from_millis) };
            let came = client.put(&call.put, call.data.as_bytes(), &how).map_err(failed)?;
            expect("put", written(came), call.answer.ok_or("the case has no answer")?)
        }
        Call::Delete(call) => expect("delete", written(client.delete(&call.delete).map_err(failed)?), call.answer),
        Call::Release(call) => {
            let names = match &call.release {
                Names::These(names) => Some(names.iter().map(String::as_str).collect::<Vec<_>>()),
                Names::All(all) if all == "all" => None,
                Names::All(other) => return Err(format!("the case releases `{other}`")),
            };
            client.release(names.as_deref()).map_err(failed)?;
            expect("release", Answer::Done, call.answer)
        }
        Call::List(call) => listed(&client.list(&call.list, call.after.as_deref(), call.open).map_err(failed)?, &call.answer),
        Call::Spend(call) => {
            let cap = call.cap.as_deref().map(money);
            let spend = Spend { space: &call.space, day: call.day, entry: &call.spend, amount: money(&call.amount), cap };
            let came = client.spend(&spend).map_err(failed)?;
            let expected = match &call.answer {
                Spending::Granted { granted } => Spent::Granted { day: *granted },
                Spending::Over { over, day } => Spent::Over { day: *day, total: money(over) },
            };
            expect("spend", came, expected)
        }
        Call::Fill(call) => (call.fill.first..call.fill.first + call.fill.count).try_for_each(|number| {
            let name = format!("{}.{}{number:032x}", call.fill.space, call.fill.kind);
            let how = Put { new: true, release: call.release, keep_for: call.keep_for.map(Duration::from_millis) };
            expect("put", client.put(&name, call.data.as_bytes(), &how).map_err(failed)?, Written::Done)
        }),
    }
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, came: T, expected: T) -> Result<(), String> {
    if came == expected { Ok(()) } else { Err(format!("{what} answered {came:?}, not {expected:?}")) }
}

fn written(written: Written) -> Answer {
    match written {
        Written::Done => Answer::Done,
        Written::Lost => Answer::Lost,
    }
}

fn money(text: &str) -> Decimal {
    text.parse().expect("is a number")
}

fn claimed(came: &Claim, expected: &Claimed) -> Result<(), String> {
    let fits = match (came, expected) {
        (Claim::Claimed(came), Claimed::Exactly { claimed }) => came.len() == claimed.len() && all_of(came, claimed),
        (Claim::Claimed(came), Claimed::SomeOf { claimed_count, of }) => came.len() == *claimed_count && all_of(came, of),
        (Claim::Busy(data), Claimed::Busy { busy }) => fits(data.as_deref(), busy),
        _ => false,
    };
    if fits { Ok(()) } else { Err(format!("claim answered {came:?}")) }
}

/// Returns true if these are among those, each once.
fn all_of(came: &[(String, Option<Vec<u8>>)], those: &BTreeMap<String, Data>) -> bool {
    let names: BTreeSet<&String> = came.iter().map(|(name, _)| name).collect();
    names.len() == came.len() && came.iter().all(|(name, data)| those.get(name).is_some_and(|expected| fits(data.as_deref(), expected)))
}

fn fits(data: Option<&[u8]>, expected: &Data) -> bool {
    let is = |text: &Option<String>| text.as_ref().map(String::as_bytes) == data;
    match expected {
        Data::This(text) => is(text),
        Data::OneOf { one_of } => one_of.iter().any(is),
        Data::Unreadable { unreadable } => *unreadable && data.is_some_and(|data| serde_json::from_slice::<Value>(data).is_err()),
    }
}

fn listed(came: &Page, expected: &Listed) -> Result<(), String> {
    let fits = match expected {
        Listed::Entries { entries, more } => {
            let pairs = came.entries.iter().zip(entries);
            let is = |whose| match whose {
                Whose::Mine => "mine",
                Whose::Free => "free",
                Whose::Other => "other",
            };
            came.more == *more
                && came.entries.len() == entries.len()
                && pairs
                    .into_iter()
                    .all(|(came, entry)| came.name == entry.name && fits(Some(&came.data), &entry.data) && is(came.whose) == entry.whose)
        }
        Listed::Count { count, first, last, more } => {
            let ends = [came.entries.first(), came.entries.last()].map(|entry| entry.map(|entry| &entry.name));
            came.entries.len() == *count && came.more == *more && ends == [Some(first), Some(last)]
        }
    };
    if fits { Ok(()) } else { Err(format!("list answered {came:?}").chars().take(2000).collect()) }
}
