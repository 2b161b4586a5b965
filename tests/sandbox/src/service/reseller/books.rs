//! The movements of money here: purchases, renewals, refunds, top-ups and adjustments, each with the owner of the balance.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::call::{Call, Owner};
use super::envelope::refused;
use super::input::{Paging, Span};
use super::people::number;
use crate::service::Service;
use crate::service::catalogue::{DYNAMIC, STATIC};
use crate::service::envelope::{Number, Refusal, Reply, timestamp};

/// Why money moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Purchase,
    Renewal,
    Refund,
    Recharge,
    TrialCredit,
    /// From the reseller to a sub-user, or back.
    Adjustment,
}

impl Kind {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Purchase => "purchase",
            Self::Renewal => "renewal",
            Self::Refund => "refund",
            Self::Recharge => "recharge",
            Self::TrialCredit => "trial_credit",
            Self::Adjustment => "adjustment",
        }
    }

    fn is_consumption(self) -> bool {
        matches!(self, Self::Purchase | Self::Renewal | Self::Refund)
    }
}

/// One change of a balance.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its place among all charges, credits and entries.
    pub(crate) number: usize,
    pub(crate) owner: Owner,
    pub(crate) kind: Kind,
    /// `static` or `dynamic`, where it is for an order of either.
    pub(crate) order_type: Option<&'static str>,
    pub(crate) order_no: Option<Arc<str>>,
    /// Below zero when it was taken.
    pub(crate) amount: Decimal,
    pub(crate) remark: Option<Arc<str>>,
    pub(crate) at_ms: i64,
}

#[derive(Serialize)]
struct Record<'a> {
    id: usize,
    user_id: u32,
    username: String,
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    order_no: Option<&'a str>,
    amount: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    remark: Option<&'a str>,
    created_at: String,
}

/// The amounts that were spent, and the refunds; the newest first.
pub(crate) fn consumption(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let query = &call.query;
    let paging = Paging::read(query)?;
    let kind = query.text("type");
    let order_type = query.word("order_type", &[STATIC, DYNAMIC])?;
    let span = Span::days(query, "start_date", "end_date")?;
    let (username, order_no) = (query.text("username"), query.text("order_no"));
    let keyword = query.text("keyword").unwrap_or_default().to_lowercase();
    let target = query.text("target_user_id").map(|id| number("target_user_id", id)).transpose()?;
    let target = target.map(|id| service.within(call.caller, id)).transpose()?;
    let is_wanted = |entry: &Entry| {
        let name = service.name_of(entry.owner);
        let texts = [entry.remark.as_deref(), Some(entry.kind.word()), entry.order_no.as_deref(), Some(&*name)];
        entry.kind.is_consumption()
            && kind.is_none_or(|kind| entry.kind.word() == kind)
            && order_type.is_none_or(|kind| entry.order_type == Some(kind))
            && span.holds(entry.at_ms)
            && username.is_none_or(|username| *name == *username)
            && order_no.is_none_or(|wanted| entry.order_no.as_deref() == Some(wanted))
            && target.is_none_or(|target| entry.owner == target)
            && texts.into_iter().flatten().any(|text| text.to_lowercase().contains(&keyword))
    };
    let entries = service.entries_for(call.caller).into_iter().filter(is_wanted).collect();
    let (part, counts) = paging.cut(entries);
    Ok(service.show_entries(&part, &counts))
}

/// Top-ups and adjustments, the newest first.
pub(crate) fn funds(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let entries: Vec<Entry> = service.entries_for(call.caller).into_iter().filter(|entry| !entry.kind.is_consumption()).collect();
    let total = i64::try_from(entries.len()).unwrap_or(i64::MAX);
    Ok(service.show_entries(&entries, &[("total", total)]))
}

impl Entry {
    /// An entry that [`Service::record`] numbers.
    pub(super) fn new(owner: Owner, kind: Kind, amount: Decimal, at_ms: i64) -> Self {
        Self { number: 0, owner, kind, order_type: None, order_no: None, amount, remark: None, at_ms }
    }
}

impl Service {
    pub(super) fn record(&mut self, entry: Entry) {
        let number = self.next_transaction();
        self.backend.entries.push(Entry { number, ..entry });
    }

    /// Refuses what a balance does not cover.
    pub(super) fn check_funds(&self, owner: Owner, amount: Decimal) -> Result<(), Refusal> {
        let balance = self.balance_of(owner);
        if amount <= balance || amount <= Decimal::ZERO {
            return Ok(());
        }
        let whose = if owner.user.is_some() { "user" } else { "reseller" };
        Err(refused(402, format!("the balance of the {whose} does not cover the amount"))
            .detail("user_id", self.id_of(owner))
            .detail("required", Number(amount))
            .detail("balance", Number(balance)))
    }

    /// Sets a balance. The trial credit, which is a part of it, is spent first.
    pub(super) fn set_balance_of(&mut self, owner: Owner, balance: Decimal) {
        if let Some(user) = owner.user {
            self.user_mut(user).balance = balance;
            return;
        }
        let account = &mut self.accounts[owner.agent];
        let spent = (account.balance - balance).max(Decimal::ZERO);
        account.trial_left -= account.trial_left.min(spent);
        account.balance = balance;
    }

    /// Takes what a balance was checked for, or gives it back when it is below zero.
    pub(super) fn spend(&mut self, owner: Owner, kind: Kind, order: (&'static str, &Arc<str>), amount: Decimal, at_ms: i64) {
        self.set_balance_of(owner, self.balance_of(owner).saturating_sub(amount));
        if let Some(user) = owner.user {
            let user = self.user_mut(user);
            user.total_consumption = user.total_consumption.saturating_add(amount);
        }
        let (order_type, order_no) = (Some(order.0), Some(order.1.clone()));
        self.record(Entry { order_type, order_no, ..Entry::new(owner, kind, -amount, at_ms) });
    }

    /// Every entry in the caller's scope, with what its sessions were charged; the newest first.
    pub(super) fn entries_for(&self, caller: Owner) -> Vec<Entry> {
        let sessions = self.session_entries();
        let mut entries: Vec<Entry> =
            sessions.chain(self.backend.entries.iter().cloned()).filter(|entry| caller.sees(entry.owner)).collect();
        entries.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.number));
        entries
    }

    fn session_entries(&self) -> impl Iterator<Item = Entry> {
        let owner =
            |agent_id| Owner { agent: self.accounts.iter().position(|account| account.agent_id == agent_id).unwrap_or(0), user: None };
        let order_type = |id: &str| self.sessions.iter().find(|session| &*session.id == id).map(|session| session.product.kind);
        let charges = self.charges.iter().map(move |charge| Entry {
            number: charge.number,
            order_type: order_type(&charge.session_id),
            order_no: Some(charge.session_id.clone()),
            ..Entry::new(
                owner(charge.agent_id),
                if charge.operation == "renew_session" { Kind::Renewal } else { Kind::Purchase },
                -charge.amount,
                charge.at_ms,
            )
        });
        let credits = self.credits.iter().map(move |credit| {
            let kind = match credit.kind {
                "refund" => Kind::Refund,
                "trial_credit" => Kind::TrialCredit,
                _ => Kind::Recharge,
            };
            Entry {
                number: credit.number,
                order_type: credit.reference.as_deref().filter(|_| kind == Kind::Refund).and_then(order_type),
                order_no: credit.reference.clone(),
                ..Entry::new(owner(credit.agent_id), kind, credit.amount, credit.at_ms)
            }
        });
        charges.chain(credits)
    }

    fn show_entries(&self, entries: &[Entry], counts: &[(&'static str, i64)]) -> Reply {
        let record = |entry| {
            let Entry { number, owner, kind, order_type, order_no, amount, remark, at_ms }: &Entry = entry;
            Record {
                id: *number,
                user_id: self.id_of(*owner),
                username: self.name_of(*owner).to_string(),
                r#type: kind.word(),
                order_type: *order_type,
                order_no: order_no.as_deref(),
                amount: Number(*amount),
                remark: remark.as_deref(),
                created_at: timestamp(*at_ms),
            }
        };
        let records: Vec<Record<'_>> = entries.iter().map(record).collect();
        self.backend.spelling.listed(&records, counts)
    }
}
