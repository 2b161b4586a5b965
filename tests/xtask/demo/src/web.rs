//! All HTTP of the demo. The client core is driven by the very host that the ureq example shows.

#[path = "../../../../core/examples/ureq.rs"]
#[allow(dead_code, reason = "the example is a program of its own; only its host is used here")]
mod example;

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use hopline::client::{Event, EventKind, Host, Phase, Responded, StoreAnswer, StoreCall};
use hopline::contract::Decimal;
use hopline::contract::agent::Proxy;
use hopline::wire::Request;
use hopline::{Millis, Now};
use serde::Deserialize;
use ureq::config::Config;

pub(crate) use self::example::{agent, entropy, options};
use crate::Told;
use crate::page::{Page, Tone, seconds};

/// The host of the example, which also tells what happens.
pub(crate) struct Shown {
    host: example::Ureq,
    page: Page,
    began: Instant,
    /// The awaited thing, in a word.
    awaited: &'static str,
}

impl Shown {
    pub(crate) fn new(folder: &Path, page: Page) -> Told<Self> {
        Ok(Shown { host: example::Ureq::new(folder)?, page, began: Instant::now(), awaited: "creating" })
    }
}

impl Host for Shown {
    fn now(&mut self) -> Now {
        self.host.now()
    }

    fn send(&mut self, request: &Request) -> Responded {
        self.host.send(request)
    }

    fn sleep(&mut self, ms: Millis) {
        self.page.wait(self.awaited, self.began, Duration::from_millis(ms.unsigned_abs()));
    }

    fn store(&mut self, call: &StoreCall) -> StoreAnswer {
        self.host.store(call)
    }

    fn notify(&mut self, event: &Event) {
        match &event.what {
            EventKind::Accepted { session_id, estimated_charge_usd } => {
                self.began = Instant::now();
                let charge = estimated_charge_usd.as_deref().and_then(|charge| charge.parse::<Decimal>().ok());
                let charge = charge.map_or("an unknown amount of".to_owned(), |charge| format!("{charge:.2}"));
                self.page.row("accepted", format!("{session_id}, for {charge} USD"));
            }
            EventKind::Status { status, phase, .. } => {
                let tone = if *phase == Phase::Ready { Tone::Good } else { Tone::Plain };
                self.page.toned(tone, status, format!("after {}", seconds(self.began.elapsed())));
            }
            EventKind::Ordered { order_no } => {
                self.began = Instant::now();
                self.awaited = "processing";
                self.page.row("ordered", order_no);
            }
            EventKind::OrderStatus { status, phase, .. } => {
                let tone = if *phase == Phase::Ready { Tone::Good } else { Tone::Plain };
                self.page.toned(tone, status, format!("after {}", seconds(self.began.elapsed())));
            }
            EventKind::AskingTime => self.page.row("asking", "the service for its time, to know how old the key is"),
            EventKind::Repeating { delay_ms, because, .. } => {
                self.page.toned(Tone::Bad, "again", format!("in {delay_ms} ms, since {}", because.what));
            }
            _ => {}
        }
    }
}

/// A page of the target site: what it was answered with, and from which address the site saw it come.
pub(crate) struct Visit {
    pub(crate) status: u16,
    pub(crate) from: IpAddr,
}

/// Fetches a page through a session's proxy.
pub(crate) fn visit(url: &str, proxy: &Proxy) -> Told<Visit> {
    #[derive(Deserialize)]
    struct Welcome {
        address: IpAddr,
    }
    let mut answer = through(proxy)?.get(url).call()?;
    let welcome: Welcome = serde_json::from_str(&answer.body_mut().read_to_string()?)?;
    Ok(Visit { status: answer.status().as_u16(), from: welcome.address })
}

/// An agent that goes through a session's proxy, which also looks the names up.
fn through(proxy: &Proxy) -> Told<ureq::Agent> {
    let missing = || "the session came without a complete proxy; ask for its credentials";
    let builder = ureq::Proxy::builder(ureq::ProxyProtocol::Socks5h)
        .host(proxy.host.as_deref().ok_or_else(missing)?)
        .port(proxy.port.and_then(|port| u16::try_from(port).ok()).ok_or_else(missing)?)
        .username(proxy.username.as_ref().ok_or_else(missing)?.reveal())
        .password(proxy.password.as_ref().ok_or_else(missing)?.reveal());
    let config = Config::builder()
        .proxy(Some(builder.build()?))
        .http_status_as_error(false)
        .max_redirects(0)
        .timeout_global(Some(Duration::from_secs(10)))
        .build();
    Ok(config.new_agent())
}
