//! The proxies, with a real curl.

use std::process::{Command, Output};

use serde_json::Value;

use crate::live::Live;

/// The tests need curl: without it they fail in CI, and elsewhere say that they were skipped.
pub(crate) fn curl_is_here() -> bool {
    let here = Command::new("curl").arg("--version").output().is_ok();
    assert!(here || std::env::var_os("CI").is_none(), "curl is needed in ci");
    if !here {
        eprintln!("skipped: curl is not on this machine");
    }
    here
}

fn curl(proxy: &str, url: &str) -> Output {
    // The environment may name a proxy of its own, or exempt loopback from proxies.
    let arguments = ["-q", "-sS", "--noproxy", "", "-m", "10", "-w", "\n%{http_code} %{http_connect}", "-x", proxy, url];
    Command::new("curl").args(arguments).output().expect("curl runs")
}

pub(crate) fn proxy_url(scheme: &str, proxy: &Value) -> String {
    let part = |name: &str| proxy[name].as_str().expect("credentials").to_owned();
    format!("{scheme}://{}:{}@{}:{}", part("username"), part("password"), part("host"), proxy["port"])
}

/// The answer of the target: its status and the address that it saw.
fn visit(proxy: &str, url: &str) -> (u16, String) {
    let output = curl(proxy, url);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let (body, codes) = text.rsplit_once('\n').expect("codes");
    let seen: Value = serde_json::from_str(body).unwrap_or_default();
    let status = codes.split(' ').next().unwrap().parse().unwrap();
    (status, seen["address"].as_str().unwrap_or_default().to_owned())
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn exit(live: &Live) -> String {
    live.state()["sessions"][0]["exit"].as_str().unwrap().to_owned()
}

#[test]
fn curl_reaches_the_target_from_the_exit_of_the_session_and_rotation_changes_it() {
    if !curl_is_here() {
        return;
    }
    for (protocol, scheme) in [("socks5", "socks5h"), ("socks5", "socks5"), ("http", "http"), ("https", "http")] {
        let live = Live::new();
        let (id, proxy) = live.buy(protocol);
        let target = live.ready().target_url.clone();
        let by_name = target.replace("127.0.0.1", "localhost");
        let before = exit(&live);
        assert_eq!(visit(&proxy_url(scheme, &proxy), &target), (200, before.clone()));
        // Plain socks5 has curl look the name up, and that may give IPv6.
        if scheme != "socks5" {
            assert_eq!(visit(&proxy_url(scheme, &proxy), &by_name), (200, before.clone()));
        }
        let path = format!("/sessions/{id}/rotate?include_credentials=true");
        let rotated = live.call("POST", &path, None, "").json()["data"]["proxy"].clone();
        assert_ne!(before, exit(&live));
        assert_eq!(visit(&proxy_url(scheme, &rotated), &target), (200, exit(&live)));
        assert!(live.state()["traffic_bytes"].as_u64().unwrap() > 0);
    }
}

#[test]
fn curl_tunnels_through_connect() {
    if !curl_is_here() {
        return;
    }
    let live = Live::new();
    let (_, proxy) = live.buy("http");
    let output = Command::new("curl")
        .args(["-q", "-sS", "--noproxy", "", "-m", "10", "-p", "-x", &proxy_url("http", &proxy), &live.ready().target_url])
        .output()
        .unwrap();
    let seen: Value = serde_json::from_slice(&output.stdout).expect("the target's answer");
    assert_eq!(seen["address"], exit(&live));
}

#[test]
fn a_terminated_session_and_wrong_credentials_are_refused() {
    if !curl_is_here() {
        return;
    }
    for (protocol, scheme) in [("socks5", "socks5h"), ("http", "http")] {
        let live = Live::new();
        let (id, proxy) = live.buy(protocol);
        let target = live.ready().target_url.clone();
        let mut wrong = proxy.clone();
        wrong["password"] = "wrong".into();
        let refused = |proxy: &Value| {
            let output = curl(&proxy_url(scheme, proxy), &target);
            if scheme == "http" {
                assert!(String::from_utf8_lossy(&output.stdout).contains("\n407 "), "{output:?}");
            } else {
                assert_eq!(output.status.code(), Some(97), "{output:?}");
                assert!(said(&output).contains("rejected by the SOCKS5 server"), "{}", said(&output));
            }
        };
        refused(&wrong);
        assert_eq!(visit(&proxy_url(scheme, &proxy), &target).0, 200);
        assert_eq!(live.call("DELETE", &format!("/sessions/{id}"), None, "").status(), 200);
        refused(&proxy);
    }
}

#[test]
fn whatever_is_not_loopback_is_refused_by_the_proxy_itself() {
    if !curl_is_here() {
        return;
    }
    let live = Live::new();
    let (_, socks) = live.buy("socks5");
    let (_, http) = live.buy("http");
    for host in ["192.0.2.1", "[2001:db8::1]", "somewhere.example"] {
        let url = format!("http://{host}:9/");
        let output = curl(&proxy_url("socks5h", &socks), &url);
        assert_eq!(output.status.code(), Some(97), "{output:?}");
        assert!(said(&output).contains("(2)"), "{}", said(&output));
        let output = curl(&proxy_url("http", &http), &url);
        assert!(String::from_utf8_lossy(&output.stdout).contains("\n403 "), "{output:?}");
        let output = curl(&proxy_url("http", &http), &url.replace("http:", "https:"));
        assert!(String::from_utf8_lossy(&output.stdout).ends_with(" 403"), "{output:?}");
    }
    let state = live.state();
    assert_eq!(state["traffic_bytes"], 0);
}

#[test]
fn the_target_blocks_the_first_exit_and_serves_the_next() {
    if !curl_is_here() {
        return;
    }
    let live = Live::new();
    live.control("POST", "/target", r#"{"block_first_exit":true}"#);
    let (id, proxy) = live.buy("socks5");
    let target = live.ready().target_url.clone();
    assert_eq!(visit(&proxy_url("socks5h", &proxy), &target), (403, exit(&live)));
    let path = format!("/sessions/{id}/rotate?include_credentials=true");
    let rotated = live.call("POST", &path, None, r#"{"reason":"http_403"}"#).json()["data"]["proxy"].clone();
    assert_eq!(visit(&proxy_url("socks5h", &rotated), &target), (200, exit(&live)));
}
