//! Errors on demand, spellings, and envelopes.

use hopline_sandbox::{BACKEND_OPERATIONS, Code, ErrorFault, Fault, FaultRule, List, Message, ProductType, RefusalStatus, Spelling};

use crate::reseller_harness::{PLACE, ResellerHarness, order};

fn error(reseller: &mut ResellerHarness, operation: &str, fault: ErrorFault) {
    reseller.agent.service.inject(FaultRule { operation: Some(operation.to_owned()), times: 1, fault: Fault::Error(fault) });
}

#[test]
fn a_forced_code_is_a_number_or_a_word_under_any_status() {
    let mut reseller = ResellerHarness::new();
    for (code, status, written) in [
        ("5001", 200, "5001"),
        ("5001", 503, "5001"),
        ("SOLD_OUT", 200, "\"SOLD_OUT\""),
        ("401", 401, "401"),
        ("INVALID_REQUEST", 400, "\"INVALID_REQUEST\""),
    ] {
        error(&mut reseller, "list_dynamic_orders", ErrorFault { code: code.to_owned(), status: Some(status), ..ErrorFault::default() });
        let answer = reseller.get("/dynamic");
        assert_eq!((answer.status, answer.json["code"].to_string()), (status, written.to_owned()));
        assert!(answer.data().is_null());
    }
    assert_eq!(reseller.get("/dynamic").status, 200);
}

#[test]
fn an_order_may_be_made_though_an_error_is_told() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    let sold = ErrorFault { code: "500".to_owned(), status: Some(500), sold: true, ..ErrorFault::default() };
    error(&mut reseller, "create_static_order", sold.clone());
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", "")).refused(), 500);
    assert_eq!((reseller.view().static_orders.len(), reseller.balance_of(ann)), (3, "40".to_owned()));
    error(&mut reseller, "create_static_order", ErrorFault { sold: false, ..sold });
    assert_eq!(reseller.call("POST", PLACE, &order(ann, "static-us", "")).refused(), 500);
    assert_eq!(reseller.view().static_orders.len(), 3);
}

#[test]
fn each_request_is_done_anew_since_there_are_no_keys_here() {
    let mut reseller = ResellerHarness::new();
    let ann = reseller.user("ann", 50);
    let token = format!("Bearer {}", reseller.token);
    let headers = [("Authorization", token.as_str()), ("Idempotency-Key", "k")];
    for _ in 0..2 {
        assert_eq!(reseller.agent.send_to("/api", "POST", PLACE, &headers, &order(ann, "static-us", "")).status, 200);
    }
    assert_eq!(reseller.agent.service.executions()["create_static_order"], 2);
    assert_eq!(reseller.balance_of(ann), "30");
}

#[test]
fn every_spelling_can_be_switched_and_means_the_same() {
    let mut reseller = ResellerHarness::new();
    reseller.agent.service.set_spelling(Spelling {
        message: Message::Msg,
        code: Code::Text,
        list: List::List,
        product_type: ProductType::Word,
        refusal_status: RefusalStatus::Ok,
    });
    let products = reseller.call("POST", "/open/app/product/query-standard/v2", r#"{"productNo":"static-shared-us"}"#);
    assert_eq!((&products.json["code"], products.json["msg"].is_string(), products.json.get("message")), (&"0".into(), true, None));
    assert!(products.data().get("items").is_none());
    assert_eq!(products.data()["list"][0]["productType"], "shared");
    let refused = reseller.get("/dynamic/none");
    assert_eq!((refused.status, &refused.json["code"]), (200, &"404".into()));
    reseller.agent.service.set_spelling(Spelling { list: List::Items, ..Spelling::default() });
    assert!(reseller.get("/dynamic").data().get("list").is_none());
}

#[test]
fn an_unknown_route_is_404_in_the_envelope_before_any_login() {
    let mut reseller = ResellerHarness::new();
    for (method, path) in [("GET", ""), ("GET", "/nowhere"), ("PUT", "/dynamic"), ("GET", "/dynamic/1/2/3"), ("DELETE", "/user/%ff")] {
        assert_eq!(reseller.agent.send_to("/api", method, path, &[], "").refused(), 404, "{path}");
    }
    assert_eq!(reseller.agent.send_to("/apis", "GET", "/dynamic", &[], "").code(), "ROUTE_NOT_FOUND");
}

#[test]
fn there_are_thirty_operations() {
    let names: std::collections::BTreeSet<_> = BACKEND_OPERATIONS.into_iter().collect();
    assert_eq!(names.len(), 30);
}
