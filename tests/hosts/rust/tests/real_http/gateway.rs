//! A real nginx between the client and the service: whatever it makes of an answer, a purchase is charged once, and what is
//! said of it is true by the service's own books.

use std::time::Duration;

use hopline::contract::agent::{GetBalance, GetSession, TerminateSession};
use hopline::{CallOptions, ClientOptions, Effect, Error, Kind};
use hopline_sandbox::{ConnectionFault, Fault, FaultRule};

use crate::probe::{BOTH, Http, Live, Probe, eager, purchase};

/// Longer than the gateway waits, and not so long as the client does for work that is under way.
const LATE_MS: u32 = 20_000;

/// The behaviour behind the gateway.
#[derive(Clone, Debug)]
enum Behind {
    Nothing,
    Connection(ConnectionFault),
    /// The work takes longer than the gateway waits.
    Slow,
}

/// A road of the gateway, what happens behind it, and what a purchase ends with that is sent once: bought, or in doubt with this
/// status. Then the charges that the service has.
type Case = (&'static str, Behind, Result<(), Option<u16>>, usize);

fn cases() -> Vec<Case> {
    use Behind::{Connection, Nothing, Slow};
    let dropped = || Connection(ConnectionFault::DropAfter {});
    let cut = || Connection(ConnectionFault::Truncate {});
    vec![
        ("plain", Nothing, Ok(()), 1),
        ("plain", Connection(ConnectionFault::DropBefore {}), Err(Some(502)), 0),
        ("plain", dropped(), Err(Some(502)), 1),
        ("plain", cut(), Err(Some(202)), 1),
        ("gone", Nothing, Err(Some(502)), 0),
        ("late", Connection(ConnectionFault::Delay { ms: LATE_MS }), Err(Some(504)), 1),
        ("late", Slow, Err(Some(504)), 0),
        // The gateway itself sends it again: the first one is answered in the place of the second, or is still under way.
        ("twice", dropped(), Ok(()), 1),
        ("twice", Slow, Err(Some(409)), 0),
        ("stream", Nothing, Ok(()), 1),
        ("stream", cut(), Err(Some(202)), 1),
        ("gzip", Nothing, Ok(()), 1),
        ("gzip", cut(), Err(Some(202)), 1),
        ("dying", Nothing, Err(None), 0),
    ]
}

fn behind(live: &Live, behind: &Behind) {
    match behind {
        Behind::Nothing => {}
        Behind::Connection(fault) => live.fault("create_session", 1, fault.clone()),
        Behind::Slow => live.running.with_service(|service, _| {
            let fault = Fault::InProgress { ms: LATE_MS.into(), error: None };
            service.inject(FaultRule { operation: Some("create_session".to_owned()), times: 1, fault });
        }),
    }
}

fn probe(http: Http, live: &Live, road: &str) -> Probe {
    Probe::new(http, ClientOptions { base_url: live.road(road), retry: eager(), ..live.options() })
}

fn intent() -> CallOptions {
    CallOptions::intent("job-17")
}

/// An error that says truly what is open, by a record that is kept.
fn check_doubt(what: &str, probe: &mut Probe, error: &Error, status: Option<u16>) {
    assert_eq!((error.kind, error.effect, error.status), (Kind::InDoubt, Effect::Unknown, status), "{what}: {error}");
    let saved: Vec<_> = probe.saved().into_iter().map(|saved| Some(saved.record.0)).collect();
    assert_eq!(saved, std::slice::from_ref(&error.record), "{what}");
}

fn check_bought_once(what: &str, live: &Live, session_id: &str) {
    let ids: Vec<String> = live.sessions().into_iter().map(|session| session.session_id).collect();
    assert_eq!((live.charges(), ids.as_slice()), (1, [session_id.to_owned()].as_slice()), "{what}");
}

/// Tries each road with each HTTP client, all at a time: most of it is waiting.
fn on_each_road(check: fn(&str, &Live, Probe, Case)) {
    if Live::lacks_a_gateway() {
        return;
    }
    std::thread::scope(|scope| {
        for (http, case) in BOTH.into_iter().flat_map(|http| cases().into_iter().map(move |case| (http, case))) {
            scope.spawn(move || {
                let live = Live::behind_a_gateway();
                let probe = probe(http, &live, case.0);
                check(&format!("{http:?} {} {:?}", case.0, case.1), &live, probe, case);
            });
        }
    });
}

#[test]
fn a_purchase_that_a_gateway_breaks_is_in_doubt_and_is_made_once_by_starting_its_intent_again() {
    on_each_road(|what, live, mut probe, (road, behind_it, first, charges)| {
        if road == "dying" {
            let balance = probe.client.start(GetBalance {}, CallOptions::default());
            probe.drive(balance).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
        behind(live, &behind_it);
        let ticket = probe.client.start(purchase(), CallOptions { attempts: Some(1), ..intent() });
        match (probe.drive(ticket), first) {
            (Ok(bought), Ok(())) => check_bought_once(what, live, &bought.session_id),
            (Err(error), Err(status)) => check_doubt(what, &mut probe, &error, status),
            (ended, _) => panic!("{what}: {ended:?}"),
        }
        assert_eq!(live.charges(), charges, "{what}");
        live.running.advance(LATE_MS.into());
        let ticket = probe.client.start(purchase(), intent());
        let bought = probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}"));
        check_bought_once(what, live, &bought.session_id);
    });
}

#[test]
fn a_purchase_survives_a_gateway_by_its_own_repeats() {
    on_each_road(|what, live, mut probe, (_, behind_it, ..)| {
        behind(live, &behind_it);
        let ticket = probe.client.start(purchase(), intent());
        let bought = probe.drive(ticket).unwrap_or_else(|error| panic!("{what}: {error}"));
        check_bought_once(what, live, &bought.session_id);
    });
}

#[test]
fn a_purchase_that_never_gets_past_a_gateway_stays_in_doubt() {
    if Live::lacks_a_gateway() {
        return;
    }
    for http in BOTH {
        // Too long for one road; the answer to it too long for the other.
        for (road, status, charges) in [("small", 413, 0), ("narrow", 502, 1)] {
            let what = format!("{http:?} {road}");
            let live = Live::behind_a_gateway();
            let mut probe = probe(http, &live, road);
            for _ in 0..2 {
                let ticket = probe.client.start(purchase(), intent());
                let error = probe.drive(ticket).expect_err("no answer comes through");
                check_doubt(&what, &mut probe, &error, Some(status));
                assert_eq!(live.charges(), charges, "{what}");
            }
        }
    }
}

#[test]
fn a_session_lives_on_over_connections_that_the_gateway_closes() {
    if Live::lacks_a_gateway() {
        return;
    }
    for http in BOTH {
        let live = Live::behind_a_gateway();
        let mut probe = probe(http, &live, "kept");
        let ticket = probe.client.open_session(purchase(), intent());
        let id = probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}")).session_id;
        for n in 0..6 {
            // Every third request is the last one of its connection, and a rest is longer than the gateway keeps one.
            if n % 4 == 3 {
                std::thread::sleep(Duration::from_secs(2));
            }
            let ticket = probe.client.start(GetSession { session_id: id.clone(), include_credentials: None }, CallOptions::default());
            assert_eq!(probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}")).session_id, id);
        }
        let ticket = probe.client.start(TerminateSession { session_id: id.clone() }, CallOptions::default());
        probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        check_bought_once(&format!("{http:?}"), &live, &id);
    }
}
