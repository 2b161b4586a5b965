//! A purchase that is given up in each phase of it, by a program that then ends: the next one buys it once.

use hopline::client::{CommandId, FailureKind, Host, Outcome, Phase, Responded, Sent, StepId, StoreCall};
use hopline::wire::Request;
use hopline::{CallOptions, ClientOptions, Effect, Kind, Step};
use hopline_store::Memory;

use crate::probe::{Http, Live, Probe, purchase};
use crate::ureq_example;

/// Where it is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum At {
    Start,
    Claiming,
    Saving,
    Leaving,
    Done,
    Accepted,
    Polling,
    Polled,
    Credentials,
}

const ALL: [At; 9] = [At::Start, At::Claiming, At::Saving, At::Leaving, At::Done, At::Accepted, At::Polling, At::Polled, At::Credentials];

fn wanted() -> CallOptions {
    CallOptions::intent("job-17")
}

/// A program with that store.
fn program(live: &Live, store: &Memory) -> Probe {
    let mut probe = Probe::new(Http::Ureq, ClientOptions { store: true, ..live.options() });
    probe.host.store = store.open();
    probe
}

/// Buys, and gives up when it is there. Returns what the command ended with.
fn give_up(live: &Live, store: &Memory, at: At) -> (Kind, Effect) {
    let mut probe = program(live, store);
    let command = probe.client.open_session(purchase(), wanted()).command;
    let mut gone = false;
    for _ in 0..200 {
        let clock = probe.now();
        if at == At::Start && !std::mem::replace(&mut gone, true) {
            probe.client.cancel(command, clock);
        }
        match probe.client.poll(clock) {
            Step::Store { id, call, .. } => {
                let bought = !live.sessions().is_empty();
                let here = match call {
                    StoreCall::Claim { .. } => at == At::Claiming,
                    StoreCall::Put { .. } => at == if bought { At::Accepted } else { At::Saving },
                    _ => false,
                };
                if here && !std::mem::replace(&mut gone, true) {
                    probe.client.cancel(command, clock);
                }
                let answer = Host::store(&mut probe.host, &call);
                let clock = probe.now();
                probe.client.resolve(id, Outcome::Store(answer), clock).expect("the step waits");
            }
            Step::Send { id, request, .. } => send(&mut probe, command, (id, &request), at, &mut gone),
            Step::Completed { .. } => {
                let error = probe.client.take_answer(command).expect("has ended").expect_err("was given up");
                return (error.kind, error.effect);
            }
            Step::Wait { until } => Host::sleep(&mut probe.host, until.map_or(10, |until| (until - clock.monotonic).clamp(1, 2000))),
            Step::Notify(_) => {}
        }
    }
    panic!("it did not end");
}

fn send(probe: &mut Probe, command: CommandId, (id, request): (StepId, &Request), at: At, gone: &mut bool) {
    let buys = request.method.as_str() == "POST";
    let reads = request.url.contains("include_credentials=true");
    let before = match at {
        At::Leaving => buys,
        At::Polling => !buys && !reads,
        At::Credentials => reads,
        _ => false,
    };
    let after = at == At::Done && buys || at == At::Polled && !buys;
    let aborted = Responded::Failed { kind: FailureKind::Aborted, sent: Sent::Maybe };
    let answer = if before { aborted.clone() } else { ureq_example::send(&probe.host.ureq, request) };
    if (before || after) && !std::mem::replace(gone, true) {
        let clock = probe.now();
        assert_eq!(probe.client.cancel(command, clock), Some(id), "the request that is out is named");
    }
    let clock = probe.now();
    match if after { aborted } else { answer } {
        Responded::Response { status, headers, body, truncated } => {
            let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            probe.client.resolve(id, Outcome::Response { status, headers: &headers, body: &body, truncated }, clock)
        }
        Responded::Failed { kind, sent } => probe.client.resolve(id, Outcome::Failed { kind, sent }, clock),
    }
    .expect("the step waits");
}

#[test]
fn a_purchase_that_is_given_up_in_any_phase_is_made_once_by_whoever_starts_it_again() {
    for at in ALL {
        let live = Live::provisioning(100);
        let store = Memory::new();
        let (kind, effect) = give_up(&live, &store, at);
        let charged = usize::from(at >= At::Done);
        let told = match at {
            // Before its name was claimed nobody knows what became of it in another program.
            At::Start | At::Claiming => Effect::Unknown,
            At::Saving => Effect::None,
            At::Leaving | At::Done => Effect::Unknown,
            At::Accepted | At::Polling | At::Polled | At::Credentials => Effect::Done,
        };
        assert_eq!((kind, effect, live.charges()), (Kind::Cancelled, told, charged), "{at:?}");

        let mut next = program(&live, &store);
        assert_eq!(next.saved().is_empty(), at < At::Leaving, "{at:?}: a record is there as long as money may have moved");
        let ticket = next.client.open_session(purchase(), wanted());
        let open = next.drive(ticket).unwrap_or_else(|error| panic!("{at:?}: {error}"));
        assert_eq!((open.phase, live.charges(), live.sessions().len()), (Phase::Ready, 1, 1), "{at:?}");
        assert!(open.session.proxy.is_some_and(|proxy| proxy.password.is_some()), "{at:?}");
    }
}
