//! The service, and what its own books say of each job.

use hopline::client::{FailureKind, Millis, Sent};
use hopline::contract::Api;
use hopline::wire::Request;
use hopline_sandbox::{BACKEND_PATH, Config, Service};
use serde_json::Value;
use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

/// A response.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    /// True if the body was cut short.
    pub(crate) truncated: bool,
}

impl Response {
    /// The body; null where it is no JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// True if the answer reports success.
    pub(crate) fn is_success(&self) -> bool {
        !self.truncated && self.status < 300 && self.json()["success"] == true
    }

    /// True if the reseller API itself says that it did nothing.
    pub(crate) fn is_refusal(&self) -> bool {
        let (body, is_later) = (self.json(), matches!(self.status, 408 | 409 | 425 | 429 | 500..));
        let says_no = |code: &Value| match code {
            Value::Number(number) => number.as_i64().is_some_and(|code| ((400..500).contains(&code) && code != 408) || code == 1002),
            Value::String(word) => matches!(word.as_str(), "balance_insufficient" | "USER_NOT_FOUND"),
            _ => false,
        };
        let is_empty = body["data"].is_null() || body["data"].as_object().is_some_and(serde_json::Map::is_empty);
        !self.truncated && !is_later && is_empty && says_no(&body["code"])
    }

    /// The charge of a purchase, as it says it.
    pub(crate) fn charge(&self) -> Option<String> {
        let charge = &self.json()["data"]["estimated_charge_usd"];
        charge.as_str().map(str::to_owned).or_else(|| charge.is_number().then(|| charge.to_string()))
    }

    /// True if the response is a refusal of an app's own backend, which has passed nothing on.
    pub(crate) fn is_backends(&self) -> bool {
        let names = |code: &Value| code.as_str().is_some_and(|code| code != "SOMETHING_ELSE");
        matches!(self.status, 401 | 403 | 404 | 413 | 422 | 429) && !names(&self.json()["error"]["code"])
    }

    /// The status of a failure that the service answers, and would answer again, under a key.
    pub(crate) fn failure(&self) -> Option<u16> {
        let body = self.json();
        let code = body["error"]["code"].as_str().filter(|code| !matches!(*code, "IDEMPOTENCY_CONFLICT" | "SOMETHING_ELSE"))?;
        (!code.is_empty() && !self.truncated && !matches!(self.status, 401 | 403)).then_some(self.status)
    }

    /// How long it asks to wait.
    pub(crate) fn retry_after(&self) -> Millis {
        let header = |name: &str| self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let date = |text: &str| Some(httpdate::parse_http_date(text).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?.as_secs() as i64);
        let until = |text: &str| Some(date(text)? - date(header("date")?)?);
        let asked = header("retry-after").and_then(|text| text.parse::<i64>().ok().or_else(|| until(text)));
        1000 * self.json()["error"]["details"]["retry_after"].as_i64().max(asked).unwrap_or_default()
    }
}

/// The result of a request for its sender.
#[derive(Debug, Clone)]
pub(crate) enum ExchangeResult {
    Response(Response),
    Lost(FailureKind, Sent),
}

/// A request that meets the service, and the job that it is for.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'a> {
    pub(crate) request: &'a http::Request<Vec<u8>>,
    pub(crate) job: Option<usize>,
    pub(crate) now: Millis,
}

/// The effects of the service, each with the index of its job.
pub(crate) type Effects = Vec<(usize, Effect)>;

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
struct Counts {
    charges: usize,
    orders: usize,
    rotations: u32,
    budgets: u32,
    placed: usize,
    adjusted: usize,
    users: usize,
    ended: usize,
}

/// The service of a world.
#[derive(Clone)]
pub(crate) struct Remote {
    pub(crate) api: Api,
    pub(crate) service: Service,
    /// The token that a client starts from.
    pub(crate) token: Option<String>,
    /// A digest of all changes and their times: two services with the same digest behave alike from here on.
    pub(crate) digest: u64,
    pub(crate) requests: u64,
    counts: Counts,
    /// The sessions that were accepted, in order.
    pub(crate) sessions: Vec<String>,
    /// The operation that the service works on: the job and its key.
    pub(crate) working: Option<(usize, Option<String>)>,
    /// True if an app's own backend, which has the key, stands before the service.
    pub(crate) relayed: bool,
    /// The price of one GB, in whole dollars.
    pub(crate) price: i64,
    /// The key that was throttled last, or whose answer was lost: the draws of a life, and nothing else, depend on it.
    pub(crate) overloaded: Option<String>,
}

impl Hash for Remote {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // The ids of its answers, and its tokens, are made from the number of the request.
        (self.digest, self.requests, self.counts, &self.working, &self.token).hash(state);
    }
}

pub(crate) const API_KEY: &str = "canary-key-of-the-world";
const START: Millis = 1_800_000_000_000;

impl Remote {
    pub(crate) fn new(api: Api) -> Remote {
        static AGENT: OnceLock<Service> = OnceLock::new();
        static RESELLER: OnceLock<(Service, String)> = OnceLock::new();
        let (service, token) = match api {
            Api::Agent => (AGENT.get_or_init(agent).clone(), None),
            Api::Reseller => {
                let (service, token) = RESELLER.get_or_init(reseller);
                (service.clone(), Some(token.clone()))
            }
        };
        let mut remote = Remote {
            api,
            service,
            token,
            digest: 0,
            requests: 0,
            counts: Counts::default(),
            sessions: Vec::new(),
            working: None,
            relayed: false,
            price: 4,
            overloaded: None,
        };
        remote.counts = remote.count(START);
        remote
    }

    pub(crate) const START: Millis = START;

    /// The username and password of the reseller.
    pub(crate) fn login(&self) -> (String, String) {
        self.service.logins().into_iter().next().map(|login| (login.username, login.password)).unwrap_or_default()
    }

    /// Executes a request, and says what came of it: the answer, and what else it did.
    pub(crate) fn execute(&mut self, arrival: Arrival<'_>, effects: &mut Effects) -> ExchangeResult {
        let Arrival { request, job, now } = arrival;
        self.settle(now, effects);
        self.requests += 1;
        if request.method() != "GET" {
            let mut hasher = rustc_hash::FxHasher::default();
            (self.digest, request.uri().path(), request.headers().get("idempotency-key").map(|key| key.as_bytes()), request.body(), now)
                .hash(&mut hasher);
            self.digest = hasher.finish();
        }
        let mut passed_on = None;
        if self.relayed {
            let mut request = request.clone();
            request.headers_mut().insert("x-api-key", http::HeaderValue::from_static(API_KEY));
            passed_on = Some(request);
        }
        let answer = self.service.handle(passed_on.as_ref().unwrap_or(request), now);
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
        self.note(now, job, key.as_deref(), effects);
        if answer.extensions().get::<hopline_sandbox::InProgress>().is_some() {
            self.working = job.map(|job| (job, key));
            return crate::network::lost();
        }
        let (parts, body) = answer.into_parts();
        let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        ExchangeResult::Response(Response { status: parts.status.as_u16(), headers: headers.collect(), body, truncated: false })
    }

    /// Lets the work be done whose time has come.
    pub(crate) fn settle(&mut self, now: Millis, effects: &mut Effects) {
        if self.working.is_some() && self.service.in_progress(now) == 0 {
            let (job, key) = self.working.take().unwrap_or_default();
            self.note(now, Some(job), key.as_deref(), effects);
        }
    }

    /// True if a session was ended.
    pub(crate) fn has_ended(&mut self, session: &str, now: Millis) -> bool {
        self.service.sessions(now).iter().any(|known| known.session_id == session && known.status == "terminated")
    }

    fn count(&mut self, now: Millis) -> Counts {
        let mut counts = Counts { charges: self.service.charges().len(), orders: self.service.orders().len(), ..Counts::default() };
        match self.api {
            Api::Agent => {
                let sessions = self.service.sessions(now);
                counts.rotations = sessions.iter().map(|session| session.rotations).sum();
                counts.ended = sessions.iter().filter(|session| session.status == "terminated").count();
                counts.budgets = self.service.executions().get("update_budget").copied().unwrap_or_default();
            }
            Api::Reseller => {
                let backend = self.service.backend(now);
                (counts.placed, counts.users) = (backend.static_orders.len(), backend.users.len());
                counts.adjusted = backend.entries.iter().filter(|entry| entry.r#type == "adjustment").count();
            }
        }
        counts
    }

    /// Notes what was done since, for a job.
    fn note(&mut self, now: Millis, job: Option<usize>, key: Option<&str>, effects: &mut Effects) {
        let (before, after) = (self.counts, self.count(now));
        self.counts = after;
        let new = self.service.charges().get(before.charges..).unwrap_or_default();
        let mut ids: Vec<Option<String>> = new.iter().map(|charge| Some(charge.session_id.to_string())).collect();
        self.sessions.extend(new.iter().filter(|charge| charge.operation == "create_session").map(|charge| charge.session_id.to_string()));
        if after.placed > before.placed {
            ids.extend(self.service.backend(now).static_orders.into_iter().skip(before.placed).map(|order| Some(order.order_no)));
        }
        let others = (after.orders - before.orders)
            + (after.rotations - before.rotations) as usize
            + (after.budgets - before.budgets) as usize
            + (after.adjusted - before.adjusted)
            + (after.users - before.users)
            + (after.ended - before.ended);
        ids.extend((0..others).map(|_| None));
        let key = key.map(str::to_owned);
        effects.extend(ids.into_iter().filter_map(|id| Some((job?, Effect { key: key.clone(), id }))));
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

/// A service with addresses enough for any life.
fn agent() -> Service {
    let mut service = Service::new(config());
    service.set_stock("static-us", 60_000);
    service
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

/// True if a request is a login.
pub(crate) fn is_login(request: &Request) -> bool {
    request.url.ends_with("/auth/login")
}
