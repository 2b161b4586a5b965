//! A whole program with ureq: it buys the cheapest dynamic session, says how to use it, and ends it. Killed at any moment
//! and started again, it goes on with the same purchase: the folder `hopline-records` remembers.
//!
//!     HOPLINE_BASE_URL=… HOPLINE_API_KEY=… cargo run --example ureq
//!
//! Here ureq speaks plain http, which is enough for loopback; its feature `rustls` brings https.

use std::error::Error;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopline::client::{
    Event, EventKind, FailureKind, Host, OpenSession, Phase, RESPONSE_HEADERS, Responded, Sent, SessionReply, StoreAnswer, StoreCall,
    Ticket,
};
use hopline::contract::Secret;
use hopline::contract::agent::{CreateSession, GetBalance, ListProducts, ProductFilter, SessionType, TerminateSession};
use hopline::wire::Request;
use hopline::{CallOptions, Client, ClientOptions, Millis, Now, drive};
use hopline_store::{Folder, Store};
use ureq::Agent;
use ureq::config::Config;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let mut client = Client::new(options()?, entropy()?)?;
    let mut host = Ureq::new("hopline-records")?;

    let open = session(&mut client, &mut host)?;
    let id = open.session_id;
    if open.phase != Phase::Ready {
        return Err(format!("{id} is {} and can't be used; look at it before buying again", open.session.status).into());
    }
    let proxy = open.session.proxy.unwrap_or_default();
    if let (Some(protocol), Some(host), Some(port), Some(_), Some(_)) =
        (proxy.protocol, proxy.host, proxy.port, proxy.username, proxy.password)
    {
        // A program hands both to its HTTP client with `reveal()`; here they are not printed.
        println!("{id} is ready: give your HTTP client the {protocol} proxy {host}:{port}, its username and its password");
    }

    let ended = client.start(TerminateSession { session_id: id.clone() }, CallOptions::default());
    drive(&mut client, ended, &mut host)?;
    let read = client.start(GetBalance {}, CallOptions::default());
    println!("ended {id}; the balance is now {}", drive(&mut client, read, &mut host)?.raw.text());
    Ok(())
}

/// Our own name for this purchase: whoever starts it again gets the same session. With the day in it, tomorrow's run buys one of its
/// own; one that is started again today, when its session is over, is told so and buys nothing.
pub(crate) fn intent() -> String {
    let days = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs() / 86_400;
    format!("prices-{days}")
}

/// The session that an earlier run bought, or may have bought; only where there is none, the cheapest is chosen and bought. The
/// cheapest may be another one by now, and one intent stands for one request.
fn session(client: &mut Client, host: &mut Ureq) -> Result<SessionReply, Box<dyn Error>> {
    let options = CallOptions::default();
    let earlier = Ticket::<Option<OpenSession>>::of(client.resume_intent(&intent(), options.clone()));
    if let Some(earlier) = drive(client, earlier, host)? {
        return Ok(earlier);
    }
    let wanted = ListProducts { r#type: Some(ProductFilter::Dynamic), ..ListProducts::default() };
    let listed = client.start(wanted, CallOptions::default());
    let products = drive(client, listed, host)?;
    let offered = products.items.iter().filter(|product| product.available);
    let cheapest = offered.min_by_key(|product| product.price).ok_or("no dynamic product is available; try again later")?;
    println!("buying 1 {} of {} for {} {}", cheapest.unit, cheapest.product_no, cheapest.price, cheapest.currency);
    let request = CreateSession {
        session_type: SessionType::Dynamic,
        product_no: cheapest.product_no.clone(),
        quantity: Some(1.into()),
        ..CreateSession::default()
    };
    let bought = client.open_session(request, CallOptions { intent: Some(intent()), ..options });
    Ok(drive(client, bought, host)?)
}

/// The address and the key, from the environment.
pub(crate) fn options() -> Result<ClientOptions, String> {
    let read = |name, what| std::env::var(name).map_err(|_| format!("{name} is not set; set it to {what}"));
    Ok(ClientOptions {
        base_url: read("HOPLINE_BASE_URL", "the address of the API, such as https://host/v1")?,
        api_key: Some(Secret::new(read("HOPLINE_API_KEY", "the API key of the account")?)),
        store: true,
        ..ClientOptions::default()
    })
}

/// What keys are made of: new bytes for each client, or two purchases could have one key.
pub(crate) fn entropy() -> Result<[u8; 16], String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("the system gives no entropy: {error}"))?;
    Ok(bytes)
}

/// Everything that Hopline leaves to its host.
pub(crate) struct Ureq {
    agent: Agent,
    /// For this client alone; any number of clients and processes may open the same path.
    folder: Folder,
    started: Instant,
}

impl Ureq {
    pub(crate) fn new(folder: impl AsRef<Path>) -> Result<Self, hopline_store::Error> {
        Ok(Ureq { agent: agent(), folder: Folder::open(folder)?, started: Instant::now() })
    }
}

impl Host for Ureq {
    fn now(&mut self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { unix: unix.as_millis() as Millis, monotonic: self.started.elapsed().as_millis() as Millis }
    }

    fn send(&mut self, request: &Request) -> Responded {
        send(&self.agent, request)
    }

    fn sleep(&mut self, ms: Millis) {
        sleep(Duration::from_millis(ms.unsigned_abs()));
    }

    fn store(&mut self, call: &StoreCall) -> StoreAnswer {
        self.folder.call(call).unwrap_or_else(|error| {
            eprintln!("{error}");
            StoreAnswer::Failed
        })
    }

    fn notify(&mut self, event: &Event) {
        if let EventKind::Ordered { order_no } = &event.what {
            println!("order {order_no} was placed");
        }
    }
}

/// An agent that leaves all decisions to Hopline: no redirects, no proxy from the environment, any status is an answer.
/// ureq never sends a request twice by itself.
pub(crate) fn agent() -> Agent {
    let config = Config::builder().max_redirects(0).http_status_as_error(false).proxy(None).build();
    Agent::with_parts(config, DefaultConnector::default(), Names(DefaultResolver::default()))
}

/// Sends a request and waits for what comes of it.
pub(crate) fn send(agent: &Agent, request: &Request) -> Responded {
    let Ok(ready) = ureq::http::Request::<Vec<u8>>::try_from(request) else {
        return Responded::Failed { kind: FailureKind::Other, sent: Sent::Never };
    };
    let timeout = Duration::from_millis(request.timeout_ms.into());
    let answer = agent.configure_request(ready).timeout_global(Some(timeout)).build();
    match agent.run(answer) {
        Ok(response) => read(response, request.max_body),
        Err(error) => {
            let (kind, sent) = failure(&error);
            Responded::Failed { kind, sent }
        }
    }
}

fn read(response: ureq::http::Response<ureq::Body>, max_body: u32) -> Responded {
    let (head, body) = response.into_parts();
    let header = |name: &str| Some((name.to_owned(), head.headers.get(name)?.to_str().ok()?.to_owned()));
    let headers = RESPONSE_HEADERS.into_iter().filter_map(header).collect();
    let mut bytes = Vec::new();
    // One byte more than may be read tells a body that fits from one that goes on. One that breaks off is cut short, too,
    // and its status is worth keeping.
    let broken = body.into_reader().take(u64::from(max_body) + 1).read_to_end(&mut bytes).is_err();
    let truncated = broken || bytes.len() > max_body as usize;
    bytes.truncate(max_body as usize);
    Responded::Response { status: head.status.as_u16(), headers, body: bytes, truncated }
}

/// `Never` is only for what comes before the first byte; where that is not sure, money may have moved.
fn failure(error: &ureq::Error) -> (FailureKind, Sent) {
    match error {
        ureq::Error::HostNotFound => (FailureKind::Dns, Sent::Never),
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => (FailureKind::Connect, Sent::Never),
        ureq::Error::Timeout(_) => (FailureKind::Timeout, Sent::Maybe),
        // A certificate that is refused comes so, and so does whatever else TLS can't make sense of, at any moment.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::InvalidData => (FailureKind::Tls, Sent::Maybe),
        ureq::Error::Io(_) => (FailureKind::Closed, Sent::Maybe),
        _ => (FailureKind::Other, Sent::Maybe),
    }
}

/// ureq reports a failed lookup as any other I/O error; this tells it apart.
#[derive(Debug)]
struct Names(DefaultResolver);

impl Resolver for Names {
    fn resolve(&self, uri: &ureq::http::Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        self.0.resolve(uri, config, timeout).map_err(|error| match error {
            ureq::Error::Io(_) => ureq::Error::HostNotFound,
            other => other,
        })
    }
}
