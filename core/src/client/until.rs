//! Watching a read until something in its answer is as the caller wants it: a balance, the words of an order that the
//! contract does not document.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::Client;
use super::store::JobId;
use super::types::{Answered, Happening, Millis, Phase};
use crate::contract::Decimal;
use crate::policy::Error;

/// What a read is repeated for. It ends when the value at `at` is one of `is`, or a number of at least `at_least`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Until {
    /// Where in the answer's `data` to look, a JSON pointer (RFC 6901) such as `/status`.
    pub at: String,
    /// The values that end it; those that are no strings are compared with their JSON.
    pub is: Vec<String>,
    /// The number that ends it, once it is reached.
    pub at_least: Option<Decimal>,
}

impl Until {
    pub(super) fn refusal(&self) -> Option<&'static str> {
        match () {
            () if !self.at.is_empty() && !self.at.starts_with('/') => Some("must look at a JSON pointer, such as `/status`"),
            () if self.is.is_empty() && self.at_least.is_none() => Some("must say which values, or which number, end it"),
            () => None,
        }
    }

    /// The value that is looked at, as text.
    fn value<'a>(&self, data: &'a str) -> Option<Cow<'a, str>> {
        let mut found = data;
        for token in self.at.split('/').skip(1) {
            let name = token.replace("~1", "/").replace("~0", "~");
            found = match found.trim_start().as_bytes().first() {
                Some(b'{') => serde_json::from_str::<BTreeMap<Cow<'a, str>, &'a RawValue>>(found).ok()?.get(name.as_str())?.get(),
                Some(b'[') => serde_json::from_str::<Vec<&'a RawValue>>(found).ok()?.get(name.parse::<usize>().ok()?)?.get(),
                _ => return None,
            };
        }
        Some(serde_json::from_str::<String>(found).map_or(Cow::Borrowed(found), Cow::Owned))
    }

    fn holds(&self, value: Option<&str>) -> bool {
        let Some(value) = value else { return false };
        let reached = self.at_least.is_some_and(|least| value.parse::<Decimal>().is_ok_and(|number| number >= least));
        reached || self.is.iter().any(|wanted| wanted == value)
    }
}

impl Client {
    /// A read that is repeated was answered: is that the end of it?
    pub(super) fn looked(&mut self, id: JobId, until: &Until, answered: Answered) {
        let now = self.clock.monotonic();
        let value = until.value(answered.raw.text()).map(Cow::into_owned);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let over = job.is_past_deadline(now);
        // What is no word or number is not for an event, nor is anything beside credentials.
        let plain = |value: &String| value.len() <= 64 && !value.starts_with(['{', '[']);
        let shown = value.clone().filter(|value| !job.watch.credentials && plain(value));
        if job.looked.replace(shown.clone()) != Some(shown.clone()) {
            self.notify(id, Happening::Watched { value: shown });
        }
        let phase = if until.holds(value.as_deref()) { Phase::Ready } else { Phase::Pending };
        if phase == Phase::Ready || over {
            return self.finish(id, Ok(Answered { phase: Some(phase), ..answered }));
        }
        if self.jobs.get(&id).is_some_and(|job| job.cancelled) {
            return self.stop_cancelled(id);
        }
        self.look_again(id, now);
    }

    /// A read that is repeated failed, with all of its attempts. The value is still waited for, up to the deadline.
    pub(super) fn not_read_yet(&mut self, id: JobId, error: Error) {
        let (now, unix) = (self.clock.monotonic(), self.clock.unix());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let deadline = job.deadline(now);
        let asked = error.retry_at.map_or(0, |at| at.saturating_sub(unix)).max(0);
        let not_before = now.saturating_add(asked);
        if job.is_past_deadline(now) || not_before > deadline {
            return self.finish(id, Err(error));
        }
        self.look_again(id, not_before);
    }

    /// Plans the next read, the last one at the deadline. Each is a call of its own, with all of its attempts.
    fn look_again(&mut self, id: JobId, not_before: Millis) {
        let now = self.clock.monotonic();
        let wait = self.interval(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let deadline = job.deadline(now).max(now);
        job.read_anew();
        self.set_timer(id, now.saturating_add(wait).max(not_before).min(deadline));
    }
}

#[cfg(test)]
mod tests {
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
        for at in ["/nothing", "/status/0", "/a~1b/~0/2", "/a~1b/~0/x"] {
            assert_eq!(value(at, data), None, "{at}");
        }
    }

    #[test]
    fn a_number_is_compared_exactly() {
        let until = Until { at_least: "10.10".parse().ok(), ..Until::default() };
        assert!(until.holds(Some("10.1")) && until.holds(Some("11")) && !until.holds(Some("10.0999999999999999999")));
        assert!(!until.holds(Some("many")) && !until.holds(None));
    }
}
