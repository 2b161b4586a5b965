use super::*;

const OPTIONS: &str = r#"{"base_url":"https://api.example/v1","api_key":"canary"}"#;
const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).expect(text)
}

#[test]
fn options_that_do_not_fit_are_refused_by_name_and_never_repeated() {
    let refusal = |options: &str, entropy: &[u8]| json(&json_of(&Client::from_text(options, entropy).expect_err("is refused")));
    let unknown = refusal(r#"{"base_ur":"https://api.example/v1"}"#, &[7; 16]);
    assert_eq!((&unknown["kind"], &unknown["field"]), (&json("\"invalid\""), &json("\"options\"")));
    assert!(unknown["message"].as_str().is_some_and(|message| message.contains("unknown field `base_ur`")), "{unknown}");
    for (options, field) in [
        (r#"{"retry":"canary"}"#, "retry"),
        (r#"{"api_key":["canary"]}"#, "api_key"),
        (r#"{"retry":{"attempts":"canary"}}"#, "retry"),
        (r#"{} {"canary":1}"#, "options"),
        ("canary", "options"),
        ("", "options"),
    ] {
        let refused = refusal(options, &[7; 16]);
        assert!(refused["field"] == field && !refused.to_string().contains("canary"), "{refused}");
    }
    assert_eq!(refusal(OPTIONS, &[7; 15])["field"], "entropy");
    assert_eq!(refusal(r#"{"base_url":"http://api.example"}"#, &[7; 16])["field"], "base_url");
}

#[test]
fn what_is_wrong_with_a_call_comes_back_as_its_result() {
    let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
    for (operation, params, options) in
        [("get_balance", "{}", "{"), ("get_balance", "{}", r#"{"atempts":1}"#), ("get_balances", "{}", "{}"), ("create_session", "", "{}")]
    {
        let command = client.start_text(operation, params, options);
        let error = client.take_text(command.0).expect("has completed").err().expect("is refused");
        assert_eq!(json(&json_of(&error))["effect"], "none", "{error}");
    }
}

#[test]
fn a_number_that_is_none_is_refused_by_its_place() {
    let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
    for (options, field, rule) in [
        (r#"{"max_unit_price":"cheap"}"#, "max_unit_price", "a decimal number of at most 28 digits"),
        (r#"{"max_unit_price":"cheap" }"#, "max_unit_price", "a decimal number of at most 28 digits"),
        (r#"{"max_unit_price":"cheap","attempts":1}"#, "max_unit_price", "a decimal number of at most 28 digits"),
        (r#"{"attempts":"3"}"#, "attempts", "a whole number"),
        (r#"{"wait_for_intent":"yes"}"#, "wait_for_intent", "true or false"),
        (r#"{"if_ended":"bye"}"#, "if_ended", "one of error, buy"),
        (r#"{"product":"dynamic-world"}"#, "product", "a choice of a product, as `cheapest` makes it"),
        (r#"{"intent":5}"#, "intent", "a text"),
        (r#"{"until":{"at":"/balance","at_least":"much"}}"#, "until", "a value of its type, and is not at `at_least`"),
        (r#"{"until":{"at_least":"much","at":"/balance"},"attempts":1}"#, "until", "a value of its type, and is not at `at_least`"),
    ] {
        let command = client.start_text("get_balance", "{}", options);
        let error = client.take_text(command.0).expect("has completed").err().expect("is refused");
        let told = json(&json_of(&error));
        let said = format!("`{field}` must be {rule};");
        assert!(told["field"] == field && told["message"].as_str().is_some_and(|message| message.contains(&said)), "{options}: {told}");
    }
}

#[test]
fn a_misuse_and_a_word_that_is_none_are_errors() {
    let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
    let error = client.resolve_text(9, Outcome::Store(crate::client::StoreAnswer::Done), NOW).expect_err("no such step");
    assert_eq!(json(&json_of(&error))["kind"], "misuse");
    let error = client.fail_text(9, "gone", "maybe", NOW).expect_err("no such word");
    assert_eq!(json(&json_of(&error))["field"], "kind");
    let error = client.fail_text(9, "dns", "never", NOW).expect_err("no such step");
    assert_eq!(json(&json_of(&error))["kind"], "misuse");
}

#[test]
fn a_cause_has_its_sentence_too() {
    let cause = Error::invalid("get_session", "x", "is wrong");
    let error =
        Error::from(crate::policy::ErrorFields { cause: Some(cause.clone()), ..Error::invalid("start", "y", "is too").into_fields() });
    let told = json(&json_of(&error));
    assert_eq!(told["message"], error.to_string());
    assert_eq!(told["cause"]["message"], cause.to_string());
}

#[test]
fn an_answer_that_does_not_fit_says_how_it_came() {
    let mut client = Client::from_text(OPTIONS, &[7; 16]).expect("is sound");
    let command = client.start_text("get_session", r#"{"session_id":"s-1"}"#, "{}");
    let crate::client::Step::Send { id, .. } = client.poll(NOW) else { panic!("a read is sent at once") };
    let body = br#"{"success":true,"data":{"session_id":"s-1"},"meta":{"request_id":"q-1"}}"#;
    client.resolve(id, Outcome::Response { status: 206, headers: &[], body, truncated: false }, NOW).expect("is answered once");
    let Some(Err(error)) = client.take_text(command.0) else { panic!("it has no status") };
    let error = json(&json_of(&error));
    let said = (&error["kind"], &error["status"], &error["attempts"], &error["request_id"], &error["session_id"]);
    assert_eq!(said, (&json("\"decode\""), &json("206"), &json("1"), &json("\"q-1\""), &json("\"s-1\"")));
    assert_eq!((&error["field"], &error["raw"]), (&json("\"data.status\""), &json(r#"{"session_id":"s-1"}"#)));
}

#[test]
fn what_was_settled_by_hand_has_no_answer_that_could_fit() {
    let error = json(&json_of(&misfit_text("create_session", r#"{"settled":true,"attempts":0}"#, "null", "anywhere")));
    assert!(error["what"].as_str().is_some_and(|what| what.contains("settled by hand")), "{error}");
    assert_eq!((&error["effect"], &error["advice"]), (&json("\"done\""), &json("\"check_account\"")));
}

#[test]
fn details_stay_as_they_were_written() {
    let details = r#"{"unit":4.10,"big":12345678901234567890123}"#;
    let error =
        Error::from(crate::policy::ErrorFields { details: details.parse().ok(), ..Error::invalid("start", "x", "is wrong").into_fields() });
    assert!(json_of(&error).contains(details));
}

#[test]
fn an_option_that_is_null_is_refused_by_its_name_whatever_it_limits() {
    let refused = |error: Error| (error.kind, error.field.clone().unwrap_or_default(), error.what.contains("must not be null"));
    for name in ClientOptions::NAMES.iter().filter(|name| !matches!(**name, "api" | "base_url" | "retry")) {
        let options = format!(r#"{{"base_url":"https://api.example/v1","{name}":null}}"#);
        let (kind, field, _) = refused(Client::from_text(&options, &[1; 16]).map(|_| ()).expect_err(name));
        assert_eq!((kind, field.as_str()), (Kind::Invalid, *name));
    }
    let retry = r#"{"base_url":"https://api.example/v1","daily_cap_usd":null}"#;
    assert!(refused(Client::from_text(retry, &[1; 16]).map(|_| ()).expect_err("is null")).2);
    for name in CallOptions::NAMES {
        let options = format!(r#"{{"{name}":null}}"#);
        for operation in ["create_session", "get_balance", "open_session"] {
            let mut client = Client::from_text(r#"{"base_url":"https://api.example/v1"}"#, &[1; 16]).expect("is sound");
            let command = client.start_text(operation, "{}", &options);
            let (kind, field, _) = refused(client.take_text(command.0).expect("has ended").err().expect("is refused"));
            assert_eq!((kind, field.as_str()), (Kind::Invalid, *name), "{operation}");
        }
    }
}
