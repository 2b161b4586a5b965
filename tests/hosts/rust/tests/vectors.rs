//! The shared vectors, run by the Rust host; and the runner itself, which must not let a bad case pass.

use std::io::Write;
use std::path::{Path, PathBuf};

use hopline_host_rust::vectors::{run_directory, run_text};

/// The directory that `HOPLINE_VECTORS` names, or the one of this workspace.
fn directory() -> PathBuf {
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors");
    std::env::var_os("HOPLINE_VECTORS").map_or(ours, PathBuf::from)
}

/// The only failure of a file, which must have one.
fn failure(text: &str) -> String {
    let report = run_text("bad.json", text);
    assert_eq!(report.failures.len(), 1, "{text}: {:?}", report.failures);
    report.failures.concat()
}

fn file(cases: &str) -> String {
    format!(r#"{{"about":"a","source":"s","cases":[{cases}]}}"#)
}

fn failure_of(script: &str) -> String {
    failure(&file(&format!(r#"{{"name":"n","script":[{script}]}}"#)))
}

const START: &str = r#"{"start":"a","operation":"get_balance"}"#;
const SEND: &str = r#"{"send":"GET /billing/balance","as":"s","answer":{"ok":{"n":1}}}"#;
const END: &str = r#"{"complete":"a","ok":{}}"#;
const BUY: &str = r#"{"start":"a","operation":"create_session","params":{"session_type":"dynamic","product_no":"p"}}"#;

#[test]
fn every_vector_holds() {
    let report = run_directory(&directory());
    // Written past the test harness, which would keep it to itself.
    let line = format!("vectors: {} cases in {} files, {} failed\n", report.cases, report.files, report.failures.len());
    std::io::stderr().write_all(line.as_bytes()).expect("stderr is open");
    assert!(report.failures.is_empty(), "\n{}", report.failures.join("\n"));
}

#[test]
fn a_good_case_passes() {
    let report = run_text("good.json", &file(&format!(r#"{{"name":"n","script":[{START},{SEND},{END}]}}"#)));
    assert!(report.failures.is_empty() && report.cases == 1, "{report:?}");
}

#[test]
fn a_directory_that_is_missing_or_empty_fails() {
    let missing = run_directory(Path::new("no such directory"));
    assert!(missing.cases == 0 && !missing.failures.is_empty());
    let empty = run_directory(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src/vectors"));
    assert!(empty.cases == 0 && empty.failures.iter().any(|failure| failure.contains("no case was found")));
    assert!(failure(&file("")).contains("no case was found"));
}

#[test]
fn a_file_or_case_with_an_unknown_field_fails() {
    assert!(failure("not json").contains("bad.json"));
    assert!(failure(r#"{"about":"a","source":"s","cases":[],"more":1}"#).contains("unknown field `more`"));
    assert!(failure(r#"{"about":"","source":"s","cases":[]}"#).contains("`about`"));
    assert!(failure(&file(r#"{"name":"n","scripts":[]}"#)).contains("unknown field `scripts`"));
    assert!(failure(&file(r#"{"name":"n","client":{"colour":1},"script":[{"wait":null}]}"#)).contains("unknown field `colour`"));
    assert!(failure(&file(r#"{"name":"n","script":[]}"#)).contains("the script is empty"));
}

#[test]
fn two_cases_with_one_name_fail() {
    let case = format!(r#"{{"name":"n","script":[{START},{SEND},{END}]}}"#);
    assert!(failure(&file(&format!("{case},{case}"))).contains("the same name"));
}

#[test]
fn a_step_with_an_unknown_verb_or_field_fails() {
    assert!(failure_of(r#"{"starts":"a"}"#).contains("a step has one verb"));
    assert!(failure_of("{}").contains("a step has one verb"));
    assert!(failure_of(r#"{"start":"a","send":"b"}"#).contains("a step has one verb"));
    assert!(failure_of(r#"{"start":"a","operation":"get_balance","hurry":true}"#).contains("unknown field `hurry`"));
    assert!(failure_of(r#"{"start":"a","operation":"get_balance","options":{"hurry":true}}"#).contains("unknown field `hurry`"));
    assert!(failure_of(r#"{"wait":null,"min":1}"#).contains("no other members"));
    assert!(failure_of(r#"{"wait":{"min":1}}"#).contains("step 1"));
    assert!(failure_of(r#"{"send":"GET /","answer":{"ok":1,"colour":1}}"#).contains("unknown field `colour`"));
    assert!(failure_of(r#"{"complete":"a","ok":{"data":1}}"#).contains("unknown field `data`"));
    assert!(failure_of(r#"{"put":"r1","answer":"perhaps"}"#).contains("perhaps"));
    assert!(failure_of(r#"{"observe":"s","seen":"nothing"}"#).contains("nothing"));
}

#[test]
fn a_bad_step_at_the_end_fails_before_anything_is_run() {
    assert!(failure_of(&format!(r#"{START},{SEND},{END},{{"oops":1}}"#)).contains("step 4"));
}

#[test]
fn a_script_that_ends_too_soon_fails() {
    assert!(failure_of(START).contains("at the end"));
    assert!(failure_of(&format!("{START},{SEND}")).contains("at the end"));
    let out = SEND.replace(r#","answer":{"ok":{"n":1}}"#, "");
    assert!(failure_of(&format!("{START},{out}")).contains("never answered"));
    assert!(failure_of(&format!(r#"{START},{{"advance":1}}"#)).contains("nothing more to do"));
}

#[test]
fn what_comes_is_compared_with_what_is_expected() {
    let fails = |step: &str, part: &str| {
        let failure = failure_of(&format!("{START},{step}"));
        assert!(failure.contains(part) && failure.contains("`n`: step 2"), "{failure}");
    };
    fails(END, "expected the end of `a`");
    fails(r#"{"send":"GET /billing"}"#, "GET /billing/balance");
    fails(r#"{"send":"GET /billing/balance","key":"k"}"#, "came none");
    fails(r#"{"send":"GET /billing/balance","headers":{"accept":null}}"#, "accept");
    fails(r#"{"send":"GET /billing/balance","headers":{"x-api-key":"other"}}"#, "x-api-key");
    fails(r#"{"send":"GET /billing/balance","body":{}}"#, "body");
    fails(r#"{"send":"GET /billing/balance","timeout_ms":1}"#, "timeout_ms");
    fails(r#"{"send":"GET /billing/balance","for":"b"}"#, "`b`");
    fails(r#"{"send":"GET /billing/balance","answer":{"status":200}}"#, "one of `ok`");
    fails(r#"{"send":"GET /billing/balance","answer":{"text":"x"}}"#, "`status`");
    fails(r#"{"put":"r1"}"#, "`r1`");
    fails(r#"{"notify":{"event":"status"}}"#, "status");
    fails(r#"{"wait":null}"#, "nothing more to do");
    fails(r#"{"saved":[{"record":"r1"}]}"#, "saved");
    fails(r#"{"start":"a","operation":"get_balance"}"#, "already");
    fails(r#"{"cancel":"b"}"#, "`b`");
    fails(r#"{"resume":"r1","as":"b"}"#, "`r1`");
    fails(r#"{"take":"a","ok":{}}"#, "came nothing");
}

#[test]
fn what_is_said_of_a_session_is_compared_with_what_is_expected() {
    let script = |options: &str, end: &str| {
        let wait = format!(r#"{{"start":"w","operation":"wait_session","params":{{"session_id":"s"}},"options":{options}}}"#);
        let read = r#"{"send":"GET /sessions/s","answer":{"ok":{"session_id":"s","status":"active"}}},{"complete":"w","ok":{}}"#;
        failure_of(&format!(r#"{wait},{read},{{"observe":"s","seen":{end}}}"#))
    };
    let fails = |end: &str, part: &str| {
        let failure = script(r#"{"auto_rotate":true}"#, end);
        assert!(failure.contains(part) && failure.contains("step 4"), "{failure}");
    };
    fails(r#""block","verdict":"keep""#, "rotating");
    fails(r#""block","verdict":"rotate","reason":"block""#, "rotating");
    fails(r#""block","verdict":"rotating","reason":"captcha","as":"r""#, "block");
    fails(r#""block","verdict":"rotating","reason":"block""#, "expected a command for None");
    fails(r#""block","verdict":"rotating","reason":"block","as":"w""#, "already");
    fails(r#""timeout","verdict":"unsure","why":"colour""#, "colour");
    fails(r#"{"status":200},"verdict":"keep","as":"r""#, "expected a command");
    assert!(script("{}", r#""block","verdict":"rotate","reason":"block""#).contains("came null"));
}

#[test]
fn a_walk_is_compared_with_what_is_expected() {
    let page = |cursor: &str, next: &str| {
        let item =
            r#"{"product_no":"a","name":"n","type":"dynamic","sharing":"shared","available":true,"price":1,"currency":"USD","unit":"GB"}"#;
        format!(r#"{{"send":"GET /products{cursor}","answer":{{"ok":{{"items":[{item}],"next_cursor":{next}}}}}}}"#)
    };
    let fails = |members: &str, part: &str| {
        let failure = failure_of(&format!(r#"{{"walk":"w","operation":"list_products",{members}}}"#));
        assert!(failure.contains(part) && failure.contains("step 1"), "{failure}");
    };
    let (first, last) = (page("", r#""c1""#), page("", "null"));
    fails(&format!(r#""pages":[{last}]"#), "expected the end None");
    fails(&format!(r#""pages":[{first}],"end":"last_page""#), "expected the end");
    fails(&format!(r#""pages":[{first},{first}],"end":"last_page""#), "cursor=c1");
    fails(&format!(r#""pages":[{last},{last}],"end":"last_page""#), "the walk is over");
    fails(&format!(r#""pages":[{last}],"end":"last_page","items":[]"#), "items");
    fails(&format!(r#""pages":[{last}],"end":"last_page","items":[{{"product_no":"b"}}]"#), "product_no");
    fails(&format!(r#""pages":[{last}],"end":"last_page","error":{{}}"#), "expected the error");
    fails(r#""from":"v""#, "no walk to go on from");
    fails(r#""position_text":"x","from":"v""#, "one too many");
    fails(r#""position_text":"x""#, "is not a valid position");
    fails(r#""hurry":1"#, "unknown field `hurry`");
}

#[test]
fn an_answer_without_a_client_is_compared_with_what_is_expected() {
    let ask = |members: &str| failure_of(&format!(r#"{{"ask":"session_event","given":{{"facts":{{"status":200}}}}{members}}}"#));
    assert!(ask(r#","ok":{"status":201}"#).contains("ok.status"));
    assert!(ask(r#","ok":{}"#).contains("no more"));
    assert!(ask(r#","error":{}"#).contains("expected the error"));
    assert!(ask("").contains("one of `ok` and `error`"));
    let refused = r#"{"ask":"session_event","given":{"facts":{"status":1}},"#;
    assert!(failure_of(&format!(r#"{refused}"ok":{{}}}}"#)).contains("came report_session_event"));
    assert!(failure_of(&format!(r#"{refused}"error":{{"field":"seen"}}}}"#)).contains("error.field"));
}

#[test]
fn a_result_is_compared_with_what_is_expected() {
    let fails = |step: &str, part: &str| {
        let failure = failure_of(&format!("{START},{SEND},{step}"));
        assert!(failure.contains(part), "{failure}");
    };
    fails(r#"{"complete":"a","error":{}}"#, "expected the error");
    fails(r#"{"complete":"a"}"#, "one of `ok` and `error`");
    fails(r#"{"complete":"a","ok":{"raw":{"n":2}}}"#, "raw.n");
    fails(r#"{"complete":"a","ok":{"raw_text":"{}"}}"#, "raw_text");
    fails(r#"{"complete":"a","ok":{"phase":"ready"}}"#, "phase");
    fails(r#"{"complete":"a","ok":{"facts":{"session_id":"s"}}}"#, "session_id");
    fails(r#"{"resolve":"s","answer":{"ok":{}}}"#, "refused");
}

#[test]
fn a_key_is_the_same_or_another_one_and_is_always_named() {
    let fails = |steps: &str, part: &str| {
        let failure = failure_of(&format!(r#"{BUY},{{"put":"r1","answer":"done"}},{steps}"#));
        assert!(failure.contains(part), "{failure}");
    };
    fails(r#"{"send":"POST /sessions"}"#, "expected no idempotency key");
    let lost = r#""answer":{"failed":"closed","sent":"maybe"}}"#;
    let again = r#"{"sleep":{"min":1,"max":500}},{"put":"r1","answer":"done"}"#;
    let resent = |name: &str| format!(r#"{{"send":"POST /sessions","key":"k1",{lost},{again},{{"send":"POST /sessions","key":"{name}"}}"#);
    fails(&resent("k2"), "expected a new value for `k2`");
    fails(&resent("k1"), "never answered");
}

#[test]
fn a_secret_in_a_record_or_an_error_fails() {
    let buy = BUY.replace(r#""p""#, r#""canary""#);
    let failure = failure_of(&format!(r#"{buy},{{"put":"r1","answer":"done"}}"#));
    assert!(failure.contains("a record holds a secret"), "{failure}");
    let refused = failure_of(&format!(
        r#"{START},{{"send":"GET /billing/balance","answer":{{"status":400,"error":{{"code":"INVALID_REQUEST","message":"canary"}}}}}},{{"complete":"a","error":{{}}}}"#
    ));
    assert!(refused.contains("an error holds a secret"), "{refused}");
}
