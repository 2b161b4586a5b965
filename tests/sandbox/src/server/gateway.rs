//! A real gateway in front of the sandbox: nginx, with roads to the API that each fail in a way of their own.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::{TcpSocket, TcpStream};

const CONFIG: &str = include_str!("nginx.conf");

/// Ends nginx and removes its folder when standard input ends: whatever becomes of the sandbox, nothing is left behind.
const KEEPER: &str = r#""$0" -p "$1" -c nginx.conf & read -r _; kill "$!"; wait "$!"; rm -rf "$1""#;

/// How often it is looked whether nginx listens, with a rest of 10 ms.
const LOOKS: u32 = 1000;

/// nginx, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) address: SocketAddr,
    keeper: Child,
    /// Ports that nobody else is to be given: that of the gateway, and one where nobody listens.
    _ports: [TcpSocket; 2],
}

impl Gateway {
    /// Starts nginx in front of a server, and waits until it listens.
    pub(super) async fn start(server: SocketAddr) -> io::Result<Self> {
        let nginx = nginx().ok_or_else(|| refuse("nginx is not installed; HOPLINE_NGINX may name the program"))?;
        let own = port(server, true)?;
        let gone = port(server, false)?;
        let address = own.local_addr()?;
        let folder = tempfile::Builder::new().prefix("hopline-gateway-").tempdir()?;
        let named = [("GATEWAY", address), ("SANDBOX", server), ("GONE", gone.local_addr()?)];
        let config = named.iter().fold(CONFIG.to_owned(), |config, (name, address)| config.replace(name, &address.to_string()));
        std::fs::write(folder.path().join("nginx.conf"), config)?;
        let tested = Command::new(&nginx).arg("-t").arg("-p").arg(folder.path()).args(["-c", "nginx.conf"]).output()?;
        if !tested.status.success() {
            return Err(refuse(String::from_utf8_lossy(&tested.stderr).trim()));
        }
        let folder = folder.keep();
        let mut keeper = Command::new("sh");
        keeper.args(["-c", KEEPER]).args([&nginx, &folder]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let gateway = Self { address, keeper: keeper.spawn()?, _ports: [own, gone] };
        gateway.listens(&folder).await.map(|()| gateway)
    }

    async fn listens(&self, folder: &Path) -> io::Result<()> {
        for _ in 0..LOOKS {
            if TcpStream::connect(self.address).await.is_ok() {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let said = std::fs::read_to_string(folder.join("error.log")).unwrap_or_default();
        Err(refuse(said.trim()))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// The program: the one that is named, or the first that is found. Debian has it where only root looks.
pub fn nginx() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("HOPLINE_NGINX") {
        return Some(named.into());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&folders).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join("nginx")).find(|path| path.is_file())
}

/// A free port beside a server's, held without listening. One that is shared may be listened at by another process of the same user.
fn port(server: SocketAddr, shared: bool) -> io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    #[cfg(unix)]
    socket.set_reuseport(shared)?;
    socket.bind(SocketAddr::new(server.ip(), 0))?;
    Ok(socket)
}

fn refuse(why: impl Display) -> io::Error {
    io::Error::other(format!("the gateway could not be started: {why}"))
}
