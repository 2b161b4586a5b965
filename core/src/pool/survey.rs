//! The pools of a store, for callers that have not opened them.

use std::collections::BTreeMap;

use super::others::SeenSlot;
use super::record::PoolRecord;
use crate::client::{Client, PoolNo};
use crate::contract::pools::{KnownPool, KnownPools, SlotPurchase};
use crate::contract::{Json, Shaped, json_of};
use crate::engine::Answered;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, Listed, Whose, describe};
use crate::wire::Facts;

/// The number that no pool has: what is listed under it is the survey's.
pub(super) const SURVEY: PoolNo = 0;

/// A list of all pools, while the store is read.
#[derive(Debug, Default)]
pub(super) struct Survey {
    /// The commands that asked for it.
    asks: Vec<CommandId>,
    /// True if a page is being read.
    is_out: bool,
    pools: BTreeMap<String, KnownPool>,
}

impl Survey {
    /// Adds a command that lists the pools.
    pub(super) fn ask(&mut self, client: &mut Client, command: CommandId) {
        self.asks.push(command);
        if !self.is_out {
            self.pools.clear();
            self.is_out = true;
            client.list_for(SURVEY, None);
        }
    }

    /// Cancels a command's wait. Returns true if it did wait.
    pub(super) fn leave(&mut self, client: &mut Client, command: CommandId) -> bool {
        let Some(at) = self.asks.iter().position(|known| *known == command) else { return false };
        self.asks.remove(at);
        let error = Error::new(Kind::Cancelled, Effect::None, "list_pools", "was cancelled before the store was read", Advice::Nothing);
        client.complete(command, Err(error));
        true
    }

    /// A page of what the store holds.
    pub(super) fn listed(&mut self, client: &mut Client, page: Option<(Vec<Listed>, bool)>) {
        self.is_out = false;
        let Some((entries, more)) = page else {
            for command in std::mem::take(&mut self.asks) {
                let what = "could not be done, because the store could not be read";
                client.complete(command, Err(Error::new(Kind::Store, Effect::None, "list_pools", what, Advice::MendStore)));
            }
            return;
        };
        for listed in &entries {
            match listed.name.is_a_pool() {
                true => self.take_in(client, &listed.data),
                false => self.count(client, listed),
            }
        }
        if let Some(last) = entries.last().filter(|_| more && !self.asks.is_empty()) {
            self.is_out = true;
            return client.list_for(SURVEY, Some(last.name.clone()));
        }
        // A pool that only its slots mention existed once, and its record is gone.
        let pools = std::mem::take(&mut self.pools).into_values().filter(|pool| pool.size > 0).collect();
        let known = KnownPools { pools };
        for command in std::mem::take(&mut self.asks) {
            let shape = const { &KnownPools::SHAPE };
            client.complete(command, Ok(Answered { raw: Json::checked(json_of(&known)), shape, ..Answered::of(Facts::default()) }));
        }
    }

    fn pool(&mut self, name: &str) -> &mut KnownPool {
        let empty = || KnownPool { name: name.to_owned(), size: 0, mine: 0, with_others: 0, free_in_store: 0, in_doubt: 0, hold: None };
        self.pools.entry(name.to_owned()).or_insert_with(empty)
    }

    fn take_in(&mut self, client: &Client, data: &[u8]) {
        let Some(record) = PoolRecord::read(data) else { return };
        let pool = self.pool(&record.name);
        pool.size = record.size;
        let hold = record.buying.hold.map(|hold| hold.reason.told(hold.since, hold.retry_at));
        pool.hold = record.forbids_buying().map(|reason| reason.told(client.now().unix, None)).or(hold);
    }

    fn count(&mut self, client: &mut Client, listed: &Listed) {
        let Some(intent) = describe(&listed.data).and_then(|known| known.intent) else { return };
        // Only under its own name it is the slot of a pool.
        let Some(purchase) = SlotPurchase::of(&intent).filter(|purchase| client.slot_name(purchase.slot) == listed.name) else { return };
        let seen = SeenSlot::of(client.slot_in(&listed.data));
        let pool = self.pool(purchase.pool());
        match (listed.whose, seen) {
            (Whose::Mine | Whose::Free, SeenSlot::Empty) => {}
            (Whose::Mine, _) => pool.mine += 1,
            (Whose::Other, _) => pool.with_others += 1,
            (Whose::Free, SeenSlot::InDoubt) => pool.in_doubt += 1,
            (Whose::Free, _) => pool.free_in_store += 1,
        }
    }
}
