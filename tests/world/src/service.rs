//! The service, the network before it, and what the service's own books say of each job.

use hopline::client::{FailureKind, Millis, Sent};
use hopline::contract::Api;
use hopline::wire::Request;
use hopline_sandbox::{BACKEND_PATH, Config, ErrorFault, Fault, FaultRule, Service};
use rust_decimal::Decimal;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use crate::fate::Fate;
use crate::job::Task;

/// A response, or the lack of one.
#[derive(Debug, Clone)]
pub(crate) enum Heard {
    Response { status: u16, headers: Vec<(String, String)>, body: Vec<u8> },
    Lost(FailureKind, Sent),
}

/// Something that the service did once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Effect {
    /// The key that it was done under.
    pub(crate) key: Option<String>,
    /// The session or order that came of it.
    pub(crate) id: Option<String>,
}

/// How much the service has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct Books {
    charges: usize,
    orders: usize,
    rotations: u32,
    budgets: u32,
    placed: usize,
    adjusted: usize,
}

/// The service of a world.
#[derive(Clone)]
pub(crate) struct Remote {
    api: Api,
    service: Service,
    /// The token that a client starts from.
    pub(crate) token: Option<String>,
    /// What was changed so far, and when, as a number: two services with one number do the same from here on.
    digest: u64,
    requests: u64,
    books: Books,
    /// The sessions that were accepted, in order.
    pub(crate) sessions: Vec<String>,
    /// What is worked on: whose it is.
    working: Option<(usize, Option<String>)>,
    /// What one GB costs, in whole dollars.
    pub(crate) price: i64,
}

impl Hash for Remote {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.digest, self.books, &self.working, &self.token).hash(state);
        // Its tokens are made from the number of the request.
        (self.api == Api::Reseller).then_some(self.requests).hash(state);
    }
}

pub(crate) const API_KEY: &str = "canary-key-of-the-world";
const START: Millis = 1_800_000_000_000;
/// How long slow work takes.
const SLOW: Millis = 30_000;

impl Remote {
    pub(crate) fn new(api: Api) -> Remote {
        static AGENT: OnceLock<Service> = OnceLock::new();
        static RESELLER: OnceLock<(Service, String)> = OnceLock::new();
        let (service, token) = match api {
            Api::Agent => (AGENT.get_or_init(|| Service::new(config())).clone(), None),
            Api::Reseller => {
                let (service, token) = RESELLER.get_or_init(reseller);
                (service.clone(), Some(token.clone()))
            }
        };
        let mut remote =
            Remote { api, service, token, digest: 0, requests: 0, books: Books::default(), sessions: Vec::new(), working: None, price: 4 };
        remote.books = remote.count(START);
        remote
    }

    pub(crate) const START: Millis = START;

    /// The username and password of the reseller.
    pub(crate) fn login(&self) -> (String, String) {
        self.service.logins().into_iter().next().map(|login| (login.username, login.password)).unwrap_or_default()
    }

    /// Executes a request, and says what came of it: the answer, and what else it did, each with the job that it was for.
    pub(crate) fn execute(
        &mut self,
        request: &http::Request<Vec<u8>>,
        job: Option<usize>,
        now: Millis,
        effects: &mut Vec<(usize, Effect)>,
    ) -> Heard {
        self.settle(now, effects);
        self.requests += 1;
        if request.method() != "GET" {
            let mut hasher = rustc_hash::FxHasher::default();
            (self.digest, request.uri().path(), request.headers().get("idempotency-key").map(|key| key.as_bytes()), request.body(), now)
                .hash(&mut hasher);
            self.digest = hasher.finish();
        }
        let answer = self.service.handle(request, now);
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
        self.note(now, job, key.as_deref(), effects);
        if answer.extensions().get::<hopline_sandbox::InProgress>().is_some() {
            self.working = job.map(|job| (job, key));
            return lost();
        }
        let (parts, body) = answer.into_parts();
        let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Heard::Response { status: parts.status.as_u16(), headers: headers.collect(), body }
    }

    /// Lets the work be done whose time has come.
    pub(crate) fn settle(&mut self, now: Millis, effects: &mut Vec<(usize, Effect)>) {
        if self.working.is_some() && self.service.in_progress(now) == 0 {
            let (job, key) = self.working.take().unwrap_or_default();
            self.note(now, Some(job), key.as_deref(), effects);
        }
    }

    /// Executes a request as its fate has it; a message that is to arrive later is the network's.
    pub(crate) fn meet(
        &mut self,
        fate: Fate,
        request: &http::Request<Vec<u8>>,
        job: Option<usize>,
        now: Millis,
        effects: &mut Vec<(usize, Effect)>,
    ) -> Heard {
        let is_login = request.uri().path().ends_with("/auth/login");
        match fate {
            Fate::Answered | Fate::CopyLater => self.execute(request, job, now, effects),
            Fate::Twice => {
                self.execute(request, job, now, effects);
                self.execute(request, job, now, effects)
            }
            Fate::LostBefore | Fate::Delayed => lost(),
            Fate::LostAfter => {
                self.execute(request, job, now, effects);
                lost()
            }
            Fate::PageBefore => page(502),
            Fate::PageAfter => {
                self.execute(request, job, now, effects);
                page(504)
            }
            Fate::DoorBefore => page(401),
            Fate::DoorAfter => {
                self.execute(request, job, now, effects);
                page(401)
            }
            Fate::Cut => match self.execute(request, job, now, effects) {
                Heard::Response { status, headers, body } => {
                    Heard::Response { status, headers, body: body.get(..body.len() / 2).unwrap_or_default().to_vec() }
                }
                lost => lost,
            },
            Fate::Expired => {
                self.service.expire_tokens();
                self.digest = self.digest.wrapping_add(1);
                self.execute(request, job, now, effects)
            }
            Fate::Refused if is_login => self.refusal(401, 0),
            Fate::Refused if self.api == Api::Reseller => self.refusal(400, 0),
            Fate::Refused => self.fault("INSUFFICIENT_BALANCE", None, true, false, request, job, now, effects),
            Fate::Locked => self.fault("AUTH_INVALID_KEY", None, false, false, request, job, now, effects),
            Fate::Unknown => self.fault("SOMETHING_ELSE", Some(422), true, false, request, job, now, effects),
            Fate::Mismatch => self.fault("PRICE_MISMATCH", None, true, false, request, job, now, effects),
            Fate::Throttled => self.refusal(429, 1),
            Fate::ThrottledLong => self.refusal(429, 3600),
            Fate::Conflict => {
                self.execute(request, job, now, effects);
                failure("IDEMPOTENCY_CONFLICT", 409, "", "")
            }
            Fate::StoredFailure => self.fault(self.broken(), Some(504), true, false, request, job, now, effects),
            Fate::StoredSale => self.fault(self.broken(), Some(504), true, true, request, job, now, effects),
            // One at a time, so that what it did is known to be its own.
            Fate::Slow | Fate::SlowFails if self.working.is_some() => lost(),
            Fate::Slow | Fate::SlowFails => {
                let error = ErrorFault { code: "BACKEND_ERROR".into(), stored: true, ..ErrorFault::default() };
                let error = (fate == Fate::SlowFails).then_some(error);
                self.with(Fault::InProgress { ms: SLOW, error }, request, job, now, effects)
            }
            Fate::Dearer => {
                self.price = 12;
                self.service.set_price("dynamic-world", Decimal::from(self.price));
                self.digest = self.digest.wrapping_add(2);
                self.execute(request, job, now, effects)
            }
            Fate::Unreached => Heard::Lost(FailureKind::Connect, Sent::Never),
        }
    }

    fn broken(&self) -> &'static str {
        if self.api == Api::Agent { "BACKEND_TIMEOUT" } else { "504" }
    }

    #[expect(clippy::too_many_arguments, reason = "a fault is a row of a table")]
    fn fault(
        &mut self,
        code: &str,
        status: Option<u16>,
        stored: bool,
        sold: bool,
        request: &http::Request<Vec<u8>>,
        job: Option<usize>,
        now: Millis,
        effects: &mut Vec<(usize, Effect)>,
    ) -> Heard {
        let fault = ErrorFault { code: code.into(), status, stored, sold, ..ErrorFault::default() };
        self.with(Fault::Error(fault), request, job, now, effects)
    }

    fn with(
        &mut self,
        fault: Fault,
        request: &http::Request<Vec<u8>>,
        job: Option<usize>,
        now: Millis,
        effects: &mut Vec<(usize, Effect)>,
    ) -> Heard {
        let mut hasher = rustc_hash::FxHasher::default();
        (self.digest, format!("{fault:?}")).hash(&mut hasher);
        self.digest = hasher.finish();
        self.service.inject(FaultRule { operation: None, times: 1, fault });
        let heard = self.execute(request, job, now, effects);
        self.service.clear_faults();
        heard
    }

    /// The service's own refusal, before anything was done.
    fn refusal(&self, status: u16, wait: u32) -> Heard {
        if self.api == Api::Agent {
            // A gateway that repeats one id makes every 429 look like a stored one.
            return failure("RATE_LIMIT_EXCEEDED", status, &format!(r#","details":{{"retry_after":{wait}}}"#), "one id");
        }
        let mut headers = vec![("content-type".into(), "application/json".into())];
        headers.extend((wait > 0).then(|| ("retry-after".to_owned(), wait.to_string())));
        Heard::Response { status, headers, body: format!(r#"{{"code":{status},"message":"no","data":null}}"#).into_bytes() }
    }

    fn count(&mut self, now: Millis) -> Books {
        let mut books = Books { charges: self.service.charges().len(), orders: self.service.orders().len(), ..Books::default() };
        match self.api {
            Api::Agent => {
                books.rotations = self.service.sessions(now).iter().map(|session| session.rotations).sum();
                books.budgets = self.service.executions().get("update_budget").copied().unwrap_or_default();
            }
            Api::Reseller => {
                let backend = self.service.backend(now);
                books.placed = backend.static_orders.len();
                books.adjusted = backend.entries.iter().filter(|entry| entry.r#type == "adjustment").count();
            }
        }
        books
    }

    /// Notes what was done since, for a job.
    fn note(&mut self, now: Millis, job: Option<usize>, key: Option<&str>, effects: &mut Vec<(usize, Effect)>) {
        let (before, after) = (self.books, self.count(now));
        self.books = after;
        let new = self.service.charges().get(before.charges..).unwrap_or_default();
        let mut ids: Vec<Option<String>> = new.iter().map(|charge| Some(charge.session_id.to_string())).collect();
        self.sessions.extend(new.iter().filter(|charge| charge.operation == "create_session").map(|charge| charge.session_id.to_string()));
        if after.placed > before.placed {
            ids.extend(self.service.backend(now).static_orders.into_iter().skip(before.placed).map(|order| Some(order.order_no)));
        }
        let others = (after.orders - before.orders)
            + (after.rotations - before.rotations) as usize
            + (after.budgets - before.budgets) as usize
            + (after.adjusted - before.adjusted);
        ids.extend((0..others).map(|_| None));
        let key = key.map(str::to_owned);
        effects.extend(ids.into_iter().filter_map(|id| Some((job?, Effect { key: key.clone(), id }))));
    }

    /// Whether an effect of a task has an id of its own that a caller must come to know.
    pub(crate) fn names(task: Task) -> bool {
        matches!(task, Task::Open | Task::Create | Task::Order)
    }
}

fn config() -> Config {
    let mut config = Config::new(1);
    config.api_key = API_KEY.to_owned();
    config.balance = 100_000.into();
    config.provisioning_ms = 1_500..=1_500;
    config.requests_per_minute = u32::MAX;
    config.session_limit = usize::MAX;
    config
}

/// A service with a sub-user that has money, and a token of its reseller.
fn reseller() -> (Service, String) {
    let mut service = Service::new(config());
    service.set_stock("static-us", 60_000);
    let login = service.logins().into_iter().next().expect("there is a reseller");
    let mut post = |path: &str, token: &str, body: serde_json::Value| -> serde_json::Value {
        let request = http::Request::post(format!("{BACKEND_PATH}{path}")).header("authorization", format!("Bearer {token}"));
        let answer = service.handle(&request.body(body.to_string().into_bytes()).expect("is a request"), START);
        serde_json::from_slice(answer.body()).expect("is JSON")
    };
    let answer = post("/auth/login", "", serde_json::json!({ "username": login.username, "password": login.password }));
    let token = answer["data"]["token"].as_str().expect("there is a token").to_owned();
    post("/open/app/user/v2", &token, serde_json::json!({ "username": "buyer", "password": "buyer-1", "balance": 50_000 }));
    assert_eq!(service.backend(START).users.len(), 1, "there is a sub-user");
    (service, token)
}

fn lost() -> Heard {
    Heard::Lost(FailureKind::Closed, Sent::Maybe)
}

fn page(status: u16) -> Heard {
    let headers = vec![("content-type".into(), "text/html".into())];
    Heard::Response { status, headers, body: b"<html>bad gateway</html>".to_vec() }
}

fn failure(code: &str, status: u16, more: &str, request_id: &str) -> Heard {
    let error = format!(r#"{{"code":"{code}","message":""{more}}}"#);
    let body = format!(r#"{{"success":false,"data":null,"error":{error},"meta":{{"request_id":"{request_id}","timestamp":""}}}}"#);
    Heard::Response { status, headers: vec![("content-type".into(), "application/json".into())], body: body.into_bytes() }
}

/// Whether a request is a login.
pub(crate) fn is_login(request: &Request) -> bool {
    request.url.ends_with("/auth/login")
}
