//! Resellers and their sub-users: who is who, who may see whom, and whose money it is.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::call::{Call, Owner};
use super::envelope::{forbidden, refused};
use crate::service::envelope::{Number, Refusal, Reply};
use crate::service::{Service, ids};

/// The number of the first sub-user; the next count on from it.
const FIRST_USER: u32 = 200_001;

/// A sub-user.
#[derive(Clone, Debug)]
pub(crate) struct User {
    /// The place of its reseller among the accounts.
    pub(super) agent: usize,
    pub(super) username: Arc<str>,
    pub(super) password: Arc<str>,
    pub(super) email: Option<Arc<str>>,
    pub(super) phone: Option<Arc<str>>,
    pub(super) remark: Option<Arc<str>>,
    pub(super) is_disabled: bool,
    pub(super) is_deleted: bool,
    pub(super) balance: Decimal,
    pub(super) total_recharge: Decimal,
    pub(super) total_consumption: Decimal,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
}

#[derive(Serialize)]
struct Balance<'a> {
    user_id: u32,
    username: &'a str,
    balance: Number,
    currency: &'static str,
}

/// The balance of whoever asks.
pub(crate) fn balance(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let balance = Balance {
        user_id: service.id_of(call.caller),
        username: &service.name_of(call.caller),
        balance: Number(service.balance_of(call.caller)),
        currency: "USD",
    };
    Ok(Reply::new(200, &balance))
}

/// The number that a text names. A whole number that is nobody's, negative or however long, is 0, which is nobody's either.
pub(super) fn number(field: &str, text: &str) -> Result<u32, Refusal> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return Err(Refusal::invalid(field, "must be a whole number"));
    }
    Ok(text.parse().unwrap_or(0))
}

impl User {
    pub(super) fn status(&self) -> &'static str {
        match (self.is_deleted, self.is_disabled) {
            (true, _) => "deleted",
            (_, true) => "disabled",
            _ => "active",
        }
    }
}

impl Service {
    pub(super) fn id_of(&self, owner: Owner) -> u32 {
        match owner.user {
            Some(user) => user_id(user),
            None => self.accounts[owner.agent].agent_id,
        }
    }

    /// The user name to log in with.
    pub(super) fn name_of(&self, owner: Owner) -> Arc<str> {
        match owner.user {
            Some(user) => self.backend.users[user].username.clone(),
            None if owner.agent == 0 => Arc::from("reseller"),
            None => Arc::from(format!("reseller-{}", self.accounts[owner.agent].agent_id)),
        }
    }

    pub(super) fn password_of(&self, owner: Owner) -> Arc<str> {
        match owner.user {
            Some(user) => self.backend.users[user].password.clone(),
            None => Arc::from(ids::token(self.config.seed, ids::BACKEND_LOGIN, owner.agent as u64)),
        }
    }

    pub(super) fn balance_of(&self, owner: Owner) -> Decimal {
        match owner.user {
            Some(user) => self.backend.users[user].balance,
            None => self.accounts[owner.agent].balance,
        }
    }

    /// Every reseller and every user that is not deleted.
    pub(super) fn owners(&self) -> impl Iterator<Item = Owner> {
        let agents = (0..self.accounts.len()).map(|agent| Owner { agent, user: None });
        let users = self.backend.users.iter().enumerate().filter(|(_, user)| !user.is_deleted);
        agents.chain(users.map(|(place, user)| Owner { agent: user.agent, user: Some(place) }))
    }

    pub(super) fn by_id(&self, id: u32) -> Option<Owner> {
        self.owners().find(|owner| self.id_of(*owner) == id)
    }

    pub(super) fn by_login(&self, username: &str, password: &str) -> Option<Owner> {
        self.owners().find(|owner| *self.name_of(*owner) == *username && *self.password_of(*owner) == *password)
    }

    /// A direct subordinate of the caller, by its number as text.
    pub(super) fn subordinate(&self, call: &Call<'_>, field: &str, id: &str) -> Result<Owner, Refusal> {
        self.subordinate_of(call.caller, number(field, id)?)
    }

    fn subordinate_of(&self, caller: Owner, id: u32) -> Result<Owner, Refusal> {
        let (place, user) = self.direct(caller, id)?;
        if user.is_deleted {
            return Err(refused(404, "the user is deleted"));
        }
        Ok(Owner { agent: user.agent, user: Some(place) })
    }

    /// A direct subordinate, deleted or not.
    fn direct(&self, caller: Owner, id: u32) -> Result<(usize, &User), Refusal> {
        let place = id.checked_sub(FIRST_USER).and_then(|place| usize::try_from(place).ok());
        let found = place.and_then(|place| Some((place, &**self.backend.users.get(place)?)));
        let own = found.filter(|(_, user)| caller.user.is_none() && user.agent == caller.agent);
        own.ok_or_else(|| forbidden("the user is not a direct subordinate of yours"))
    }

    /// The owner whose records the caller may read: itself or a direct subordinate, whose records outlive it.
    pub(super) fn within(&self, caller: Owner, id: u32) -> Result<Owner, Refusal> {
        let direct = || self.direct(caller, id).map(|(place, user)| Owner { agent: user.agent, user: Some(place) });
        if self.id_of(caller) == id { Ok(caller) } else { direct() }
    }

    /// The owner that the caller may order for: itself or a direct subordinate.
    pub(super) fn buyer(&self, caller: Owner, id: u32) -> Result<Owner, Refusal> {
        if self.id_of(caller) == id { Ok(caller) } else { self.subordinate_of(caller, id) }
    }

    pub(super) fn user_mut(&mut self, place: usize) -> &mut User {
        Arc::make_mut(&mut self.backend.users[place])
    }
}

/// The number of the user at a place.
pub(super) fn user_id(place: usize) -> u32 {
    FIRST_USER.saturating_add(u32::try_from(place).unwrap_or(u32::MAX))
}
