use super::super::testing::*;
use super::*;

fn order(given: &mut Given, placed: bool) -> Order {
    given.subject.operation = "wait_static_order";
    Order::new("o-1".to_owned(), placed, Vec::new(), given.service.retry)
}

fn is(status: &str) -> Tell {
    match status {
        "active" => success(r#"{"items":[{"orderNo":"o-1","status":"active"}]}"#),
        "processing" => success(r#"{"items":[{"orderNo":"o-1","status":"processing"}]}"#),
        _ => success(r#"{"items":[{"orderNo":"o-1","status":"odd"}]}"#),
    }
}

fn none() -> Tell {
    success(r#"{"items":[]}"#)
}

#[test]
fn an_order_is_read_until_it_is_usable_and_each_status_is_reported_once() {
    let mut given = Given::reseller();
    let mut order = order(&mut given, true);
    let said = given.tell(&mut order, [due(), none(), due(), is("processing"), due(), is("processing"), due(), is("active")]);
    assert_eq!(said[1..].iter().step_by(2).collect::<Vec<_>>(), ["wake", "wake", "wake", "end: done Ready"]);
    assert_eq!(given.notes(), ["event order_status", "event order_status"]);
    let answered = given.answered.expect("it ended");
    assert_eq!(answered.facts.status.as_deref(), Some("active"));
    // Each read is a call of its own.
    assert_eq!((answered.http_status, answered.attempts), (Some(200), 1));
    assert!(answered.raw.text().contains(r#""items":[{"orderNo":"o-1","status":"active"}]"#), "{}", answered.raw.text());
}

#[test]
fn a_status_that_the_caller_named_ends_it() {
    let mut given = Given::reseller();
    given.wants.session_options.ends = vec!["odd".to_owned()].into();
    let mut order = order(&mut given, true);
    assert_eq!(given.tell(&mut order, [due(), is("odd")])[1], "end: done Ended");
}

#[test]
fn at_the_deadline_one_last_read_is_made_and_the_order_is_not_dropped() {
    let mut given = Given::reseller();
    given.wants.deadline_ms = 500;
    let mut order = order(&mut given, true);
    assert_eq!(given.tell(&mut order, [due(), is("processing")])[1], "wake");
    assert_eq!(given.wait(), 500);
    assert_eq!(given.tell(&mut order, [due(), none()])[1], "end: done Pending");
}

#[test]
fn each_read_has_all_attempts_and_one_that_fails_never_loses_the_order() {
    let mut given = Given::reseller();
    given.service.retry.attempts = 1;
    let mut order = order(&mut given, true);
    for answer in [lost(), page(502), failure("1", 500), failure("500", 200), page(200)] {
        assert_eq!(given.tell(&mut order, [due(), answer])[1], "wake");
    }
    assert_eq!(given.tell(&mut order, [due(), is("active")])[1], "end: done Ready");
}

#[test]
fn a_read_that_is_refused_says_that_the_order_was_placed() {
    for (placed, outlives, ends) in [
        (true, true, "rest: Refused Done WaitOrder"),
        (true, false, "end: Refused Done WaitOrder"),
        (false, false, "end: Refused None ChangeRequest"),
    ] {
        let mut given = Given::reseller();
        let mut order = order(&mut given, placed);
        order.outlives_wait = outlives;
        assert_eq!(given.tell(&mut order, [due(), failure("1", 400)])[1], ends);
        assert_eq!(given.what().starts_with("was placed, but could not be read"), placed, "{}", given.what());
    }
    let mut given = Given::reseller();
    given.shared.tokens.credentials = None;
    let mut order = order(&mut given, true);
    assert_eq!(given.tell(&mut order, [due(), failure("1", 401)])[1], "end: Refused Done Reauthenticate");
}

#[test]
fn a_throttle_beyond_the_deadline_ends_it_with_what_is_known() {
    let mut given = Given::reseller();
    given.wants.deadline_ms = 10_000;
    let mut order = order(&mut given, true);
    order.status = Some("processing".to_owned());
    assert_eq!(given.tell(&mut order, [due(), failure("1", 429).retry_after(11)])[1], "end: done Pending");
    // A read that ends with the deadline leaves time for the last one.
    let mut given = Given::reseller();
    (given.wants.deadline_ms, given.service.retry.attempts) = (10_000, 1);
    let mut order = self::order(&mut given, true);
    assert_eq!(given.tell(&mut order, [due(), failure("1", 429).retry_after(10)])[1], "wake");
    assert_eq!(given.wait(), 10_000);
}

#[test]
fn an_order_that_only_a_person_named_and_the_service_does_not_show_stays_in_doubt() {
    let mut given = Given::reseller();
    given.wants.deadline_ms = 0;
    let mut order = order(&mut given, true);
    (order.unconfirmed, order.outlives_wait) = (true, true);
    assert_eq!(given.tell(&mut order, [due(), none()])[1], "rest: InDoubt Unknown CheckAccount");
    order.resume(&mut given.cx());
    assert_eq!(given.tell(&mut order, [due(), is("processing")])[1], "end: done Pending");
    assert_eq!(given.notes(), ["order shown", "event order_status"]);
}

#[test]
fn waiting_that_was_given_up_leaves_the_order_alone() {
    for (outlives, sent, input, ends) in [
        (true, false, due(), "rest: Cancelled Done WaitOrder"),
        (false, false, due(), "end: Cancelled Done WaitOrder"),
        (false, true, lost(), "end: Cancelled Done WaitOrder"),
        (false, true, is("processing"), "end: Cancelled Done WaitOrder"),
        (false, true, is("active"), "end: done Ready"),
    ] {
        let mut given = Given::reseller();
        let mut order = order(&mut given, true);
        order.outlives_wait = outlives;
        if sent {
            given.tell(&mut order, [due()]);
        }
        given.wanted = false;
        assert_eq!(given.tell(&mut order, [input]), [ends]);
    }
}

#[test]
fn an_order_that_only_a_person_named_is_kept_by_its_intent_once_the_service_shows_it() {
    for (intent, ends) in [(None, "rest: Cancelled Done WaitOrder"), (Some("job-17"), "end: Cancelled Done WaitOrder")] {
        let mut given = Given::reseller();
        given.subject.intent = intent.map(arcstr::ArcStr::from);
        let mut order = order(&mut given, true);
        (order.unconfirmed, order.outlives_wait) = (true, true);
        assert_eq!(given.tell(&mut order, [due(), is("processing")])[1], "wake");
        given.wanted = false;
        assert_eq!(given.tell(&mut order, [due()]), [ends]);
    }
}

#[test]
fn who_follows_it_again_reads_it_soon_again() {
    let mut given = Given::reseller();
    let mut order = order(&mut given, true);
    given.tell(&mut order, [due(), none(), due(), none(), due(), none()]);
    assert!(given.wait() > 2000);
    order.resume(&mut given.cx());
    given.tell(&mut order, [due(), none()]);
    assert!((900..=1100).contains(&given.wait()));
}

#[test]
fn the_number_of_an_order_is_not_empty_and_fits_a_request() {
    assert_eq!(["o-1", ""].map(bad_order_no), [None, Some("must not be empty")]);
    assert_eq!(bad_order_no(&"x".repeat(1 << 20)), Some("is too long"));
}

/// A full page of items, of which those with this status are of the order.
fn full(status: &str) -> Tell {
    let item = format!(r#"{{"orderNo":"o-1","status":"{status}"}}"#);
    let items = vec![item.as_str(); 100].join(",");
    success(Box::leak(format!(r#"{{"items":[{items}]}}"#).into_boxed_str()))
}

#[test]
fn full_pages_are_turned_before_the_order_is_judged() {
    let mut given = Given::reseller();
    let mut order = order(&mut given, true);
    let said = given.tell(&mut order, [due(), full("active"), due(), is("processing")]);
    assert!(said[2].contains("page=2&"), "{said:?}");
    assert_eq!(said[3], "wake");
    assert_eq!(order.status.as_deref(), Some("processing"));
    // The next read begins with the first page.
    assert!(!given.tell(&mut order, [due()])[0].contains("page="));
}

#[test]
fn a_service_that_takes_no_notice_of_the_page_is_not_asked_for_ever() {
    let mut given = Given::reseller();
    let mut order = order(&mut given, true);
    assert_eq!(given.tell(&mut order, [due(), full("active"), due(), full("active")])[3], "end: done Ready");
    let known: serde_json::Value = given.answered.expect("it ended").raw.read().expect("an order is JSON");
    assert_eq!(known.get("items").and_then(|items| items.as_array()).map(Vec::len), Some(100));
}

#[test]
fn an_order_is_read_no_further_than_there_is_room_for_its_items() {
    let page = 100 * r#"{"orderNo":"o-1","status":"odd"}"#.len();
    for (beyond, turns) in [(0, true), (1, false)] {
        let mut given = Given::reseller();
        let mut order = order(&mut given, true);
        let item = format!("\"{}\"", "x".repeat(MAX_BYTES - page - 2 + beyond));
        order.pages.items = vec![item.parse().expect("a text is JSON")];
        assert_eq!(given.tell(&mut order, [due(), full("odd")])[1], "wake");
        assert_eq!(given.wait() == 0, turns, "{beyond}");
    }
}

#[test]
fn an_order_is_read_no_further_than_twenty_pages() {
    let mut given = Given::reseller();
    let mut order = order(&mut given, true);
    for page in 1..20 {
        assert_eq!(given.tell(&mut order, [due(), full(&format!("odd-{page}"))])[1], "wake", "page {page}");
        assert_eq!(given.wait(), 0);
    }
    assert_eq!(given.tell(&mut order, [due(), full("active")])[1], "wake");
    assert!(given.wait() > 0);
}

#[test]
fn an_order_has_no_status_while_some_of_its_items_have_none_yet() {
    let active = r#"{"orderNo":"o","status":"active"}"#;
    for (other, expected) in [
        (r#"{"orderNo":"o"}"#, None),
        (r#"{"orderNo":"o","status":null}"#, None),
        (r#"{"orderNo":"o","status":"odd"},{"orderNo":"o"}"#, Some("odd")),
        (active, Some("active")),
    ] {
        for items in [format!("[{active},{other}]"), format!("[{other},{active}]")] {
            assert_eq!(status_of(&found(&format!(r#"{{"items":{items}}}"#), "o")).as_deref(), expected, "{items}");
        }
    }
}

#[test]
fn an_order_is_known_by_its_number_in_either_spelling() {
    let list = r#"{"items":[{"orderNo":"7","status":"active"},{"order_no":7,"status":2},{"orderNo":"b","status":{}},{"x":1},7]}"#;
    let items = found(list, "7");
    assert_eq!((status_of(&items).as_deref(), items.len()), (Some("2"), 2));
    assert_eq!((status_of(&found(list, "b")), found(list, "b").len()), (None, 1));
    assert_eq!(found("[]", "a").len() + found(list, "c").len(), 0);
}
