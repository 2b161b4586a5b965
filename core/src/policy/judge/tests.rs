use super::*;

fn asked(safety: Safety, paid: bool) -> JudgeContext {
    JudgeContext { safety, paid, retry_paid: false, capped: false, chooses: false, rules: Rules::default(), look: None, is_callers: false }
}

fn fresh() -> Ledger {
    Ledger::new(Some("k-1".into()), false)
}

const BUY: (Safety, bool) = (Safety::Keyed, true);

fn one(how: (Safety, bool), ledger: &mut Ledger, outcome: SendFailure<'_>) -> (Again, Kind, Effect) {
    let end = judge(asked(how.0, how.1), ledger, outcome, None);
    (end.again, end.kind, end.effect)
}

#[test]
fn every_code_settles_a_key_just_when_it_is_the_operations_own_answer() {
    for row in codes::CODES {
        let mut ledger = Ledger { unanswered: true, ..fresh() };
        judge(asked(Safety::Keyed, true), &mut ledger, SendFailure::Failure { code: row.code, status: row.status }, None);
        assert_eq!(!ledger.unanswered, row.settles, "{}", row.code);
        let door =
            matches!(row.status, 401 | 403) || matches!(row.code, "RATE_LIMIT_EXCEEDED" | "ROUTE_NOT_FOUND" | "IDEMPOTENCY_CONFLICT");
        assert_eq!(row.settles, !door, "{}", row.code);
    }
}

#[test]
fn a_lost_answer_is_in_doubt_and_asked_about_with_the_same_key() {
    let lost = SendFailure::Lost(Sent::Maybe);
    assert_eq!(one(BUY, &mut fresh(), lost), (Again::Same, Kind::InDoubt, Effect::Unknown));
    assert_eq!(one((Safety::AtMostOnce, false), &mut fresh(), lost), (Again::No, Kind::InDoubt, Effect::Unknown));
    assert_eq!(one((Safety::Safe, false), &mut fresh(), lost), (Again::Same, Kind::Unavailable, Effect::None));
    let never = SendFailure::Lost(Sent::Never);
    assert_eq!(one(BUY, &mut fresh(), never), (Again::Same, Kind::Unavailable, Effect::None));
}

#[test]
fn a_502_with_the_envelope_is_stored_and_one_without_is_not() {
    let stored = SendFailure::Failure { code: "BACKEND_ERROR", status: 502 };
    assert_eq!(one((Safety::Keyed, false), &mut fresh(), stored), (Again::NewKey, Kind::Unavailable, Effect::None));
    assert_eq!(one(BUY, &mut fresh(), stored), (Again::No, Kind::InDoubt, Effect::Unknown));
    let page = SendFailure::Page { status: 502, broke_off: false };
    assert_eq!(one((Safety::Keyed, false), &mut fresh(), page), (Again::Same, Kind::InDoubt, Effect::Unknown));
}

#[test]
fn a_paid_failure_is_bought_again_only_on_request_and_stays_open() {
    let mut ledger = fresh();
    let asked = JudgeContext { retry_paid: true, ..asked(Safety::Keyed, true) };
    let end = judge(asked, &mut ledger, SendFailure::Failure { code: "BACKEND_TIMEOUT", status: 504 }, None);
    assert_eq!((end.again, end.effect, end.keep), (Again::NewKey, Effect::Unknown, false));
    ledger.replace("k-2".into());
    let end = judge(asked, &mut ledger, SendFailure::Failure { code: "INSUFFICIENT_BALANCE", status: 402 }, None);
    assert_eq!((end.again, end.kind, end.effect), (Again::No, Kind::InDoubt, Effect::Unknown));
}

#[test]
fn a_stored_429_settles_its_key() {
    let limit = SendFailure::Failure { code: "RATE_LIMIT_EXCEEDED", status: 429 };
    let mut ledger = fresh();
    assert_eq!(judge(asked(Safety::Keyed, true), &mut ledger, limit, Some("r")).again, Again::Throttled);
    assert_eq!(judge(asked(Safety::Keyed, true), &mut ledger, limit, Some("s")).again, Again::Throttled);
    assert_eq!(judge(asked(Safety::Keyed, true), &mut ledger, limit, Some("s")).again, Again::NewKey);
    let mut given = Ledger::new(Some("mine".into()), true);
    judge(asked(Safety::Keyed, true), &mut given, limit, Some("r"));
    let end = judge(asked(Safety::Keyed, true), &mut given, limit, Some("r"));
    assert_eq!((end.again, end.kind, end.effect, end.keep), (Again::Throttled, Kind::InDoubt, Effect::Unknown, true));
}

#[test]
fn a_repeated_429_does_not_settle_a_key_with_an_unanswered_send() {
    let limit = SendFailure::Failure { code: "RATE_LIMIT_EXCEEDED", status: 429 };
    let mut ledger = fresh();
    judge(asked(Safety::Keyed, true), &mut ledger, SendFailure::Lost(Sent::Maybe), None);
    for _ in 0..3 {
        let end = judge(asked(Safety::Keyed, true), &mut ledger, limit, Some("r"));
        assert_eq!((end.again, end.effect), (Again::Throttled, Effect::Unknown));
    }
}

#[test]
fn an_answer_that_broke_off_is_lost_and_a_page_is_not() {
    let cut = SendFailure::Page { status: 200, broke_off: true };
    let page = SendFailure::Page { status: 200, broke_off: false };
    let again = |safety, outcome| one((safety, false), &mut fresh(), outcome).0;
    let every = [Safety::Safe, Safety::Idempotent, Safety::TwiceAtMost, Safety::Keyed, Safety::AtMostOnce];
    assert_eq!(every.map(|safety| again(safety, cut)), [Again::Same, Again::Same, Again::Same, Again::Same, Again::No]);
    assert_eq!(every.map(|safety| again(safety, page)), [Again::No, Again::Same, Again::No, Again::Same, Again::No]);
}

#[test]
fn an_unknown_code_never_counts_as_an_answer_to_a_purchase() {
    let odd = SendFailure::Failure { code: "PURCHASE_WINDOW_CLOSED", status: 422 };
    assert_eq!(one(BUY, &mut fresh(), odd), (Again::No, Kind::InDoubt, Effect::Unknown));
    assert_eq!(one((Safety::Safe, false), &mut fresh(), odd), (Again::No, Kind::Refused, Effect::None));
    assert_eq!(one((Safety::AtMostOnce, false), &mut fresh(), odd), (Again::No, Kind::Refused, Effect::None));
}

#[test]
fn a_refusal_at_the_door_says_nothing_of_an_earlier_send() {
    let door = SendFailure::Failure { code: "AUTH_INVALID_KEY", status: 401 };
    assert_eq!(one(BUY, &mut fresh(), door), (Again::No, Kind::Refused, Effect::None));
    let mut ledger = Ledger { unanswered: true, ..fresh() };
    assert_eq!(one(BUY, &mut ledger, door), (Again::No, Kind::InDoubt, Effect::Unknown));
}

#[test]
fn the_status_of_a_failure_of_the_reseller_api_says_what_to_do() {
    let advice = |(status, undone)| judge(asked(Safety::Safe, false), &mut fresh(), SendFailure::Refusal { status, undone }, None).advice;
    let said = [Advice::Reauthenticate, Advice::Stop, Advice::ChangeRequest, Advice::Wait, Advice::RetryLater, Advice::RetryLater];
    assert_eq!([(401, true), (403, true), (404, true), (429, false), (500, false), (400, false)].map(advice), said);
}

#[test]
fn a_failure_of_the_reseller_api_that_does_not_say_so_was_not_refused() {
    let end = |safety, undone| one((safety, false), &mut Ledger::new(None, false), SendFailure::Refusal { status: 200, undone });
    assert_eq!(end(Safety::AtMostOnce, true), (Again::No, Kind::Refused, Effect::None));
    assert_eq!(end(Safety::AtMostOnce, false), (Again::No, Kind::InDoubt, Effect::Unknown));
    assert_eq!(end(Safety::Idempotent, false), (Again::Same, Kind::InDoubt, Effect::Unknown));
    assert_eq!(end(Safety::Safe, false), (Again::Same, Kind::Unavailable, Effect::None));
}

#[test]
fn an_apps_own_backend_refuses_what_it_was_sent_and_says_nothing_of_an_earlier_send() {
    let no = SendFailure::Backend { status: 403 };
    let mut ledger = fresh();
    assert_eq!(one(BUY, &mut ledger, no), (Again::No, Kind::Refused, Effect::None));
    assert_eq!(one(BUY, &mut ledger, SendFailure::Backend { status: 429 }), (Again::Throttled, Kind::Refused, Effect::None));
    assert!(ledger.refused && !ledger.unanswered);
    let settled = SendFailure::Failure { code: "INSUFFICIENT_BALANCE", status: 402 };
    assert_eq!((one(BUY, &mut ledger, settled).2, ledger.refused), (Effect::None, false));
    for mut open in [Ledger::new(Some("mine".into()), true), Ledger::restored(Some("k-1".into()), false, false)] {
        assert_eq!(one(BUY, &mut open, no), (Again::No, Kind::InDoubt, Effect::Unknown));
    }
    let mut unkeyed = Ledger::new(None, false);
    assert_eq!((one((Safety::AtMostOnce, false), &mut unkeyed, no).2, unkeyed.refused), (Effect::None, false));
    assert_eq!(one((Safety::Safe, false), &mut fresh(), SendFailure::Backend { status: 429 }).1, Kind::Unavailable);
}

#[test]
fn a_write_without_a_key_that_may_be_done_later_stays_open() {
    let end = |status| {
        let odd = SendFailure::Failure { code: "COME_AGAIN", status };
        let (_, kind, effect) = one((Safety::AtMostOnce, false), &mut Ledger::new(None, false), odd);
        (kind, effect)
    };
    assert_eq!([408, 409, 425, 429, 500].map(end), [(Kind::InDoubt, Effect::Unknown); 5]);
    assert_eq!([400, 404, 410, 422].map(end), [(Kind::Refused, Effect::None); 4]);
}

#[test]
fn a_request_of_the_callers_own_that_was_refused_after_a_lost_send_says_to_look_at_the_account() {
    let refused = SendFailure::Failure { code: "INSUFFICIENT_BALANCE", status: 402 };
    for (is_callers, unanswered, said) in [
        (true, true, (Effect::Unknown, Advice::CheckAccount)),
        (true, false, (Effect::None, Advice::Recharge)),
        (false, true, (Effect::Unknown, Advice::Recharge)),
    ] {
        let asked = JudgeContext { is_callers, ..asked(Safety::TwiceAtMost, false) };
        let mut ledger = Ledger { unanswered, sends: 2, ..Ledger::new(None, false) };
        let end = judge(asked, &mut ledger, refused, None);
        assert_eq!((end.effect, end.advice), said);
    }
}

#[test]
fn hosts_write_the_words_that_are_told() {
    use FailureKind::{Aborted, Closed, Connect, Dns, Headers, Late, Other, Timeout, Tls};
    let word = |json: serde_json::Value| json.as_str().map(str::to_owned).expect("is a word");
    for kind in [Dns, Connect, Tls, Timeout, Closed, Aborted, Late, Headers, Other] {
        assert_eq!(FailureKind::of(&word(serde_json::json!(kind))), Some(kind));
    }
    for sent in [Sent::Never, Sent::Maybe] {
        assert_eq!(Sent::of(&word(serde_json::json!(sent))), Some(sent));
    }
    assert_eq!((FailureKind::of("gone"), Sent::of("perhaps")), (None, None));
}
