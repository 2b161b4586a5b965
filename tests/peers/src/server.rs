//! Starts the odd server, the proxies and the control address.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use hopline_sandbox::Authority;
use serde::Serialize;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::behaviour::{BEHAVIOURS, Behaviour};
use crate::control::{self, Login, Records, Relayed};
use crate::hole::Hole;
use crate::proxy::{Manner, PROXIES, Proxy};
use crate::{odd, proxy_http, proxy_socks5};

/// The behaviours to serve.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The service that the odd server relays to, such as `http://127.0.0.1:8080`; without it there is no odd server.
    pub service: Option<String>,
    /// The folder for the certificate of an authority; without it, nothing is served over TLS.
    pub tls: Option<PathBuf>,
}

/// Where everything is: the line that the program prints.
#[derive(Clone, Debug, Serialize)]
pub struct Ready {
    /// The odd server; a behaviour follows, and then the path at the service.
    pub odd_url: Option<String>,
    /// Addresses with the port of the odd server at which connections hang.
    pub black_holes: Vec<SocketAddr>,
    /// The ways in which the odd server answers.
    pub behaviours: &'static [Behaviour],
    /// The HTTP proxies by name, as host and port.
    pub http: BTreeMap<&'static str, String>,
    /// The same over TLS, for `127.0.0.1` and `localhost`.
    pub https: BTreeMap<&'static str, String>,
    /// The SOCKS5 proxies by name.
    pub socks5: BTreeMap<&'static str, String>,
    /// The file with the certificate of the authority to trust.
    pub tls_ca: Option<String>,
    /// Where a test reads what was recorded.
    pub control_url: String,
}

/// An odd server and proxies that are being served; they stop when dropped.
#[derive(Debug)]
pub struct Running {
    ready: Ready,
    records: Arc<Records>,
    _tasks: JoinSet<()>,
    _holes: Vec<Hole>,
    /// Ports that are taken and at which nobody listens.
    _dead: Vec<TcpSocket>,
}

impl Running {
    /// Where everything is.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// The requests that the odd server has got.
    pub fn relayed(&self) -> Vec<Relayed> {
        self.records.lock().relayed.clone()
    }

    /// The requests that the proxies have got.
    pub fn logins(&self) -> Vec<Login> {
        self.records.lock().logins.clone()
    }
}

/// Serves on loopback until the returned value is dropped.
pub async fn serve(options: Options) -> io::Result<Running> {
    let records = Arc::new(Records::default());
    let mut tasks = JoinSet::new();
    let (mut odd_url, mut holes) = (None, Vec::new());
    if let Some(service) = options.service {
        let listener = TcpListener::bind(free_port()).await?;
        let address = listener.local_addr()?;
        for ip in [IpAddr::V6(Ipv6Addr::LOCALHOST), IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))] {
            holes.extend(Hole::open(SocketAddr::new(ip, address.port())).await);
        }
        odd_url = Some(format!("http://{address}"));
        let service: Arc<str> = service.trim_start_matches("http://").trim_end_matches('/').into();
        let records = records.clone();
        let mut number = 0;
        tasks.spawn(each(listener, move |stream| {
            number += 1;
            odd::serve(records.clone(), service.clone(), number, stream)
        }));
    }

    let signer = options.tls.as_ref().map(|_| Authority::new("the proxies").map(Arc::new)).transpose()?;
    let tls_ca = options.tls.as_ref().zip(signer.as_ref()).map(|(folder, signer)| signer.write(folder)).transpose()?;
    let acceptor = signer.as_ref().map(|signer| signer.acceptor(&["127.0.0.1", "localhost"], 2100)).transpose()?;
    let (mut http, mut https, mut socks5, mut dead) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new(), Vec::new());
    for (name, over_http, over_socks5) in PROXIES.iter().copied() {
        let mut start = |kind: &str, manner: Manner, protocol: Protocol| -> io::Result<String> {
            let socket = TcpSocket::new_v4()?;
            socket.bind(free_port())?;
            let address = socket.local_addr()?.to_string();
            if manner == Manner::Dead {
                dead.push(socket);
                return Ok(address);
            }
            let proxy = Proxy { name: format!("{kind}/{name}"), manner, records: records.clone(), signer: signer.clone() };
            tasks.spawn(proxies(socket.listen(1024)?, Arc::new(proxy), protocol));
            Ok(address)
        };
        if let Some(manner) = over_http {
            http.insert(name, start("http", manner, Protocol::Http)?);
            if let Some(acceptor) = &acceptor {
                https.insert(name, start("https", manner, Protocol::Https(acceptor.clone()))?);
            }
        }
        if let Some(manner) = over_socks5 {
            socks5.insert(name, start("socks5", manner, Protocol::Socks5)?);
        }
    }

    let listener = TcpListener::bind(free_port()).await?;
    let control_url = format!("http://{}/", listener.local_addr()?);
    let recorded = records.clone();
    tasks.spawn(each(listener, move |stream| control::serve(recorded.clone(), stream)));
    let black_holes = holes.iter().map(|hole| hole.address).collect();
    let ready = Ready { odd_url, black_holes, behaviours: BEHAVIOURS, http, https, socks5, tls_ca, control_url };
    Ok(Running { ready, records, _tasks: tasks, _holes: holes, _dead: dead })
}

#[derive(Clone)]
enum Protocol {
    Http,
    Https(TlsAcceptor),
    Socks5,
}

async fn proxies(listener: TcpListener, proxy: Arc<Proxy>, protocol: Protocol) {
    each(listener, move |stream| {
        let (proxy, protocol) = (proxy.clone(), protocol.clone());
        async move {
            if proxy.manner == Manner::Hangs {
                // Until the client has had enough; the bytes are read so that it can go on sending.
                let (mut stream, mut nowhere) = (stream, tokio::io::sink());
                let _ = tokio::io::copy(&mut stream, &mut nowhere).await;
                return;
            }
            match protocol {
                Protocol::Http => proxy_http::serve(&proxy, stream).await,
                Protocol::Socks5 => proxy_socks5::serve(&proxy, stream).await,
                Protocol::Https(acceptor) => {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        proxy_http::serve(&proxy, stream).await;
                    }
                }
            }
        }
    })
    .await;
}

/// Runs a handler for each connection; dropping the loop drops the connections with it.
async fn each<F: Future<Output = ()> + Send + 'static>(listener: TcpListener, mut handler: impl FnMut(TcpStream) -> F) {
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(handler(stream));
            }
            // Out of descriptors, most likely: a short rest lets some of them close.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
        }
    }
}

fn free_port() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0)
}
