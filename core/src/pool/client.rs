//! The client with its pools: what a host drives.

use std::collections::BTreeMap;
use std::ops::{Deref, DerefMut};

use super::buyer::Needs;
use super::leases::LeaseId;
use super::machine::{Advised, Machine};
use super::options::{Acquire, PoolOptions};
use super::targets::Sight;
use crate::client::{Client, PoolNo, Step, Ticket};
use crate::contract::Api;
use crate::engine::Answered;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Name, Seen};
use crate::time::{Millis, Now};

/// A pool of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pool(pub PoolNo);

/// A lease of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseNo {
    /// Of which pool.
    pub pool: Pool,
    /// Which one.
    pub lease: LeaseId,
}

/// Marks the ticket of [`PoolClient::acquire`].
#[derive(Debug, Clone, Copy)]
pub enum Acquired {}

/// How many slots of a pool are in which state, as far as this client knows. They add up to its size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PoolStatus {
    /// Sessions that this client can lend, or lends.
    pub ready: u32,
    /// How many leases are out.
    pub leases: usize,
    /// Sessions that are bought, taken over, read or changed.
    pub creating: u32,
    /// Sessions that can't be used for now.
    pub resting: u32,
    /// Purchases in doubt.
    pub in_doubt: u32,
    /// What other clients have, or nobody.
    pub elsewhere: u32,
    /// Who waits for a lease.
    pub waiting: usize,
    /// Why nothing is bought, if that is so.
    pub hold: Option<PoolHold>,
}

/// Why a pool buys nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolHold {
    /// As the end of a sentence.
    pub why: &'static str,
    /// Who can end it.
    pub needs: Needs,
    /// Since when, Unix milliseconds.
    pub since: Millis,
    /// When one purchase is tried; none before the pool is resumed.
    pub retry_at: Option<Millis>,
}

/// A client with pools.
#[derive(Debug)]
pub struct PoolClient {
    client: Client,
    pools: BTreeMap<PoolNo, Machine>,
    last: PoolNo,
    /// The leases whose commands have ended and were not taken yet.
    untaken: BTreeMap<CommandId, LeaseNo>,
}

impl Deref for PoolClient {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.client
    }
}

impl DerefMut for PoolClient {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl PoolClient {
    /// A client that has no pool yet.
    pub fn new(client: Client) -> Self {
        PoolClient { client, pools: BTreeMap::new(), last: 0, untaken: BTreeMap::new() }
    }

    /// Opens a pool. Nothing is bought before somebody waits for a lease, but what is to be `ready`.
    pub fn open_pool(&mut self, name: &str, options: PoolOptions, now: Now) -> Result<Pool, Error> {
        self.client.tick(now);
        let refuse = |field: &str, rule: &str| Err(Error::invalid("open_pool", field, rule));
        if self.client.api() != Api::Agent {
            return Err(Error::new(Kind::Misuse, Effect::None, "open_pool", "belongs to the agent API", Advice::ChangeRequest));
        }
        if name.is_empty() || name.len() > 128 || name.chars().any(|c| c.is_control() || c == '#') {
            return refuse("name", "must be 1 to 128 bytes without control characters and `#`");
        }
        options.check()?;
        if !self.client.has_cap() {
            return refuse("daily_cap_usd", "is required of the client, since a pool buys by itself");
        }
        if self.pools.values().any(|pool| pool.is_named(name)) {
            return refuse("name", "is that of a pool that this client has open");
        }
        self.last = self.last.wrapping_add(1);
        let mut machine = Machine::new(self.last, name, options);
        machine.turn(&mut self.client);
        self.pools.insert(self.last, machine);
        Ok(Pool(self.last))
    }

    /// Asks for a lease.
    pub fn acquire(&mut self, pool: Pool, asked: &Acquire, now: Now) -> Ticket<Acquired> {
        self.client.tick(now);
        let command = self.client.command_for("acquire");
        match self.pools.get_mut(&pool.0) {
            Some(machine) => machine.acquire(&mut self.client, command, asked),
            None => self.client.complete(command, Err(no_pool("acquire"))),
        }
        self.tell_pools();
        Ticket::of(command)
    }

    /// Gives a lease back. Whether it was valid.
    pub fn give_back(&mut self, lease: LeaseNo, now: Now) -> bool {
        self.client.tick(now);
        let valid = self.is_valid(lease);
        if let Some(machine) = self.pools.get_mut(&lease.pool.0) {
            machine.give_back(&mut self.client, lease.lease);
        }
        self.tell_pools();
        valid
    }

    /// Whether what a lease was given for is this client's still.
    pub fn is_valid(&self, lease: LeaseNo) -> bool {
        self.pools.get(&lease.pool.0).is_some_and(|machine| machine.is_valid(&self.client, lease.lease))
    }

    /// Claims that have ended while this client lives: of these names, or of all. Leases of what was lost are not valid any more, also where
    /// it is claimed once more: another client may have lent it meanwhile.
    pub fn lost(&mut self, names: Option<&[Name]>, now: Now) {
        self.client.lost(names, now);
        self.pools.values_mut().for_each(|machine| machine.give_up_lost(&mut self.client));
        self.tell_pools();
    }

    /// Says what was seen through a lease; `wait_ms` is the Retry-After of the target. None where the lease is not valid any more, or its
    /// session has another exit by now.
    pub fn observe_lease(&mut self, lease: LeaseNo, seen: Seen, wait_ms: Option<Millis>, now: Now) -> Option<Advised> {
        self.client.tick(now);
        let advised = self.pools.get_mut(&lease.pool.0)?.observe(&mut self.client, lease.lease, Sight::of(seen, wait_ms));
        self.tell_pools();
        advised
    }

    /// Lends no more, waits so long for leases, and lets go of all slots. Sessions live on.
    pub fn close_pool(&mut self, pool: Pool, grace_ms: Millis, now: Now) -> CommandId {
        self.client.tick(now);
        let command = self.client.command_for("close_pool");
        match self.pools.get_mut(&pool.0) {
            Some(machine) => machine.close(&mut self.client, command, grace_ms),
            None => self.client.complete(command, Err(no_pool("close_pool"))),
        }
        self.tell_pools();
        command
    }

    /// Buys nothing from here on; what there is is lent.
    pub fn pause(&mut self, pool: Pool) {
        self.pools.get_mut(&pool.0).into_iter().for_each(|machine| machine.is_paused = true);
    }

    /// Buys again, also where a hold was to last until this is said.
    pub fn resume_pool(&mut self, pool: Pool, now: Now) {
        self.client.tick(now);
        if let Some(machine) = self.pools.get_mut(&pool.0) {
            machine.resume(&mut self.client);
        }
        self.tell_pools();
    }

    /// How a pool is.
    pub fn status(&self, pool: Pool) -> Option<PoolStatus> {
        let machine = self.pools.get(&pool.0)?;
        let counts = machine.counts;
        Some(PoolStatus {
            ready: counts.lends,
            leases: machine.leases.lent_count(),
            creating: counts.coming + counts.rotating,
            resting: counts.waiting + counts.resting,
            in_doubt: counts.in_doubt,
            elsewhere: machine.options.size.saturating_sub(machine.known()),
            waiting: machine.leases.waiting(),
            hold: machine.buyer.hold().map(|hold| PoolHold {
                why: hold.reason.text(),
                needs: hold.reason.needs(),
                since: hold.since,
                retry_at: hold.retry_at,
            }),
        })
    }

    /// What to do next, of the client and of its pools.
    pub fn poll(&mut self, now: Now) -> Step {
        loop {
            let step = self.client.poll(now);
            let Step::Wait { until } = step else { return step };
            if self.tell_pools() {
                continue;
            }
            let due: Vec<PoolNo> =
                self.pools.iter().filter(|(_, pool)| pool.next.is_some_and(|at| at <= now.monotonic)).map(|(no, _)| *no).collect();
            if due.is_empty() {
                let next = self.pools.values().filter_map(|pool| pool.next).min();
                return Step::Wait { until: until.into_iter().chain(next).min() };
            }
            for pool in due {
                if let Some(machine) = self.pools.get_mut(&pool) {
                    machine.turn(&mut self.client);
                }
            }
            self.tell_pools();
        }
    }

    /// Stops a command; of one that waits for a lease, the wait.
    pub fn cancel(&mut self, command: CommandId, now: Now) -> Option<crate::state::StepId> {
        self.client.tick(now);
        for machine in self.pools.values_mut() {
            if machine.leave(&mut self.client, command) {
                machine.turn(&mut self.client);
                self.tell_pools();
                return None;
            }
        }
        self.client.cancel(command, now)
    }

    /// The result of a command, once. Whoever takes a lease gives it back.
    pub fn take_answer(&mut self, command: CommandId) -> Option<Result<Answered, Error>> {
        let result = self.client.take_answer(command)?;
        self.untaken.remove(&command);
        Some(result)
    }

    /// The lease that a command has ended with, until its result is taken.
    pub fn lease_of(&self, command: CommandId) -> Option<LeaseNo> {
        self.untaken.get(&command).copied()
    }

    /// Drops a result, because its caller is gone. A lease goes back.
    pub fn abandon(&mut self, command: CommandId, now: Now) -> bool {
        if let Some(lease) = self.untaken.remove(&command) {
            self.give_back(lease, now);
        }
        self.client.abandon(command)
    }

    /// Pools hear what is new to them, until nothing is. Whether there was something.
    fn tell_pools(&mut self) -> bool {
        let mut heard = false;
        while let Some(news) = self.client.news.pop_front() {
            heard = true;
            if let Some(machine) = self.pools.get_mut(&news.pool) {
                machine.hear(&mut self.client, news.what);
            }
        }
        for (number, machine) in &mut self.pools {
            for granted in machine.take_granted() {
                self.untaken.insert(granted.command, LeaseNo { pool: Pool(*number), lease: granted.lease });
            }
        }
        self.pools.retain(|_, machine| !machine.is_closed(&self.client));
        heard
    }
}

fn no_pool(operation: &'static str) -> Error {
    Error::new(Kind::Misuse, Effect::None, operation, "the pool is closed", Advice::ChangeRequest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{ClientOptions, Outcome, Settlement};
    use crate::contract::Secret;
    use crate::contract::agent::{CreateSession, SessionType};
    use crate::engine::RecordId;
    use crate::state::Memory;

    const START: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };
    const PRODUCTS: &str =
        r#"{"success":true,"data":{"items":[{"product_no":"p","type":"dynamic","price":1,"currency":"USD","unit":"GB"}]}}"#;
    const ACTIVE: &str = r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active","proxy":{"host":"h","port":1,"username":"u","password":"w"}}}"#;

    struct Host {
        client: PoolClient,
        disk: Memory,
        now: Now,
        /// The purchases that were sent.
        bought: usize,
        /// What a purchase is answered.
        answer: (u16, &'static str),
    }

    impl Host {
        fn new(cap: Option<i64>) -> Self {
            let options = ClientOptions {
                base_url: "https://api.example/v1".into(),
                api_key: Some(Secret::new("a-key")),
                store: true,
                daily_cap_usd: cap.map(|usd| usd.to_string().parse().expect("is a number")),
                ..ClientOptions::default()
            };
            let client = PoolClient::new(Client::new(options, [7; 16]).expect("the options are sound"));
            Host { client, disk: Memory::default(), now: START, bought: 0, answer: (202, ACTIVE) }
        }

        /// Goes on until so much time is over.
        fn pass(&mut self, ms: Millis) {
            let until = self.now.monotonic + ms;
            loop {
                let now = self.now;
                match self.client.poll(now) {
                    Step::Store { id, call, .. } => {
                        let answer = self.disk.call(call, now.unix, now.monotonic);
                        self.client.resolve(id, Outcome::Store(answer), now).expect("is answered once");
                    }
                    Step::Send { id, request, .. } => {
                        let is_purchase = request.method.as_str() == "POST" && request.url.ends_with("/sessions");
                        self.bought += usize::from(is_purchase);
                        let (status, body) = match is_purchase {
                            true => self.answer,
                            false if request.url.contains("/products") => (200, PRODUCTS),
                            false => (200, ACTIVE),
                        };
                        let headers = &[("date", "Tue, 14 Nov 2023 22:13:20 GMT")];
                        let outcome = Outcome::Response { status, headers, body: body.as_bytes(), truncated: false };
                        self.client.resolve(id, outcome, now).expect("is answered once");
                    }
                    Step::Completed { .. } | Step::Notify(_) => {}
                    Step::Wait { until: next } => {
                        let next = next.filter(|next| *next <= until).unwrap_or(until);
                        if now.monotonic >= until {
                            return;
                        }
                        let waited = next.max(now.monotonic + 1) - now.monotonic;
                        self.now = Now { unix: now.unix + waited, monotonic: now.monotonic + waited };
                    }
                }
            }
        }

        fn open(&mut self, size: u32) -> Pool {
            let session = CreateSession { session_type: SessionType::Dynamic, product_no: "p".into(), ..CreateSession::default() };
            let options = PoolOptions { session, size, ..PoolOptions::default() };
            self.client.open_pool("shop", options, self.now).expect("can be opened")
        }

        fn acquire(&mut self, pool: Pool) -> CommandId {
            self.client.acquire(pool, &Acquire::default(), self.now).command
        }
    }

    #[test]
    fn a_pool_needs_a_cap_and_buys_nothing_before_somebody_asks() {
        let mut host = Host::new(None);
        let options = PoolOptions { size: 1, ..PoolOptions::default() };
        let error = host.client.open_pool("shop", options, START).expect_err("is refused");
        assert_eq!(error.field.as_deref(), Some("session_type"), "{error}");
        let session = CreateSession { session_type: SessionType::Dynamic, product_no: "p".into(), ..CreateSession::default() };
        let options = PoolOptions { session, size: 1, ..PoolOptions::default() };
        let error = host.client.open_pool("shop", options, START).expect_err("is refused");
        assert_eq!(error.field.as_deref(), Some("daily_cap_usd"), "{error}");
        let mut host = Host::new(Some(100));
        let pool = host.open(2);
        host.pass(3_600_000);
        assert_eq!(host.bought, 0);
        let command = host.acquire(pool);
        host.pass(1000);
        let lease = host.client.lease_of(command).expect("is granted");
        assert!(host.client.take_answer(command).expect("has completed").is_ok() && host.client.is_valid(lease));
        assert_eq!((host.bought, host.client.status(pool).expect("is open").ready), (1, 1));
        // A session that nobody used for a minute is let go of; the next one who asks finds it.
        assert!(host.client.give_back(lease, host.now) && !host.client.give_back(lease, host.now));
        host.pass(120_000);
        assert_eq!(host.client.status(pool).map(|status| (status.ready, status.elsewhere)), Some((0, 2)));
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
        // Who gives up waiting gets none.
        let third = host.acquire(pool);
        host.client.cancel(third, host.now);
        assert_eq!(host.client.take_answer(third).expect("has completed").expect_err("is cancelled").kind, Kind::Cancelled);
        assert_eq!((host.bought, host.client.status(pool).map(|status| status.waiting)), (1, Some(0)));
    }

    #[test]
    fn a_doubt_that_somebody_settles_is_no_reason_to_buy() {
        let mut host = Host::new(Some(100));
        let pool = host.open(1);
        host.answer = (503, "");
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
        host.answer = (202, ACTIVE);
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
        let closed = host.client.close_pool(pool, 10_000, host.now);
        host.pass(1000);
        assert!(host.client.is_pending(closed) && !host.client.is_pending(waits) && host.client.is_valid(lease));
        host.client.give_back(lease, host.now);
        host.pass(1000);
        assert!(!host.client.is_pending(closed) && host.client.status(pool).is_none() && !host.client.follows("s-1"));
        let late = host.acquire(pool);
        assert_eq!(host.client.take_answer(late).expect("has completed").expect_err("is refused").kind, Kind::Misuse);
        let again = host.open(1);
        let command = host.acquire(again);
        host.pass(1000);
        assert!(host.client.lease_of(command).is_some() && host.bought == 1);
    }
}
