//! The cost of a purchase: the caller's limit, the price of the list, and the day's cap.

use super::*;
use crate::engine::cost::PRICE_FIELD;

#[test]
fn under_a_limit_the_price_is_read_first_and_again_when_it_has_changed() {
    let mut given = Given::agent();
    let mut write = given.write_within("create_session", DYNAMIC, Some("5"), None);
    assert_eq!(given.tell(&mut write, [due(), at_4(), due(), stored()]), [LIST, "wake", "put", SEND_1]);
    let said = given.tell(&mut write, [failure("PRICE_MISMATCH", 409), due(), at_4(), due(), stored()]);
    assert_eq!(said, ["wake", LIST, "wake", "put", SEND_2]);
    assert_eq!(given.notes(), ["event priced", "event repeating", "event priced"]);
}

#[test]
fn a_price_above_the_limit_is_not_paid() {
    let mut given = Given::agent();
    let mut write = given.write_within("create_session", DYNAMIC, Some("3.99"), None);
    assert_eq!(given.tell(&mut write, [due(), at_4()]), [LIST, "erase: Refused None ReadPrices"]);
    let mut write = given.write_within("create_session", DYNAMIC, Some("4"), None);
    assert_eq!(given.tell(&mut write, [due(), at_4(), due()]), [LIST, "wake", "put"]);
}

#[test]
fn a_key_that_was_sent_is_asked_about_whatever_things_cost_by_now() {
    let mut given = Given::agent();
    let mut write = given.write_within("create_session", DYNAMIC, Some("5"), None);
    given.tell(&mut write, [due(), at_4(), due(), stored(), lost()]);
    write.take_options(Vec::new(), given.service.retry, Some("1".parse().expect("a number")), None);
    assert_eq!(given.tell(&mut write, [due(), stored()]), ["put", SEND_1]);
}

#[test]
fn a_price_in_another_currency_needs_the_callers_word_and_that_is_held_against_the_limit() {
    let euros = || success(r#"{"items":[{"product_no":"p-1","price":4,"currency":"EUR"}]}"#);
    // The purchase is of two units at 5 at most.
    for (said, asks) in
        [(None, "erase: Invalid None ChangeRequest"), (Some("10"), "wake"), (Some("10.01"), "erase: Refused None ReadPrices")]
    {
        let mut given = Given::agent();
        let mut write = given.write_within("create_session", DYNAMIC, Some("5"), said);
        assert_eq!(given.tell(&mut write, [due(), euros()]), [LIST, asks]);
        let field = given.error.and_then(|error| error.into_fields().field);
        assert_eq!(field.as_deref(), said.is_none().then_some(PRICE_FIELD));
    }
}

#[test]
fn under_a_cap_a_purchase_is_priced_and_counted_before_it_is_put_and_charged_when_it_is_answered() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let mut write = purchase(&mut given);
    let said = given.tell(&mut write, [due(), at_4(), due(), counted(), stored(), success(BOUGHT)]);
    assert_eq!(said, [LIST, "wake", "count 8", "put", SEND_1, "end: done"]);
    assert_eq!(given.notes(), ["event priced", "charged 7.90 of 8", "event charged"]);
}

#[test]
fn a_new_key_is_priced_and_counted_like_the_first() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let mut write = given.write_within("create_session", DYNAMIC, Some("5"), None);
    given.tell(&mut write, [due(), at_4(), due(), counted(), stored()]);
    // The key is settled and has bought nothing: its entry is free.
    let at_5 = success(r#"{"items":[{"product_no":"p-1","price":5}]}"#);
    let said = given.tell(&mut write, [failure("PRICE_MISMATCH", 409), due(), at_5, due(), counted(), stored()]);
    assert_eq!(said, ["wake", LIST, "wake", "count 10", "put", SEND_2]);
    assert_eq!(given.notes(), ["event priced", "freed 8", "event repeating", "event priced"]);
}

#[test]
fn a_key_that_may_have_bought_stays_counted_beside_the_next_one() {
    let mut given = Given::agent();
    (given.day, given.service.retry.retry_paid) = (Some(TODAY), true);
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), at_4(), due(), counted(), stored()]);
    let said = given.tell(&mut write, [failure("BACKEND_ERROR", 502), due(), at_4(), due(), counted(), stored()]);
    assert_eq!(said, ["wake", LIST, "wake", "count 8", "put", SEND_2]);
    assert_eq!(write.terms.counted.len(), 2);
    assert!(!given.notes().contains(&"freed 8".to_owned()));
}

#[test]
fn a_key_that_is_sent_on_another_day_counts_on_that_day() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), at_4(), due(), counted(), stored(), lost()]);
    given.day = Some(TODAY + 1);
    assert_eq!(given.tell(&mut write, [due()]), ["count 8"]);
    // Midnight may also pass while the store counts it, or while its record is put.
    let mut write = purchase(&mut given);
    given.day = Some(TODAY);
    given.tell(&mut write, [due(), at_4(), due()]);
    given.day = Some(TODAY + 1);
    assert_eq!(given.tell(&mut write, [counted(), stored(), due()]), ["put", "wake", "count 8"]);
    let mut write = purchase(&mut given);
    given.day = Some(TODAY);
    given.tell(&mut write, [due(), at_4(), due(), counted()]);
    given.day = Some(TODAY + 1);
    assert_eq!(given.tell(&mut write, [stored(), due()]), ["wake", "count 8"]);
}

/// Our clock may be wrong, so that the store's day ends at a time that this client does not know.
#[test]
fn a_grant_is_good_for_a_minute() {
    for (seconds, said) in [(59, SEND_1), (61, "wake")] {
        let mut given = Given::agent();
        given.day = Some(TODAY);
        let mut write = purchase(&mut given);
        given.tell(&mut write, [due(), at_4(), due(), counted()]);
        given.pass(1000 * seconds);
        assert_eq!(given.tell(&mut write, [stored()]), [said], "{seconds}");
        if seconds > 60 {
            assert_eq!(given.tell(&mut write, [due()]), ["count 8"]);
        }
    }
}

#[test]
fn what_the_cap_forbids_is_not_sent_and_what_was_sent_before_stays_in_doubt() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let over = || denied(Kind::Refused, "would pass the cap");
    let mut write = purchase(&mut given);
    assert_eq!(given.tell(&mut write, [due(), at_4(), due(), over()])[3], "erase: Refused None Stop");
    let mut write = purchase(&mut given);
    assert_eq!(given.tell(&mut write, [due(), at_4(), due(), denied(Kind::Store, "full")])[3], "erase: Store None MendStore");
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), at_4(), due(), counted(), stored(), lost()]);
    given.day = Some(TODAY + 1);
    assert_eq!(given.tell(&mut write, [due(), over()]), ["count 8", DOUBT]);
}

#[test]
fn without_a_price_nothing_is_bought_under_a_cap() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let renewal = r#"{"session_id":"s-1","duration":1}"#;
    let mut write = given.write("renew_session", renewal);
    assert_eq!(given.tell(&mut write, [due()]), ["erase: Invalid None ChangeRequest"]);
    let mut write = given.write_within("renew_session", renewal, None, Some("3"));
    assert_eq!(given.tell(&mut write, [due(), counted()]), ["count 3", "put"]);
}

#[test]
fn the_callers_word_does_not_make_the_price_of_the_list_less() {
    for (said, counts) in [("1", "count 8"), ("9", "count 9")] {
        let mut given = Given::agent();
        given.day = Some(TODAY);
        let mut write = given.write_within("create_session", DYNAMIC, Some("5"), Some(said));
        assert_eq!(given.tell(&mut write, [due(), at_4(), due()]), [LIST, "wake", counts]);
    }
}

#[test]
fn a_second_key_that_was_refused_counts_no_more_beside_a_first_one_that_may_have_bought() {
    let mut given = Given::agent();
    (given.day, given.service.retry.retry_paid) = (Some(TODAY), true);
    let mut write = given.write_within("create_session", DYNAMIC, Some("5"), None);
    given.tell(&mut write, [due(), at_4(), due(), counted(), stored()]);
    given.tell(&mut write, [failure("BACKEND_ERROR", 502), due(), at_4(), due(), counted(), stored()]);
    given.notes();
    let said = given.tell(&mut write, [failure("PRICE_MISMATCH", 409), due(), at_4(), due(), counted(), stored()]);
    assert_eq!(said, ["wake", LIST, "wake", "count 8", "put", "send POST /sessions key 3"]);
    assert_eq!(given.notes()[..2], ["freed 8", "event repeating"]);
    assert_eq!(write.terms.counted.len(), 2);
}

#[test]
fn a_key_counts_no_more_if_it_was_never_sent_or_its_own_answer_says_that_it_bought_nothing() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let mut write = purchase(&mut given);
    given.tell(&mut write, [due(), at_4(), due(), counted()]);
    assert!(!write.clone().take_unspent().is_empty());
    given.tell(&mut write, [stored()]);
    for (answer, is_free) in [(lost(), false), (failure("BACKEND_ERROR", 502), false), (failure("INSUFFICIENT_BALANCE", 402), true)] {
        let mut write = write.clone();
        // An earlier key may have bought.
        write.call.ledger.may_have_sold = true;
        given.tell(&mut write, [answer]);
        assert_eq!(!write.take_unspent().is_empty(), is_free);
    }
}

#[test]
fn a_restored_key_is_counted_at_the_price_of_the_list_even_above_the_limit() {
    let mut given = Given::agent();
    given.day = Some(TODAY);
    let mut write = given.write_within("create_session", DYNAMIC, Some("1"), None);
    write.call.ledger = Ledger::restored(write.call.ledger.key.clone(), false, false);
    assert_eq!(given.tell(&mut write, [due(), at_4(), due(), counted(), stored()]), [LIST, "wake", "count 8", "put", SEND_1]);
}

#[test]
fn a_store_that_takes_over_a_minute_for_each_put_is_asked_three_times() {
    for (seconds, open, ends) in
        [(61, false, "erase: Store None MendStore"), (61, true, "doubt: Store Unknown MendStore"), (59, false, SEND_1)]
    {
        let mut given = Given::agent();
        given.day = Some(TODAY);
        let mut write = purchase(&mut given);
        given.tell(&mut write, [due(), at_4(), due()]);
        if open {
            given.tell(&mut write, [counted(), stored(), lost(), due()]);
        }
        let mut said = Vec::new();
        while said.last().is_none_or(|said| said == "wake") {
            given.tell(&mut write, [counted()]);
            given.pass(1000 * seconds);
            said.extend(given.tell(&mut write, [stored()]));
            if said.last().is_some_and(|said| said == "wake") {
                given.tell(&mut write, [due()]);
            }
        }
        assert_eq!(said.last().map(String::as_str), Some(ends));
        assert_eq!(said.len(), if seconds > 60 { 3 } else { 1 });
    }
}

/// A purchase whose price is being read for a limit, when another caller without a limit goes on with it.
fn without_a_limit(given: &mut Given) -> Write {
    let mut write = given.write_within("create_session", r#"{"session_type":"dynamic","product_no":"p-1"}"#, Some("3"), None);
    assert!(given.tell_one(&mut write, due()).starts_with("send GET /products"));
    write.take_options(Vec::new(), given.service.retry, None, None);
    write
}

#[test]
fn who_goes_on_with_a_purchase_without_a_limit_needs_no_price() {
    for answer in [lost(), failure("AUTH_INVALID_KEY", 401), success(r#"{"items":[{"product_no":"p-1","price":4}]}"#)] {
        let mut given = Given::agent();
        let mut write = without_a_limit(&mut given);
        assert_eq!(given.tell(&mut write, [answer, due()]), ["wake", "put"]);
    }
}

#[test]
fn a_purchase_that_needs_no_price_any_more_and_is_given_up_is_not_sent() {
    let mut given = Given::agent();
    let mut write = without_a_limit(&mut given);
    assert_eq!(given.tell(&mut write, [lost()]), ["wake"]);
    given.wanted = false;
    assert_eq!(given.tell(&mut write, [due()]), ["erase: Cancelled None Nothing"]);
}
