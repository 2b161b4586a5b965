//! What people want done. Each job has a mark in its request, so that whatever the service does tells whose it was.

use hopline::client::CallOptions;
use hopline::contract::{Api, Decimal};
use serde_json::Value;

/// What is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// `open_session`.
    Open,
    /// `create_session`.
    Create,
    /// `rotate_session`, of the session with the job's number.
    Rotate,
    /// `renew_session`, of the session with the job's number.
    Renew,
    /// `terminate_session`, of the session with the job's number.
    Terminate,
    /// `create_recharge`.
    Recharge,
    /// `update_budget`.
    Budget,
    /// `wait_session`, of the session with the job's number.
    Wait,
    /// `get_session`, of the session with the job's number.
    Read,
    /// `place_order`.
    Order,
    /// `adjust_sub_user_balance`.
    Adjust,
    /// `get_current_balance`.
    Balance,
}

/// One thing that is to be done once, however often it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Job {
    /// What.
    pub task: Task,
    /// Tells it from others of its task; jobs that send to one endpoint have different ones.
    pub number: u16,
    /// How it is known again.
    pub name: Name,
}

/// How a job is known again when it is started once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Name {
    /// By an intent.
    Intent,
    /// By a key that the caller gave.
    Key,
    /// Not at all: each start is a purchase of its own.
    None,
}

impl Job {
    /// A job under an intent.
    pub const fn named(task: Task, number: u16) -> Job {
        Job { task, number, name: Name::Intent }
    }

    /// A job without a name.
    pub const fn unnamed(task: Task, number: u16) -> Job {
        Job { task, number, name: Name::None }
    }

    /// A job with a key of the caller's own.
    pub const fn given(task: Task, number: u16) -> Job {
        Job { task, number, name: Name::Key }
    }

    /// The API that it is for.
    pub fn api(self) -> Api {
        if matches!(self.task, Task::Order | Task::Adjust | Task::Balance) { Api::Reseller } else { Api::Agent }
    }

    /// Its intent.
    pub fn intent(self) -> Option<String> {
        (self.name == Name::Intent).then(|| format!("{:?}-{}", self.task, self.number).to_lowercase())
    }

    /// Whether the service is to do something for it once at most.
    pub fn has_effect(self) -> bool {
        !matches!(self.task, Task::Wait | Task::Read | Task::Balance | Task::Terminate)
    }

    /// Whether it can cost money, so that it is not tried again with a new key.
    pub fn is_paid(self) -> bool {
        matches!(self.task, Task::Open | Task::Create | Task::Renew | Task::Recharge)
    }

    /// What it is started with: the operation, its parameters, its options.
    pub(crate) fn start(self, sessions: &[String]) -> (&'static str, String, CallOptions) {
        let number = self.number;
        let none = "none".to_owned();
        let session = sessions.get(usize::from(number)).unwrap_or(&none);
        let of_session = format!(r#"{{"session_id":"{session}"}}"#);
        let (operation, params) = match self.task {
            Task::Open | Task::Create => {
                let operation = if self.task == Task::Open { "open_session" } else { "create_session" };
                (operation, format!(r#"{{"session_type":"dynamic","product_no":"dynamic-world","quantity":{}}}"#, quantity(number).0))
            }
            Task::Rotate => ("rotate_session", of_session),
            Task::Terminate => ("terminate_session", of_session),
            Task::Wait => ("wait_session", of_session),
            Task::Read => ("get_session", of_session),
            Task::Renew => ("renew_session", format!(r#"{{"session_id":"{session}","duration":1}}"#)),
            Task::Recharge => ("create_recharge", format!(r#"{{"amount_usd":{}}}"#, 10 + number)),
            Task::Budget => ("update_budget", format!(r#"{{"daily_limit_usd":{}}}"#, 5000 + u32::from(number))),
            Task::Order => (
                "place_order",
                format!(
                    r#"{{"poolId":"static-us","userId":200001,"unitPrice":0,"totalAmount":0,"ipCount":{},"cycleTimes":1,"duration":1,"unit":"month"}}"#,
                    1 + number
                ),
            ),
            Task::Adjust => ("adjust_sub_user_balance", format!(r#"{{"user_id":200001,"amount":1,"remark":"money-{number}"}}"#)),
            Task::Balance => ("get_current_balance", "{}".to_owned()),
        };
        let key = (self.name == Name::Key).then(|| format!("mine-{number}"));
        (operation, params, CallOptions { intent: self.intent(), idempotency_key: key, ..CallOptions::default() })
    }

    /// Whether a write is one of this job's: by the operation and the mark in its body or path.
    pub(crate) fn sends(self, operation: &str, url: &str, body: &Value, sessions: &[String]) -> bool {
        let of_session = || sessions.get(usize::from(self.number)).is_some_and(|id| url.contains(id.as_str()));
        match (self.task, operation) {
            (Task::Open | Task::Create, "create_session") => body["quantity"].as_f64() == quantity(self.number).0.try_into().ok(),
            (Task::Rotate, "rotate_session") | (Task::Renew, "renew_session") | (Task::Terminate, "terminate_session") => of_session(),
            (Task::Recharge, "create_recharge") => body["amount_usd"].as_u64() == Some(10 + u64::from(self.number)),
            (Task::Budget, "update_budget") => body["daily_limit_usd"].as_u64() == Some(5000 + u64::from(self.number)),
            (Task::Order, "create_static_order") => body["ipCount"].as_u64() == Some(1 + u64::from(self.number)),
            (Task::Adjust, "adjust_sub_user_balance") => body["remark"].as_str() == Some(&format!("money-{}", self.number)),
            _ => false,
        }
    }
}

/// What a purchase buys, in GB.
fn quantity(number: u16) -> Decimal {
    Decimal(rust_decimal::Decimal::new(1000 + i64::from(number), 3).normalize())
}

/// What a purchase costs at a price for one GB, in thousandths of a dollar.
pub(crate) fn cost(job: Job, price: i64) -> i64 {
    price * (1000 + i64::from(job.number))
}
