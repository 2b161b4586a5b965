//! Repeats a read until a value in its answer meets a condition: a balance, or a word of an order that the contract does not document.

use std::borrow::Cow;

use super::answer::{Answered, Phase};
use super::attempts::Limit;
use super::call::{Call, CallOutcome};
use super::context::Cx;
use super::event::EventKind;
use super::machine::{Action, Input};
use super::poller::Poller;
use crate::contract::{Decimal, Shape};
use crate::json::{from_json, items, members, plain};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::time::Millis;
use crate::wire::is_secret_name;

/// The condition that ends a repeated read: the value at `at` is one of `is`, or a number of at least `at_least`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Until {
    /// The place of the value in the answer's `data`, a JSON pointer (RFC 6901) such as `/status`.
    pub at: String,
    /// The values that end the read; a value that is not a string is compared by its JSON.
    pub is: Vec<String>,
    /// The least number that ends the read.
    pub at_least: Option<Decimal>,
}

from_json!(Until or default { at, is, at_least });

impl Until {
    pub(crate) fn refusal(&self) -> Option<&'static str> {
        match () {
            () if !self.at.is_empty() && !self.at.starts_with('/') => Some("must name a member by a JSON pointer, such as `/status`"),
            () if self.is.is_empty() && self.at_least.is_none() => Some("must have the values, or the number, that end the wait"),
            () => None,
        }
    }

    /// The value at the place, as text.
    fn value<'a>(&self, data: &'a str) -> Option<Cow<'a, str>> {
        let mut found = data;
        for name in self.names() {
            found = match found.trim_start().as_bytes().first() {
                Some(b'{') => {
                    let mut named = members(found).ok()?.into_iter().filter(|(known, _)| *known == name);
                    // A member that comes twice counts as absent, since the right one can't be known.
                    named.next().filter(|_| named.next().is_none())?.1
                }
                Some(b'[') => items(found).ok()?.into_iter().nth(name.parse().ok()?)?,
                _ => return None,
            };
        }
        Some(plain(found))
    }

    /// The names that the pointer goes through, from the outside in.
    fn names(&self) -> impl Iterator<Item = String> {
        self.at.split('/').skip(1).map(|token| token.replace("~1", "/").replace("~0", "~"))
    }

    /// Returns true if the value is a secret, in an answer of that shape: by the table, or by its name.
    fn is_secret(&self, shape: Shape) -> bool {
        let mut shape = shape;
        for name in self.names() {
            if is_secret_name(&name) {
                return true;
            }
            shape = match shape {
                Shape::Record(record) => {
                    let known = record.fields.iter().find(|field| field.name == name || field.aliases.contains(&name.as_str()));
                    known.map_or(Shape::Json, |field| field.shape)
                }
                Shape::List(item) | Shape::OneOrMany(item) => *item,
                _ => Shape::Json,
            };
        }
        shape.has_secrets()
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return false };
        let reached = self.at_least.is_some_and(|least| value.parse::<Decimal>().is_ok_and(|number| number >= least));
        reached || self.is.iter().any(|wanted| wanted == value)
    }
}

/// A read that is repeated until a value in its answer meets the condition, or the deadline has come.
#[derive(Debug, Clone, Hash)]
pub(crate) struct UntilRead {
    until: Until,
    call: Call,
    poller: Poller,
    /// The last value that an event reported.
    seen: Option<Option<String>>,
}

impl UntilRead {
    pub(crate) fn new(until: Until, mut call: Call) -> Self {
        call.attempts.limit = Limit::Deadline;
        UntilRead { until, call, poller: Poller::default(), seen: None }
    }

    /// Advances the read with one input.
    pub(crate) fn handle(&mut self, input: Input<'_>, cx: &mut Cx<'_>) -> Action {
        match self.call.read(input, cx) {
            CallOutcome::Pending(action) => action,
            CallOutcome::Success(answered) => self.read(*answered, cx),
            CallOutcome::Cancelled => stop(cx),
            // The read goes on, up to the deadline.
            CallOutcome::Failed(_, error) if error.may_pass() => self.not_read(error, cx),
            CallOutcome::Failed(_, error) => Action::End(Err(error)),
        }
    }

    fn read(&mut self, mut answered: Answered, cx: &mut Cx<'_>) -> Action {
        self.call.learn(&answered, cx);
        let value = self.until.value(answered.raw.text()).map(Cow::into_owned);
        // An event holds only a word or a number, never a secret, and nothing of an answer with credentials.
        let plain = |value: &String| value.len() <= 64 && !value.starts_with(['{', '[']);
        let is_secret = cx.wants.session_options.credentials || self.until.is_secret(self.call.exchange.endpoint.response);
        let shown = value.clone().filter(|value| !is_secret && plain(value));
        if self.seen.replace(shown.clone()) != Some(shown.clone()) {
            cx.note(EventKind::Watched { value: shown });
        }
        let phase = if self.until.holds(value.as_deref()) { Phase::Ready } else { Phase::Pending };
        if phase == Phase::Ready || cx.is_past_deadline() {
            answered.phase = Some(phase);
            return Action::End(Ok(Box::new(answered)));
        }
        if !cx.wanted {
            return stop(cx);
        }
        self.read_again(0, cx)
    }

    fn not_read(&mut self, error: Error, cx: &mut Cx<'_>) -> Action {
        let asked = error.retry_at.map_or(0, |at| at.saturating_sub(cx.shared.clock.unix())).max(0);
        if cx.is_past_deadline() || cx.now().saturating_add(asked) > cx.deadline() {
            return Action::End(Err(error));
        }
        self.read_again(asked, cx)
    }

    /// Plans the next read, the last one at the deadline. Each read is a call of its own, with all of its attempts.
    fn read_again(&mut self, asked_to_wait: Millis, cx: &mut Cx<'_>) -> Action {
        let wake = self.poller.next_call(asked_to_wait, cx);
        self.call.begin_anew(cx);
        Action::Wake(wake)
    }
}

/// Ends a read that no caller waits for.
pub(crate) fn stop(cx: &Cx<'_>) -> Action {
    let what = "was cancelled before it had any effect";
    Action::End(Err(cx.subject.error(Kind::Cancelled, Effect::None, what, Advice::Nothing)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::*;
    use super::*;

    fn value(at: &str, data: &str) -> Option<String> {
        Until { at: at.to_owned(), ..Until::default() }.value(data).map(Cow::into_owned)
    }

    #[test]
    fn a_pointer_finds_what_it_names() {
        let data = r#"{"status":"paid","a/b":{"~":[1.10,true]},"n":null}"#;
        assert_eq!(value("/status", data).as_deref(), Some("paid"));
        assert_eq!(value("/a~1b/~0/0", data).as_deref(), Some("1.10"));
        assert_eq!(value("/a~1b/~0/1", data).as_deref(), Some("true"));
        assert_eq!(value("/n", data).as_deref(), Some("null"));
        assert_eq!(value("", "7").as_deref(), Some("7"));
        assert_eq!(value("/status", r#"{"status":"pending","status":"paid"}"#), None);
        for at in ["/nothing", "/status/0", "/a~1b/~0/2", "/a~1b/~0/x"] {
            assert_eq!(value(at, data), None, "{at}");
        }
    }

    #[test]
    fn what_is_secret_by_the_table_or_by_its_name_is_in_no_event() {
        use crate::contract::endpoint;

        let is_secret = |operation: &str, at: &str| {
            let shape = endpoint(operation).expect("is in the table").response;
            Until { at: at.to_owned(), ..Until::default() }.is_secret(shape)
        };
        assert!(is_secret("list_sub_users", "/items/0/email") && is_secret("list_sub_users", "/list/0/email"));
        assert!(is_secret("get_session", "/proxy/full_url") && is_secret("get_session", "/proxy"));
        assert!(is_secret("get_balance", "/account/apiKey") && is_secret("get_balance", "/logins/0/pass_word"));
        assert!(!is_secret("get_session", "/status") && !is_secret("get_session", "/proxy/host") && !is_secret("get_balance", "/balance"));
    }

    #[test]
    fn a_number_is_compared_exactly() {
        let until = Until { at_least: "10.10".parse().ok(), ..Until::default() };
        assert!(until.holds(Some("10.1")) && until.holds(Some("11")) && !until.holds(Some("10.0999999999999999999")));
        assert!(!until.holds(Some("many")) && !until.holds(None));
    }

    const READ: &str = "send GET /billing/balance";

    /// A balance of at least 10 is waited for, within 100 s.
    fn topped_up(given: &mut Given) -> UntilRead {
        given.wants.deadline_ms = 100_000;
        let until = Until { at: "/balance".to_owned(), at_least: "10".parse().ok(), ..Until::default() };
        UntilRead::new(until, given.read("get_balance", "{}"))
    }

    fn less() -> Tell {
        success(r#"{"balance":9.99}"#)
    }

    #[test]
    fn it_is_read_until_the_value_is_there_and_a_change_is_reported_once() {
        let mut given = Given::agent();
        let mut until = topped_up(&mut given);
        let said = given.tell(&mut until, [due(), less(), due(), less(), due(), success(r#"{"balance":10.0}"#)]);
        assert_eq!(said, [READ, "wake", READ, "wake", READ, "end: done Ready"]);
        assert_eq!(given.notes(), ["watched 9.99", "watched 10.0"]);
    }

    #[test]
    fn an_event_shows_words_and_numbers_alone() {
        for (data, shown) in [
            (format!(r#"{{"balance":"{}"}}"#, "x".repeat(64)), "x".repeat(64)),
            (format!(r#"{{"balance":"{}"}}"#, "x".repeat(65)), "nothing".to_owned()),
            (r#"{"balance":{"usd":9}}"#.to_owned(), "nothing".to_owned()),
            (r#"{"balance":[9]}"#.to_owned(), "nothing".to_owned()),
        ] {
            let mut given = Given::agent();
            let mut until = topped_up(&mut given);
            given.tell(&mut until, [due(), success(Box::leak(data.into_boxed_str()))]);
            assert_eq!(given.notes(), [format!("watched {shown}")]);
        }
    }

    #[test]
    fn at_the_deadline_one_last_read_is_made_and_says_that_it_is_not_so() {
        let mut given = Given::agent();
        let mut until = topped_up(&mut given);
        given.wants.deadline_ms = 500;
        assert_eq!(given.tell(&mut until, [due(), less()]), [READ, "wake"]);
        assert_eq!(given.wait(), 500);
        assert_eq!(given.tell(&mut until, [due(), less()]), [READ, "end: done Pending"]);
    }

    #[test]
    fn what_may_be_over_soon_is_waited_for_and_a_refusal_ends_it() {
        for (answer, says) in [
            (lost(), "wake"),
            (page(502), "wake"),
            (page(200), "wake"),
            (page(404), "end: Protocol None CheckBaseUrl"),
            (failure("INTERNAL_ERROR", 500), "wake"),
            (failure("AUTH_INVALID_KEY", 401), "end: Refused None Stop"),
            (failure("RATE_LIMIT_EXCEEDED", 429).retry_after(100), "wake"),
            (failure("RATE_LIMIT_EXCEEDED", 429).retry_after(101), "end: Unavailable None Wait"),
        ] {
            let mut given = Given::agent();
            given.service.retry.attempts = 1;
            let mut until = topped_up(&mut given);
            assert_eq!(given.tell(&mut until, [due(), answer]), [READ, says]);
        }
    }

    #[test]
    fn a_read_that_failed_at_the_deadline_ends_with_its_error() {
        let mut given = Given::agent();
        given.service.retry.attempts = 1;
        let mut until = topped_up(&mut given);
        assert_eq!(given.tell(&mut until, [due(), lost().after(100_000)]), [READ, "end: Unavailable None RetryLater"]);
    }

    #[test]
    fn a_read_that_nobody_waits_for_any_more_is_not_repeated() {
        for (sent, input, says) in [
            (false, due(), "end: Cancelled None Nothing"),
            (true, less(), "end: Cancelled None Nothing"),
            (true, lost(), "end: Cancelled None Nothing"),
            (true, success(r#"{"balance":10}"#), "end: done Ready"),
        ] {
            let mut given = Given::agent();
            let mut until = topped_up(&mut given);
            if sent {
                given.tell(&mut until, [due()]);
            }
            given.wanted = false;
            assert_eq!(given.tell(&mut until, [input]), [says]);
        }
    }
}
