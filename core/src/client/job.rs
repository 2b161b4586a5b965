//! A job: one call, one purchase, one change of a session, from its start to its end, with the table of its transitions.

use super::lookup::Lookup;
use super::options::CallOptions;
use super::order::OrderWatch;
use super::price::Price;
use super::record::SavedCall;
use super::store::JobId;
use super::types::{CommandId, Millis, RecordId, StepId};
use super::until::Until;
use crate::contract::{ANY, Endpoint, Safety};
use crate::policy::{Error, Ledger, RetryPolicy, Rule, Rules};
use crate::wire::Built;

/// Where a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// A send is due at a known time.
    Waiting,
    /// The record is being saved before the send.
    Saving,
    /// The request is out.
    Sending,
    /// The record is being deleted before "nothing happened" is said.
    Deleting,
    /// The answer is in; a read of the session is due at a known time.
    Watching,
    /// A read of the session is out.
    Reading,
    /// In doubt, restored, or left by all who waited: nothing happens until somebody resumes or settles it.
    Held,
    /// The service's time is being read, to know how old a restored key is.
    Asking,
    /// The price is being read, before anything is bought.
    Pricing,
    /// A login is under way, whose token it will be sent with.
    LoggingIn,
    /// Over.
    Done,
}

/// What moves a job on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum On {
    /// A send that must be saved first is due.
    Save,
    /// The request goes out.
    Send,
    /// It will be sent again.
    Again,
    /// It had no effect, and its record must go before that is said.
    Refuse,
    /// It was accepted; the session is to be read.
    Follow,
    /// A read is due.
    Read,
    /// Its effect is not known, or nobody waits for it any more.
    Hold,
    /// The service's time is needed first.
    Ask,
    /// The price is needed first.
    Price,
    /// A token is needed first.
    Login,
    /// It is over.
    End,
}

/// Every move that a job can make after its beginning.
pub const TRANSITIONS: &[(State, On, State)] = &[
    (State::Waiting, On::Price, State::Pricing),
    (State::Waiting, On::Save, State::Saving),
    (State::Waiting, On::Send, State::Sending),
    (State::Waiting, On::Refuse, State::Deleting),
    (State::Waiting, On::Hold, State::Held),
    (State::Waiting, On::End, State::Done),
    (State::Saving, On::Send, State::Sending),
    (State::Saving, On::Again, State::Waiting),
    (State::Saving, On::Refuse, State::Deleting),
    (State::Saving, On::Hold, State::Held),
    (State::Saving, On::End, State::Done),
    (State::Sending, On::Again, State::Waiting),
    (State::Sending, On::Refuse, State::Deleting),
    (State::Sending, On::Follow, State::Watching),
    (State::Sending, On::Hold, State::Held),
    (State::Sending, On::End, State::Done),
    (State::Deleting, On::Again, State::Waiting),
    (State::Deleting, On::Hold, State::Held),
    (State::Deleting, On::End, State::Done),
    (State::Watching, On::Read, State::Reading),
    (State::Watching, On::Hold, State::Held),
    (State::Watching, On::End, State::Done),
    (State::Reading, On::Follow, State::Watching),
    (State::Reading, On::Hold, State::Held),
    (State::Reading, On::End, State::Done),
    (State::Held, On::Ask, State::Asking),
    (State::Held, On::Again, State::Waiting),
    (State::Held, On::Follow, State::Watching),
    (State::Held, On::Refuse, State::Deleting),
    (State::Held, On::End, State::Done),
    (State::Pricing, On::Again, State::Waiting),
    (State::Pricing, On::Refuse, State::Deleting),
    (State::Pricing, On::Hold, State::Held),
    (State::Pricing, On::End, State::Done),
    (State::Waiting, On::Login, State::LoggingIn),
    (State::LoggingIn, On::Again, State::Waiting),
    (State::LoggingIn, On::Refuse, State::Deleting),
    (State::LoggingIn, On::Hold, State::Held),
    (State::LoggingIn, On::End, State::Done),
    (State::Asking, On::Again, State::Waiting),
    (State::Asking, On::Hold, State::Held),
];

/// What a job reads after its call was accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Follow {
    /// Nothing: the answer is the end.
    Nothing,
    /// The session until it is usable, over, or the deadline has come.
    UntilReady,
    /// The session once, since the answer may be a replay of how it was.
    Once,
    /// Whether the session is gone.
    UntilGone,
}

/// How old a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Age {
    /// It was never saved, so never sent.
    Fresh,
    /// Counted from this point of the client's elapsed time.
    Since(Millis),
    /// As a record had it, saved at that Unix time.
    Saved { age: Millis, unix: Millis },
}

/// What a job does about reading its session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Watch {
    pub(super) follow: Follow,
    pub(super) credentials: bool,
    pub(super) auto_rotate: bool,
    pub(super) ends: Vec<String>,
    pub(super) deadline_ms: Millis,
    /// Since when its caller waits, monotonic: since it was started or resumed.
    pub(super) since: Option<Millis>,
    /// When what is read was bought or changed, monotonic.
    pub(super) done_at: Option<Millis>,
    pub(super) interval: Millis,
    pub(super) failures: u32,
    /// Whether the read that is out asks for credentials.
    pub(super) asked_credentials: bool,
    /// The service asked not to be read before this, monotonic.
    pub(super) not_before: Millis,
}

/// A job.
#[derive(Debug, Clone, Hash)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) endpoint: &'static Endpoint,
    /// The request; none for a job that only reads a session it knows.
    pub(super) built: Option<Built>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) policy: RetryPolicy,
    pub(super) state: State,
    pub(super) ledger: Ledger,
    pub(super) watch: Watch,
    pub(super) intent: Option<String>,
    pub(super) fingerprint: String,
    pub(super) record: Option<RecordId>,
    /// Another record that goes when the result was taken: that of the session it ended.
    pub(super) also_delete: Option<RecordId>,
    pub(super) session: Option<String>,
    /// Who is told of the end.
    pub(super) waiting: Vec<CommandId>,
    pub(super) timer: Option<Millis>,
    pub(super) out: Option<StepId>,
    pub(super) sent_at: Millis,
    pub(super) age: Age,
    pub(super) tally: Tally,
    /// What to report if nothing more is sent.
    pub(super) last: Option<(crate::policy::Judgement, Error)>,
    /// The first failure.
    pub(super) cause: Option<Error>,
    pub(super) cancelled: bool,
    /// Whether its key is settled and its effect open all the same: nothing can be sent any more.
    pub(super) spent: bool,
    /// Whether it only reads what an intent was accepted as: whatever comes of that, the intent stays accepted.
    pub(super) recalls: bool,
    /// Whether it came out of a record.
    pub(super) restored: bool,
    pub(super) doubt_since: Option<Millis>,
    /// What a read is repeated for, and what it showed last.
    pub(super) until: Option<Until>,
    pub(super) looked: Option<Option<String>>,
    /// The order that it watches.
    pub(super) order: Option<OrderWatch>,
    /// What it looks for, to close a doubt.
    pub(super) lookup: Option<Lookup>,
    /// The token it was last sent with, and whether another was fetched for it since.
    pub(super) token: u32,
    pub(super) renewed: bool,
    pub(super) price: Price,
}

/// A send beyond the window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) enum Grace {
    #[default]
    Unused,
    Granted,
    Used,
}

/// What a job has spent since it was started or resumed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Tally {
    /// When the first send went out, monotonic.
    pub(super) started: Option<Millis>,
    /// Sends.
    pub(super) attempts: u32,
    /// Sends that count toward the limit.
    pub(super) counted: u32,
    /// Sends that the host came to too late.
    pub(super) late: u32,
    /// Quota taken, to be refunded by success.
    pub(super) taken: u32,
    /// Times an earlier request was still in progress, and the first of them.
    pub(super) conflicts: u32,
    pub(super) conflict_since: Option<Millis>,
    /// Milliseconds spent on conflicts, which the window does not count.
    pub(super) conflict_wait: Millis,
    /// The one send that is granted when the window ran out while the host slept.
    pub(super) grace: Grace,
}

impl Job {
    pub(super) fn new(id: JobId, endpoint: &'static Endpoint, built: Option<Built>, options: &CallOptions, policy: RetryPolicy) -> Self {
        let credentials = options.credentials || built.as_ref().is_some_and(|built| built.credentials);
        Job {
            id,
            endpoint,
            session: built.as_ref().and_then(|built| built.session_id.clone()),
            built,
            headers: headers(options),
            policy: limited(endpoint, policy),
            state: State::Waiting,
            ledger: Ledger::new(None, false),
            watch: Watch {
                follow: Follow::Nothing,
                credentials,
                auto_rotate: options.auto_rotate,
                ends: options.ends.clone(),
                deadline_ms: options.deadline_ms.unwrap_or(super::session::DEADLINE),
                since: None,
                done_at: None,
                interval: super::session::FIRST_INTERVAL,
                failures: 0,
                asked_credentials: false,
                not_before: Millis::MIN,
            },
            intent: options.intent.clone(),
            fingerprint: String::new(),
            record: None,
            also_delete: None,
            waiting: Vec::new(),
            timer: None,
            out: None,
            sent_at: 0,
            age: Age::Fresh,
            tally: Tally::default(),
            last: None,
            cause: None,
            cancelled: false,
            spent: false,
            recalls: false,
            restored: false,
            doubt_since: None,
            until: options.until.clone(),
            looked: None,
            order: None,
            lookup: None,
            token: 0,
            renewed: false,
            price: Price { cap: options.max_unit_price, said: options.expected_charge_usd, ..Price::default() },
        }
    }

    /// Makes a move of the table; one that is not in it leaves the state as it is.
    pub(super) fn go(&mut self, on: On) {
        let next = TRANSITIONS.iter().find(|(from, event, _)| *from == self.state && *event == on);
        debug_assert!(next.is_some(), "no move {on:?} from {:?}", self.state);
        if let Some((_, _, to)) = next {
            self.state = *to;
        }
    }

    /// Until when it waits, monotonic; one last read begins then, and nothing after it.
    pub(super) fn deadline(&self, now: Millis) -> Millis {
        self.watch.since.unwrap_or(now).saturating_add(self.watch.deadline_ms)
    }

    /// Whether it has waited as long as it was to.
    pub(super) fn is_past_deadline(&self, now: Millis) -> bool {
        now >= self.deadline(now)
    }

    /// Whether it may be sent again at all.
    pub(super) fn can_resume(&self, rules: Rules) -> bool {
        let whole = self.built.as_ref().is_some_and(|built| !(built.secret && self.restored));
        let once = self.endpoint.safety == Safety::AtMostOnce && rules.holds(Rule::HeldWriteRests);
        whole && !self.spent && !once
    }

    /// The part of its record that is the call itself.
    pub(super) fn saved(&self, elapsed: Millis) -> Option<SavedCall> {
        if let Some(order) = &self.order {
            return order.call.clone();
        }
        let built = self.built.as_ref()?;
        // What is never sent again needs no body, and a free one may hold anything.
        let bodiless = built.secret || self.endpoint.safety == Safety::AtMostOnce;
        let age_ms = match self.age {
            Age::Fresh => 0,
            Age::Since(since) => elapsed.saturating_sub(since).max(0),
            Age::Saved { age, .. } => age,
        };
        Some(SavedCall {
            operation: self.endpoint.name.to_owned(),
            any: (self.endpoint.name == ANY).then_some((self.endpoint.method, self.endpoint.safety)),
            target: if built.secret { self.endpoint.path.to_owned() } else { built.target.clone() },
            body: if bodiless { None } else { built.body.clone() },
            secret: built.secret,
            session_id: self.session.clone(),
            key: self.ledger.key.clone(),
            given: self.ledger.given,
            may_have_sold: self.ledger.may_have_sold,
            unanswered: self.ledger.unanswered,
            spent: self.spent,
            opens: self.watch.follow == Follow::UntilReady,
            credentials: self.watch.credentials,
            auto_rotate: self.watch.auto_rotate,
            ends: self.watch.ends.clone(),
            age_ms,
            doubt_since: self.doubt_since,
            reserved: self.price.reserved,
            earlier: self.price.earlier,
            clues: built.clues.clone(),
            order_no: None,
        })
    }
}

/// What the contract allows at most, whatever the caller would like.
pub(super) fn limited(endpoint: &Endpoint, policy: RetryPolicy) -> RetryPolicy {
    match endpoint.safety {
        Safety::TwiceAtMost => RetryPolicy { attempts: policy.attempts.min(2), ..policy },
        _ => policy,
    }
}

pub(super) fn headers(options: &CallOptions) -> Vec<(String, String)> {
    options.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.reveal().to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_move_is_there_once() {
        for (n, (from, on, _)) in TRANSITIONS.iter().enumerate() {
            assert!(!TRANSITIONS.iter().skip(n + 1).any(|(other, event, _)| other == from && event == on), "{from:?} {on:?}");
        }
    }

    #[test]
    fn the_picture_shows_every_move() {
        let moves: String = TRANSITIONS.iter().map(|(from, on, to)| format!("    {from:?} --> {to:?}: {on:?}\n")).collect();
        let picture = include_str!("states.md");
        assert!(picture.contains(&format!("stateDiagram-v2\n{moves}```")), "the picture in states.md must hold just these lines:\n{moves}");
    }
}
