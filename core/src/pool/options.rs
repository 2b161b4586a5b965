//! What a pool is opened with, and what one lease is asked for with.

use crate::contract::agent::CreateSession;
use crate::contract::{Decimal, Operation, json_of};
use crate::policy::Error;
use crate::time::Millis;
use crate::wire::build;

/// What a pool buys, how much of it, and how it lends.
#[derive(Debug, Clone, Default, Hash)]
pub struct PoolOptions {
    /// What each session is.
    pub session: CreateSession,
    /// How many sessions there may be at a time, over all clients of the store: 1 to 1 000 000.
    pub size: u32,
    /// How many free sessions are kept at hand ahead of demand in this client; 0.
    pub ready: u32,
    /// How many purchases may be under way at a time; 8.
    pub max_creating: Option<u32>,
    /// With so many slots in doubt nothing more is bought; a quarter of `size`, at least 2.
    pub max_in_doubt: Option<u32>,
    /// The highest price, in USD for one unit, that is paid.
    pub max_unit_price: Option<Decimal>,
    /// What a purchase is to cost, in USD.
    pub expected_charge_usd: Option<Decimal>,
    /// Whether a purchase that the service failed may be bought again with a new key.
    pub retry_paid: bool,
    /// Further statuses that end a session.
    pub ends: Vec<String>,
    /// How many leases of one session at a time; 1.
    pub leases_per_session: Option<u32>,
    /// After so many uses a dynamic session gets another exit.
    pub rotate_after_uses: Option<u32>,
    /// A session that was idle for so long is let go of, for other clients; 60 000 ms.
    pub idle_release_ms: Option<Millis>,
    /// A session that was not read for so long is read before it is lent; 600 000 ms.
    pub check_after_ms: Option<Millis>,
    /// A lease that is out for so long is said to leak; 600 000 ms.
    pub leak_after_ms: Option<Millis>,
}

/// What a lease is asked for with.
#[derive(Debug, Clone, Default, Hash)]
pub struct Acquire {
    /// What is to be reached, such as a host: what is seen there counts for it alone.
    pub target: Option<String>,
    /// The same key gets the same session, as long as this client has it and its exit has not changed.
    pub key: Option<String>,
    /// How long to wait; 30 000 ms.
    pub timeout_ms: Option<Millis>,
}

impl PoolOptions {
    /// The first option that can't be, and why.
    pub(super) fn refusal(&self) -> Option<(String, String)> {
        let refuse = |field: &str, rule: &str| Some((field.to_owned(), rule.to_owned()));
        let positive = [
            ("max_creating", self.max_creating),
            ("max_in_doubt", self.max_in_doubt),
            ("leases_per_session", self.leases_per_session),
            ("rotate_after_uses", self.rotate_after_uses),
        ];
        let zero = positive.into_iter().find(|(_, value)| *value == Some(0));
        let times =
            [("idle_release_ms", self.idle_release_ms), ("check_after_ms", self.check_after_ms), ("leak_after_ms", self.leak_after_ms)];
        let negative = times.into_iter().find(|(_, ms)| ms.is_some_and(|ms| ms < 0));
        if !(1..=1_000_000).contains(&self.size) {
            return refuse("size", "must be 1 to 1000000");
        }
        if self.ready > self.size {
            return refuse("ready", "must be at most `size`");
        }
        let below = zero.map(|(field, _)| (field, "must be at least 1")).or(negative.map(|(field, _)| (field, "must be at least 0")));
        let unfit = || build(CreateSession::ENDPOINT, &json_of(&self.session)).err().map(|refusal| (refusal.field, refusal.rule));
        below.map_or_else(unfit, |(field, rule)| refuse(field, rule))
    }

    pub(super) fn check(&self) -> Result<(), Error> {
        self.refusal().map_or(Ok(()), |(field, rule)| Err(Error::invalid("open_pool", &field, &rule)))
    }
}
