//! An account and what lets a request of it through: key, standing, permission, rate limit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use http::HeaderMap;
use rust_decimal::Decimal;

use super::Service;
use super::budget::Budget;
use super::call::Call;
use super::envelope::{Code, Refusal};
use super::idempotency;

/// The number of the sandbox's own account; those that are opened later count on from it.
pub(crate) const FIRST_AGENT: u32 = 1001;

/// Order numbers of the static orders that the first account already has at the backend, with their product.
pub(crate) const RESOURCES: &[(&str, &str)] = &[("SO-1001", "static-us"), ("SO-1002", "static-de")];

const MINUTE_MS: i64 = 60_000;

/// An account with its one API key.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) agent_id: u32,
    pub(crate) api_key: Arc<str>,
    pub(crate) name: Option<Arc<str>>,
    pub(crate) balance: Decimal,
    /// The rest of the trial credit, which is part of the balance.
    pub(crate) trial_left: Decimal,
    pub(crate) budget: Budget,
    /// The changed prices as the account was last quoted them.
    pub(crate) quoted: BTreeMap<String, Decimal>,
    pub(crate) answers: idempotency::Store,
    active: bool,
    /// Why it is not synced with the resource backend, when it is not.
    pub(crate) unready: Option<Arc<str>>,
    /// The operations that it lacks the permission for.
    denied: BTreeSet<String>,
    throttle: Throttle,
}

/// The requests that were counted in the running minute of the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Throttle {
    minute: i64,
    used: u32,
}

impl Account {
    pub(crate) fn new(agent_id: u32, api_key: &str, balance: Decimal) -> Self {
        Self {
            agent_id,
            api_key: Arc::from(api_key),
            name: None,
            balance,
            trial_left: Decimal::ZERO,
            budget: Budget::default(),
            quoted: BTreeMap::new(),
            answers: idempotency::Store::default(),
            active: true,
            unready: None,
            denied: BTreeSet::new(),
            throttle: Throttle::default(),
        }
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    fn check_standing(&self, operation: &str) -> Result<(), Refusal> {
        if !self.active {
            return Err(Refusal::new(Code::AccountDisabled, "the agent account is not active"));
        }
        if self.denied.contains(operation) {
            let message = "the account lacks the permission that this route requires";
            return Err(Refusal::new(Code::AuthInsufficientPermission, message).detail("operation", operation));
        }
        Ok(())
    }

    fn throttle(&mut self, limit: u32, now_ms: i64) -> Result<(), Refusal> {
        let minute = now_ms.div_euclid(MINUTE_MS);
        if self.throttle.minute != minute {
            self.throttle = Throttle { minute, used: 0 };
        }
        if self.throttle.used < limit {
            self.throttle.used += 1;
            return Ok(());
        }
        let left_ms = MINUTE_MS - now_ms.rem_euclid(MINUTE_MS);
        let seconds = u32::try_from((left_ms + 999) / 1000).unwrap_or(60);
        Err(Refusal::new(Code::RateLimitExceeded, "too many requests in this minute").retry_after(seconds))
    }
}

impl Service {
    /// The account that a request may act for, by its place in the list.
    pub(crate) fn enter(&mut self, headers: &HeaderMap, operation: &str, now_ms: i64) -> Result<usize, Refusal> {
        let place = self.authenticate(headers)?;
        let limit = self.config.requests_per_minute;
        let account = &mut self.accounts[place];
        account.check_standing(operation)?;
        account.throttle(limit, now_ms)?;
        Ok(place)
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<usize, Refusal> {
        let refused = |code, message: &str| Err(Refusal::new(code, message));
        let bearer = headers.get("Authorization").is_some_and(|value| value.as_bytes().starts_with(b"Bearer "));
        match headers.get("X-API-Key") {
            Some(key) => match self.accounts.iter().position(|account| account.api_key.as_bytes() == key.as_bytes()) {
                Some(place) => Ok(place),
                None => refused(Code::AuthInvalidKey, "X-API-Key does not match an active key"),
            },
            None if bearer => refused(Code::AuthExpiredToken, "the bearer token is invalid or expired"),
            None => refused(Code::AuthInvalidKey, "X-API-Key is missing"),
        }
    }

    pub(crate) fn account(&self, call: &Call<'_>) -> &Account {
        &self.accounts[call.account]
    }

    pub(crate) fn account_mut(&mut self, call: &Call<'_>) -> &mut Account {
        &mut self.accounts[call.account]
    }

    /// Refuses what needs the resource backend while the account is not synced with it.
    pub(crate) fn check_backend(&self, call: &Call<'_>) -> Result<(), Refusal> {
        match &self.account(call).unready {
            Some(reason) => Err(Refusal::new(Code::BackendError, format!("the account is not ready: {reason}"))),
            None => Ok(()),
        }
    }

    /// Says why an account is not synced with the resource backend, or with no reason that it is; false when there is no
    /// account of that number. While it is not, it has no login there.
    pub fn set_unready(&mut self, agent_id: u32, reason: Option<&str>) -> bool {
        self.by_number(agent_id).map(|account| account.unready = reason.map(Arc::from)).is_some()
    }

    /// Sets the reason why accounts that are opened from now on are not ready.
    pub fn set_new_unready(&mut self, reason: Option<&str>) {
        self.new_unready = reason.map(Arc::from);
    }

    /// Enables or disables an account; false when there is none of that number.
    pub fn set_active(&mut self, agent_id: u32, active: bool) -> bool {
        self.by_number(agent_id).map(|account| account.active = active).is_some()
    }

    /// Sets which operations an account lacks the permission for; false when there is no account of that number.
    pub fn set_denied(&mut self, agent_id: u32, operations: BTreeSet<String>) -> bool {
        self.by_number(agent_id).map(|account| account.denied = operations).is_some()
    }

    fn by_number(&mut self, agent_id: u32) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.agent_id == agent_id)
    }
}
