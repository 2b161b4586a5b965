use super::*;
use crate::engine::testing::*;

const SESSION: &str = r#"{"session_type":"dynamic","product_no":"p-1"}"#;
const ORDER: &str = r#"{"poolId":"7","userId":1,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}"#;
const OF_SESSION: &str = r#"{"session_id":"s-1"}"#;

fn job(given: &mut Given, operation: &str, params: &str) -> Job {
    Job::write_then(given.write(operation, params), Then::Follow)
}

fn creating() -> Tell {
    success(r#"{"session_id":"s-1","status":"creating"}"#)
}

/// Each script that reads on after its write, and the inputs that lead there.
fn reading() -> [(Given, Job); 4] {
    let resent = |answer| vec![due(), stored(), lost(), due(), stored(), answer];
    let rows = [
        (Given::agent(), "create_session", SESSION, vec![due(), stored(), creating()]),
        (Given::agent(), "rotate_session", OF_SESSION, resent(creating())),
        (Given::agent(), "terminate_session", OF_SESSION, resent(failure("SESSION_NOT_FOUND", 404))),
        (Given::reseller(), "create_static_order", ORDER, vec![due(), stored(), success(r#"{"orderNo":"o-1"}"#)]),
    ];
    rows.map(|(mut given, operation, params, inputs)| {
        let mut job = job(&mut given, operation, params);
        let said: Vec<String> = inputs.into_iter().map(|input| given.tell_one(&mut job, input)).collect();
        assert_eq!(said.last().map(String::as_str), Some("wake"), "{operation}: {said:?}");
        (given, job)
    })
}

#[test]
fn only_what_can_be_followed_is_followed_whatever_a_record_says() {
    let mut given = Given::agent();
    assert!(matches!(job(&mut given, "create_session", SESSION), Job::OpenSession(_)));
    assert!(matches!(job(&mut given, "rotate_session", OF_SESSION), Job::Change(_)));
    assert!(matches!(job(&mut given, "create_recharge", r#"{"amount":20}"#), Job::Write(_)));
    assert!(matches!(job(&mut Given::reseller(), "create_static_order", ORDER), Job::PlaceOrder(_)));
}

#[test]
fn who_goes_on_with_a_job_brings_other_headers_for_what_it_reads_too() {
    for (mut given, mut job) in reading() {
        job.take_options(vec![("x-mine".to_owned(), "7".to_owned())], given.service.retry, None, None);
        assert!(given.tell_one(&mut job, due()).starts_with("send GET"));
        assert_eq!(given.header("x-mine"), Some("7"));
    }
}

#[test]
fn who_goes_on_with_a_write_brings_other_headers_and_limits() {
    let mut given = Given::agent();
    let mut job = job(&mut given, "create_session", SESSION);
    job.take_options(vec![("x-mine".to_owned(), "7".to_owned())], given.service.retry, Some(3.into()), None);
    assert!(given.tell_one(&mut job, due()).starts_with("send GET /products"));
    assert_eq!(given.header("x-mine"), Some("7"));
    let priced = success(r#"{"items":[{"product_no":"p-1","price":4}]}"#);
    assert_eq!(given.tell(&mut job, [priced]), ["erase: Refused None ReadPrices"]);
}

#[test]
fn who_gives_up_waiting_is_told_what_is_done_by_then() {
    let told = |given: &Given, job: &Job| {
        let error = job.cancelled_error(&given.subject);
        format!("{:?} {:?} {:?}", error.kind, error.effect, error.advice)
    };
    for (given, operation, params) in [
        (Given::agent(), "create_session", SESSION),
        (Given::agent(), "rotate_session", OF_SESSION),
        (Given::reseller(), "create_static_order", ORDER),
    ] {
        let mut given = given;
        let job = job(&mut given, operation, params);
        assert_eq!(told(&given, &job), "Cancelled Unknown Resume", "{operation}");
    }
    let done = ["Cancelled Done ReadSession", "Cancelled Done ReadSession", "Cancelled Unknown Resume", "Cancelled Done WaitOrder"];
    assert_eq!(reading().map(|(given, job)| told(&given, &job)), done);
    let mut given = Given::agent();
    let waits = Job::WaitSession(Box::new(Follow::new(false, Vec::new(), 20_000)));
    assert_eq!(told(&given, &waits), "Cancelled None ReadSession");
    given = Given::reseller();
    let waits = Job::WaitOrder(Box::new(Order::new("o-1".to_owned(), false, Vec::new(), given.service.retry)));
    assert_eq!(told(&given, &waits), "Cancelled None WaitOrder");
}
