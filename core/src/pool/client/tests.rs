//! A client with a pool against a service of a few lines: what comes in and what goes out, step by step.

mod fleet;

use super::*;
use crate::client::{Outcome, Settlement};
use crate::contract::Secret;
use crate::contract::agent::SessionType;
use crate::contract::pools::{KnownPool, PoolOnChange, PoolReason, PoolReplace};
use crate::engine::RecordId;
use crate::pool::record::{PoolRecord, RecordChange};
use crate::state::{Memory, StoreAnswer, StoreCall};

const START: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };
const PRODUCTS: &str = r#"{"success":true,"data":{"items":[{"product_no":"p","type":"dynamic","price":1,"currency":"USD","unit":"GB"}]}}"#;

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
    /// True if this client has the pool's record.
    has_record: bool,
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
}

#[test]
fn a_pool_needs_a_cap_and_buys_nothing_before_somebody_asks() {
    let mut host = Host::new(None);
    for (open, field) in [
        (OpenPool { session_type: SessionType::Other(String::new()), ..shop() }, "session_type"),
        (OpenPool { size: 0, ..shop() }, "size"),
        (OpenPool { name: "a#1".into(), ..shop() }, "name"),
        (OpenPool { name: "a/b".into(), ..shop() }, "name"),
        (OpenPool { keep_ready: Some(2), ..shop() }, "keep_ready"),
        (shop(), "daily_cap_usd"),
    ] {
        let error = host.try_open(open).expect_err("is refused");
        assert_eq!(error.field.as_deref(), Some(field), "{error}");
    }
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    host.pass(3_600_000);
    assert_eq!(host.bought, 0);
    let command = host.acquire(pool);
    host.pass(1000);
    let lease = host.client.lease_of(command).expect("is granted");
    assert!(host.client.take_answer(command).expect("has completed").is_ok() && host.client.is_valid(&lease));
    assert_eq!((host.bought, host.client.status(pool).expect("is open").leased), (1, 1));
    // A session that nobody used for a minute is let go of; the next one who asks finds it.
    assert!(host.client.give_back(&lease, host.now) && !host.client.give_back(&lease, host.now));
    host.pass(120_000);
    assert_eq!(host.client.status(pool).map(|status| (status.ready, status.free_in_store, status.unknown)), Some((0, 1, 1)));
    let command = host.acquire(pool);
    host.pass(1000);
    assert_eq!((host.bought, host.client.lease_of(command).is_some()), (1, true));
}

#[test]
fn a_lease_whose_caller_is_gone_goes_back() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let (first, second) = (host.acquire(pool), host.acquire(pool));
    host.pass(1000);
    assert!(host.client.lease_of(first).is_some() && host.client.is_pending(second));
    assert!(host.client.abandon(first, host.now));
    host.pass(1000);
    assert!(host.client.lease_of(second).is_some());
    // A caller that gives up waiting gets none.
    let third = host.acquire(pool);
    host.pass(1);
    host.client.cancel(third, host.now);
    assert_eq!(host.client.take_answer(third).expect("has completed").expect_err("is cancelled").kind, Kind::Cancelled);
    assert_eq!((host.bought, host.client.status(pool).map(|status| status.waiting)), (1, Some(0)));
}

#[test]
fn a_doubt_that_somebody_settles_is_no_reason_to_buy() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some((503, ""));
    let command = host.acquire(pool);
    host.pass(400_000);
    let error = host.client.take_answer(command).expect("has completed").expect_err("nothing was free");
    assert_eq!((error.kind, host.client.status(pool).map(|status| status.in_doubt)), (Kind::Unavailable, Some(1)), "{error}");
    let ticket = host.client.saved(None);
    host.pass(1);
    let saved = host.client.take(ticket).expect("has completed").expect("is read").entries;
    let record: &RecordId = &saved.first().expect("is in doubt").record;
    let ticket = host.client.settle(record, Settlement::NotHappened { early: true });
    host.pass(1);
    assert_eq!(host.client.take(ticket).expect("has completed").map_err(|error| error.to_string()), Ok(true));
    let sent = host.bought;
    host.answer = None;
    host.pass(7_200_000);
    assert_eq!((host.bought, host.client.status(pool).map(|status| status.in_doubt)), (sent, Some(0)));
    let command = host.acquire(pool);
    host.pass(60_000);
    assert!(host.client.lease_of(command).is_some() && host.bought == sent + 1);
}

#[test]
fn a_closed_pool_gives_its_sessions_to_whoever_comes_next() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let command = host.acquire(pool);
    host.pass(1000);
    let lease = host.client.lease_of(command).expect("is granted");
    let waits = host.acquire(pool);
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.is_pending(closed) && !host.client.is_pending(waits) && host.client.is_valid(&lease));
    host.client.give_back(&lease, host.now);
    host.pass(1000);
    assert!(!host.client.is_pending(closed) && host.client.status(pool).is_none() && !host.client.follows("s-1"));
    let late = host.acquire(pool);
    host.pass(1);
    assert_eq!(host.client.take_answer(late).expect("has completed").expect_err("is refused").kind, Kind::Misuse);
    let again = host.open(1);
    let command = host.acquire(again);
    host.pass(1000);
    assert!(host.client.lease_of(command).is_some() && host.bought == 1);
}

#[test]
fn a_pool_has_a_cap_of_its_own_beside_that_of_its_client() {
    // A session costs 1 USD by its quote.
    for (of_client, of_pool, bought, whose) in [
        (Some(10), Some(2), 2, "the pool's daily cap"),
        (None, Some(1), 1, "the pool's daily cap"),
        (Some(1), Some(5), 1, "of the daily cap"),
    ] {
        let mut host = Host::new(of_client);
        let daily_cap_usd = of_pool.map(|usd: i64| usd.to_string().parse().expect("is a number"));
        let pool = host.try_open(OpenPool { size: 4, daily_cap_usd, ..shop() }).expect("can be opened");
        for lent in 0..4 {
            let command = host.acquire(pool);
            host.pass(120_000);
            assert_eq!(host.client.lease_of(command).is_some(), lent < bought, "{of_client:?} {of_pool:?} {lent}");
        }
        let hold = host.client.status(pool).and_then(|status| status.hold).expect("does not buy");
        assert_eq!((host.bought, hold.reason.as_str()), (bought, "cap"), "{whose}");
        // At the next UTC day it goes on.
        let midnight = 86_400_000 - START.unix % 86_400_000;
        let command = host.acquire_for(pool, 2 * 86_400_000);
        host.pass(midnight - host.now.monotonic - 1000);
        assert_eq!(host.bought, bought);
        host.pass(10_000);
        assert_eq!((host.bought, host.client.lease_of(command).is_some()), (bought + 1, true));
    }
}

#[test]
fn what_a_target_says_changes_exits_by_its_reason_and_costs_nothing() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { idle_release_ms: Some(60_000), ..shop() }).expect("can be opened");
    for (seen, reason) in [(Seen::Status(403), "http_403"), (Seen::Captcha, "captcha"), (Seen::Block, "block")] {
        let lease = host.lease(pool);
        host.pass(60_000);
        (0..3).for_each(|_| assert_eq!(host.see(&lease, Seen::Status(200)), Some("keep")));
        assert_eq!(host.see(&lease, seen), Some("give_back"));
        host.client.give_back(&lease, host.now);
        host.pass(20_000);
        assert_eq!(host.log.last(), Some(&format!("POST /sessions/s-1/rotate \"{reason}\"")));
        assert_eq!(host.see(&lease, Seen::Status(200)), None, "it was given back");
    }
    let generation = host.status(pool).slots.first().and_then(|slot| slot.generation);
    assert_eq!((host.bought, generation, host.sessions.len()), (1, Some(4), 1));
}

#[test]
fn a_session_that_fails_at_one_target_where_another_works_is_replaced_only_where_that_is_asked() {
    for (replace, targets, ended) in [
        (None, ["shop"; 3], false),
        (Some(PoolReplace::Failing), ["shop"; 3], true),
        (Some(PoolReplace::Failing), ["shop-0", "shop-1", "shop-2"], false),
    ] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { size: 2, replace, keep_ready: Some(2), ..shop() }).expect("can be opened");
        host.pass(60_000);
        for target in targets {
            let asked = || AcquireLease { pool, target: Some(target.into()), ..AcquireLease::default() };
            let commands = [0; 2].map(|_| host.client.acquire(asked()).command);
            host.pass(20_000);
            for command in commands {
                let (lease, granted) = host.granted(command);
                match granted.session_id.as_str() {
                    "s-1" => _ = host.see(&lease, Seen::Status(403)),
                    _ => (0..3).for_each(|_| _ = host.see(&lease, Seen::Status(200))),
                }
                host.client.give_back(&lease, host.now);
            }
            host.pass(20_000);
        }
        let was_ended = host.log.iter().any(|sent| sent == "DELETE /sessions/s-1");
        assert_eq!((was_ended, host.bought), (ended, if ended { 3 } else { 2 }), "{:?}", host.log);
    }
}

#[test]
fn a_session_is_ended_for_its_proxy_only_where_that_of_another_works() {
    for works in [false, true] {
        let mut host = Host::new(Some(100));
        let open = OpenPool { size: 2, replace: Some(PoolReplace::Failing), keep_ready: Some(2), ..shop() };
        let pool = host.try_open(open).expect("can be opened");
        let mut resting = 0;
        for _ in 0..1200 {
            let commands = [0; 2].map(|_| host.acquire_for(pool, 500));
            host.pass(1000);
            for command in commands {
                let (lease, granted) = match host.client.lease_of(command) {
                    Some(_) => host.granted(command),
                    None => continue,
                };
                host.see(&lease, Seen::Status(if works && granted.session_id != "s-1" { 200 } else { 407 }));
                host.client.give_back(&lease, host.now);
            }
            resting += host.status(pool).resting;
        }
        assert_eq!(host.bought, if works { 3 } else { 2 }, "{:?}", host.log);
        // Their rests get longer meanwhile.
        assert!(works || resting > 2000, "{resting}");
    }
}

#[test]
fn whoever_is_to_wait_is_told_for_how_long() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let at_shop = || AcquireLease { pool, target: Some("shop".into()), timeout_ms: Some(300_000), ..AcquireLease::default() };
    let mut advice = Vec::new();
    for _ in 0..4 {
        let command = host.client.acquire(at_shop()).command;
        host.pass(120_000);
        let (lease, _) = host.granted(command);
        advice.push(host.see(&lease, Seen::Status(403)));
        let retry_at = host.client.retry_at(&lease).expect("is known");
        assert!((0..=60_000).contains(&(retry_at - host.now.unix)), "{retry_at}");
        host.client.give_back(&lease, host.now);
        assert_eq!(host.client.retry_at(&lease), None);
    }
    assert_eq!(advice, [Some("give_back"), Some("give_back"), Some("wait"), Some("wait")]);
    assert_eq!(host.status(pool).blocked_everywhere, ["shop"]);
}

#[test]
fn ten_leases_that_see_one_block_or_one_timeout_are_one_observation() {
    for (seen, is_static, rest, rotated) in [
        (Seen::Status(403), true, 60_000, 0),
        (Seen::Status(403), false, 0, 1),
        (Seen::Status(429), false, 30_000, 0),
        (Seen::Timeout, false, 0, 0),
        (Seen::Status(407), false, 0, 0),
    ] {
        let mut host = Host::new(Some(100));
        host.is_static = is_static;
        let session_type = if is_static { SessionType::Static } else { SessionType::Dynamic };
        let pool = host.try_open(OpenPool { session_type, leases_per_session: Some(10), ..shop() }).expect("can be opened");
        let leases = [0; 10].map(|_| host.lease(pool));
        host.pass(60_000);
        leases.iter().for_each(|lease| _ = host.see(lease, seen));
        leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
        let since = host.now.monotonic;
        let command = host.acquire_for(pool, 3_600_000);
        while host.client.is_pending(command) {
            host.pass(100);
        }
        let waited = host.now.monotonic - since;
        assert!((rest..rest + 5000).contains(&waited), "{seen:?}: {waited}");
        assert_eq!(host.sessions[0].1, rotated, "{seen:?}");
    }
}

#[test]
fn where_a_session_is_over_another_is_bought_or_its_slot_stays_empty() {
    for (replace, bought) in [(None, 2), (Some(PoolReplace::Never), 1)] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { replace, ..shop() }).expect("can be opened");
        let lease = host.lease(pool);
        host.pass(60_000);
        host.sessions[0].0 = "terminated";
        assert_eq!(host.see(&lease, Seen::Status(407)), Some("give_back"));
        host.pass(1000);
        assert!(!host.client.is_valid(&lease), "its session is over");
        let command = host.acquire(pool);
        host.pass(31_000);
        assert_eq!((host.lease_of(command).is_ok(), host.bought), (bought > 1, bought));
        let status = host.status(pool);
        assert_eq!((status.empty, status.leased), if bought > 1 { (0, 1) } else { (1, 0) });
    }
}

#[test]
fn a_slot_that_stays_empty_is_looked_at_each_minute_as_its_session_may_be_renewed_by_hand() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed).expect("can be opened");
    let lease = host.lease(pool);
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.client.give_back(&lease, host.now);
    let command = host.acquire(pool);
    host.pass(3000);
    let error = host.lease_of(command).expect_err("nothing comes by itself");
    assert_eq!((error.reason, host.status(pool).empty), (Some(PoolReason::Over), 1), "{error}");
    assert!(error.what.contains("1 session: 1 empty, and `replace` is `never`"), "{error}");
    host.sessions[0].0 = "active";
    host.pass(60_000);
    let command = host.acquire(pool);
    host.pass(3000);
    assert_eq!((host.lease_of(command).is_ok(), host.bought), (true, 1));
}

#[test]
fn the_third_failure_in_a_row_that_may_be_anybodys_reads_the_session() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(shop()).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(60_000);
    host.sessions[0].0 = "terminated";
    let advice = [Seen::Unknown; 3].map(|seen| host.see(&lease, seen));
    assert_eq!(advice, [Some("keep"), Some("keep"), Some("give_back")]);
    host.pass(1000);
    assert!(!host.client.is_valid(&lease), "its session is over");
}

#[test]
fn an_expired_static_session_is_renewed_and_keeps_its_address() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, renew_duration: Some(30), expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed.clone()).expect("can be opened");
    let lease = host.lease(pool);
    host.sessions[0].0 = "expired";
    assert_eq!(host.see(&lease, Seen::Status(407)), Some("give_back"));
    host.pass(5000);
    host.client.give_back(&lease, host.now);
    let lease = host.lease(pool);
    assert_eq!((host.bought, host.log.last().map(String::as_str)), (1, Some("POST /sessions/s-1/renew")));
    // So is one that expired while nobody had it.
    host.client.give_back(&lease, host.now);
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    host.sessions[0].0 = "expired";
    let pool = host.try_open(fixed).expect("can be opened");
    let command = host.acquire(pool);
    host.pass(10_000);
    assert!(host.lease_of(command).is_ok());
    assert_eq!((host.bought, host.log.iter().filter(|sent| sent.ends_with("/renew")).count()), (1, 2), "{:?}", host.log);
}

#[test]
fn an_exit_is_changed_at_its_age_but_never_under_a_lease() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { rotate_after_ms: Some(300_000), keep_ready: Some(1), ..shop() }).expect("can be opened");
    // Within a tenth of that.
    host.pass(268_000);
    assert_eq!(host.log.len(), 1);
    host.pass(64_000);
    assert_eq!(host.log.last().map(String::as_str), Some("POST /sessions/s-1/rotate \"scheduled\""));
    let lease = host.lease(pool);
    host.pass(900_000);
    assert_eq!(host.log.len(), 2, "{:?}", host.log);
    host.client.give_back(&lease, host.now);
    host.pass(1000);
    assert_eq!((host.log.len(), host.sessions[0].1), (3, 2));
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

#[test]
fn a_target_that_blocks_exits_withholds_no_session_from_others() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 2, keep_ready: Some(1), ..shop() }).expect("can be opened");
    let results = scrape(&mut host, pool, &[("a", 3), ("b", u32::MAX)], 1_200_000);
    // Nearly each second; the other target has three answers of each exit, and a change takes 5 s.
    assert!(results[1].0 > 1100 && results[1].1 <= 1500, "{results:?}");
    assert!(results[0].0 > 350, "{results:?}");
    assert_eq!(host.bought, 2);
}

#[test]
fn an_exit_for_each_lease_is_what_the_service_can_give_and_no_limit_of_leases() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 5, rotate_after_uses: Some(1), ..shop() }).expect("can be opened");
    let results = scrape(&mut host, pool, &[("a", u32::MAX), ("b", u32::MAX), ("c", u32::MAX)], 1_200_000);
    assert!(results.iter().all(|(good, wait)| *good > 1100 && *wait <= 1500), "{results:?}");
    let rotated: u32 = host.sessions.iter().map(|session| session.1).sum();
    assert!(rotated > 500, "{rotated}");
}

#[test]
fn exits_that_get_old_together_are_changed_in_turn_and_their_sessions_stay_lent() {
    let mut host = Host::new(Some(100));
    let open = OpenPool { size: 20, keep_ready: Some(20), rotate_after_ms: Some(60_000), ..shop() };
    let pool = host.try_open(open).expect("can be opened");
    host.pass(20_000);
    let mut least = 20;
    for _ in 0..600 {
        host.pass(1000);
        least = least.min(host.status(pool).ready);
    }
    assert!(least >= 16, "{least}");
    assert!(host.sessions.iter().all(|session| (9..=12).contains(&session.1)), "{:?}", host.sessions);
}

#[test]
fn a_session_whose_reads_fail_is_lent_as_it_was_read_for_ten_minutes() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.reads_fail = true;
    host.see(&lease, Seen::Status(407));
    host.client.give_back(&lease, host.now);
    for _ in 0..9 {
        let lease = host.lease(pool);
        host.pass(58_000);
        host.client.give_back(&lease, host.now);
    }
    assert!(host.reads >= 9, "{}", host.reads);
    host.pass(120_000);
    let command = host.acquire_for(pool, 10_000);
    host.pass(11_000);
    assert_eq!(host.lease_of(command).expect_err("was not read for long").kind, Kind::Unavailable);
    // A session that is known to be over is not lent.
    host.reads_fail = false;
    host.pass(60_000);
    let lease = host.lease(pool);
    host.is_forgetful = true;
    host.see(&lease, Seen::Status(407));
    host.pass(10_000);
    assert!(!host.client.is_valid(&lease));
}

#[test]
fn a_lease_that_does_not_come_back_is_told_of_and_taken_back_where_that_is_asked() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { max_lease_ms: Some(1_200_000), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    let waits = host.acquire_for(pool, 6_000_000);
    host.pass(598_000);
    assert!(host.events.is_empty());
    host.pass(2000);
    assert_eq!(host.events, ["lease_leaked"]);
    assert!(host.client.is_valid(&lease));
    host.pass(600_000);
    assert!(!host.client.is_valid(&lease) && host.lease_of(waits).is_ok());
    assert!(!host.client.give_back(&lease, host.now), "it was taken back");
    assert_eq!(host.bought, 1);
}

#[test]
fn a_hold_is_kept_for_all_and_one_purchase_is_tried_when_its_time_has_come() {
    let mut host = Host::new(Some(100));
    let pool = host.open(4);
    host.answer = Some(refused("PRODUCT_OUT_OF_STOCK"));
    let soon = AcquireLease { pool, timeout_ms: Some(20_000), ..AcquireLease::default() };
    let commands = [0; 3].map(|_| host.client.acquire(soon.clone()).command);
    host.pass(1000);
    assert_eq!((host.bought, host.events.as_slice()), (1, ["pool_held"].as_slice()));
    let error = host.lease_of(commands[0]).expect_err("no session is there");
    assert_eq!((error.kind, error.retry_at.is_some()), (Kind::Unavailable, true), "{error}");
    // Another client of the pool, such as this one after it was closed, finds the hold.
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.open(4);
    assert_eq!(host.status(pool).hold.map(|hold| hold.reason.as_str()), Some("out_of_stock"));
    let waits = host.acquire_for(pool, 3_600_000);
    host.pass(20_000);
    assert_eq!(host.bought, 1);
    host.pass(20_000);
    assert_eq!(host.bought, 2, "the trial");
    host.answer = None;
    host.pass(61_000);
    assert!(host.lease_of(waits).is_ok());
    assert_eq!((host.bought, host.status(pool).hold), (3, None));
    assert_eq!(host.events.last(), Some(&"pool_freed"));
}

#[test]
fn what_the_request_itself_is_refused_for_is_not_tried_before_the_next_opening() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some(refused("PRODUCT_NOT_FOUND"));
    let command = host.acquire(pool);
    host.pass(7_200_000);
    assert!(host.lease_of(command).is_err());
    let command = host.acquire(pool);
    host.pass(7_200_000);
    assert_eq!((host.lease_of(command).expect_err("does not buy").kind, host.bought), (Kind::Unavailable, 1));
    host.answer = None;
    assert!(host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).is_ok_and(|status| status.hold.is_none()));
    host.lease(pool);
    assert_eq!(host.bought, 2);
}

#[test]
fn a_pause_lasts_until_somebody_resumes_it_over_openings_too() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.run("pause_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is paused");
    let command = host.acquire(pool);
    host.pass(31_000);
    let error = host.lease_of(command).expect_err("nothing is bought");
    assert!(error.to_string().contains("since it is paused"), "{error}");
    host.client.give_back(&lease, host.now);
    let lease = host.lease(pool);
    assert!(host.client.is_valid(&lease), "what there is is lent");
    let closed = host.close(pool);
    host.pass(11_000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.open(2);
    let hold = host.status(pool).hold.expect("is paused still");
    assert_eq!((hold.reason.as_str(), hold.needs.as_str(), host.bought), ("paused", "caller", 1));
}

#[test]
fn a_pool_with_another_request_is_refused_or_takes_its_place() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let other = OpenPool { country_code: Some("DE".into()), size: 2, ..shop() };
    let error = host.try_open(other.clone()).expect_err("is another pool");
    assert_eq!((error.kind, error.field.as_deref()), (Kind::Invalid, Some("name")));
    assert!(error.to_string().contains("another `country_code`"), "{error}");
    let more = OpenPool { quantity: "2".parse().ok(), size: 3, ..shop() };
    let pool = host.try_open(more).expect("how much is bought is each client's own");
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.try_open(OpenPool { on_change: Some(PoolOnChange::Replace), ..other }).expect("takes its place");
    let command = host.acquire(pool);
    host.pass(10_000);
    let lease = host.lease_of(command).expect("is bought");
    assert!(host.client.is_valid(&lease));
    assert_eq!((host.bought, host.sessions.first().map(|session| session.0)), (2, Some("terminated")), "{:?}", host.log);
}

#[test]
fn draining_ends_what_this_client_has_and_everywhere_what_nobody_has() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let leases = [0; 3].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    // Two of them are nobody's by now.
    let closed = host.close(pool);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok());
    let pool = host.open(3);
    host.lease(pool);
    let drained = host.run("drain_pool", &format!(r#"{{"pool":{pool},"grace_ms":0}}"#)).expect("is drained");
    assert_eq!((drained.ready + drained.leased, host.log.iter().filter(|sent| sent.starts_with("DELETE")).count()), (0, 1));
    let pool = host.open(3);
    let command = host.client.start_json("drain_pool", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    host.pass(10_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
    assert!(host.client.status(pool).is_none());
    // The pool can be opened again, and resumed.
    let pool = host.open(3);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.lease(pool);
    assert_eq!(host.bought, 4);
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

#[test]
fn what_a_client_lets_go_of_before_it_hears_that_the_pool_is_drained_is_ended_too() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 3, idle_release_ms: Some(5000), ..shop() }).expect("can be opened");
    let leases = [0; 3].map(|_| host.lease(pool));
    drain_elsewhere(&mut host);
    leases[..2].iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.pass(6000);
    let status = host.status(pool);
    assert_eq!((status.leased, status.ready, status.empty), (1, 0, 2));
    host.pass(70_000);
    assert!(host.client.status(pool).is_none(), "it has heard of it");
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn a_client_that_closes_a_pool_hears_whether_it_is_drained_meanwhile() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    let _ = host.client.give_back(&leases[0], host.now);
    let closed = host.close(pool);
    host.pass(1000);
    drain_elsewhere(&mut host);
    let _ = host.client.give_back(&leases[1], host.now);
    host.pass(1000);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok() && host.client.status(pool).is_none());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn what_could_not_be_asked_for_is_asked_for_again_to_end_it() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.close(pool);
    host.pass(1000);
    let pool = host.open(2);
    host.store_fails = true;
    let drain = format!(r#"{{"pool":{pool},"everywhere":true,"grace_ms":60000}}"#);
    let command = host.client.start_json("drain_pool", &drain, CallOptions::default());
    host.pass(20_000);
    assert!(host.client.is_pending(command));
    host.store_fails = false;
    host.pass(20_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn whoever_waits_for_ready_sessions_is_told_when_they_are_and_why_they_are_not() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 3, keep_ready: Some(3), ..shop() }).expect("can be opened");
    let error = host.run("wait_ready", &format!(r#"{{"pool":{pool},"count":4}}"#)).expect_err("are never ready");
    assert_eq!((error.kind, error.field.as_deref()), (Kind::Invalid, Some("count")));
    let ready = host.run("wait_ready", &format!(r#"{{"pool":{pool},"count":3}}"#)).expect("are ready");
    assert_eq!((ready.ready, host.bought, ready.spent_today_usd.to_string()), (3, 3, "3".to_owned()));
    host.answer = Some(refused("INSUFFICIENT_BALANCE"));
    let lease = host.lease(pool);
    host.sessions.iter_mut().for_each(|session| session.0 = "terminated");
    host.see(&lease, Seen::Status(407));
    host.pass(60_000);
    let waits = host.client.start_json("wait_ready", &format!(r#"{{"pool":{pool},"count":3,"timeout_ms":5000}}"#), CallOptions::default());
    host.pass(6000);
    let error = host.client.take_answer(waits).expect("has completed").expect_err("are not ready");
    assert_eq!(error.kind, Kind::Unavailable);
    assert!(error.to_string().contains("only 2 of 3 sessions") && error.to_string().contains("the balance is too low"), "{error}");
}

#[test]
fn a_store_says_what_other_clients_have_where_that_is_asked() {
    let mut host = Host::new(Some(100));
    let pool = host.open(4);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    host.pass(120_000);
    let status = host.status(pool);
    assert_eq!((status.size, status.free_in_store, status.unknown, status.empty), (4, 1, 3, 0));
    let everywhere = host.run("pool_status", &format!(r#"{{"pool":{pool},"everywhere":true}}"#)).expect("is read");
    assert_eq!((everywhere.free_in_store, everywhere.unknown, everywhere.empty), (1, 0, 3));
}

#[test]
fn a_call_of_a_pool_takes_no_options_of_a_request_and_says_what_is_wrong_with_its_own() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let refused = |host: &mut Host, operation: &str, params: &str, options: &str| {
        let command = host.client.start_text(operation, params, options);
        host.pass(1);
        let error = host.client.take_answer(command).expect("has completed").expect_err("is refused");
        (error.kind, error.operation, error.field.clone().unwrap_or_default())
    };
    let acquire = format!(r#"{{"pool":{pool}}}"#);
    assert_eq!(refused(&mut host, "acquire", &acquire, r#"{"attempts":1}"#), (Kind::Invalid, "acquire", "options".to_owned()));
    assert_eq!(refused(&mut host, "acquire", "{}", "{}"), (Kind::Invalid, "acquire", "pool".to_owned()));
    assert_eq!(refused(&mut host, "acquire", r#"{"pool":9}"#, "{}"), (Kind::Misuse, "acquire", String::new()));
    assert_eq!(refused(&mut host, "acquire", r#"{"pool":1,"timeout":1}"#, "{}"), (Kind::Invalid, "acquire", "timeout".to_owned()));
    assert_eq!(refused(&mut host, "open_pool", r#"{"name":"x"}"#, "{}").0, Kind::Invalid);
    assert!(host.client.observe_lease_text(&LeaseRef { pool, lease: 0 }, "\"nonsense\"", None, host.now).is_err());
    assert_eq!(host.client.observe_lease_text(&LeaseRef { pool, lease: 7 }, "\"block\"", None, host.now), Ok(None));
}

#[test]
fn sessions_that_are_over_when_they_are_sold_are_not_bought_one_after_the_other() {
    for held in [false, true] {
        let mut host = Host::new(Some(100));
        let pool = host.open(2);
        let waits =
            |host: &mut Host| _ = host.client.acquire(AcquireLease { pool, timeout_ms: Some(3_600_000), ..AcquireLease::default() });
        if held {
            host.answer = Some(refused("PRODUCT_OUT_OF_STOCK"));
            waits(&mut host);
            host.pass(1000);
            host.answer = None;
        }
        host.stillborn = true;
        waits(&mut host);
        host.pass(600_000);
        assert!(host.bought <= 8, "held: {held}, {} purchases in 10 minutes", host.bought);
    }
}

#[test]
fn an_exit_used_up_while_its_session_is_read_is_changed_once_the_lease_is_back() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { rotate_after_uses: Some(1), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(60_000);
    host.see(&lease, Seen::Status(407));
    // The read is under way.
    host.client.give_back(&lease, host.now);
    host.pass(60_000);
    host.lease(pool);
    assert_eq!((host.bought, host.sessions[0].1), (1, 1), "{:?}", host.log);
}

#[test]
fn an_exit_is_not_changed_under_a_lease_where_its_session_could_not_be_read() {
    for replace in [None, Some(PoolReplace::Failing)] {
        let mut host = Host::new(Some(100));
        let pool = host.try_open(OpenPool { replace, ..shop() }).expect("can be opened");
        let lease = host.lease(pool);
        host.pass(60_000);
        (0..3).for_each(|_| _ = host.see(&lease, Seen::Block));
        host.reads_fail = true;
        host.see(&lease, Seen::Status(407));
        host.pass(600_000);
        assert!(host.client.is_valid(&lease) && host.log.len() == 1, "{:?}", host.log);
        host.client.give_back(&lease, host.now);
        host.reads_fail = false;
        host.pass(120_000);
        assert_eq!(host.log.len(), 2, "{:?}", host.log);
    }
}

#[test]
fn a_pool_that_could_not_be_opened_can_be_opened_again_at_once() {
    let mut host = Host::new(Some(100));
    host.store_fails = true;
    for _ in 0..3 {
        let error = host.try_open(OpenPool { size: 1, ..shop() }).expect_err("the store fails");
        assert_eq!(error.kind, Kind::Store, "{error}");
    }
    host.store_fails = false;
    let pool = host.open(1);
    host.lease(pool);
}

#[test]
fn nothing_is_sent_for_a_doubt_while_the_pool_is_paused() {
    for retry_paid in [None, Some(true)] {
        for answer in [(503, ""), refused("BACKEND_ERROR")] {
            let mut host = Host::new(Some(100));
            let pool = host.try_open(OpenPool { retry_paid, ..shop() }).expect("can be opened");
            host.answer = Some(answer);
            host.acquire(pool);
            host.pass(400_000);
            host.run("pause_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is paused");
            let sent = host.bought;
            host.answer = None;
            host.pass(7_200_000);
            assert_eq!(host.bought, sent, "retry_paid {retry_paid:?}, {answer:?}");
        }
    }
}

#[test]
fn nothing_is_renewed_while_the_pool_is_paused() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, renew_duration: Some(30), expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed).expect("can be opened");
    let lease = host.lease(pool);
    host.run("pause_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is paused");
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.pass(600_000);
    assert_eq!(host.log.len(), 1, "{:?}", host.log);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.pass(70_000);
    assert_eq!(host.log.last().map(String::as_str), Some("POST /sessions/s-1/renew"));
}

#[test]
fn debug_output_of_a_pool_has_no_password() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.lease(pool);
    let text = format!("{:?}", host.client);
    assert!(!text.contains(r#""w""#) && !text.contains(r#"\"w\""#), "{text}");
}

#[test]
fn during_a_hold_a_doubt_is_looked_at_by_the_trial_alone() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 4, ..shop() }).expect("can be opened");
    host.answer = Some((503, ""));
    let command = host.acquire_for(pool, 1000);
    host.pass(100_000);
    assert!(host.lease_of(command).is_err());
    // Refusals that a person has to end: no trial is due any more, whatever is in doubt.
    host.answer = Some(refused("PRODUCT_NOT_FOUND"));
    host.pass(1_200_000);
    let sent = host.bought;
    assert_eq!(host.status(pool).hold.map(|hold| hold.reason.as_str()), Some("request"));
    host.pass(3_600_000);
    assert_eq!(host.bought, sent, "{:?}", host.status(pool));
}

#[test]
fn a_pool_that_is_being_closed_keeps_nobody_from_opening_it_again() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.close(pool);
    host.pass(1);
    assert!(host.client.is_valid(&lease), "it is waited for");
    let again = host.open(2);
    let other = host.lease(again);
    assert_eq!((host.bought, host.client.is_valid(&lease), host.client.is_valid(&other)), (2, true, true));
    host.client.give_back(&lease, host.now);
    host.pass(1000);
    assert!(host.client.status(pool).is_none() && host.client.is_valid(&other));
}

#[test]
fn a_pause_is_told_of_as_other_holds_are() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let of_pool = format!(r#"{{"pool":{pool}}}"#);
    host.run("pause_pool", &of_pool).expect("is paused");
    host.run("pause_pool", &of_pool).expect("is paused still");
    host.run("resume_pool", &of_pool).expect("is resumed");
    assert_eq!(host.events, ["pool_held", "pool_freed"]);
}

#[test]
fn a_status_says_of_each_slot_which_purchase_it_is_and_why_it_is_not_lent() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { idle_release_ms: Some(3_600_000), ..shop() }).expect("can be opened");
    let slot = |host: &Host| host.status(pool).slots.first().map(|slot| (slot.purchase, slot.reason.map(|reason| reason.as_str())));
    let lease = host.lease(pool);
    assert_eq!(slot(&host), Some((Some(1), None)));
    host.sessions[0].0 = "terminated";
    host.see(&lease, Seen::Status(407));
    host.pass(60_000);
    let lease = host.lease(pool);
    assert_eq!(slot(&host), Some((Some(2), None)));
    host.see(&lease, Seen::Block);
    host.reads_fail = true;
    // As long as the last good read may be, a read that fails changes nothing.
    host.see(&lease, Seen::Status(407));
    host.pass(1000);
    assert_eq!(slot(&host), Some((Some(2), None)));
    host.pass(600_000);
    host.see(&lease, Seen::Status(407));
    host.pass(1000);
    assert_eq!(slot(&host), Some((Some(2), Some("not_ready"))));
    host.client.give_back(&lease, host.now);
    host.reads_fail = false;
    host.pass(120_000);
    assert_eq!((slot(&host), host.events.as_slice()), (Some((Some(2), None)), ["lease_leaked", "pool_rotated"].as_slice()));
}

#[test]
fn a_trial_that_finds_no_slot_lets_others_change_the_record_meanwhile() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some(refused("PRODUCT_OUT_OF_STOCK"));
    let first = host.acquire_for(pool, 20_000);
    host.pass(1000);
    assert!(host.lease_of(first).is_err());
    host.answer = None;
    // Another client has the only slot.
    host.taken = Some(host.client.slot_name("shop/0"));
    let waits = host.acquire_for(pool, 3_600_000);
    let (mut free, mut owned) = (0, 0);
    for _ in 0..600 {
        host.pass(100);
        match host.has_record {
            true => owned += 1,
            false => free += 1,
        }
    }
    assert!(host.client.is_pending(waits) && free > 10 * owned, "{free} {owned}");
}

#[test]
fn a_pool_of_other_programs_can_be_listed_joined_paused_and_drained() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { country_code: Some("DE".into()), size: 3, ..shop() }).expect("can be opened");
    let leases = [0; 2].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.close(pool);
    host.pass(1000);
    let held = |pool: &KnownPool| pool.hold.as_ref().map(|hold| hold.reason.as_str());
    let list = |host: &mut Host| {
        let ticket = host.client.list_pools();
        host.pass(1);
        host.client.take(ticket).expect("has completed").expect("is read").pools
    };
    let join = |host: &mut Host, name: &str| {
        let ticket = host.client.join_pool(JoinPool { name: name.to_owned() });
        host.pass(1000);
        host.client.take(ticket).expect("has completed").map(|opened| opened.pool)
    };
    let known = list(&mut host);
    let first = known.first().expect("there is one");
    assert_eq!(
        (known.len(), first.name.as_str(), first.size, first.free_in_store, first.in_doubt, held(first)),
        (1, "shop", 3, 2, 0, None)
    );
    let error = join(&mut host, "nosuch").expect_err("there is none");
    assert_eq!((error.kind, error.operation, error.field.as_deref()), (Kind::Invalid, "join_pool", Some("name")), "{error}");
    let joined = join(&mut host, "shop").expect("is joined");
    let command = host.acquire(joined);
    host.pass(1);
    assert_eq!(host.lease_of(command).expect_err("lends nothing").kind, Kind::Misuse);
    host.run("pause_pool", &format!(r#"{{"pool":{joined}}}"#)).expect("is paused");
    assert!(list(&mut host).first().is_some_and(|pool| held(pool) == Some("paused")));
    let everywhere = host.run("pool_status", &format!(r#"{{"pool":{joined},"everywhere":true}}"#)).expect("is read");
    assert_eq!((everywhere.free_in_store, everywhere.with_others, everywhere.empty), (2, 0, 1));
    host.run("resume_pool", &format!(r#"{{"pool":{joined}}}"#)).expect("is resumed");
    let command = host.client.start_json("drain_pool", &format!(r#"{{"pool":{joined},"everywhere":true}}"#), CallOptions::default());
    host.pass(20_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
    assert_eq!(
        (host.bought, list(&mut host).first().map(|pool| (pool.mine + pool.with_others + pool.free_in_store, held(pool)))),
        (2, Some((0, Some("draining"))))
    );
    // A client that opens it finds it as it was, and paused: a supervisor that starts a program again buys nothing.
    let pool = host.try_open(OpenPool { country_code: Some("DE".into()), size: 3, ..shop() }).expect("is the same pool");
    let command = host.acquire(pool);
    host.pass(3000);
    assert_eq!((host.lease_of(command).expect_err("is paused").reason, host.bought), (Some(PoolReason::Paused), 2));
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.lease(pool);
    assert_eq!(host.bought, 3);
}

#[test]
fn the_cap_of_a_pool_is_forgotten_with_it() {
    let mut host = Host::new(Some(100));
    for round in 0..20 {
        let name = format!("shop-{round}");
        let pool = host.try_open(OpenPool { name, daily_cap_usd: "5".parse().ok(), ..shop() }).expect("can be opened");
        host.lease(pool);
        host.client.close_pool(ClosePool { pool, grace_ms: Some(0) });
        host.pass(120_000);
    }
    assert_eq!(host.client.pool_caps(), 0);
}

#[test]
fn a_session_that_rests_for_whoever_waits_is_no_reason_to_buy() {
    // A second lease under a key waits for the session of the first.
    let mut host = Host::new(Some(100));
    let pool = host.open(5);
    let keyed = || AcquireLease { pool, key: Some("account".into()), ..AcquireLease::default() };
    let first = host.client.acquire(keyed()).command;
    host.pass(1000);
    let lease = host.lease_of(first).expect("is bought");
    let second = host.client.acquire(keyed()).command;
    host.pass(20_000);
    assert_eq!((host.bought, host.client.is_pending(second)), (1, true));
    host.client.give_back(&lease, host.now);
    host.pass(1);
    host.lease_of(second).expect("is the same session");
    // A target that asks to wait; and one that blocks a static session.
    for (is_static, seen) in [(false, Seen::Status(429)), (true, Seen::Status(403))] {
        let mut host = Host::new(Some(100));
        host.is_static = is_static;
        let session_type = if is_static { SessionType::Static } else { SessionType::Dynamic };
        let pool = host.try_open(OpenPool { size: 5, session_type, keep_ready: Some(1), ..shop() }).expect("can be opened");
        let at_shop = || AcquireLease { pool, target: Some("shop".into()), timeout_ms: Some(300_000), ..AcquireLease::default() };
        let first = host.client.acquire(at_shop()).command;
        host.pass(1000);
        let lease = host.lease_of(first).expect("is bought");
        let before = host.bought;
        host.see(&lease, seen);
        host.client.give_back(&lease, host.now);
        let again = host.client.acquire(at_shop()).command;
        host.pass(120_000);
        assert_eq!((host.lease_of(again).is_ok(), host.bought), (true, before), "{seen:?}");
    }
}

#[test]
fn a_client_with_an_older_request_touches_nothing_of_the_pool_any_more() {
    let mut host = Host::new(Some(100));
    let old = host.open(2);
    let lease = host.lease(old);
    host.client.give_back(&lease, host.now);
    // Another program opens it with another request, and lets go of a session.
    let record = host.client.pool_name("shop");
    let StoreAnswer::Claimed(kept) = host.disk.call(StoreCall::Claim { names: vec![record.clone()], most: 1 }, 0, 0) else {
        panic!("is free")
    };
    let text = String::from_utf8(kept[0].1.clone().expect("is there")).expect("is text").replace("\\\"p\\\"", "\\\"q\\\"");
    let put = StoreCall::Put { name: record, data: text.into_bytes(), new: false, keep_for: None, release: true };
    assert_eq!(host.disk.call(put, 0, 0), StoreAnswer::Done);
    host.pass(180_000);
    let command = host.acquire(old);
    host.pass(31_000);
    let error = host.lease_of(command).expect_err("is not this client's any more");
    assert!(error.to_string().contains("another client has opened it with another request"), "{error}");
    assert_eq!((host.bought, host.log.len(), host.events.last()), (1, 1, Some(&"pool_held")), "{:?}", host.log);
}

#[test]
fn a_pool_record_of_another_version_is_left_as_it_is() {
    let mut host = Host::new(Some(100));
    let record = host.client.pool_name("shop");
    let data = br#"{"hopline":9,"new":true}"#.to_vec();
    let put = StoreCall::Put { name: record.clone(), data: data.clone(), new: true, keep_for: None, release: true };
    assert_eq!(host.disk.call(put, 0, 0), StoreAnswer::Done);
    let command = host.client.open_pool(OpenPool { size: 2, ..shop() }).command;
    host.pass(10_000);
    let error = host.client.take_answer(command).expect("has completed").expect_err("can't be read");
    assert!(error.kind == Kind::Store && error.to_string().contains("another version"), "{error}");
    let StoreAnswer::Claimed(kept) = host.disk.call(StoreCall::Claim { names: vec![record], most: 1 }, 0, 0) else { panic!("is free") };
    assert_eq!(kept[0].1.as_ref(), Some(&data));
}

#[test]
fn whoever_asks_a_pool_that_is_closing_is_told_so_and_whoever_closes_it_again_waits_too() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 3, keep_ready: Some(1), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    let closed = host.close(pool);
    host.pass(1);
    let waits = host.client.start_json("wait_ready", &format!(r#"{{"pool":{pool},"timeout_ms":1}}"#), CallOptions::default());
    host.pass(100);
    assert_eq!(host.client.take_answer(waits).expect("has completed").expect_err("is closed").kind, Kind::Misuse);
    // Closed a second time, and drained everywhere: what either says holds, and both wait for the lease.
    let drained = host.client.start_json("drain_pool", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    let status = host.client.start_json("pool_status", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    host.pass(100);
    assert!(host.client.is_pending(closed) && host.client.is_pending(drained) && host.client.is_valid(&lease));
    assert!(host.client.take_answer(status).expect("has completed").is_ok());
    host.client.give_back(&lease, host.now);
    host.pass(20_000);
    for command in [closed, drained] {
        assert!(host.client.take_answer(command).expect("has completed").is_ok());
    }
    assert!(host.sessions.iter().all(|session| session.0 == "terminated") && host.client.status(pool).is_none(), "{:?}", host.sessions);
}

#[test]
fn a_store_that_fails_for_a_moment_keeps_no_session_from_being_drained() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let leases = [0; 3].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    host.close(pool);
    host.pass(1000);
    let pool = host.open(3);
    let drain = format!(r#"{{"pool":{pool},"everywhere":true,"grace_ms":30000}}"#);
    let drained = host.client.start_json("drain_pool", &drain, CallOptions::default());
    host.store_fails = true;
    host.pass(3000);
    host.store_fails = false;
    host.pass(60_000);
    assert!(host.client.take_answer(drained).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn whoever_does_not_wait_at_all_gets_what_is_free() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { keep_ready: Some(1), ..shop() }).expect("can be opened");
    host.pass(10_000);
    let at_once = || AcquireLease { pool, timeout_ms: Some(0), ..AcquireLease::default() };
    let [first, second] = [host.client.acquire(at_once()).command, host.client.acquire(at_once()).command];
    host.pass(1);
    assert!(host.lease_of(first).is_ok());
    assert_eq!((host.lease_of(second).expect_err("is lent").kind, host.bought), (Kind::Unavailable, 1));
}

#[test]
fn a_session_is_not_ended_under_a_lease_while_leases_are_waited_for() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.reads_fail = true;
    host.see(&lease, Seen::Status(407));
    host.pass(1000);
    host.reads_fail = false;
    let drain = format!(r#"{{"pool":{pool},"grace_ms":120000}}"#);
    host.client.start_json("drain_pool", &drain, CallOptions::default());
    host.pass(90_000);
    assert!(host.client.is_valid(&lease) && host.log.len() == 1, "{:?}", host.log);
    host.pass(40_000);
    assert_eq!(host.log.last().map(String::as_str), Some("DELETE /sessions/s-1"));
}

#[test]
fn one_who_asks_after_a_quiet_time_has_one_session_read() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 20, keep_ready: Some(20), ..shop() }).expect("can be opened");
    host.pass(1_200_000);
    assert_eq!(host.status(pool).ready, 20);
    let before = host.reads;
    host.lease(pool);
    assert_eq!((host.reads - before, host.bought), (1, 20));
}

#[test]
fn a_session_that_the_service_has_forgotten_gives_its_slot_to_the_next() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    host.close(pool);
    host.pass(1000);
    host.is_forgetful = true;
    let pool = host.open(1);
    let command = host.acquire_for(pool, 300_000);
    host.pass(20_000);
    host.is_forgetful = false;
    host.pass(60_000);
    assert_eq!((host.lease_of(command).is_ok(), host.bought), (true, 2));
    assert!(host.reads < 100, "{}", host.reads);
}

#[test]
fn what_cannot_be_read_when_it_is_taken_over_is_not_read_all_the_time() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    host.close(pool);
    host.pass(1000);
    host.reads_fail = true;
    let pool = host.open(1);
    let command = host.acquire_for(pool, 600_000);
    let before = host.reads;
    host.pass(120_000);
    assert!(host.reads - before < 200, "{} reads in two minutes", host.reads - before);
    host.reads_fail = false;
    host.pass(120_000);
    assert_eq!((host.lease_of(command).is_ok(), host.bought), (true, 1));
}

#[test]
fn a_renewal_that_nobody_knows_of_is_not_made_again_and_one_sessions_refusal_stops_nothing() {
    let fixed = || OpenPool {
        session_type: SessionType::Static,
        renew_duration: Some(30),
        expected_charge_usd: "5".parse().ok(),
        size: 2,
        ..shop()
    };
    for (code, renewals) in [("BACKEND_ERROR", 1), ("SESSION_NOT_FOUND", 1)] {
        let mut host = Host::new(Some(100));
        host.is_static = true;
        let pool = host.try_open(fixed()).expect("can be opened");
        let lease = host.lease(pool);
        host.sessions[0].0 = "expired";
        host.renewal = Some(refused(code));
        host.see(&lease, Seen::Status(407));
        host.client.give_back(&lease, host.now);
        host.pass(3_600_000);
        let renewed = host.log.iter().filter(|sent| sent.ends_with("/renew")).count();
        let hold = host.status(pool).hold.map(|hold| hold.reason.as_str());
        assert_eq!((renewed, hold), (renewals, (code == "BACKEND_ERROR").then_some("backend")), "{code} {:?}", host.log);
    }
    // Nor is anything renewed while purchases are held back for a person.
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed()).expect("can be opened");
    let lease = host.lease(pool);
    host.answer = Some(refused("ACCOUNT_DISABLED"));
    let other = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(other).is_err());
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.pass(600_000);
    assert!(!host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.pass(61_000);
    assert!(host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
}

#[test]
fn a_session_fails_by_its_exits_and_not_by_what_is_seen_through_one() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { replace: Some(PoolReplace::Failing), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(60_000);
    (0..5).for_each(|_| _ = host.see(&lease, Seen::Status(403)));
    host.client.give_back(&lease, host.now);
    host.pass(20_000);
    assert_eq!(host.log.last().map(String::as_str), Some("POST /sessions/s-1/rotate \"http_403\""));
}

#[test]
fn a_client_with_pools_is_driven_with_its_pools() {
    struct Still(Memory, Millis);
    impl crate::client::Host for Still {
        fn now(&mut self) -> Now {
            Now { unix: START.unix + self.1, monotonic: self.1 }
        }
        fn send(&mut self, _: &crate::wire::Request) -> crate::client::Responded {
            panic!("nothing is sent to open a pool")
        }
        fn sleep(&mut self, ms: Millis) {
            self.1 += ms;
        }
        fn store(&mut self, call: &StoreCall) -> StoreAnswer {
            self.0.call(call.clone(), START.unix + self.1, self.1)
        }
    }
    let mut host = Host::new(Some(100));
    let ticket = host.client.open_pool(OpenPool { size: 2, ..shop() });
    let opened = crate::client::drive(&mut host.client, ticket, &mut Still(Memory::default(), 0)).expect("can be opened");
    assert_eq!(host.client.status(opened.pool).map(|status| status.unknown), Some(2));
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

#[test]
fn what_was_bought_since_the_pool_was_opened_anew_is_not_ended_by_whoever_hears_late() {
    let mut host = Host::new(Some(100));
    // Another pool's session that lies free: as one that a newer client has let go of.
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    host.client.give_back(&leases[0], host.now);
    host.close(pool);
    host.pass(20_000);
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.pass(1000);
    change_elsewhere(&mut host, &RecordChange::Drained { include_static: false });
    change_elsewhere(&mut host, &RecordChange::Opened);
    host.pass(70_000);
    host.client.give_back(&lease, host.now);
    host.pass(70_000);
    let left = host.sessions.iter().filter(|session| session.0 == "active").count();
    assert!(host.client.status(pool).is_none());
    assert_eq!(left, 1, "its own was ended, and what the new ones have let go of was not: {:?}", host.log);
}

fn fixed_of(size: u32) -> OpenPool {
    OpenPool { session_type: SessionType::Static, renew_duration: Some(30), expected_charge_usd: "5".parse().ok(), size, ..shop() }
}

#[test]
fn renewals_that_are_refused_are_tried_ever_less_often() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed_of(3)).expect("can be opened");
    let leases = [0; 3].map(|_| host.lease(pool));
    host.sessions.iter_mut().for_each(|session| session.0 = "expired");
    host.renewal = Some(refused("INSUFFICIENT_BALANCE"));
    leases.iter().for_each(|lease| _ = host.see(lease, Seen::Status(407)));
    host.pass(3_600_000);
    let renewed = host.log.iter().filter(|sent| sent.ends_with("/renew")).count();
    assert!(renewed < 15, "{renewed} {:?}", host.status(pool).hold);
    host.renewal = None;
    host.pass(1_200_000);
    assert!(host.sessions.iter().all(|session| session.0 == "active"), "{:?}", host.sessions);
}

#[test]
fn an_error_says_what_purchases_are_refused_for_and_a_higher_cap_counts_at_the_next_opening() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    host.answer = Some(refused("INSUFFICIENT_BALANCE"));
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    let error = host.lease_of(command).expect_err("nothing is bought");
    let cause = error.cause.as_ref().and_then(|cause| cause.code.as_deref());
    assert_eq!((cause, error.advice), (Some("INSUFFICIENT_BALANCE"), Advice::Recharge), "{error}");
    // A possible purchase is reported, too.
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    host.answer = Some(refused("INTERNAL_ERROR"));
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    let error = host.lease_of(command).expect_err("nothing is bought");
    assert!(error.to_string().contains("2 sessions: 1 in doubt") && error.reason == Some(PoolReason::Backend), "{error}");

    let mut host = Host::new(None);
    let capped = |usd: &str| OpenPool { size: 2, daily_cap_usd: usd.parse().ok(), ..shop() };
    let pool = host.try_open(capped("1")).expect("can be opened");
    host.lease(pool);
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(command).expect_err("is capped").to_string().contains("the day's cap is reached"));
    host.client.close_pool(ClosePool { pool, grace_ms: Some(0) });
    host.pass(10_000);
    let pool = host.try_open(capped("2")).expect("can be opened");
    (0..2).for_each(|_| _ = host.lease(pool));
    assert_eq!(host.bought, 2);
}

#[test]
fn a_doubt_that_somebody_settles_as_a_session_is_lent_within_a_minute() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some(refused("INTERNAL_ERROR"));
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(command).is_err());
    host.sessions.push(("active", 0));
    let ticket = host.client.saved(None);
    host.pass(1);
    let saved = host.client.take(ticket).expect("has completed").expect("is read").entries;
    let ticket = host.client.settle(&saved.first().expect("is in doubt").record, Settlement::Became("s-1".into()));
    host.pass(1);
    assert!(host.client.take(ticket).expect("has completed").is_ok());
    host.pass(61_000);
    host.lease(pool);
    assert_eq!(host.bought, 1);
    // No caller takes a purchase away from the pool.
    let command = host.client.resume_intent("pool/shop/0#1", CallOptions::default());
    assert_eq!(host.client.take_answer(command).expect("has completed").expect_err("is refused").kind, Kind::Invalid);
}

#[test]
fn sessions_that_several_share_are_bought_for_as_many() {
    let mut host = Host::new(Some(100));
    let pool =
        host.try_open(OpenPool { size: 20, leases_per_session: Some(3), idle_release_ms: Some(1), ..shop() }).expect("can be opened");
    // So many may be bought at a time by then.
    let mut leases: Vec<LeaseRef> = (0..9).map(|_| host.lease(pool)).collect();
    assert_eq!(host.bought, 3);
    let commands = [0; 3].map(|_| host.acquire(pool));
    host.pass(10_000);
    leases.extend(commands.map(|command| host.lease_of(command).expect("is lent")));
    assert_eq!(host.bought, 4);
}

#[test]
fn a_free_session_is_read_and_lent_while_a_purchase_takes_long() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 2, idle_release_ms: Some(3_600_000), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    // It is read again before it is lent.
    host.pass(600_000);
    host.answer = Some((
        202,
        r#"{"success":true,"data":{"session_id":"s-2","session_type":"dynamic","status":"creating","estimated_charge_usd":1}}"#,
    ));
    host.sessions.push(("creating", 0));
    let first = host.acquire(pool);
    host.pass(15_000);
    assert_eq!((host.bought, host.client.is_pending(first)), (2, true));
    host.client.give_back(&lease, host.now);
    host.pass(5000);
    assert!(host.client.lease_of(first).is_some(), "{:?}", host.status(pool));
}

#[test]
fn a_status_of_everywhere_that_is_not_waited_for_any_more() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let command = host.client.start_json("pool_status", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    let Step::Store { id, call, .. } = host.client.poll(host.now) else { panic!("the store is asked") };
    host.client.cancel(command, host.now);
    assert!(!host.client.is_pending(command), "it is cancelled");
    let answer = host.stored(call);
    host.client.resolve(id, Outcome::Store(answer), host.now).expect("is answered once");
    host.pass(1000);
    assert_eq!(host.client.take_answer(command).expect("has completed").map(|_| ()).map_err(|error| error.kind), Err(Kind::Cancelled));
}

#[test]
fn draining_everywhere_ends_what_could_not_be_read_before() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    host.close(pool);
    host.pass(1000);
    host.reads_fail = true;
    let pool = host.open(1);
    let command = host.acquire_for(pool, 1000);
    host.pass(5000);
    assert!(host.lease_of(command).is_err());
    host.reads_fail = false;
    let command = host.client.start_json("drain_pool", &format!(r#"{{"pool":{pool},"everywhere":true}}"#), CallOptions::default());
    host.pass(120_000);
    assert!(host.client.take_answer(command).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn nothing_is_renewed_once_another_client_has_paused_the_pool() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed_of(1)).expect("can be opened");
    let lease = host.lease(pool);
    host.pass(5000);
    change_elsewhere(&mut host, &RecordChange::Paused(true));
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.pass(10_000);
    assert!(!host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
    change_elsewhere(&mut host, &RecordChange::Paused(false));
    host.pass(130_000);
    assert!(host.log.iter().any(|sent| sent.ends_with("/renew")), "{:?}", host.log);
}

#[test]
fn a_doubt_beyond_its_own_size_leaves_a_small_pool_its_own_slots() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    host.answer = Some(refused("INTERNAL_ERROR"));
    host.taken = Some(host.client.slot_name("shop/0"));
    let command = host.acquire_for(pool, 1000);
    host.pass(20_000);
    host.taken = None;
    assert!(host.lease_of(command).is_err());
    let doubt = host.status(pool).slots.iter().find(|slot| slot.state.as_str() == "in_doubt").map(|slot| slot.slot);
    assert!(doubt > Some(0));
    host.close(pool);
    host.pass(20_000);
    host.answer = None;
    let pool = host.open(1);
    host.run("resume_pool", &format!(r#"{{"pool":{pool}}}"#)).expect("is resumed");
    let command = host.acquire_for(pool, 200_000);
    host.pass(210_000);
    assert!(host.lease_of(command).is_ok(), "{doubt:?} {:?}", host.status(pool));
}

#[test]
fn a_drain_everywhere_comes_back_to_what_is_being_let_go_of_at_that_moment() {
    let mut host = Host::new(Some(100));
    let pool = host.open(3);
    let leases = [0; 3].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    // One is let go of, since nobody uses it, and the store takes its time.
    host.late = Some(Vec::new());
    host.pass(61_000);
    assert!(!host.late.as_ref().expect("is late").is_empty());
    let drain = format!(r#"{{"pool":{pool},"everywhere":true,"grace_ms":20000}}"#);
    let drained = host.client.start_json("drain_pool", &drain, CallOptions::default());
    host.pass(5);
    host.catch_up();
    host.pass(30_000);
    assert!(host.client.take_answer(drained).expect("has completed").is_ok());
    assert!(host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
}

#[test]
fn whoever_waits_through_a_hold_gets_the_session_of_its_trial() {
    for (size, code) in [(4, "BACKEND_ERROR"), (2, "BACKEND_ERROR"), (2, "PRODUCT_OUT_OF_STOCK"), (1, "INSUFFICIENT_BALANCE")] {
        let mut host = Host::new(Some(100));
        let pool = host.open(size);
        host.answer = Some(refused(code));
        let first = host.acquire_for(pool, 5000);
        host.pass(120);
        assert!(host.lease_of(first).is_err());
        host.answer = None;
        let waits = host.acquire_for(pool, 80_000);
        host.pass(36_000);
        assert!(host.client.lease_of(waits).is_some(), "{code}, size {size}: {:?}", host.status(pool));
    }
}

#[test]
fn a_renewal_in_doubt_of_one_session_holds_back_no_purchase() {
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let pool = host.try_open(fixed_of(2)).expect("can be opened");
    let lease = host.lease(pool);
    host.renewal = Some(refused("BACKEND_TIMEOUT"));
    let options = CallOptions { expected_charge_usd: "1".parse().ok(), ..CallOptions::default() };
    let by_hand = host.client.start_json("renew_session", r#"{"session_id":"s-1","duration":1}"#, options);
    host.pass(100_000);
    assert!(host.client.take_answer(by_hand).expect("has ended").is_err());
    host.sessions[0].0 = "expired";
    host.see(&lease, Seen::Status(407));
    host.client.give_back(&lease, host.now);
    host.pass(120_000);
    assert_eq!(host.status(pool).hold, None);
    let other = host.acquire_for(pool, 600_000);
    host.pass(700_000);
    assert!(host.lease_of(other).is_ok());
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

#[test]
fn each_key_gets_a_session_of_its_own_where_there_is_room_and_shares_one_where_there_is_none() {
    let mut host = Host::new(Some(100));
    let pool = host.open(8);
    let used = use_keys(&mut host, pool, 8, 60);
    let sessions: std::collections::BTreeSet<&String> = used.iter().flat_map(|(sessions, _)| sessions).collect();
    assert_eq!((host.bought, sessions.len()), (8, 8), "{used:?}");
    assert!(used.iter().all(|(sessions, leases)| sessions.len() == 1 && *leases >= 50), "{used:?}");
    // No room.
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let used = use_keys(&mut host, pool, 4, 60);
    assert_eq!(host.bought, 2);
    assert!(used.iter().all(|(sessions, leases)| sessions.len() == 1 && *leases >= 25), "{used:?}");
    // Room, and nothing to be had for it.
    let mut host = Host::new(Some(1));
    let pool = host.open(8);
    let used = use_keys(&mut host, pool, 2, 60);
    assert_eq!((host.bought, host.status(pool).hold.map(|hold| hold.reason.as_str())), (1, Some("cap")));
    assert!(used.iter().all(|(_, leases)| *leases >= 25), "{used:?}");
}

#[test]
fn a_retry_gets_another_session_than_the_one_that_it_avoids_or_none() {
    let mut host = Host::new(Some(1));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    let retry = |host: &mut Host| {
        let asked = AcquireLease { pool, avoid: Some("s-1".into()), timeout_ms: Some(10_000), ..AcquireLease::default() };
        host.client.acquire(asked).command
    };
    // None can come, by the day's cap.
    let command = retry(&mut host);
    host.pass(11_000);
    assert_eq!(host.lease_of(command).expect_err("no other one comes").kind, Kind::Unavailable);
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let lease = host.lease(pool);
    host.client.give_back(&lease, host.now);
    let command = retry(&mut host);
    host.pass(2000);
    assert_eq!((host.granted(command).1.session_id.as_str(), host.bought), ("s-2", 2));
    // A session that this client does not have is avoided anyway.
    let asked = AcquireLease { pool, avoid: Some("s-9".into()), ..AcquireLease::default() };
    let command = host.client.acquire(asked).command;
    host.pass(1000);
    assert_eq!(host.granted(command).1.session_id, "s-1");
}

#[test]
fn no_more_callers_wait_than_may() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { max_waiters: Some(2), ..shop() }).expect("can be opened");
    let lease = host.lease(pool);
    let commands = [0; 3].map(|_| host.acquire(pool));
    host.pass(1);
    let error = host.lease_of(commands[2]).expect_err("is one too many");
    assert!(error.kind == Kind::Unavailable && error.to_string().contains("2 callers wait already"), "{error}");
    host.client.give_back(&lease, host.now);
    host.pass(1);
    assert!(host.lease_of(commands[0]).is_ok() && host.client.is_pending(commands[1]));
    // Whoever finds a free session does not wait.
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { max_waiters: Some(0), keep_ready: Some(1), ..shop() }).expect("can be opened");
    host.pass(1000);
    host.lease(pool);
    let command = host.acquire(pool);
    host.pass(1);
    assert!(host.lease_of(command).is_err());
}

#[test]
fn a_session_that_a_caller_discards_is_not_lent_again() {
    use PoolReplace::{Ended, Failing, Never};
    for (is_static, replace, ended, bought) in [
        (false, None, true, 2),
        (false, Some(Failing), true, 2),
        (false, Some(Never), true, 1),
        (true, None, false, 1),
        (true, Some(Ended), true, 2),
    ] {
        let mut host = Host::new(Some(100));
        host.is_static = is_static;
        let session_type = if is_static { SessionType::Static } else { SessionType::Dynamic };
        let open = OpenPool { session_type, replace, leases_per_session: Some(2), ..shop() };
        let pool = host.try_open(open).expect("can be opened");
        let leases = [0; 2].map(|_| host.lease(pool));
        assert!(host.client.discard(&leases[0], host.now));
        host.client.give_back(&leases[0], host.now);
        assert!(!host.client.discard(&leases[0], host.now), "it was given back");
        let command = host.acquire_for(pool, 20_000);
        host.pass(10_000);
        assert!(host.client.is_pending(command) && host.client.is_valid(&leases[1]) && host.log.len() == 1, "{:?}", host.log);
        host.client.give_back(&leases[1], host.now);
        host.pass(60_000);
        let is_other = host.client.lease_of(command).map(|_| host.granted(command).1.session_id != "s-1");
        let was_ended = host.log.iter().any(|sent| sent == "DELETE /sessions/s-1");
        assert_eq!((was_ended, host.bought, is_other), (ended, bought, (bought > 1).then_some(true)), "{is_static} {replace:?}");
        let closed = host.close(pool);
        host.pass(20_000);
        assert!(host.client.take_answer(closed).is_some_and(|closed| closed.is_ok()) && !host.client.follows("s-1"));
    }
}

#[test]
fn what_was_seen_of_an_exit_and_the_callers_data_outlive_its_release_and_a_crash() {
    let target = || Some("shop.example".to_owned());
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = || OpenPool { session_type: SessionType::Static, ..shop() };
    let pool = host.try_open(fixed()).expect("can be opened");
    let ask = |host: &mut Host, pool, target, timeout| {
        let asked = AcquireLease { pool, target, timeout_ms: Some(timeout), ..AcquireLease::default() };
        let command = host.client.acquire(asked).command;
        host.pass(timeout);
        let data = host.client.result(command).and_then(|result| result.as_ref().ok()).map(|given| given.raw.text().to_owned());
        (host.lease_of(command), data.unwrap_or_default())
    };
    let (lease, data) = ask(&mut host, pool, target(), 1000);
    let lease = lease.expect("is free");
    assert!(data.contains(r#""data":{}"#), "{data}");
    for (data, field) in [("[]", Some("data")), ("nonsense", Some("data"))] {
        assert_eq!(host.client.set_lease_data(&lease, data, host.now).expect_err("is refused").field.as_deref(), field);
    }
    host.client.set_lease_data(&lease, r#"{"cookies":["a"]}"#, host.now).expect("is kept");
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    assert_eq!(host.client.set_lease_data(&lease, "{}", host.now).expect_err("was given back").kind, Kind::Misuse);
    // It is let go of after five seconds, and rests for a minute all the same.
    host.pass(20_000);
    assert_eq!(host.status(pool).ready, 0);
    let (denied, _) = ask(&mut host, pool, target(), 10_000);
    assert_eq!(denied.expect_err("it rests").kind, Kind::Unavailable);
    let (other, data) = ask(&mut host, pool, None, 1000);
    let other = other.expect("it rests for one target only");
    assert!(data.contains(r#""data":{"cookies":["a"]}"#), "{data}");
    host.client.set_lease_data(&other, r#"{"cookies":["b"]}"#, host.now).expect("is kept");
    host.client.give_back(&other, host.now);
    host.pass(1000);
    // The program dies, and another one takes over.
    let (disk, sessions, now) = (std::mem::take(&mut host.disk), std::mem::take(&mut host.sessions), host.now);
    let mut next = Host { disk, sessions, now, is_static: true, ..Host::new(Some(100)) };
    let pool = next.try_open(fixed()).expect("can be opened");
    next.pass(70_000);
    let (_, data) = ask(&mut next, pool, target(), 40_000);
    assert!(data.contains(r#""data":{"cookies":["b"]}"#) && next.bought == 0, "{data}");
}

/// The error of a caller who is told at once that nothing comes.
fn told_at_once(host: &mut Host, pool: u32, target: &str, timeout_ms: Millis) -> Error {
    let acquire = AcquireLease { pool, target: Some(target.to_owned()), timeout_ms: Some(timeout_ms), ..AcquireLease::default() };
    let command = host.client.acquire(acquire).command;
    host.pass(2500);
    host.lease_of(command).expect_err("nothing comes in time")
}

#[test]
fn whoever_cannot_be_served_is_told_at_once_with_counts_reason_and_time() {
    // A static session that its target has blocked rests for that target, and for no other.
    let mut host = Host::new(Some(100));
    host.is_static = true;
    let fixed = OpenPool { session_type: SessionType::Static, expected_charge_usd: "5".parse().ok(), ..shop() };
    let pool = host.try_open(fixed.clone()).expect("can be opened");
    let acquire = AcquireLease { pool, target: Some("shop.example".into()), ..AcquireLease::default() };
    let command = host.client.acquire(acquire).command;
    host.pass(1000);
    let lease = host.lease_of(command).expect("is lent");
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    let error = told_at_once(&mut host, pool, "shop.example", 30_000);
    assert_eq!((error.kind, error.effect, error.reason), (Kind::Unavailable, Effect::None, Some(PoolReason::Resting)), "{error}");
    assert!(error.what.starts_with("no session is free; 1 session: 1 rests for shop.example until 2"), "{error}");
    let rests = error.retry_at.expect("is known") - host.now.unix;
    assert!((50_000..=60_000).contains(&rests), "{rests}");
    let other = AcquireLease { pool, target: Some("other.example".into()), ..AcquireLease::default() };
    let command = host.client.acquire(other).command;
    host.pass(1000);
    let lease = host.lease_of(command).expect("it rests for one target alone");
    host.client.give_back(&lease, host.now);
    // A caller with more time gets it.
    let patient = AcquireLease { pool, target: Some("shop.example".into()), timeout_ms: Some(90_000), ..AcquireLease::default() };
    let command = host.client.acquire(patient).command;
    host.pass(70_000);
    let lease = host.lease_of(command).expect("it has rested");
    // A lease that is out may come back at any moment, so that its caller waits, and is told for how long it has been out.
    let command = host.acquire_for(pool, 5000);
    host.pass(4000);
    assert!(host.client.is_pending(command));
    host.pass(2000);
    let error = host.lease_of(command).expect_err("is lent");
    assert_eq!(error.reason, Some(PoolReason::Leased), "{error}");
    assert!(error.what.starts_with("no session was free in time; 1 session: 1 is lent, for "), "{error}");
    host.client.give_back(&lease, host.now);
    // What another client has.
    host.close(pool);
    host.pass(1000);
    let pool = host.try_open(fixed).expect("can be opened");
    host.taken = Some(host.client.slot_name("shop/0"));
    let command = host.acquire_for(pool, 5000);
    host.pass(6000);
    let error = host.lease_of(command).expect_err("another client has it");
    assert_eq!(error.reason, Some(PoolReason::WithOthers), "{error}");
    assert!(error.what.contains("1 session: 1 with another client"), "{error}");
    assert_eq!(host.status(pool).with_others, 1);
}

#[test]
fn a_caller_who_gives_up_is_told_that_what_is_being_bought_goes_on() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    host.answer = Some((
        202,
        r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"creating","estimated_charge_usd":1}}"#,
    ));
    host.sessions.push(("creating", 0));
    let command = host.acquire(pool);
    host.pass(2000);
    host.client.cancel(command, host.now);
    let error = host.client.take_answer(command).expect("has completed").expect_err("is cancelled");
    assert_eq!(error.what, "was cancelled before a session was free, and what is being bought goes on");
    assert_eq!(error.kind, Kind::Cancelled);
}

#[test]
fn a_drain_ends_within_its_grace_and_says_what_still_lives_and_of_a_closed_pool_it_is_refused() {
    let mut host = Host::new(Some(100));
    let pool = host.open(2);
    let leases = [0; 2].map(|_| host.lease(pool));
    leases.iter().for_each(|lease| _ = host.client.give_back(lease, host.now));
    // The service ends nothing.
    host.ends_fail = true;
    let drained = host.client.start_json("drain_pool", &format!(r#"{{"pool":{pool}}}"#), CallOptions::default());
    host.pass(10_000);
    let error = host.client.take_answer(drained).expect("has completed in time").expect_err("sessions live");
    assert_eq!((error.kind, error.effect, error.operation), (Kind::Unavailable, Effect::Unknown, "drain_pool"), "{error}");
    assert!(error.what.contains("s-1, s-2 still live"), "{error}");
    // It goes on without anybody who waits, and the pool is paused for whoever opens it.
    host.ends_fail = false;
    host.pass(80_000);
    assert!(host.client.status(pool).is_none() && host.sessions.iter().all(|session| session.0 == "terminated"), "{:?}", host.sessions);
    let error = host.run("drain_pool", &format!(r#"{{"pool":{pool}}}"#)).expect_err("is closed");
    assert_eq!(error.kind, Kind::Misuse);
    let closed = host.close(pool);
    host.pass(1);
    assert!(host.client.take_answer(closed).expect("has completed").is_ok(), "closing twice does no harm");
    let pool = host.open(2);
    let command = host.acquire(pool);
    host.pass(3000);
    assert_eq!((host.lease_of(command).expect_err("is paused").reason, host.bought), (Some(PoolReason::Paused), 2));
}

#[test]
fn a_session_whose_exit_may_have_changed_is_lent_with_a_new_generation_though_it_cannot_be_read() {
    let mut host = Host::new(Some(100));
    let pool = host.open(1);
    let lease = host.lease(pool);
    (host.rotation, host.reads_fail) = (Some((503, "")), true);
    host.see(&lease, Seen::Status(403));
    host.client.give_back(&lease, host.now);
    let command = host.acquire_for(pool, 300_000);
    host.pass(120_000);
    let (lease, granted) = host.granted(command);
    assert_eq!((granted.session_id.as_str(), granted.generation), ("s-1", 2));
    // Further reads are made beside that.
    let reads = host.reads;
    host.client.give_back(&lease, host.now);
    for _ in 0..120 {
        let command = host.acquire_for(pool, 500);
        host.pass(1000);
        let lease = host.lease_of(command).expect("is lent meanwhile");
        host.client.give_back(&lease, host.now);
    }
    assert!(host.reads > reads, "{reads}");
    host.reads_fail = false;
    host.pass(61_000);
    assert_eq!((host.granted_now(pool).1.generation, host.bought), (2, 1));
}

#[test]
fn two_versions_that_begin_in_turn_do_not_end_each_others_sessions_each_time() {
    let mut host = Host::new(Some(100));
    let versions =
        ["DE", "FR"].map(|country| OpenPool { country_code: Some(country.into()), on_change: Some(PoolOnChange::Replace), ..shop() });
    let (mut refused, mut last) = (0, None);
    for version in versions.iter().cycle().take(12) {
        match host.try_open(version.clone()) {
            Ok(pool) => {
                host.lease(pool);
                host.close(pool);
                last = version.country_code.clone();
            }
            Err(error) => {
                assert!(error.what.contains("replaced less than 10 min ago"), "{error}");
                refused += 1;
            }
        }
        host.pass(60_000);
    }
    assert!(host.bought <= 3 && refused >= 5, "{} bought, {refused} refused", host.bought);
    // Whoever waits replaces it.
    host.pass(600_000);
    let other = versions.into_iter().find(|version| version.country_code != last).expect("is the other one");
    let pool = host.try_open(other).expect("takes its place");
    host.lease(pool);
}

#[test]
fn a_target_with_a_login_is_shown_without_it() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { idle_release_ms: Some(60_000), ..shop() }).expect("can be opened");
    for _ in 0..4 {
        let target = Some("https://user:secret@shop.example/?token=secret".to_owned());
        let command = host.client.acquire(AcquireLease { pool, target, timeout_ms: Some(90_000), ..AcquireLease::default() }).command;
        host.pass(91_000);
        let Ok(lease) = host.lease_of(command) else { continue };
        host.see(&lease, Seen::Status(403));
        host.client.give_back(&lease, host.now);
        host.pass(10_000);
    }
    let status = json_of(&host.status(pool));
    assert!(status.contains("shop.example") && !status.contains("secret"), "{status}");
}

#[test]
fn who_does_not_wait_any_more_is_not_bought_for() {
    let mut host = Host::new(Some(100));
    let pool = host.try_open(OpenPool { size: 8, keep_ready: Some(1), ..shop() }).expect("can be opened");
    host.pass(10_000);
    assert_eq!(host.bought, 1);
    // Eight slots are claimed; before the record was read, seven of the callers are gone.
    host.taken = Some(host.client.pool_name("shop"));
    host.pass(2000);
    let lease = host.lease(pool);
    let waiting: Vec<CommandId> = (0..7).map(|_| host.acquire_for(pool, 60_000)).collect();
    host.pass(300);
    for command in &waiting {
        host.client.cancel(*command, host.now);
    }
    host.taken = None;
    host.pass(10_000);
    host.client.give_back(&lease, host.now);
    assert_eq!(host.bought, 2, "one is kept ready beside the one that is lent");
}

#[test]
fn a_static_session_that_a_person_has_renewed_is_lent_and_no_other_is_bought_in_its_place() {
    for (is_renewed, bought) in [(true, 1), (false, 2)] {
        let mut host = Host::new(Some(100));
        host.is_static = true;
        let fixed = OpenPool { session_type: SessionType::Static, replace: Some(PoolReplace::Ended), ..shop() };
        let pool = host.try_open(fixed).expect("can be opened");
        let lease = host.lease(pool);
        host.sessions[0].0 = "expired";
        host.see(&lease, Seen::Status(407));
        host.pass(20_000);
        assert!(!host.client.is_valid(&lease) && host.bought == 1);
        host.sessions[0].0 = if is_renewed { "active" } else { "expired" };
        let command = host.acquire(pool);
        host.pass(20_000);
        let session = host.granted(command).1.session_id;
        assert_eq!((host.bought, session.as_str()), (bought, if is_renewed { "s-1" } else { "s-2" }));
    }
}
