//! The recording HTTP proxy.

use std::io;

use base64::prelude::{BASE64_STANDARD, Engine};
use http::Uri;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::connection::{Connection, Head};
use crate::control::Login;
use crate::proxy::{Manner, Proxy, Target, hex};
use crate::relay::{Answer, fetch};
use crate::site;

/// Serves one client; how its connection ended is of no interest.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Send + Unpin>(proxy: &Proxy, stream: S) {
    let _ = converse(proxy, Connection::new(stream)).await;
}

async fn converse<S: AsyncRead + AsyncWrite + Send + Unpin>(proxy: &Proxy, mut client: Connection<S>) -> io::Result<()> {
    while let Some(head) = client.head().await? {
        let body = client.body(&head).await?;
        let login = login(&head);
        let has_login = login.username.is_some();
        proxy.records.login(Login { proxy: proxy.name.clone(), method: head.method.clone(), target: Some(head.target.clone()), ..login });
        let answer = match proxy.manner {
            Manner::Closes => return client.stream.shutdown().await,
            Manner::Status(status) => page(status),
            Manner::Right if has_login && head.method == "CONNECT" => match Target::find(&head.target).await {
                Ok(target) => {
                    client.stream.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
                    client.stream.flush().await?;
                    return proxy.tunnel(client, target).await;
                }
                Err(_) => page(502),
            },
            Manner::Right if has_login => forward(&head, body).await.unwrap_or_else(|_| page(502)),
            _ => {
                let mut refusal = page(407);
                refusal.headers.push(("proxy-authenticate".to_owned(), b"Basic realm=\"hopline-peers\"".to_vec()));
                refusal
            }
        };
        client.stream.write_all(&answer.plain()).await?;
        client.stream.flush().await?;
        if head.closes() {
            break;
        }
    }
    client.stream.shutdown().await
}

/// A plain request, which names its whole URL.
async fn forward(head: &Head, body: Vec<u8>) -> Result<Answer, Box<dyn std::error::Error + Send + Sync>> {
    let uri: Uri = head.target.parse()?;
    let authority = uri.authority().ok_or("the request names no host")?.as_str();
    match Target::find(authority).await? {
        Target::Near(_) => {
            let path = uri.path_and_query().map_or("/", |path| path.as_str());
            let authority = if uri.port().is_some() { authority.to_owned() } else { format!("{authority}:80") };
            fetch(&authority, path, head, body).await
        }
        Target::Far(host) => Ok(site::answer(head, &host)),
    }
}

fn login(head: &Head) -> Login {
    let Some(header) = head.header("proxy-authorization") else { return Login::default() };
    let basic = || {
        let (scheme, encoded) = std::str::from_utf8(header).ok()?.split_once(' ')?;
        let pair = BASE64_STANDARD.decode(encoded.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
        let colon = pair.iter().position(|byte| *byte == b':')?;
        Some((hex(&pair[..colon]), hex(&pair[colon + 1..])))
    };
    match basic() {
        Some((username, password)) => Login { username: Some(username), password: Some(password), ..Login::default() },
        None => Login { other: Some(hex(header)), ..Login::default() },
    }
}

fn page(status: u16) -> Answer {
    let headers = vec![("content-type".to_owned(), b"text/html".to_vec())];
    Answer { status, headers, body: format!("<h1>{status}, says the proxy</h1>\n").into_bytes() }
}
