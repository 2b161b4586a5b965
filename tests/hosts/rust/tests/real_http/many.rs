//! Several sessions in one client, with several requests in flight: the loop of `drive`, with one thread or one task for
//! each exchange.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use hopline::client::{OpenSession, Phase, Responded, StepId, Ticket};
use hopline::{CallOptions, Client, Outcome, Step};
use hopline_sandbox::ConnectionFault;
use tokio::sync::mpsc;

use crate::probe::{Live, now, purchase};
use crate::{reqwest_example, ureq_example};

const SESSIONS: usize = 5;
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

/// A client with that many purchases begun. Their answers are late, so that they are in flight together.
fn begin(live: &Live) -> (Client, Vec<Ticket<OpenSession>>) {
    live.fault("create_session", SESSIONS as u32, ConnectionFault::Delay { ms: LATE_MS });
    let mut client = Client::new(live.options(), ureq_example::entropy().expect("entropy")).expect("a client");
    let options = |n| CallOptions::intent(format!("job-{n}"));
    let tickets = (0..SESSIONS).map(|n| client.open_session(purchase(), options(n))).collect();
    (client, tickets)
}

/// Lets the answers go once the service has every purchase.
fn release(live: &Live) {
    let began = Instant::now();
    while live.charges() < SESSIONS && began.elapsed() < Duration::from_secs(120) {
        thread::sleep(Duration::from_millis(10));
    }
    live.running.advance(LATE_MS.into());
}

fn check(live: &Live, client: &mut Client, tickets: &[Ticket<OpenSession>], flight: &Flight) {
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
    assert_eq!((live.charges(), flight.most()), (SESSIONS, SESSIONS));
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

#[test]
fn five_sessions_open_at_once_with_a_thread_for_each_exchange() {
    let live = Live::new();
    let (client, tickets) = begin(&live);
    let (agent, started, flight) = (ureq_example::agent(), Instant::now(), Flight::default());
    let (client, answered) = (Mutex::new(client), Condvar::new());
    thread::scope(|scope| {
        scope.spawn(|| release(&live));
        let mut left = SESSIONS;
        let mut pump = client.lock().expect("a lock");
        while left > 0 {
            match pump.poll(now(started)) {
                Step::Send { id, request, .. } => {
                    let (agent, client, answered, flight) = (&agent, &client, &answered, &flight);
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
    check(&live, &mut client.into_inner().expect("a lock"), &tickets, &flight);
}

#[test]
fn five_sessions_open_at_once_with_a_task_for_each_exchange() {
    let live = Live::new();
    let (mut client, tickets) = begin(&live);
    let (http, started, flight) = (reqwest_example::builder().build().expect("a client"), Instant::now(), Arc::new(Flight::default()));
    let pump = async {
        // Tasks only send; the client stays here, and answers come back to it.
        let (answers, mut heard) = mpsc::unbounded_channel();
        let mut left = SESSIONS;
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
                        resolve(&mut client, id, &answer, started);
                    }
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| release(&live));
        live.runtime.block_on(pump);
    });
    check(&live, &mut client, &tickets, &flight);
}
