//! The balance, prices, and what was charged and credited.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::Service;
use super::call::Call;
use super::catalogue::{DYNAMIC, STATIC, starting_price, unit};
use super::envelope::{Code, Number, Refusal, Reply, timestamp};
use super::recharge::LEAST;
use super::reseller::{Entry, Kind};

/// One charge to a balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The account that was charged.
    pub agent_id: u32,
    /// The `Idempotency-Key` of the write that was charged.
    pub key: Option<Arc<str>>,
    /// The operation that was charged for.
    pub operation: &'static str,
    /// The session that was bought or renewed.
    pub session_id: Arc<str>,
    /// The amount in USD.
    pub amount: Decimal,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
    /// Its place among all charges and credits.
    pub(crate) number: usize,
}

/// One credit to a balance.
#[derive(Clone, Debug)]
pub(crate) struct Credit {
    pub(crate) agent_id: u32,
    pub(crate) kind: &'static str,
    pub(crate) amount: Decimal,
    /// The order that was paid, or the session that was refunded.
    pub(crate) reference: Option<Arc<str>>,
    pub(crate) at_ms: i64,
    pub(crate) number: usize,
}

#[derive(Serialize)]
struct Balance {
    balance: Number,
    trial_balance: Number,
    currency: &'static str,
}

#[derive(Serialize)]
struct Pricing {
    currency: &'static str,
    dynamic: From,
    r#static: From,
    session_management_usd: u8,
    trial_credit_usd: u8,
    minimum_topup_usd: Number,
}

#[derive(Serialize)]
struct From {
    from_usd: Number,
    unit: &'static str,
}

#[derive(Serialize)]
struct Transactions<'a> {
    items: Vec<Transaction<'a>>,
    total: usize,
}

#[derive(Serialize)]
struct Transaction<'a> {
    transaction_id: String,
    r#type: &'static str,
    amount_usd: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<&'a str>,
    created_at: String,
    #[serde(skip)]
    number: usize,
}

pub(crate) fn balance(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    service.check_backend(call)?;
    let account = service.account(call);
    let balance = Balance { balance: Number(account.balance), trial_balance: Number(account.trial_left), currency: "USD" };
    Ok(Reply::new(200, &balance))
}

pub(crate) fn pricing(_service: &mut Service, _call: &Call<'_>) -> Result<Reply, Refusal> {
    let from = |kind| From { from_usd: Number(starting_price(kind)), unit: unit(kind) };
    let pricing = Pricing {
        currency: "USD",
        dynamic: from(DYNAMIC),
        r#static: from(STATIC),
        session_management_usd: 0,
        trial_credit_usd: 1,
        minimum_topup_usd: Number(LEAST),
    };
    Ok(Reply::new(200, &pricing))
}

/// Lists charges as amounts below zero and credits as amounts above, the newest first. The amounts that the backend took from the account
/// and gave to it are among them.
pub(crate) fn transactions(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let agent_id = service.account(call).agent_id;
    let charges = service.charges.iter().filter(|charge| charge.agent_id == agent_id).map(Transaction::from);
    let credits = service.credits.iter().filter(|credit| credit.agent_id == agent_id).map(Transaction::from);
    let entries = service.backend.entries.iter().filter(|entry| entry.owner.agent == call.account);
    let mut items: Vec<Transaction<'_>> = charges.chain(credits).chain(entries.filter_map(at_backend)).collect();
    items.sort_unstable_by_key(|item| std::cmp::Reverse(item.number));
    Ok(Reply::new(200, &Transactions { total: items.len(), items }))
}

impl<'a> std::convert::From<&'a Charge> for Transaction<'a> {
    fn from(charge: &'a Charge) -> Self {
        Self {
            transaction_id: id(charge.number),
            r#type: "charge",
            amount_usd: Number(-charge.amount),
            operation: Some(charge.operation),
            reference: Some(&charge.session_id),
            created_at: timestamp(charge.at_ms),
            number: charge.number,
        }
    }
}

impl<'a> std::convert::From<&'a Credit> for Transaction<'a> {
    fn from(credit: &'a Credit) -> Self {
        Self {
            transaction_id: id(credit.number),
            r#type: credit.kind,
            amount_usd: Number(credit.amount),
            operation: None,
            reference: credit.reference.as_deref(),
            created_at: timestamp(credit.at_ms),
            number: credit.number,
        }
    }
}

/// How the agent's own balance was changed at the backend: a sub-user's changes are not its own, but what it was given is.
fn at_backend(entry: &Entry) -> Option<Transaction<'_>> {
    let (kind, amount_usd) = match entry.kind {
        Kind::Adjustment => ("adjustment", -entry.amount),
        _ if entry.owner.user.is_some() => return None,
        Kind::Purchase | Kind::Renewal => ("charge", entry.amount),
        kind => (kind.word(), entry.amount),
    };
    Some(Transaction {
        transaction_id: id(entry.number),
        r#type: kind,
        amount_usd: Number(amount_usd),
        operation: None,
        reference: entry.order_no.as_deref(),
        created_at: timestamp(entry.at_ms),
        number: entry.number,
    })
}

fn id(number: usize) -> String {
    format!("txn_{number}")
}

impl Service {
    pub(crate) fn check_balance(&self, amount: Decimal, call: &Call<'_>) -> Result<(), Refusal> {
        let balance = self.account(call).balance;
        if amount <= balance {
            return Ok(());
        }
        Err(Refusal::new(Code::InsufficientBalance, "the balance does not cover the charge")
            .detail("required_usd", Number(amount))
            .detail("balance_usd", Number(balance)))
    }

    /// Charges an amount that the balance was checked for, the trial credit first. An amount of zero is no charge.
    pub(crate) fn charge(&mut self, operation: &'static str, session_id: Arc<str>, amount: Decimal, call: &Call<'_>) {
        if amount.is_zero() {
            return;
        }
        let number = self.next_transaction();
        let account = &mut self.accounts[call.account];
        account.balance -= amount;
        account.trial_left -= account.trial_left.min(amount);
        let (agent_id, key, at_ms) = (account.agent_id, call.key.clone(), call.now_ms);
        self.charges.push(Charge { agent_id, key, operation, session_id, amount, at_ms, number });
    }

    /// Credits an amount to the account at a place of the list.
    pub(crate) fn credit(&mut self, place: usize, kind: &'static str, amount: Decimal, reference: Option<Arc<str>>, at_ms: i64) {
        let number = self.next_transaction();
        let account = &mut self.accounts[place];
        account.balance = account.balance.saturating_add(amount);
        self.credits.push(Credit { agent_id: account.agent_id, kind, amount, reference, at_ms, number });
    }

    /// Refunds a part of what a session was charged, as an operator would; false when there is no such session, or less
    /// of its charges is left.
    pub fn refund(&mut self, session_id: &str, amount: Decimal, now_ms: i64) -> bool {
        let Some(session) = self.sessions.iter().find(|session| &*session.id == session_id) else {
            return false;
        };
        let (place, id) = (session.account, session.id.clone());
        let charged: Decimal = self.charges.iter().filter(|charge| charge.session_id == id).map(|charge| charge.amount).sum();
        let refunds = self.credits.iter().filter(|credit| credit.kind == "refund" && credit.reference.as_ref() == Some(&id));
        let refunded: Decimal = refunds.map(|credit| credit.amount).sum();
        let is_due = amount > Decimal::ZERO && amount <= charged - refunded;
        if is_due {
            self.credit(place, "refund", amount, Some(id), now_ms);
        }
        is_due
    }

    pub(crate) fn next_transaction(&self) -> usize {
        self.charges.len() + self.credits.len() + self.backend.entries.len() + 1
    }
}
