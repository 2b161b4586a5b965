//! A sandbox on sockets, and the plainest client there is: bytes out, bytes in.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use hopline_sandbox::{Config, Options, Ready, Running, serve};
use serde_json::Value;
use tokio::runtime::Runtime;

pub(crate) struct Live {
    pub(crate) running: Running,
    pub(crate) runtime: Runtime,
}

/// Everything that came before the connection closed.
#[derive(Debug)]
pub(crate) struct Raw {
    pub(crate) bytes: Vec<u8>,
}

impl Raw {
    pub(crate) fn status(&self) -> u16 {
        let line = String::from_utf8_lossy(self.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default());
        line.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    pub(crate) fn head(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.split()]).to_ascii_lowercase()
    }

    pub(crate) fn body(&self) -> &[u8] {
        &self.bytes[(self.split() + 4).min(self.bytes.len())..]
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.body()).unwrap_or_else(|error| panic!("{error}: {}", self.head()))
    }

    pub(crate) fn content_length(&self) -> usize {
        let head = self.head();
        let value = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        value.and_then(|value| value.parse().ok()).expect("a content length")
    }

    fn split(&self) -> usize {
        self.bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap_or(self.bytes.len())
    }
}

impl Live {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// A sandbox whose sessions are active at once, unless the settings say otherwise.
    pub(crate) fn with(set: impl FnOnce(&mut Config)) -> Self {
        let mut config = Config { provisioning_ms: 0..=0, ..Config::new(7) };
        set(&mut config);
        Self::serving(Options::new(config))
    }

    pub(crate) fn serving(options: Options) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let running = runtime.block_on(serve(options)).expect("a sandbox");
        Self { running, runtime }
    }

    pub(crate) fn ready(&self) -> &Ready {
        self.running.ready()
    }

    pub(crate) fn api(&self) -> String {
        self.ready().agent_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned()
    }

    /// A request to the agent API with the sandbox's key.
    pub(crate) fn call(&self, method: &str, path: &str, key: Option<&str>, body: &str) -> Raw {
        let mut headers = format!("X-API-Key: {}\r\n", self.ready().api_key);
        if let Some(key) = key {
            headers += &format!("Idempotency-Key: {key}\r\n");
        }
        send(&self.api(), method, &format!("/v1{path}"), &headers, body)
    }

    pub(crate) fn control(&self, method: &str, path: &str, body: &str) -> Raw {
        send(&self.api(), method, &format!("/control{path}"), "", body)
    }

    pub(crate) fn fault(&self, rule: &str) {
        let answer = self.control("POST", "/faults", rule);
        assert_eq!(answer.status(), 200, "{}", answer.json());
    }

    pub(crate) fn state(&self) -> Value {
        self.control("GET", "/state", "").json()
    }

    pub(crate) fn charges(&self) -> usize {
        self.state()["charges"].as_array().expect("charges").len()
    }

    /// Buys a session and gives its id and its proxy with credentials.
    pub(crate) fn buy(&self, protocol: &str) -> (String, Value) {
        let body = format!(r#"{{"session_type":"dynamic","product_no":"dynamic-world","protocol":"{protocol}"}}"#);
        let id = self.call("POST", "/sessions", None, &body).json()["data"]["session_id"].clone();
        let id = id.as_str().expect("a session").to_owned();
        let record = self.call("GET", &format!("/sessions/{id}?include_credentials=true"), None, "").json();
        (id, record["data"]["proxy"].clone())
    }
}

pub(crate) fn send(address: &str, method: &str, path: &str, headers: &str, body: &str) -> Raw {
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n");
    exchange(address, format!("{head}{headers}\r\n{body}").as_bytes())
}

/// Sends bytes on a new connection and reads until it closes.
pub(crate) fn exchange(address: &str, bytes: &[u8]) -> Raw {
    let mut stream = connect(address);
    stream.write_all(bytes).expect("a request sent");
    read_all(stream)
}

pub(crate) fn connect(address: &str) -> TcpStream {
    let address = address.to_socket_addrs().expect("an address").next().expect("an address");
    let stream = TcpStream::connect_timeout(&address, Duration::from_secs(60)).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a timeout");
    stream
}

/// Reads until the connection closes, orderly or by a reset.
pub(crate) fn read_all(mut stream: TcpStream) -> Raw {
    let mut bytes = Vec::new();
    if let Err(error) = stream.read_to_end(&mut bytes) {
        let closed = error.kind() == ErrorKind::ConnectionReset;
        assert!(closed, "the connection neither answered nor closed: {error}");
    }
    Raw { bytes }
}
