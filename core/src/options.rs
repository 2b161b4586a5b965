//! The options of a client and of one call.

use std::collections::BTreeMap;

use crate::contract::pools::SlotPurchase;
use crate::contract::{Api, Cheapest, Decimal, Safety, Secret, Taker, at_least_0, at_least_1, closed_enum, options};
use crate::engine::{DEADLINE, Until};
#[cfg(feature = "ablation")]
use crate::policy::Rule;
use crate::policy::{Error, RetryPolicy};
use crate::time::Millis;
use crate::wire::{OWN_HEADERS, is_key};

options! {
    /// The options of a client.
    #[derive(Debug, Clone)]
    pub struct ClientOptions {
        /// The API that the client is of.
        api: Api;
        /// The address of the API, with the path that belongs to it, such as `https://host/v1` or `https://host/api`.
        base_url: String;
        /// If true, the host has a store, and carries out [`Step::Store`](crate::client::Step::Store). Without one this client keeps its
        /// names in its own memory.
        store: bool;
        /// If true, that store may carry out a call after it was answered `failed` or given up, such as a database behind a time limit of
        /// the host's own. Then a purchase without a name whose record could not be put is never reported as without effect.
        late_calls: bool;
        /// The policy of repeats.
        retry: RetryPolicy;
        /// The name of the account in the store: purchases of another account are then not found. Without it, each account needs a store of its
        /// own.
        account: Option<String> => Text for [Client];
        /// If true, records of another key, login or base URL are of this account, because only those have changed.
        same_account: bool = false => Flag for [Client];
        /// If true, a backend of your own answers, which refuses in its own format the requests that it does not pass on. Then 401, 403,
        /// 404, 413, 422 and 429, without the envelope or with an undocumented code, are `refused` with effect `none` if every send of the
        /// write was answered like that. Under an intent the key is kept until it is too old, and sent when the intent is started again.
        /// Default: yes if there is no API key, or no username, password and token.
        backend_refuses: Option<bool> => Flag for [Client];
        /// If true, plain http is allowed to a host that is not loopback.
        allow_http: bool = false => Flag for [Client];
        /// The most requests that are out at once, at least 1; writes have seven of eight of them. Further ones wait, and are not sent
        /// before. A termination, a login and a read of the service's time need no place. In a page of a browser the default is 6.
        max_in_flight: u32 = 64 => Count for [Client], |n| at_least_1(*n);
        /// The longest body that is read, in bytes.
        max_body: u32 = 8_388_608 => Count for [Client], |n| at_least_1(*n);
        /// The API key. Without it, only public endpoints and a backend of your own answer.
        api_key: Option<Secret> => Secret for [AgentClient], visible;
        /// The most, in USD, that all clients of the store with the same `account` spend in a UTC day, together: charges, purchases in
        /// doubt and purchases under way; recharges do not count. A purchase beyond it is `refused` before it is sent. Each key counts at
        /// its quote, on each day that it is sent on; a charge above its quote is counted and can pass the cap. A client without a cap
        /// does not count its purchases, so give every client of a store the same cap. The account's own limit, which holds for all
        /// stores, is `daily_limit_usd` of `update_budget`.
        daily_cap_usd: Option<Decimal> => Decimal for [AgentClient], |usd| usd.and_then(at_least_0);
        /// `backend_ready` from the answer of `register_account`. If false, purchases of sessions are `refused` before they are sent,
        /// until `get_account` says otherwise.
        backend_ready: Option<bool> => Flag for [AgentClient];
        /// The name to log in with. The client logs in by itself, once for any number of calls, when it has no token or the service refuses
        /// it.
        username: Option<Secret> => Secret for [ResellerClient], login;
        /// The password for the username.
        password: Option<Secret> => Secret for [ResellerClient], login;
        /// A token to start with. Without a username and a password the client has no other.
        token: Option<Secret> => Secret for [ResellerClient], visible;
        /// The codes that mean that the token is refused, beside HTTP 401. Default: `401`.
        token_codes: Option<Vec<String>> => Texts for [ResellerClient];
        /// Further codes that do not say whether a write was done: then it is `in_doubt`. They are checked after `token_codes` and before
        /// `refusal_codes`. Each is compared as text, whole. Default: none.
        doubt_codes: Option<Vec<String>> => Texts for [ResellerClient];
        /// Further codes that say that a write was not done: then it is `refused`, though not under HTTP 408, 409, 425, 429 and 5xx. The
        /// service documents only one code, so the client assumes which others say so, and leaves all others in doubt. Default: none.
        refusal_codes: Option<Vec<String>> => Texts for [ResellerClient];
        {
            /// The rule that is taken away, to show its purpose.
            #[cfg(feature = "ablation")]
            without: Option<Rule>
        }
    }
}

options! {
    /// The options of one call. Omitted ones are the client's.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    pub struct CallOptions {
        /// Your own name for this write, such as `job-17`: starting it again joins, resumes or returns it, with the options of the new
        /// start. Numbers are compared as numbers: 0.5 and 0.50 are one request. A request with another parameter is another request and is
        /// refused, and so is one that states a default of the service. 1 to 256 bytes.
        intent: Option<String> => Text for [Write], |name| name.as_deref().and_then(intent);
        /// A key of your own, 1 to 64 visible ASCII characters, which names the write as an intent does. The key counts as sent before and
        /// is never replaced.
        idempotency_key: Option<String> => Text for [Keyed], |key| key.as_deref().and_then(idempotency_key);
        /// If true, the call waits while another client uses the intent or key, or holds its session: up to its deadline, or 5 minutes where
        /// it has none; if false, it is `busy` at once.
        wait_for_intent: bool = false => Flag for [Write];
        /// The behaviour of a start whose intent stands for a session that is over. With `buy` the start buys the next session, which may
        /// be another request, so that the intent is one living session and not one purchase. Over means for good: `terminated`, a dynamic
        /// session that is `expired`, or one that was usable and is not found any more. A static session that can be renewed, and one that
        /// is over only by `ends`, stay an error. A start buys once, and not if it waited for the intent. `buy` needs an `intent` and a
        /// client with a daily cap. Default: `error`.
        if_ended: Option<IfEnded> => IfEnded for [Open];
        /// If true, the call buys again with a new key after a failure of the service. The service may have sold all the same, and then
        /// charges twice.
        retry_paid: Option<bool> => Flag for [Paid];
        /// The highest price of one unit at which the call buys, in USD, at least 0. The account's own list is read first, and again if the
        /// service answers that the price has changed; a higher price is `refused`.
        max_unit_price: Option<Decimal> => Decimal for [Purchase], |usd| usd.and_then(at_least_0);
        /// The choice of the product, in place of its number: the cheapest one of the account's list that fits. The list is read once
        /// nothing was found under the intent. If the service does not sell the product any more, or not at that price, the call chooses
        /// again, for five keys at most.
        product: Option<Cheapest> => Product for [Purchase], |product| product.as_ref().and_then(Cheapest::refusal);
        /// The HTTP client that is to use the session's proxy. If it does not support the `protocol` that is named, the call is `invalid`, and
        /// nothing is bought. If none is named, the session is bought with `http`, which each of them supports; that choice is no part of what
        /// is compared under an intent.
        use_with: Option<String> => UseWith for [Open];
        /// The expected charge, in USD. If the client has a daily cap and no price decides the charge, the call is `invalid` without this:
        /// a renewal, a static session with a `duration`, and a product that is not priced in USD; the last one under a highest price, too.
        expected_charge_usd: Option<Decimal> => Decimal for [Renew], |usd| usd.and_then(at_least_0);
        /// The most sends of the call, the first one included.
        attempts: Option<u32> => Count for [Call];
        /// The time from the first send within which another may be made.
        window_ms: Option<Millis> => Time for [Call];
        /// The longest time of one attempt.
        timeout_ms: Option<u32> => Time for [Call];
        /// Further headers of the request. They are not kept in records.
        headers: BTreeMap<String, Secret> => Headers for [Call], |all| all.iter().find_map(|(name, value)| header(name, value));
        /// The condition that ends a repeated read, at growing intervals from a second on; the answer's `phase` says whether it holds.
        until: Option<Until> => Until for [Read], |until| until.as_ref().and_then(Until::refusal);
        /// If true, the username and password are requested once the session is active. Default: yes.
        credentials: Option<bool> => FlagOn for [Wait];
        /// If true, a session that is not usable at the deadline is returned with its `phase`; if false, that is an error.
        allow_pending: bool = false => Flag for [Wait];
        /// If true, `observe` rotates the session, a dynamic one, when its advice is to rotate. The setting stays, even after a crash.
        auto_rotate: bool = false => Flag for [Wait];
        /// The time after which the last known state is returned, or an error if that is of a session that is not usable, from when the call
        /// first may send: the wait for a busy intent has a deadline of its own before that, as long as this one, and the wait for a place
        /// among the requests that are out is added. One last read is made then; a request that is out then is waited for, and a purchase is
        /// sent in any case. Default: 5 minutes.
        deadline_ms: Option<Millis> => Time for [Read, Watch], |ms| ms.and_then(at_least_0);
        /// Further statuses that end the wait, at most 16, each of 1 to 64 bytes.
        ends: Vec<String> => Texts for [Watch], |all| ends(all);
    }
}

closed_enum! {
    /// The behaviour of a start whose intent stands for a session that is over for good.
    pub enum IfEnded {
        /// The start is an error of the kind `ended`, and buys nothing.
        Error = "error",
        /// The start buys the next session of the intent.
        Buy = "buy",
    }
}

/// The rule of a key or a token.
fn visible(secret: &Option<Secret>) -> Option<&'static str> {
    let text = secret.as_ref()?.reveal();
    let is_visible = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    (!is_visible).then_some("must be visible ASCII characters")
}

/// The rule of a username or a password.
fn login(secret: &Option<Secret>) -> Option<&'static str> {
    match secret.as_ref()?.reveal().len() {
        0 => Some("must not be empty"),
        4097.. => Some("must be at most 4096 bytes"),
        _ => None,
    }
}

fn intent(name: &str) -> Option<&'static str> {
    if name.is_empty() || name.len() > 256 || name.chars().any(char::is_control) {
        return Some("must be 1 to 256 bytes without control characters");
    }
    SlotPurchase::is_reserved(name).then_some("must not begin with `pool/`, as those of pools do")
}

fn idempotency_key(key: &str) -> Option<&'static str> {
    (!is_key(key)).then_some("must be 1 to 64 visible ASCII characters")
}

fn ends(all: &[String]) -> Option<&'static str> {
    let is_wrong = all.len() > 16 || all.iter().any(|end| !(1..=64).contains(&end.len()));
    is_wrong.then_some("must be at most 16 statuses, each of 1 to 64 bytes")
}

fn header(name: &str, value: &Secret) -> Option<&'static str> {
    let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    if !is_token {
        return Some("must have names made of letters, digits and hyphens");
    }
    if OWN_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Some("must not replace a header that the client sets");
    }
    // HTTP clients encode other characters each in its own way, or fail when they send them.
    let is_plain = value.reveal().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ' || byte == b'\t');
    (!is_plain).then_some("must have ASCII values without control characters")
}

/// The use of options, which decides the meaning of an `intent`, a key and `until`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Use {
    /// An operation that may be repeated like this.
    Call(Safety),
    /// Waiting for an order, which reads a list by itself.
    WaitOrder,
    /// The lookup of a doubt.
    Reconcile,
    /// A resume, which has an intent and a key of its own.
    Resume,
}

impl ClientOptions {
    /// The first option that is invalid or does not fit the others, with the rule.
    pub(crate) fn refusal(&self) -> Option<(&'static str, &'static str)> {
        let stray = match self.api {
            Api::Agent => self.first_set(Taker::ResellerClient).map(|field| (field, "belongs to the reseller API")),
            Api::Reseller => self.first_set(Taker::AgentClient).map(|field| (field, "belongs to the agent API")),
        };
        stray.or(match (&self.username, &self.password) {
            (Some(_), None) => Some(("password", "is required with a username")),
            (None, Some(_)) => Some(("username", "is required with a password")),
            _ => self.wrong_value().or_else(|| self.retry.wrong_value()),
        })
    }
}

impl CallOptions {
    /// Options with an intent.
    pub fn intent(name: impl Into<String>) -> Self {
        CallOptions { intent: Some(name.into()), ..CallOptions::default() }
    }

    /// The time for which a session, an order or a busy name is waited for.
    pub(crate) fn deadline(&self) -> Millis {
        self.deadline_ms.unwrap_or(DEADLINE)
    }

    pub(crate) fn policy(&self, client: &RetryPolicy) -> RetryPolicy {
        RetryPolicy {
            attempts: self.attempts.unwrap_or(client.attempts),
            window_ms: self.window_ms.unwrap_or(client.window_ms),
            timeout_ms: self.timeout_ms.unwrap_or(client.timeout_ms),
            retry_paid: self.retry_paid.unwrap_or(client.retry_paid),
            ..*client
        }
    }

    /// Returns true if a start buys the next session where the last one is over.
    pub(crate) fn buys_if_ended(&self) -> bool {
        self.if_ended == Some(IfEnded::Buy)
    }

    /// Returns an error if an option is invalid or does not fit a resume.
    pub(crate) fn check_resume(&self) -> Result<(), Error> {
        let refusal = self.without_use(Use::Resume).or_else(|| self.refusal());
        refusal.map_or(Ok(()), |(field, rule)| Err(Error::invalid("resume", field, rule)))
    }

    /// The first option that has no meaning for this use, with the rule.
    pub(crate) fn without_use(&self, used: Use) -> Option<(&'static str, &'static str)> {
        const NAMED: &str = "can't be set on resume";
        const NO_WRITE: &str = "names a write, and this operation only reads";
        const NO_KEY: &str = "is not an option of this operation";
        const NO_READ: &str = "belongs to an operation that only reads";
        const NO_PURCHASE_OF_SESSION: &str = "belongs to a purchase of a session";
        const NO_PURCHASE: &str = "belongs to `open_session`, which may buy";
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
            ("product", self.product.is_some(), if matches!(used, Use::Call(Safety::Keyed)) { None } else { Some(NO_PURCHASE_OF_SESSION) }),
            ("use_with", self.use_with.is_some(), if matches!(used, Use::Call(Safety::Keyed)) { None } else { Some(NO_PURCHASE) }),
            ("if_ended", self.if_ended.is_some(), if matches!(used, Use::Call(Safety::Keyed)) { None } else { Some(NO_PURCHASE) }),
        ];
        set.into_iter().find_map(|(field, is_set, rule)| Some((field, rule.filter(|_| is_set)?)))
    }

    /// The first option that is invalid, with the rule.
    pub(crate) fn refusal(&self) -> Option<(&'static str, &'static str)> {
        if self.intent.is_some() && self.idempotency_key.is_some() {
            return Some(("idempotency_key", "names the write as an intent does, so set only one of them"));
        }
        self.wrong_value().or_else(|| self.policy(&RetryPolicy::default()).wrong_value())
    }
}
