//! The odd server in front of a sandbox, and the proxies, over raw sockets: what other people's clients are held against is as it says.

mod odd;
mod program;
mod proxies;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

use hopline_peers::{Options, Running, serve};
use hopline_sandbox::Config;
use tokio::runtime::Runtime;

/// Long enough for any machine: what comes, comes much sooner, and a test waits so long only where it fails.
const PATIENCE: Duration = Duration::from_secs(60);

struct Peers {
    sandbox: hopline_sandbox::Running,
    running: Running,
    runtime: Runtime,
}

impl Peers {
    fn new() -> Self {
        Self::with(None)
    }

    fn with(tls: Option<PathBuf>) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let config = Config { provisioning_ms: 0..=0, ..Config::new(7) };
        let sandbox = runtime.block_on(hopline_sandbox::serve(hopline_sandbox::Options::new(config))).expect("a sandbox");
        let service = sandbox.ready().agent_url.replace("/v1", "");
        let running = runtime.block_on(serve(Options { service: Some(service), tls })).expect("the peers");
        Peers { sandbox, running, runtime }
    }

    fn odd(&self) -> Wire {
        let url = self.running.ready().odd_url.clone().expect("an odd server");
        Wire::open(url.trim_start_matches("http://"))
    }

    /// A purchase as bytes, under a folder of the odd server.
    fn purchase(&self, folder: &str, key: &str) -> String {
        let body = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":1}"#;
        format!(
            "POST /{folder}/v1/sessions HTTP/1.1\r\nHost: odd\r\nX-API-Key: {}\r\nIdempotency-Key: {key}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.sandbox.ready().api_key,
            body.len()
        )
    }

    fn charges(&self) -> usize {
        self.sandbox.with_service(|service, _| service.charges().len())
    }
}

/// A raw connection.
struct Wire(TcpStream);

impl Wire {
    fn open(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("somebody listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Wire(stream)
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).expect("it is sent");
    }

    /// Reads up to some bytes and with them.
    fn until(&mut self, end: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(end) {
            let mut byte = [0];
            assert_eq!(self.0.read(&mut byte).expect("it goes on"), 1, "it ended after {}", String::from_utf8_lossy(&bytes));
            bytes.push(byte[0]);
        }
        bytes
    }

    fn take(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).expect("it goes on");
        bytes
    }

    /// Reads to the end.
    fn rest(&mut self) -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).map(|_| bytes)
    }

    /// One answer that says how long it is.
    fn answer(&mut self) -> (String, String) {
        let head = String::from_utf8_lossy(&self.until(b"\r\n\r\n")).into_owned();
        let length = head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        (head, String::from_utf8_lossy(&self.take(length.unwrap_or(0))).into_owned())
    }
}

fn local(address: &str) -> SocketAddr {
    address.parse().expect("an address")
}
