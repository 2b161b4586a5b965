use std::io::ErrorKind;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use base64::prelude::{BASE64_STANDARD, Engine};
use hopline_peers::PROXIES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{Peers, Wire, local};

/// Bytes of each length that matters, and of each kind.
fn logins() -> Vec<(Vec<u8>, Vec<u8>)> {
    let long = |length| vec![b'a'; length];
    vec![
        (b"me".to_vec(), b"pass".to_vec()),
        ("søren".into(), "Ędward:Ącki1".into()),
        (b"caf\xe9".to_vec(), b"\xff\x00\x01".to_vec()),
        (long(127), long(128)),
        (long(255), long(255)),
    ]
}

fn hex(bytes: &[u8]) -> Option<String> {
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn basic(username: &[u8], password: &[u8]) -> String {
    format!("Proxy-Authorization: Basic {}", BASE64_STANDARD.encode([username, b":", password].concat()))
}

/// A login and a request of SOCKS5, as far as the proxy goes along; its last answer.
fn socks5(wire: &mut Wire, username: &[u8], password: &[u8], host: &str) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&[bytes.len() as u8], bytes].concat();
    wire.send([5, 2, 0, 2]);
    assert_eq!(wire.take(2), [5, 2]);
    wire.send([vec![1], sized(username), sized(password)].concat());
    let login = wire.take(2);
    if login != [1, 0] {
        return login;
    }
    wire.send([vec![5, 1, 0, 3], sized(host.as_bytes()), vec![0, 80]].concat());
    let mut reply = [0; 10];
    match std::io::Read::read_exact(&mut wire.0, &mut reply) {
        Ok(()) => reply[..2].to_vec(),
        Err(_) => Vec::new(),
    }
}

#[test]
fn the_right_proxies_take_any_login_and_keep_its_bytes() {
    let peers = Peers::new();
    let ready = peers.running.ready();
    for (username, password) in logins() {
        let before = peers.running.logins().len();
        let mut wire = Wire::open(&ready.http["right"]);
        wire.send(format!("CONNECT shop.example:80 HTTP/1.1\r\n{}\r\n\r\n", basic(&username, &password)));
        assert!(wire.until(b"\r\n\r\n").starts_with(b"HTTP/1.1 200"));
        wire.send("GET /429 HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        assert_eq!(wire.answer().0.lines().next(), Some("HTTP/1.1 429 Too Many Requests"));

        let mut wire = Wire::open(&ready.http["right"]);
        wire.send(format!("GET http://shop.example/ HTTP/1.1\r\n{}\r\n\r\n", basic(&username, &password)));
        assert_eq!(wire.answer().1, "GET shop.example\n");

        let mut wire = Wire::open(&ready.socks5["right"]);
        assert_eq!(socks5(&mut wire, &username, &password, "shop.example"), [5, 0]);
        wire.send("GET / HTTP/1.1\r\nHost: shop.example\r\n\r\n");
        assert_eq!(wire.answer().1, "GET shop.example\n");

        let new: Vec<_> = peers.running.logins().drain(before..).collect();
        let names: Vec<_> =
            new.iter().map(|login| (login.proxy.as_str(), login.method.as_str(), login.target.as_deref().unwrap())).collect();
        let target = "shop.example:80";
        assert_eq!(
            names,
            [("http/right", "CONNECT", target), ("http/right", "GET", "http://shop.example/"), ("socks5/right", "SOCKS5", target)]
        );
        // In `Basic` a user name has no colon, and a login has no end but that of the header.
        assert!(new.iter().all(|login| (&login.username, &login.password) == (&hex(&username), &hex(&password))), "{new:?}");
    }
}

#[test]
fn a_request_without_a_login_is_refused_and_recorded() {
    let peers = Peers::new();
    let mut wire = Wire::open(&peers.running.ready().http["right"]);
    wire.send("CONNECT shop.example:80 HTTP/1.1\r\n\r\n");
    assert!(wire.answer().0.starts_with("HTTP/1.1 407 "));
    // The connection goes on, as clients need that answer a challenge.
    wire.send(format!("CONNECT shop.example:80 HTTP/1.1\r\n{}\r\n\r\n", basic(b"me", b"pass")));
    assert!(wire.until(b"\r\n\r\n").starts_with(b"HTTP/1.1 200"));
    let mut wire = Wire::open(&peers.running.ready().socks5["right"]);
    wire.send([5, 1, 0]);
    assert_eq!(wire.rest().expect("an end"), [5, 0xff]);
    let users: Vec<_> = peers.running.logins().into_iter().map(|login| login.username).collect();
    assert_eq!(users, [None, hex(b"me"), None]);
}

#[test]
fn loopback_is_really_reached() {
    let peers = Peers::new();
    let site = peers.sandbox.ready().target_url.replace("http://", "").replace('/', "");
    let mut wire = Wire::open(&peers.running.ready().http["right"]);
    wire.send(format!("CONNECT {site} HTTP/1.1\r\n{}\r\n\r\n", basic(b"me", b"pass")));
    wire.until(b"\r\n\r\n");
    wire.send("GET / HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(wire.answer().1.contains("127.0.0.1"));
    let mut wire = Wire::open(&peers.running.ready().http["right"]);
    wire.send(format!("GET http://{site}/ HTTP/1.1\r\n{}\r\n\r\n", basic(b"me", b"pass")));
    assert!(wire.answer().1.contains("127.0.0.1"));
}

#[test]
fn each_proxy_that_fails_fails_in_its_way() {
    let peers = Peers::new();
    let ready = peers.running.ready();
    for (name, expected) in [
        ("refuses_login", Some("407")),
        ("forbids", Some("403")),
        ("bad_request", Some("400")),
        ("bad_gateway", Some("502")),
        ("closes", None),
    ] {
        let mut wire = Wire::open(&ready.http[name]);
        wire.send(format!("CONNECT shop.example:80 HTTP/1.1\r\nConnection: close\r\n{}\r\n\r\n", basic(b"me", b"pass")));
        let said = String::from_utf8(wire.rest().expect("an end")).expect("text");
        assert_eq!(said.split(' ').nth(1), expected, "{name}");
    }
    for (name, expected) in
        [("refuses_login", &[1, 1][..]), ("forbids", &[5, 2]), ("bad_gateway", &[5, 1]), ("unreachable", &[5, 4]), ("closes", &[])]
    {
        let mut wire = Wire::open(&ready.socks5[name]);
        assert_eq!(socks5(&mut wire, b"me", b"pass", "shop.example"), expected, "{name}");
    }
    for proxies in [&ready.http, &ready.socks5] {
        let error = TcpStream::connect(&proxies["dead"]).expect_err("nobody listens");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
        let mut wire = Wire::open(&proxies["hangs"]);
        wire.send([5, 2, 0, 2]);
        wire.0.set_read_timeout(Some(Duration::from_millis(100))).expect("a socket");
        assert!(matches!(wire.rest().expect_err("it says nothing").kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut));
    }
    assert_eq!(
        ready.http.len() + ready.socks5.len(),
        PROXIES.iter().map(|(_, http, socks5)| usize::from(http.is_some()) + usize::from(socks5.is_some())).sum::<usize>()
    );
}

#[test]
fn the_same_over_tls_and_targets_over_tls_behind_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let peers = Peers::with(Some(folder.path().to_owned()));
    let ready = peers.running.ready();
    let mut roots = RootCertStore::empty();
    let ca = ready.tls_ca.as_deref().expect("an authority");
    roots.add(CertificateDer::from_pem_file(ca).expect("a certificate")).expect("a root");
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    peers.runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(local(&ready.https["right"])).await.expect("somebody listens");
        let mut proxy = connector.connect(ServerName::try_from("127.0.0.1").expect("a name"), stream).await.expect("a right certificate");
        proxy.write_all(format!("CONNECT shop.example:443 HTTP/1.1\r\n{}\r\n\r\n", basic(b"me", b"pass")).as_bytes()).await.expect("sent");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(proxy.read_u8().await.expect("it goes on"));
        }
        let mut site = connector.connect(ServerName::try_from("shop.example").expect("a name"), proxy).await.expect("a right certificate");
        site.write_all(b"GET /503 HTTP/1.1\r\nHost: shop.example\r\n\r\n").await.expect("sent");
        let mut line = [0; 12];
        site.read_exact(&mut line).await.expect("it goes on");
        assert_eq!(&line, b"HTTP/1.1 503");
    });
    assert_eq!(peers.running.logins()[0].proxy, "https/right");
}
