//! A black hole: an address that is there and never answers, as where IPv6 is broken on the way.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::timeout;

/// A listener whose queue is full, so that further connections hang.
#[derive(Debug)]
pub(crate) struct Hole {
    pub(crate) address: SocketAddr,
    _listener: TcpListener,
    _queue: Vec<TcpStream>,
}

impl Hole {
    /// Opens one; nothing where the address is not there or this system does not let connections hang.
    pub(crate) async fn open(address: SocketAddr) -> Option<Self> {
        let listener = listen(address).ok()?;
        let address = listener.local_addr().ok()?;
        let mut queue = Vec::new();
        for _ in 0..8 {
            // A connection on loopback is made within the call, or hangs.
            match timeout(Duration::from_millis(200), TcpStream::connect(address)).await {
                Ok(connected) => queue.push(connected.ok()?),
                Err(_) => return Some(Self { address, _listener: listener, _queue: queue }),
            }
        }
        None
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    socket.bind(address)?;
    socket.listen(0)
}
