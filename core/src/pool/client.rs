//! The client with its pools: what a host drives. Pools are asked by commands like all others, which are carried out by the next poll.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Deref, DerefMut};

use super::leases::LeaseId;
use super::machine::{FoundSlot, ListedPage, Machine, PoolAction, PoolInput, call_options, is_closed};
use super::notes::refusal;
use super::others::SeenSlot;
use super::survey::{SURVEY, Survey};
use crate::client::{
    CallOptions, Cheapest, Client, ClientOptions, Driven, Outputs, PoolEventKind, PoolNo, ReadFailure, Step, StepId, Ticket,
};
use crate::contract::pools::{
    AcquireLease, ClosePool, DrainPool, JoinPool, KnownPools, LeaseAdvice, LeaseRef, OpenPool, OpenedPool, PoolLease, PoolRef, PoolStatus,
    PoolStatusOf, WaitReady,
};
use crate::contract::{Api, Json, Shaped, json_of};
use crate::engine::Answered;
use crate::json::{FromJson, pick, read_json};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Name, Seen, Whose};
use crate::time::{Millis, Now};
use crate::wire::{Facts, Refusal, params_of};

/// A client with pools.
#[derive(Debug)]
pub struct PoolClient {
    client: Client,
    pools: BTreeMap<PoolNo, Machine>,
    last: PoolNo,
    /// The requests to pools since the last poll.
    asked: VecDeque<(CommandId, Asked)>,
    survey: Survey,
}

/// A request to a pool.
#[derive(Debug)]
enum Asked {
    Open(Box<OpenPool>),
    Join(JoinPool),
    List,
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
            let refuse = |refusal: Refusal| Error::invalid(operation, &refusal.field, &refusal.rule);
            let params = params_of(params).map_err(|refusal| refuse(refusal.naming_product(params)));
            (operation, params.map(asked))
        }
        Some(match operation {
            "open_pool" => match with_choice(params) {
                Ok(params) => read("open_pool", &params, |open| Asked::Open(Box::new(open))),
                Err(error) => ("open_pool", Err(error)),
            },
            "join_pool" => read("join_pool", params, Asked::Join),
            "list_pools" => ("list_pools", Ok(Asked::List)),
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
            Asked::Open(_) | Asked::Join(_) | Asked::List => None,
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

/// The parameters of a pool, with what stands for its product where that is chosen for each purchase.
fn with_choice(params: &str) -> Result<Cow<'_, str>, Error> {
    let Some([Some(product)]) = pick(params, ["product"]).filter(|[product]| *product != Some("null")) else { return Ok(params.into()) };
    let laid = match read_json::<Cheapest>(product) {
        Ok(product) => product.refusal().map_or_else(|| product.lay_over(params), Err),
        Err(_) => Err("must be a choice of a product, as `cheapest` makes it"),
    };
    laid.map(Cow::from).map_err(|rule| Error::invalid("open_pool", "product", rule))
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

    /// Opens a pool. Nothing is bought before somebody waits for a lease, but what `keep_ready` asks for.
    pub fn open_pool(&mut self, open: OpenPool) -> Ticket<OpenPool> {
        Ticket::of(self.start_json("open_pool", &json_of(&open), CallOptions::default()))
    }

    /// Joins a pool that others have opened, to read its status, pause, resume or drain it. A joined pool neither lends nor buys.
    pub fn join_pool(&mut self, join: JoinPool) -> Ticket<JoinPool> {
        Ticket::of(self.start_json("join_pool", &json_of(&join), CallOptions::default()))
    }

    /// The pools that the store keeps, whoever has opened them.
    pub fn list_pools(&mut self) -> Ticket<KnownPools> {
        Ticket::of(self.start_json("list_pools", "{}", CallOptions::default()))
    }

    /// Acquires a lease, and waits until a session is free. The caller that takes the lease gives it back.
    pub fn acquire(&mut self, acquire: AcquireLease) -> Ticket<AcquireLease> {
        Ticket::of(self.start_json("acquire", &json_of(&acquire), CallOptions::default()))
    }

    /// Lends no more, waits for leases, and releases all slots. Sessions live on.
    pub fn close_pool(&mut self, close: ClosePool) -> CommandId {
        self.start_json("close_pool", &json_of(&close), CallOptions::default())
    }

    /// Starts an operation, as [`Client::start_json`] does, or one of a pool: `open_pool` ([`OpenPool`]), `acquire` ([`AcquireLease`]),
    /// `wait_ready` ([`WaitReady`]), `pool_status`, `pause_pool` and `resume_pool` ([`PoolRef`]), `close_pool` ([`ClosePool`]) and
    /// `drain_pool` ([`DrainPool`]); `join_pool` ([`JoinPool`]) for a pool of other programs, and `list_pools` ([`KnownPools`]).
    pub fn start_json(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
        let Some((operation, asked)) = Asked::of(operation, params) else {
            return self.client.start_json(operation, params, options);
        };
        let command = self.client.command_for(operation);
        match asked {
            _ if options != CallOptions::default() => {
                let what = "does not take the options of a request; the settings of a pool are among its parameters";
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
        let asked = match asked {
            Asked::Open(open) => return self.open(command, *open),
            Asked::Join(join) => return self.join(command, join),
            Asked::List => return self.survey.ask(&mut self.client, command),
            asked => asked,
        };
        let Some(pool) = asked.pool().filter(|pool| self.pools.contains_key(pool)) else {
            let operation = self.client.command_operation(command).unwrap_or("acquire");
            // A closed pool can be closed again; a drain would end nothing.
            let is_closing = matches!(asked, Asked::Close(_));
            return self.client.complete(command, if is_closing { Ok(Answered::of(Facts::default())) } else { Err(is_closed(operation)) });
        };
        self.tell(pool, |machine, client| match asked {
            Asked::Open(_) | Asked::Join(_) | Asked::List => {}
            Asked::Acquire(acquire) => machine.acquire(client, command, &acquire),
            Asked::WaitReady(wait) => machine.wait_ready(client, command, &wait),
            Asked::Status(asked) => machine.tell_status(client, command, &asked),
            Asked::Pause(_) => machine.pause(client, command),
            Asked::Resume(_) => machine.resume(client, command),
            Asked::Close(ClosePool { grace_ms, .. }) => machine.close(client, command, grace_ms),
            Asked::Drain(drain) => machine.drain(client, command, &drain),
        });
    }

    fn open(&mut self, command: CommandId, mut open: OpenPool) {
        // The smaller one of two limits holds.
        let limits = [open.max_unit_price, open.product.as_ref().and_then(|product| product.max_unit_price)];
        open.max_unit_price = limits.into_iter().flatten().min();
        if let Err(error) = self.check(&open) {
            return self.client.complete(command, Err(error));
        }
        self.client.set_pool_cap(&open.name, open.daily_cap_usd);
        let number = self.next_number();
        let (mark, dice) = (self.client.any_mark(), self.client.dice());
        let machine = Machine::new(number, open, self.client.space().clone(), mark, dice);
        self.begin(command, number, machine);
    }

    fn join(&mut self, command: CommandId, JoinPool { name }: JoinPool) {
        if self.client.api() != Api::Agent {
            return self.client.complete(command, Err(no_agent("join_pool")));
        }
        if self.is_open(&name) {
            return self.client.complete(command, Err(Error::invalid("join_pool", "name", IS_OPEN)));
        }
        let number = self.next_number();
        let dice = self.client.dice();
        let machine = Machine::joining(number, name, self.client.space().clone(), dice);
        self.begin(command, number, machine);
    }

    fn next_number(&mut self) -> PoolNo {
        self.last = self.last.wrapping_add(1).max(SURVEY + 1);
        self.last
    }

    fn begin(&mut self, command: CommandId, number: PoolNo, machine: Machine) {
        self.pools.insert(number, machine);
        self.tell(number, |machine, client| machine.open(client, command));
    }

    fn is_open(&self, name: &str) -> bool {
        self.pools.values().any(|pool| pool.is_named(name))
    }

    /// Checks that a pool may be opened with this request.
    fn check(&self, open: &OpenPool) -> Result<(), Error> {
        let refuse = |field: &str, rule: &str| Err(Error::invalid("open_pool", field, rule));
        if self.client.api() != Api::Agent {
            return Err(no_agent("open_pool"));
        }
        if open.name.chars().any(|c| c.is_control() || matches!(c, '#' | '/')) {
            return refuse("name", "must be without control characters, `/` and `#`");
        }
        if open.keep_ready.is_some_and(|ready| ready > open.size) {
            return refuse("keep_ready", "must be at most `size`");
        }
        self.client.check_slot(&json_of(&open.session()), &call_options(open), self.client.has_cap() || open.daily_cap_usd.is_some())?;
        if !self.client.has_cap() && open.daily_cap_usd.is_none() {
            return refuse("daily_cap_usd", "is required for the pool or its client, since a pool buys by itself");
        }
        if open.renew_duration.is_some() && !self.client.has_cap() {
            return refuse("renew_duration", "needs a daily cap of the client, since renewals count there and not under the pool's own");
        }
        if self.is_open(&open.name) {
            return refuse("name", IS_OPEN);
        }
        Ok(())
    }

    /// Gives a lease back. Returns true if it was valid.
    pub fn give_back(&mut self, lease: &LeaseRef, now: Now) -> bool {
        self.client.tick(now);
        let valid = self.is_valid(lease);
        self.tell_of_lease(lease, |machine, client, lease| machine.give_back(client, lease));
        self.tell_pools();
        valid
    }

    /// Discards the session of a lease: no pool of this client lends it again. Once its leases were given back, a dynamic session is
    /// terminated, and so is a static one where the pool's `replace` is not `never`; its slot is then bought for anew where `replace` says
    /// so. The lease is still to be given back. Returns true if it was valid.
    pub fn discard(&mut self, lease: &LeaseRef, now: Now) -> bool {
        self.client.tick(now);
        let valid = self.tell_of_lease(lease, |machine, client, lease| machine.discard(client, lease)).unwrap_or_default();
        self.tell_pools();
        valid
    }

    /// Keeps data of the caller's for whoever gets this exit next, here or in another client: an object of JSON of at most 4 KB, which
    /// replaces that of the grant. They are written when the lease is given back, and dropped when the exit changes.
    pub fn set_lease_data(&mut self, lease: &LeaseRef, data: &str, now: Now) -> Result<(), Error> {
        self.client.tick(now);
        if let Some(rule) = refusal(data) {
            return Err(Error::invalid("lease_data", "data", &rule));
        }
        let kept = self.tell_of_lease(lease, |machine, client, lease| machine.set_data(client, lease, Json::checked(data)));
        kept.flatten().ok_or_else(|| {
            let what = "the lease is not valid any more, so its data are not kept; acquire another one";
            Error::new(Kind::Misuse, Effect::None, "lease_data", what, Advice::ChangeRequest)
        })
    }

    /// Returns true if the lease is still this client's.
    pub fn is_valid(&self, lease: &LeaseRef) -> bool {
        let machine = self.pools.get(&lease.pool).zip(id_of(lease));
        machine.is_some_and(|(machine, lease)| machine.is_valid(&self.client, lease))
    }

    /// Claims that have ended while this client lives: of these names, or of all. Leases of what was lost are not valid any more, also where
    /// it is claimed once more: another client may have lent it meanwhile.
    pub fn lost(&mut self, names: Option<&[Name]>, now: Now) {
        self.client.lost(names, now);
        for pool in self.pools.keys().copied().collect::<Vec<_>>() {
            self.tell(pool, |machine, client| machine.lost(client, names));
        }
        self.tell_pools();
    }

    /// Says what was seen through a lease; `wait_ms` is the Retry-After of the target. None where the lease is not valid any more, or its
    /// session has another exit by now.
    pub fn observe_lease(&mut self, lease: &LeaseRef, seen: Seen, wait_ms: Option<Millis>, now: Now) -> Option<LeaseAdvice> {
        self.client.tick(now);
        let advice = self.tell_of_lease(lease, |machine, client, lease| machine.observe(client, lease, seen, wait_ms));
        self.tell_pools();
        advice.flatten()
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

    /// When a session may do again for the target of a lease, in Unix time: the time to come back at after the advice `wait`.
    pub fn retry_at(&self, lease: &LeaseRef) -> Option<Millis> {
        self.pools.get(&lease.pool)?.retry_at(id_of(lease)?, self.client.now())
    }

    /// How a pool is.
    pub fn status(&self, pool: PoolNo) -> Option<PoolStatus> {
        self.pools.get(&pool).map(|machine| machine.status(&self.client, self.client.now()))
    }

    /// Returns the next step of the client and its pools.
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
                self.tell(pool, Machine::turn);
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
        if self.survey.leave(&mut self.client, command) {
            return None;
        }
        for pool in self.pools.keys().copied().collect::<Vec<_>>() {
            if self.tell(pool, |machine, client| machine.leave(client, command)) == Some(true) {
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
        let pool = self.answer_of::<PoolRef>(command, "open_pool").or_else(|| self.answer_of(command, "join_pool"));
        if let Some(lease) = lease {
            self.give_back(&lease, now);
        }
        if let Some(PoolRef { pool }) = pool {
            self.tell(pool, Machine::close_unheard);
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

    /// Tells a pool something, and carries out what it asks for then. None where it is not open.
    fn tell<T>(&mut self, pool: PoolNo, what: impl FnOnce(&mut Machine, &mut Client) -> T) -> Option<T> {
        let machine = self.pools.get_mut(&pool)?;
        machine.now = self.client.now();
        let said = what(machine, &mut self.client);
        for action in machine.take_actions() {
            carry_out(&mut self.client, pool, machine.name(), action);
        }
        Some(said)
    }

    /// Tells its pool something about a lease.
    fn tell_of_lease<T>(&mut self, lease: &LeaseRef, what: impl FnOnce(&mut Machine, &mut Client, LeaseId) -> T) -> Option<T> {
        let id = id_of(lease)?;
        self.tell(lease.pool, |machine, client| what(machine, client, id))
    }

    /// Passes the client's events on to the pools, until there are none. Returns true if there were any.
    fn tell_pools(&mut self) -> bool {
        let mut heard = false;
        while let Some(news) = self.client.next_news() {
            heard = true;
            match news.what {
                PoolEventKind::Listed(page) if news.pool == SURVEY => self.survey.listed(&mut self.client, page),
                what => {
                    _ = self.tell(news.pool, |machine, client| {
                        if let Some(input) = input_of(client, machine, what) {
                            machine.on_input(client, input);
                        }
                    });
                }
            }
        }
        let closed: Vec<String> =
            self.pools.extract_if(.., |_, machine| machine.is_closed()).map(|(_, machine)| machine.name().to_owned()).collect();
        for name in closed {
            if !self.pools.values().any(|machine| machine.name() == name) {
                self.client.forget_pool_cap(&name);
            }
        }
        heard
    }
}

impl Driven for PoolClient {
    fn poll(&mut self, now: Now) -> Step {
        PoolClient::poll(self, now)
    }

    fn client(&mut self) -> &mut Client {
        &mut self.client
    }
}

impl From<Client> for PoolClient {
    fn from(client: Client) -> Self {
        PoolClient { client, pools: BTreeMap::new(), last: 0, asked: VecDeque::new(), survey: Survey::default() }
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
    OpenPool => OpenedPool, JoinPool => OpenedPool, KnownPools => KnownPools, AcquireLease => PoolLease, WaitReady => PoolStatus, PoolStatusOf => PoolStatus, PoolRef => PoolStatus,
}

const IS_OPEN: &str = "belongs to a pool that this client already has open";

/// The news of the client, as a pool is told them.
fn input_of(client: &mut Client, machine: &Machine, what: PoolEventKind) -> Option<PoolInput> {
    Some(match what {
        PoolEventKind::Claimed { asked, found } => {
            let found = found.into_iter().map(|(name, state)| {
                let is_of_another = client.is_slot_of_another(&name, machine.request());
                FoundSlot { name, state, is_of_another }
            });
            PoolInput::Claimed { asked, found: found.collect() }
        }
        PoolEventKind::NotClaimed => PoolInput::NotClaimed,
        PoolEventKind::Ended(work, command) => PoolInput::Ended(work, client.take_answer(command)?),
        PoolEventKind::Charged(usd) => PoolInput::Charged(usd),
        PoolEventKind::Found(found) => PoolInput::Found(found),
        PoolEventKind::Put(is_done) => PoolInput::Put(is_done),
        PoolEventKind::Listed(page) => PoolInput::Listed(page.map(|(entries, more)| {
            let after = entries.last().filter(|_| more).map(|last| last.name.clone());
            let own = entries.into_iter().filter(|listed| machine.reads(&listed.name));
            let seen = own.map(|listed| match listed.whose {
                Whose::Other => (listed.name, SeenSlot::WithOthers),
                Whose::Mine | Whose::Free => (listed.name, SeenSlot::of(client.slot_in(&listed.data))),
            });
            ListedPage { slots: seen.collect(), after }
        })),
    })
}

/// Carries out what a pool asks for.
fn carry_out(client: &mut Client, pool: PoolNo, name: &str, action: PoolAction) {
    match action {
        PoolAction::Complete(command, result) => client.complete(command, *result),
        PoolAction::Notify(what) => client.notify_of_pool(name, what),
        PoolAction::Start { work, operation, params, options } => _ = client.start_for(pool, work, operation, &params, *options),
        PoolAction::OpenSlot { work, slot, params, options } => _ = client.open_slot(pool, work, &slot, &params, *options),
        PoolAction::ResumeSlot { work, name, options } => _ = client.resume_slot(pool, work, &name, *options),
        PoolAction::ResumeRenewal { work, record } => _ = client.resume_for(pool, work, &record),
        PoolAction::Withdraw(work) => client.withdraw(pool, work),
        PoolAction::ClaimSlots { names, most } => client.claim_slots(pool, names, most),
        PoolAction::ReleaseSlot(slot) => client.release_slot(&slot),
        PoolAction::ReleaseSession(session) => _ = client.release_session(&session),
        PoolAction::SetNotes { session, notes, writes } => client.set_pool_notes(&session, notes, writes),
        PoolAction::ClaimRecord => client.claim_pool(pool, &client.pool_name(name)),
        PoolAction::PutRecord(data) => client.put_pool(pool, &client.pool_name(name), data),
        PoolAction::ReleaseRecord => client.release_pool(pool, &client.pool_name(name)),
        PoolAction::List(after) => client.list_for(pool, after),
    }
}

fn no_agent(operation: &'static str) -> Error {
    Error::new(Kind::Misuse, Effect::None, operation, "belongs to the agent API", Advice::ChangeRequest)
}

fn id_of(lease: &LeaseRef) -> Option<LeaseId> {
    LeaseId::try_from(lease.lease).ok()
}

#[cfg(test)]
mod tests;
