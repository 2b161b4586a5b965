//! The world: one service, one network, one store, the programs and people who use them, and everything that may happen next.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};

use hopline::client::{Client, ClientOptions, CommandId, EventKind, Millis, Now, Record, RecordId, Step, StepId, describe};
use hopline::contract::{Api, Decimal, Method, Secret};
use hopline::wire::Request;
use hopline_sandbox::{BACKEND_PATH, Service};

use crate::checker::{About, Checker, UNSAVED};
use crate::job::Job;
use crate::scope::Scope;
use crate::service::{API_KEY, Remote, is_login};

pub(crate) const HOUR: Millis = 3_600_000;
/// A night in which a machine sleeps and a key grows too old.
pub(crate) const NIGHT: Millis = 25 * HOUR;
/// From the beginning of a run into the next UTC day; a key is not too old by then.
pub(crate) const OVERNIGHT: Millis = 17 * HOUR;

/// What a client waits for.
#[derive(Clone, Hash)]
pub(crate) enum Out {
    Send { id: StepId, command: CommandId, request: Request, job: Option<usize> },
    Save { id: StepId, record: RecordId, data: Option<Vec<u8>> },
}

/// A request that is under way without anybody waiting for it.
#[derive(Clone, Hash)]
pub(crate) struct Message {
    pub(crate) request: Request,
    pub(crate) job: Option<usize>,
    pub(crate) about: Option<About>,
}

/// A program with a client.
#[derive(Clone, Hash)]
pub(crate) struct Process {
    pub(crate) client: Client,
    pub(crate) out: VecDeque<Out>,
    /// Commands that have not been taken, and what they are about.
    pub(crate) commands: BTreeMap<CommandId, Option<About>>,
    pub(crate) completed: VecDeque<CommandId>,
    /// When its monotonic clock was 0, and how far its wall clock is off.
    began: Millis,
    pub(crate) skew: Millis,
    /// Whether its wall clock was right all the time.
    pub(crate) is_right: bool,
    /// When it has something to do by itself, by its own clock.
    pub(crate) wakes: Option<Millis>,
}

/// How much may still happen.
#[derive(Debug, Clone, Copy, Hash)]
pub(crate) struct Budget {
    pub(crate) faults: u8,
    pub(crate) troubles: u8,
    pub(crate) acts: u8,
}

/// A world. Its [`Hash`] is its state: what is equal in it goes on equally.
#[derive(Clone)]
pub struct World {
    pub(crate) scope: &'static Scope,
    pub(crate) without: Option<hopline::policy::Rule>,
    pub(crate) now: Millis,
    pub(crate) remote: Remote,
    pub(crate) store: BTreeMap<RecordId, Vec<u8>>,
    pub(crate) network: VecDeque<Message>,
    /// None while no program runs.
    pub(crate) process: Option<Process>,
    /// Every job that was ever started; what a job's number means elsewhere.
    pub(crate) jobs: Vec<Job>,
    pub(crate) checker: Checker,
    pub(crate) budget: Budget,
    clients: u8,
    /// What a reconcile showed last.
    pub(crate) shown: Option<String>,
    pub(crate) steps: u64,
    /// What all steps so far come to, if somebody wants to compare them.
    pub(crate) transcript: Option<Transcript>,
    /// The story, if somebody wants to read it.
    pub(crate) story: Option<Vec<String>>,
}

impl Hash for World {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.now, &self.remote, &self.store, &self.network, &self.process, &self.jobs, &self.checker, self.budget, self.clients)
            .hash(state);
    }
}

/// Every step of a client in one number (FNV-1a): two of them differ where a step does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transcript(u64);

impl Default for Transcript {
    fn default() -> Self {
        Transcript(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Transcript {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// What was found to be wrong.
pub(crate) type Wrong = String;

impl World {
    /// A world before anything was started.
    pub(crate) fn new(scope: &'static Scope, without: Option<hopline::policy::Rule>, tells: bool) -> Result<World, Wrong> {
        let mut world = World {
            scope,
            without: None,
            now: Remote::START,
            remote: Remote::new(scope.api),
            store: BTreeMap::new(),
            network: VecDeque::new(),
            process: None,
            jobs: Vec::new(),
            checker: Checker::default(),
            budget: Budget { faults: 0, troubles: 0, acts: 0 },
            clients: 0,
            shown: None,
            steps: 0,
            transcript: None,
            story: None,
        };
        if !scope.has_token {
            world.remote.token = None;
        }
        world.restart(0)?;
        for job in scope.before {
            world.start(*job)?;
            world.settle_all()?;
        }
        if scope.forgets {
            world.store.clear();
        }
        // What came before is not what is looked for, and its rules held.
        world.without = without;
        world.budget = Budget { faults: scope.faults, troubles: scope.troubles, acts: scope.acts };
        world.story = tells.then(Vec::new);
        world.restart(0)?;
        for job in scope.jobs {
            world.start(*job)?;
        }
        Ok(world)
    }

    pub(crate) fn tell(&mut self, line: impl FnOnce() -> String) {
        if let Some(story) = &mut self.story {
            story.push(line());
        }
    }

    /// The clocks of the program that runs.
    pub(crate) fn clock(&self) -> Now {
        let (began, skew) = self.process.as_ref().map_or((self.now, 0), |process| (process.began, process.skew));
        Now { unix: self.now + skew, monotonic: self.now - began }
    }

    /// Lets time pass. A message is under way for an hour at most.
    pub(crate) fn pass(&mut self, ms: Millis) -> Result<(), Wrong> {
        if ms > HOUR {
            self.arrive_all()?;
        }
        if ms >= NIGHT {
            self.checker.sleeps(&self.jobs);
        }
        self.now += ms;
        let mut effects = Vec::new();
        self.remote.settle(self.now, &mut effects);
        self.note(effects, None)
    }

    pub(crate) fn arrive_all(&mut self) -> Result<(), Wrong> {
        while let Some(message) = self.network.pop_front() {
            self.arrive(message)?;
        }
        Ok(())
    }

    pub(crate) fn arrive(&mut self, message: Message) -> Result<(), Wrong> {
        let request = http::Request::try_from(&message.request).map_err(|error| error.to_string())?;
        let mut effects = Vec::new();
        self.remote.execute(&request, message.job, self.now, &mut effects);
        self.note(effects, message.about)
    }

    pub(crate) fn note(&mut self, effects: Vec<(usize, crate::service::Effect)>, about: Option<About>) -> Result<(), Wrong> {
        for (job, effect) in effects {
            let (key, id) = (effect.key.clone(), effect.id.clone());
            self.tell(|| format!("    the service did it: {:?} under {key:?}", id.unwrap_or_default()));
            let about = about.filter(|about| about.job == job).or_else(|| self.checker.current(job));
            if let Some(about) = about {
                self.checker.did(about, effect, self.scope.cap, self.now)?;
            }
        }
        Ok(())
    }

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
            began,
            skew,
            is_right: skew == 0,
            wakes: None,
        });
        // Time is known before anything else, as in a host that polls first.
        process.client.poll(Now { unix: self.now + skew, monotonic: 0 });
        let restored = process.client.restore(self.store.iter().map(|(id, data)| Record { id: id.clone(), data: data.clone() }));
        if let Some(refused) = restored.refused.first() {
            return Err(format!("a record of ours was refused: {refused:?}"));
        }
        self.checker.restarted(self.remote.token.as_ref());
        let records = self.store.len();
        self.tell(|| format!("a program starts with {records} records"));
        self.drain()
    }

    /// Starts a job.
    pub(crate) fn start(&mut self, job: Job) -> Result<(), Wrong> {
        let at = self.jobs.iter().position(|known| *known == job).unwrap_or_else(|| {
            self.jobs.push(job);
            self.jobs.len() - 1
        });
        let about = self.checker.begun(at, job);
        let (operation, params, mut options) = job.start(&self.remote.sessions);
        if self.scope.cap.is_some() {
            options.max_unit_price = Some(Decimal::from(12));
            options.retry_paid = Some(true);
        }
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.start_json(operation, &params, options);
        process.commands.insert(command, Some(about));
        self.tell(|| format!("command {} starts {job:?}", command.0));
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
        let about = self.job_of(record).and_then(|job| self.checker.current(job));
        self.tell(|| format!("resume {record}"));
        let Some(process) = &mut self.process else { return Ok(()) };
        let command = process.client.resume(record, Default::default());
        process.commands.insert(command, about);
        self.drain()
    }

    /// The job of a record, by its intent, or by the mark in its request.
    pub(crate) fn job_of(&self, record: &RecordId) -> Option<usize> {
        // What is on its way to the store says the same.
        let on_its_way = self.process.iter().flat_map(|process| &process.out).find_map(|out| match out {
            Out::Save { record: saved, data, .. } if saved == record => data.as_ref(),
            _ => None,
        });
        let told = describe(self.store.get(record).or(on_its_way)?)?;
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
                    if data.as_ref().is_some_and(|data| shows(&String::from_utf8_lossy(data))) {
                        return Err("a record shows a secret".into());
                    }
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
                    if shows(&format!("{event:?}")) {
                        return Err("an event shows a secret".into());
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
        let now = self.clock();
        let Some(process) = &mut self.process else { return Ok(()) };
        let operation = http::Request::try_from(&request).ok().and_then(|request| Service::operation(&request)).unwrap_or_default();
        let body = serde_json::from_slice(&request.body).unwrap_or_default();
        let job = self.jobs.iter().position(|job| job.sends(operation, &request.url, &body, &self.remote.sessions));
        let about = job.and_then(|at| Some((self.checker.current(at)?, self.jobs[at])));
        let logins: Vec<bool> = process.out.iter().map(|out| matches!(out, Out::Send { request, .. } if is_login(request))).collect();
        let is_idle = !process.out.iter().any(|out| matches!(out, Out::Save { .. }));
        let is_write = !matches!(request.method, Method::Get | Method::Delete) && !is_login(&request);
        if is_write && !is_kept(&self.store, operation, &request) {
            return Err(UNSAVED.into());
        }
        let unix = process.is_right.then_some(now.unix);
        self.checker.sends(command, about, &request, logins.into_iter(), is_idle, (now.monotonic, unix))?;
        process.out.push_back(Out::Send { id, command, request, job });
        Ok(())
    }

    /// The jobs that a person can find an open doubt about.
    pub(crate) fn doubts(&self) -> BTreeSet<usize> {
        let Some(process) = &self.process else { return BTreeSet::new() };
        let open = process.client.saved().into_iter().filter(|saved| {
            use hopline::client::Holds;
            matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood | Holds::UnderWay)
        });
        open.filter_map(|saved| self.job_of(&saved.record)).collect()
    }
}

/// Whether a text shows what must stay secret.
pub(crate) fn shows(text: &str) -> bool {
    text.contains(API_KEY)
}

/// Whether the store holds the record of a write: one with its key or, where there are no keys, with its body.
fn is_kept(store: &BTreeMap<RecordId, Vec<u8>>, operation: &str, request: &Request) -> bool {
    match request.header("idempotency-key") {
        Some(key) => {
            let key = format!("\"{key}\"");
            store.values().any(|data| data.windows(key.len()).any(|part| part == key.as_bytes()))
        }
        None => store.values().filter_map(|data| describe(data)).any(|told| told.operation.as_deref() == Some(operation)),
    }
}
