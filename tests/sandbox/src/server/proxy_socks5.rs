//! The SOCKS5 proxy: the protocol is the crate's, the rules are here.

use std::io;
use std::sync::Arc;

use fast_socks5::server::{Socks5ServerProtocol, SocksServerError};
use fast_socks5::util::target_addr::TargetAddr;
use fast_socks5::{ReplyError, Socks5Command};
use tokio::net::TcpStream;

use super::proxy::{Pass, Refused};
use super::shared::Shared;

/// Serves one client; how a broken conversation broke is of no interest to anyone.
pub(super) async fn serve(shared: Arc<Shared>, client: TcpStream) {
    let _ = converse(&shared, client).await;
}

async fn converse(shared: &Shared, client: TcpStream) -> Result<(), SocksServerError> {
    let check = |username, password| Pass::check(shared, username, password);
    let (protocol, pass) = Socks5ServerProtocol::accept_password_auth(client, check).await?;
    let (protocol, command, target) = protocol.read_command().await?;
    let Some(pass) = pass.filter(|_| command == Socks5Command::TCPConnect) else {
        return protocol.reply_error(&ReplyError::CommandNotSupported).await;
    };
    let (host, port) = match target {
        TargetAddr::Ip(address) => (address.ip().to_string(), address.port()),
        TargetAddr::Domain(name, port) => (name, port),
    };
    let server = match pass.connect(&host, port).await {
        Ok(server) => server,
        Err(refused) => return protocol.reply_error(&reply(&refused)).await,
    };
    let Ok(from) = server.local_addr() else {
        return protocol.reply_error(&ReplyError::GeneralFailure).await;
    };
    let client = protocol.reply_success(from).await?;
    pass.carry(shared, client, server).await;
    Ok(())
}

fn reply(refused: &Refused) -> ReplyError {
    match refused {
        Refused::NotLoopback => ReplyError::ConnectionNotAllowed,
        Refused::Unreachable(error) if error.kind() == io::ErrorKind::ConnectionRefused => ReplyError::ConnectionRefused,
        Refused::Unreachable(_) => ReplyError::HostUnreachable,
    }
}
