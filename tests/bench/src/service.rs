//! A client whose service and store answer at once from memory.

use hopline::client::{CallOptions, ClientOptions, CommandId, Now, Outcome, Step, StoreAnswer, StoreCall};
use hopline::contract::Secret;
use hopline::pool::PoolClient;
use hopline_store::Store;

pub(crate) const BALANCE: &str = r#"{"success":true,"data":{"balance":12.50}}"#;
pub(crate) const PURCHASE: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world"}"#;

const PROXY: &str =
    r#","proxy":{"host":"proxy.example","port":1080,"protocol":"socks5","username":"user-000000","password":"password-00"}"#;

/// A client with all that answers it.
pub(crate) struct Service {
    pub(crate) client: PoolClient,
    pub(crate) now: Now,
    /// The present status of sessions.
    pub(crate) status: &'static str,
    /// True if they come with a proxy.
    pub(crate) with_proxies: bool,
    /// Sends that were answered.
    pub(crate) sends: u32,
    store: Option<Box<dyn Store>>,
    sessions: u32,
}

impl Service {
    /// With that store; one that forgets everything where there is none.
    pub(crate) fn new(store: Option<Box<dyn Store>>) -> Self {
        let options = ClientOptions {
            base_url: "https://api.example/v1".into(),
            api_key: Some(Secret::new("key")),
            store: true,
            ..ClientOptions::default()
        };
        Service { store, ..Service::of(options) }
    }

    /// Of a client with these options.
    pub(crate) fn of(options: ClientOptions) -> Self {
        let client = PoolClient::new(options, [7; 16]).expect("the options are sound");
        let now = Now { unix: 1_700_000_000_000, monotonic: 0 };
        Service { client, now, status: "creating", with_proxies: false, sends: 0, store: None, sessions: 0 }
    }

    /// A client with so many sessions that are waited for, each read once and under an intent of its own where they are named.
    pub(crate) fn waiting(sessions: u32, named: bool) -> Self {
        let mut service = Service::new(None);
        for number in 0..sessions {
            service.open(named.then(|| format!("order-2026-{number:08}")));
        }
        service.drain();
        service
    }

    pub(crate) fn open(&mut self, intent: Option<String>) -> CommandId {
        // Longer than any measurement.
        let options = CallOptions { intent, deadline_ms: Some(1_000_000_000_000), ..CallOptions::default() };
        self.client.start_json("open_session", PURCHASE, options)
    }

    pub(crate) fn pass(&mut self, ms: i64) {
        self.now = Now { unix: self.now.unix + ms, monotonic: self.now.monotonic + ms };
    }

    /// Answers all that the client asks for until it waits. Gives what has completed, and when it wants to go on.
    pub(crate) fn drain(&mut self) -> (Vec<CommandId>, Option<i64>) {
        let mut completed = Vec::new();
        loop {
            match self.client.poll(self.now) {
                Step::Store { id, call, .. } => {
                    let answer = match &self.store {
                        Some(store) => store.call(&call).expect("the store answers"),
                        None => forgetful(&call),
                    };
                    self.client.resolve(id, Outcome::Store(answer), self.now).expect("each step is answered once");
                }
                Step::Send { id, request, .. } => {
                    self.sends += 1;
                    let body = self.answer(&request.url);
                    let outcome = Outcome::Response { status: 200, headers: &[], body: body.as_bytes(), truncated: false };
                    self.client.resolve(id, outcome, self.now).expect("each step is answered once");
                }
                Step::Completed { command } => completed.push(command),
                Step::Notify(_) => {}
                Step::Wait { until } => return (completed, until),
            }
        }
    }

    fn answer(&mut self, url: &str) -> String {
        let last = url.rsplit('/').next().unwrap_or_default();
        let session = match last.split('?').next().unwrap_or_default() {
            "balance" => return BALANCE.to_owned(),
            "sessions" => {
                self.sessions += 1;
                format!("ses_{:026}", self.sessions)
            }
            session => session.to_owned(),
        };
        let (status, proxy) = (self.status, if self.with_proxies { PROXY } else { "" });
        format!(r#"{{"success":true,"data":{{"session_id":"{session}","session_type":"dynamic","status":"{status}"{proxy}}}}}"#)
    }
}

/// The answers of a store in which nothing ever is.
fn forgetful(call: &StoreCall) -> StoreAnswer {
    match call {
        StoreCall::Claim { names, most } => {
            StoreAnswer::Claimed(names.iter().take(*most as usize).map(|name| (name.clone(), None)).collect())
        }
        StoreCall::List { .. } => StoreAnswer::Listed { entries: Vec::new(), more: false },
        StoreCall::Spend { .. } => StoreAnswer::Granted { day: 0 },
        _ => StoreAnswer::Done,
    }
}
