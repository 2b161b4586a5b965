//! The service: every rule of the contract, as a function of the request and the time.

mod billing;
mod catalogue;
mod config;
mod create;
mod envelope;
pub(crate) mod faults;
mod idempotency;
pub(crate) mod ids;
mod input;
mod observe;
mod products;
mod routes;
mod session;
mod sessions;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, Request, Response};
use rust_decimal::Decimal;

pub use billing::Charge;
pub use config::Config;
pub use envelope::{CODES, CompletesAt};
pub(crate) use envelope::{Number, timestamp};
pub use faults::{ErrorFault, Fault, FaultRule};
pub use observe::{Exit, SessionView};
pub use routes::{BASE_PATH, OPERATIONS};

use catalogue::Product;
use envelope::{Answer, Code, Refusal, Reply};
use faults::take;
use input::Query;
use products::Price;
use routes::{Auth, Call, Repeat};
use session::Session;

/// The one account of the sandbox.
const ACCOUNT_ID: u32 = 1001;

const MINUTE_MS: i64 = 60_000;

/// The agent API of one account.
///
/// A clone is a branch: it costs a handful of small allocations, whatever the catalogue holds.
#[derive(Clone, Debug)]
pub struct Service {
    config: Arc<Config>,
    catalogue: Arc<[Arc<Product>]>,
    /// Only the prices that were changed.
    prices: BTreeMap<String, Price>,
    balance: Decimal,
    sessions: Vec<Session>,
    charges: Vec<Charge>,
    answers: idempotency::Store,
    faults: Vec<FaultRule>,
    executions: BTreeMap<&'static str, u32>,
    throttle: Throttle,
    requests: u64,
    exits: u32,
}

/// The requests that were counted in the running minute of the clock.
#[derive(Clone, Copy, Debug, Default)]
struct Throttle {
    minute: i64,
    used: u32,
}

impl Service {
    /// A service with a fresh account.
    pub fn new(config: Config) -> Self {
        Self {
            catalogue: catalogue::products().into_iter().map(Arc::new).collect(),
            prices: BTreeMap::new(),
            balance: config.balance,
            sessions: Vec::new(),
            charges: Vec::new(),
            answers: idempotency::Store::default(),
            faults: Vec::new(),
            executions: BTreeMap::new(),
            throttle: Throttle::default(),
            requests: 0,
            exits: 0,
            config: Arc::new(config),
        }
    }

    /// Its settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Answers a request at a time, in Unix milliseconds. The URI may be absolute or a path with its query.
    pub fn handle(&mut self, request: &Request<Vec<u8>>, now_ms: i64) -> Response<Vec<u8>> {
        self.requests += 1;
        let answer = match self.admit(request, now_ms) {
            Ok(answer) => answer,
            Err(refusal) => self.seal(Err(refusal), now_ms),
        };
        answer.into_response(now_ms)
    }

    /// The name of the operation that a request calls, if it calls one.
    pub fn operation(request: &Request<Vec<u8>>) -> Option<&'static str> {
        routes::find(request.method(), request.uri().path()).map(|(route, _)| route.operation)
    }

    /// Adds a fault; of several that match, the oldest is applied first.
    pub fn inject(&mut self, rule: FaultRule) {
        self.faults.push(rule);
    }

    /// Forgets all faults.
    pub fn clear_faults(&mut self) {
        self.faults.clear();
    }

    /// What stands before the idempotency store is refused here and never stored: an unknown route, a wrong key, the
    /// rate limit, an unusable `Idempotency-Key`. All else is the operation's own answer, stored under its key.
    fn admit(&mut self, request: &Request<Vec<u8>>, now_ms: i64) -> Result<Answer, Refusal> {
        let path = request.uri().path();
        let (route, id) = routes::find(request.method(), path).ok_or_else(|| routes::not_found(request.method(), path))?;
        if route.auth == Auth::Key {
            self.authenticate(request.headers())?;
            self.throttle(now_ms)?;
        }
        if let Some(Fault::Error(error)) = take(&mut self.faults, route.operation, Fault::is_before_the_store) {
            return Err(error.refusal());
        }
        let key = if route.repeat == Repeat::Keyed { idempotency::key(request.headers())? } else { None };
        if let Some(key) = &key
            && let Some(answer) = self.answers.recall(key, path, request.body(), now_ms)?
        {
            return Ok(answer);
        }

        let fault = take(&mut self.faults, route.operation, |_| true);
        let run = |service: &mut Self| {
            *service.executions.entry(route.operation).or_default() += 1;
            let query = Query::parse(request.uri().query())?;
            (route.run)(service, &Call { now_ms, id, query, body: request.body(), key: key.clone() })
        };
        let result = match &fault {
            Some(Fault::Error(error)) if error.sold => run(self).and_then(|_| Err(error.refusal())),
            Some(Fault::Error(error)) => Err(error.refusal()),
            Some(Fault::InProgress { .. }) | None => run(self),
        };
        let mut answer = self.seal(result, now_ms);
        let completes_at = match &fault {
            Some(Fault::Error(error)) if !error.stored => return Ok(answer),
            Some(Fault::InProgress { ms }) => now_ms.saturating_add(*ms),
            _ => now_ms,
        };
        if let Some(key) = key {
            self.answers.keep(key, path, request.body(), completes_at, answer.clone());
        }
        if completes_at > now_ms {
            answer.completes_at = Some(CompletesAt(completes_at));
        }
        Ok(answer)
    }

    fn seal(&self, result: Result<Reply, Refusal>, now_ms: i64) -> Answer {
        let request_id = format!("req_{}", ids::token(self.config.seed, ids::REQUEST, self.requests));
        Answer::of(result, &request_id, now_ms)
    }

    fn authenticate(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        match headers.get("X-API-Key") {
            Some(key) if key.as_bytes() == self.config.api_key.as_bytes() => Ok(()),
            Some(_) => Err(Refusal::new(Code::AuthInvalidKey, "X-API-Key does not match an active key")),
            None => Err(Refusal::new(Code::AuthInvalidKey, "X-API-Key is missing")),
        }
    }

    fn throttle(&mut self, now_ms: i64) -> Result<(), Refusal> {
        let minute = now_ms.div_euclid(MINUTE_MS);
        if self.throttle.minute != minute {
            self.throttle = Throttle { minute, used: 0 };
        }
        if self.throttle.used < self.config.requests_per_minute {
            self.throttle.used += 1;
            return Ok(());
        }
        let left_ms = MINUTE_MS - now_ms.rem_euclid(MINUTE_MS);
        let seconds = u32::try_from((left_ms + 999) / 1000).unwrap_or(60);
        Err(Refusal::new(Code::RateLimitExceeded, "too many requests in this minute").retry_after(seconds))
    }
}
