//! The limits on a key's spending, in all and in a UTC day, and the alerts.

use rust_decimal::Decimal;
use serde::Serialize;

use super::Service;
use super::call::Call;
use super::envelope::{Code, Number, Refusal, Reply, timestamp};
use super::input::{Body, Change};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The policy of a key. Without a limit there is none.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    key_limit: Option<Decimal>,
    daily_limit: Option<Decimal>,
    pause_on_exceed: bool,
    /// Percentages of each limit, in order and each once.
    thresholds: Vec<i64>,
    paused: bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { key_limit: None, daily_limit: None, pause_on_exceed: false, thresholds: vec![80, 100], paused: false }
    }
}

/// The charges that were accepted with the key, in all and since the UTC day began.
#[derive(Clone, Copy, Debug)]
struct Spent {
    all: Decimal,
    today: Decimal,
}

#[derive(Serialize)]
struct View<'a> {
    key_limit_usd: Option<Number>,
    daily_limit_usd: Option<Number>,
    pause_on_exceed: bool,
    alert_thresholds: &'a [i64],
    paused: bool,
    spent_usd: Number,
    spent_today_usd: Number,
    next_reset_at: String,
    currency: &'static str,
}

#[derive(Serialize)]
struct Alerts {
    alerts: Vec<Alert>,
    paused: bool,
}

#[derive(Serialize)]
struct Alert {
    limit: &'static str,
    threshold_percent: i64,
    limit_usd: Number,
    spent_usd: Number,
}

pub(crate) fn get(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(service.show_budget(call))
}

/// Changes what the body names. Null lifts a limit and is nothing for the other fields.
pub(crate) fn update(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let body = Body::parse(call.body)?;
    let key_limit = body.limit("key_limit_usd")?;
    let daily_limit = body.limit("daily_limit_usd")?;
    let pause_on_exceed = body.flag("pause_on_exceed")?;
    let thresholds = body.wholes("alert_thresholds", 1, 100)?;
    let paused = body.flag("paused")?;

    let budget = &mut service.account_mut(call).budget;
    for (limit, change) in [(&mut budget.key_limit, key_limit), (&mut budget.daily_limit, daily_limit)] {
        match change {
            Change::Keep => {}
            Change::Lift => *limit = None,
            Change::Set(amount) => *limit = Some(amount),
        }
    }
    budget.pause_on_exceed = pause_on_exceed.unwrap_or(budget.pause_on_exceed);
    budget.paused = paused.unwrap_or(budget.paused);
    if let Some(mut thresholds) = thresholds {
        thresholds.sort_unstable();
        thresholds.dedup();
        budget.thresholds = thresholds;
    }
    Ok(service.show_budget(call))
}

pub(crate) fn alerts(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let budget = &service.account(call).budget;
    let mut alerts = Vec::new();
    for (limit, amount, spent) in service.limits(call) {
        let crossed = |percent: i64| reaches(spent, amount, percent);
        let of_limit = budget.thresholds.iter().filter(|percent| crossed(**percent));
        alerts.extend(of_limit.map(|percent| Alert {
            limit,
            threshold_percent: *percent,
            limit_usd: Number(amount),
            spent_usd: Number(spent),
        }));
    }
    Ok(Reply::new(200, &Alerts { alerts, paused: budget.paused }))
}

/// True if a sum has reached a percentage of a limit. A limit whose share overflows is never reached.
fn reaches(spent: Decimal, limit: Decimal, percent: i64) -> bool {
    let share = limit.checked_mul(Decimal::new(percent, 2));
    share.is_some_and(|share| spent >= share)
}

impl Service {
    /// Refuses a purchase that the key may not make; a session is bought only when the key is not paused.
    pub(crate) fn check_budget(&self, amount: Decimal, is_creation: bool, call: &Call<'_>) -> Result<(), Refusal> {
        let exceeded = |message, limit| Refusal::new(Code::BudgetExceeded, message).detail("limit", limit);
        if amount.is_zero() {
            return Ok(());
        }
        if is_creation && self.account(call).budget.paused {
            return Err(exceeded("the key is paused for paid creation", "paused"));
        }
        for (name, limit, spent) in self.limits(call) {
            if spent.checked_add(amount).is_none_or(|sum| sum > limit) {
                return Err(exceeded("the charge would pass a limit of the key", name)
                    .detail("limit_usd", Number(limit))
                    .detail("spent_usd", Number(spent))
                    .detail("required_usd", Number(amount)));
            }
        }
        Ok(())
    }

    /// The limits that are set, each with what counts toward it.
    fn limits(&self, call: &Call<'_>) -> impl Iterator<Item = (&'static str, Decimal, Decimal)> + use<> {
        let budget = &self.account(call).budget;
        let spent = self.spent(call);
        let limits = [("key", budget.key_limit, spent.all), ("daily", budget.daily_limit, spent.today)];
        limits.into_iter().filter_map(|(name, limit, spent)| limit.map(|limit| (name, limit, spent)))
    }

    fn spent(&self, call: &Call<'_>) -> Spent {
        let agent_id = self.account(call).agent_id;
        let today = call.now_ms.div_euclid(DAY_MS);
        let mut spent = Spent { all: Decimal::ZERO, today: Decimal::ZERO };
        for charge in self.charges.iter().filter(|charge| charge.agent_id == agent_id) {
            spent.all = spent.all.saturating_add(charge.amount);
            if charge.at_ms.div_euclid(DAY_MS) == today {
                spent.today = spent.today.saturating_add(charge.amount);
            }
        }
        spent
    }

    fn show_budget(&self, call: &Call<'_>) -> Reply {
        let budget = &self.account(call).budget;
        let spent = self.spent(call);
        let view = View {
            key_limit_usd: budget.key_limit.map(Number),
            daily_limit_usd: budget.daily_limit.map(Number),
            pause_on_exceed: budget.pause_on_exceed,
            alert_thresholds: &budget.thresholds,
            paused: budget.paused,
            spent_usd: Number(spent.all),
            spent_today_usd: Number(spent.today),
            next_reset_at: timestamp(call.now_ms.div_euclid(DAY_MS).saturating_add(1).saturating_mul(DAY_MS)),
            currency: "USD",
        };
        Reply::new(200, &view)
    }
}
