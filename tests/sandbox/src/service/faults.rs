//! Faults of the service itself: what a simulation without sockets needs. Faults of a connection belong to the server.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};

use super::envelope::{CODES, Refusal, RetryAfter};

/// A fault and the operations it applies to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule<F = Fault> {
    /// The operation by name; any request when absent.
    #[serde(default)]
    pub operation: Option<String>,
    /// How many requests it is applied to.
    #[serde(default = "once")]
    pub times: u32,
    /// The fault.
    pub fault: F,
}

/// The behaviour of the service instead of its plain work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Answers with an error.
    Error(ErrorFault),
    /// The work takes a while and is done at the end of it; until then every further send of the key is answered IDEMPOTENCY_CONFLICT. The
    /// immediate return is no answer: its extension is [`InProgress`](super::InProgress), for which
    /// [`Service::finish`](super::Service::finish) gives the answer later. Without a key there is nothing to hold, and the work is done
    /// late all the same.
    InProgress {
        /// How long the work takes.
        ms: i64,
        /// The error of the work, when it fails.
        error: Option<ErrorFault>,
    },
}

/// An error on demand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorFault {
    /// The code; any text. A number is read as its text, and the backend writes it as a number again.
    #[serde(deserialize_with = "code")]
    pub code: String,
    /// The HTTP status; by default the one that belongs to the code, and 422 for a code that is not of the contract.
    #[serde(default)]
    pub status: Option<u16>,
    /// True if the error is stored under the key of the write and replayed, as the answer of a finished write is. An error that is not
    /// stored is answered before the store is read.
    #[serde(default)]
    pub stored: bool,
    /// True if the work was done all the same: the supplier sold, and the buyer gets an error. If the work itself is refused, that refusal
    /// is the answer.
    #[serde(default)]
    pub sold: bool,
    /// How long to tell the client to wait.
    #[serde(default)]
    pub retry_after: Option<RetryAfter>,
}

impl ErrorFault {
    pub(crate) fn refusal(&self) -> Refusal {
        let known = CODES.iter().find(|(code, _)| *code == self.code).map(|(_, status)| *status);
        let status = self.status.or(known).unwrap_or(422);
        let refusal = Refusal::other(Cow::Owned(self.code.clone()), status, "a fault was asked for");
        match self.retry_after {
            Some(wait) => refusal.retry_after(wait),
            None => refusal,
        }
    }
}

impl Fault {
    /// True if the fault stands before the idempotency store, as authentication and the rate limit do.
    pub(crate) fn is_before_the_store(&self) -> bool {
        matches!(self, Self::Error(ErrorFault { stored: false, sold: false, .. }))
    }
}

/// Takes one use of the first rule that matches a request, which may be none of the operations; a rule that is used up goes.
pub(crate) fn take<F: Clone>(rules: &mut Vec<FaultRule<F>>, operation: Option<&str>, matches: impl Fn(&F) -> bool) -> Option<F> {
    let applies = |rule: &FaultRule<F>| {
        rule.times > 0 && matches(&rule.fault) && rule.operation.as_deref().is_none_or(|name| Some(name) == operation)
    };
    let place = rules.iter().position(applies)?;
    let rule = &mut rules[place];
    rule.times -= 1;
    let fault = rule.fault.clone();
    rules.retain(|rule| rule.times > 0);
    Some(fault)
}

fn code<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Code {
        Word(String),
        Number(i64),
    }
    Ok(match Code::deserialize(deserializer)? {
        Code::Word(word) => word,
        Code::Number(number) => number.to_string(),
    })
}

fn once() -> u32 {
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_matching_rule_is_taken_as_often_as_it_says() {
        let rule = |operation: Option<&str>, times, fault| FaultRule { operation: operation.map(str::to_owned), times, fault };
        let mut rules = vec![rule(Some("a"), 1, 'x'), rule(None, 2, 'y')];
        let mut taken = |operation| take(&mut rules, operation, |_| true);
        assert_eq!(taken(None), Some('y'));
        assert_eq!(taken(Some("a")), Some('x'));
        assert_eq!(taken(Some("b")), Some('y'));
        assert_eq!(taken(Some("a")), None);
        assert!(rules.is_empty());
    }
}
