//! The proxies, byte by byte: open tunnels, and clients that keep no rules.

use std::io::{Read, Write};
use std::net::TcpStream;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::live::{Live, connect, exchange, read_all, send};

#[test]
fn an_open_tunnel_closes_when_its_session_is_rotated_terminated_or_runs_out() {
    for end in ["rotate", "terminate", "traffic"] {
        for protocol in ["socks5", "http"] {
            let live = Live::new();
            let (id, proxy) = live.buy(protocol);
            let tunnel = if protocol == "http" { connect_tunnel(&live, &proxy) } else { socks_tunnel(&live, &proxy) };
            match end {
                "rotate" => drop(live.call("POST", &format!("/sessions/{id}/rotate"), None, "")),
                "terminate" => drop(live.call("DELETE", &format!("/sessions/{id}"), None, "")),
                _ => live.running.with_service(|service, _| service.add_traffic(&id, 1_000_000_000)),
            }
            assert!(read_all(tunnel).bytes.is_empty());
        }
    }
}

#[test]
fn an_open_tunnel_closes_with_the_sandbox() {
    for protocol in ["socks5", "http"] {
        let live = Live::new();
        let (_, proxy) = live.buy(protocol);
        let tunnel = if protocol == "http" { connect_tunnel(&live, &proxy) } else { socks_tunnel(&live, &proxy) };
        let Live { running, runtime } = live;
        drop(running);
        assert!(read_all(tunnel).bytes.is_empty());
        drop(runtime);
    }
}

#[test]
fn a_socks5_client_without_a_password_or_with_another_command_is_refused() {
    let live = Live::new();
    let answer = exchange(&live.ready().socks5, &[5, 1, 0]);
    assert_eq!(answer.bytes, [5, 0xff]);
    let (_, proxy) = live.buy("socks5");
    let mut stream = socks_login(&live, &proxy);
    stream.write_all(&[5, 2, 0, 1, 127, 0, 0, 1, 0, 80]).unwrap();
    let mut reply = [0; 2];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [5, 7]);
}

#[test]
fn the_http_proxy_answers_only_proxy_requests() {
    let live = Live::new();
    let (_, proxy) = live.buy("http");
    let pair = format!("{}:{}", proxy["username"].as_str().unwrap(), proxy["password"].as_str().unwrap());
    let word = BASE64_STANDARD.encode(pair);
    let headers = format!("Proxy-Authorization: Basic {word}\r\n");
    let answer = send(&live.ready().http_proxy, "GET", "/", &headers, "");
    assert_eq!(answer.status(), 400);
    let answer = send(&live.ready().http_proxy, "GET", "http://127.0.0.1:1/", &headers, "");
    assert_eq!(answer.status(), 502);
    let answer = send(&live.ready().http_proxy, "GET", &live.ready().target_url, "", "");
    assert_eq!(answer.status(), 407);
    assert!(answer.head().contains("proxy-authenticate: basic"));
}

fn socks_login(live: &Live, proxy: &Value) -> TcpStream {
    let (name, word) = (proxy["username"].as_str().unwrap(), proxy["password"].as_str().unwrap());
    let mut stream = connect(&live.ready().socks5);
    stream.write_all(&[5, 1, 2]).unwrap();
    let mut reply = [0; 2];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [5, 2]);
    let mut login = vec![1, name.len() as u8];
    login.extend(name.bytes());
    login.push(word.len() as u8);
    login.extend(word.bytes());
    stream.write_all(&login).unwrap();
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply, [1, 0]);
    stream
}

fn socks_tunnel(live: &Live, proxy: &Value) -> TcpStream {
    let mut stream = socks_login(live, proxy);
    let [high, low] = target_port(live).to_be_bytes();
    stream.write_all(&[5, 1, 0, 1, 127, 0, 0, 1, high, low]).unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).unwrap();
    assert_eq!(reply[..2], [5, 0]);
    stream
}

fn connect_tunnel(live: &Live, proxy: &Value) -> TcpStream {
    let pair = format!("{}:{}", proxy["username"].as_str().unwrap(), proxy["password"].as_str().unwrap());
    let word = BASE64_STANDARD.encode(pair);
    let target = format!("127.0.0.1:{}", target_port(live));
    let mut stream = connect(&live.ready().http_proxy);
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nProxy-Authorization: Basic {word}\r\n\r\n").unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 200"));
    stream
}

fn target_port(live: &Live) -> u16 {
    let url = live.ready().target_url.trim_end_matches('/');
    url.rsplit(':').next().unwrap().parse().unwrap()
}
