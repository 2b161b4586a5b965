//! The target site, over sockets: directly, through the proxies, and over TLS.

use std::net::SocketAddr;
use std::process::Command;

use hopline_sandbox::{Config, Options};
use serde_json::{Value, json};

use crate::live::{Live, Raw, send};
use crate::proxies::{curl_is_here, proxy_url};

fn visit(live: &Live, method: &str, path: &str) -> Raw {
    let site = live.ready().target_url.trim_start_matches("http://").trim_end_matches('/').to_owned();
    send(&site, method, path, "", "")
}

fn rule(live: &Live, rule: &Value) {
    let answer = live.control("POST", "/target", &rule.to_string());
    assert_eq!((answer.status(), answer.json()), (200, json!({"done": true})), "{rule}");
}

fn visits(live: &Live) -> Vec<Value> {
    live.control("GET", "/visits", "").json()["visits"].as_array().expect("visits").clone()
}

#[test]
fn each_path_tells_the_visitor_its_address_and_the_visits_are_listed() {
    let live = Live::new();
    assert_eq!(visit(&live, "GET", "/").json(), json!({"address": "127.0.0.1", "visits": 1, "path": "/"}));
    assert_eq!(visit(&live, "POST", "/prices?page=2").json(), json!({"address": "127.0.0.1", "visits": 2, "path": "/prices?page=2"}));
    let (listed, host) = (visits(&live), live.ready().target_url.trim_start_matches("http://").trim_end_matches('/').to_owned());
    let [first, second] = &listed[..] else { panic!("{listed:?}") };
    assert_ne!(first["connection"], second["connection"], "each was a connection of its own");
    let mut second = second.clone();
    let at_ms = second.as_object_mut().and_then(|visit| visit.remove("at_ms")).expect("a time");
    assert!(at_ms.as_i64() > Some(1_700_000_000_000));
    let connection = second["connection"].clone();
    let expected = json!({"exit": "127.0.0.1", "connection": connection, "tls": false, "host": host, "method": "POST", "path": "/prices?page=2", "status": 200});
    assert_eq!(second, expected);
}

#[test]
fn everybody_is_blocked_for_a_time_of_the_sandboxs_clock_and_the_next_visits_get_a_429() {
    let live = Live::new();
    rule(&live, &json!({"block_all_ms": 3_600_000}));
    let blocked = visit(&live, "GET", "/");
    assert_eq!((blocked.status(), &blocked.json()["blocked"]), (403, &true.into()));
    live.control("POST", "/clock", r#"{"advance_ms":3600000}"#);
    assert_eq!(visit(&live, "GET", "/").status(), 200);

    rule(&live, &json!({"throttle": {"times": 2, "retry_after": 7}}));
    let answers: Vec<Raw> = (0..3).map(|_| visit(&live, "GET", "/")).collect();
    assert_eq!(answers.iter().map(Raw::status).collect::<Vec<_>>(), [429, 429, 200]);
    assert_eq!(answers.iter().map(|answer| answer.head().contains("\r\nretry-after: 7\r\n")).collect::<Vec<_>>(), [true, true, false]);
    let statuses: Vec<Value> = visits(&live).iter().map(|visit| visit["status"].clone()).collect();
    assert_eq!(statuses, [403, 200, 429, 429, 200]);

    rule(&live, &json!({"block": "127.0.0.1"}));
    assert_eq!(visit(&live, "GET", "/").status(), 403);
    rule(&live, &json!({"clear": true}));
    assert_eq!(visits(&live), Vec::<Value>::new());
    assert_eq!(visit(&live, "GET", "/").json()["visits"], 1);
}

#[test]
fn a_wrong_rule_is_refused() {
    let live = Live::new();
    for (rule, says) in [
        (r#"{"block_everybody":1}"#, "unknown field `block_everybody`"),
        (r#"{"block":"shop.localhost"}"#, "invalid IP address"),
        (r#"{"throttle":{"after":1}}"#, "unknown field `after`"),
    ] {
        let answer = live.control("POST", "/target", rule);
        let error = answer.json()["error"].as_str().expect("an error").to_owned();
        assert!(answer.status() == 400 && error.contains(says), "{error}");
    }
}

/// The status of a page, fetched by curl through a proxy that trusts an authority, over one connection for all of them.
fn fetch(proxy: &Value, ca: &str, urls: &[&str]) -> Vec<String> {
    let mut curl = Command::new("curl");
    curl.args(["-q", "-sS", "--noproxy", "", "-m", "20", "--cacert", ca, "-x", &proxy_url("http", proxy)]);
    urls.iter().for_each(|url| _ = curl.args(["-w", "%{http_code} ", "-o", "/dev/null", url]));
    let output = curl.output().expect("curl runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).split_whitespace().map(str::to_owned).collect()
}

#[test]
fn pages_over_tls_are_fetched_in_one_tunnel_and_an_exit_is_blocked_after_so_many() {
    if !curl_is_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let config = Config { provisioning_ms: 0..=0, ..Config::new(7) };
    let live = Live::serving(Options { tls: Some(folder.path().to_owned()), ..Options::new(config) });
    let tls = live.ready().tls.clone().expect("TLS");
    rule(&live, &json!({"block_after": 2}));
    let (id, proxy) = live.buy("http");
    let site: SocketAddr = tls.tls_target.trim_start_matches("https://").trim_end_matches('/').parse().unwrap();
    let shop = |path: &str| format!("https://shop.localhost:{}/{path}", site.port());
    let urls = [shop("a"), shop("b?page=2"), shop("c")];
    let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
    assert_eq!(fetch(&proxy, &tls.tls_ca, &urls), ["200", "200", "403"]);

    let rotated = live.call("POST", &format!("/sessions/{id}/rotate?include_credentials=true"), None, "").json()["data"]["proxy"].clone();
    assert_eq!(fetch(&rotated, &tls.tls_ca, &[&tls.tls_target]), ["200"], "the site is called by its address, too");
    let seen = visits(&live);
    assert_eq!(seen.iter().map(|visit| visit["path"].as_str().unwrap()).collect::<Vec<_>>(), ["/a", "/b?page=2", "/c", "/"]);
    assert!(seen.iter().all(|visit| visit["tls"] == true));
    assert!(seen[0]["exit"] == seen[2]["exit"] && seen[0]["connection"] == seen[2]["connection"], "one tunnel: {seen:?}");
    assert_ne!(seen[2]["exit"], seen[3]["exit"]);
    assert_eq!(seen[0]["host"], format!("shop.localhost:{}", site.port()));
}
