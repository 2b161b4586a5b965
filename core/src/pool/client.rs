//! The client with its pools: what a host drives. Pools are asked by commands like all others, which are carried out by the next poll.

use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

use super::leases::LeaseId;
use super::machine::{Machine, call_options};
use crate::client::{CallOptions, Client, ClientOptions, Outputs, PoolNo, ReadFailure, Step, StepId, Ticket};
use crate::contract::pools::{
    AcquireLease, ClosePool, DrainPool, LeaseAdvice, LeaseRef, OpenPool, OpenedPool, PoolLease, PoolRef, PoolStatus, PoolStatusOf,
    WaitReady,
};
use crate::contract::{Api, Shaped, json_of};
use crate::engine::Answered;
use crate::json::{FromJson, read_json};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Name, Seen};
use crate::time::{Millis, Now};
use crate::wire::{Facts, params_of};

/// A client with pools.
#[derive(Debug)]
pub struct PoolClient {
    client: Client,
    pools: BTreeMap<PoolNo, Machine>,
    last: PoolNo,
    /// What pools were asked since the last poll.
    asked: VecDeque<(CommandId, Asked)>,
}

/// What a pool is asked.
#[derive(Debug)]
enum Asked {
    Open(Box<OpenPool>),
    Acquire(AcquireLease),
    WaitReady(WaitReady),
    Status(PoolStatusOf),
    Pause(PoolRef),
    Resume(PoolRef),
    Close(ClosePool),
    Drain(DrainPool),
}

impl Asked {
    /// The pool operation of that name, with its parameters. None where it is not one of these.
    fn of(operation: &str, params: &str) -> Option<(&'static str, Result<Asked, Error>)> {
        fn read<T: Shaped + FromJson>(
            operation: &'static str,
            params: &str,
            asked: fn(T) -> Asked,
        ) -> (&'static str, Result<Asked, Error>) {
            let params = params_of(params).map_err(|refusal| Error::invalid(operation, &refusal.field, &refusal.rule));
            (operation, params.map(asked))
        }
        Some(match operation {
            "open_pool" => read("open_pool", params, |open| Asked::Open(Box::new(open))),
            "acquire" => read("acquire", params, Asked::Acquire),
            "wait_ready" => read("wait_ready", params, Asked::WaitReady),
            "pool_status" => read("pool_status", params, Asked::Status),
            "pause_pool" => read("pause_pool", params, Asked::Pause),
            "resume_pool" => read("resume_pool", params, Asked::Resume),
            "close_pool" => read("close_pool", params, Asked::Close),
            "drain_pool" => read("drain_pool", params, Asked::Drain),
            _ => return None,
        })
    }

    fn pool(&self) -> Option<PoolNo> {
        match self {
            Asked::Open(_) => None,
            Asked::Acquire(AcquireLease { pool, .. })
            | Asked::WaitReady(WaitReady { pool, .. })
            | Asked::Status(PoolStatusOf { pool, .. })
            | Asked::Pause(PoolRef { pool })
            | Asked::Resume(PoolRef { pool })
            | Asked::Close(ClosePool { pool, .. })
            | Asked::Drain(DrainPool { pool, .. }) => Some(*pool),
        }
    }
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
    pub fn new(options: ClientOptions, entropy: [u8; 16]) -> Result<Self, Error> {
        Client::new(options, entropy).map(PoolClient::from)
    }

    /// The same, its options as JSON.
    pub fn from_text(options: &str, entropy: &[u8]) -> Result<Self, Error> {
        Client::from_text(options, entropy).map(PoolClient::from)
    }

    /// Opens a pool. Nothing is bought before somebody waits for a lease, but what is to be `ready`.
    pub fn open_pool(&mut self, open: OpenPool) -> Ticket<OpenPool> {
        Ticket::of(self.start_json("open_pool", &json_of(&open), CallOptions::default()))
    }

    /// Asks for a lease, and waits until a session is free. Whoever takes the lease gives it back.
    pub fn acquire(&mut self, acquire: AcquireLease) -> Ticket<AcquireLease> {
        Ticket::of(self.start_json("acquire", &json_of(&acquire), CallOptions::default()))
    }

    /// Lends no more, waits for leases, and releases all slots. Sessions live on.
    pub fn close_pool(&mut self, close: ClosePool) -> CommandId {
        self.start_json("close_pool", &json_of(&close), CallOptions::default())
    }

    /// Starts an operation, as [`Client::start_json`] does, or one of a pool: `open_pool` ([`OpenPool`]), `acquire` ([`AcquireLease`]),
    /// `wait_ready` ([`WaitReady`]), `pool_status`, `pause_pool` and `resume_pool` ([`PoolRef`]), `close_pool` ([`ClosePool`]) and
    /// `drain_pool` ([`DrainPool`]).
    pub fn start_json(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
        let Some((operation, asked)) = Asked::of(operation, params) else {
            return self.client.start_json(operation, params, options);
        };
        let command = self.client.command_for(operation);
        match asked {
            _ if options != CallOptions::default() => {
                let what = "does not take the options of a request; what a pool needs is among its parameters";
                self.client.complete(command, Err(Error::invalid(operation, "options", what)));
            }
            Ok(asked) => self.asked.push_back((command, asked)),
            Err(error) => self.client.complete(command, Err(error)),
        }
        command
    }

    /// The same, its options as JSON.
    pub fn start_text(&mut self, operation: &str, params: &str, options: &str) -> CommandId {
        match (Asked::of(operation, params), options.parse::<CallOptions>()) {
            (Some(_), Ok(options)) => self.start_json(operation, params, options),
            _ => self.client.start_text(operation, params, options),
        }
    }

    /// Carries out what a pool was asked.
    fn carry_out(&mut self, command: CommandId, asked: Asked) {
        if let Asked::Open(open) = asked {
            return self.open(command, *open);
        }
        let Some(machine) = asked.pool().and_then(|pool| self.pools.get_mut(&pool)) else {
            let operation = self.client.command_operation(command).unwrap_or("acquire");
            let what = "the pool is closed or drained; open it again";
            let error = Error::new(Kind::Misuse, Effect::None, operation, what, Advice::ChangeRequest);
            // What is closed can be closed again.
            let is_closing = matches!(asked, Asked::Close(_) | Asked::Drain(_));
            return self.client.complete(command, if is_closing { Ok(Answered::of(Facts::default())) } else { Err(error) });
        };
        match asked {
            Asked::Open(_) => {}
            Asked::Acquire(acquire) => machine.acquire(&mut self.client, command, &acquire),
            Asked::WaitReady(wait) => machine.wait_ready(&mut self.client, command, &wait),
            Asked::Status(asked) => machine.tell_status(&mut self.client, command, &asked),
            Asked::Pause(_) => machine.pause(&mut self.client, command),
            Asked::Resume(_) => machine.resume(&mut self.client, command),
            Asked::Close(ClosePool { grace_ms, .. }) => machine.close(&mut self.client, command, grace_ms),
            Asked::Drain(drain) => machine.drain(&mut self.client, command, &drain),
        }
    }

    fn open(&mut self, command: CommandId, open: OpenPool) {
        if let Err(error) = self.check(&open) {
            return self.client.complete(command, Err(error));
        }
        self.last = self.last.wrapping_add(1);
        let mut machine = Machine::new(self.last, open);
        machine.open(&mut self.client, command);
        self.pools.insert(self.last, machine);
    }

    /// Whether a pool may be opened so.
    fn check(&self, open: &OpenPool) -> Result<(), Error> {
        let refuse = |field: &str, rule: &str| Err(Error::invalid("open_pool", field, rule));
        if self.client.api() != Api::Agent {
            return Err(Error::new(Kind::Misuse, Effect::None, "open_pool", "belongs to the agent API", Advice::ChangeRequest));
        }
        if open.name.chars().any(|c| c.is_control() || c == '#') {
            return refuse("name", "must be without control characters and `#`");
        }
        if open.ready.is_some_and(|ready| ready > open.size) {
            return refuse("ready", "must be at most `size`");
        }
        self.client.check_slot(&json_of(&open.session()), &call_options(open), self.client.has_cap() || open.daily_cap_usd.is_some())?;
        if !self.client.has_cap() && open.daily_cap_usd.is_none() {
            return refuse("daily_cap_usd", "is required of the pool or its client, since a pool buys by itself");
        }
        if self.pools.values().any(|pool| pool.is_named(&open.name)) {
            return refuse("name", "is that of a pool that this client has open");
        }
        Ok(())
    }

    /// Gives a lease back. Whether it was valid.
    pub fn give_back(&mut self, lease: &LeaseRef, now: Now) -> bool {
        self.client.tick(now);
        let valid = self.is_valid(lease);
        if let (Some(machine), Some(lease)) = (self.pools.get_mut(&lease.pool), id_of(lease)) {
            machine.give_back(&mut self.client, lease);
        }
        self.tell_pools();
        valid
    }

    /// Whether what a lease was given for is this client's still.
    pub fn is_valid(&self, lease: &LeaseRef) -> bool {
        let machine = self.pools.get(&lease.pool).zip(id_of(lease));
        machine.is_some_and(|(machine, lease)| machine.is_valid(&self.client, lease))
    }

    /// Claims that have ended while this client lives: of these names, or of all. Leases of what was lost are not valid any more, also where
    /// it is claimed once more: another client may have lent it meanwhile.
    pub fn lost(&mut self, names: Option<&[Name]>, now: Now) {
        self.client.lost(names, now);
        self.pools.values_mut().for_each(|machine| machine.lost(&mut self.client, names));
        self.tell_pools();
    }

    /// Says what was seen through a lease; `wait_ms` is the Retry-After of the target. None where the lease is not valid any more, or its
    /// session has another exit by now.
    pub fn observe_lease(&mut self, lease: &LeaseRef, seen: Seen, wait_ms: Option<Millis>, now: Now) -> Option<LeaseAdvice> {
        self.client.tick(now);
        let machine = self.pools.get_mut(&lease.pool)?;
        let advice = machine.observe(&mut self.client, id_of(lease)?, seen, wait_ms);
        self.tell_pools();
        advice
    }

    /// The same, what was seen as JSON, `{"status":403}` or a word.
    pub fn observe_lease_text(
        &mut self,
        lease: &LeaseRef,
        seen: &str,
        wait_ms: Option<Millis>,
        now: Now,
    ) -> Result<Option<&'static str>, Error> {
        let refuse = |_| Error::invalid("observe", "seen", "must be a status or a word");
        let seen = read_json(seen).map_err(refuse)?;
        Ok(self.observe_lease(lease, seen, wait_ms, now).map(LeaseAdvice::as_str))
    }

    /// How a pool is.
    pub fn status(&self, pool: PoolNo) -> Option<PoolStatus> {
        self.pools.get(&pool).map(|machine| machine.status(&self.client))
    }

    /// What to do next, of the client and of its pools.
    pub fn poll(&mut self, now: Now) -> Step {
        self.client.tick(now);
        while let Some((command, asked)) = self.asked.pop_front() {
            self.carry_out(command, asked);
            self.tell_pools();
        }
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

    /// Stops a command; of one that waits for a pool, the wait.
    pub fn cancel(&mut self, command: CommandId, now: Now) -> Option<StepId> {
        self.client.tick(now);
        if let Some(at) = self.asked.iter().position(|(asked, _)| *asked == command) {
            self.asked.remove(at);
            let operation = self.client.command_operation(command).unwrap_or("acquire");
            let error = Error::new(Kind::Cancelled, Effect::None, operation, "was cancelled before it began", Advice::Nothing);
            self.client.complete(command, Err(error));
            return None;
        }
        for machine in self.pools.values_mut() {
            if machine.leave(&mut self.client, command) {
                machine.turn(&mut self.client);
                self.tell_pools();
                return None;
            }
        }
        self.client.cancel(command, now)
    }

    /// Drops a result, because its caller is gone. A lease goes back, and a pool that nobody knows of is closed.
    pub fn abandon(&mut self, command: CommandId, now: Now) -> bool {
        self.client.tick(now);
        let lease = self.answer_of::<LeaseRef>(command, "acquire");
        let pool = self.answer_of::<PoolRef>(command, "open_pool");
        if let Some(lease) = lease {
            self.give_back(&lease, now);
        }
        if let Some(machine) = pool.and_then(|PoolRef { pool }| self.pools.get_mut(&pool)) {
            machine.close_unheard(&mut self.client);
            self.tell_pools();
        }
        self.client.abandon(command)
    }

    /// The lease that a command has ended with, until its result is taken.
    pub fn lease_of(&self, command: CommandId) -> Option<LeaseRef> {
        self.answer_of(command, "acquire")
    }

    fn answer_of<T: FromJson>(&self, command: CommandId, operation: &str) -> Option<T> {
        let answered = self.client.result(command)?.as_ref().ok()?;
        self.client.command_operation(command).filter(|known| *known == operation)?;
        read_json(answered.raw.text()).ok()
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
        self.pools.retain(|_, machine| !machine.is_closed());
        heard
    }
}

impl From<Client> for PoolClient {
    fn from(client: Client) -> Self {
        PoolClient { client, pools: BTreeMap::new(), last: 0, asked: VecDeque::new() }
    }
}

/// Makes a command's parameters its ticket.
macro_rules! outputs {
    ($($params:ty => $answer:ty),* $(,)?) => {
        $(impl Outputs for $params {
            type Output = $answer;

            fn read(answered: Answered) -> Result<Self::Output, ReadFailure> {
                answered.raw.read().map_err(|error| Box::new((answered, error)))
            }
        })*
    };
}
outputs! {
    OpenPool => OpenedPool, AcquireLease => PoolLease, WaitReady => PoolStatus, PoolStatusOf => PoolStatus, PoolRef => PoolStatus,
}

fn id_of(lease: &LeaseRef) -> Option<LeaseId> {
    LeaseId::try_from(lease.lease).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::{Outcome, Settlement};
    use crate::contract::Secret;
    use crate::contract::agent::SessionType;
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

    fn shop() -> OpenPool {
        OpenPool { name: "shop".into(), size: 1, session_type: SessionType::Dynamic, product_no: "p".into(), ..OpenPool::default() }
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
            let client = PoolClient::new(options, [7; 16]).expect("the options are sound");
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
            (OpenPool { ready: Some(2), ..shop() }, "ready"),
            (OpenPool { ends: Some(vec![String::new()]), ..shop() }, "ends"),
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
        host.pass(1);
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
}
