//! The requests to the two, and the address where a test reads them.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::connection::Connection;

/// A request that the odd server has got.
#[derive(Clone, Debug, Serialize)]
pub struct Relayed {
    /// How it was answered.
    pub behaviour: &'static str,
    /// The first folder of its URL.
    pub folder: String,
    /// A number for each connection.
    pub connection: u64,
    /// Its method.
    pub method: String,
    /// Its path and query at the service.
    pub path: String,
    /// Its `Idempotency-Key`.
    pub key: Option<String>,
    /// True if the service has got the request.
    pub relayed: bool,
}

/// A request that a proxy has got.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Login {
    /// The proxy: `http/right`.
    pub proxy: String,
    /// `CONNECT`, another method, or `SOCKS5`.
    pub method: String,
    /// Where to: host and port, or a URL.
    pub target: Option<String>,
    /// The user name that was given, in hexadecimal digits.
    pub username: Option<String>,
    /// The password that was given, in hexadecimal digits.
    pub password: Option<String>,
    /// A login that is not of HTTP's `Basic` kind, or can't be read as one: the header, in hexadecimal digits.
    pub other: Option<String>,
}

/// All that was recorded.
#[derive(Debug, Default)]
pub(crate) struct Records(Mutex<Recorded>);

#[derive(Debug, Default, Serialize)]
pub(crate) struct Recorded {
    pub(crate) relayed: Vec<Relayed>,
    pub(crate) logins: Vec<Login>,
    /// The folders that have had their one odd answer.
    #[serde(skip)]
    once: BTreeSet<String>,
}

impl Records {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Recorded> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn relayed(&self, relayed: Relayed) {
        self.lock().relayed.push(relayed);
    }

    pub(crate) fn login(&self, login: Login) {
        self.lock().logins.push(login);
    }

    /// True if the folder has had no odd answer yet; from now on it has.
    pub(crate) fn is_first(&self, folder: &str) -> bool {
        self.lock().once.insert(folder.to_owned())
    }
}

/// Serves one client of the control address: GET reads all, DELETE forgets it.
pub(crate) async fn serve(records: Arc<Records>, stream: TcpStream) {
    let _ = converse(&records, &mut Connection::new(stream)).await;
}

async fn converse(records: &Records, connection: &mut Connection<TcpStream>) -> io::Result<()> {
    while let Some(head) = connection.head().await? {
        connection.body(&head).await?;
        if head.method == "DELETE" {
            *records.lock() = Recorded::default();
        }
        let body = serde_json::to_string(&*records.lock())?;
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        connection.stream.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}
