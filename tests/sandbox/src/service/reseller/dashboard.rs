//! The figures of the caller and whoever belongs to it.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Serialize;

use super::call::Call;
use super::input::DAY_MS;
use crate::service::Service;
use crate::service::envelope::{Number, Refusal, Reply};

#[derive(Serialize)]
struct Dashboard {
    balance: Number,
    currency: &'static str,
    resources: Resources,
    overview: Overview,
}

#[derive(Serialize)]
struct Resources {
    static_orders: usize,
    static_ips: usize,
    dynamic_orders: usize,
    dynamic_remaining_gb: Number,
}

#[derive(Serialize)]
struct Overview {
    sub_users: BTreeMap<&'static str, usize>,
    consumption_today: Number,
    consumption_total: Number,
}

pub(crate) fn get(service: &mut Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let (caller, now_ms) = (call.caller, call.now_ms);
    let statics = service.static_records(caller, now_ms);
    let dynamics = service.dynamic_records(caller, now_ms);
    let mut sub_users = BTreeMap::from([("active", 0), ("disabled", 0)]);
    let users = service.backend.users.iter().filter(|user| caller.user.is_none() && user.agent == caller.agent && !user.is_deleted);
    users.for_each(|user| *sub_users.entry(user.status()).or_default() += 1);
    let (mut today, mut total) = (Decimal::ZERO, Decimal::ZERO);
    for entry in service.entries_for(caller).iter().filter(|entry| entry.order_type.is_some()) {
        total = total.saturating_sub(entry.amount);
        if entry.at_ms.div_euclid(DAY_MS) == now_ms.div_euclid(DAY_MS) {
            today = today.saturating_sub(entry.amount);
        }
    }
    let left = dynamics.iter().fold(Decimal::ZERO, |sum, record| sum.saturating_add(record.remaining_gb.0));
    let dashboard = Dashboard {
        balance: Number(service.balance_of(caller)),
        currency: "USD",
        resources: Resources {
            static_orders: statics.len(),
            static_ips: statics.iter().map(|record| record.instances.len()).sum(),
            dynamic_orders: dynamics.len(),
            dynamic_remaining_gb: Number(left),
        },
        overview: Overview { sub_users, consumption_today: Number(today), consumption_total: Number(total) },
    };
    Ok(Reply::new(200, &dashboard))
}
