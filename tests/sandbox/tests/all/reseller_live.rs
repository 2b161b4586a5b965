//! The backend over real sockets: proxies that work, faults of the connection, control, CORS.

use serde_json::Value;

use crate::live::{Live, Raw, send};
use crate::proxies::curl_is_here;
use crate::reseller_harness::{PLACE, order};

struct Branch {
    live: Live,
    token: String,
}

impl Branch {
    fn new() -> Self {
        let live = Live::new();
        let (username, password) = (&live.ready().username, &live.ready().password);
        let body = format!(r#"{{"username":"{username}","password":"{password}"}}"#);
        let answer = send(&live.api(), "POST", "/api/auth/login", "", &body).json();
        let token = answer["data"]["token"].as_str().expect("a token").to_owned();
        Self { live, token }
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Raw {
        send(&self.live.api(), method, &format!("/api{path}"), &format!("Authorization: Bearer {}\r\n", self.token), body)
    }

    fn user(&self) -> u64 {
        let body = r#"{"username":"ann","password":"secret-1","balance":50}"#;
        self.call("POST", "/open/app/user/v2", body).json()["data"]["id"].as_u64().expect("a number")
    }

    fn orders(&self) -> usize {
        self.live.state()["backend"]["static_orders"].as_array().expect("orders").len()
    }
}

/// Fetches the target site through a proxy and gives the address that it saw.
fn seen_by_target(branch: &Branch, proxy: &Value, scheme: &str, port: &str) -> String {
    let text = |name: &str| proxy[name].as_str().expect("a text").to_owned();
    let url = format!("{scheme}://{}:{}@{}:{}", text("username"), text("password"), text("ip"), proxy[port]);
    let output = std::process::Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "10", "--noproxy", "", "--proxy", &url, &branch.live.ready().target_url])
        .output()
        .expect("curl");
    let page: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    page["address"].as_str().expect("an address").to_owned()
}

#[test]
fn an_instance_of_a_static_order_and_an_extracted_proxy_are_real_proxies() {
    if !curl_is_here() {
        return;
    }
    let branch = Branch::new();
    let ann = branch.user();
    let accepted = branch.call("POST", PLACE, &order(ann, "static-us", "")).json();
    let number = accepted["data"]["orderNo"].as_str().unwrap().to_owned();
    let list = branch.call("GET", &format!("/open/app/static/order/list/v2?search={number}"), "").json();
    let instance = &list["data"]["items"][0]["instances"][0];
    let exit = instance["exit_ip"].as_str().unwrap();
    assert_eq!(seen_by_target(&branch, instance, "socks5h", "port"), exit);
    assert_eq!(seen_by_target(&branch, instance, "http", "http_port"), exit);
    let order = branch.live.state()["backend"]["static_orders"][2].clone();
    assert!(order["traffic_bytes"].as_u64().unwrap() > 0, "{order}");

    branch.call("POST", "/open/app/order/create/v2", r#"{"poolId":"dynamic-us","trafficAmount":1}"#);
    let extracted = branch.call("POST", "/business/dynamic-proxy/extract", r#"{"productNo":"dynamic-us","proxyType":104}"#).json();
    let proxy = &extracted["data"]["items"][0];
    assert_eq!(seen_by_target(&branch, proxy, "socks5h", "port"), proxy["exit_ip"].as_str().unwrap());
    let used = branch.call("GET", "/user/1001/remaining-flow/dynamic-us", "").json()["data"]["used_gb"].clone();
    assert!(used.as_f64().unwrap() > 0.0);
}

#[test]
fn faults_of_the_connection_reach_the_backends_operations() {
    let branch = Branch::new();
    let body = order(branch.user(), "static-us", "");
    let fault = |fault: &str| branch.live.fault(&format!(r#"{{"operation":"create_static_order","fault":{fault}}}"#));
    let before = branch.orders();
    for (kind, made) in [("drop_before", 0), ("drop_after", 1), ("duplicate", 3), ("truncate", 4)] {
        fault(&format!(r#"{{"kind":"{kind}"}}"#));
        let raw = branch.call("POST", PLACE, &body);
        assert_eq!((raw.bytes.is_empty(), branch.orders() - before), (kind.starts_with("drop"), made), "{kind}");
    }
    fault(r#"{"kind":"html","status":502,"after":true}"#);
    assert_eq!((branch.call("POST", PLACE, &body).status(), branch.orders() - before), (502, 5));
    fault(r#"{"kind":"error","code":5001,"status":200}"#);
    assert_eq!(branch.call("POST", PLACE, &body).json()["code"], 5001);
    fault(r#"{"kind":"error","code":"busy","status":503,"retry_after":7}"#);
    let busy = branch.call("POST", PLACE, &body);
    assert_eq!((busy.status(), &busy.json()["code"]), (503, &"busy".into()));
    assert!(busy.head().contains("retry-after: 7"));
}

#[test]
fn control_expires_tokens_switches_spellings_and_finishes_orders() {
    let branch = Branch::new();
    let ann = branch.user();
    let control = |path: &str, body: &str| {
        let answer = branch.live.control("POST", path, body);
        assert_eq!(answer.status(), 200, "{body}: {}", answer.json());
    };
    control("/order", r#"{"fail_next":1}"#);
    let number = branch.call("POST", PLACE, &order(ann, "static-us", "")).json()["data"]["orderNo"].as_str().unwrap().to_owned();
    let state = branch.live.state();
    let failed = state["backend"]["static_orders"].as_array().unwrap().iter().find(|order| order["order_no"] == *number).unwrap().clone();
    assert_eq!((&failed["status"], &state["backend"]["users"][0]["balance"]), (&"failed".into(), &50.into()));
    assert_eq!(state["backend"]["entries"].as_array().unwrap().len(), 3);
    control("/spelling", r#"{"message":"msg","code":"text"}"#);
    assert_eq!(branch.call("GET", "/dynamic", "").json()["code"], "0");
    control("/tokens", r#"{"expire":true,"lifetime_ms":60000}"#);
    assert_eq!(branch.call("GET", "/dynamic", "").status(), 401);
    let logins = branch.live.control("GET", "/logins", "").json();
    assert_eq!(logins["logins"][0]["username"], branch.live.ready().username);
    for (path, body, says) in [
        ("/spelling", r#"{"message":"text"}"#, "unknown variant"),
        ("/tokens", r#"{"lifetime":1}"#, "unknown field"),
        ("/order", r#"{"order_no":"none","outcome":"active"}"#, "no order none"),
        ("/order", r#"{"order_no":"none"}"#, "go together"),
        ("/order", r#"{"order_no":"none","outcome":"lost"}"#, "unknown variant"),
    ] {
        let answer = branch.live.control("POST", path, body);
        assert!(answer.status() == 400 && answer.json()["error"].as_str().unwrap().contains(says), "{body}: {}", answer.json());
    }
}

#[test]
fn the_state_shows_what_happened_here_without_credentials() {
    let branch = Branch::new();
    let ann = branch.user();
    branch.call("POST", PLACE, &order(ann, "static-us", ""));
    let list = branch.call("GET", "/open/app/static/order/list/v2", "").json();
    let instance = &list["data"]["items"][0]["instances"][0];
    let state = branch.live.state();
    let word = |name: &str| instance[name].as_str().unwrap().to_owned();
    for secret in [word("username"), word("password"), "secret-1".to_owned(), branch.live.ready().password.clone(), branch.token.clone()] {
        assert!(!state.to_string().contains(&secret));
    }
    assert_eq!(state["executions"]["create_static_order"], 1);
}

#[test]
fn a_preflight_allows_the_bearer_token() {
    let branch = Branch::new();
    let headers =
        "Origin: http://localhost:3000\r\nAccess-Control-Request-Method: PATCH\r\nAccess-Control-Request-Headers: authorization\r\n";
    let preflight = send(&branch.live.api(), "OPTIONS", "/api/dynamic", headers, "");
    assert_eq!(preflight.status(), 200);
    assert!(preflight.head().contains("access-control-allow-headers: authorization"));
    assert!(branch.call("GET", "/dynamic", "").head().contains("access-control-allow-origin: *"));
}
