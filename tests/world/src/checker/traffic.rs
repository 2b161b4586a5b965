//! The sends that a client may make: not before its time, a key with one request, one login at a time.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};

use hopline::client::{Answered, CommandId, Millis};
use hopline::wire::Request;
use hopline::{Error, Kind};

use super::{EARLY, Harm, LOGINS, MIXED, REFUSED, RENEWED, Sending, THROWN};
use crate::service::{Remote, Response, is_login};

/// How long a token is good, and how long before its end it is renewed.
const LIFETIME: Millis = 2 * 3_600_000;
const RENEWED_EARLY: Millis = 60_000;
/// A throttle that is longer is that of the call that was asked to wait, and holds back no other.
const TRUSTED: Millis = 600_000;

/// The clocks of a client, and whether its wall clock was right all the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clocks {
    pub(crate) monotonic: Millis,
    pub(crate) unix: Millis,
    pub(crate) is_right: bool,
}

/// True if a command ended unsent and may be tried again after longer than a throttle may last for other calls.
pub(crate) fn is_put_off(result: &Result<Answered, Error>, clocks: Clocks) -> bool {
    let is_unsent =
        |error: &Error| error.kind == Kind::Unavailable && error.attempts == 0 && error.status.is_none() && error.cause.is_none();
    let at = |error: &Error| error.retry_at.filter(|_| is_unsent(error));
    result.as_ref().err().and_then(at).is_some_and(|at| at > clocks.unix + TRUSTED)
}

/// The request of each key, of any client.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Keyed(BTreeMap<String, u64>);

impl Keyed {
    pub(super) fn sends(&mut self, request: &Request) -> Result<(), Harm> {
        let Some(key) = request.header("idempotency-key") else { return Ok(()) };
        let mut hasher = rustc_hash::FxHasher::default();
        (request.method.as_str(), &request.url, &request.body).hash(&mut hasher);
        let sent = hasher.finish();
        if *self.0.entry(key.to_owned()).or_insert(sent) == sent { Ok(()) } else { Err(MIXED) }
    }
}

/// The limits that the service gave the present client of a program.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Traffic {
    /// From when the client may send again, by its monotonic clock.
    throttled_until: Option<Millis>,
    /// The times until which single calls wait: after a failure, or after a throttle that is too long to hold for other calls.
    paused_until: BTreeMap<(CommandId, String), Millis>,
    /// The newest token that the client knows and that nobody refused, and when it ends.
    good: Option<(String, Millis)>,
    login_refused: bool,
    /// How often the token of each call was refused: by its command and what it asks for.
    renewals: BTreeMap<(CommandId, String), u32>,
}

impl Traffic {
    pub(super) fn restarted(&mut self, token: Option<&String>) {
        *self = Traffic { good: token.map(|token| (token.clone(), Remote::START + LIFETIME)), ..Traffic::default() };
    }

    pub(super) fn login_is_refused(&self) -> bool {
        self.login_refused
    }

    pub(super) fn sends(&mut self, sending: &Sending<'_>) -> Result<(), Harm> {
        let (request, clocks) = (sending.request, sending.clocks);
        let call = (sending.command, request.url.clone());
        let until = self.throttled_until.max(self.paused_until.get(&call).copied());
        if until.is_some_and(|until| clocks.monotonic < until) {
            return Err(EARLY);
        }
        if is_login(request) {
            let is_early = |ends: Millis| clocks.is_right && clocks.unix < ends - RENEWED_EARLY;
            return match () {
                () if sending.beside_login => Err(LOGINS),
                () if self.login_refused => Err(REFUSED),
                () if self.good.as_ref().is_some_and(|(_, ends)| is_early(*ends)) => Err(THROWN),
                () => Ok(()),
            };
        }
        // An order is looked at again and again.
        let looks = request.url.contains("/static/order/list");
        if self.renewals.get(&call).is_some_and(|times| *times > 1) && !looks { Err(RENEWED) } else { Ok(()) }
    }

    pub(super) fn hears(&mut self, command: CommandId, request: &Request, response: &Response, now: Millis, clocks: Clocks) {
        let call = (command, request.url.clone());
        let wait = response.retry_after();
        if response.status == 429 && wait <= TRUSTED {
            self.throttled_until = self.throttled_until.max(Some(clocks.monotonic + wait));
        } else if (response.status == 429 || response.status >= 500) && wait > 0 && !is_login(request) {
            _ = self.paused_until.insert(call.clone(), clocks.monotonic + wait);
        }
        if is_login(request) {
            self.login_refused |= response.status == 401;
            if let Some(token) = response.json()["data"]["token"].as_str() {
                self.good = Some((token.to_owned(), now + LIFETIME));
            }
        } else if response.status == 200 {
            self.renewals.remove(&call);
        } else if response.status == 401 {
            let used = request.header("authorization").and_then(|given| given.strip_prefix("Bearer "));
            self.good.take_if(|(token, _)| Some(token.as_str()) == used);
            *self.renewals.entry(call).or_default() += 1;
        }
    }
}
