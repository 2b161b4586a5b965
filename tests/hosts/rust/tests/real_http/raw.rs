//! The cases that only a real socket shows: no listener at the port, no such host, a redirect, a connection that breaks when it is used
//! again.

use std::collections::HashMap;
use std::net::TcpListener;
use std::process::Command;

use hopline::client::{FailureKind, Sent};
use hopline::contract::Secret;
use hopline::contract::agent::{GetBalance, GetSession};
use hopline::{CallOptions, ClientOptions, Effect, Kind};
use hopline_sandbox::ConnectionFault as Fault;

use crate::probe::{BOTH, Live, Probe, once, purchase};

fn options(base_url: String) -> ClientOptions {
    ClientOptions { base_url, api_key: Some(Secret::new("key")), retry: once(), allow_http: true, ..ClientOptions::default() }
}

#[test]
fn a_port_where_nobody_listens_was_never_sent_to() {
    for http in BOTH {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
        let mut probe = Probe::new(http, options(format!("http://{free}/v1")));
        let ticket = probe.client.start(purchase(), CallOptions::default());
        let error = probe.drive(ticket).expect_err("nobody listens");
        assert_eq!(probe.host.last_failure(), Some((FailureKind::Connect, Sent::Never)), "{http:?}");
        assert_eq!((error.kind, error.effect), (Kind::Unavailable, Effect::None), "{http:?}: {error}");
        assert!(probe.saved().is_empty(), "{http:?}");
    }
}

#[test]
fn a_host_that_is_not_known_was_never_sent_to() {
    for http in BOTH {
        let mut probe = Probe::new(http, options("http://no-such-host.invalid/v1".to_owned()));
        let ticket = probe.client.start(purchase(), CallOptions::default());
        let error = probe.drive(ticket).expect_err("no such host");
        assert_eq!(probe.host.last_failure(), Some((FailureKind::Dns, Sent::Never)), "{http:?}");
        assert_eq!((error.kind, error.effect), (Kind::Unavailable, Effect::None), "{http:?}: {error}");
    }
}

#[test]
fn a_redirect_is_no_answer_and_is_not_followed() {
    for http in BOTH {
        let live = Live::new();
        let headers = HashMap::from([("location".to_owned(), "/v1/account/info".to_owned())]);
        live.fault("get_balance", 1, Fault::Answer { status: 302, headers, body: String::new(), after: false });
        let mut probe = Probe::new(http, live.options());
        let ticket = probe.client.start(GetBalance {}, CallOptions::default());
        let error = probe.drive(ticket).expect_err("a redirect");
        assert_eq!((error.kind, error.status, error.attempts), (Kind::Protocol, Some(302), 1), "{http:?}: {error}");
    }
}

#[test]
fn a_connection_that_breaks_when_it_is_used_again_is_not_repeated_by_the_http_client() {
    for http in BOTH {
        let live = Live::new();
        let mut probe = Probe::new(http, ClientOptions { retry: once(), ..live.options() });
        let first = probe.client.start(GetBalance {}, CallOptions::default());
        probe.drive(first).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        // A second send would find a service that answers.
        live.fault("get_balance", 1, Fault::DropBefore {});
        let second = probe.client.start(GetBalance {}, CallOptions::default());
        let error = probe.drive(second).expect_err("the connection broke");
        assert_eq!(probe.host.last_failure(), Some((FailureKind::Closed, Sent::Maybe)), "{http:?}: {error}");
    }
}

#[test]
fn a_success_that_does_not_fit_its_type_keeps_its_status_and_its_raw_data() {
    for http in BOTH {
        let live = Live::new();
        let headers = HashMap::from([("content-type".to_owned(), "application/json".to_owned())]);
        let body = r#"{"success":true,"data":{}}"#.to_owned();
        live.fault("get_session", 1, Fault::Answer { status: 200, headers, body, after: false });
        let mut probe = Probe::new(http, live.options());
        let ticket = probe.client.start(GetSession { session_id: "s".into(), include_credentials: None }, CallOptions::default());
        let error = probe.drive(ticket).expect_err("a session has an id");
        assert_eq!((error.kind, error.status, error.attempts), (Kind::Decode, Some(200), 1), "{http:?}: {error}");
        assert_eq!(error.raw.as_ref().map(hopline::contract::Json::text), Some("{}"), "{http:?}");
    }
}

#[test]
fn a_proxy_of_the_environment_is_not_used() {
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port");
    // The environment belongs to the whole process, so another one tells: a session's life goes on past the dead proxy.
    let mut again = Command::new(std::env::current_exe().expect("this program"));
    again.args(["--exact", "life::a_session_is_bought_used_blocked_rotated_read_and_ended"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"] {
        again.env(name, format!("http://{free}"));
    }
    let output = again.env_remove("no_proxy").env_remove("NO_PROXY").output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
