//! The requests of pools to the client below them, beside those of every caller. The pool reads the results as [`PoolEvent`].

use arcstr::ArcStr;

use crate::client::news::{PoolEvent, PoolNo, SlotState, WorkNo};
use crate::client::public::Client;
use crate::client::text::event::Event;
use crate::contract::pools::SlotPurchase;
use crate::contract::{Api, Decimal};
use crate::engine::{Answered, EventKind, RecordId};
use crate::entropy::Dice;
use crate::options::CallOptions;
use crate::policy::Error;
use crate::state::{CommandId, Name, Space, Version};
use crate::time::Now;

/// Work of a pool's: it hears of its end under the number that it gave.
impl Client {
    /// Starts an operation of the table.
    pub(crate) fn start_for(&mut self, pool: PoolNo, work: WorkNo, operation: &str, params: &str, options: CallOptions) -> CommandId {
        let command = self.start_json(operation, params, options);
        self.asked_by(pool, work, command)
    }

    /// Goes on with what is under a slot; where that is over, or nothing, this is bought.
    pub(crate) fn open_slot(&mut self, pool: PoolNo, work: WorkNo, slot: &str, params: &str, options: CallOptions) -> CommandId {
        let begun = self.route(|router| router.open_slot(slot, params, options));
        let command = begun.unwrap_or_else(|error| self.reject(error, None));
        self.asked_by(pool, work, command)
    }

    /// Goes on with what is under a claimed slot, and buys nothing.
    pub(crate) fn resume_slot(&mut self, pool: PoolNo, work: WorkNo, name: &Name, options: CallOptions) -> CommandId {
        let command = self.resume(&name.at(Version::default()), options);
        self.asked_by(pool, work, command)
    }

    /// Goes on with a renewal that is in doubt.
    pub(crate) fn resume_for(&mut self, pool: PoolNo, work: WorkNo, record: &RecordId) -> CommandId {
        let command = self.resume(record, CallOptions::default());
        self.asked_by(pool, work, command)
    }

    fn asked_by(&mut self, pool: PoolNo, work: WorkNo, command: CommandId) -> CommandId {
        self.router.asked_by(pool, work, command);
        command
    }

    /// Cancels a purchase of which nothing was put, so that nothing of it was sent either.
    pub(crate) fn withdraw(&mut self, pool: PoolNo, work: WorkNo) {
        if let Some(command) = self.router.commands.of_pool(pool, work) {
            self.route(|router| router.withdraw(command));
        }
    }
}

/// Callers' commands that a pool carries out.
impl Client {
    /// A command of the pool's own, which the client knows nothing of.
    pub(crate) fn command_for(&mut self, operation: &'static str) -> CommandId {
        self.router.command_for(operation)
    }

    /// Returns true if a command ends sessions, which cost money until then: a client that is closed still carries it out.
    pub fn ends_sessions(&self, command: CommandId) -> bool {
        matches!(self.command_operation(command), Some("terminate_session" | "drain_pool"))
    }

    /// Gives a command its result.
    pub(crate) fn complete(&mut self, command: CommandId, result: Result<Answered, Error>) {
        self.route(|router| router.complete(command, result));
    }

    /// Returns the next event for a pool.
    pub(crate) fn next_news(&mut self) -> Option<PoolEvent> {
        self.router.news.pop_front()
    }

    /// Says what is new of a pool.
    pub(crate) fn notify_of_pool(&mut self, pool: &str, what: EventKind) {
        let event = Event { command: None, operation: "open_pool", intent: Some(format!("pool/{pool}")), what };
        self.router.outbox.notify(event);
    }
}

/// The record of a pool.
impl Client {
    /// Its name.
    pub(crate) fn pool_name(&self, pool: &str) -> Name {
        self.router.account.space().pool(pool)
    }

    /// Claims it.
    pub(crate) fn claim_pool(&mut self, pool: PoolNo, name: &Name) {
        self.router.claim_pool(pool, name);
    }

    /// Puts it and lets go of it.
    pub(crate) fn put_pool(&mut self, pool: PoolNo, name: &Name, data: Vec<u8>) {
        self.router.put_pool(pool, name, data);
    }

    /// Lets go of it, as it is.
    pub(crate) fn release_pool(&mut self, pool: PoolNo, name: &Name) {
        self.router.release_pool(pool, name);
    }

    /// Lists a page of what the store holds behind a name.
    pub(crate) fn list_for(&mut self, pool: PoolNo, after: Option<Name>) {
        self.router.list_for(pool, after);
    }
}

/// The slots of a pool.
impl Client {
    /// The name of a slot.
    pub(crate) fn slot_name(&self, slot: &str) -> Name {
        self.router.account.space().slot(slot)
    }

    /// Claims slots, at most `most` of these, those with something under them first. The pool hears which the store was asked for: not those
    /// that this client has, or is letting go of.
    pub(crate) fn claim_slots(&mut self, pool: PoolNo, names: Vec<Name>, most: u32) {
        self.router.claim_slots(pool, names, most);
    }

    /// Lets go of a slot that was claimed and not opened.
    pub(crate) fn release_slot(&mut self, name: &Name) {
        self.route(|router| router.release_slot(name));
    }

    /// Returns an error if no purchase for a slot may be made with this request.
    pub(crate) fn check_slot(&self, params: &str, options: &CallOptions, has_cap: bool) -> Result<(), Error> {
        crate::client::sessions::pool_slots::check_slot(params, options, has_cap)
    }

    /// Returns true if a claimed slot holds a session, or a purchase, of another request than this; quantity and duration do not count.
    pub(crate) fn is_slot_of_another(&self, name: &Name, params: &str) -> bool {
        self.router.is_slot_of_another(name, params)
    }

    /// Reads the content of a slot from its record.
    pub(crate) fn slot_in(&mut self, data: &[u8]) -> SlotState {
        self.router.slot_in(data)
    }
}

/// The facts for pools.
impl Client {
    /// The time is this.
    pub(crate) fn tick(&mut self, now: Now) {
        self.router.tick(now);
    }

    /// The time that it was given last.
    pub(crate) fn now(&self) -> Now {
        self.router.clock().now()
    }

    /// The space of this client's names.
    pub(crate) fn space(&self) -> &Space {
        self.router.account.space()
    }

    pub(crate) fn api(&self) -> Api {
        self.router.api()
    }

    /// Dice of its own for a pool.
    pub(crate) fn dice(&mut self) -> Dice {
        self.router.shared.rng.dice()
    }

    /// A text that no other client has.
    pub(crate) fn any_mark(&mut self) -> String {
        self.router.shared.rng.any_mark()
    }

    pub(crate) fn has_cap(&self) -> bool {
        self.router.spending.has_cap()
    }

    /// A pool is open, which has this cap of its own, or none.
    pub(crate) fn set_pool_cap(&mut self, pool: &str, cap: Option<Decimal>) {
        self.router.spending.open_pool(pool, cap);
    }

    /// Forgets the cap of a closed pool. Its entries that change later are set wherever they may count.
    pub(crate) fn forget_pool_cap(&mut self, pool: &str) {
        self.router.spending.close_pool(pool);
    }

    #[cfg(test)]
    pub(crate) fn pool_caps(&self) -> usize {
        self.router.spending.pools()
    }

    /// The id of a session, the very text that this client knows it by.
    pub(crate) fn shared_id(&self, session: &str) -> ArcStr {
        self.router.sessions.shared_id(session)
    }

    /// The notes of its pool of a session, made here or in another client.
    pub(crate) fn pool_notes(&self, session: &str) -> Option<&str> {
        self.router.sessions.pool_notes(session)
    }

    /// Notes this of a session, for whoever takes it over; it is written now, or with the next put of its record.
    pub(crate) fn set_pool_notes(&mut self, session: &str, notes: Option<String>, writes: bool) {
        self.route(|router| {
            if router.sessions.set_pool_notes(session, notes) && writes {
                router.put_session(session);
            }
        });
    }

    /// The number of a session's purchase in its slot.
    pub(crate) fn purchase_number(&self, session: &str) -> Option<i64> {
        i64::try_from(self.slot_purchase(session)?.number).ok()
    }

    fn slot_purchase(&self, session: &str) -> Option<SlotPurchase<'_>> {
        SlotPurchase::of(self.router.sessions.bought_as(session)?.intent.as_deref()?)
    }

    /// Returns true if a session is this client's, and can be used as far as is known.
    pub(crate) fn is_usable(&self, session: &str) -> bool {
        self.router.sessions.name(session).is_some() && !self.router.sessions.is_over(session)
    }

    /// Returns true if a session is known to be over.
    pub(crate) fn is_over(&self, session: &str) -> bool {
        self.router.sessions.is_over(session)
    }

    /// Returns true if a session has expired, and may be renewed.
    pub(crate) fn is_expired(&self, session: &str) -> bool {
        self.router.sessions.is_expired(session)
    }
}
