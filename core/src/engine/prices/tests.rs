use super::super::testing::*;
use super::*;

const FIRST: &str = "send GET /products?type=dynamic&in_stock=false&limit=100";
const AT_B: &str = "send GET /products?type=dynamic&in_stock=false&limit=100&cursor=b";

fn prices(given: &mut Given) -> Prices {
    given.subject.operation = "create_session";
    let wanted = Wanted { product_no: "p-1".into(), session_type: SessionType::Dynamic, quantity: 1.into(), by_unit: true };
    let mut prices = Prices::new(&wanted, Vec::new(), given.service.retry);
    let action = prices.read(&given.cx());
    assert_eq!(given.say(action), FIRST);
    prices
}

fn more() -> Tell {
    success(r#"{"items":[{"product_no":"p-2","price":1}],"next_cursor":"b"}"#)
}

fn found() -> Tell {
    success(r#"{"items":[{"product_no":"p-1","price":4.10}]}"#)
}

#[test]
fn pages_are_read_until_one_has_the_product() {
    let mut given = Given::agent();
    let mut prices = prices(&mut given);
    assert_eq!(given.tell(&mut prices, [more(), due(), found()]), ["wake", AT_B, "price 4.10"]);
}

#[test]
fn a_product_without_a_price_that_can_be_read_is_not_in_the_list() {
    for (items, says) in [
        (r#"{"items":[{"product_no":"p-1","price":-1}]}"#, "end: Refused None ReadPrices"),
        (r#"{"items":[{"product_no":"p-1"},7,{"product_no":"p-1","price":2}]}"#, "price 2"),
        (r#"{"items":[{"product_no":"p-1","price":2,"currency":null}]}"#, "price 2"),
        (r#"{"items":[{"product_no":"p-1","price":2,"currency":"usd"}]}"#, "price 2"),
        (r#"{"items":[{"product_no":"p-1","price":2,"currency":"EUR"}]}"#, "price in EUR"),
        (r#"{"items":[{"product_no":"p-1","price":2,"currency":978}]}"#, "price in 978"),
        (r#"{"items":[]}"#, "end: Refused None ReadPrices"),
        ("7", "end: Refused None ReadPrices"),
    ] {
        let mut given = Given::agent();
        let mut prices = prices(&mut given);
        assert_eq!(given.tell(&mut prices, [success(items)]), [says], "{items}");
    }
}

#[test]
fn null_in_place_of_the_list_does_not_say_that_the_product_is_not_there() {
    let mut given = Given::agent();
    let mut prices = prices(&mut given);
    let null = || success(r#"{"items":null}"#);
    let said = given.tell(&mut prices, [null(), due(), null(), due(), null(), due(), null()]);
    assert_eq!((said[0].as_str(), said.last().map(String::as_str)), ("wake", Some("end: Unavailable None RetryLater")), "{said:?}");
    assert!(given.what().contains("had no list"), "{}", given.what());
}

#[test]
fn a_list_that_names_the_same_page_again_or_never_ends_is_not_read_for_ever() {
    let mut given = Given::agent();
    let mut prices = prices(&mut given);
    assert_eq!(given.tell(&mut prices, [more(), due(), more()]), ["wake", AT_B, "end: Refused None ReadPrices"]);
    assert!(given.what().contains("repeated a page"), "{}", given.what());
    let other = success(r#"{"items":[],"next_cursor":"c"}"#);
    let mut prices = self::prices(&mut given);
    for page in 1..20 {
        let next = if page % 2 == 1 { more() } else { other.clone() };
        assert_eq!(given.tell(&mut prices, [next])[0], "wake", "page {page}");
        given.tell(&mut prices, [due()]);
    }
    assert_eq!(given.tell(&mut prices, [other]), ["end: Refused None ReadPrices"]);
    assert!(given.what().contains("first 20 pages"), "{}", given.what());
}

#[test]
fn a_failure_begins_the_list_anew_since_a_cursor_may_not_outlive_it() {
    let mut given = Given::agent();
    let mut prices = prices(&mut given);
    assert_eq!(given.tell(&mut prices, [more(), due(), lost(), due()]), ["wake", AT_B, "wake", FIRST]);
    assert_eq!(given.tell(&mut prices, [more(), due(), found()]), ["wake", AT_B, "price 4.10"]);
}

#[test]
fn each_page_has_all_attempts_and_they_end_with_nothing_bought() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut prices = prices(&mut given);
    assert_eq!(given.tell(&mut prices, [lost(), due(), more(), due()]), ["wake", FIRST, "wake", AT_B]);
    assert_eq!(given.tell(&mut prices, [lost(), due(), lost()]), ["wake", FIRST, "end: Unavailable None RetryLater"]);
    let mut prices = self::prices(&mut given);
    assert_eq!(given.tell(&mut prices, [more(), due(), lost(), due(), more(), due()]), ["wake", AT_B, "wake", FIRST, "wake", AT_B]);
    assert_eq!(given.tell(&mut prices, [lost()]), ["end: Unavailable None RetryLater"]);
    let mut prices = self::prices(&mut given);
    assert_eq!(given.tell(&mut prices, [failure("AUTH_INVALID_KEY", 401)]), ["end: Refused None Stop"]);
}

#[test]
fn a_host_that_came_too_late_has_not_used_up_an_attempt() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut prices = prices(&mut given);
    let said = given.tell(&mut prices, [late(), due(), late(), due(), lost(), due(), found()]);
    assert_eq!(said, ["wake", FIRST, "wake", FIRST, "wake", FIRST, "price 4.10"]);
}

#[test]
fn a_throttle_is_waited_for_as_long_as_a_call_may_take_and_a_longer_one_is_said_now() {
    let mut given = Given::agent();
    let mut prices = prices(&mut given);
    assert_eq!(given.tell(&mut prices, [failure("RATE_LIMIT_EXCEEDED", 429).retry_after(20)]), ["wake"]);
    assert_eq!(given.wait(), 20_000);
    given.shared.gate.close(30_000, 0);
    assert_eq!(given.tell(&mut prices, [due()]), ["wake"]);
    assert_eq!(given.wait(), 10_000);
    given.shared.gate.close(90_001, 0);
    assert_eq!(given.tell(&mut prices, [due()]), ["end: Unavailable None Wait"]);
    assert_eq!(given.error.and_then(|error| error.retry_at), Some(START + 90_001));
}

#[test]
fn the_callers_headers_go_with_it_and_one_that_can_not_be_sent_ends_it() {
    let mut given = Given::agent();
    let mut prices = prices(&mut given);
    assert_eq!(given.tell(&mut prices, [unsendable()]), ["end: Invalid None ChangeRequest"]);
}
