//! The state that the parts of the server share: the service, its clock, and a notice of every change.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use http::{Request, Response};
use serde::Serialize;
use tokio::sync::watch;

use super::connection_fault::ConnectionFault;
use super::target::{self, Target, Visitor};
use crate::service::{Exit, FaultRule, InProgress, Service, faults};

#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<()>,
}

/// Everything that changes, behind one lock that is never held across an await.
#[derive(Debug)]
pub(super) struct State {
    pub(super) service: Service,
    pub(super) faults: Vec<FaultRule<ConnectionFault>>,
    pub(super) target: Target,
    /// The last requests of both APIs, the oldest first.
    pub(super) arrivals: VecDeque<Arrival>,
    /// How far the sandbox's clock is ahead of the machine's.
    ahead_ms: i64,
    /// True if the sandbox is ending, and sessions open nothing any more.
    closed: bool,
}

/// A request as it came.
#[derive(Debug, Serialize)]
pub(super) struct Arrival {
    /// The port of the client, which tells one connection from another.
    connection: u16,
    method: String,
    path: String,
    version: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Arrival {
    pub(super) fn new(peer: SocketAddr, request: &Request<Vec<u8>>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self {
            connection: peer.port(),
            method: request.method().to_string(),
            path: request.uri().to_string(),
            version: format!("{:?}", request.version()),
            headers: request.headers().iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
            body: text(request.body()),
        }
    }
}

impl State {
    pub(super) fn now_ms(&self) -> i64 {
        let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(unix.as_millis()).unwrap_or(i64::MAX).saturating_add(self.ahead_ms)
    }
}

impl Shared {
    pub(super) fn new(service: Service) -> Self {
        let state = State { service, faults: Vec::new(), target: Target::default(), arrivals: VecDeque::new(), ahead_ms: 0, closed: false };
        Self { state: Mutex::new(state), changed: watch::Sender::new(()) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic in a test's closure must not hide behind a second one.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something to the service at the present time, and lets everybody who waits look again.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut Service, i64) -> R) -> R {
        let result = {
            let mut state = self.lock();
            let now_ms = state.now_ms();
            change(&mut state.service, now_ms)
        };
        self.changed.send_replace(());
        result
    }

    /// Delivers a request; one that is in progress is answered when its work is done.
    pub(super) async fn deliver(&self, request: &Request<Vec<u8>>) -> Response<Vec<u8>> {
        let response = self.change(|service, now_ms| service.handle(request, now_ms));
        let Some(in_progress) = response.extensions().get::<InProgress>().copied() else {
            return response;
        };
        self.wait_until(in_progress.ends_at).await;
        self.change(|service, now_ms| service.finish(in_progress, now_ms)).unwrap_or(response)
    }

    /// Notes a request for whoever asks what came; of very many only the last ones.
    pub(super) fn note(&self, arrival: Arrival) {
        const KEPT: usize = 1000;
        let mut state = self.lock();
        state.arrivals.push_back(arrival);
        if state.arrivals.len() > KEPT {
            state.arrivals.pop_front();
        }
    }

    /// Answers a visit of the target site.
    pub(super) fn visit(&self, visitor: Visitor) -> target::Answer {
        let mut state = self.lock();
        let now_ms = state.now_ms();
        state.target.visit(visitor, now_ms)
    }

    pub(super) fn take_fault(&self, operation: Option<&str>) -> Option<ConnectionFault> {
        faults::take(&mut self.lock().faults, operation, |_| true)
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.lock().now_ms()
    }

    pub(super) fn advance(&self, ms: i64) {
        let mut state = self.lock();
        state.ahead_ms = state.ahead_ms.saturating_add(ms);
        drop(state);
        self.changed.send_replace(());
    }

    /// Waits for a moment of the sandbox's clock, which may be moved meanwhile.
    pub(super) async fn wait_until(&self, at_ms: i64) {
        let mut changed = self.changed.subscribe();
        loop {
            let left = at_ms.saturating_sub(self.now_ms());
            if left <= 0 {
                return;
            }
            let left = Duration::from_millis(left.unsigned_abs());
            let _ = tokio::time::timeout(left, changed.changed()).await;
        }
    }

    pub(super) fn exit_of(&self, username: &str, password: &str) -> Option<Exit> {
        let state = self.lock();
        let exit = state.service.exit_of(username, password, state.now_ms());
        exit.filter(|_| !state.closed)
    }

    /// Closes every tunnel, for good.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.send_replace(());
    }

    pub(super) fn add_traffic(&self, session_id: &str, bytes: u64) {
        self.lock().service.add_traffic(session_id, bytes);
    }

    /// Hears of every change from now on.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }
}
