//! Several sessions in one client, with several requests in flight: the loop of `drive`, with one thread or one task for
//! each exchange.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hopline::client::{OpenSession, Phase, Responded, StepId, Ticket};
use hopline::{CallOptions, Client, Outcome, Step};
use hopline_sandbox::{Config, ConnectionFault};
use tokio::sync::mpsc;

use crate::probe::{Live, now, purchase};
use crate::{reqwest_example, ureq_example};

const FIVE: usize = 5;
const THOUSAND: usize = 1000;
const LATE_MS: u32 = 60_000;

/// How many exchanges are under way, and were at most.
#[derive(Default)]
struct Flight {
    present: AtomicUsize,
    most: AtomicUsize,
}

impl Flight {
    fn begin(&self) {
        self.most.fetch_max(self.present.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
    }

    fn end(&self) {
        self.present.fetch_sub(1, Ordering::SeqCst);
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::SeqCst)
    }
}

/// A service where so many can buy.
fn room() -> Live {
    Live::of(Config {
        provisioning_ms: 0..=0,
        session_limit: 2 * THOUSAND,
        requests_per_minute: u32::MAX,
        balance: "1000000".parse().expect("a decimal"),
        ..Config::new(7)
    })
}

/// A client with that many purchases begun.
fn begin(live: &Live, sessions: usize) -> (Client, Vec<Ticket<OpenSession>>) {
    let mut client = Client::new(live.options(), ureq_example::entropy().expect("entropy")).expect("a client");
    let options = |n| CallOptions::intent(format!("job-{n}"));
    let tickets = (0..sessions).map(|n| client.open_session(purchase(), options(n))).collect();
    (client, tickets)
}

/// Lets the late answers go once the service has every purchase.
fn release(live: &Live) {
    let began = Instant::now();
    while live.charges() < FIVE && began.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(10));
    }
    live.running.advance(LATE_MS.into());
}

fn check(live: &Live, client: &mut Client, tickets: &[Ticket<OpenSession>]) {
    let mut bought: Vec<String> = Vec::new();
    for ticket in tickets {
        let open = client.take(*ticket).expect("it completed").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(open.phase, Phase::Ready);
        bought.push(open.session_id);
    }
    let mut known: Vec<String> = live.sessions().into_iter().map(|session| session.session_id).collect();
    bought.sort();
    known.sort();
    assert_eq!(bought, known);
    assert_eq!(live.charges(), tickets.len());
}

fn resolve(client: &mut Client, id: StepId, answer: &Responded, started: Instant) {
    let done = match answer {
        Responded::Response { status, headers, body, truncated } => {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let outcome = Outcome::Response { status: *status, headers: &headers, body, truncated: *truncated };
            client.resolve(id, outcome, now(started))
        }
        Responded::Failed { kind, sent } => client.resolve(id, Outcome::Failed { kind: *kind, sent: *sent }, now(started)),
    };
    done.expect("each step is answered once");
}

/// Drives a client until that many commands have completed, with a thread for each exchange.
fn by_threads(client: Client, mut left: usize, flight: &Flight) -> Client {
    let (agent, started) = (ureq_example::agent(), Instant::now());
    let (client, answered) = (Mutex::new(client), Condvar::new());
    thread::scope(|scope| {
        let mut pump = client.lock().expect("a lock");
        while left > 0 {
            match pump.poll(now(started)) {
                Step::Send { id, request, .. } => {
                    let (agent, client, answered) = (&agent, &client, &answered);
                    scope.spawn(move || {
                        flight.begin();
                        let answer = ureq_example::send(agent, &request);
                        flight.end();
                        resolve(&mut client.lock().expect("a lock"), id, &answer, started);
                        answered.notify_one();
                    });
                }
                Step::Completed { .. } => left -= 1,
                // This client has no store.
                Step::Store { .. } | Step::Notify(_) => {}
                Step::Wait { until } => {
                    let wait = until.map_or(10_000, |until| (until - now(started).monotonic).max(1));
                    // An answer wakes it early, and the lock is free meanwhile.
                    pump = answered.wait_timeout(pump, Duration::from_millis(wait.unsigned_abs())).expect("a lock").0;
                }
            }
        }
    });
    client.into_inner().expect("a lock")
}

/// Tasks do the same, one for each. Tasks only send; the client stays here, and answers come back to it.
async fn by_tasks(client: &mut Client, mut left: usize, flight: &Arc<Flight>) {
    let (http, started) = (reqwest_example::builder().build().expect("a client"), Instant::now());
    let (answers, mut heard) = mpsc::unbounded_channel();
    while left > 0 {
        match client.poll(now(started)) {
            Step::Send { id, request, .. } => {
                let (http, answers, flight) = (http.clone(), answers.clone(), flight.clone());
                tokio::spawn(async move {
                    flight.begin();
                    let answer = reqwest_example::send(&http, &request).await;
                    flight.end();
                    answers.send((id, answer)).expect("the client is there");
                });
            }
            Step::Completed { .. } => left -= 1,
            // This client has no store.
            Step::Store { .. } | Step::Notify(_) => {}
            Step::Wait { until } => {
                let wait = until.map_or(10_000, |until| (until - now(started).monotonic).max(1));
                if let Ok(Some((id, answer))) = tokio::time::timeout(Duration::from_millis(wait.unsigned_abs()), heard.recv()).await {
                    resolve(client, id, &answer, started);
                }
            }
        }
    }
}

#[test]
fn five_sessions_open_at_once_with_a_thread_for_each_exchange() {
    let (live, flight) = (Live::new(), Flight::default());
    // Their answers are late, so that they are in flight together.
    live.fault("create_session", FIVE as u32, ConnectionFault::Delay { ms: LATE_MS });
    let (client, tickets) = begin(&live, FIVE);
    let mut client = thread::scope(|scope| {
        scope.spawn(|| release(&live));
        by_threads(client, FIVE, &flight)
    });
    check(&live, &mut client, &tickets);
    assert_eq!(flight.most(), FIVE);
}

#[test]
fn five_sessions_open_at_once_with_a_task_for_each_exchange() {
    let (live, flight) = (Live::new(), Arc::new(Flight::default()));
    live.fault("create_session", FIVE as u32, ConnectionFault::Delay { ms: LATE_MS });
    let (mut client, tickets) = begin(&live, FIVE);
    thread::scope(|scope| {
        scope.spawn(|| release(&live));
        live.runtime.block_on(by_tasks(&mut client, FIVE, &flight));
    });
    check(&live, &mut client, &tickets);
    assert_eq!(flight.most(), FIVE);
}

#[test]
fn a_thousand_purchases_at_once_are_a_thousand_sessions_over_ureq() {
    let (live, flight) = (room(), Flight::default());
    let (client, tickets) = begin(&live, THOUSAND);
    check(&live, &mut by_threads(client, THOUSAND, &flight), &tickets);
    assert!(flight.most() <= 64, "the rest wait unsent");
}

#[test]
fn a_thousand_purchases_at_once_are_a_thousand_sessions_over_reqwest() {
    let (live, flight) = (room(), Arc::new(Flight::default()));
    let (mut client, tickets) = begin(&live, THOUSAND);
    live.runtime.block_on(by_tasks(&mut client, THOUSAND, &flight));
    check(&live, &mut client, &tickets);
    assert!(flight.most() <= 64, "the rest wait unsent");
}
