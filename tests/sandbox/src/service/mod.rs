//! The service: every rule of the contract, as a function of the request and the time.

mod account;
mod billing;
mod budget;
mod call;
mod catalogue;
mod config;
mod create;
mod envelope;
pub(crate) mod faults;
mod health;
mod idempotency;
pub(crate) mod ids;
mod in_progress;
mod input;
mod observe;
mod products;
mod recharge;
mod reseller;
mod routes;
mod session;
mod sessions;
mod signup;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Request, Response};
use rust_decimal::Decimal;

pub use billing::Charge;
pub use config::Config;
pub use envelope::{CODES, InProgress, RetryAfter};
#[cfg(feature = "server")]
pub(crate) use envelope::{Number, timestamp};
pub use faults::{ErrorFault, Fault, FaultRule};
pub use observe::{Exit, SessionView};
pub use recharge::OrderView;
pub use reseller::{
    BACKEND_OPERATIONS, BACKEND_PATH, BackendView, Code, DynamicOrderView, EntryView, List, Login, Message, ProductType, RefusalStatus,
    Spelling, StaticOrderView, UsdtOrderView, UserView,
};
pub use routes::{BASE_PATH, OPERATIONS};
pub use signup::Mail;

use account::{Account, FIRST_AGENT, RESOURCES};
use billing::Credit;
use call::Call;
use catalogue::Product;
use envelope::{Answer, Refusal, Reply};
use faults::take;
use in_progress::Work;
use input::Query;
use products::{Cached, Stock};
use reseller::{Backend, Owner};
use routes::{Auth, Repeat};
use session::Session;
use signup::Signups;

/// Both APIs on the same accounts. The first account is there from the beginning; others are opened through it.
///
/// A clone is a branch: it costs a handful of small allocations, whatever the catalogue holds.
#[derive(Clone, Debug)]
pub struct Service {
    config: Arc<Config>,
    catalogue: Arc<[Arc<Product>]>,
    /// Only the prices that were changed.
    prices: BTreeMap<String, Decimal>,
    stock: Stock,
    public: Option<Cached>,
    accounts: Vec<Account>,
    /// Why accounts that are opened are not synced with the resource backend, when they are not.
    new_unready: Option<Arc<str>>,
    signups: Signups,
    mails: Vec<Mail>,
    sessions: Vec<Session>,
    charges: Vec<Charge>,
    credits: Vec<Credit>,
    orders: Vec<recharge::Order>,
    backend: Backend,
    faults: Vec<FaultRule>,
    works: Vec<Work>,
    executions: BTreeMap<&'static str, u32>,
    requests: u64,
    exits: u32,
}

impl Service {
    /// A service with a fresh account.
    pub fn new(config: Config) -> Self {
        let account = Account::new(FIRST_AGENT, &config.api_key, config.balance);
        let mut service = Self {
            catalogue: catalogue::products().into_iter().map(Arc::new).collect(),
            prices: BTreeMap::new(),
            stock: Stock::new(),
            public: None,
            accounts: vec![account],
            new_unready: None,
            signups: Signups::default(),
            mails: Vec::new(),
            sessions: Vec::new(),
            charges: Vec::new(),
            credits: Vec::new(),
            orders: Vec::new(),
            backend: Backend::default(),
            faults: Vec::new(),
            works: Vec::new(),
            executions: BTreeMap::new(),
            requests: 0,
            exits: 0,
            config: Arc::new(config),
        };
        for (order_no, product_no) in RESOURCES {
            service.add_resource(order_no, product_no, 0);
        }
        service
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Answers a request at a time, in Unix milliseconds. The URI may be absolute or a path with its query.
    pub fn handle(&mut self, request: &Request<Vec<u8>>, now_ms: i64) -> Response<Vec<u8>> {
        self.requests += 1;
        self.catch_up(now_ms);
        if reseller::is_own(request.uri().path()) {
            return self.handle_backend(request, now_ms).into_response(now_ms);
        }
        let answer = match self.admit(request, now_ms) {
            Ok(answer) => answer,
            Err(refusal) => self.seal(Err(refusal), self.requests, now_ms),
        };
        answer.into_response(now_ms)
    }

    /// The name of the operation that a request calls, if it calls one.
    pub fn operation(request: &Request<Vec<u8>>) -> Option<&'static str> {
        let (method, path) = (request.method(), request.uri().path());
        let agents = routes::find(method, path).map(|(route, _)| route.operation);
        agents.or_else(|| reseller::find(method, path).map(|(route, _)| route.operation))
    }

    /// Adds a fault; of several that match, the oldest is applied first.
    pub fn inject(&mut self, rule: FaultRule) {
        self.faults.push(rule);
    }

    /// Forgets all faults.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// Refuses, and never stores, all that stands before the idempotency store: an unknown route, a wrong key, an account without
    /// permission, the rate limit, an unusable `Idempotency-Key`. All else is the operation's own answer, stored under its key.
    fn admit(&mut self, request: &Request<Vec<u8>>, now_ms: i64) -> Result<Answer, Refusal> {
        let path = request.uri().path();
        let (route, _) = routes::find(request.method(), path).ok_or_else(|| routes::not_found(request.method(), path))?;
        let account = if route.auth == Auth::Key { self.enter(request.headers(), route.operation, now_ms)? } else { 0 };
        if let Some(Fault::Error(error)) = take(&mut self.faults, Some(route.operation), Fault::is_before_the_store) {
            return Err(error.refusal());
        }
        let key = if route.repeat == Repeat::Keyed { idempotency::key(request.headers())? } else { None };
        if let Some(key) = &key
            && let Some(answer) = self.accounts[account].answers.recall(key, path, request.body(), now_ms)?
        {
            return Ok(answer);
        }

        let caller = Owner { agent: account, user: None };
        let error = match take(&mut self.faults, Some(route.operation), |_| true) {
            Some(Fault::InProgress { ms, error }) => {
                let ends_at = now_ms.saturating_add(ms);
                if let Some(key) = key {
                    self.accounts[account].answers.keep(key, path, request.body(), ends_at, None);
                }
                return Ok(self.put_off(request, caller, ends_at, error));
            }
            Some(Fault::Error(error)) => Some(error),
            None => None,
        };
        Ok(self.do_now(request, account, self.requests, error.as_ref(), now_ms))
    }

    /// Does work that was put off.
    fn work(&mut self, work: &Work) -> Answer {
        let Work { request, caller, error, number, ends_at, .. } = work;
        if reseller::is_own(request.uri().path()) {
            return self.do_backend(request, *caller, error.as_ref(), *ends_at);
        }
        self.do_now(request, caller.agent, *number, error.as_ref(), *ends_at)
    }

    /// Does the work of an admitted request and keeps its answer under its key.
    fn do_now(&mut self, request: &Request<Vec<u8>>, account: usize, number: u64, error: Option<&ErrorFault>, now_ms: i64) -> Answer {
        let (path, headers, body) = (request.uri().path(), request.headers(), request.body());
        let Some((route, id)) = routes::find(request.method(), path) else {
            return self.seal(Err(routes::not_found(request.method(), path)), number, now_ms);
        };
        let key = if route.repeat == Repeat::Keyed { idempotency::key(headers).ok().flatten() } else { None };
        let run = |service: &mut Self| {
            *service.executions.entry(route.operation).or_default() += 1;
            let query = Query::parse(request.uri().query())?;
            (route.run)(service, &Call { now_ms, account, id, query, headers, body, key: key.clone() })
        };
        let result = match error {
            Some(error) if error.sold => run(self).and_then(|_| Err(error.refusal())),
            Some(error) => Err(error.refusal()),
            None => run(self),
        };
        let answer = self.seal(result, number, now_ms);
        let is_kept = error.is_none_or(|error| error.stored);
        if let Some(key) = key {
            let answers = &mut self.accounts[account].answers;
            match is_kept {
                true => answers.keep(key, path, body, now_ms, Some(answer.clone())),
                false => answers.free(&key),
            }
        }
        answer
    }

    fn seal(&self, result: Result<Reply, Refusal>, number: u64, now_ms: i64) -> Answer {
        let request_id = format!("req_{}", ids::token(self.config.seed, ids::REQUEST, number));
        Answer::of(result, &request_id, now_ms)
    }
}
