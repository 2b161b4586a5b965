//! A program with a client: what it starts, and what its client says.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::Hash;

use hopline::client::{
    CallOptions, Client, ClientOptions, CommandId, EventKind, Holds, Millis, Now, Record, RecordId, Step, StepId, describe,
};
use hopline::contract::{Api, Decimal, Method, Secret};
use hopline::wire::Request;
use hopline_sandbox::{BACKEND_PATH, Service};

use crate::checker::{About, Sending, Total, UNSAVED, thousandths};
use crate::job::{Job, Manner, Task};
use crate::service::{API_KEY, is_login};
use crate::world::{Out, Process, World, Wrong};

impl World {
    /// A new process on the store.
    pub(crate) fn restart(&mut self, skew: Millis) -> Result<(), Wrong> {
        self.clients = self.clients.wrapping_add(1);
        let reseller = self.scope.api == Api::Reseller;
        let (username, password) = self.remote.login();
        let options = ClientOptions {
            api: self.scope.api,
            base_url: format!("https://api.example{}", if reseller { BACKEND_PATH } else { "/v1" }),
            api_key: (!reseller).then(|| Secret::new(API_KEY)),
            username: reseller.then(|| Secret::new(username)),
            password: reseller.then(|| Secret::new(password)),
            token: self.remote.token.clone().map(Secret::new),
            daily_cap_usd: self.scope.cap.map(|cap| Decimal(rust_decimal::Decimal::new(cap, 3))),
            without: self.without,
            ..ClientOptions::default()
        };
        let client = Client::new(options, [self.clients; 16]).map_err(|error| error.to_string())?;
        let (began, out, commands) = (self.now, VecDeque::new(), BTreeMap::new());
        let process = self.process.insert(Process {
            client,
            out,
            commands,
            completed: VecDeque::new(),
            kept: BTreeSet::new(),
            records: BTreeMap::new(),
            began,
            skew,
            is_right: skew == 0,
            wakes: None,
        });
        // Time is known before anything else, as in a host that polls first.
        process.client.poll(Now { unix: self.now + skew, monotonic: 0 });
        let restored = process.client.restore(self.store.iter().map(|(id, data)| Record { id: id.clone(), data: data.clone() }));
        if let Some(refused) = restored.refused.iter().find(|(record, _)| !self.may_be_refused(record)) {
            return Err(format!("a record of ours was refused: {refused:?}"));
        }
        if let Some(record) = self.damaged.keys().find(|record| restored.held.contains(record)) {
            return Err(format!("{record} was cut short, and is held all the same"));
        }
        self.checker.restarted(self.remote.token.as_ref());
        let records = self.store.len();
        self.tell(|| format!("a program starts with {records} records"));
        self.drain()
    }

    /// Whether a record can't be held: it was cut short, or somebody dropped another one of its name too early.
    fn may_be_refused(&self, record: &RecordId) -> bool {
        let is_misled = || self.job_of(record).is_some_and(|job| self.checker.is_excused(job));
        self.damaged.contains_key(record) || is_misled()
    }

    /// Starts a job.
    pub(crate) fn start(&mut self, job: Job, manner: Manner) -> Result<(), Wrong> {
        // Nobody ends a session that they do not have.
        if job.task == Task::Terminate && usize::from(job.number) >= self.remote.sessions.len() {
            return Ok(());
        }
        let at = self.jobs.iter().position(|known| *known == job).unwrap_or_else(|| {
            self.jobs.push(job);
            self.jobs.len() - 1
        });
        let about = self.checker.begun(at, job);
        let (operation, params, mut options) = job.start(&self.remote.sessions, manner);
        if self.scope.cap.is_some() {
            options.max_unit_price = Some(Decimal::from(12));
        }
        options.retry_paid = self.scope.retry_paid.then_some(true);
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.start_json(operation, &params, options);
        process.commands.insert(command, Some(about));
        self.tell(|| format!("command {} starts {job:?}{}", command.0, if manner == Manner::Hasty { ", hastily" } else { "" }));
        self.drain()
    }

    /// Starts a command that is about no job.
    pub(crate) fn ask(&mut self, operation: &str, params: &str) -> Result<(), Wrong> {
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.start_json(operation, params, Default::default());
        process.commands.insert(command, None);
        self.drain()
    }

    /// Goes on with a record.
    pub(crate) fn resume(&mut self, record: &RecordId) -> Result<(), Wrong> {
        let about = self.about_of(record);
        self.tell(|| format!("resume {record}"));
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.resume(record, CallOptions::default());
        process.commands.insert(command, about);
        self.drain()
    }

    /// The job of a record, by what the program that runs has said of it, or by what the store has.
    pub(crate) fn job_of(&self, record: &RecordId) -> Option<usize> {
        if let Some(job) = self.damaged.get(record) {
            return *job;
        }
        let said = self.process.as_ref().and_then(|process| process.records.get(record)).copied();
        said.or_else(|| self.job_in(self.store.get(record)?))
    }

    /// The purchase of a record, by the key that the store has in it; the present one of its job where there is none.
    pub(crate) fn about_of(&self, record: &RecordId) -> Option<About> {
        let job = self.job_of(record)?;
        let key = self.store.get(record).and_then(|data| describe(data)?.key);
        self.checker.of_key(job, key.as_deref())
    }

    /// The job of what a record says, by its intent, or by the mark in its request.
    fn job_in(&self, data: &[u8]) -> Option<usize> {
        let told = describe(data)?;
        if let Some(intent) = &told.intent {
            return self.jobs.iter().position(|job| job.intent().as_ref() == Some(intent));
        }
        let value = |text: String| serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text));
        let shown = || told.clues.into_iter().map(|(name, text)| (name, value(text))).collect();
        let body = told.body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_else(shown);
        let operation = told.operation?;
        self.jobs.iter().position(|job| job.sends(&operation, "", &body, &self.remote.sessions))
    }

    /// Lets the client say all that it has to say.
    pub(crate) fn drain(&mut self) -> Result<(), Wrong> {
        let now = self.clock();
        for _ in 0..1000 {
            let Some(process) = &mut self.process else { return Ok(()) };
            self.steps += 1;
            let step = process.client.poll(now);
            if let Some(transcript) = &mut self.transcript {
                (now.monotonic, &step).hash(transcript);
            }
            match step {
                Step::Save { id, record, data } => {
                    if process.out.iter().any(|out| matches!(out, Out::Save { record: other, .. } if *other == record)) {
                        return Err(format!("two saves of {record} overlap"));
                    }
                    if data.as_ref().is_some_and(|data| shows(&self.secrets, &String::from_utf8_lossy(data))) {
                        return Err(format!("{SHOWN} by a record"));
                    }
                    let job = data.as_ref().and_then(|data| self.job_in(data));
                    let Some(process) = &mut self.process else { return Ok(()) };
                    process.records.extend(job.map(|job| (record.clone(), job)));
                    process.out.push_back(Out::Save { id, record, data });
                }
                Step::Send { id, command, request } => self.sends(id, command, request)?,
                Step::Completed { command } => {
                    if process.completed.contains(&command) {
                        return Err("a command completed twice".into());
                    }
                    process.completed.push_back(command);
                    let about = process.commands.get(&command).copied().flatten();
                    if let (Some(about), Some(result)) = (about, process.client.result(command)) {
                        self.checker.ends(about, self.jobs[about.job], result)?;
                    }
                }
                Step::Notify(event) => {
                    if let (EventKind::Ordered { order_no }, Some(command)) = (&event.what, event.command) {
                        let job = process.commands.get(&command).copied().flatten().map(|about| about.job);
                        self.checker.ordered(job, order_no.clone());
                    }
                    if shows(&self.secrets, &format!("{event:?}")) {
                        return Err(format!("{SHOWN} by an event"));
                    }
                }
                Step::Wait { until } => {
                    process.wakes = until;
                    return Ok(());
                }
            }
        }
        Err("the client never waits".into())
    }

    /// A request goes out.
    fn sends(&mut self, id: StepId, command: CommandId, request: Request) -> Result<(), Wrong> {
        let Some(process) = &self.process else { return Ok(()) };
        let operation = http::Request::try_from(&request).ok().and_then(|request| Service::operation(&request)).unwrap_or_default();
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let job = self.jobs.iter().position(|job| job.sends(operation, &request.url, &body, &self.remote.sessions));
        // A read is one of its command's.
        let is_read = request.method == Method::Get;
        let own = process.commands.get(&command).copied().flatten().filter(|about| is_read || Some(about.job) == job);
        let about = own.or_else(|| self.checker.current(job?));
        let is_login_out = |out: &Out| matches!(out, Out::Send { request, .. } if is_login(request));
        let beside_login = process.out.iter().any(is_login_out);
        let store_is_idle = !process.out.iter().any(|out| matches!(out, Out::Save { .. }));
        let is_write = !matches!(request.method, Method::Get | Method::Delete) && !is_login(&request);
        if is_write && !self.is_kept(process, operation, &request, about) {
            return Err(UNSAVED.into());
        }
        let whose = about.map(|about| (about, self.jobs[about.job]));
        let (total, clocks) = (self.scope.cap.and_then(|_| self.total()), self.clocks());
        self.checker.sends(&Sending { command, about: whose, request: &request, beside_login, store_is_idle, total, clocks })?;
        if let Some(process) = &mut self.process {
            process.out.push_back(Out::Send { id, command, request, about });
        }
        Ok(())
    }

    /// Whether the store has told this program that it keeps the record of a write: one with its key or, where there are no keys, of
    /// its job.
    fn is_kept(&self, process: &Process, operation: &str, request: &Request, about: Option<About>) -> bool {
        let key = request.header("idempotency-key");
        let mut kept = process.kept.iter().filter_map(|record| Some((record, describe(self.store.get(record)?)?)));
        kept.any(|(record, told)| {
            let is_its_job = key.is_some() || about.is_none_or(|about| self.job_of(record) == Some(about.job));
            told.operation.as_deref() == Some(operation) && told.key.as_deref() == key && is_its_job
        })
    }

    /// The newest total that the store has.
    pub(crate) fn total(&self) -> Option<Total> {
        let totals = self.store.values().filter_map(|data| total_in(data));
        // What a client that is gone has left is counted with what is there.
        totals.reduce(|one, other| match one.day.cmp(&other.day) {
            std::cmp::Ordering::Less => other,
            std::cmp::Ordering::Equal => Total { amount: one.amount + other.amount, ..one },
            std::cmp::Ordering::Greater => one,
        })
    }

    /// The jobs that a person can find an open doubt about.
    pub(crate) fn doubts(&self) -> BTreeSet<usize> {
        let Some(process) = &self.process else { return BTreeSet::new() };
        let saved = process.client.saved().into_iter();
        let open = saved.filter(|saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood | Holds::UnderWay));
        open.filter_map(|saved| self.job_of(&saved.record)).chain(self.damaged.values().flatten().copied()).collect()
    }
}

/// The total that a record is of.
pub(crate) fn total_in(data: &[u8]) -> Option<Total> {
    let data: serde_json::Value = serde_json::from_slice(data).ok()?;
    let spent = data.get("spent")?;
    let usd = spent["usd"].as_str().map_or_else(|| spent["usd"].to_string(), str::to_owned);
    Some(Total { day: spent["day"].as_i64()?, amount: thousandths(&usd)? })
}

/// A secret is shown.
pub(crate) const SHOWN: &str = "a secret is shown";

/// Whether a text shows what must stay secret.
pub(crate) fn shows(secrets: &BTreeSet<String>, text: &str) -> bool {
    secrets.iter().any(|secret| text.contains(secret.as_str()))
}
