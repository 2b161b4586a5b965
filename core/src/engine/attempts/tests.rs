use super::super::testing::*;
use super::*;

fn begun(given: &Given) -> Attempts {
    let mut attempts = Attempts::new(given.service.retry);
    attempts.sent(given.shared.clock.monotonic());
    attempts
}

#[test]
fn the_first_send_counts_and_the_last_attempt_is_the_last() {
    let mut given = Given::agent();
    let mut attempts = begun(&given);
    for sends in 1..=4 {
        let next = attempts.next_delay(Again::Same, 0, 0, true, &mut given.cx());
        assert_eq!(next.is_some(), sends < 4, "after {sends} sends");
        attempts.sent(0);
    }
}

#[test]
fn a_send_that_does_not_count_is_made_again() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut attempts = begun(&given);
    attempts.unsent();
    attempts.sent(0);
    assert_eq!(attempts.next_delay(Again::Same, 0, 0, true, &mut given.cx()), Some(0));
}

#[test]
fn waits_are_random_below_a_ceiling_that_doubles_and_never_below_what_the_service_asks() {
    let mut given = Given::agent();
    given.service.retry.attempts = 9;
    (given.service.retry.backoff_ms, given.service.retry.throttled_backoff_ms) = (500, 1000);
    let mut attempts = begun(&given);
    let mut waits = Vec::new();
    for ceiling in [500, 1000, 2000, 4000, 8000] {
        let wait = attempts.next_delay(Again::Same, 0, 0, true, &mut given.cx()).expect("it is sent again");
        assert!(wait < ceiling, "{wait} {ceiling}");
        waits.push(wait);
        attempts.sent(0);
    }
    assert!(waits.iter().any(|wait| *wait > 500), "{waits:?}");
    assert_eq!(attempts.next_delay(Again::Throttled, 25_000, 0, true, &mut given.cx()), Some(25_000));
    assert_eq!((begun(&given).ceiling(false), begun(&given).ceiling(true)), (500, 1000));
}

#[test]
fn a_wait_beyond_the_window_is_not_waited() {
    let mut given = Given::agent();
    assert_eq!(begun(&given).next_delay(Again::Same, 60_000, 0, true, &mut given.cx()), Some(60_000));
    assert_eq!(begun(&given).next_delay(Again::Same, 60_001, 0, true, &mut given.cx()), None);
}

#[test]
fn a_read_that_is_waited_for_is_sent_again_no_longer_than_its_caller_waits() {
    let mut given = Given::agent();
    given.wants.deadline_ms = 100;
    let mut attempts = begun(&given);
    attempts.limit = Limit::Deadline;
    assert_eq!((attempts.window_end(&given.cx()), begun(&given).window_end(&given.cx())), (100, 60_000));
    attempts.begin_anew();
    assert_eq!(attempts.limit, Limit::Deadline);
}

#[test]
fn what_serves_other_calls_is_sent_again_for_as_long_as_no_single_wait_is_too_long() {
    let mut given = Given::agent();
    let mut attempts = Attempts::of_shared_request(given.service.retry);
    attempts.sent(0);
    given.pass(1_000_000);
    assert_eq!(attempts.window(1_000_000, false, &given.cx()), Window::Open);
    assert_eq!(attempts.next_delay(Again::Same, 60_000, 1_000_000, false, &mut given.cx()), Some(60_000));
    assert_eq!(attempts.next_delay(Again::Same, 60_001, 1_000_000, false, &mut given.cx()), None);
}

#[test]
fn the_window_opens_with_the_first_send() {
    let mut given = Given::agent();
    let mut attempts = Attempts::new(given.service.retry);
    given.pass(1_000_000);
    assert_eq!(attempts.window(0, true, &given.cx()), Window::Open);
    attempts.sent(given.shared.clock.monotonic());
    given.pass(60_000);
    assert_eq!(attempts.window(given.shared.clock.monotonic(), true, &given.cx()), Window::Open);
    given.pass(1);
    assert_eq!(attempts.window(given.shared.clock.monotonic(), true, &given.cx()), Window::Over);
}

#[test]
fn what_is_throttled_waits_where_the_throttle_ends_within_the_window() {
    let mut given = Given::agent();
    let mut attempts = begun(&given);
    given.shared.gate.close(60_000, 0);
    assert_eq!(attempts.window(0, true, &given.cx()), Window::Throttled);
    given.shared.gate.close(60_001, 0);
    assert_eq!(attempts.window(0, true, &given.cx()), Window::TooLong);
    // The window is counted from the first send, not from now.
    given.pass(10_000);
    assert_eq!(attempts.window(10_000, true, &given.cx()), Window::TooLong);
}

#[test]
fn a_window_that_ran_out_while_the_host_slept_grants_a_write_with_a_key_one_more_send() {
    for (slept, is_keyed, then) in [(10_001, true, Window::Open), (10_000, true, Window::Over), (10_001, false, Window::Over)] {
        let mut given = Given::agent();
        let mut attempts = begun(&given);
        given.pass(60_000 + slept);
        assert_eq!(attempts.window(60_000, is_keyed, &given.cx()), then, "{slept} {is_keyed}");
        if then == Window::Open {
            // The grace is granted once.
            assert_eq!(attempts.window(60_000, is_keyed, &given.cx()), Window::Over);
        }
    }
}

#[test]
fn an_answer_that_came_after_a_sleep_grants_a_write_with_a_key_one_more_send() {
    for (slept, is_keyed, again) in [(70_000, true, Some(0)), (70_000, false, None)] {
        let mut given = Given::agent();
        let mut attempts = begun(&given);
        given.pass(slept);
        assert_eq!(attempts.next_delay(Again::Same, 0, 0, is_keyed, &mut given.cx()), again);
        if again.is_some() {
            assert_eq!(attempts.window(slept, is_keyed, &given.cx()), Window::Open);
            attempts.sent(slept);
            assert_eq!(attempts.next_delay(Again::Same, 0, 0, is_keyed, &mut given.cx()), None);
        }
    }
    // The granted send waits for a throttle as any other does: no longer than a window.
    let mut given = Given::agent();
    let mut attempts = begun(&given);
    given.pass(70_000);
    assert_eq!(attempts.next_delay(Again::Same, 0, 0, true, &mut given.cx()), Some(0));
    for (throttled_until, then) in [(130_000, Window::Throttled), (130_001, Window::TooLong)] {
        given.shared.gate.close(throttled_until, 0);
        assert_eq!(attempts.window(70_000, true, &given.cx()), then);
    }
    // The host did not sleep, but the window is shorter than an attempt.
    let mut given = Given::agent();
    given.service.retry.window_ms = 1000;
    let mut attempts = begun(&given);
    given.pass(30_000);
    assert_eq!(attempts.next_delay(Again::Same, 0, 0, true, &mut given.cx()), None);
}

#[test]
fn conflicts_have_a_limit_of_their_own_and_cost_neither_attempts_nor_window() {
    let mut given = Given::agent();
    given.service.retry.attempts = 2;
    let mut attempts = begun(&given);
    let mut waited = 0;
    while let Some(wait) = attempts.next_delay(Again::AwaitEarlier, 0, 0, true, &mut given.cx()) {
        given.pass(wait);
        waited += wait;
        assert_eq!(attempts.window(given.shared.clock.monotonic(), true, &given.cx()), Window::Open);
        attempts.sent(given.shared.clock.monotonic());
    }
    assert_eq!(waited, 115_000);
    assert_eq!(given.shared.quota.take(false), Some(14));
}

#[test]
fn who_wants_one_attempt_waits_for_no_earlier_request() {
    let mut given = Given::agent();
    given.service.retry.attempts = 1;
    let mut attempts = begun(&given);
    let kinds = [Again::No, Again::Same, Again::NewKey, Again::Throttled, Again::AwaitEarlier];
    assert_eq!(kinds.map(|again| attempts.next_delay(again, 0, 0, true, &mut given.cx())), [None; 5]);
}

#[test]
fn repeats_end_with_the_quota_and_success_gives_back_what_they_took() {
    let mut given = Given::agent();
    given.service.retry.attempts = 100;
    let mut attempts = begun(&given);
    let repeats = |attempts: &mut Attempts, given: &mut Given| {
        std::iter::from_fn(|| attempts.next_delay(Again::Same, 0, 0, true, &mut given.cx())).count()
    };
    assert_eq!(repeats(&mut attempts, &mut given), 35);
    attempts.succeeded(&mut given.cx());
    assert_eq!(repeats(&mut attempts, &mut given), 35);
}
