//! Everything around the client that survives its crash: the service, the store, the time, the messages under way.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use hopline::client::{Client, ClientOptions, FailureKind, Millis, Now, Outcome, Record, RecordId, Sent};
use hopline::contract::Secret;
use hopline::policy::Rule;
use hopline::wire::Request;
use hopline_sandbox::{Config, ErrorFault, Fault, FaultRule, Service};

/// What comes of a send that is not safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Executed and answered.
    Answered,
    /// The request is lost.
    LostBefore,
    /// The answer is lost.
    LostAfter,
    /// The request is as good as lost, and arrives later.
    Delayed,
    /// A gateway answers in the service's place.
    PageBefore,
    /// A gateway loses the service's answer.
    PageAfter,
    /// Refused for now.
    Throttled,
    /// Executed; a duplicate of the request is answered while the original is still in progress.
    Conflict,
    /// The service fails, and keeps that answer.
    StoredFailure,
    /// The service fails and keeps that answer, but the supplier has sold.
    StoredSale,
    /// There is no connection.
    Unreached,
}

impl Fate {
    /// What can come of a purchase.
    pub(crate) const ALL: &[Fate] = &[
        Fate::Answered,
        Fate::LostBefore,
        Fate::LostAfter,
        Fate::Delayed,
        Fate::PageBefore,
        Fate::PageAfter,
        Fate::Throttled,
        Fate::Conflict,
        Fate::StoredFailure,
        Fate::Unreached,
        Fate::StoredSale,
    ];
    /// What can come of a change that is repeated after a stored failure: that it was done all the same is allowed, since
    /// it costs nothing, and tells nothing.
    pub(crate) const REPEATABLE: &[Fate] = Fate::ALL.split_at(10).0;
}

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
    pub(crate) service: Service,
    pub(crate) now: Now,
    pub(crate) store: BTreeMap<RecordId, Vec<u8>>,
    delayed: Vec<http::Request<Vec<u8>>>,
    clients: u8,
}

const API_KEY: &str = "key-of-the-simulation";

impl World {
    pub(crate) fn new() -> Self {
        static SERVICE: OnceLock<Service> = OnceLock::new();
        let make = || {
            let mut config = Config::new(1);
            config.api_key = API_KEY.to_owned();
            config.provisioning_ms = 0..=0;
            config.requests_per_minute = u32::MAX;
            Service::new(config)
        };
        World {
            service: SERVICE.get_or_init(make).clone(),
            now: Now { unix: 1_800_000_000_000, monotonic: 0 },
            store: BTreeMap::new(),
            delayed: Vec::new(),
            clients: 0,
        }
    }

    /// A client of a new process, with what the store holds.
    pub(crate) fn client(&mut self, without: Option<Rule>) -> Client {
        self.clients += 1;
        let options = ClientOptions {
            base_url: "https://api.example/v1".to_owned(),
            api_key: Some(Secret::new(API_KEY)),
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
        let fault = ErrorFault { code: "BACKEND_TIMEOUT".into(), stored: true, sold, ..ErrorFault::default() };
        self.service.inject(FaultRule { operation: None, times: 1, fault: Fault::Error(fault) });
        let heard = self.execute(request);
        self.service.clear_faults();
        heard
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
            Fate::PageBefore => page(),
            Fate::PageAfter => {
                self.execute(&request);
                page()
            }
            Fate::Throttled => failure(429, "RATE_LIMIT_EXCEEDED", r#","details":{"retry_after":1}"#),
            Fate::Conflict => {
                self.execute(&request);
                failure(409, "IDEMPOTENCY_CONFLICT", "")
            }
            Fate::StoredFailure => self.fail(&request, false),
            Fate::StoredSale => self.fail(&request, true),
            Fate::Unreached => Heard::Lost(FailureKind::Connect, Sent::Never),
        }
    }

    /// Lets the messages arrive that were under way.
    pub(crate) fn arrive(&mut self) {
        for request in std::mem::take(&mut self.delayed) {
            self.execute(&request);
        }
    }
}

fn page() -> Heard {
    Heard::Response(502, vec![("content-type".into(), "text/html".into())], b"<html>bad gateway</html>".to_vec())
}

fn failure(status: u16, code: &str, more: &str) -> Heard {
    let body = format!(
        r#"{{"success":false,"data":null,"error":{{"code":"{code}","message":""{more}}},"meta":{{"request_id":"","timestamp":""}}}}"#
    );
    Heard::Response(status, vec![("content-type".into(), "application/json".into())], body.into_bytes())
}
