//! A site that stands for every target which is not on loopback: `/429` is answered 429, and all else 200.

use std::io;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};

use crate::connection::{Connection, Head};
use crate::relay::Answer;

/// Answers requests until the client leaves.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut client: Connection<S>, host: &str) -> io::Result<()> {
    while let Some(head) = client.head().await? {
        client.body(&head).await?;
        client.stream.write_all(&answer(&head, host).plain()).await?;
        client.stream.flush().await?;
    }
    client.stream.shutdown().await
}

/// The answer to a request for a path or a URL.
pub(crate) fn answer(head: &Head, host: &str) -> Answer {
    let last = head.target.split('?').next().and_then(|path| path.rsplit('/').next());
    let status = last.and_then(|name| name.parse().ok()).filter(|status| (200..600).contains(status)).unwrap_or(200);
    let headers = vec![("content-type".to_owned(), b"text/plain".to_vec())];
    Answer { status, headers, body: format!("{} {host}\n", head.method).into_bytes() }
}
