//! Servers that are none: nobody at the port, no such host, a redirect, a connection that breaks when it is used again.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use hopline::client::{FailureKind, Sent};
use hopline::contract::Secret;
use hopline::contract::agent::{GetBalance, GetSession};
use hopline::{CallOptions, ClientOptions, Effect, Kind};

use crate::probe::{BOTH, Probe, once, purchase};

fn options(base_url: String) -> ClientOptions {
    ClientOptions { base_url, api_key: Some(Secret::new("key")), retry: once(), allow_http: true, ..ClientOptions::default() }
}

/// A server that counts requests and answers each with what `answer` gives for its number; `None` closes the connection.
fn server(answer: fn(usize) -> Option<&'static str>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let counted = counted.clone();
            thread::spawn(move || serve(stream, &counted, answer));
        }
    });
    (url, requests)
}

fn serve(stream: TcpStream, counted: &AtomicUsize, answer: fn(usize) -> Option<&'static str>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a stream")).lines();
    let mut stream = stream;
    // Only requests without a body come here, so an empty line is the end of one.
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() {
            let Some(text) = answer(counted.fetch_add(1, Ordering::SeqCst) + 1) else { return };
            if stream.write_all(text.as_bytes()).is_err() {
                return;
            }
        }
    }
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
        assert!(probe.client.saved().is_empty(), "{http:?}");
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
        let (url, requests) = server(|_| Some("HTTP/1.1 302 Found\r\nLocation: /v1/billing/elsewhere\r\nContent-Length: 0\r\n\r\n"));
        let mut probe = Probe::new(http, ClientOptions { retry: Default::default(), ..options(url) });
        let ticket = probe.client.start(GetBalance {}, CallOptions::default());
        let error = probe.drive(ticket).expect_err("a redirect");
        assert_eq!((error.kind, error.status), (Kind::Protocol, Some(302)), "{http:?}: {error}");
        assert_eq!(requests.load(Ordering::SeqCst), 1, "{http:?}");
    }
}

#[test]
fn a_connection_that_breaks_when_it_is_used_again_is_not_repeated_by_the_http_client() {
    for http in BOTH {
        let (url, requests) = server(|number| {
            (number == 1)
                .then_some("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n{\"success\":true,\"data\":{}}")
        });
        let mut probe = Probe::new(http, options(url));
        let first = probe.client.start(GetBalance {}, CallOptions::default());
        probe.drive(first).unwrap_or_else(|error| panic!("{http:?}: {error}"));
        let second = probe.client.start(GetBalance {}, CallOptions::default());
        let error = probe.drive(second).expect_err("the connection broke");
        assert_eq!(probe.host.last_failure(), Some((FailureKind::Closed, Sent::Maybe)), "{http:?}: {error}");
        assert_eq!((error.attempts, requests.load(Ordering::SeqCst)), (1, 2), "{http:?}");
    }
}

#[test]
fn a_success_that_does_not_fit_its_type_keeps_its_status_and_its_raw_data() {
    for http in BOTH {
        let (url, _) = server(|_| {
            Some("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 26\r\n\r\n{\"success\":true,\"data\":{}}")
        });
        let mut probe = Probe::new(http, options(url));
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
