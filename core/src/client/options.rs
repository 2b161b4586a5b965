//! What a caller may decide, for a client and for one call.

use std::collections::BTreeMap;

use crate::contract::pools::SlotPurchase;
use crate::contract::{Api, Decimal, Safety, Secret};
use crate::engine::Until;
use crate::json::from_json;
use crate::time::Millis;

#[cfg(feature = "ablation")]
use crate::policy::Rule;
use crate::policy::{Error, RetryPolicy};

/// What a client is made of.
#[derive(Debug, Clone, Default)]
pub struct ClientOptions {
    /// Which of the two APIs; the agent API where it is left out.
    pub api: Api,
    /// The address of the API, with the path that belongs to it, such as `https://host/v1` or `https://host/api`.
    pub base_url: String,
    /// Of the agent API: the key; without it only public endpoints and a caller's own backend will answer.
    pub api_key: Option<Secret>,
    /// Of the reseller API: who logs in. The client does so by itself, once for any number of calls, when it has no token or
    /// the service refuses it.
    pub username: Option<Secret>,
    /// The password that goes with it.
    pub password: Option<Secret>,
    /// Of the reseller API: a token to start from. Without a username and a password there is no other.
    pub token: Option<Secret>,
    /// Of the reseller API: the codes that mean that the token is refused, beside HTTP 401; `401` where it is left out.
    pub token_codes: Option<Vec<String>>,
    /// Of the reseller API: further codes that do not say whether a write was done, so that it is in doubt. They come after `token_codes`
    /// and before `refusal_codes`; each is compared with the envelope's code as text, whole.
    pub doubt_codes: Option<Vec<String>>,
    /// Of the reseller API: further codes that say that a write was not done, though not under HTTP 408, 409, 425, 429 and 5xx. The contract
    /// names but one code, so which others say so is an assumption of this library's; what it does not take for a refusal is in doubt.
    pub refusal_codes: Option<Vec<String>>,
    /// Whether an app's own backend answers, which refuses in its own words what it does not pass on: 401, 403, 404, 413, 422 and 429, without
    /// the envelope or with a code that the contract does not name, then refuse a write whose every send was answered so, with effect
    /// none. Under an intent its key is kept until it is too old, and sent when the intent is started again. True where it is left out and
    /// there is no API key, or no username, password and token.
    pub backend_refuses: Option<bool>,
    /// Names the account in the store. What another account bought is then not found; without it, each account needs a store of its
    /// own.
    pub account: Option<String>,
    /// Says that records of another key, username or base URL are this account's, and only those have changed.
    pub same_account: bool,
    /// Whether the host has a store: then it is asked by [`Step::Store`](super::Step::Store). Without one this client keeps its names
    /// in its own memory.
    pub store: bool,
    /// Whether that store may do a call after it was answered `failed` or given up, such as a database behind a time limit of the host's own.
    /// Then a purchase without a name whose record could not be put is never said to have had no effect.
    pub late_calls: bool,
    /// Allows plain http to a host that is not loopback.
    pub allow_http: bool,
    /// The most, in USD, that all clients of the store with the same `account` buy in a UTC day, together: what was charged, what is in
    /// doubt and what is under way; recharges do not count. Each key counts at its quote, on each day that it is sent on; a charge above
    /// its quote is counted and can pass the cap. A client without a cap does not count what it buys, so give every client of a store
    /// the same one. The account's own limit, which holds for all stores, is `daily_limit_usd` of `update_budget`.
    pub daily_cap_usd: Option<Decimal>,
    /// `backend_ready` as the account was registered with. While it is false, purchases are refused; `get_account` reads it anew.
    pub backend_ready: Option<bool>,
    /// How many requests are out at once at most, 64 where it is left out; writes have seven of eight of them. Who comes later waits for a
    /// place: nothing of it was sent, and neither its attempts nor its times have begun. The end of a session, a login and the read of the
    /// service's time need no place.
    pub max_in_flight: Option<u32>,
    /// How sends are repeated.
    pub retry: RetryPolicy,
    /// The longest body that is read, in bytes; 8 MiB where it is 0.
    pub max_body: u32,
    /// Takes one rule away, to show what it is for.
    #[cfg(feature = "ablation")]
    pub without: Option<Rule>,
}

/// What may be decided for one call. Whatever is left out is as the client has it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CallOptions {
    /// The caller's own name for a write, such as `job-17`: starting it again joins, resumes or returns it. A start that
    /// resumes it does so with its own options. Numbers are compared as numbers: 0.5 and 0.50 are one request. Another parameter is
    /// another request and is refused, and so is one that names a default of the service. 1 to 256 bytes.
    pub intent: Option<String>,
    /// A key of the caller's own, which names the write as an intent does. It counts as sent before and is never replaced. Not with
    /// an `intent`.
    pub idempotency_key: Option<String>,
    /// Whether to wait, up to `deadline_ms`, while another living client uses or holds what the intent or key stands for.
    pub wait_for_intent: bool,
    /// Sends, the first included; at least 1.
    pub attempts: Option<u32>,
    /// Milliseconds from the first send within which another may be made; at least 1.
    pub window_ms: Option<Millis>,
    /// Milliseconds that one attempt may take; at least 1.
    pub timeout_ms: Option<u32>,
    /// Whether a paid operation that the service failed may be bought again with a new key.
    pub retry_paid: Option<bool>,
    /// Of a purchase of a session: the highest price, in USD for one unit, that is paid. The authenticated list is read first,
    /// and again where the service says that the price has changed.
    pub max_unit_price: Option<Decimal>,
    /// What a purchase is to cost, in USD. Required under a daily cap where the price does not tell it: a renewal, a static session
    /// with a `duration`, and a product that is not priced in USD; the last one under `max_unit_price`, too.
    pub expected_charge_usd: Option<Decimal>,
    /// Further headers of the request. They are not kept in records.
    pub headers: BTreeMap<String, Secret>,
    /// Of a session: whether its username and password are wanted once it is active. Where it is left out, they are wanted by whoever
    /// gets the session to use it: `open_session`, `wait_session` and what is resumed as one of them.
    pub credentials: Option<bool>,
    /// Of a session, of a static order and of a read with `until`: milliseconds from the start of the call after which waiting ends with what
    /// is known; 5 minutes where it is left out. One last read is made then. A request that is out then is waited for, and a
    /// purchase is sent whatever it says.
    pub deadline_ms: Option<Millis>,
    /// Of a dynamic session: whether [`Client::observe`](super::Client::observe) rotates it where it would advise to. It stays so
    /// for as long as the session is followed, over a crash too.
    pub auto_rotate: bool,
    /// Of a session or a static order: further statuses that end it, at most 16, each of 1 to 64 bytes.
    pub ends: Vec<String>,
    /// Of a read: what it is repeated for, up to `deadline_ms`. Then its phase is `Ready`, or `Pending` at the deadline.
    pub until: Option<Until>,
}

/// What options are given to, which decides what an `intent`, a key and `until` mean there.
#[derive(Debug, Clone, Copy)]
pub(super) enum Use {
    /// An operation that may be repeated like this.
    Call(Safety),
    /// Waiting for an order, which reads a list by itself.
    WaitOrder,
    /// Looking for what became of a doubt.
    Reconcile,
    /// What is resumed has an intent and a key of its own.
    Resume,
}

impl ClientOptions {
    /// The first option that does not go with the others, and why.
    pub(super) fn misplaced(&self) -> Option<(&'static str, &'static str)> {
        let agent = [
            ("daily_cap_usd", self.daily_cap_usd.is_some()),
            ("api_key", self.api_key.is_some()),
            ("backend_ready", self.backend_ready.is_some()),
        ];
        let reseller = [
            ("username", self.username.is_some()),
            ("password", self.password.is_some()),
            ("token", self.token.is_some()),
            ("token_codes", self.token_codes.is_some()),
            ("doubt_codes", self.doubt_codes.is_some()),
            ("refusal_codes", self.refusal_codes.is_some()),
        ];
        let (others, rule) = match self.api {
            Api::Agent => (reseller.as_slice(), "belongs to the reseller API"),
            Api::Reseller => (agent.as_slice(), "belongs to the agent API"),
        };
        let stray = others.iter().find(|(_, given)| *given).map(|(field, _)| (*field, rule));
        let empty = |secret: &Option<Secret>| secret.as_ref().is_some_and(|secret| secret.reveal().is_empty());
        let long = |secret: &Option<Secret>| secret.as_ref().is_some_and(|secret| secret.reveal().len() > 4096);
        stray.or(match (&self.username, &self.password) {
            (Some(_), None) => Some(("password", "is required with a username")),
            (None, Some(_)) => Some(("username", "is required with a password")),
            _ if empty(&self.username) => Some(("username", "must not be empty")),
            _ if empty(&self.password) => Some(("password", "must not be empty")),
            _ if long(&self.username) => Some(("username", "must be at most 4096 bytes")),
            _ if long(&self.password) => Some(("password", "must be at most 4096 bytes")),
            _ => None,
        })
    }
}

from_json!(ClientOptions or default {
    api,
    base_url,
    api_key,
    username,
    password,
    token,
    token_codes,
    doubt_codes,
    refusal_codes,
    backend_refuses,
    account,
    same_account,
    store,
    late_calls,
    allow_http,
    daily_cap_usd,
    backend_ready,
    max_in_flight,
    retry,
} but { max_body });

from_json!(CallOptions or default {
    intent,
    idempotency_key,
    wait_for_intent,
    attempts,
    window_ms,
    timeout_ms,
    retry_paid,
    max_unit_price,
    expected_charge_usd,
    headers,
    credentials,
    deadline_ms,
    auto_rotate,
    ends,
    until,
});

impl CallOptions {
    /// Options with an intent.
    pub fn intent(name: impl Into<String>) -> Self {
        CallOptions { intent: Some(name.into()), ..CallOptions::default() }
    }

    pub(super) fn policy(&self, client: &RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            attempts: self.attempts.unwrap_or(client.attempts),
            window_ms: self.window_ms.unwrap_or(client.window_ms),
            timeout_ms: self.timeout_ms.unwrap_or(client.timeout_ms),
            retry_paid: self.retry_paid.unwrap_or(client.retry_paid),
            ..*client
        }
    }

    /// Whether they can be, and go with what is resumed.
    pub(super) fn check_resume(&self) -> Result<(), Error> {
        let refusal = self.without_use(Use::Resume).or_else(|| self.refusal());
        refusal.map_or(Ok(()), |(field, rule)| Err(Error::invalid("resume", field, rule)))
    }

    /// The first option that has no meaning for this, and why.
    pub(super) fn without_use(&self, used: Use) -> Option<(&'static str, &'static str)> {
        const NAMED: &str = "can't be set when something is resumed";
        const NO_WRITE: &str = "names a write, and this operation only reads";
        const NO_KEY: &str = "is not an option of this operation";
        const NO_READ: &str = "belongs to an operation that only reads";
        const NOT_REPEATED: &str = "belongs to a read that is repeated";
        let (intent, until, key) = match used {
            Use::Call(Safety::Safe) => (Some(NO_WRITE), None, Some(NO_KEY)),
            Use::Call(Safety::Keyed) => (None, Some(NO_READ), None),
            Use::Call(_) => (None, Some(NO_READ), Some(NO_KEY)),
            Use::WaitOrder | Use::Reconcile => (Some(NO_WRITE), Some(NOT_REPEATED), Some(NO_KEY)),
            Use::Resume => (Some(NAMED), Some(NO_READ), Some(NAMED)),
        };
        let set = [
            ("intent", self.intent.is_some(), intent),
            ("until", self.until.is_some(), until),
            ("idempotency_key", self.idempotency_key.is_some(), key),
        ];
        set.into_iter().find_map(|(field, is_set, rule)| Some((field, rule.filter(|_| is_set)?)))
    }

    /// The first option that can't be, and why.
    pub(super) fn refusal(&self) -> Option<(&'static str, &'static str)> {
        const OURS: [&str; 6] = ["x-api-key", "authorization", "idempotency-key", "content-type", "accept", "host"];
        let intent =
            self.intent.as_ref().is_some_and(|intent| intent.is_empty() || intent.len() > 256 || intent.chars().any(char::is_control));
        let key = self.idempotency_key.as_deref().is_some_and(|key| !crate::wire::is_key(key));
        let ends = self.ends.iter().any(|end| !(1..=64).contains(&end.len()));
        let header = self.headers.iter().find_map(|(name, value)| {
            let token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
            match () {
                () if !token => Some("must have names made of letters, digits and hyphens"),
                () if OURS.contains(&name.to_ascii_lowercase().as_str()) => Some("must not replace a header that the client sets"),
                () if value.reveal().chars().any(|c| c.is_control() && c != '\t') => Some("must have values without control characters"),
                () => None,
            }
        });
        match () {
            () if intent => Some(("intent", "must be 1 to 256 bytes without control characters")),
            () if self.intent.as_deref().is_some_and(SlotPurchase::is_reserved) => {
                Some(("intent", "must not begin with `pool/`, as those of pools do"))
            }
            () if self.intent.is_some() && self.idempotency_key.is_some() => {
                Some(("idempotency_key", "is a name as an intent is, so give one of them"))
            }
            () if key => Some(("idempotency_key", "must be 1 to 64 visible ASCII characters")),
            () if self.deadline_ms.is_some_and(|ms| ms < 0) => Some(("deadline_ms", "must be at least 0")),
            () if self.ends.len() > 16 || ends => Some(("ends", "must be at most 16 statuses, each of 1 to 64 bytes")),
            () if self.max_unit_price.is_some_and(|price| price < Decimal::from(0)) => Some(("max_unit_price", "must be at least 0")),
            () if self.expected_charge_usd.is_some_and(|charge| charge < Decimal::from(0)) => {
                Some(("expected_charge_usd", "must be at least 0"))
            }
            () if self.until.as_ref().is_some_and(|until| until.refusal().is_some()) => {
                self.until.as_ref().and_then(Until::refusal).map(|rule| ("until", rule))
            }
            () => self.policy(&RetryPolicy::default()).refusal().or(header.map(|rule| ("headers", rule))),
        }
    }
}
