//! A connection that HTTP/1.1 requests are read from byte by byte, since what is written to it is often no HTTP.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

const MAX_HEADERS: usize = 256;
const MAX_HEAD: usize = 1 << 20;

/// A stream, and the bytes that were read from it too early.
pub(crate) struct Connection<S> {
    pub(crate) stream: S,
    ahead: Vec<u8>,
}

/// The head of a request.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) method: String,
    /// The path and query, an absolute URL, or an authority.
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
}

impl Head {
    /// The first header of a name.
    pub(crate) fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.header(name).is_some_and(|value| String::from_utf8_lossy(value).to_ascii_lowercase().contains(word))
    }

    /// True if the client closes the connection after this request.
    pub(crate) fn closes(&self) -> bool {
        self.says("connection", "close")
    }

    /// True if the client waits for leave to send the body.
    pub(crate) fn expects_continue(&self) -> bool {
        self.says("expect", "100-continue")
    }
}

impl<S: AsyncRead + Unpin> Connection<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, ahead: Vec::new() }
    }

    /// Waits until a byte is there, which stays there; `None` at the end of the stream.
    pub(crate) async fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.ahead.is_empty() {
            self.more().await?;
        }
        Ok(self.ahead.first().copied())
    }

    /// Reads the head of the next request; nothing at the end of the stream.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            if let Some((head, length)) = parse(&self.ahead)? {
                self.ahead.drain(..length);
                return Ok(Some(head));
            }
            if self.ahead.len() > MAX_HEAD {
                return Err(invalid("the head of a request is too long"));
            }
            if self.more().await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Reads the body of the request whose head was read.
    pub(crate) async fn body(&mut self, head: &Head) -> io::Result<Vec<u8>> {
        if head.says("transfer-encoding", "chunked") {
            return self.chunks().await;
        }
        let length = head.header("content-length").map(|value| std::str::from_utf8(value).ok().and_then(|text| text.trim().parse().ok()));
        match length {
            None => Ok(Vec::new()),
            Some(Some(length)) => self.take(length).await,
            Some(None) => Err(invalid("the length of a request is no number")),
        }
    }

    /// Reads so many bytes.
    pub(crate) async fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < length {
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.ahead.drain(..length).collect())
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let length = usize::from_str_radix(digits, 16).map_err(|_| invalid("the length of a chunk is no number"))?;
            if length == 0 {
                break;
            }
            body.extend(self.take(length).await?);
            self.line().await?;
        }
        // The trailers end with an empty line.
        while !self.line().await?.is_empty() {}
        Ok(body)
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|two| two == b"\r\n") {
                let line = self.take(end + 2).await?;
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            if self.more().await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn more(&mut self) -> io::Result<usize> {
        self.stream.read_buf(&mut self.ahead).await
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<(Head, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => Ok(None),
        Ok(httparse::Status::Complete(length)) => {
            let headers = request.headers.iter().map(|header| (header.name.to_owned(), header.value.to_owned())).collect();
            let text = |part: Option<&str>| part.unwrap_or_default().to_owned();
            Ok(Some((Head { method: text(request.method), target: text(request.path), headers }, length)))
        }
        Err(error) => Err(invalid(error)),
    }
}

fn invalid(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// Also what was read too early is read.
impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ahead.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let length = self.ahead.len().min(buffer.remaining());
        buffer.put_slice(&self.ahead[..length]);
        self.ahead.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn requests_are_read_one_after_the_other_with_bodies_of_both_kinds() {
        let bytes = b"POST /a HTTP/1.1\r\nContent-Length: 3\r\n\r\nonePOST /b HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n\
            2;x=y\r\ntw\r\n1\r\no\r\n0\r\nTrailer: 1\r\n\r\nGET /c HTTP/1.1\r\nConnection: close\r\n\r\n";
        let mut connection = Connection::new(&bytes[..]);
        for (target, body) in [("/a", "one"), ("/b", "two"), ("/c", "")] {
            let head = connection.head().await.unwrap().unwrap();
            assert_eq!((head.target.as_str(), head.closes()), (target, target == "/c"));
            assert_eq!(connection.body(&head).await.unwrap(), body.as_bytes());
        }
        assert!(connection.head().await.unwrap().is_none());
    }
}
