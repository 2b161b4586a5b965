//! The jobs that people want done. Each job has a mark in its requests, so that every effect of the service shows its job.

use hopline::client::{CallOptions, Cheapest, IfEnded};
use hopline::contract::Decimal;
use hopline::contract::agent::SessionType;
use serde_json::Value;

/// The kind of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// `open_session`.
    Open,
    /// `open_session` of the cheapest dynamic product; one with an odd number is under a limit.
    Choose,
    /// `open_session` that buys the next session where the one before is over for good.
    Next,
    /// `create_session`.
    Create,
    /// `open_session` of a static one, which can be renewed; there is one such job.
    Rent,
    /// `rotate_session`, of the session with the job's number.
    Rotate,
    /// `renew_session`, of the session with the job's number; the months are in what is above [`SESSIONS`] of it.
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
    /// `create_user`, with a password.
    User,
    /// `get_current_balance`.
    Balance,
}

/// How a call is started, beside what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Manner {
    /// With the options that a client has.
    #[default]
    Usual,
    /// By somebody who does not wait: one attempt, and a deadline that has passed.
    Hasty,
    /// By somebody who waits while another client has the name.
    Patient,
}

impl Manner {
    pub(crate) fn options(self) -> CallOptions {
        match self {
            Manner::Usual => CallOptions::default(),
            Manner::Patient => CallOptions { wait_for_intent: true, ..CallOptions::default() },
            Manner::Hasty => CallOptions { attempts: Some(1), deadline_ms: Some(0), ..CallOptions::default() },
        }
    }
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

    /// Its intent.
    pub fn intent(self) -> Option<String> {
        (self.name == Name::Intent).then(|| format!("{:?}-{}", self.task, self.number).to_lowercase())
    }

    /// True if the service has to do something for it, once at most.
    pub fn has_effect(self) -> bool {
        !matches!(self.task, Task::Wait | Task::Read | Task::Balance)
    }

    /// True if it can cost money, so that it is not tried again with a new key.
    pub fn is_paid(self) -> bool {
        self.buys() || matches!(self.task, Task::Renew | Task::Recharge)
    }

    /// True if it buys a session.
    fn buys(self) -> bool {
        self.opens() || self.task == Task::Create
    }

    /// True if it gives its caller a session to hold.
    pub(crate) fn opens(self) -> bool {
        matches!(self.task, Task::Open | Task::Choose | Task::Next | Task::Rent)
    }

    /// True if the service says what it charges for it.
    pub(crate) fn is_charged(self) -> bool {
        self.buys() || self.task == Task::Renew
    }

    /// True if a daily cap counts it.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self.task, Task::Open | Task::Next | Task::Create)
    }

    /// True if its requests cannot be told from one another, so that it is sent once at most.
    pub(crate) fn is_keyless(self) -> bool {
        matches!(self.task, Task::Order | Task::Adjust | Task::User)
    }

    /// The index of its session among those that were bought: many jobs may have the same session.
    pub(crate) fn session(self) -> usize {
        usize::from(self.number % SESSIONS)
    }

    /// For how long it renews that session, which tells one renewal of it from another.
    fn months(self) -> u64 {
        1 + u64::from(self.number / SESSIONS)
    }

    /// True if it changes an existing session, so that each start without a name is a job of its own.
    pub(crate) fn is_change(self) -> bool {
        matches!(self.task, Task::Rotate | Task::Renew | Task::Budget)
    }

    /// The limit for one unit of a product that it chooses, in thousandths of a dollar.
    pub(crate) fn limit(self) -> Option<i64> {
        (self.task == Task::Choose && self.number % 2 == 1).then_some(4_300)
    }

    /// True if it sets a value that other jobs set too, so that the last one counts.
    pub(crate) fn is_setting(self) -> bool {
        self.task == Task::Budget
    }

    /// True if its record says that it was done. A free operation needs no record, nor does any once its session has ended or another
    /// setting was accepted.
    pub(crate) fn is_remembered(self) -> bool {
        !(matches!(self.task, Task::Terminate | Task::Rotate) || (self.is_setting() && self.name == Name::None))
    }

    /// True if its result has an id of its own that the caller must learn.
    pub(crate) fn names_what_it_gets(self) -> bool {
        self.buys() || self.task == Task::Order
    }

    /// Returns the operation, the parameters and the options of its start.
    pub(crate) fn start(self, sessions: &[String], manner: Manner) -> (&'static str, String, CallOptions) {
        let number = self.number;
        let none = "none".to_owned();
        let session = sessions.get(self.session()).unwrap_or(&none);
        let of_session = format!(r#"{{"session_id":"{session}"}}"#);
        let (operation, params) = match self.task {
            Task::Open | Task::Next | Task::Create => {
                let operation = if self.task == Task::Create { "create_session" } else { "open_session" };
                (operation, format!(r#"{{"session_type":"dynamic","product_no":"dynamic-world","quantity":{}}}"#, quantity(number).0))
            }
            Task::Choose => ("open_session", format!(r#"{{"quantity":{}}}"#, quantity(number).0)),
            Task::Rent => ("open_session", r#"{"session_type":"static","product_no":"static-us","quantity":1}"#.to_owned()),
            Task::Rotate => ("rotate_session", of_session),
            Task::Terminate => ("terminate_session", of_session),
            Task::Wait => ("wait_session", of_session),
            Task::Read => ("get_session", of_session),
            Task::Renew => ("renew_session", format!(r#"{{"session_id":"{session}","duration":{}}}"#, self.months())),
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
            Task::User => ("create_user", format!(r#"{{"username":"user-{number}","password":"{PASSWORD}","balance":0}}"#)),
            Task::Balance => ("get_current_balance", "{}".to_owned()),
        };
        let key = (self.name == Name::Key).then(|| format!("mine-{number}"));
        let product = (self.task == Task::Choose).then(|| Cheapest::of(&SessionType::Dynamic));
        let max_unit_price = self.limit().map(|limit| Decimal(rust_decimal::Decimal::new(limit, 3)));
        let if_ended = (self.task == Task::Next).then_some(IfEnded::Buy);
        let options = CallOptions { intent: self.intent(), idempotency_key: key, product, max_unit_price, if_ended, ..manner.options() };
        (operation, params, CallOptions { credentials: Some(self.task == Task::Open), ..options })
    }

    /// True if a write belongs to this job, by the operation and the mark in its body or path.
    pub(crate) fn sends(self, operation: &str, url: &str, body: &Value, sessions: &[String]) -> bool {
        let of_session = || sessions.get(self.session()).is_some_and(|id| url.contains(id.as_str()));
        match (self.task, operation) {
            (Task::Open | Task::Next | Task::Create, "create_session") => {
                body["product_no"] == "dynamic-world" && body["quantity"].as_f64() == quantity(self.number).0.try_into().ok()
            }
            (Task::Choose, "create_session") => body["quantity"].as_f64() == quantity(self.number).0.try_into().ok(),
            (Task::Rent, "create_session") => body["product_no"] == "static-us",
            (Task::Rotate, "rotate_session") | (Task::Terminate, "terminate_session") => of_session(),
            (Task::Renew, "renew_session") => of_session() && body["duration"].as_u64() == Some(self.months()),
            (Task::Recharge, "create_recharge") => body["amount_usd"].as_u64() == Some(10 + u64::from(self.number)),
            (Task::Budget, "update_budget") => body["daily_limit_usd"].as_u64() == Some(5000 + u64::from(self.number)),
            (Task::Order, "create_static_order") => body["ipCount"].as_u64() == Some(1 + u64::from(self.number)),
            (Task::Adjust, "adjust_sub_user_balance") => body["remark"].as_str() == Some(&format!("money-{}", self.number)),
            (Task::User, "create_user") => body["username"].as_str() == Some(&format!("user-{}", self.number)),
            _ => false,
        }
    }
}

/// More sessions than a life buys.
pub(crate) const SESSIONS: u16 = 256;

/// The password of every sub-user.
pub(crate) const PASSWORD: &str = "canary-password";

/// The quantity of a purchase, in GB.
fn quantity(number: u16) -> Decimal {
    Decimal(rust_decimal::Decimal::new(1000 + i64::from(number), 3).normalize())
}

/// The cost of a purchase at a price for one GB, in thousandths of a dollar.
pub(crate) fn cost(job: Job, price: i64) -> i64 {
    price * (1000 + i64::from(job.number))
}
