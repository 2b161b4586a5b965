//! The odd server: a request's first folder says how it is answered.

use std::io;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::behaviour::{Act, BEHAVIOURS, Behaviour, Script, Step, Then};
use crate::connection::{Connection, Head};
use crate::control::{Records, Relayed};
use crate::relay::fetch;

/// Serves one client; how its connection ended is of no interest.
pub(crate) async fn serve(records: Arc<Records>, service: Arc<str>, number: u64, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    let _ = converse(&records, &service, number, &mut connection).await;
}

async fn converse(records: &Records, service: &str, number: u64, connection: &mut Connection<TcpStream>) -> io::Result<()> {
    while let Some(head) = connection.head().await? {
        let Some((way, path)) = split(&head.target) else {
            let message = "the first folder of the base URL names no behaviour\n";
            let refusal = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{message}", message.len());
            return connection.stream.write_all(refusal.as_bytes()).await;
        };
        let is_odd = way.is_meant(&head.method) && (!way.once || records.is_first(way.folder));
        let (behaviour, pause) = if is_odd { (way.behaviour, way.pause) } else { (&BEHAVIOURS[0], way.pause) };
        let record = |relayed| {
            let key = head.header("idempotency-key").map(|key| String::from_utf8_lossy(key).into_owned());
            records.relayed(Relayed {
                behaviour: behaviour.name,
                folder: way.folder.to_owned(),
                connection: number,
                method: head.method.clone(),
                path: path.to_owned(),
                key,
                relayed,
            });
        };
        let script = match behaviour.act {
            Act::Unread(script) => {
                record(false);
                script()
            }
            Act::Relay(script) => {
                let body = whole_body(connection, &head).await?;
                record(true);
                let answer = fetch(service, path, &head, body).await.map_err(io::Error::other)?;
                if answer.body.is_empty() {
                    Script { steps: vec![Step::Write(answer.plain())], then: Then::Serve }
                } else {
                    script(&answer, pause)
                }
            }
        };
        let then = script.then;
        play(connection, script).await?;
        match then {
            Then::Close => break,
            _ if head.closes() => break,
            Then::Serve => {}
            Then::CloseAtNext => return connection.peek().await.map(|_| ()),
            Then::ResetAtNext => {
                connection.peek().await?;
                return connection.stream.set_zero_linger();
            }
        }
    }
    connection.stream.shutdown().await
}

async fn whole_body(connection: &mut Connection<TcpStream>, head: &Head) -> io::Result<Vec<u8>> {
    if head.expects_continue() {
        connection.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
    }
    connection.body(head).await
}

async fn play(connection: &mut Connection<TcpStream>, script: Script) -> io::Result<()> {
    for step in script.steps {
        match step {
            Step::Write(bytes) => connection.stream.write_all(&bytes).await?,
            Step::Pause(pause) => tokio::time::sleep(pause).await,
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    tokio::time::sleep(pause).await;
                    connection.stream.write_all(&[byte]).await?;
                }
            }
        }
    }
    Ok(())
}

/// How the requests under a folder are answered.
struct Way<'a> {
    folder: &'a str,
    behaviour: &'static Behaviour,
    pause: std::time::Duration,
    once: bool,
    only: Option<bool>,
}

impl Way<'_> {
    fn is_meant(&self, method: &str) -> bool {
        self.only.is_none_or(|writes| writes != (method == "GET"))
    }
}

/// Takes the folder from a path: a behaviour's name, then words after dots.
fn split(target: &str) -> Option<(Way<'_>, &str)> {
    let folder = target.strip_prefix('/')?.split('/').next()?;
    let path = &target[1 + folder.len()..];
    // A behaviour's name may itself have a dot, so the longest name that fits is taken.
    let ends = folder.match_indices('.').map(|(end, _)| end).chain([folder.len()]);
    let (end, (behaviour, pause)) = ends.filter_map(|end| Some((end, Behaviour::find(&folder[..end])?))).next_back()?;
    let words: Vec<&str> = folder[end..].split('.').collect();
    let only = if words.contains(&"writes") {
        Some(true)
    } else if words.contains(&"reads") {
        Some(false)
    } else {
        None
    };
    let way = Way { folder, behaviour, pause, once: words.contains(&"once"), only };
    Some((way, if path.is_empty() { "/" } else { path }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_chooses_a_behaviour_and_when_it_applies() {
        let read = |target| {
            split(target)
                .map(|(way, path)| (way.behaviour.name, way.pause.as_millis(), way.once, way.is_meant("POST"), way.is_meant("GET"), path))
        };
        assert_eq!(read("/plain/v1/a?b=c"), Some(("plain", 0, false, true, true, "/v1/a?b=c")));
        assert_eq!(read("/late-70.once.writes/v1"), Some(("late", 70, true, true, false, "/v1")));
        assert_eq!(read("/http-1.0.reads.of-my-test/v1"), Some(("http-1.0", 0, false, false, true, "/v1")));
        assert_eq!(read("/nonsense/v1"), None);
        assert_eq!(read("*"), None);
    }
}
