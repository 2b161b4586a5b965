//! The recording proxies: what they do with a client, and how they reach a target.

use std::io;
use std::net::IpAddr;

use http::uri::Authority;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;

use crate::connection::Connection;
use crate::control::Records;
use crate::site;
use hopline_sandbox::Authority as Signer;

/// The behaviour of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Takes any login and reaches the target.
    Right,
    /// Takes no login: 407, or RFC 1929's failure.
    RefusesLogin,
    /// Answers with that status.
    Status(u16),
    /// Answers with that reply of SOCKS5.
    Reply(u8),
    /// Closes the connection instead of answering a request.
    Closes,
    /// Takes connections and says nothing.
    Hangs,
    /// The proxy's port has no listener.
    Dead,
}

/// The proxies by their names: what they do over HTTP (and HTTPS), and what over SOCKS5; some are of one kind only.
pub const PROXIES: &[(&str, Option<Manner>, Option<Manner>)] = &[
    ("right", Some(Manner::Right), Some(Manner::Right)),
    ("refuses_login", Some(Manner::RefusesLogin), Some(Manner::RefusesLogin)),
    ("forbids", Some(Manner::Status(403)), Some(Manner::Reply(2))),
    ("bad_request", Some(Manner::Status(400)), None),
    ("bad_gateway", Some(Manner::Status(502)), Some(Manner::Reply(1))),
    ("unreachable", None, Some(Manner::Reply(4))),
    ("closes", Some(Manner::Closes), Some(Manner::Closes)),
    ("hangs", Some(Manner::Hangs), Some(Manner::Hangs)),
    ("dead", Some(Manner::Dead), Some(Manner::Dead)),
];

/// A proxy that listens.
pub(crate) struct Proxy {
    /// `http/right`, as in records.
    pub(crate) name: String,
    pub(crate) manner: Manner,
    pub(crate) records: std::sync::Arc<Records>,
    /// Signs the certificates of targets that are not there.
    pub(crate) signer: Option<std::sync::Arc<Signer>>,
}

/// Where a client wants to go.
pub(crate) enum Target {
    /// Somewhere on loopback, which is really reached.
    Near(TcpStream),
    /// Elsewhere: a site of the proxy's own answers for it.
    Far(String),
}

impl Target {
    /// Finds a target; only loopback is really connected to.
    pub(crate) async fn find(target: &str) -> io::Result<Self> {
        let invalid = |_| io::Error::from(io::ErrorKind::InvalidInput);
        let authority: Authority = target.parse().map_err(invalid)?;
        let host = authority.host().trim_matches(['[', ']']);
        let is_near = host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        if !is_near {
            return Ok(Self::Far(host.to_owned()));
        }
        TcpStream::connect((host, authority.port_u16().unwrap_or(80))).await.map(Self::Near)
    }
}

impl Proxy {
    /// Carries bytes between the client and the target, once the client knows that it is connected.
    pub(crate) async fn tunnel<S>(&self, mut client: Connection<S>, target: Target) -> io::Result<()>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin,
    {
        const TLS_HANDSHAKE: u8 = 22;
        match target {
            Target::Near(mut server) => copy_bidirectional(&mut client, &mut server).await.map(|_| ()),
            Target::Far(host) => match (client.peek().await?, &self.signer) {
                (Some(TLS_HANDSHAKE), Some(signer)) => {
                    let stream = signer.acceptor(&[&host], 2100)?.accept(client).await?;
                    site::serve(Connection::new(stream), &host).await
                }
                _ => site::serve(client, &host).await,
            },
        }
    }
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
