//! A sandbox, a client, and a host that notes every answer it gives.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopline::client::{AsyncHost, FailureKind, Host, Outputs, Responded, Saved, Sent, StoreAnswer, StoreCall, Ticket};
use hopline::contract::Secret;
use hopline::contract::agent::{CreateSession, SessionType};
use hopline::policy::RetryPolicy;
use hopline::wire::Request;
use hopline::{Client, ClientOptions, Error, Millis, Now, drive, drive_async};
use hopline_sandbox::{Config, ConnectionFault, FaultRule, Options, Running, SessionView, serve};
use hopline_store::{Memory, Store};
use tokio::runtime::Runtime;

use crate::{reqwest_example, ureq_example};

/// The HTTP client that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Http {
    Ureq,
    Reqwest,
}

pub(crate) const BOTH: [Http; 2] = [Http::Ureq, Http::Reqwest];

pub(crate) struct Live {
    pub(crate) running: Running,
    pub(crate) runtime: Runtime,
}

impl Live {
    /// A sandbox whose sessions are active as soon as they are asked for.
    pub(crate) fn new() -> Self {
        Self::provisioning(0)
    }

    /// One whose sessions take so many milliseconds.
    pub(crate) fn provisioning(ms: i64) -> Self {
        Self::of(Config { provisioning_ms: ms..=ms, ..Config::new(7) })
    }

    /// One that is made so.
    pub(crate) fn of(config: Config) -> Self {
        Self::with(Options::new(config))
    }

    /// One with nginx in front of it.
    pub(crate) fn behind_a_gateway() -> Self {
        Self::with(Options { gateway: true, ..Options::new(Config { provisioning_ms: 0..=0, ..Config::new(7) }) })
    }

    /// One that is served over TLS too, with a folder for what that needs.
    pub(crate) fn over_tls(folder: &Path) -> Self {
        Self::with(Options { tls: Some(folder.to_owned()), ..Options::new(Config { provisioning_ms: 0..=0, ..Config::new(7) }) })
    }

    /// True if nginx is missing, which is printed; where everything is to be checked, the sandbox itself refuses to go on without it.
    pub(crate) fn lacks_a_gateway() -> bool {
        let lacks = hopline_sandbox::nginx().is_none() && std::env::var("CI").as_deref() != Ok("true");
        if lacks {
            println!("skipped: nginx is not installed; HOPLINE_NGINX may name the program");
        }
        lacks
    }

    fn with(options: Options) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let running = runtime.block_on(serve(options)).expect("a sandbox");
        Live { running, runtime }
    }

    /// The base URL of one of the gateway's roads.
    pub(crate) fn road(&self, name: &str) -> String {
        format!("{}/{name}/v1", self.running.ready().gateway_url.as_deref().expect("a gateway"))
    }

    pub(crate) fn options(&self) -> ClientOptions {
        let ready = self.running.ready();
        ClientOptions { base_url: ready.agent_url.clone(), api_key: Some(Secret::new(&ready.api_key)), ..ClientOptions::default() }
    }

    pub(crate) fn fault(&self, operation: &str, times: u32, fault: ConnectionFault) {
        self.running.inject(FaultRule { operation: Some(operation.to_owned()), times, fault });
    }

    pub(crate) fn charges(&self) -> usize {
        self.running.with_service(|service, _| service.charges().len())
    }

    pub(crate) fn sessions(&self) -> Vec<SessionView> {
        self.running.with_service(|service, now| service.sessions(now))
    }
}

/// A client and its host.
pub(crate) struct Probe {
    pub(crate) client: Client,
    pub(crate) host: Notes,
    runtime: Runtime,
    http: Http,
}

impl Probe {
    pub(crate) fn new(http: Http, options: ClientOptions) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = Client::new(options, ureq_example::entropy().expect("entropy")).expect("a client");
        let host = Notes {
            ureq: ureq_example::agent(),
            reqwest: reqwest_example::builder().build().expect("a client"),
            store: Memory::new(),
            started: Instant::now(),
            answers: Vec::new(),
        };
        Probe { client, host, runtime, http }
    }

    pub(crate) fn drive<O: Outputs>(&mut self, ticket: Ticket<O>) -> Result<O::Output, Box<Error>> {
        let result = match self.http {
            Http::Ureq => drive(&mut self.client, ticket, &mut self.host),
            Http::Reqwest => self.runtime.block_on(drive_async(&mut self.client, ticket, &mut self.host)),
        };
        result.map_err(Box::new)
    }

    pub(crate) fn now(&mut self) -> Now {
        now(self.host.started)
    }

    /// The records of the client.
    pub(crate) fn saved(&mut self) -> Vec<Saved> {
        let asked = self.client.saved(None);
        self.drive(asked).unwrap_or_else(|error| panic!("{error}")).entries
    }
}

/// A host for both ways of driving. Its store is asked where the options say that there is one.
pub(crate) struct Notes {
    pub(crate) ureq: ureq::Agent,
    pub(crate) reqwest: reqwest::Client,
    pub(crate) store: Memory,
    started: Instant,
    pub(crate) answers: Vec<Responded>,
}

impl Notes {
    /// Why the last request failed, and whether it was sent.
    pub(crate) fn last_failure(&self) -> Option<(FailureKind, Sent)> {
        match self.answers.last()? {
            Responded::Failed { kind, sent } => Some((*kind, *sent)),
            Responded::Response { .. } => None,
        }
    }
}

impl Host for Notes {
    fn now(&mut self) -> Now {
        now(self.started)
    }

    fn send(&mut self, request: &Request) -> Responded {
        let answer = ureq_example::send(&self.ureq, request);
        self.answers.push(answer.clone());
        answer
    }

    fn sleep(&mut self, ms: Millis) {
        std::thread::sleep(Duration::from_millis(ms.unsigned_abs()));
    }

    fn store(&mut self, call: &StoreCall) -> StoreAnswer {
        self.store.call(call).expect("memory can be asked")
    }
}

impl AsyncHost for Notes {
    fn now(&mut self) -> Now {
        now(self.started)
    }

    async fn send(&mut self, request: &Request) -> Responded {
        let answer = reqwest_example::send(&self.reqwest, request).await;
        self.answers.push(answer.clone());
        answer
    }

    async fn sleep(&mut self, ms: Millis) {
        tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
    }
}

pub(crate) fn now(started: Instant) -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970");
    Now { unix: unix.as_millis() as Millis, monotonic: started.elapsed().as_millis() as Millis }
}

/// 1 GB of the cheapest product.
pub(crate) fn purchase() -> CreateSession {
    CreateSession { session_type: SessionType::Dynamic, product_no: "dynamic-world".into(), ..CreateSession::default() }
}

/// No send is ever repeated.
pub(crate) fn once() -> RetryPolicy {
    RetryPolicy { attempts: 1, ..RetryPolicy::default() }
}

/// Repeats come at once, so that tests are quick.
pub(crate) fn eager() -> RetryPolicy {
    RetryPolicy { backoff_ms: 10, ..RetryPolicy::default() }
}
