//! The loop that every host has, for Rust: a client, and something that can send, store, sleep and tell the time.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use crate::client::public::Client;
use crate::client::text::event::Event;
use crate::client::types::{Outcome, Outputs, Step, Ticket};
use crate::policy::{Advice, Effect, Error, FailureKind, Kind, Sent};
use crate::state::{StoreAnswer, StoreCall};
use crate::time::{Millis, Now};
use crate::wire::Request;

/// The result of sending a request. `Debug` shows neither the body nor the values of headers.
#[derive(Clone, PartialEq, Eq)]
pub enum Responded {
    /// A response.
    Response {
        /// The HTTP status.
        status: u16,
        /// The headers that [`RESPONSE_HEADERS`](super::RESPONSE_HEADERS) names.
        headers: Vec<(String, String)>,
        /// At most `max_body` bytes of the body.
        body: Vec<u8>,
        /// True if the body was longer.
        truncated: bool,
    },
    /// No response.
    Failed {
        /// Why.
        kind: FailureKind,
        /// The reach of the request.
        sent: Sent,
    },
}

impl Responded {
    /// The outcome for a client.
    fn outcome<'a>(&'a self, headers: &'a [(&'a str, &'a str)]) -> Outcome<'a> {
        match self {
            Responded::Response { status, body, truncated, .. } => {
                Outcome::Response { status: *status, headers, body, truncated: *truncated }
            }
            Responded::Failed { kind, sent } => Outcome::Failed { kind: *kind, sent: *sent },
        }
    }

    fn headers(&self) -> Vec<(&str, &str)> {
        match self {
            Responded::Response { headers, .. } => headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            Responded::Failed { .. } => Vec::new(),
        }
    }
}

impl fmt::Debug for Responded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.outcome(&self.headers()).fmt(f)
    }
}

/// Everything that Hopline leaves to a blocking host.
pub trait Host {
    /// Both clocks.
    fn now(&mut self) -> Now;
    /// Sends a request and waits for what comes of it. Redirects and repeats are Hopline's to decide: turn off the HTTP
    /// client's own.
    fn send(&mut self, request: &Request) -> Responded;
    /// Waits that many milliseconds.
    fn sleep(&mut self, ms: Millis);
    /// Asks the store. Only a client with [`ClientOptions::store`](super::ClientOptions::store) does. A host without a store, or whose store
    /// could not be opened, answers [`StoreAnswer::Never`].
    fn store(&mut self, _call: &StoreCall) -> StoreAnswer {
        StoreAnswer::Never
    }
    /// Called with each event.
    fn notify(&mut self, _event: &Event) {}
}

/// Everything that Hopline leaves to an async host, whatever its runtime. See [`Host`] for what each method is to do.
#[allow(async_fn_in_trait, reason = "a caller's host is Send or not, as its runtime needs")]
pub trait AsyncHost {
    /// Both clocks.
    fn now(&mut self) -> Now;
    /// Sends a request.
    async fn send(&mut self, request: &Request) -> Responded;
    /// Waits that many milliseconds.
    async fn sleep(&mut self, ms: Millis);
    /// Asks the store.
    async fn store(&mut self, _call: &StoreCall) -> StoreAnswer {
        StoreAnswer::Never
    }
    /// Called with each event.
    fn notify(&mut self, _event: &Event) {}
}

/// A client that can be driven, with or without pools.
pub trait Driven {
    /// Returns the next step.
    fn poll(&mut self, now: Now) -> Step;
    /// The client itself.
    fn client(&mut self) -> &mut Client;
}

impl Driven for Client {
    fn poll(&mut self, now: Now) -> Step {
        Client::poll(self, now)
    }

    fn client(&mut self) -> &mut Client {
        self
    }
}

/// Runs a client until a command has completed, and takes its result. Other commands go on meanwhile.
pub fn drive<O: Outputs>(client: &mut impl Driven, ticket: Ticket<O>, host: &mut impl Host) -> Result<O::Output, Error> {
    let mut host = BlockingHost(host);
    let mut running = pin!(drive_async(client, ticket, &mut host));
    let mut context = Context::from_waker(Waker::noop());
    loop {
        // A blocking host's futures are ready at once, so the first poll is the last.
        if let Poll::Ready(result) = running.as_mut().poll(&mut context) {
            return result;
        }
    }
}

/// Drives a command for an async host. To abandon it, drop the future and [`cancel`](Client::cancel) the command.
pub async fn drive_async<O: Outputs>(client: &mut impl Driven, ticket: Ticket<O>, host: &mut impl AsyncHost) -> Result<O::Output, Error> {
    let mut result = None;
    loop {
        result = result.or_else(|| client.client().take(ticket));
        let now = host.now();
        match client.poll(now) {
            // Going on until here has let the record of a result that was taken be deleted.
            Step::Wait { until } => match (result.take(), until) {
                (Some(result), _) => return result,
                (None, Some(until)) => host.sleep(until.saturating_sub(now.monotonic).max(1)).await,
                (None, None) => {
                    let what = "this client has no such command, or its result was taken before";
                    return Err(Error::new(Kind::Misuse, Effect::Unknown, "drive", what, Advice::CheckAccount));
                }
            },
            step => answer(client.client(), step, host).await,
        }
    }
}

async fn answer(client: &mut Client, step: Step, host: &mut impl AsyncHost) {
    // An answer to a step that was just polled is never misuse.
    match step {
        Step::Store { id, call, .. } => {
            let answer = host.store(&call).await;
            let _ = client.resolve(id, Outcome::Store(answer), host.now());
        }
        Step::Send { id, request, .. } => {
            let responded = match host.now().monotonic > request.send_before {
                true => Responded::Failed { kind: FailureKind::Late, sent: Sent::Never },
                false => host.send(&request).await,
            };
            let now = host.now();
            let _ = client.resolve(id, responded.outcome(&responded.headers()), now);
        }
        Step::Notify(event) => host.notify(&event),
        Step::Completed { .. } | Step::Wait { .. } => {}
    }
}

/// A blocking host as an async one whose futures are ready at once.
struct BlockingHost<'a, H>(&'a mut H);

impl<H: Host> AsyncHost for BlockingHost<'_, H> {
    fn now(&mut self) -> Now {
        self.0.now()
    }

    async fn send(&mut self, request: &Request) -> Responded {
        self.0.send(request)
    }

    async fn sleep(&mut self, ms: Millis) {
        self.0.sleep(ms);
    }

    async fn store(&mut self, call: &StoreCall) -> StoreAnswer {
        self.0.store(call)
    }

    fn notify(&mut self, event: &Event) {
        self.0.notify(event);
    }
}
