//! The server: the service on a socket, its control, its proxies and a site to reach through them.

mod accept;
mod connection_fault;
mod control;
mod control_answer;
mod faults;
mod gateway;
mod http;
mod operator;
mod proxy;
mod proxy_http;
mod proxy_socks5;
mod reseller;
mod shared;
mod target;
mod tls;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub use connection_fault::ConnectionFault;
pub use gateway::nginx;
pub use tls::{Authority, Tls};

use crate::service::{BACKEND_PATH, BASE_PATH, Config, FaultRule, Service};
use gateway::Gateway;
use shared::Shared;

/// How to serve a sandbox.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the API listens; the proxies and the target site listen on other ports of the same address.
    pub listen: SocketAddr,
    /// The account. Its proxy host and ports are set to the real ones.
    pub config: Config,
    /// True if nginx stands in front of the sandbox, too, as a gateway that fails.
    pub gateway: bool,
    /// The folder for what clients need to trust the sandbox's certificates; without it, nothing is served over TLS.
    pub tls: Option<PathBuf>,
}

impl Options {
    /// A sandbox on free ports of 127.0.0.1.
    pub fn new(config: Config) -> Self {
        Self { listen: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), config, gateway: false, tls: None }
    }
}

/// Where everything is and how to get in: the line that the program prints when it is ready.
#[derive(Clone, Debug, Serialize)]
pub struct Ready {
    /// The base URL of the agent API.
    pub agent_url: String,
    /// The base URL of the reseller backend API.
    pub backend_url: String,
    /// The key of the agent API.
    pub api_key: String,
    /// The user name of the reseller backend API.
    pub username: String,
    /// The password of the reseller backend API.
    pub password: String,
    /// Host and port of the SOCKS5 proxy.
    pub socks5: String,
    /// Host and port of the HTTP proxy.
    pub http_proxy: String,
    /// The base URL of the control API.
    pub control_url: String,
    /// A small site that the proxies reach.
    pub target_url: String,
    /// The base URL of an agent API where every connection is reset before the request is read.
    pub reset_url: String,
    /// Where the gateway is, if there is one: the base URLs follow, each after the name of a road.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway_url: Option<String>,
    /// Where the API is over TLS, if it is.
    #[serde(flatten)]
    pub tls: Option<Tls>,
}

/// A sandbox that is being served; it stops when dropped.
#[derive(Debug)]
pub struct Running {
    ready: Ready,
    shared: Arc<Shared>,
    /// Dropped, it aborts the accept loops and with them their connections.
    _tasks: JoinSet<()>,
    _gateway: Option<Gateway>,
}

impl Running {
    /// Where everything is.
    pub fn ready(&self) -> &Ready {
        &self.ready
    }

    /// Looks at the service, or changes it, at the sandbox's present time.
    pub fn with_service<R>(&self, look: impl FnOnce(&mut Service, i64) -> R) -> R {
        self.shared.change(look)
    }

    /// Adds a fault of the connection; those of the service are added through [`Running::with_service`].
    pub fn inject(&self, rule: FaultRule<ConnectionFault>) {
        self.shared.lock().faults.push(rule);
    }

    /// Moves the sandbox's clock.
    pub fn advance(&self, ms: i64) {
        self.shared.advance(ms);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A tunnel outlives the connection that opened it.
        self.shared.close();
    }
}

/// Serves a sandbox on loopback until the returned value is dropped.
pub async fn serve(options: Options) -> io::Result<Running> {
    let Options { listen, mut config, gateway, tls } = options;
    // The exits are IPv4 addresses, so the site that they visit has to be on one, too.
    if !listen.ip().is_loopback() || listen.is_ipv6() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the sandbox listens on ipv4 loopback addresses only"));
    }
    let free_port = SocketAddr::new(listen.ip(), 0);
    let api = TcpListener::bind(listen).await.map_err(|error| unable_to_listen(listen, &error))?;
    let socks5 = TcpListener::bind(free_port).await?;
    let http_proxy = TcpListener::bind(free_port).await?;
    let site = TcpListener::bind(free_port).await?;
    let broken = TcpListener::bind(free_port).await?;
    let tls = match tls {
        Some(folder) => Some(Tls::make(free_port, &folder).await?),
        None => None,
    };
    let gateway = if gateway { Some(Gateway::start(api.local_addr()?).await?) } else { None };

    config.proxy_host = listen.ip().to_string();
    config.socks5_port = socks5.local_addr()?.port();
    config.http_proxy_port = http_proxy.local_addr()?.port();
    let api_url = format!("http://{}", api.local_addr()?);
    let api_key = config.api_key.clone();
    let service = Service::new(config);
    let login = service.logins().swap_remove(0);
    let ready = Ready {
        agent_url: format!("{api_url}{BASE_PATH}"),
        backend_url: format!("{api_url}{BACKEND_PATH}"),
        api_key,
        username: login.username,
        password: login.password,
        socks5: socks5.local_addr()?.to_string(),
        http_proxy: http_proxy.local_addr()?.to_string(),
        control_url: format!("{api_url}/control"),
        target_url: format!("http://{}/", site.local_addr()?),
        reset_url: format!("http://{}{BASE_PATH}", broken.local_addr()?),
        gateway_url: gateway.as_ref().map(|gateway| format!("http://{}", gateway.address)),
        tls: tls.as_ref().map(|(tls, ..)| tls.clone()),
    };

    let shared = Arc::new(Shared::new(service));
    let mut tasks = JoinSet::new();
    let router = http::router(shared.clone(), &ready);
    if let Some((_, apis, site)) = tls {
        apis.into_iter().for_each(|api| _ = tasks.spawn(api.serve(router.clone())));
        tasks.spawn(site.serve(http::target_router(shared.clone(), true)));
    }
    tasks.spawn(accept::each(api, move |stream, peer| accept::http(stream, peer, router.clone())));
    let router = http::target_router(shared.clone(), false);
    tasks.spawn(accept::each(site, move |stream, peer| accept::http(stream, peer, router.clone())));
    tasks.spawn(accept::each(broken, |stream, _| accept::reset(stream)));
    let state = shared.clone();
    tasks.spawn(accept::each(socks5, move |stream, _| proxy_socks5::serve(state.clone(), stream)));
    let state = shared.clone();
    tasks.spawn(accept::each(http_proxy, move |stream, _| proxy_http::serve(state.clone(), stream)));
    Ok(Running { ready, shared, _tasks: tasks, _gateway: gateway })
}

/// Says why nothing listens at an address, and what to do.
fn unable_to_listen(listen: SocketAddr, error: &io::Error) -> io::Error {
    let message = match error.kind() {
        io::ErrorKind::AddrInUse => format!("another program listens at {listen}; choose another port, or port 0 for a free one"),
        io::ErrorKind::PermissionDenied => {
            format!("this user may not listen at {listen}; choose a port above 1023, or port 0 for a free one")
        }
        _ => format!("the sandbox can't listen at {listen}: {error}"),
    };
    io::Error::new(error.kind(), message)
}
