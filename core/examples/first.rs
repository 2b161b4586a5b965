//! The shortest whole program: buy a proxy session, wait until it is usable, end it. Killed at any moment and started again, it goes
//! on with the same purchase: the folder `hopline-records` remembers.

use std::error::Error;
use std::io::ErrorKind;
use std::time::{Duration, Instant, SystemTime};

use hopline::client::{FailureKind, Host, RESPONSE_HEADERS, Responded, Sent, StoreAnswer, StoreCall};
use hopline::contract::Secret;
use hopline::contract::agent::{CreateSession, SessionType, TerminateSession};
use hopline::wire::Request;
use hopline::{CallOptions, Client, ClientOptions, Now, drive};
use hopline_store::{Folder, Store};

/// Hopline never touches a socket, a disk or a clock: this is all that it asks of a program.
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

fn main() -> Result<(), Box<dyn Error>> {
    // Redirects and statuses are Hopline's to judge, and ureq repeats nothing by itself.
    let http = ureq::Agent::config_builder().max_redirects(0).proxy(None).http_status_as_error(false).build().new_agent();
    let mut host = Machine { http, folder: Folder::open("hopline-records")?, started: Instant::now() };
    let mut entropy = [0; 16];
    getrandom::fill(&mut entropy)?;
    let options = ClientOptions {
        base_url: std::env::var("HOPLINE_BASE_URL")?,
        api_key: Some(Secret::new(std::env::var("HOPLINE_API_KEY")?)),
        store: true,
        ..ClientOptions::default()
    };
    let mut client = Client::new(options, entropy)?;

    // Our own name for this purchase: whoever starts it again gets the same session. Tomorrow's run buys one of its own.
    let intent = format!("prices-{}", SystemTime::UNIX_EPOCH.elapsed()?.as_secs() / 86_400);
    let wanted = CreateSession { session_type: SessionType::Dynamic, product_no: "dynamic-world".into(), ..Default::default() };
    let ticket = client.open_session(wanted, CallOptions::intent(intent));
    let open = drive(&mut client, ticket, &mut host)?;
    println!("{} is {}", open.session_id, open.session.status);
    if let Some(url) = open.session.proxy.and_then(|proxy| proxy.full_url) {
        let _proxy_for_your_http_client = url.reveal();
    }

    let ticket = client.start(TerminateSession { session_id: open.session_id.clone() }, CallOptions::default());
    drive(&mut client, ticket, &mut host)?;
    println!("{} is over", open.session_id);
    Ok(())
}
