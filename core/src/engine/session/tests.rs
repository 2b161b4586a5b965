use super::super::testing::*;
use super::*;

const READ: &str = "send GET /sessions/s-1";
const READ_ALL: &str = "send GET /sessions/s-1?include_credentials=true";

fn session() -> Given {
    let mut given = Given::agent();
    given.subject.session_id = Some("s-1".into());
    given
}

fn follow(bought: bool) -> Follow {
    Follow::new(bought, Vec::new(), 20_000)
}

fn is(status: &str) -> Tell {
    match status {
        "creating" => success(r#"{"session_id":"s-1","status":"creating"}"#),
        "active" => success(r#"{"session_id":"s-1","status":"active"}"#),
        "expired" => success(r#"{"session_id":"s-1","status":"expired"}"#),
        _ => success(r#"{"session_id":"s-1","status":"odd"}"#),
    }
}

/// A session that was bought just now.
fn bought(given: &mut Given, status: &str, resent: bool) -> (Follow, String) {
    let facts = Facts { session_id: Some("s-1".to_owned()), status: Some(status.to_owned()), ..Facts::default() };
    let mut follow = follow(true);
    let action = follow.bought(Answered::of(facts), resent, &mut given.cx());
    let said = given.say(action);
    (follow, said)
}

#[test]
fn a_session_is_read_until_it_is_usable_or_over() {
    let mut given = session();
    let mut follow = follow(false);
    let said = given.tell(&mut follow, [due(), is("creating"), due(), is("odd"), due(), is("active")]);
    assert_eq!(said, [READ, "wake", READ, "wake", READ, "end: done Ready"]);
    assert_eq!(given.notes(), ["shown creating Pending", "shown odd Unknown", "shown active Ready"]);
    let mut follow = self::follow(false);
    assert_eq!(given.tell(&mut follow, [due(), is("expired")]), [READ, "end: done Ended"]);
    given.wants.session_options.ends = vec!["odd".to_owned()].into();
    let mut follow = self::follow(false);
    assert_eq!(given.tell(&mut follow, [due(), is("odd")]), [READ, "end: done Ended"]);
}

#[test]
fn the_answer_to_a_purchase_is_enough_where_it_says_all_that_is_wanted() {
    let mut given = session();
    assert_eq!(bought(&mut given, "active", false).1, "end: done Ready");
    // An answer to a second send may be a replay of an earlier state, and shows no credentials.
    assert_eq!((bought(&mut given, "active", true).1, given.wait()), ("wake".to_owned(), 0));
    given.wants.session_options.credentials = true;
    assert_eq!((bought(&mut given, "active", false).1, given.wait()), ("wake".to_owned(), 0));
    assert_eq!(bought(&mut given, "creating", false).1, "wake");
    assert!((900..=1100).contains(&given.wait()));
    given.wanted = false;
    assert_eq!(bought(&mut given, "active", false).1, "end: Cancelled Done ReadSession");
}

#[test]
fn credentials_are_asked_for_only_once_the_session_is_known_to_be_active() {
    let mut given = session();
    (given.wants.session_options.credentials, given.session) = (true, Some(("creating", true)));
    let mut follow = follow(true);
    assert_eq!(given.tell(&mut follow, [due(), is("creating"), due(), is("active")]), [READ, "wake", READ, "wake"]);
    assert_eq!(given.wait(), 0);
    given.session = Some(("active", true));
    assert_eq!(given.tell(&mut follow, [due(), is("active")]), [READ_ALL, "end: done Ready"]);
}

#[test]
fn at_the_deadline_one_last_read_is_made_and_the_session_is_not_dropped() {
    let mut given = session();
    given.wants.deadline_ms = 500;
    let mut follow = follow(true);
    assert_eq!(given.tell(&mut follow, [due(), is("creating")]), [READ, "wake"]);
    assert_eq!(given.wait(), 500);
    assert_eq!(given.tell(&mut follow, [due(), is("creating")]), [READ, "end: done Pending"]);
}

#[test]
fn a_failing_read_never_ends_the_waiting_before_the_deadline() {
    let failures = [
        lost(),
        unreachable(),
        broken_off(),
        page(502),
        page(200),
        late(),
        failure("INTERNAL_ERROR", 500),
        failure("BACKEND_TIMEOUT", 504),
        failure("RATE_LIMIT_EXCEEDED", 429),
        failure("SOMETHING_ELSE", 503),
    ];
    for answer in failures {
        let mut given = session();
        let mut follow = follow(true);
        // The read fails far more often than a call has attempts.
        for _ in 0..6 {
            assert_eq!(given.tell(&mut follow, [due(), answer.clone()]), [READ, "wake"]);
        }
        assert_eq!(given.tell(&mut follow, [due(), is("active")]), [READ, "end: done Ready"]);
    }
}

#[test]
fn a_read_that_is_refused_ends_the_waiting_and_the_session_lives_on() {
    let answers = [failure("AUTH_INVALID_KEY", 401), failure("SOMETHING_ELSE", 400), page(404), page(300)];
    for (answer, advice) in answers.into_iter().zip(["Stop", "ReadSession", "ReadSession", "ReadSession"]) {
        for (was_bought, ends) in [(true, "end: Refused Done ReadSession".to_owned()), (false, format!("end: Refused None {advice}"))] {
            let mut given = session();
            let mut follow = follow(was_bought);
            assert_eq!(given.tell(&mut follow, [due(), answer.clone()]), [READ, ends.as_str()]);
        }
    }
    let mut given = session();
    let mut follow = follow(true);
    assert_eq!(given.tell(&mut follow, [due(), unsendable()]), [READ, "end: Invalid Done ChangeRequest"]);
}

#[test]
fn a_session_that_was_just_bought_may_not_be_known_for_ten_seconds() {
    let missing = || failure("SESSION_NOT_FOUND", 404);
    let mut given = session();
    let mut follow = bought(&mut given, "creating", false).0;
    assert_eq!(given.tell(&mut follow, [due(), missing()]), [READ, "wake"]);
    given.tell(&mut follow, [due()]);
    let left = 9999 - given.shared.clock.monotonic();
    assert_eq!(given.tell(&mut follow, [missing().after(left), due(), missing()]), ["wake", READ, "end: Refused Done CheckAccount"]);
    // The grace is over at ten seconds.
    let mut given = session();
    let mut follow = bought(&mut given, "creating", false).0;
    given.tell(&mut follow, [due()]);
    let left = 10_000 - given.shared.clock.monotonic();
    assert_eq!(given.tell(&mut follow, [missing().after(left)]), ["end: Refused Done CheckAccount"]);
    // A session that was not bought here has no such grace.
    let mut follow = self::follow(false);
    assert_eq!(given.tell(&mut follow, [due(), missing()]), [READ, "end: Refused None ChangeRequest"]);
}

#[test]
fn a_session_that_only_a_person_named_and_the_service_does_not_have_is_a_doubt_of_the_purchase() {
    let mut given = session();
    (given.session, given.named) = (Some(("", false)), true);
    let mut follow = follow(true);
    let said = given.tell(&mut follow, [due(), failure("SESSION_NOT_FOUND", 404)]);
    assert_eq!(said, [READ, "end: InDoubt Unknown CheckAccount"]);
    let error = given.error.expect("it ended");
    assert_eq!((error.operation, error.intent.as_deref()), ("create_session", Some("job-17")));
}

#[test]
fn a_throttle_is_never_undercut_and_at_the_deadline_the_caller_gets_what_is_known() {
    let mut given = session();
    given.session = Some(("creating", true));
    let mut follow = follow(true);
    let throttled = failure("RATE_LIMIT_EXCEEDED", 429).retry_after(40);
    assert_eq!(given.tell(&mut follow, [due(), throttled]), [READ, "wake"]);
    assert_eq!(given.wait(), 40_000);
    assert_eq!(given.tell(&mut follow, [due(), is("creating")]), [READ, "wake"]);
    given.shared.gate.close(600_000, 0);
    assert_eq!(given.tell(&mut follow, [due(), due()]), ["wake", "end: done Pending"]);
    assert_eq!(given.shared.clock.monotonic(), 300_000);
    let answered = given.answered.expect("it ended");
    assert_eq!(answered.raw.text(), r#"{"session_id":"s-1","session_type":"dynamic","status":"creating"}"#);
    assert_eq!(answered.facts.session_type.as_deref(), Some("dynamic"));
}

#[test]
fn a_wait_that_the_service_asks_for_counts_after_a_plain_failure_too() {
    let mut given = session();
    given.wants.deadline_ms = 10_000;
    let mut follow = follow(true);
    assert_eq!(given.tell(&mut follow, [due(), failure("INTERNAL_ERROR", 500).retry_after(30)]), [READ, "wake"]);
    assert_eq!(given.wait(), 10_000);
    // The last read would come before that time.
    assert_eq!(given.tell(&mut follow, [due()]), ["end: done Unknown"]);
}

#[test]
fn waiting_that_was_given_up_leaves_the_session_alone() {
    for (sent, input, notes) in [
        (false, due(), vec![]),
        (true, lost(), vec![]),
        (true, unsendable(), vec![]),
        (true, failure("SESSION_NOT_FOUND", 404), vec![]),
        (true, is("active"), vec!["shown active".to_owned()]),
    ] {
        let mut given = session();
        let mut follow = follow(true);
        if sent {
            given.tell(&mut follow, [due()]);
        }
        given.wanted = false;
        assert_eq!(given.tell(&mut follow, [input]), ["end: Cancelled Done ReadSession"]);
        assert_eq!(given.notes(), notes);
    }
}
