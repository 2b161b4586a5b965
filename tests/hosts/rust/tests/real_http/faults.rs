//! Every fault of a connection: what it is called when it is the last word, and that a purchase survives it.

use hopline::client::{FailureKind, Sent};
use hopline::contract::agent::GetBalance;
use hopline::{CallOptions, ClientOptions, Effect, Kind};
use hopline_sandbox::ConnectionFault as Fault;

use crate::probe::{BOTH, Live, Probe, eager, once, purchase};

/// One attempt's time where the answer is late, well below the delay.
const TIMEOUT_MS: u32 = 1000;
const LATE_MS: u32 = 60_000;

/// The rest of an answer: the HTTP status, or the failure.
type Left = Result<u16, (FailureKind, Sent)>;

/// Every fault with what it leaves of an answer that would have had this status.
fn faults(status: u16) -> Vec<(Fault, Left)> {
    let (closed, late) = ((FailureKind::Closed, Sent::Maybe), (FailureKind::Timeout, Sent::Maybe));
    vec![
        (Fault::DropBefore {}, Err(closed)),
        (Fault::DropAfter {}, Err(closed)),
        (Fault::Delay { ms: LATE_MS }, Err(late)),
        (Fault::Truncate {}, Ok(status)),
        (Fault::Html { status: 502, after: false }, Ok(502)),
        (Fault::Html { status: 502, after: true }, Ok(502)),
        (Fault::Html { status: 200, after: true }, Ok(200)),
        (Fault::Huge { silent: false, after: true }, Ok(200)),
        (Fault::BadUtf8 { after: true }, Ok(200)),
    ]
}

fn options(fault: &Fault) -> CallOptions {
    let late = matches!(fault, Fault::Delay { .. });
    CallOptions { timeout_ms: late.then_some(TIMEOUT_MS), ..CallOptions::default() }
}

#[test]
fn a_read_that_fails_is_classified_and_keeps_its_status() {
    for http in BOTH {
        let live = Live::new();
        for (fault, left) in faults(200) {
            let mut probe = Probe::new(http, ClientOptions { retry: once(), ..live.options() });
            live.fault("get_balance", 1, fault.clone());
            let ticket = probe.client.start(GetBalance {}, options(&fault));
            let error = probe.drive(ticket).expect_err("a fault");
            let kind = if left.is_ok() { Kind::Protocol } else { Kind::Unavailable };
            assert_eq!((error.kind, error.effect, error.status), (kind, Effect::None, left.ok()), "{http:?} {fault:?}: {error}");
            assert_eq!(probe.host.last_failure(), left.err(), "{http:?} {fault:?}");
        }
    }
}

#[test]
fn a_read_goes_through_once_the_fault_is_over() {
    for http in BOTH {
        let live = Live::new();
        for fault in [Fault::DropBefore {}, Fault::DropAfter {}, Fault::Delay { ms: LATE_MS }, Fault::Html { status: 503, after: false }] {
            let mut probe = Probe::new(http, ClientOptions { retry: eager(), ..live.options() });
            live.fault("get_balance", 2, fault.clone());
            let ticket = probe.client.start(GetBalance {}, options(&fault));
            let read = probe.drive(ticket);
            assert!(read.is_ok() && probe.host.answers.len() == 3, "{http:?} {fault:?}: {read:?}");
        }
    }
}

#[test]
fn a_purchase_with_no_second_send_is_in_doubt_with_its_status_and_its_key() {
    for http in BOTH {
        let live = Live::new();
        for (fault, left) in faults(202) {
            let mut probe = Probe::new(http, ClientOptions { retry: once(), ..live.options() });
            live.fault("create_session", 1, fault.clone());
            let ticket = probe.client.start(purchase(), options(&fault));
            let error = probe.drive(ticket).expect_err("a fault");
            assert_eq!(
                (error.kind, error.effect, error.status),
                (Kind::InDoubt, Effect::Unknown, left.ok()),
                "{http:?} {fault:?}: {error}"
            );
            assert!(error.idempotency_key.is_some() && error.record.is_some(), "{http:?} {fault:?}");
            assert_eq!(probe.saved().len(), 1, "{http:?} {fault:?}");
        }
    }
}

#[test]
fn a_purchase_survives_every_fault_and_is_charged_once() {
    for http in BOTH {
        for (fault, _) in faults(202) {
            let live = Live::new();
            let mut probe = Probe::new(http, ClientOptions { retry: eager(), ..live.options() });
            live.fault("create_session", 1, fault.clone());
            let ticket = probe.client.start(purchase(), options(&fault));
            let bought = probe.drive(ticket);
            let bought = bought.unwrap_or_else(|error| panic!("{http:?} {fault:?}: {error}"));
            assert_eq!(live.charges(), 1, "{http:?} {fault:?}");
            assert_eq!(bought.session_id, live.sessions()[0].session_id, "{http:?} {fault:?}");
            assert_eq!(probe.host.answers.len(), 2, "{http:?} {fault:?}");
        }
    }
}

#[test]
fn a_request_that_is_delivered_twice_is_charged_once() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, live.options());
        live.fault("create_session", 1, Fault::Duplicate {});
        let ticket = probe.client.start(purchase(), CallOptions::default());
        assert!(probe.drive(ticket).is_ok() && probe.host.answers.len() == 1, "{http:?}");
        assert_eq!((live.charges(), live.sessions().len()), (1, 1), "{http:?}");
    }
}

#[test]
fn a_doubt_is_cleared_by_starting_the_intent_again() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, ClientOptions { retry: once(), ..live.options() });
        live.fault("create_session", 1, Fault::DropAfter {});
        let intent = || CallOptions::intent("job-17");
        let first = probe.client.start(purchase(), intent());
        assert_eq!(probe.drive(first).expect_err("a fault").kind, Kind::InDoubt, "{http:?}");
        let second = probe.client.start(purchase(), intent());
        let bought = probe.drive(second).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        assert_eq!((live.charges(), bought.session_id.as_str()), (1, live.sessions()[0].session_id.as_str()), "{http:?}");
    }
}

#[test]
fn a_read_answered_with_a_deeply_nested_body_is_no_success() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, ClientOptions { retry: once(), ..live.options() });
        live.fault("get_balance", 1, Fault::Deep { after: false });
        let ticket = probe.client.start(GetBalance {}, CallOptions::default());
        let error = probe.drive(ticket).expect_err("nobody can read that");
        assert_eq!((error.kind, error.effect, error.status), (Kind::Protocol, Effect::None, Some(200)), "{http:?}: {error}");
    }
}

#[test]
fn a_purchase_answered_with_a_deeply_nested_body_is_asked_about_again() {
    for http in BOTH {
        for after in [false, true] {
            let live = Live::new();
            let mut probe = Probe::new(http, ClientOptions { retry: eager(), ..live.options() });
            live.fault("create_session", 1, Fault::Deep { after });
            let ticket = probe.client.start(purchase(), CallOptions::default());
            let bought = probe.drive(ticket).unwrap_or_else(|error| panic!("{http:?}: {error}"));
            assert_eq!((live.charges(), bought.session_id.as_str()), (1, live.sessions()[0].session_id.as_str()), "{http:?}");
        }
    }
}

#[test]
fn no_more_of_a_body_is_read_than_the_client_takes() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, ClientOptions { retry: once(), max_body: 1000, ..live.options() });
        live.fault("get_balance", 1, Fault::Huge { silent: false, after: false });
        let ticket = probe.client.start(GetBalance {}, CallOptions::default());
        assert_eq!(probe.drive(ticket).expect_err("a fault").kind, Kind::Protocol);
        let [hopline::client::Responded::Response { body, truncated, .. }] = probe.host.answers.as_slice() else {
            panic!("{http:?}: {:?}", probe.host.answers);
        };
        assert_eq!((body.len(), *truncated), (1000, true), "{http:?}");
    }
}
