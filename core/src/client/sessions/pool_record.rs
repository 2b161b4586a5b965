//! The record of a pool, for the pool: read and changed by steps of its own, since no command waits under its name.

use crate::client::news::{PoolEvent, PoolEventKind, PoolFound, PoolNo};
use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::state::{Listed, Name, StoreAnswer, StoreCall};

impl Router {
    /// Claims the record, of which the pool hears.
    pub(crate) fn claim_pool(&mut self, pool: PoolNo, name: &Name) {
        self.push_store(Pending::PoolClaim(pool), None, StoreCall::Claim { names: vec![name.clone()], most: 1 });
    }

    /// Puts it, of which the pool hears. The record stays: a pool that was paused is not opened as a new one later.
    pub(crate) fn put_pool(&mut self, pool: PoolNo, name: &Name, data: Vec<u8>) {
        let call = StoreCall::Put { name: name.clone(), data, new: false, keep_for: None, release: true };
        self.push_store(Pending::PoolPut(pool), None, call);
    }

    /// Lets go of it, as it is.
    pub(crate) fn release_pool(&mut self, pool: PoolNo, name: &Name) {
        self.push_store(Pending::PoolPut(pool), None, StoreCall::Release { names: Some(vec![name.clone()]) });
    }

    /// Lists a page of what the store holds behind a name, of which the pool hears.
    pub(crate) fn list_for(&mut self, pool: PoolNo, after: Option<Name>) {
        let call = StoreCall::List { space: self.account.space().clone(), after, open: false };
        self.push_store(Pending::PoolList(pool), None, call);
    }

    pub(crate) fn on_pool_claimed(&mut self, pool: PoolNo, answer: StoreAnswer) {
        let found = match answer {
            StoreAnswer::Claimed(mut granted) => match granted.pop() {
                Some((_, data)) => PoolFound::Mine(data),
                None => PoolFound::Failed,
            },
            StoreAnswer::Busy(data) => PoolFound::Others(data),
            _ => PoolFound::Failed,
        };
        self.news.push_back(PoolEvent { pool, what: PoolEventKind::Found(found) });
    }

    pub(crate) fn on_pool_put(&mut self, pool: PoolNo, answer: &StoreAnswer) {
        self.news.push_back(PoolEvent { pool, what: PoolEventKind::Put(*answer == StoreAnswer::Done) });
    }

    pub(crate) fn on_pool_listed(&mut self, pool: PoolNo, answer: StoreAnswer) {
        let page: Option<(Vec<Listed>, bool)> =
            if let StoreAnswer::Listed { entries, more } = answer { Some((entries, more)) } else { None };
        self.news.push_back(PoolEvent { pool, what: PoolEventKind::Listed(page) });
    }
}
