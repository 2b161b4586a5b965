//! Looking for what became of an operation in doubt, in the lists that the contract has. It shows candidates as the service
//! gave them and never decides.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::Client;
use super::job::{Job, State};
use super::options::CallOptions;
use super::store::{JobId, Owner};
use super::types::{Answered, CommandId, Misfit, Outputs, RecordId, Ticket};
use crate::contract::{Candidate, Decimal, Endpoint, Json, Reconciliation, Shape, endpoint};
use crate::policy::{Advice, Effect, Error, Kind, Lookup as Read, Report, lookups};
use crate::wire::{Built, Facts, build, items, page_size};

/// No list is read further than this many pages of 100, and no more than this many bytes of candidates are kept.
const PAGES: u32 = 20;
const MAX_BYTES: usize = 4 << 20;

/// What a job looks for.
#[derive(Debug, Clone, PartialEq, Hash)]
pub(super) struct Lookup {
    /// What is known of the operation in doubt.
    clues: BTreeMap<String, String>,
    found: Reconciliation,
    /// The read that is under way, and its page.
    read: usize,
    page: u32,
    bytes: usize,
}

/// Marks the ticket of [`Client::reconcile`].
#[derive(Debug, Clone, Copy)]
pub enum Reconcile {}

impl Outputs for Reconcile {
    type Output = Reconciliation;

    fn read(answered: Answered) -> Result<Self::Output, Misfit> {
        match answered.raw.read() {
            Ok(found) => Ok(found),
            Err(error) => Err(Box::new((answered, error))),
        }
    }
}

impl Client {
    /// Looks for what became of an operation in doubt: reads what the contract has to show of it, and returns what may be it,
    /// as the service gave it, with the parameters that it shows with the same values. It decides nothing and sends nothing
    /// but reads; [`settle`](Self::settle) closes the doubt once somebody knows.
    pub fn reconcile(&mut self, record: &RecordId, options: CallOptions) -> Ticket<Reconcile> {
        Ticket::of(self.look_up(record, options))
    }

    pub(super) fn look_up(&mut self, record: &RecordId, options: CallOptions) -> CommandId {
        let refuse = |kind, what: &str, advice| Error::new(kind, Effect::None, "reconcile", what, advice);
        let doubt = match self.store.owner(record) {
            Some(Owner::Job(id)) => self.jobs.get(id).filter(|job| job.state == State::Held && job.order.is_none()),
            _ => None,
        };
        let error = match (doubt, options.refusal(), &options.intent) {
            (_, Some((field, rule)), _) => Err(Error::invalid("reconcile", field, rule)),
            (_, _, Some(_)) => Err(Error::invalid("reconcile", "intent", "names a write, and this operation only reads")),
            _ if options.until.is_some() => Err(Error::invalid("reconcile", "until", "belongs to a read that is repeated")),
            _ if options.idempotency_key.is_some() => Err(Error::invalid("reconcile", "idempotency_key", "is not taken by this operation")),
            (None, ..) => Err(refuse(Kind::Misuse, "names a record that holds no operation in doubt", Advice::Nothing)),
            (Some(job), ..) if lookups(job.endpoint.name).is_empty() => {
                let what = format!("can't look up {}, since the contract shows no list of it", job.endpoint.name);
                Err(refuse(Kind::Refused, &what, Advice::CheckAccount))
            }
            (Some(job), ..) => {
                let mut clues = job.built.as_ref().map(|built| built.clues.clone()).unwrap_or_default();
                clues.extend(job.session.clone().map(|session| ("session_id".to_owned(), session)));
                Ok((job.endpoint.name, clues))
            }
        };
        let (operation, clues) = match error {
            Ok(known) => known,
            Err(error) => return self.reject(error, options.intent),
        };
        let found = Reconciliation { operation: operation.to_owned(), candidates: Vec::new(), complete: true };
        let lookup = Lookup { clues, found, read: 0, page: 1, bytes: 0 };
        let Some((endpoint, built)) = lookup.request(operation) else {
            return self.reject(refuse(Kind::Misuse, "could not be laid out", Advice::CheckAccount), None);
        };
        let command = self.command_for("reconcile");
        let mut job = Job::new(self.job_id(), endpoint, Some(built), &options, options.policy(&self.retry));
        job.lookup = Some(lookup);
        self.begin(job, command);
        command
    }

    /// A read was answered: keep what may be it, then go on with the next page or the next read.
    pub(super) fn looked_up(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.cancelled {
            return self.stop_cancelled(id);
        }
        let Some(lookup) = &mut job.lookup else { return };
        let repeated = lookup.take_in(answered.raw.text());
        let full = lookup.bytes > MAX_BYTES;
        let more = answered.facts.short_page == Some(false);
        match more && lookup.page < PAGES && !full && !repeated {
            true => lookup.page += 1,
            false => {
                lookup.found.complete &= !more && !full;
                (lookup.read, lookup.page) = (lookup.read + 1, 1);
            }
        }
        let operation = lookup.found.operation.clone();
        if let Some((endpoint, built)) = lookup.request(&operation).filter(|_| !full) {
            (job.endpoint, job.built) = (endpoint, Some(built));
            job.read_anew();
            return self.set_timer(id, now);
        }
        let mut found = lookup.found.clone();
        for candidate in &mut found.candidates {
            let facts = Facts::of(candidate.item.text(), None);
            candidate.record = self.record_of(&operation, &facts, None).map(|record| record.0);
        }
        let raw = serde_json::to_string(&found).ok().and_then(|text| text.parse().ok()).unwrap_or_default();
        self.finish(id, Ok(Answered { raw, ..Answered::of(Facts::default()) }));
    }

    /// The same read failed: there is no answer to give.
    pub(super) fn not_looked_up(&mut self, id: JobId, error: Error) {
        let what = format!("could not read {}: {}", error.operation, error.what);
        let error = Report { operation: "reconcile", what, ..error.into_report() };
        self.finish(id, Err(Error::from(error)));
    }
}

impl Lookup {
    fn reading(&self) -> Option<&'static Read> {
        lookups(&self.found.operation).get(self.read)
    }

    /// The request that comes next.
    fn request(&self, operation: &str) -> Option<(&'static Endpoint, Built)> {
        let read = lookups(operation).get(self.read)?;
        let endpoint = endpoint(read.read)?;
        let mut params: BTreeMap<&str, Cow<'_, str>> = read.fixed.iter().map(|(to, json)| (*to, Cow::Borrowed(*json))).collect();
        for (to, from) in read.filled {
            let Some(value) = self.clues.get(*from) else { continue };
            let number = endpoint.request.field(to).is_some_and(|field| matches!(field.shape, Shape::Integer));
            params.insert(to, if number { Cow::Borrowed(value) } else { Cow::Owned(serde_json::Value::from(value.as_str()).to_string()) });
        }
        if let Some(size) = page_size(endpoint) {
            params.insert(size, Cow::Borrowed("100"));
            params.insert("page", Cow::Owned(self.page.to_string()));
        }
        let members: Vec<String> = params.iter().map(|(name, json)| format!("\"{name}\":{json}")).collect();
        build(endpoint, &format!("{{{}}}", members.join(","))).ok().map(|built| (endpoint, built))
    }

    /// Keeps the items of an answer that may be it; an answer that is no list may be it as a whole. Returns whether they are those
    /// of the page before, since the service takes no notice of the page.
    fn take_in(&mut self, data: &str) -> bool {
        let Some(read) = self.reading() else { return false };
        let before = self.found.candidates.len();
        let whole: Option<&RawValue> = serde_json::from_str(data).ok();
        let listed = items(data).or_else(|| serde_json::from_str(data).ok());
        for item in listed.unwrap_or_else(|| whole.into_iter().collect()) {
            let shown: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_str(item.get()).unwrap_or_default();
            let says = |name: &str, value: &str| member(&shown, name).map(|shown| is_same(shown, value));
            let other = read.keys.iter().any(|(clue, name)| self.clues.get(*clue).is_some_and(|value| says(name, value) == Some(false)));
            if other {
                continue;
            }
            self.bytes = self.bytes.saturating_add(item.get().len());
            if self.bytes > MAX_BYTES {
                return false;
            }
            let member_of =
                |clue: &str| read.keys.iter().find(|(from, _)| *from == clue).map_or(clue.to_owned(), |(_, name)| (*name).to_owned());
            let matched = self.clues.iter().filter(|(clue, value)| says(&member_of(clue), value) == Some(true));
            let matched = matched.map(|(clue, _)| clue.clone()).collect();
            self.found.candidates.push(Candidate { read: read.read.to_owned(), matched, item: Json::from(item), record: None });
        }
        let (known, new) = self.found.candidates.split_at(before);
        let repeated = !new.is_empty() && known.ends_with(new);
        if repeated {
            self.found.candidates.truncate(before);
        }
        repeated
    }
}

/// A member of an item, in snake case or in camel case.
fn member<'a>(shown: &BTreeMap<Cow<'_, str>, &'a RawValue>, name: &str) -> Option<&'a RawValue> {
    let plain = |name: &str| name.replace('_', "").to_ascii_lowercase();
    let wanted = plain(name);
    shown.iter().find(|(known, _)| plain(known) == wanted).map(|(_, raw)| *raw).filter(|raw| raw.get() != "null")
}

fn is_same(shown: &RawValue, value: &str) -> bool {
    let text = serde_json::from_str::<String>(shown.get()).map_or(Cow::Borrowed(shown.get()), Cow::Owned);
    let numbers = text.parse::<Decimal>().ok().zip(value.parse::<Decimal>().ok());
    text == value || numbers.is_some_and(|(one, two)| one == two)
}
