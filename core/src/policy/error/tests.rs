use super::*;

fn error(what: &str) -> Error {
    Error::new(Kind::InDoubt, Effect::Unknown, "create_session", what, Advice::Resume)
}

#[test]
fn a_program_that_ends_with_an_error_prints_what_a_report_of_the_problem_needs() {
    let first = error("the connection broke");
    let last = Error::from(ErrorFields {
        request_id: Some("q-1".to_owned()),
        record: Some("r-1".to_owned()),
        attempts: 2,
        cause: Some(first.clone()),
        ..error("no answer came in time").into_fields()
    });
    assert_eq!(format!("{last:?}"), format!("{last} [InDoubt, attempts 2, request q-1, record r-1, after: {first}]"));
}

#[test]
fn the_first_failure_is_the_source() {
    let cause = Some(error("the connection broke"));
    let last = Error::from(ErrorFields { cause, ..error("no answer came in time").into_fields() });
    let source = std::error::Error::source(&last).map(ToString::to_string);
    assert!(source.is_some_and(|source| source.contains("the connection broke")));
    assert!(std::error::Error::source(&error("no answer came in time")).is_none());
}
