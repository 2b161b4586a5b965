//! The recording SOCKS5 proxy (RFC 1928, RFC 1929). It is written by hand, since a login need not be UTF-8.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::connection::Connection;
use crate::control::Login;
use crate::proxy::{Manner, Proxy, Target, hex};

const VERSION: u8 = 5;
const WITH_LOGIN: u8 = 2;
const NO_METHOD: u8 = 0xff;
const HOST_UNREACHABLE: u8 = 4;
const COMMAND_NOT_SUPPORTED: u8 = 7;

/// Serves one client; how its connection ended is of no interest.
pub(crate) async fn serve(proxy: &Proxy, stream: TcpStream) {
    let _ = converse(proxy, Connection::new(stream)).await;
}

async fn converse(proxy: &Proxy, mut client: Connection<TcpStream>) -> io::Result<()> {
    let mut login = Login { proxy: proxy.name.clone(), method: "SOCKS5".to_owned(), ..Login::default() };
    let methods = {
        let start = client.take(2).await?;
        client.take(start[1].into()).await?
    };
    if !methods.contains(&WITH_LOGIN) {
        proxy.records.login(login);
        return client.stream.write_all(&[VERSION, NO_METHOD]).await;
    }
    client.stream.write_all(&[VERSION, WITH_LOGIN]).await?;
    client.take(1).await?;
    login.username = Some(hex(&text(&mut client).await?));
    login.password = Some(hex(&text(&mut client).await?));
    if proxy.manner == Manner::RefusesLogin {
        proxy.records.login(login);
        client.stream.write_all(&[1, 1]).await?;
        return client.stream.shutdown().await;
    }
    client.stream.write_all(&[1, 0]).await?;
    let request = client.take(4).await;
    let target = match &request {
        Ok(request) => address(&mut client, request[3]).await,
        Err(error) => Err(error.kind().into()),
    };
    // A login whose request never came is recorded, too.
    login.target = target.as_ref().ok().cloned();
    proxy.records.login(login);
    let (request, target) = (request?, target?);
    let found = match proxy.manner {
        Manner::Closes => return client.stream.shutdown().await,
        Manner::Reply(reply) => Err(reply),
        _ if request[1] != 1 => Err(COMMAND_NOT_SUPPORTED),
        _ => Target::find(&target).await.map_err(|_| HOST_UNREACHABLE),
    };
    let reply = found.as_ref().err().copied().unwrap_or(0);
    client.stream.write_all(&[VERSION, reply, 0, 1, 127, 0, 0, 1, 0, 80]).await?;
    match found {
        Ok(target) => proxy.tunnel(client, target).await,
        Err(_) => client.stream.shutdown().await,
    }
}

/// Bytes after their number.
async fn text(client: &mut Connection<TcpStream>) -> io::Result<Vec<u8>> {
    let length = client.take(1).await?[0];
    client.take(length.into()).await
}

async fn address(client: &mut Connection<TcpStream>, kind: u8) -> io::Result<String> {
    let host = match kind {
        1 => Ipv4Addr::from(bytes(&client.take(4).await?)?).to_string(),
        3 => String::from_utf8_lossy(&text(client).await?).into_owned(),
        4 => format!("[{}]", Ipv6Addr::from(bytes(&client.take(16).await?)?)),
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    Ok(format!("{host}:{}", u16::from_be_bytes(bytes(&client.take(2).await?)?)))
}

fn bytes<const N: usize>(bytes: &[u8]) -> io::Result<[u8; N]> {
    bytes.try_into().map_err(|_| io::ErrorKind::InvalidData.into())
}
