//! The properties with random bytes, and with bytes that are close to what is read.

use std::collections::BTreeSet;
use std::path::Path;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hopline_fuzz::PROPERTIES;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// As many cases of each property, from the same beginning in each run.
const CASES: u32 = 3000;

fn run(name: &str, bytes: impl Strategy<Value = Vec<u8>>) {
    let property = PROPERTIES.iter().find(|(known, _)| *known == name).expect("there is such a property").1;
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    let mut runner =
        TestRunner::new_with_rng(config, proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha));
    if let Err(error) =
        runner.run(&bytes, |bytes| std::panic::catch_unwind(|| property(&bytes)).map_err(|_| TestCaseError::fail(name.to_owned())))
    {
        panic!("{error}");
    }
}

/// The findings of libFuzzer so far, for each property the cases that reach all that any of them has reached, one a line.
/// `cargo xtask fuzz` begins with them, and keeps them.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/corpus");

#[test]
fn each_property_holds_for_its_corpus() {
    for (name, property) in PROPERTIES {
        let cases = std::fs::read_to_string(Path::new(CORPUS).join(name)).expect("every property has a corpus, which may be empty");
        for line in cases.lines() {
            let bytes = BASE64_STANDARD.decode(line).expect("a case is written in Base64");
            println!("{name}: {line}");
            property(&bytes);
        }
    }
}

#[test]
fn there_is_no_corpus_but_those_of_the_properties() {
    let files = std::fs::read_dir(CORPUS).expect("there is a corpus").map(|file| file.expect("is a file").file_name());
    let files: BTreeSet<String> = files.map(|name| name.to_string_lossy().into_owned()).collect();
    assert_eq!(files, PROPERTIES.iter().map(|(name, _)| (*name).to_owned()).collect());
}

fn any_bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..most)
}

#[test]
fn any_bytes_are_read_alike_by_every_sink() {
    run("answer", any_bytes(200));
    let member = r#""(items|list|orderNo|order_no|id|status|unit|price|projectList|projects)" ?: ?(null|"[a-z3]?"|-?[0-9]{1,17}(\.[0-9]{1,20})?|\[\]|\{\}|"\\ud800")"#;
    let almost = format!(r#"[\x00-\x7f]{{2}}\{{({member},){{0,3}}("items"|"list"):\[(\{{({member},){{0,3}}{member}\}},?){{0,2}}[\]]?\}}"#);
    run("answer", prop::string::string_regex(&almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn any_bytes_are_an_answer_or_an_error() {
    run("envelope", any_bytes(200));
    let almost = r#"[0-9a-f]{4}\{"success":(true|false|1),"data":(null|\{"session_id":"[a-z]{0,3}"\}|\[\]),"error":(null|\{"code":"[A-Z_]{1,9}","message":"\w"\})[}]{0,2}"#;
    run("envelope", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn any_bytes_are_a_record_or_are_refused() {
    run("record", any_bytes(200));
    let almost = r#"\{"hopline":[1-3],"puts":[0-9],"base_url":"https://api\.example/v1/?","account":\{"salt":"a","digest":"b"\},"at":\{"unix":-?[0-9]{1,15},"client":[0-9],"elapsed":-?[0-9]{1,9}\}(,"intent":"i","fingerprint":"f")?,"call":\{"operation":"(create_session|get_balance|x|request)","target":"/[a-z./%#?]{0,9}","key":"[a-z]{0,2}","age":\{"ms":-?[0-9]{1,9},"unix":[0-9]{1,15},"client":[0-9],"elapsed":[0-9]{1,9}\}\}\}"#;
    run("record", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn any_name_is_one_segment_of_a_path() {
    run("address", any_bytes(40));
    run("address", prop::string::string_regex(r"[./%\\?# e2]{0,8}").expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn no_wait_that_is_asked_for_is_undercut() {
    run("retry_after", any_bytes(40));
    let almost =
        r"[01]-?[0-9]{0,20}(\.[0-9]{1,3})?(e[0-9]{1,3})?|[01](Sun|Mon), [0-9]{2} (Jun|Jul) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT";
    run("retry_after", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn a_client_in_any_world_keeps_its_promises() {
    run("client", any_bytes(400));
}

#[test]
fn any_bytes_are_a_reply_of_the_backend_or_an_error() {
    run("reply", any_bytes(200));
    let member = r#"("id":[0-9]{1,3}|"username":"a"|"createdAt":"x"|"created_at":"y"|"balance":("1.5"|2|null)|"x":\{\})"#;
    let almost = format!(
        r#"[0-9a-f]{{4}}\{{"code":(0|"0"|1|"word"|null),"(msg|message)":"\w",("data":(null|\[\]|\{{"(items|list)":\[(\{{{member}(,{member}){{0,2}}\}})?\],"total":1\}}))?\}}"#
    );
    run("reply", prop::string::string_regex(&almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn any_text_is_a_range_of_addresses_or_stays_a_text() {
    run("range", any_bytes(40));
    let almost =
        r"([0-9]{1,3}\.){2,3}[0-9]{1,3}(/[0-9]{1,2}| ?[-–~] ?([0-9]{1,3}\.){3}[0-9]{1,3})?|[0-9a-f:]{2,12}(/[0-9]{1,3})?|\{.{0,20}\}";
    run("range", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn whatever_a_login_brings_a_call_logs_in_once() {
    run("token", any_bytes(60));
    let almost = r"[A-Za-z0-9_-]{0,4}\.(eyJleHAiOjF9|eyJleHAiOjFlMzAwfQ|eyJleHAiOi0xfQ==|[A-Za-z0-9_=-]{0,20})\.[a-z]?";
    run("token", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn any_text_is_a_position_in_a_list_or_is_refused() {
    run("turn", any_bytes(60));
    let almost = r#"[a-d]\{"operation":"(list_sub_users|list_static_orders|list_products|login|x)"(,"pages":(0|9|4294967295))?(,"max_pages":[0-9]{1,2})?(,"cursor":"c")?\}"#;
    run("turn", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn no_record_makes_a_client_send_a_write_of_the_reseller_api() {
    run("order_record", any_bytes(200));
    let almost = r#"\{"hopline":2,"puts":[0-9],"base_url":"https://api\.example/api","account":\{"salt":"a","digest":"b"\},"at":\{"unix":[0-9]{1,15},"client":[0-9],"elapsed":[0-9]{1,9}\}(,"intent":"i","fingerprint":"f")?,"call":\{"operation":"(create_static_order|adjust_sub_user_balance|list_static_orders|renew_static_order|login)","target":"/[a-z/]{0,9}","age":\{"ms":[0-9]{1,9},"unix":[0-9]{1,15},"client":[0-9],"elapsed":[0-9]{1,9}\}(,"body":"\{\}")?(,"follows":true)?(,"order_no":"[a-z]{0,2}")?(,"key_settled":true)?(,"secret":true)?(,"match_fields":\{"userId":"[0-9a-z]"\})?\}\}"#;
    run("order_record", prop::string::string_regex(almost).expect("is a pattern").prop_map(String::into_bytes));
}

#[test]
fn a_client_of_the_reseller_api_in_any_world_keeps_its_promises() {
    run("orders", any_bytes(400));
}
