//! The balance, and what was charged to it.

use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::Service;
use super::envelope::{Code, Number, Refusal, Reply};
use super::routes::Call;

/// One charge to the balance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
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
}

#[derive(Serialize)]
struct Balance {
    balance: Number,
    currency: &'static str,
}

pub(crate) fn balance(service: &mut Service, _call: &Call<'_>) -> Result<Reply, Refusal> {
    Ok(Reply::new(200, &Balance { balance: Number(service.balance), currency: "USD" }))
}

impl Service {
    pub(crate) fn check_balance(&self, amount: Decimal) -> Result<(), Refusal> {
        if amount <= self.balance {
            return Ok(());
        }
        Err(Refusal::new(Code::InsufficientBalance, "the balance does not cover the charge")
            .detail("required_usd", Number(amount))
            .detail("balance_usd", Number(self.balance)))
    }

    /// Charges an amount that the balance was checked for. What costs nothing is no charge.
    pub(crate) fn charge(&mut self, operation: &'static str, session_id: Arc<str>, amount: Decimal, call: &Call<'_>) {
        if !amount.is_zero() {
            self.balance -= amount;
            let charge = Charge { key: call.key.clone(), operation, session_id, amount, at_ms: call.now_ms };
            self.charges.push(charge);
        }
    }
}
