//! Everything around the client that survives its crash: the service, the store, the time, the messages under way.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use hopline::client::{Client, ClientOptions, FailureKind, Millis, Now, Outcome, Record, RecordId, Sent};
use hopline::contract::{Api, Decimal, Secret};
use hopline::policy::Rule;
use hopline::wire::Request;
use hopline_sandbox::{BACKEND_PATH, Config, ErrorFault, Fault, FaultRule, Service};

use crate::fate::Fate;

/// A response, or the lack of one.
pub(crate) enum Heard {
    Response(u16, Vec<(String, String)>, Vec<u8>),
    Lost(FailureKind, Sent),
}

impl Heard {
    pub(crate) fn tell(&self, with: impl FnOnce(Outcome<'_>)) {
        match self {
            Heard::Response(status, headers, body) => {
                let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
                with(Outcome::Response { status: *status, headers: &headers, body, truncated: false });
            }
            Heard::Lost(kind, sent) => with(Outcome::Failed { kind: *kind, sent: *sent }),
        }
    }
}

/// The world of one path.
pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) service: Service,
    pub(crate) now: Now,
    pub(crate) store: BTreeMap<RecordId, Vec<u8>>,
    /// What a client may buy in a day.
    pub(crate) daily_cap: Option<Decimal>,
    /// Whether the price has risen.
    pub(crate) dearer: bool,
    /// Of the reseller API: the token that a client starts from.
    pub(crate) token: Option<String>,
    delayed: Vec<http::Request<Vec<u8>>>,
    /// What each key was sent with.
    keyed: BTreeMap<String, (String, Vec<u8>)>,
    clients: u8,
}

const API_KEY: &str = "key-of-the-simulation";
const START: Now = Now { unix: 1_800_000_000_000, monotonic: 0 };

impl World {
    pub(crate) fn new(api: Api) -> Self {
        static AGENT: OnceLock<Service> = OnceLock::new();
        static RESELLER: OnceLock<(Service, String)> = OnceLock::new();
        let (service, token) = match api {
            Api::Agent => (AGENT.get_or_init(agent), None),
            Api::Reseller => {
                let (service, token) = RESELLER.get_or_init(reseller);
                (service, Some(token.clone()))
            }
        };
        World {
            api,
            service: service.clone(),
            now: START,
            store: BTreeMap::new(),
            daily_cap: None,
            dearer: false,
            token,
            delayed: Vec::new(),
            keyed: BTreeMap::new(),
            clients: 0,
        }
    }

    /// A client of a new process, with what the store holds.
    pub(crate) fn client(&mut self, without: Option<Rule>) -> Client {
        self.clients += 1;
        let login = self.service.logins().into_iter().next().filter(|_| self.api == Api::Reseller);
        let options = ClientOptions {
            api: self.api,
            base_url: format!("https://api.example{}", if self.api == Api::Agent { "/v1" } else { BACKEND_PATH }),
            api_key: (self.api == Api::Agent).then(|| Secret::new(API_KEY)),
            username: login.as_ref().map(|login| Secret::new(login.username.as_str())),
            password: login.map(|login| Secret::new(login.password)),
            token: self.token.clone().map(Secret::new),
            daily_cap_usd: self.daily_cap,
            without,
            ..ClientOptions::default()
        };
        let mut client = Client::new(options, [self.clients; 16]).expect("the options are sound");
        // Time is known before anything else, as in a host that polls first.
        client.poll(self.now);
        let restored = client.restore(self.records());
        assert!(restored.refused.is_empty(), "a record of ours was refused: {:?}", restored.refused);
        client
    }

    /// What the store holds.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.store.iter().map(|(id, data)| Record { id: id.clone(), data: data.clone() })
    }

    /// Lets time pass. A message is under way for an hour at most.
    pub(crate) fn pass(&mut self, ms: Millis) {
        if ms > 3_600_000 {
            self.arrive();
        }
        self.now.unix += ms;
        self.now.monotonic += ms;
    }

    fn execute(&mut self, request: &http::Request<Vec<u8>>) -> Heard {
        let answer = self.service.handle(request, self.now.unix);
        let (parts, body) = answer.into_parts();
        let headers = parts.headers.iter().filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
        Heard::Response(parts.status.as_u16(), headers.collect(), body)
    }

    fn fail(&mut self, request: &http::Request<Vec<u8>>, sold: bool) -> Heard {
        let code = if self.api == Api::Agent { "BACKEND_TIMEOUT" } else { "504" };
        let fault = ErrorFault { code: code.into(), status: Some(504), stored: true, sold, ..ErrorFault::default() };
        self.service.inject(FaultRule { operation: None, times: 1, fault: Fault::Error(fault) });
        let heard = self.execute(request);
        self.service.clear_faults();
        heard
    }

    /// Whether a request is the only one that its key was sent with.
    pub(crate) fn is_the_keys_own(&mut self, request: &Request) -> bool {
        let Some(key) = request.header("idempotency-key") else { return true };
        let sent = (format!("{} {}", request.method.as_str(), request.url), request.body.clone());
        *self.keyed.entry(key.to_owned()).or_insert_with(|| sent.clone()) == sent
    }

    /// Sends a request and lets the fate have its way.
    pub(crate) fn send(&mut self, request: &Request, fate: Fate) -> Heard {
        self.arrive();
        let request = http::Request::try_from(request).expect("core builds sound requests");
        let lost = Heard::Lost(FailureKind::Closed, Sent::Maybe);
        match fate {
            Fate::Answered => self.execute(&request),
            Fate::LostBefore => lost,
            Fate::LostAfter => {
                self.execute(&request);
                lost
            }
            Fate::Delayed => {
                self.delayed.push(request);
                lost
            }
            Fate::PageBefore => page(502),
            Fate::PageAfter => {
                self.execute(&request);
                page(502)
            }
            Fate::DoorBefore => page(401),
            Fate::DoorAfter => {
                self.execute(&request);
                page(401)
            }
            Fate::Cut => match self.execute(&request) {
                Heard::Response(status, headers, body) => Heard::Response(status, headers, body[..body.len() / 2].to_vec()),
                lost => lost,
            },
            Fate::Expired => {
                self.service.expire_tokens();
                self.execute(&request)
            }
            Fate::Refused if request.uri().path().ends_with("/auth/login") => self.refusal(401, 0),
            Fate::Refused => self.refusal(400, 0),
            Fate::Throttled => self.refusal(429, 1),
            Fate::ThrottledLong => self.refusal(429, 3600),
            Fate::Conflict => {
                self.execute(&request);
                failure("IDEMPOTENCY_CONFLICT", 409, "", "")
            }
            Fate::StoredFailure => self.fail(&request, false),
            Fate::StoredSale => self.fail(&request, true),
            Fate::Dearer => {
                self.dearer = true;
                self.service.set_price("dynamic-world", 12.into());
                self.execute(&request)
            }
            Fate::Unreached => Heard::Lost(FailureKind::Connect, Sent::Never),
        }
    }

    /// The service's own refusal, before anything was done.
    fn refusal(&self, status: u16, wait: u32) -> Heard {
        if self.api == Api::Agent {
            // A gateway that repeats one id makes every 429 look like a stored one.
            return failure("RATE_LIMIT_EXCEEDED", status, &format!(r#","details":{{"retry_after":{wait}}}"#), "one id");
        }
        let mut headers = vec![("content-type".into(), "application/json".into())];
        headers.extend((wait > 0).then(|| ("retry-after".to_owned(), wait.to_string())));
        Heard::Response(status, headers, format!(r#"{{"code":{status},"message":"no","data":null}}"#).into_bytes())
    }

    /// Lets the messages arrive that were under way.
    pub(crate) fn arrive(&mut self) {
        for request in std::mem::take(&mut self.delayed) {
            self.execute(&request);
        }
    }
}

fn config() -> Config {
    let mut config = Config::new(1);
    config.api_key = API_KEY.to_owned();
    config.provisioning_ms = 0..=0;
    config.requests_per_minute = u32::MAX;
    config
}

fn agent() -> Service {
    Service::new(config())
}

/// A service with a sub-user that has money, and a token of its reseller.
fn reseller() -> (Service, String) {
    let mut service = Service::new(Config { balance: 10_000.into(), ..config() });
    let login = service.logins().into_iter().next().expect("there is a reseller");
    let mut post = |path: &str, token: &str, body: serde_json::Value| -> serde_json::Value {
        let request = http::Request::post(format!("{BACKEND_PATH}{path}")).header("authorization", format!("Bearer {token}"));
        let answer = service.handle(&request.body(body.to_string().into_bytes()).expect("is a request"), START.unix);
        serde_json::from_slice(answer.body()).expect("is JSON")
    };
    let answer = post("/auth/login", "", serde_json::json!({ "username": login.username, "password": login.password }));
    let token = answer["data"]["token"].as_str().expect("there is a token").to_owned();
    post("/open/app/user/v2", &token, serde_json::json!({ "username": "buyer", "password": "buyer-1", "balance": 5000 }));
    assert_eq!(service.backend(START.unix).users.len(), 1, "there is a sub-user");
    (service, token)
}

fn page(status: u16) -> Heard {
    Heard::Response(status, vec![("content-type".into(), "text/html".into())], b"<html>bad gateway</html>".to_vec())
}

fn failure(code: &str, status: u16, more: &str, request_id: &str) -> Heard {
    let error = format!(r#"{{"code":"{code}","message":""{more}}}"#);
    let body = format!(r#"{{"success":false,"data":null,"error":{error},"meta":{{"request_id":"{request_id}","timestamp":""}}}}"#);
    Heard::Response(status, vec![("content-type".into(), "application/json".into())], body.into_bytes())
}

/// Whether a request is a login.
pub(crate) fn is_login(request: &Request) -> bool {
    request.url.ends_with("/auth/login")
}
