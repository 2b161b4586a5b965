//! Renewal and cancellation of static orders.

use crate::agent_harness::DAY;
use crate::reseller_harness::{PLACE, ResellerHarness, order};

const RENEW: &str = "/open/app/static/order/renew";

fn placed() -> (ResellerHarness, u64, String) {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    let number = reseller.granted("POST", PLACE, &order(ann, "static-us", r#","ipCount":2"#))["orderNo"].as_str().unwrap().to_owned();
    (reseller, ann, number)
}

fn ends(reseller: &mut ResellerHarness, number: &str) -> Vec<String> {
    let order = reseller.order(number);
    order["instances"].as_array().unwrap().iter().map(|instance| instance["expires_at"].as_str().unwrap()[..10].to_owned()).collect()
}

#[test]
fn a_renewal_of_thirty_days_is_one_month_for_all_instances() {
    for terms in [r#""duration":30,"unit":1,"cycleTimes":1"#, r#""duration":1,"unit":3"#, r#""instances":[]"#] {
        let (mut reseller, ann, number) = placed();
        let id = reseller.order(&number)["id"].clone();
        for target in [
            format!(r#""order_no":"{number}""#),
            format!(r#""orderNo":"{number}""#),
            format!(r#""order_id":{id}"#),
            format!(r#""order_id":"{id}""#),
        ] {
            let before = reseller.balance_of(ann).parse::<u32>().unwrap();
            if before < 20 {
                reseller.agent.service.set_balance(50.into());
                let top_up = r#"{"amount":20,"remark":"again"}"#;
                reseller.granted("POST", &format!("/open/app/agent/sub-users/{ann}/balance"), top_up);
            }
            let renewed = reseller.granted("POST", RENEW, &format!("{{{target},{terms}}}"));
            assert_eq!((&renewed["order_no"], renewed["total_amount"].to_string()), (&number.as_str().into(), "20".to_owned()));
            assert_eq!(renewed["renewed"].as_array().unwrap().len(), 2);
        }
        assert_eq!(ends(&mut reseller, &number), ["2024-04-12", "2024-04-12"]);
    }
}

#[test]
fn some_instances_are_renewed_and_the_order_stays_active_with_them() {
    let (mut reseller, ann, number) = placed();
    let id = reseller.order(&number)["instances"][1]["instance_id"].as_str().unwrap().to_owned();
    let renewed = reseller.granted("POST", RENEW, &format!(r#"{{"order_no":"{number}","instances":["{id}"],"duration":2,"unit":3}}"#));
    assert_eq!((&renewed["renewed"], reseller.balance_of(ann)), (&serde_json::json!([id]), "10".to_owned()));
    assert_eq!(ends(&mut reseller, &number), ["2023-12-14", "2024-02-12"]);
    reseller.pass(31 * DAY);
    let order = reseller.order(&number);
    assert_eq!((&order["status"], &order["instances"][0]["status"]), (&"active".into(), &"expired".into()));
}

#[test]
fn a_renewal_after_the_end_counts_from_now() {
    let (mut reseller, _, number) = placed();
    reseller.pass(40 * DAY);
    assert_eq!(reseller.order(&number)["status"], "expired");
    assert_eq!(reseller.granted("POST", RENEW, &format!(r#"{{"orderNo":"{number}"}}"#))["status"], "active");
    assert_eq!(ends(&mut reseller, &number), ["2024-01-23", "2024-01-23"]);
}

#[test]
fn a_renewal_is_refused_with_the_field_and_the_rule() {
    let (mut reseller, _, number) = placed();
    for (body, field) in [
        ("{}".to_owned(), "order_no"),
        (r#"{"order_no":7}"#.to_owned(), "order_no"),
        (r#"{"order_id":"x"}"#.to_owned(), "order_id"),
        (format!(r#"{{"order_no":"{number}","orderNo":"other"}}"#), "order_no"),
        (format!(r#"{{"order_no":"{number}","order_id":5001}}"#), "order_id"),
        (format!(r#"{{"order_no":"{number}","unit":5}}"#), "unit"),
        (format!(r#"{{"order_no":"{number}","duration":0}}"#), "duration"),
        (format!(r#"{{"order_no":"{number}","instances":["other"]}}"#), "instances"),
        (format!(r#"{{"order_no":"{number}","instances":"all"}}"#), "instances"),
        (format!(r#"{{"order_no":"{number}","duration":9223372036854775807}}"#), "duration"),
    ] {
        assert_eq!(reseller.call("POST", RENEW, &body).wrong(), field, "{body}");
    }
    assert_eq!(reseller.call("POST", RENEW, r#"{"order_no":"none"}"#).refused(), 404);
    assert_eq!(reseller.call("POST", RENEW, &format!(r#"{{"order_no":"{number}","cycleTimes":3}}"#)).refused(), 402);
}

#[test]
fn cancelling_before_the_order_is_made_gives_its_cost_back_and_later_does_not() {
    let mut reseller = ResellerHarness::with(|config| config.provisioning_ms = 1000..=1000);
    let ann = reseller.user("ann", 10);
    let cancel = |number: &str| format!("/open/app/static/order/{number}/cancel");
    let first = reseller.place(ann, "");
    assert_eq!(reseller.granted("POST", &cancel(&first), "")["status"], "cancelled");
    assert_eq!(reseller.balance_of(ann), "10");
    let second = reseller.place(ann, "");
    reseller.agent.now += 1000;
    let instance = reseller.order(&second)["instances"][0].clone();
    let (name, word) = (instance["username"].as_str().unwrap(), instance["password"].as_str().unwrap());
    assert!(reseller.agent.service.exit_of(name, word, reseller.agent.now).is_some());
    reseller.granted("POST", &cancel(&second), "");
    assert_eq!(reseller.balance_of(ann), "0");
    assert!(reseller.agent.service.exit_of(name, word, reseller.agent.now).is_none());
    assert_eq!(reseller.call("POST", &cancel(&second), "").refused(), 422);
    assert_eq!(reseller.call("POST", RENEW, &format!(r#"{{"order_no":"{second}"}}"#)).refused(), 422);
    assert_eq!(reseller.call("POST", &cancel("none"), "").refused(), 404);
}
