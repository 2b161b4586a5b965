//! Judges the outcome of a send: whether it settles the key, whether the operation may be sent again and with which key, and what to report
//! if it ends here.

use super::codes::{self, Advice, Automatic};
use super::error::{Effect, Kind};
use super::ledger::Ledger;
use super::rules::{Rule, Rules};
use crate::contract::{ANY, Endpoint, Safety, closed_enum};

closed_enum! {
    /// The reason why a host has no response.
    pub enum FailureKind {
        /// The host name has no address.
        Dns = "dns",
        /// The connection could not be made.
        Connect = "connect",
        /// The TLS session could not be made.
        Tls = "tls",
        /// The answer did not come within the attempt's time.
        Timeout = "timeout",
        /// The connection broke.
        Closed = "closed",
        /// The host aborted the request, after a cancel or on its own.
        Aborted = "aborted",
        /// The host got to the request after `send_before`.
        Late = "late",
        /// The caller's function for headers failed.
        Headers = "headers",
        /// Any other reason.
        Other = "other",
    }
}

impl FailureKind {
    /// The reason, as part of a sentence.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            FailureKind::Dns => "the host name has no address",
            FailureKind::Connect => "the service could not be reached",
            FailureKind::Tls => "no secure connection could be made",
            FailureKind::Timeout => "no answer came in time",
            FailureKind::Closed => "the connection broke before the answer",
            FailureKind::Aborted => "the request was aborted",
            FailureKind::Late => "the host reached the request too late to send it",
            FailureKind::Headers => "the `headers` function failed",
            FailureKind::Other => "the request failed",
        }
    }
}

closed_enum! {
    /// The reach of a request that failed.
    pub enum Sent {
        /// Not one byte left the host: the failure certainly came before.
        Never = "never",
        /// The request may have reached the service.
        Maybe = "maybe",
    }
}

/// The outcome of a send, other than success.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SendFailure<'a> {
    /// A failure envelope of the agent API.
    Failure { code: &'a str, status: u16 },
    /// A failure envelope of the reseller API; `undone` is true if it says that nothing was done.
    Refusal { status: u16, undone: bool },
    /// A refusal by an app's own backend, in its own format.
    Backend { status: u16 },
    /// A response without the envelope: a page, or an answer that broke off.
    Page { status: u16, broke_off: bool },
    /// No response.
    Lost(Sent),
}

/// The facts of an operation that judging needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct JudgeContext {
    pub(crate) safety: Safety,
    pub(crate) paid: bool,
    pub(crate) retry_paid: bool,
    /// True if the caller set a limit for the price.
    pub(crate) capped: bool,
    /// True if the client may choose another product after this answer.
    pub(crate) chooses: bool,
    pub(crate) rules: Rules,
    /// The next step where the operation may have taken effect and is never sent again, from [`look_advice`].
    pub(crate) look: Option<Advice>,
    /// True for a request of the caller's own, which the contract does not describe.
    pub(crate) is_callers: bool,
}

impl JudgeContext {
    pub(crate) fn new(endpoint: &Endpoint, retry_paid: bool, rules: Rules) -> Self {
        let look = look_advice(endpoint);
        let is_callers = endpoint.name == ANY;
        JudgeContext { look, is_callers, safety: endpoint.safety, paid: endpoint.paid, retry_paid, capped: false, chooses: false, rules }
    }
}

/// The decision on another send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Again {
    /// Not at all.
    No,
    /// After a backoff, the same bytes and key.
    Same,
    /// After a backoff, the same bytes and key, while the whole client is throttled.
    Throttled,
    /// Sends the same bytes and key, on the slow schedule of conflicts.
    AwaitEarlier,
    /// After a backoff, with a new key, unless the caller gave the old one.
    NewKey,
}

/// The judgement of an outcome. `kind`, `effect` and `advice` are what to report if nothing more is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Judgement {
    pub(crate) again: Again,
    pub(crate) kind: Kind,
    pub(crate) effect: Effect,
    pub(crate) advice: Advice,
    /// True if the record stays, so that the operation can be resumed.
    pub(crate) keep: bool,
}

/// Judges an outcome and updates the ledger.
pub(crate) fn judge(asked: JudgeContext, ledger: &mut Ledger, outcome: SendFailure<'_>, request_id: Option<&str>) -> Judgement {
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

fn answered(asked: JudgeContext, ledger: &mut Ledger, code: &str, status: u16, request_id: Option<&str>) -> Judgement {
    let Some(row) = codes::code(code) else {
        // NOT DOCUMENTED: the meaning of any other code. Such a code never counts as an answer to a write with a key; without a key, not if
        // the write may have been done, or may be done later.
        let later = is_passing(status) || status == 409;
        let may_be_done = status >= 500 || (later && asked.rules.holds(Rule::LaterIsUnanswered));
        ledger.unanswered |= asked.safety == Safety::Keyed || may_be_done;
        let kind = if status >= 500 || status == 429 { Kind::Unavailable } else { Kind::Refused };
        let advice = if kind == Kind::Refused { Advice::ChangeRequest } else { Advice::RetryLater };
        return ending(asked, ledger, Again::No, kind, advice);
    };
    let door = !asked.rules.holds(Rule::DoorSettlesNothing) && row.automatic != Automatic::AwaitEarlier;
    // A 401 or 403 comes from authentication, whatever its code. Without a key, an answer is about its own send and not about an earlier
    // one.
    let own = asked.safety == Safety::Keyed || ledger.sends <= 1;
    let settles = row.settles && own && !matches!(status, 401 | 403);
    ledger.unanswered &= !(settles || door);
    ledger.refused &= !settles;
    match row.automatic {
        // Only what had no effect, with any of its keys, goes on with another product.
        _ if asked.chooses && !ledger.is_open() => ending(asked, ledger, Again::NewKey, Kind::Refused, row.advice),
        // A refusal does not change with an earlier send: another request would give no news. For a request of the caller's own the effect
        // of the earlier send is unknown.
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
            // The 429 was stored for the key, so the key can do nothing any more. If a send of the key is unanswered, a gateway may have
            // repeated the id, and that send may have bought.
            let settled = !ledger.unanswered || !asked.rules.holds(Rule::ReplaySettlesNoEarlierSend);
            if replay && settled && asked.safety == Safety::Keyed {
                ledger.unanswered = false;
                return ending(asked, ledger, Again::NewKey, Kind::Unavailable, row.advice);
            }
            let mut end = ending(asked, ledger, Again::Throttled, Kind::Unavailable, row.advice);
            if asked.safety == Safety::Keyed {
                // The record and the key are kept to resume with, so this result is not final.
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

/// Returns true if a failure with that HTTP status may be over soon.
pub(crate) fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..=599)
}

/// Returns true if a page with that HTTP status, to a read, may be over soon. This includes a cache's 304, which was not requested, and a
/// server's 421 for a connection that leads to another server.
pub(crate) fn is_passing_read(status: u16) -> bool {
    is_passing(status) || matches!(status, 304 | 421)
}

/// A refusal of an app's own backend was not passed on to the service, by the contract between the app and Hopline. The refusal is about
/// that send alone.
fn refused_by_backend(asked: JudgeContext, ledger: &mut Ledger, status: u16) -> Judgement {
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

/// Judges a failure envelope of the reseller API, whose codes are not documented.
fn refused(asked: JudgeContext, ledger: &mut Ledger, status: u16, undone: bool) -> Judgement {
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

/// The next step for a write that may have been done and is never sent again; `None` for any other.
pub(crate) fn look_advice(endpoint: &Endpoint) -> Option<Advice> {
    let once = endpoint.safety == Safety::AtMostOnce;
    once.then(|| if super::lookups(endpoint.name).is_empty() { Advice::CheckAccount } else { Advice::Reconcile })
}

/// The repeat after an outcome that leaves the effect open.
fn repeat(asked: JudgeContext) -> Again {
    if asked.safety == Safety::AtMostOnce && asked.rules.holds(Rule::OpenWriteRests) { Again::No } else { Again::Same }
}

/// The report if the operation ends here: the given kind, unless the effect is open.
fn ending(asked: JudgeContext, ledger: &Ledger, again: Again, kind: Kind, advice: Advice) -> Judgement {
    if asked.safety == Safety::Safe || !ledger.is_open() {
        return Judgement { again, kind, effect: Effect::None, advice, keep: false };
    }
    // A settled key can't be resumed: the only way is to check the account. An operation whose repeat changes nothing more can always be
    // resumed.
    let keep = ledger.unanswered || matches!(asked.safety, Safety::Idempotent | Safety::TwiceAtMost);
    let advice = asked.look.unwrap_or(if keep { Advice::Resume } else { Advice::CheckAccount });
    Judgement { again, kind: Kind::InDoubt, effect: Effect::Unknown, advice, keep }
}

#[cfg(test)]
mod tests;
