use super::*;
use crate::contract::{Record, endpoint};
use crate::json::quoted;

fn built(name: &str, params: &str) -> Result<Built, Refusal> {
    build(endpoint(name).expect(name), params)
}

fn refusal(name: &str, params: &str) -> (String, String) {
    let refusal = built(name, params).expect_err(params);
    (refusal.field, refusal.rule)
}

#[test]
fn the_same_purchase_is_the_same_bytes_however_it_was_written() {
    let one = built("create_session", r#"{"product_no":"p-1","session_type":"dynamic","quantity":0.50}"#);
    let two = built("create_session", r#"{ "session_type" : "dyn\u0061mic", "quantity":"0.5","product_no":"p-1"}"#);
    assert_eq!(one, two);
    assert_eq!(one.as_ref().map(|b| b.body.as_deref()), Ok(Some(r#"{"session_type":"dynamic","product_no":"p-1","quantity":0.5}"#)));
}

#[test]
fn a_path_parameter_stays_one_segment() {
    let target = |id: &str| built("get_session", &format!("{{\"session_id\":{}}}", quoted(id))).map(|built| built.target);
    assert_eq!(target("a/../b?c#d%2e").as_deref(), Ok("/sessions/a%2F..%2Fb%3Fc%23d%252e"));
    assert_eq!(target("s 1\u{e9}\n").as_deref(), Ok("/sessions/s%201%C3%A9%0A"));
    for bad in ["", ".", ".."] {
        assert!(target(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_query_holds_what_was_given_and_no_default() {
    assert_eq!(built("list_products", "{}").map(|b| b.target).as_deref(), Ok("/products"));
    let all = r#"{"type":"static","country":"a&b","in_stock":false,"limit":100,"cursor":"x="}"#;
    assert_eq!(
        built("list_products", all).map(|b| b.target).as_deref(),
        Ok("/products?type=static&country=a%26b&in_stock=false&limit=100&cursor=x%3D")
    );
}

#[test]
fn a_refusal_names_the_field_and_the_rule() {
    let rule = |params| refusal("create_session", params);
    let pair = |field: &str, rule: &str| (field.to_owned(), rule.to_owned());
    assert_eq!(rule(r#"{"product_no":"p"}"#), pair("session_type", "is required"));
    assert_eq!(rule(r#"{"session_type":"rented","product_no":"p"}"#), pair("session_type", "must be one of dynamic, static"));
    assert_eq!(rule(r#"{"session_type":"static","product_no":""}"#), pair("product_no", "must not be empty"));
    assert_eq!(rule(r#"{"session_type":"static","product_no":null}"#), pair("product_no", "must not be null; leave it out instead"));
    assert_eq!(rule(r#"{"session_type":"static","product_no":"p","quantity":0}"#), pair("quantity", "must be above 0"));
    assert_eq!(
        rule(r#"{"session_type":"static","product_no":"p","quantity":1.5}"#),
        pair("quantity", "must be a whole number when `session_type` is `static`")
    );
    assert_eq!(rule(r#"{"session_type":"static","product_no":"p","duration":0}"#), pair("duration", "must be at least 1"));
    assert_eq!(rule(r#"{"session_type":"static","product_no":"p","colour":1}"#), pair("colour", "is not a field of `CreateSession`"));
    assert_eq!(rule("[]").0, "parameters");
    assert_eq!(rule(r#"{"product_no":"p","product_no":"q"}"#).0, "parameters");
    assert_eq!(refusal("list_products", r#"{"limit":101}"#), pair("limit", "must be 1 to 100"));
    assert_eq!(refusal("list_products", r#"{"limit":"5"}"#).0, "limit");
    assert_eq!(refusal("get_session", r#"{"session_id":"s","include_credentials":1}"#).0, "include_credentials");
}

#[test]
fn null_is_sent_only_where_it_is_a_value_of_its_own() {
    let body = |params| built("update_budget", params).map(|built| built.body.unwrap_or_default());
    assert_eq!(body(r#"{"daily_limit_usd":null,"paused":false}"#).as_deref(), Ok(r#"{"daily_limit_usd":null,"paused":false}"#));
    assert_eq!(body("{}").as_deref(), Ok("{}"));
    assert_eq!(refusal("update_budget", r#"{"paused":null}"#).0, "paused");
    assert_eq!(refusal("update_budget", r#"{"key_limit_usd":-0.01}"#).1, "must be at least 0");
    let threshold = refusal("update_budget", r#"{"alert_thresholds":[50,101]}"#);
    assert_eq!(threshold, ("alert_thresholds[1]".to_owned(), "must be 1 to 100".to_owned()));
}

#[test]
fn of_two_amounts_one_is_required() {
    assert_eq!(
        built("create_recharge", r#"{"amount_usd":10}"#).map(|b| b.body).as_ref().map(|b| b.as_deref()),
        Ok(Some(r#"{"amount_usd":10}"#))
    );
    assert!(built("create_recharge", r#"{"amount":"10.5","currency":"USDT"}"#).is_ok());
    assert_eq!(refusal("create_recharge", "{}"), ("amount".to_owned(), "is required unless `amount_usd` is given".to_owned()));
    assert_eq!(refusal("create_recharge", r#"{"amount":9.99,"amount_usd":10}"#).1, "must be at least 10");
}

#[test]
fn an_event_is_an_object_of_the_callers_own() {
    let given = r#"{"event":{"status":403,"note":{"a":[1]}},"session_id":"s"}"#;
    assert_eq!(built("report_session_event", given).map(|b| b.body).ok().flatten().as_deref(), Some(r#"{"status":403,"note":{"a":[1]}}"#));
    for odd in ["[]", "1", "null", r#"{"a":1,"a":2}"#] {
        assert_eq!(refusal("report_session_event", &format!("{{\"session_id\":\"s\",\"event\":{odd}}}")).0, "event");
    }
}

#[test]
fn formats_are_checked_and_a_header_is_no_part_of_the_body() {
    let uuid = "123E4567-e89b-12d3-a456-426614174000";
    let asked = built("request_api_key", &format!(r#"{{"email":"a@b.example","client_installation_id":"{uuid}"}}"#)).expect("is sound");
    assert_eq!(asked.headers, [("x-client-installation-id".to_owned(), uuid.to_owned())]);
    assert!(asked.secret && asked.body.as_deref() == Some(r#"{"email":"a@b.example"}"#));
    for odd in ["", "a", "@b.example", "a@", "a b@c.example", "a@b@c", "a@b..c", "a\\nb@c.example"] {
        assert_eq!(refusal("request_api_key", &format!("{{\"email\":\"{odd}\"}}")).0, "email", "{odd}");
    }
    for odd in ["", "123", "123e4567e89b12d3a456426614174000", "g23e4567-e89b-12d3-a456-426614174000"] {
        let params = format!("{{\"email\":\"a@b.example\",\"client_installation_id\":\"{odd}\"}}");
        assert_eq!(refusal("request_api_key", &params).0, "client_installation_id", "{odd}");
    }
}

#[test]
fn a_request_of_the_callers_own_stays_below_the_base_url() {
    let target =
        |path: &str| build_any(Api::Agent, &format!("{{\"method\":\"GET\",\"path\":{}}}", quoted(path))).map(|(_, built)| built.target);
    assert_eq!(target("/billing/invoices/a%2Fb").as_deref(), Ok("/billing/invoices/a%2Fb"));
    for odd in ["", "x", "//host/x", "/a/../b", "/a/%2e%2E/b", "/a?b", "/a#b", "/a b", "/\u{e9}", "/a\\b", "https://host/x", "/a//b"] {
        assert_eq!(target(odd).map_err(|refusal| refusal.field), Err("path".to_owned()), "{odd}");
    }
    let (endpoint, built) =
        build_any(Api::Agent, r#"{"method":"POST","path":"/x","query":{"a b":"c&d"},"body":[1.10],"safety":"keyed"}"#).expect("is sound");
    assert_eq!((endpoint.safety, built.target.as_str()), (Safety::Keyed, "/x?a%20b=c%26d"));
    assert_eq!(built.body.as_deref(), Some("[1.10]"));
    assert_eq!(build_any(Api::Agent, r#"{"method":"DELETE","path":"/x"}"#).expect("is sound").0.safety, Safety::AtMostOnce);
    assert!(build_any(Api::Agent, r#"{"method":"TRACE","path":"/x"}"#).is_err() && build_any(Api::Agent, "{}").is_err());
}

#[test]
fn a_parameter_in_a_header_belongs_to_no_request_that_is_restored() {
    for endpoint in crate::contract::endpoints() {
        let header = endpoint.request.fields.iter().any(|field| matches!(field.place, FieldPlace::Header(_)));
        let restored = !endpoint.request.fields.iter().any(|field| field.shape.has_secrets());
        assert!(!(header && restored), "{}: a record holds no such headers", endpoint.name);
    }
}

#[test]
fn parameters_that_no_record_could_hold_are_refused() {
    let params = |length: usize| format!(r#"{{"session_type":"dynamic","product_no":"{}"}}"#, "p".repeat(length));
    assert!(built("create_session", &params(MAX_PARAMS - 100)).is_ok());
    assert_eq!(refusal("create_session", &params(MAX_PARAMS)).0, "parameters");
    let request = format!(r#"{{"method":"POST","path":"/x","safety":"keyed","body":"{}"}}"#, "x".repeat(MAX_PARAMS));
    assert_eq!(build_any(Api::Agent, &request).map(|_| ()).map_err(|refusal| refusal.field), Err("parameters".to_owned()));
}

#[test]
fn an_idempotency_key_is_1_to_64_visible_characters() {
    assert!(is_key("a") && is_key(&"k".repeat(64)));
    assert!(!is_key("") && !is_key(&"k".repeat(65)) && !is_key("a b") && !is_key("a\n") && !is_key("é"));
}

#[test]
fn what_was_built_is_printed_without_its_query() {
    let built = built("list_products", r#"{"country":"US"}"#).map(|built| format!("{built:?}"));
    assert_eq!(built.as_deref(), Ok("/products"));
}

#[test]
fn a_page_has_a_size_just_where_pages_have_numbers() {
    const SIZE: Field = Field {
        name: "page_size",
        aliases: &[],
        doc: "",
        shape: Shape::Integer,
        required: false,
        nullable: false,
        place: FieldPlace::Query,
        rules: &[],
    };
    const BOTH: &Record = &Record::new("Both", "", &[Field { name: "page", ..SIZE }, SIZE]);
    const ALONE: &Record = &Record::new("Alone", "", &[SIZE]);
    let size = |request| page_size(&Endpoint { request, ..*endpoint("list_consumption").expect("list_consumption") });
    assert_eq!(size(BOTH), Some("page_size"));
    assert_eq!(size(ALONE), None);
}
