//! What an outcome means for an operation: whether it settles the key, whether it may be sent again and with which key,
//! and what to report if it ends here.

use super::codes::{self, Advice, Automatic};
use super::error::{Effect, Kind};
use super::ledger::Ledger;
use super::rules::{Rule, Rules};
use crate::contract::{ANY, Endpoint, Safety, closed_enum};

closed_enum! {
    /// Why a host has no response.
    pub enum FailureKind {
        /// The host name has no address.
        Dns = "dns",
        /// No connection.
        Connect = "connect",
        /// No TLS session.
        Tls = "tls",
        /// No answer within the attempt's time.
        Timeout = "timeout",
        /// The connection broke.
        Closed = "closed",
        /// The host gave it up, after a cancel or on its own.
        Aborted = "aborted",
        /// The host came to it after `send_before`.
        Late = "late",
        /// The caller's function for headers failed.
        Headers = "headers",
        /// Anything else.
        Other = "other",
    }
}

impl FailureKind {
    /// What happened, as part of a sentence.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            FailureKind::Dns => "the host name has no address",
            FailureKind::Connect => "the service could not be reached",
            FailureKind::Tls => "no secure connection could be made",
            FailureKind::Timeout => "no answer came in time",
            FailureKind::Closed => "the connection broke before the answer",
            FailureKind::Aborted => "the request was aborted",
            FailureKind::Late => "the request came too late to be sent",
            FailureKind::Headers => "the function given as `headers` failed",
            FailureKind::Other => "the request failed",
        }
    }
}

closed_enum! {
    /// Whether a request that failed may have reached the service.
    pub enum Sent {
        /// Not one byte of it left: the failure is known to have come before.
        Never = "never",
        /// Nobody knows.
        Maybe = "maybe",
    }
}

/// What became of a send, other than success.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SendFailure<'a> {
    /// A failure envelope of the agent API.
    Failure { code: &'a str, status: u16 },
    /// A failure envelope of the reseller API, and whether it says that nothing was done.
    Refusal { status: u16, undone: bool },
    /// A refusal of an app's own backend, in its own words.
    Backend { status: u16 },
    /// A response without the envelope: a page, or an answer that broke off.
    Page { status: u16, broke_off: bool },
    /// No response.
    Lost(Sent),
}

/// What is asked of the service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) safety: Safety,
    pub(crate) paid: bool,
    pub(crate) retry_paid: bool,
    /// Whether the caller set a limit for the price.
    pub(crate) capped: bool,
    pub(crate) rules: Rules,
    /// What to do where it may have been done and is never sent again, as [`look_advice`] says.
    pub(crate) look: Option<Advice>,
    /// Whether it is a request of the caller's own, of which the contract says nothing.
    pub(crate) is_callers: bool,
}

impl Asked {
    pub(crate) fn new(endpoint: &Endpoint, retry_paid: bool, rules: Rules) -> Self {
        let look = look_advice(endpoint);
        let is_callers = endpoint.name == ANY;
        Asked { look, is_callers, safety: endpoint.safety, paid: endpoint.paid, retry_paid, capped: false, rules }
    }
}

/// Whether and how to send again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Again {
    /// Not at all.
    No,
    /// After a backoff, the same bytes and key.
    Same,
    /// The same, while the whole client holds back.
    Throttled,
    /// The same, on the slow schedule of conflicts.
    AwaitEarlier,
    /// After a backoff, with a new key, unless the caller gave the old one.
    NewKey,
}

/// What an outcome means. `kind`, `effect` and `advice` are what to report if nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Judgement {
    pub(crate) again: Again,
    pub(crate) kind: Kind,
    pub(crate) effect: Effect,
    pub(crate) advice: Advice,
    /// Whether the record stays, so that the operation can be resumed.
    pub(crate) keep: bool,
}

/// Judges an outcome and notes in the ledger what it settles.
pub(crate) fn judge(asked: Asked, ledger: &mut Ledger, outcome: SendFailure<'_>, request_id: Option<&str>) -> Judgement {
    match outcome {
        SendFailure::Lost(Sent::Never) => ending(asked, ledger, Again::Same, Kind::Unavailable, Advice::RetryLater),
        SendFailure::Lost(Sent::Maybe) => {
            ledger.unanswered |= asked.rules.holds(Rule::LostIsUnanswered);
            ending(asked, ledger, repeat(asked), Kind::Unavailable, Advice::RetryLater)
        }
        SendFailure::Page { status, broke_off } => {
            ledger.unanswered |= asked.rules.holds(Rule::PageIsUnanswered);
            let passing = broke_off || if asked.safety == Safety::Safe { is_passing_read(status) } else { is_passing(status) };
            // A write that may be repeated is sent again until the service itself answers; a page says nothing new to a read.
            let again = if passing || (matches!(asked.safety, Safety::Keyed | Safety::Idempotent) && status < 300) {
                repeat(asked)
            } else {
                Again::No
            };
            ending(asked, ledger, again, Kind::Protocol, if passing { Advice::RetryLater } else { Advice::CheckBaseUrl })
        }
        SendFailure::Backend { status } => refused_by_backend(asked, ledger, status),
        SendFailure::Refusal { status, undone } => refused(asked, ledger, status, undone),
        SendFailure::Failure { code, status } => answered(asked, ledger, code, status, request_id),
    }
}

fn answered(asked: Asked, ledger: &mut Ledger, code: &str, status: u16, request_id: Option<&str>) -> Judgement {
    let Some(row) = codes::code(code) else {
        // NOT DOCUMENTED: what any other code means. It never counts as an answer to a write with a key; without one, not where it may
        // have been done, or may be done later.
        let later = is_passing(status) || status == 409;
        let may_be_done = status >= 500 || (later && asked.rules.holds(Rule::LaterIsUnanswered));
        ledger.unanswered |= asked.safety == Safety::Keyed || may_be_done;
        let kind = if status >= 500 || status == 429 { Kind::Unavailable } else { Kind::Refused };
        let advice = if kind == Kind::Refused { Advice::ChangeRequest } else { Advice::RetryLater };
        return ending(asked, ledger, Again::No, kind, advice);
    };
    let door = !asked.rules.holds(Rule::DoorSettlesNothing) && row.automatic != Automatic::AwaitEarlier;
    // Whatever its code, a 401 or 403 came from the door.
    // Without a key, an answer speaks for its own send and not for an earlier one.
    let own = asked.safety == Safety::Keyed || ledger.sends <= 1;
    let settles = row.settles && own && !matches!(status, 401 | 403);
    ledger.unanswered &= !(settles || door);
    ledger.refused &= !settles;
    match row.automatic {
        // What was refused stays so, whatever became of an earlier send: asking once more says nothing new. Of a request of the caller's
        // own nobody knows what that one did.
        Automatic::No if asked.safety == Safety::TwiceAtMost && row.settles => {
            let end = ending(asked, ledger, Again::No, Kind::Refused, row.advice);
            let may_have_done_more = asked.is_callers && end.effect == Effect::Unknown;
            Judgement { advice: if may_have_done_more { Advice::CheckAccount } else { row.advice }, ..end }
        }
        Automatic::No => ending(asked, ledger, Again::No, Kind::Refused, row.advice),
        Automatic::UnderCap => {
            let again = if asked.capped { Again::NewKey } else { Again::No };
            ending(asked, ledger, again, Kind::Refused, row.advice)
        }
        Automatic::Wait => {
            let replay = request_id.is_some() && ledger.throttled_by.as_deref() == request_id;
            ledger.throttled_by = request_id.map(str::to_owned);
            // The 429 was stored for the key, so the key can do nothing any more. Where a send of the key is unanswered, the id may
            // as well be one that a gateway repeats, and that send may have bought.
            let settled = !ledger.unanswered || !asked.rules.holds(Rule::ReplaySettlesNoEarlierSend);
            if replay && settled && asked.safety == Safety::Keyed {
                ledger.unanswered = false;
                return ending(asked, ledger, Again::NewKey, Kind::Unavailable, row.advice);
            }
            let mut end = ending(asked, ledger, Again::Throttled, Kind::Unavailable, row.advice);
            if asked.safety == Safety::Keyed {
                // The record and the key are kept to resume with, so this is not the last word.
                end = Judgement { kind: Kind::InDoubt, effect: Effect::Unknown, advice: Advice::Resume, keep: true, ..end };
            }
            end
        }
        Automatic::AwaitEarlier => {
            if !asked.rules.holds(Rule::ConflictKeepsKey) {
                ledger.unanswered = false;
                return ending(asked, ledger, Again::NewKey, Kind::Unavailable, row.advice);
            }
            ledger.unanswered |= asked.safety != Safety::Safe;
            let again = if asked.safety == Safety::Keyed { Again::AwaitEarlier } else { Again::No };
            let advice = if asked.safety == Safety::Safe { row.advice_of_read() } else { row.advice };
            ending(asked, ledger, again, Kind::Refused, advice)
        }
        Automatic::NewKey => {
            let may_repeat = match asked.safety {
                Safety::Safe | Safety::Idempotent | Safety::TwiceAtMost => true,
                Safety::Keyed => !asked.paid || asked.retry_paid || !asked.rules.holds(Rule::PaidFailureStops),
                Safety::AtMostOnce => false,
            };
            ledger.failed |= asked.paid || !matches!(asked.safety, Safety::Safe | Safety::Keyed);
            ledger.may_have_sold |= ledger.failed;
            let again = match asked.safety {
                Safety::Keyed if may_repeat => Again::NewKey,
                Safety::Safe | Safety::Idempotent | Safety::TwiceAtMost => Again::Same,
                _ => Again::No,
            };
            ending(asked, ledger, again, Kind::Unavailable, row.advice)
        }
    }
}

/// Whether a failure with that HTTP status may be over soon.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Whether a page with that HTTP status, to a read, may be over soon: so are also a cache's 304, which was not requested, and a server's 421
/// for a connection that leads to another one.
pub(crate) fn is_passing_read(status: u16) -> bool {
    is_passing(status) || matches!(status, 304 | 421)
}

/// What an app's own backend refuses it has not passed on, says the contract between the app and Hopline. It speaks for that send alone.
fn refused_by_backend(asked: Asked, ledger: &mut Ledger, status: u16) -> Judgement {
    ledger.unanswered &= asked.rules.holds(Rule::BackendSettlesNothing);
    ledger.refused |= asked.safety == Safety::Keyed;
    let (again, kind, advice) = match status {
        429 if asked.safety == Safety::Safe => (Again::Throttled, Kind::Unavailable, Advice::Wait),
        429 => (Again::Throttled, Kind::Refused, Advice::Wait),
        401 => (Again::No, Kind::Refused, Advice::Reauthenticate),
        403 => (Again::No, Kind::Refused, Advice::Stop),
        404 => (Again::No, Kind::Refused, Advice::CheckBaseUrl),
        _ => (Again::No, Kind::Refused, Advice::ChangeRequest),
    };
    ending(asked, ledger, again, kind, advice)
}

/// A failure envelope of the reseller API, whose codes are not documented.
fn refused(asked: Asked, ledger: &mut Ledger, status: u16, undone: bool) -> Judgement {
    if undone {
        let advice = match status {
            401 => Advice::Reauthenticate,
            403 => Advice::Stop,
            _ => Advice::ChangeRequest,
        };
        return ending(asked, ledger, Again::No, Kind::Refused, advice);
    }
    let rule = if status >= 500 { Rule::FailureIsUnanswered } else { Rule::OnlyRefusalsUndo };
    ledger.unanswered |= asked.safety != Safety::Safe && asked.rules.holds(rule);
    match status {
        429 if asked.safety != Safety::AtMostOnce => ending(asked, ledger, Again::Throttled, Kind::Unavailable, Advice::Wait),
        _ => ending(asked, ledger, repeat(asked), Kind::Unavailable, Advice::RetryLater),
    }
}

/// What to do about a write that may have been done and is never sent again; none of any other.
pub(crate) fn look_advice(endpoint: &Endpoint) -> Option<Advice> {
    let once = endpoint.safety == Safety::AtMostOnce;
    once.then(|| if super::lookups(endpoint.name).is_empty() { Advice::CheckAccount } else { Advice::Reconcile })
}

/// After an outcome that leaves the effect open.
fn repeat(asked: Asked) -> Again {
    if asked.safety == Safety::AtMostOnce && asked.rules.holds(Rule::OpenWriteRests) { Again::No } else { Again::Same }
}

/// What to report if it ends here: the kind that was found, unless the effect is open.
fn ending(asked: Asked, ledger: &Ledger, again: Again, kind: Kind, advice: Advice) -> Judgement {
    if asked.safety == Safety::Safe || !ledger.is_open() {
        return Judgement { again, kind, effect: Effect::None, advice, keep: false };
    }
    // A settled key can't be resumed: all that is left is to look at the account.
    // What a repeat does not change can always be asked for once more.
    let keep = ledger.unanswered || matches!(asked.safety, Safety::Idempotent | Safety::TwiceAtMost);
    let advice = asked.look.unwrap_or(if keep { Advice::Resume } else { Advice::CheckAccount });
    Judgement { again, kind: Kind::InDoubt, effect: Effect::Unknown, advice, keep }
}

#[cfg(test)]
mod tests;
