//! The part that both proxies share after authentication: they leave from the session's exit, count bytes, and close in time.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split};
use tokio::net::{TcpSocket, TcpStream};

use super::shared::Shared;
use crate::service::Exit;

/// How often an open tunnel looks whether its session ran out by time alone.
const LOOK: Duration = Duration::from_millis(250);

/// Credentials that were good when they were checked, with the exit they opened.
#[derive(Clone, Debug)]
pub(super) struct Pass {
    username: String,
    password: String,
    exit: Exit,
}

/// Why a proxy does not connect.
#[derive(Debug)]
pub(super) enum Refused {
    /// The destination is not on loopback.
    NotLoopback,
    /// The target does not answer.
    Unreachable(io::Error),
}

impl Pass {
    /// Checks credentials against the service at this moment.
    pub(super) fn check(shared: &Shared, username: String, password: String) -> Option<Self> {
        let exit = shared.exit_of(&username, &password)?;
        Some(Self { username, password, exit })
    }

    fn is_open(&self, shared: &Shared) -> bool {
        shared.exit_of(&self.username, &self.password).as_ref() == Some(&self.exit)
    }

    /// Connects from the exit of the session.
    pub(super) async fn connect(&self, host: &str, port: u16) -> Result<TcpStream, Refused> {
        let ip = loopback(host).ok_or(Refused::NotLoopback)?;
        let connect = async {
            let socket = match ip {
                IpAddr::V4(_) => {
                    let socket = TcpSocket::new_v4()?;
                    socket.bind(SocketAddr::new(self.exit.ip.into(), 0))?;
                    socket
                }
                // IPv6 has a single loopback address: there is no other exit to leave from.
                IpAddr::V6(_) => TcpSocket::new_v6()?,
            };
            socket.connect(SocketAddr::new(ip, port)).await
        };
        connect.await.map_err(Refused::Unreachable)
    }

    /// Carries bytes both ways until one side fails, both are done, or the session no longer opens this exit.
    pub(super) async fn carry<C, S>(&self, shared: &Shared, client: C, server: S)
    where
        C: AsyncRead + AsyncWrite + Unpin,
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let (mut from_client, mut to_client) = split(client);
        let (mut from_server, mut to_server) = split(server);
        let both = async {
            tokio::try_join!(self.pump(shared, &mut from_client, &mut to_server), self.pump(shared, &mut from_server, &mut to_client),)
        };
        tokio::select! {
            _ = both => {}
            () = self.closed(shared) => {}
        }
    }

    async fn pump<R, W>(&self, shared: &Shared, from: &mut R, to: &mut W) -> io::Result<()>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let mut buffer = vec![0; 16 * 1024];
        loop {
            let read = from.read(&mut buffer).await?;
            if read == 0 {
                return to.shutdown().await;
            }
            shared.add_traffic(&self.exit.session_id, read as u64);
            to.write_all(&buffer[..read]).await?;
        }
    }

    async fn closed(&self, shared: &Shared) {
        let mut changes = shared.changes();
        while self.is_open(shared) {
            let _ = tokio::time::timeout(LOOK, changes.changed()).await;
        }
    }
}

/// True for `localhost` and the names below it.
pub(super) fn is_localhost(host: &str) -> bool {
    let name = host.trim_end_matches('.').to_ascii_lowercase();
    name == "localhost" || name.ends_with(".localhost")
}

/// The loopback address that a host stands for. Names are not looked up, since a question to a name server would already
/// be a packet to elsewhere: `localhost` and the names below it are known, and no others.
fn loopback(host: &str) -> Option<IpAddr> {
    if is_localhost(host) {
        return Some(Ipv4Addr::LOCALHOST.into());
    }
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    let ip = literal.parse::<IpAddr>().ok()?.to_canonical();
    ip.is_loopback().then_some(ip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_is_reached() {
        for host in ["127.0.0.1", "127.9.9.9", "localhost", "a.LOCALHOST.", "::ffff:127.0.0.1"] {
            assert!(loopback(host).is_some_and(|ip| ip.is_ipv4()), "{host}");
        }
        assert_eq!(loopback("[::1]"), "::1".parse().ok());
        for host in ["192.0.2.1", "0.0.0.0", "::", "::ffff:192.0.2.1", "2001:db8::1", "example.com", "localhost.example", ""] {
            assert_eq!(loopback(host), None, "{host}");
        }
    }
}
