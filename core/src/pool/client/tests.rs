//! A client with a pool against a service of a few lines: what comes in and what goes out, step by step.

mod buying;
mod closing;
mod fleet;
mod lending;
mod sharing;

use super::*;
use crate::client::{Outcome, Settlement};
use crate::contract::agent::SessionType;
use crate::contract::pools::{KnownPool, PoolOnChange, PoolReason, PoolReplace};
use crate::contract::{Cheapest, Secret};
use crate::engine::RecordId;
use crate::pool::record::{PoolRecord, RecordChange};
use crate::state::{Memory, StoreAnswer, StoreCall};

const START: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };
const PRODUCTS: &str = r#"{"success":true,"data":{"items":[{"product_no":"p","type":"dynamic","sharing":"exclusive","available":true,"price":1,"currency":"USD","unit":"GB"}]}}"#;

/// A client, its store, and a service of a few lines.
struct Host {
    client: PoolClient,
    disk: Memory,
    /// Its number among the clients of the store.
    number: u32,
    now: Now,
    /// The purchases that were sent.
    bought: usize,
    /// The answer to a purchase, if nothing is sold.
    answer: Option<(u16, &'static str)>,
    /// True if sold sessions are static.
    is_static: bool,
    /// True if sold sessions are over at once; or are not ready yet.
    stillborn: bool,
    slow: bool,
    /// True if reads of sessions fail; `is_forgetful`: the service answers that there is no such session.
    reads_fail: bool,
    is_forgetful: bool,
    /// True if the service terminates nothing.
    ends_fail: bool,
    /// The answer to a rotation, if it is not made.
    rotation: Option<(u16, &'static str)>,
    /// The answer to a renewal, if it is not made.
    renewal: Option<(u16, &'static str)>,
    /// Reads of sessions.
    reads: usize,
    /// True if the store fails.
    store_fails: bool,
    /// Calls that let go of slots, where these are answered late.
    late: Option<Vec<(StepId, StoreCall)>>,
    /// The name that another client has.
    taken: Option<Name>,
    /// True if this client has the pool's record; and if it can't let go of that.
    has_record: bool,
    is_record_stuck: bool,
    /// The sessions that were sold: how each is, and how often it had another exit.
    sessions: Vec<(&'static str, u32)>,
    /// The requests, without reads of sessions and products.
    log: Vec<String>,
    /// The words of the events of pools.
    events: Vec<&'static str>,
}

fn shop() -> OpenPool {
    OpenPool { name: "shop".into(), size: 1, session_type: SessionType::Dynamic, product_no: "p".into(), ..OpenPool::default() }
}

fn refused(code: &'static str) -> (u16, &'static str) {
    let body = format!(r#"{{"success":false,"error":{{"code":"{code}","message":"no"}}}}"#);
    (409, Box::leak(body.into_boxed_str()))
}

impl Host {
    fn new(cap: Option<i64>) -> Self {
        Host::seeded(cap, [7; 16])
    }

    /// A host whose pool of one is closed: its session waits in the store.
    fn left() -> Self {
        let mut host = Host::new(Some(100));
        let pool = host.open(1);
        let lease = host.lease(pool);
        host.client.give_back(&lease, host.now);
        host.close(pool);
        host.pass(1000);
        host
    }

    /// The program dies: another one has its store, and the service goes on.
    fn died(self) -> Self {
        let Host { disk, sessions, now, is_static, .. } = self;
        Host { disk, sessions, now, is_static, ..Host::new(Some(100)) }
    }

    /// A pool of one whose exit had callers' data, and was blocked then; what became of that a while later.
    fn blocked_with(data: &str, rotation: Option<(u16, &'static str)>) -> (Self, u32) {
        let mut host = Host { rotation, ..Host::new(Some(100)) };
        let pool = host.open(1);
        let lease = host.lease(pool);
        host.client.set_lease_data(&lease, data, host.now).expect("is kept");
        host.client.give_back(&lease, host.now);
        host.pass(1000);
        let (lease, granted) = host.granted_now(pool);
        assert_eq!(granted.data.text(), data);
        host.see(&lease, Seen::Status(403));
        host.client.give_back(&lease, host.now);
        host.pass(120_000);
        assert!(host.log.iter().any(|sent| sent.contains("/rotate")), "{:?}", host.log);
        (host, pool)
    }

    fn seeded(cap: Option<i64>, seed: [u8; 16]) -> Self {
        let options = ClientOptions {
            base_url: "https://api.example/v1".into(),
            api_key: Some(Secret::new("a-key")),
            store: true,
            daily_cap_usd: cap.map(|usd| usd.to_string().parse().expect("is a number")),
            ..ClientOptions::default()
        };
        let client = PoolClient::new(options, seed).expect("the options are sound");
        let (sessions, log, events) = (Vec::new(), Vec::new(), Vec::new());
        Host {
            client,
            disk: Memory::default(),
            number: 0,
            now: START,
            bought: 0,
            answer: None,
            is_static: false,
            stillborn: false,
            slow: false,
            reads_fail: false,
            is_forgetful: false,
            ends_fail: false,
            rotation: None,
            renewal: None,
            reads: 0,
            store_fails: false,
            late: None,
            taken: None,
            has_record: false,
            is_record_stuck: false,
            sessions,
            log,
            events,
        }
    }

    /// The service's answer to a request.
    fn served(&mut self, method: &str, url: &str, body: &[u8]) -> (u16, String) {
        let path = url.trim_start_matches("https://api.example/v1").split('?').next().unwrap_or_default();
        if path.starts_with("/products") {
            return (200, PRODUCTS.to_owned());
        }
        if method != "GET" {
            let reason = String::from_utf8_lossy(body).split(r#""reason":"#).nth(1).map(|rest| rest.trim_end_matches('}').to_owned());
            self.log.push(format!("{method} {path}{}", reason.map(|reason| format!(" {reason}")).unwrap_or_default()));
        }
        if (method, path) == ("POST", "/sessions") {
            self.bought += 1;
            if let Some((status, body)) = self.answer {
                return (status, body.to_owned());
            }
            let status = match () {
                () if self.stillborn => "terminated",
                () if self.slow => "creating",
                () => "active",
            };
            self.sessions.push((status, 0));
        }
        if method == "GET" {
            self.reads += 1;
            let missing = || (404, r#"{"success":false,"error":{"code":"SESSION_NOT_FOUND","message":"no"}}"#.to_owned());
            match () {
                () if self.reads_fail => return (404, String::new()),
                () if self.is_forgetful => return missing(),
                () => {}
            }
        }
        if method == "DELETE" && self.ends_fail {
            return (500, String::new());
        }
        if let Some((status, body)) = self.rotation.filter(|_| path.ends_with("/rotate")) {
            return (status, body.to_owned());
        }
        if let Some((status, body)) = self.renewal.filter(|_| path.ends_with("/renew")) {
            return (status, body.to_owned());
        }
        let number = path.trim_start_matches("/sessions/s-").split('/').next().and_then(|number| number.parse().ok());
        let number: usize = number.unwrap_or(self.sessions.len());
        let Some(session) = number.checked_sub(1).and_then(|at| self.sessions.get_mut(at)) else { return (404, String::new()) };
        match (method, path.rsplit('/').next()) {
            ("DELETE", _) => session.0 = "terminated",
            ("POST", Some("rotate")) => session.1 += 1,
            ("POST", Some("renew")) => session.0 = "active",
            _ => {}
        }
        let (status, exit) = *session;
        let kind = if String::from_utf8_lossy(body).contains("static") || self.is_static { "static" } else { "dynamic" };
        let proxy = format!(r#"{{"host":"h","port":{},"username":"u","password":"w"}}"#, 1 + exit);
        let data = format!(
            r#"{{"session_id":"s-{number}","session_type":"{kind}","status":"{status}","proxy":{proxy},"estimated_charge_usd":1}}"#
        );
        (if method == "POST" { 202 } else { 200 }, format!(r#"{{"success":true,"data":{data}}}"#))
    }

    /// The store's answer.
    fn stored(&mut self, mut call: StoreCall) -> StoreAnswer {
        let record = self.client.pool_name("shop");
        match &mut call {
            StoreCall::Claim { names, .. } => {
                names.retain(|name| Some(name) != self.taken.as_ref());
                self.has_record |= names.contains(&record);
                if names.is_empty() {
                    return StoreAnswer::Busy(None);
                }
            }
            StoreCall::Release { names: Some(names) } if self.is_record_stuck && names.contains(&record) => return StoreAnswer::Failed,
            StoreCall::Put { name, release: true, .. } if *name == record && self.is_record_stuck => return StoreAnswer::Failed,
            StoreCall::Put { name, release: true, .. } if *name == record => self.has_record = false,
            StoreCall::Release { names } if names.as_ref().is_none_or(|names| names.contains(&record)) => self.has_record = false,
            _ => {}
        }
        self.disk.call_of(self.number, call, self.now.unix, self.now.monotonic)
    }

    /// Goes on until so much time is over.
    fn pass(&mut self, ms: Millis) {
        let until = self.now.monotonic + ms;
        loop {
            let next = self.go_on().filter(|next| *next <= until).unwrap_or(until);
            if self.now.monotonic >= until {
                return;
            }
            self.wait_until(next);
        }
    }

    fn wait_until(&mut self, next: Millis) {
        let waited = next.max(self.now.monotonic + 1) - self.now.monotonic;
        self.now = Now { unix: self.now.unix + waited, monotonic: self.now.monotonic + waited };
    }

    /// Does what there is to do now. Returns when there is more.
    fn go_on(&mut self) -> Option<Millis> {
        let now = self.now;
        for _ in 0..100_000 {
            match self.client.poll(now) {
                Step::Store { id, call: call @ StoreCall::Put { release: true, .. }, .. } if self.late.is_some() => {
                    self.late.as_mut().expect("is late").push((id, call));
                }
                Step::Store { id, call, .. } => {
                    let answer = if self.store_fails { StoreAnswer::Failed } else { self.stored(call) };
                    self.client.resolve(id, Outcome::Store(answer), now).expect("is answered once");
                }
                Step::Send { id, request, .. } => {
                    let (status, body) = self.served(request.method.as_str(), &request.url, &request.body);
                    let headers = &[("date", "Tue, 14 Nov 2023 22:13:20 GMT")];
                    let outcome = Outcome::Response { status, headers, body: body.as_bytes(), truncated: false };
                    self.client.resolve(id, outcome, now).expect("is answered once");
                }
                Step::Notify(event) if event.operation == "open_pool" => self.events.push(event.what.name().as_str()),
                Step::Completed { .. } | Step::Notify(_) => {}
                Step::Wait { until: next } => return next,
            }
        }
        panic!("the client waits now and then: {:?}", self.log.iter().take(20).collect::<Vec<_>>());
    }

    /// Gives the late answers.
    fn catch_up(&mut self) {
        for (id, call) in self.late.take().into_iter().flatten() {
            let answer = self.stored(call);
            self.client.resolve(id, Outcome::Store(answer), self.now).expect("is answered once");
        }
    }

    fn open(&mut self, size: u32) -> u32 {
        self.try_open(OpenPool { size, ..shop() }).expect("can be opened")
    }

    fn try_open(&mut self, open: OpenPool) -> Result<u32, Error> {
        let ticket = self.client.open_pool(open);
        self.pass(1000);
        self.client.take(ticket).expect("has completed").map(|opened| opened.pool)
    }

    fn acquire(&mut self, pool: u32) -> CommandId {
        self.client.acquire(AcquireLease { pool, ..AcquireLease::default() }).command
    }

    /// Asks for a lease, and waits for so long.
    fn acquire_for(&mut self, pool: u32, timeout_ms: Millis) -> CommandId {
        self.client.acquire(AcquireLease { pool, timeout_ms: Some(timeout_ms), ..AcquireLease::default() }).command
    }

    /// Asks for a lease, and gets it.
    fn lease(&mut self, pool: u32) -> LeaseRef {
        let command = self.acquire(pool);
        self.pass(1000);
        self.lease_of(command).unwrap_or_else(|error| panic!("{error}"))
    }

    fn lease_of(&mut self, command: CommandId) -> Result<LeaseRef, Error> {
        let lease = self.client.lease_of(command);
        let result = self.client.take_answer(command).expect("has completed");
        result.map(|_| lease.expect("is a lease"))
    }

    /// The lease that a command was granted.
    fn granted(&mut self, command: CommandId) -> (LeaseRef, PoolLease) {
        let answered = self.client.result(command).expect("has completed").as_ref().unwrap_or_else(|error| panic!("{error}"));
        let granted = answered.raw.read().expect("is a lease");
        (self.lease_of(command).expect("is granted"), granted)
    }

    fn granted_now(&mut self, pool: u32) -> (LeaseRef, PoolLease) {
        let command = self.acquire(pool);
        self.pass(1000);
        self.granted(command)
    }

    fn see(&mut self, lease: &LeaseRef, seen: Seen) -> Option<&'static str> {
        self.client.observe_lease(lease, seen, None, self.now).map(LeaseAdvice::as_str)
    }

    fn status(&self, pool: u32) -> PoolStatus {
        self.client.status(pool).expect("is open")
    }

    fn run(&mut self, operation: &str, params: &str) -> Result<PoolStatus, Error> {
        let command = self.client.start_json(operation, params, CallOptions::default());
        self.pass(1000);
        self.client.take(Ticket::<WaitReady>::of(command)).expect("has completed")
    }

    fn close(&mut self, pool: u32) -> CommandId {
        self.client.close_pool(ClosePool { pool, grace_ms: None })
    }

    /// Drains a pool, with further members of the request as JSON.
    fn drain(&mut self, pool: u32, more: &str) -> CommandId {
        self.client.start_json("drain_pool", &format!(r#"{{"pool":{pool}{more}}}"#), CallOptions::default())
    }
}

/// Uses a pool for so long: each second a caller for each of these targets asks, and gives back the lease of the second before. A target
/// blocks an exit after so many answers. Returns the number of good answers for each, and the longest wait in ms.
fn scrape(host: &mut Host, pool: u32, targets: &[(&str, u32)], ms: Millis) -> Vec<(u32, Millis)> {
    let mut results = vec![(0, 0); targets.len()];
    let mut answers = std::collections::BTreeMap::new();
    let mut open: Vec<Option<(CommandId, Millis)>> = vec![None; targets.len()];
    let mut lent: Vec<Option<(LeaseRef, (i64, i64))>> = targets.iter().map(|_| None).collect();
    for _ in 0..ms / 250 {
        for (at, (target, most)) in targets.iter().enumerate() {
            if let Some((lease, exit)) = lent[at].take_if(|_| host.now.monotonic % 1000 == 0) {
                let seen: &mut u32 = answers.entry((at, exit)).or_default();
                *seen += 1;
                let is_good = *seen <= *most;
                results[at].0 += u32::from(is_good);
                host.see(&lease, Seen::Status(if is_good { 200 } else { 403 }));
                host.client.give_back(&lease, host.now);
            }
            if open[at].is_none() && lent[at].is_none() {
                let asked = AcquireLease { pool, target: Some((*target).into()), timeout_ms: Some(600_000), ..AcquireLease::default() };
                open[at] = Some((host.client.acquire(asked).command, host.now.monotonic));
            }
        }
        host.pass(250);
        for at in 0..targets.len() {
            let Some((command, since)) = open[at].take_if(|(command, _)| !host.client.is_pending(*command)) else { continue };
            let (lease, granted) = host.granted(command);
            results[at].1 = results[at].1.max(host.now.monotonic - since);
            lent[at] = Some((lease, (granted.slot.into(), granted.generation.into())));
        }
        open.iter().flatten().zip(&mut results).for_each(|((_, since), (_, most))| *most = (*most).max(host.now.monotonic - since));
    }
    results
}

/// As another client drains the pool everywhere, which has passed by what this one has.
fn drain_elsewhere(host: &mut Host) {
    let name = host.client.pool_name("shop");
    let claim = StoreCall::Claim { names: vec![name.clone()], most: 1 };
    let StoreAnswer::Claimed(claimed) = host.disk.call(claim, host.now.unix, host.now.monotonic) else { panic!("nobody has it") };
    let mut record = claimed.into_iter().find_map(|(_, data)| PoolRecord::read(&data?)).expect("it was opened");
    record.apply(&RecordChange::Drained { include_static: false }, &shop(), "");
    let put = StoreCall::Put { name, data: record.bytes(), new: false, keep_for: None, release: true };
    assert!(matches!(host.disk.call(put, host.now.unix, host.now.monotonic), StoreAnswer::Done));
}

fn change_elsewhere(host: &mut Host, change: &RecordChange) {
    let name = host.client.pool_name("shop");
    let claim = StoreCall::Claim { names: vec![name.clone()], most: 1 };
    let StoreAnswer::Claimed(claimed) = host.disk.call(claim, host.now.unix, host.now.monotonic) else { panic!("nobody has it") };
    let mut record = claimed.into_iter().find_map(|(_, data)| PoolRecord::read(&data?)).expect("it was opened");
    let request = record.request.clone();
    record.apply(change, &shop(), &request);
    let put = StoreCall::Put { name, data: record.bytes(), new: false, keep_for: None, release: true };
    assert!(matches!(host.disk.call(put, host.now.unix, host.now.monotonic), StoreAnswer::Done));
}

fn fixed_of(size: u32) -> OpenPool {
    OpenPool { session_type: SessionType::Static, renew_duration: Some(30), expected_charge_usd: "5".parse().ok(), size, ..shop() }
}

/// Lets each of these keys use the pool for so long, a second a lease. Returns the sessions of each, and how many leases it had.
fn use_keys(host: &mut Host, pool: u32, keys: u32, seconds: u32) -> Vec<(std::collections::BTreeSet<String>, u32)> {
    let mut used = vec![(std::collections::BTreeSet::new(), 0); keys as usize];
    let mut open: Vec<Option<CommandId>> = vec![None; keys as usize];
    for _ in 0..seconds {
        for (key, command) in open.iter_mut().enumerate() {
            let asked = || AcquireLease { pool, key: Some(format!("key-{key}")), ..AcquireLease::default() };
            command.get_or_insert_with(|| host.client.acquire(asked()).command);
        }
        host.pass(1000);
        for (used, command) in used.iter_mut().zip(&mut open) {
            let Some(command) = command.take_if(|command| !host.client.is_pending(*command)) else { continue };
            let (lease, granted) = host.granted(command);
            used.0.insert(granted.session_id);
            used.1 += 1;
            host.client.give_back(&lease, host.now);
        }
    }
    used
}

/// The error of a caller who is told at once that nothing comes.
fn told_at_once(host: &mut Host, pool: u32, target: &str, timeout_ms: Millis) -> Error {
    let acquire = AcquireLease { pool, target: Some(target.to_owned()), timeout_ms: Some(timeout_ms), ..AcquireLease::default() };
    let command = host.client.acquire(acquire).command;
    host.pass(2500);
    host.lease_of(command).expect_err("nothing comes in time")
}
