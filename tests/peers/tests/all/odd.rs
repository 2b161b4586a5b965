use std::net::TcpStream;
use std::time::Duration;

use hopline_peers::{BEHAVIOURS, Reading};
use hopline_sandbox::{ConnectionFault, FaultRule};
use serde_json::Value;

use crate::{Peers, Wire};

/// The bytes that an answer must hold to be odd in its way.
fn mark(name: &str) -> &'static [u8] {
    match name {
        "early-hints" | "early-hints-close" => b"HTTP/1.1 103 Early Hints\r\nLink: ",
        "processing" => b"HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 202 Accepted\r\n",
        "continue" => b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\n",
        "informational" => b"HTTP/1.1 110 Odd\r\nX-Step: 2\r\n\r\nHTTP/1.1 202 Accepted\r\n",
        "gzip" | "gzip-cut" => b"content-encoding: gzip\r\ncontent-length: ",
        "deflate" | "raw-deflate" => b"content-encoding: deflate\r\ncontent-length: ",
        "gzip-chunked" => b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n7\r\n\x1f\x8b",
        "gzip-unsaid" => b"\r\n\r\n\x1f\x8b",
        "identity" => b"content-encoding: identity\r\n",
        "chunked" => b"\r\n0\r\n\r\n",
        "chunked-cut" => b"transfer-encoding: chunked\r\n\r\n7\r\n",
        "chunk-extensions" => b"\r\n7;odd=\"yes\"\r\n",
        "trailers" => b"\r\n0\r\nX-Checksum: 7\r\n",
        "until-close" => b"connection: close\r\n\r\n{",
        "http-1.0" => b"HTTP/1.0 202 Accepted\r\n",
        "length-null" => b"content-length: null\r\n",
        "after-body" => b"}\r\n\r\n<!-- odd -->\r\n",
        "second-answer" => b"ses_of_nobody",
        "unasked-408" => b"}HTTP/1.1 408 Request Timeout\r\n",
        "no-reason" => b"HTTP/1.1 202 \r\n",
        "empty-lines" => b"\r\n\r\nHTTP/1.1 202 Accepted\r\n",
        "many-headers" => b"x-odd-149: 1\r\n",
        "long-header" => b"x-odd: oooooooooooooooo",
        "latin-1-header" => b"x-odd: caf\xe9\r\n",
        "folded-header" => b"x-odd: one\r\n two\r\n",
        "html-type" => b"content-type: text/html; charset=UTF-8\r\n",
        "bom" => b"\r\n\r\n\xef\xbb\xbf{",
        _ => b"HTTP/1.1 202 Accepted\r\n",
    }
}

#[test]
fn each_behaviour_does_what_it_says_and_the_service_gets_the_purchase_once() {
    for behaviour in BEHAVIOURS {
        let (peers, name) = (Peers::new(), behaviour.name);
        let mut wire = peers.odd();
        wire.send(peers.purchase(name, "key-1").replace("Host: odd", "Host: odd\r\nConnection: close"));
        let bytes = wire.rest().unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let relayed: Vec<_> = peers.running.relayed().into_iter().map(|one| (one.behaviour, one.path, one.key, one.relayed)).collect();
        let is_read = name != "unread";
        assert_eq!(relayed, [(name, "/v1/sessions".to_owned(), Some("key-1".to_owned()), is_read)]);
        assert_eq!(peers.charges(), usize::from(is_read), "{name}");
        // An unread rest of a request resets the connection, which may overtake the answer.
        if !is_read {
            continue;
        }
        assert!(bytes.windows(mark(name).len()).any(|window| window == mark(name)), "{name}: {text}");
        let length = text.to_ascii_lowercase().match_indices("content-length: ").count();
        assert_eq!(length == 2, name == "length-twice" || name == "second-answer" || name == "unasked-408", "{name}: {text}");
        assert_eq!(text.to_ascii_lowercase().contains("content-type"), name != "no-type" && name != "early-hints-close", "{name}: {text}");
        assert!(
            behaviour.answer != Reading::Given
                || text.contains("session_id")
                || text.contains("content-encoding")
                || text.contains("transfer-encoding"),
            "{name}: {text}"
        );
    }
}

#[test]
fn lengths_that_are_wrong_are_wrong_by_seven() {
    for (name, difference) in [("plain", 0), ("length-long", 7), ("length-short", -7)] {
        let peers = Peers::new();
        let mut wire = peers.odd();
        wire.send(peers.purchase(name, "key-1").replace("Host: odd", "Host: odd\r\nConnection: close"));
        let text = String::from_utf8(wire.rest().expect("an end")).expect("text");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<i64>().ok()).expect("a length");
        assert_eq!(length - body.len() as i64, difference, "{name}");
    }
}

#[test]
fn words_after_the_name_say_to_which_requests_it_applies() {
    let peers = Peers::new();
    let first_line = |folder: &str, is_read: bool| {
        let mut wire = peers.odd();
        let purchase = peers.purchase(folder, "key-1").replace("Host: odd", "Host: odd\r\nConnection: close");
        let read = format!("GET /{folder}/v1/openapi.json HTTP/1.1\r\nHost: odd\r\nConnection: close\r\n\r\n");
        wire.send(if is_read { read } else { purchase });
        let bytes = wire.rest().expect("an end");
        String::from_utf8_lossy(&bytes).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first_line("http-1.0.once", true), "HTTP/1.0 200 OK");
    assert_eq!(first_line("http-1.0.once", true), "HTTP/1.1 200 OK");
    assert_eq!(first_line("http-1.0.once.mine", true), "HTTP/1.0 200 OK");
    assert_eq!(first_line("http-1.0.once.writes", true), "HTTP/1.1 200 OK");
    assert_eq!(first_line("http-1.0.once.writes", false), "HTTP/1.0 202 Accepted");
    assert_eq!(first_line("http-1.0.reads", false), "HTTP/1.1 202 Accepted");
    assert_eq!(first_line("http-1.0.reads", true), "HTTP/1.0 200 OK");
    assert_eq!(first_line("nonsense", true), "HTTP/1.1 404 Not Found");
    assert_eq!(peers.running.relayed().len(), 7);
}

#[test]
fn a_connection_serves_many_requests_and_a_stale_one_breaks_before_the_second_is_relayed() {
    let peers = Peers::new();
    for (folder, kind) in [("stale", Some(std::io::ErrorKind::ConnectionReset)), ("stale-close", None), ("plain", None)] {
        let mut wire = peers.odd();
        wire.send(peers.purchase(folder, folder));
        assert!(wire.answer().0.starts_with("HTTP/1.1 202"), "{folder}");
        wire.send(peers.purchase(folder, &format!("{folder}-2")));
        if folder == "plain" {
            assert!(wire.answer().0.starts_with("HTTP/1.1 202"));
            continue;
        }
        match wire.rest() {
            Ok(bytes) => assert_eq!((bytes.len(), kind), (0, None), "{folder}"),
            // A close with something unread is a reset, too.
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset, "{folder}"),
        }
    }
    assert_eq!(peers.running.relayed().len(), 4);
    assert_eq!(peers.charges(), 4);
}

#[test]
fn a_request_that_the_service_does_not_answer_is_not_answered() {
    let peers = Peers::new();
    let fault = ConnectionFault::DropAfter {};
    peers.sandbox.inject(FaultRule { operation: Some("create_session".to_owned()), times: 1, fault });
    let mut wire = peers.odd();
    wire.send(peers.purchase("gzip", "key-1"));
    assert_eq!(wire.rest().expect("an end"), b"");
    assert_eq!((peers.running.relayed().len(), peers.charges()), (1, 1));
}

#[test]
fn connections_to_a_black_hole_hang_beside_an_address_that_answers() {
    let peers = Peers::new();
    let holes = &peers.running.ready().black_holes;
    assert!(!holes.is_empty() || !cfg!(target_os = "linux"), "Linux lets connections hang");
    for hole in holes {
        let error = TcpStream::connect_timeout(hole, Duration::from_millis(100)).expect_err("it hangs");
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut, "{hole}");
        Wire::open(&format!("127.0.0.1:{}", hole.port()));
    }
}

#[test]
fn the_control_address_gives_what_was_recorded_and_forgets_it() {
    let peers = Peers::new();
    let mut wire = peers.odd();
    wire.send(peers.purchase("plain.mine", "key-1"));
    wire.answer();
    let address = peers.running.ready().control_url.replace("http://", "").replace('/', "");
    let mut control = Wire::open(&address);
    let mut ask = |method: &str| {
        control.send(format!("{method} / HTTP/1.1\r\nHost: control\r\n\r\n"));
        serde_json::from_str::<Value>(&control.answer().1).expect("JSON")
    };
    let told = ask("GET");
    assert_eq!(told["relayed"][0]["folder"], "plain.mine");
    assert_eq!(told["relayed"][0]["key"], "key-1");
    let nothing = serde_json::json!({ "relayed": [], "logins": [] });
    assert_eq!([ask("DELETE"), ask("GET")], [nothing.clone(), nothing]);
}
