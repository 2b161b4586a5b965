//! All that Hopline leaves to a program in Rust, with ureq and a folder: a clock, entropy, sockets and a disk. Copy it into a program of
//! yours, beside `main.rs`.
//!
//! Here ureq speaks plain http, which is enough for loopback; its feature `rustls` brings https.

use std::error::Error;
use std::io::ErrorKind;
use std::time::{Duration, Instant, SystemTime};

pub(crate) use hopline::client::{CallOptions, Cheapest, IfEnded, SessionReply};
use hopline::client::{FailureKind, Host, Outputs, RESPONSE_HEADERS, Responded, Sent, StoreAnswer, StoreCall, Ticket};
use hopline::contract::Secret;
use hopline::contract::agent::TerminateSession;
pub(crate) use hopline::contract::agent::{CreateSession, SessionType};
use hopline::wire::Request;
use hopline::{Client, ClientOptions, Now, drive};
use hopline_store::{Folder, Store};

/// A client of the account in the environment, and its machine.
pub(crate) struct Account {
    client: Client,
    machine: Machine,
}

impl Account {
    /// Opens a folder, which remembers what was bought. All clients of it buy for no more than the cap in a UTC day, together.
    pub(crate) fn open(folder: &str, daily_cap_usd: i64) -> Result<Self, Box<dyn Error>> {
        let given = |name| std::env::var(name).map_err(|_| format!("{name} is not set"));
        let options = ClientOptions {
            base_url: given("HOPLINE_BASE_URL")?,
            api_key: Some(Secret::new(given("HOPLINE_API_KEY")?)),
            daily_cap_usd: Some(daily_cap_usd.into()),
            store: true,
            ..ClientOptions::default()
        };
        // Keys are made of it: new bytes for each client, or two purchases could have one key.
        let mut entropy = [0; 16];
        getrandom::fill(&mut entropy).map_err(|error| error.to_string())?;
        // Redirects and statuses are Hopline's to judge, and ureq repeats nothing by itself.
        let http = ureq::Agent::config_builder().max_redirects(0).proxy(None).http_status_as_error(false).build().new_agent();
        let machine = Machine { http, folder: Folder::open(folder)?, started: Instant::now() };
        Ok(Account { client: Client::new(options, entropy)?, machine })
    }

    /// Buys a session, or goes on with that of the intent, and waits until it is usable.
    pub(crate) fn open_session(&mut self, wanted: CreateSession, options: CallOptions) -> Result<SessionReply, hopline::Error> {
        let ticket = self.client.open_session(wanted, options);
        self.run(ticket)
    }

    /// Ends a session.
    pub(crate) fn terminate(&mut self, session: SessionReply) -> Result<(), Box<dyn Error>> {
        let ticket = self.client.start(TerminateSession { session_id: session.session_id }, CallOptions::default());
        self.run(ticket)?;
        Ok(())
    }

    /// Waits for the result of a call.
    pub(crate) fn run<O: Outputs>(&mut self, ticket: Ticket<O>) -> Result<O::Output, hopline::Error> {
        drive(&mut self.client, ticket, &mut self.machine)
    }
}

/// Your own requests through a session, which is bought with `use_with`, so that it is an HTTP proxy.
pub(crate) fn through(session: &SessionReply) -> Result<ureq::Agent, Box<dyn Error>> {
    let url =
        session.session.proxy.as_ref().and_then(|proxy| proxy.full_url.as_ref()).ok_or("the session has no proxy yet; start this again")?;
    Ok(ureq::Agent::config_builder().proxy(Some(ureq::Proxy::new(url.reveal())?)).http_status_as_error(false).build().new_agent())
}

struct Machine {
    http: ureq::Agent,
    folder: Folder,
    started: Instant,
}

impl Host for Machine {
    fn now(&mut self) -> Now {
        let unix = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        Now { unix: unix.as_millis() as i64, monotonic: self.started.elapsed().as_millis() as i64 }
    }

    fn send(&mut self, request: &Request) -> Responded {
        let Ok(ready) = ureq::http::Request::try_from(request) else {
            return Responded::Failed { kind: FailureKind::Other, sent: Sent::Never };
        };
        let timeout = Duration::from_millis(request.timeout_ms.into());
        match self.http.run(self.http.configure_request(ready).timeout_global(Some(timeout)).build()) {
            Ok(mut answer) => {
                let header = |name: &str| Some((name.to_owned(), answer.headers().get(name)?.to_str().ok()?.to_owned()));
                let headers = RESPONSE_HEADERS.into_iter().filter_map(header).collect();
                let body = answer.body_mut().with_config().limit(request.max_body.into()).read_to_vec();
                let truncated = body.is_err();
                Responded::Response { status: answer.status().as_u16(), headers, body: body.unwrap_or_default(), truncated }
            }
            // `Never` is only for what surely came before the first byte; anything else may have been done.
            Err(ureq::Error::Io(error)) if error.kind() == ErrorKind::ConnectionRefused => {
                Responded::Failed { kind: FailureKind::Connect, sent: Sent::Never }
            }
            Err(_) => Responded::Failed { kind: FailureKind::Closed, sent: Sent::Maybe },
        }
    }

    fn sleep(&mut self, ms: i64) {
        std::thread::sleep(Duration::from_millis(ms.unsigned_abs()));
    }

    fn store(&mut self, call: &StoreCall) -> StoreAnswer {
        self.folder.call(call).unwrap_or_else(|error| {
            eprintln!("{error}");
            StoreAnswer::Failed
        })
    }
}
