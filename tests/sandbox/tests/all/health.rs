//! Telemetry, and the health that follows from it.

use crate::agent_harness::{AgentHarness, DYNAMIC, STATIC};

fn report(agent: &mut AgentHarness, id: &str, event: &str) {
    let answer = agent.call("POST", &format!("/sessions/{id}/report-event"), event);
    assert_eq!((answer.status, &answer.data()["recorded"]), (200, &true.into()), "{}", answer.json);
}

fn health(agent: &mut AgentHarness, id: &str) -> serde_json::Value {
    let answer = agent.get(&format!("/sessions/{id}/health"));
    assert_eq!(answer.status, 200);
    answer.data().clone()
}

#[test]
fn events_of_any_shape_are_counted() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(DYNAMIC);
    for event in ["{}", r#"{"a":[{"b":null}],"status":200,"success":true}"#, r#"{"status":"odd","event":7,"success":"no"}"#] {
        report(&mut agent, &id, event);
    }
    let health = health(&mut agent, &id);
    assert_eq!((&health["metrics"]["events"], &health["metrics"]["bad_events"]), (&3.into(), &0.into()));
    assert_eq!((&health["status"], &health["rotation"]["recommended"]), (&"healthy".into(), &false.into()));
}

#[test]
fn an_event_is_an_object_and_the_session_is_the_callers() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(DYNAMIC);
    let path = format!("/sessions/{id}/report-event");
    for body in ["", "[]", "7", "null", "\"x\"", "{"] {
        assert_eq!(agent.call("POST", &path, body).field(), "body", "{body}");
    }
    let (_, key) = agent.register("Ann");
    for (method, path, body) in [("POST", path, "{}"), ("GET", format!("/sessions/{id}/health"), "")] {
        assert_eq!(agent.as_account(&key, method, &path, body).refusal(), (404, "SESSION_NOT_FOUND"));
    }
    assert_eq!(agent.call("POST", "/sessions/none/report-event", "{}").refusal(), (404, "SESSION_NOT_FOUND"));
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
        let mut agent = AgentHarness::new();
        let id = agent.buy(DYNAMIC);
        for _ in 0..2 {
            report(&mut agent, &id, event);
            assert_eq!(health(&mut agent, &id)["rotation"], serde_json::json!({"recommended": false, "reason": null}));
        }
        report(&mut agent, &id, event);
        let now = health(&mut agent, &id);
        assert_eq!(now["rotation"], serde_json::json!({"recommended": true, "reason": reason}));
        assert_eq!(now["status"], "degraded");
        assert_eq!(agent.get(&format!("/sessions/{id}")).data()["health"]["status"], "degraded");
    }
}

#[test]
fn a_rotation_or_a_good_event_ends_the_row() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(DYNAMIC);
    for end in ["rotate", "good"] {
        (0..3).for_each(|_| report(&mut agent, &id, r#"{"status":403}"#));
        assert_eq!(health(&mut agent, &id)["status"], "degraded");
        match end {
            "rotate" => drop(agent.call("POST", &format!("/sessions/{id}/rotate"), "")),
            _ => report(&mut agent, &id, r#"{"status":200}"#),
        }
        assert_eq!(health(&mut agent, &id)["status"], "healthy", "{end}");
    }
    assert_eq!(health(&mut agent, &id)["metrics"]["bad_events"], 6);
}

#[test]
fn what_can_not_be_rotated_is_not_recommended_to_be() {
    let mut agent = AgentHarness::new();
    let (fixed, ended) = (agent.buy(STATIC), agent.buy(DYNAMIC));
    agent.call("DELETE", &format!("/sessions/{ended}"), "");
    for (id, status) in [(fixed, "degraded"), (ended, "unavailable")] {
        (0..3).for_each(|_| report(&mut agent, &id, r#"{"event":"block"}"#));
        let health = health(&mut agent, &id);
        assert_eq!((&health["rotation"]["recommended"], health["status"].as_str()), (&false.into(), Some(status)));
    }
}

#[test]
fn an_event_is_counted_as_often_as_it_comes() {
    let mut agent = AgentHarness::new();
    let id = agent.buy(DYNAMIC);
    for _ in 0..2 {
        agent.keyed(&format!("/sessions/{id}/report-event"), "k", "{}");
    }
    assert_eq!(health(&mut agent, &id)["metrics"]["events"], 2);
}
