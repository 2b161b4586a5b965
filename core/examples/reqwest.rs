//! A whole async program with reqwest on tokio: it buys the cheapest dynamic session, says how to use it, and ends it. Killed at any
//! moment and started again, it goes on with the same purchase: the folder `hopline-records` remembers.
//!
//!     HOPLINE_BASE_URL=… HOPLINE_API_KEY=… cargo run --example reqwest
//!
//! reqwest's default features bring https; this program chooses the smaller cryptography of `ring` instead.

use std::error::Error;
use std::io::ErrorKind;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hopline::client::{
    AsyncHost, Event, EventKind, FailureKind, OpenSession, Phase, RESPONSE_HEADERS, Responded, Sent, SessionReply, StoreAnswer, StoreCall,
    Ticket,
};
use hopline::contract::Secret;
use hopline::contract::agent::{CreateSession, ListProducts, ProductFilter, SessionType, TerminateSession};
use hopline::wire::Request;
use hopline::{CallOptions, Client, ClientOptions, Millis, Now, drive_async};
use hopline_store::{Folder, Store};
use reqwest::{redirect, retry};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn Error>> {
    let read = |name, what| std::env::var(name).map_err(|_| format!("{name} is not set; set it to {what}"));
    let options = ClientOptions {
        base_url: read("HOPLINE_BASE_URL", "the address of the API, such as https://host/v1")?,
        api_key: Some(Secret::new(read("HOPLINE_API_KEY", "the API key of the account")?)),
        store: true,
        ..ClientOptions::default()
    };
    // New bytes for each client: keys are made of them, and two purchases must not have one key.
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy).map_err(|error| format!("the system gives no entropy: {error}"))?;
    let mut client = Client::new(options, entropy)?;
    let mut host = Reqwest { http: builder().build()?, folder: Arc::new(Folder::open("hopline-records")?), started: Instant::now() };

    let open = session(&mut client, &mut host).await?;
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
    drive_async(&mut client, ended, &mut host).await?;
    println!("ended {id}");
    Ok(())
}

/// The session that an earlier run bought, or may have bought; only where there is none, the cheapest is chosen and bought. The
/// cheapest may be another one by now, and one intent stands for one request.
async fn session(client: &mut Client, host: &mut Reqwest) -> Result<SessionReply, Box<dyn Error>> {
    // Our own name for this purchase: whoever starts it again gets the same session. With the day in it, tomorrow's run buys one of
    // its own; one that is started again today, when its session is over, is told so and buys nothing.
    let intent = format!("prices-{}", UNIX_EPOCH.elapsed()?.as_secs() / 86_400);
    let options = CallOptions::default();
    let earlier = Ticket::<Option<OpenSession>>::of(client.resume_intent(&intent, options.clone()));
    if let Some(earlier) = drive_async(client, earlier, host).await? {
        return Ok(earlier);
    }
    let wanted = ListProducts { r#type: Some(ProductFilter::Dynamic), ..ListProducts::default() };
    let listed = client.start(wanted, CallOptions::default());
    let products = drive_async(client, listed, host).await?;
    let offered = products.items.iter().filter(|product| product.available);
    let cheapest = offered.min_by_key(|product| product.price).ok_or("no dynamic product is available; try again later")?;
    println!("buying 1 {} of {} for {} {}", cheapest.unit, cheapest.product_no, cheapest.price, cheapest.currency);
    let request = CreateSession {
        session_type: SessionType::Dynamic,
        product_no: cheapest.product_no.clone(),
        quantity: Some(1.into()),
        ..CreateSession::default()
    };
    let bought = client.open_session(request, CallOptions { intent: Some(intent), ..options });
    Ok(drive_async(client, bought, host).await?)
}

/// Everything that Hopline leaves to its host.
struct Reqwest {
    http: reqwest::Client,
    /// For this client alone; any number of clients and processes may open the same path.
    folder: Arc<Folder>,
    started: Instant,
}

impl AsyncHost for Reqwest {
    fn now(&mut self) -> Now {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Now { unix: unix.as_millis() as Millis, monotonic: self.started.elapsed().as_millis() as Millis }
    }

    async fn send(&mut self, request: &Request) -> Responded {
        send(&self.http, request).await
    }

    async fn sleep(&mut self, ms: Millis) {
        tokio::time::sleep(Duration::from_millis(ms.unsigned_abs())).await;
    }

    async fn store(&mut self, call: &StoreCall) -> StoreAnswer {
        // It waits for the disk, which this thread is not to do.
        let (folder, call) = (Arc::clone(&self.folder), call.clone());
        match tokio::task::spawn_blocking(move || folder.call(&call)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) => {
                eprintln!("{error}");
                StoreAnswer::Failed
            }
            Err(_) => StoreAnswer::Failed,
        }
    }

    fn notify(&mut self, event: &Event) {
        if let EventKind::Status { session_id, status, .. } = &event.what {
            println!("status of {session_id}: {status}");
        }
    }
}

/// A client that leaves all decisions to Hopline: no redirects, no repeats, no proxy from the environment.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // Only for reqwest's feature `rustls-no-provider`. It fails where cryptography was chosen before, which is as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    // Each address of a name gets its part of the time to connect: without that time the first one that never answers would have it all.
    let connecting = Duration::from_secs(10);
    reqwest::Client::builder().redirect(redirect::Policy::none()).retry(retry::never()).no_proxy().connect_timeout(connecting)
}

/// Sends a request and waits for what comes of it.
pub(crate) async fn send(client: &reqwest::Client, request: &Request) -> Responded {
    let ready = http::Request::<Vec<u8>>::try_from(request).ok().and_then(|ready| reqwest::Request::try_from(ready).ok());
    let Some(mut ready) = ready else {
        return Responded::Failed { kind: FailureKind::Other, sent: Sent::Never };
    };
    *ready.timeout_mut() = Some(Duration::from_millis(request.timeout_ms.into()));
    match client.execute(ready).await {
        Ok(response) => read(response, request.max_body as usize).await,
        Err(error) => {
            let (kind, sent) = failure(&error);
            Responded::Failed { kind, sent }
        }
    }
}

async fn read(mut response: reqwest::Response, max_body: usize) -> Responded {
    let status = response.status().as_u16();
    let header = |name: &str| Some((name.to_owned(), response.headers().get(name)?.to_str().ok()?.to_owned()));
    let headers = RESPONSE_HEADERS.into_iter().filter_map(header).collect();
    let mut body = Vec::new();
    let truncated = loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > max_body => {
                body.extend_from_slice(&chunk[..max_body - body.len()]);
                break true;
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break false,
            // A body that breaks off is cut short, too, and its status is worth keeping.
            Err(_) => break true,
        }
    };
    Responded::Response { status, headers, body, truncated }
}

/// `Never` is only for what comes before the first byte; where that is not sure, money may have moved.
fn failure(error: &reqwest::Error) -> (FailureKind, Sent) {
    match () {
        () if error.is_dns() => (FailureKind::Dns, Sent::Never),
        () if error.is_connect() && caused_by(error, ErrorKind::ConnectionRefused) => (FailureKind::Connect, Sent::Never),
        // rustls refuses a certificate with such an error.
        () if error.is_connect() && caused_by(error, ErrorKind::InvalidData) => (FailureKind::Tls, Sent::Never),
        () if error.is_connect() && error.is_timeout() => (FailureKind::Connect, Sent::Never),
        () if error.is_timeout() => (FailureKind::Timeout, Sent::Maybe),
        () if error.is_request() => (FailureKind::Closed, Sent::Maybe),
        () => (FailureKind::Other, Sent::Maybe),
    }
}

fn caused_by(error: &reqwest::Error, kind: ErrorKind) -> bool {
    let causes = std::iter::successors(error.source(), |cause| cause_of(*cause));
    causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>()).any(|cause| cause.kind() == kind)
}

fn cause_of<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    match error.downcast_ref::<std::io::Error>() {
        // Its `source` would leave out the error that it holds.
        Some(error) => error.get_ref().map(|held| held as &(dyn Error + 'static)),
        None => error.source(),
    }
}
