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

#[test]
fn a_sentence_says_how_long_to_wait_and_never_less_than_it_is() {
    let said = |ms: Millis| {
        let mut error = Error::new(Kind::Unavailable, Effect::None, "get_balance", "too many requests", Advice::Wait);
        error.retry_at = Some(1_000_000 + ms);
        error.said_at(1_000_000).to_string().rsplit("; ").next().unwrap_or_default().to_owned()
    };
    let rows = [
        (-5, "1 s"),
        (0, "1 s"),
        (11_001, "12 s"),
        (12_000, "12 s"),
        (120_000, "120 s"),
        (120_001, "3 min"),
        (7_200_001, "3 h"),
        (172_800_001, "3 days"),
    ];
    for (ms, wait) in rows {
        assert_eq!(said(ms), format!("try again in {wait}"));
    }
    let mut doubt = error("too many requests");
    doubt.retry_at = Some(90_000);
    let mut doubt = doubt.said_at(0);
    assert!(
        doubt.to_string().ends_with(
            "; in 90 s, resume it by its intent or its record, or settle it once you know its outcome; do not start another one"
        )
    );
    doubt.advice = Advice::TerminateSession;
    assert!(doubt.to_string().ends_with("; terminate a session first"));
}
