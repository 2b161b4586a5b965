//! Telemetry, and the health that follows from it.

use crate::desk::{DYNAMIC, Desk, STATIC};

fn report(desk: &mut Desk, id: &str, event: &str) {
    let answer = desk.call("POST", &format!("/sessions/{id}/report-event"), event);
    assert_eq!((answer.status, &answer.data()["recorded"]), (200, &true.into()), "{}", answer.json);
}

fn health(desk: &mut Desk, id: &str) -> serde_json::Value {
    let answer = desk.get(&format!("/sessions/{id}/health"));
    assert_eq!(answer.status, 200);
    answer.data().clone()
}

#[test]
fn events_of_any_shape_are_counted() {
    let mut desk = Desk::new();
    let id = desk.buy(DYNAMIC);
    for event in ["{}", r#"{"a":[{"b":null}],"status":200,"success":true}"#, r#"{"status":"odd","event":7,"success":"no"}"#] {
        report(&mut desk, &id, event);
    }
    let health = health(&mut desk, &id);
    assert_eq!((&health["metrics"]["events"], &health["metrics"]["bad_events"]), (&3.into(), &0.into()));
    assert_eq!((&health["status"], &health["rotation"]["recommended"]), (&"healthy".into(), &false.into()));
}

#[test]
fn an_event_is_an_object_and_the_session_is_the_callers() {
    let mut desk = Desk::new();
    let id = desk.buy(DYNAMIC);
    let path = format!("/sessions/{id}/report-event");
    for body in ["", "[]", "7", "null", "\"x\"", "{"] {
        assert_eq!(desk.call("POST", &path, body).field(), "body", "{body}");
    }
    let (_, key) = desk.register("Ann");
    for (method, path, body) in [("POST", path, "{}"), ("GET", format!("/sessions/{id}/health"), "")] {
        assert_eq!(desk.as_account(&key, method, &path, body).refusal(), (404, "SESSION_NOT_FOUND"));
    }
    assert_eq!(desk.call("POST", "/sessions/none/report-event", "{}").refusal(), (404, "SESSION_NOT_FOUND"));
}

#[test]
fn three_bad_events_in_a_row_recommend_a_rotation_for_the_last_reason() {
    for (event, reason) in [
        (r#"{"status":403}"#, "http_403"),
        (r#"{"status":429}"#, "http_429"),
        (r#"{"status":504}"#, "timeout"),
        (r#"{"status":500}"#, "block"),
        (r#"{"success":false}"#, "block"),
        (r#"{"outcome":"captcha","status":200}"#, "captcha"),
    ] {
        let mut desk = Desk::new();
        let id = desk.buy(DYNAMIC);
        for _ in 0..2 {
            report(&mut desk, &id, event);
            assert_eq!(health(&mut desk, &id)["rotation"], serde_json::json!({"recommended": false, "reason": null}));
        }
        report(&mut desk, &id, event);
        let now = health(&mut desk, &id);
        assert_eq!(now["rotation"], serde_json::json!({"recommended": true, "reason": reason}));
        assert_eq!(now["status"], "degraded");
        assert_eq!(desk.get(&format!("/sessions/{id}")).data()["health"]["status"], "degraded");
    }
}

#[test]
fn a_rotation_or_a_good_event_ends_the_row() {
    let mut desk = Desk::new();
    let id = desk.buy(DYNAMIC);
    for end in ["rotate", "good"] {
        (0..3).for_each(|_| report(&mut desk, &id, r#"{"status":403}"#));
        assert_eq!(health(&mut desk, &id)["status"], "degraded");
        match end {
            "rotate" => drop(desk.call("POST", &format!("/sessions/{id}/rotate"), "")),
            _ => report(&mut desk, &id, r#"{"status":200}"#),
        }
        assert_eq!(health(&mut desk, &id)["status"], "healthy", "{end}");
    }
    assert_eq!(health(&mut desk, &id)["metrics"]["bad_events"], 6);
}

#[test]
fn what_can_not_be_rotated_is_not_recommended_to_be() {
    let mut desk = Desk::new();
    let (fixed, ended) = (desk.buy(STATIC), desk.buy(DYNAMIC));
    desk.call("DELETE", &format!("/sessions/{ended}"), "");
    for (id, status) in [(fixed, "degraded"), (ended, "unavailable")] {
        (0..3).for_each(|_| report(&mut desk, &id, r#"{"event":"block"}"#));
        let health = health(&mut desk, &id);
        assert_eq!((&health["rotation"]["recommended"], health["status"].as_str()), (&false.into(), Some(status)));
    }
}

#[test]
fn an_event_is_counted_as_often_as_it_comes() {
    let mut desk = Desk::new();
    let id = desk.buy(DYNAMIC);
    for _ in 0..2 {
        desk.keyed(&format!("/sessions/{id}/report-event"), "k", "{}");
    }
    assert_eq!(health(&mut desk, &id)["metrics"]["events"], 2);
}
