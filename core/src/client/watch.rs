//! Waiting for a session: reads at growing intervals, up to a deadline, whatever happens to any one of them.

use std::collections::BTreeSet;

use super::Client;
use super::job::{Follow, On, State};
use super::outcome::{MAX_LATE, fill, what};
use super::session::{FIRST_INTERVAL, Tracked, phase_of};
use super::store::JobId;
use super::types::{Answered, FailureKind, Happening, Millis, Outcome, Phase, Sent};
use crate::contract::Operation;
use crate::contract::agent::{CreateSession, GetSession};
use crate::policy::{Advice, Effect, Error, Kind, Report, jittered};
use crate::wire::{Answer, Built, Facts, Verdict, build};

/// No two reads are further apart than this, in milliseconds.
const LAST_INTERVAL: Millis = 10_000;
/// For this long after the purchase the service may not know the session yet.
const NOT_YET_KNOWN: Millis = 10_000;

impl Client {
    /// A purchase was accepted: from here on the session is what is kept.
    pub(super) fn bought(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let resent = job.ledger.sends > 1 || job.ledger.given;
        let Some(session_id) = answered.facts.session_id.clone().filter(|id| !id.is_empty() && id != "." && id != "..") else {
            let what = "was accepted, but the answer names no session";
            let error = Error::from(Report {
                raw: Some(answered.raw),
                ..job.error(Kind::Decode, Effect::Done, what, Advice::ReadRaw).into_report()
            });
            return self.finish(id, Err(error));
        };
        job.session = Some(session_id.clone());
        job.watch.since.get_or_insert(now);
        job.watch.done_at = Some(now);
        let bought_type = job.built.as_ref().and_then(requested_type);
        let tracked = Tracked {
            record: job.record.take(),
            session_type: answered.facts.session_type.clone().or(bought_type),
            status: answered.facts.status.clone(),
            credentials: job.watch.credentials,
            auto_rotate: job.watch.auto_rotate,
            ends: job.watch.ends.clone(),
            changing: BTreeSet::from([id]),
            intent: job.intent.clone().map(|intent| (intent, job.fingerprint.clone())),
            ..Tracked::default()
        };
        let (ready, credentials) = (phase_of(tracked.status.as_deref(), &job.watch.ends) == Phase::Ready, job.watch.credentials);
        let cancelled = job.cancelled;
        job.go(On::Follow);
        match self.sessions.get_mut(&session_id) {
            // A replay of a purchase that is followed already: one session has one record, and another intent its own.
            Some(known) if known.record.is_some() => {
                known.credentials |= tracked.credentials;
                known.auto_rotate |= tracked.auto_rotate;
                if let Some(job) = self.jobs.get_mut(&id) {
                    job.record = tracked.record;
                }
            }
            Some(known) => {
                known.changing.insert(id);
                *known = Tracked { changing: std::mem::take(&mut known.changing), ..tracked };
            }
            None => _ = self.sessions.insert(session_id.clone(), tracked),
        }
        self.save_session(&session_id);
        let charge = answered.facts.estimated_charge_usd.clone();
        self.notify(id, Happening::Accepted { session_id, estimated_charge_usd: charge });
        if cancelled {
            return self.end_cancelled_watch(id);
        }
        if ready && !resent && !credentials {
            return self.watched(id, answered);
        }
        let wait = if ready { 0 } else { self.interval(id) };
        let deadline = self.jobs.get(&id).map_or(now, |job| job.deadline(now));
        self.set_timer(id, now.saturating_add(wait).min(deadline));
    }

    /// The next wait between two reads: longer each time, and spread by a tenth.
    pub(super) fn interval(&mut self, id: JobId) -> Millis {
        let random = self.entropy.jitter();
        let Some(job) = self.jobs.get_mut(&id) else { return FIRST_INTERVAL };
        let interval = job.watch.interval;
        job.watch.interval = (interval * 3 / 2).min(LAST_INTERVAL);
        interval - interval / 10 + jittered(interval / 5, random)
    }

    /// A read of the session is due.
    pub(super) fn read_due(&mut self, id: JobId) {
        let now = self.clock.monotonic();
        let hold_until = self.hold_until;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let not_before = hold_until.max(job.watch.not_before);
        if not_before > now {
            // The service wants no read yet; at the deadline the caller gets what is known without one.
            if job.watch.follow != Follow::UntilReady {
                return self.wait_to_read(id, not_before);
            }
            if job.is_past_deadline(now) {
                return self.end_with_what_is_known(id);
            }
            let deadline = job.deadline(now);
            let at = self.spread(id, not_before);
            return self.set_timer(id, at.min(deadline));
        }
        let Some(session_id) = job.session.clone() else { return };
        // Credentials are there only once the session is active, so they are asked for only then.
        let active = self.sessions.get(&session_id).is_none_or(|tracked| phase_of(tracked.status.as_deref(), &[]) == Phase::Ready);
        let credentials = job.watch.credentials && (active || job.watch.follow == Follow::Once) && job.watch.follow != Follow::UntilGone;
        job.watch.asked_credentials = credentials;
        job.watch.done_at.get_or_insert(now);
        let read = GetSession { session_id, include_credentials: credentials.then_some(true) };
        let params = serde_json::to_string(&read).unwrap_or_default();
        let Ok(built) = build(GetSession::ENDPOINT, &params) else { return };
        job.go(On::Read);
        job.sent_at = now;
        let (headers, timeout) = (job.headers.clone(), job.policy.timeout_ms);
        let request = self.lay_out(GetSession::ENDPOINT.method, GetSession::ENDPOINT.auth, &built, headers, timeout, Millis::MAX);
        self.push_send(id, request);
    }

    /// A read that only confirms what was done waits for as long as a call may take. Longer than that is said now.
    fn wait_to_read(&mut self, id: JobId, not_before: Millis) {
        let (now, unix) = (self.clock.monotonic(), self.clock.unix());
        let Some(job) = self.jobs.get(&id) else { return };
        let wait = not_before.saturating_sub(now);
        if wait <= job.policy.window_ms {
            let at = self.spread(id, not_before);
            return self.set_timer(id, at);
        }
        let gone = job.watch.follow == Follow::UntilGone;
        let (kind, effect, advice) = match gone {
            true => (Kind::InDoubt, Effect::Unknown, Advice::Resume),
            false => (Kind::Unavailable, job.effect_of_answer(), Advice::ReadSession),
        };
        let what = "could not be confirmed by a read, since the service asked to wait longer than it may take";
        let retry_at = Some(unix.saturating_add(wait));
        let error = Error::from(Report { retry_at, cause: None, ..job.error(kind, effect, what, advice).into_report() });
        if gone { self.doubt(id, error) } else { self.finish(id, Err(error)) }
    }

    /// What a read of the session brought.
    pub(super) fn session_read(&mut self, id: JobId, answer: Option<Answer>, outcome: Outcome<'_>) {
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(Answer { verdict: Verdict::Success(raw), request_id, status, .. }) = &answer {
            let facts = Facts::of(raw.text(), request_id.as_deref());
            let answered = Answered { raw: raw.clone(), http_status: Some(*status), attempts: job.tally.attempts, ..Answered::of(facts) };
            job.watch.failures = 0;
            if job.cancelled {
                self.learn_of(id, &answered.facts);
                return self.end_cancelled_watch(id);
            }
            return self.watched(id, answered);
        }
        let lost = match outcome {
            Outcome::Failed { kind, sent } => Some((kind, sent)),
            _ => None,
        };
        self.read_failed(id, answer.as_ref(), lost);
    }

    /// The session was read: is that the end of waiting?
    fn watched(&mut self, id: JobId, answered: Answered) {
        let now = self.clock.monotonic();
        let changed = self.learn_of(id, &answered.facts);
        let Some(job) = self.jobs.get(&id) else { return };
        let phase = phase_of(answered.facts.status.as_deref(), &job.watch.ends);
        if let (Some((session_id, status)), true) = (changed, job.watch.follow == Follow::UntilReady) {
            self.notify(id, Happening::Status { session_id, status, phase });
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let over = job.is_past_deadline(now);
        let reading = job.state == State::Reading;
        let answered = Answered { phase: Some(phase), ..answered };
        match (job.watch.follow, phase) {
            // Whatever it was that ended it: nothing is left to terminate.
            (Follow::UntilGone, Phase::Ended) => self.gone(id, answered),
            (Follow::UntilGone, _) => {
                let what = "may have been done, but the session is still there";
                let error = job.error(Kind::InDoubt, Effect::Unknown, what, Advice::Resume);
                self.doubt(id, error);
            }
            (Follow::UntilReady, Phase::Ready) if job.watch.credentials && !job.watch.asked_credentials && reading => {
                job.go(On::Follow);
                self.set_timer(id, now);
            }
            (Follow::UntilReady, Phase::Pending | Phase::Unknown) if !over => {
                if reading {
                    job.go(On::Follow);
                }
                self.read_again(id, 0);
            }
            _ => self.finish(id, Ok(answered)),
        }
    }

    /// Plans the next read, the last one at the deadline.
    fn read_again(&mut self, id: JobId, asked_to_wait: Millis) {
        let now = self.clock.monotonic();
        let wait = self.interval(id);
        let hold_until = self.hold_until;
        let Some(job) = self.jobs.get_mut(&id) else { return };
        // What the service asks for is never undercut, not even for the last read.
        let not_before = now.saturating_add(asked_to_wait);
        job.watch.not_before = not_before;
        let at = now.saturating_add(wait).max(not_before);
        if job.watch.follow != Follow::UntilReady {
            return self.wait_to_read(id, at.max(hold_until));
        }
        let deadline = job.deadline(now).max(now);
        let at = self.spread(id, at);
        self.set_timer(id, at.min(deadline));
    }

    /// A read failed. It never loses the session: waiting goes on, or ends with a handle.
    fn read_failed(&mut self, id: JobId, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) {
        let (now, unix, hidden, api) = (self.clock.monotonic(), self.clock.unix(), self.hidden_of(id), self.api);
        let page = |answer: &Answer| matches!(answer.verdict, Verdict::NoEnvelope { .. }) && answer.status < 300;
        // Whoever waits for a session waits on through a page of a gateway, too.
        let passing = answer.is_none_or(|answer| self.is_passing(answer) || page(answer));
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if lost.is_some_and(|(kind, _)| kind == FailureKind::Late) && !job.cancelled && job.tally.late < MAX_LATE {
            job.tally.late += 1;
            job.go(On::Follow);
            return self.set_timer(id, now);
        }
        job.watch.failures = job.watch.failures.saturating_add(1);
        let failure = answer.and_then(|answer| match &answer.verdict {
            Verdict::Failure(failure) => Some(failure.code.clone()),
            _ => None,
        });
        let missing = failure.as_deref() == Some("SESSION_NOT_FOUND");
        let waited = answer.and_then(|answer| answer.retry_after).unwrap_or(0);
        let follow = job.watch.follow;
        let over = job.is_past_deadline(now);
        let bought_just_now = job.watch.done_at.is_some_and(|at| now.saturating_sub(at) < NOT_YET_KNOWN);
        let not_yet = missing && job.endpoint.paid && bought_just_now;
        let tries_left = job.watch.failures < job.policy.attempts.max(2);
        let effect = if follow == Follow::UntilGone { Effect::Unknown } else { job.effect_of_answer() };
        let mut error = Error::from(Report {
            cause: None,
            ..job.error(Kind::Unavailable, effect, what(api, answer, lost), Advice::ReadSession).into_report()
        });
        if let Some(answer) = answer {
            fill(&mut error, answer, &hidden, unix);
        }
        if follow == Follow::UntilGone && missing {
            let facts = Facts { session_id: job.session.clone(), ..Facts::default() };
            return self.gone(id, Answered { phase: Some(Phase::Ended), ..Answered::of(facts) });
        }
        if job.cancelled {
            return self.end_cancelled_watch(id);
        }
        let named = job.session.as_ref().and_then(|session| self.sessions.get(session)).filter(|tracked| missing && tracked.only_named);
        if let Some(tracked) = named {
            let what = "was settled as a session that the service does not have; settle it as another, or as not happened";
            let error = Error::from(Report {
                operation: CreateSession::ENDPOINT.name,
                kind: Kind::InDoubt,
                effect: Effect::Unknown,
                what: what.to_owned(),
                advice: Advice::CheckAccount,
                intent: tracked.intent.as_ref().map(|(name, _)| name.clone()),
                record: tracked.record.as_ref().map(|record| record.0.clone()),
                ..error.into_report()
            });
            return self.finish(id, Err(error));
        }
        let go_on = match follow {
            Follow::UntilReady => (passing || not_yet) && !over,
            _ => passing && tries_left,
        };
        if go_on {
            job.go(On::Follow);
            return self.read_again(id, waited);
        }
        match follow {
            Follow::UntilReady if passing || not_yet => self.end_with_what_is_known(id),
            Follow::UntilGone => self.doubt(id, Error::from(Report { kind: Kind::InDoubt, advice: Advice::Resume, ..error.into_report() })),
            _ => {
                let kind = if passing { Kind::Unavailable } else { Kind::Refused };
                self.finish(id, Err(Error::from(Report { kind, ..error.into_report() })));
            }
        }
    }

    /// The deadline has come without a read: the caller gets what is known, not an error that drops the session.
    fn end_with_what_is_known(&mut self, id: JobId) {
        let Some(session) = self.jobs.get(&id).and_then(|job| job.session.clone()) else { return };
        let (facts, raw) = self.known(&session);
        let ends = self.jobs.get(&id).map(|job| job.watch.ends.as_slice()).unwrap_or_default();
        let phase = phase_of(facts.status.as_deref(), ends);
        self.finish(id, Ok(Answered { raw, phase: Some(phase), ..Answered::of(facts) }));
    }

    /// A cancelled wait: the session lives on.
    pub(super) fn end_cancelled_watch(&mut self, id: JobId) {
        let Some(job) = self.jobs.get(&id) else { return };
        if job.watch.follow == Follow::UntilGone {
            return self.doubt_cancelled(id);
        }
        let error = job.let_go();
        self.finish(id, Err(error));
    }
}

/// The type of the session that a request buys.
pub(super) fn requested_type(built: &Built) -> Option<String> {
    let body = built.body.as_deref()?;
    serde_json::from_str::<CreateSession>(body).ok().map(|request| request.session_type.as_str().to_owned())
}
