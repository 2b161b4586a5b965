//! A purchase that is given up in each phase of it, by a program that then ends: the next one buys it once.

use std::collections::BTreeMap;

use hopline::client::{CommandId, FailureKind, Host, Outcome, Phase, Record, RecordId, Responded, Sent, StepId};
use hopline::wire::Request;
use hopline::{CallOptions, Effect, Kind, Step};

use crate::probe::{Http, Live, Probe, purchase};
use crate::ureq_example;

/// Where it is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum At {
    Start,
    Saving,
    Leaving,
    Done,
    Accepted,
    Polling,
    Polled,
    Credentials,
}

const ALL: [At; 8] = [At::Start, At::Saving, At::Leaving, At::Done, At::Accepted, At::Polling, At::Polled, At::Credentials];

fn wanted() -> CallOptions {
    CallOptions { credentials: true, ..CallOptions::intent("job-17") }
}

/// Buys, and gives up when it is there. Returns what the command ended with.
fn give_up(live: &Live, store: &mut BTreeMap<RecordId, Vec<u8>>, at: At) -> (Kind, Effect) {
    let mut probe = Probe::new(Http::Ureq, live.options());
    let command = probe.client.open_session(purchase(), wanted()).command;
    let mut gone = false;
    for _ in 0..200 {
        let clock = probe.now();
        if at == At::Start && !std::mem::replace(&mut gone, true) {
            probe.client.cancel(command, clock);
        }
        match probe.client.poll(clock) {
            Step::Save { id, record, data } => {
                let bought = !live.sessions().is_empty();
                if !gone && (at == At::Saving && !bought || at == At::Accepted && bought) {
                    gone = true;
                    probe.client.cancel(command, clock);
                }
                match data {
                    Some(data) => _ = store.insert(record, data),
                    None => _ = store.remove(&record),
                }
                let clock = probe.now();
                probe.client.resolve(id, Outcome::Saved, clock).expect("the step waits");
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
        let mut store = BTreeMap::new();
        let (kind, effect) = give_up(&live, &mut store, at);
        let charged = usize::from(at >= At::Done);
        let told = if at < At::Leaving {
            Effect::None
        } else if at < At::Accepted {
            Effect::Unknown
        } else {
            Effect::Done
        };
        assert_eq!((kind, effect, live.charges()), (Kind::Cancelled, told, charged), "{at:?}");
        assert_eq!(store.is_empty(), at < At::Leaving, "{at:?}: a record is there as long as money may have moved");

        let mut next = Probe::new(Http::Ureq, live.options());
        next.client.restore(store.into_iter().map(|(id, data)| Record { id, data }));
        let ticket = next.client.open_session(purchase(), wanted());
        let open = next.drive(ticket).unwrap_or_else(|error| panic!("{at:?}: {error}"));
        assert_eq!((open.phase, live.charges(), live.sessions().len()), (Phase::Ready, 1, 1), "{at:?}");
        assert!(open.session.proxy.is_some_and(|proxy| proxy.password.is_some()), "{at:?}");
    }
}
