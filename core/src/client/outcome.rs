//! What came of a send: classified, judged, and sent again or ended.

use super::Client;
use super::job::{Grace, On, State};
use super::send::SLEPT;
use super::store::JobId;
use super::types::{Answered, FailureKind, Happening, Millis, Outcome, Sent};
use crate::contract::agent::{GetAccount, RegisterAccount};
use crate::contract::reseller::Login;
use crate::contract::{Api, Json, Operation, Safety, Secret};
use crate::policy::{
    Advice, Again, Asked, Automatic, Error, Heard, Judgement, Kind, Report, code as code_row, conflict_delay, failure_status, is_passing,
    jittered, judge, one_line,
};
use crate::wire::{Answer, Body, Facts, Failure, KEPT_WORD, Verdict, classify, count_items, cut, view};

/// A host that comes too late this often has a clock that can't be right; then it counts as any other failure.
pub(super) const MAX_LATE: u32 = 8;

impl Client {
    /// A response, classified.
    pub(super) fn classified(&mut self, outcome: &Outcome<'_>) -> Option<Answer> {
        let Outcome::Response { status, headers, body, truncated } = *outcome else { return None };
        Some(classify(self.api, Body { status, headers, bytes: body, truncated, most: self.max_body }, self.clock.unix()))
    }

    /// What came of a send.
    pub(super) fn heard(&mut self, id: JobId, outcome: Outcome<'_>) {
        let answer = self.classified(&outcome);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.out = None;
        let safe = job.is_safe() || matches!(job.state, State::Reading | State::Pricing);
        if let Some(answer) = &answer {
            if let (true, Some(time), false) = (safe, answer.server_time, matches!(answer.verdict, Verdict::NoEnvelope { .. })) {
                self.clock.hear(time);
            }
            if self.is_throttle(answer) {
                let wait = answer.retry_after.unwrap_or(0);
                self.hold_until = self.hold_until.max(self.clock.monotonic().saturating_add(wait));
            }
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if job.state == State::Reading {
            return self.session_read(id, answer, outcome);
        }
        if job.state == State::Pricing {
            return self.prices_read(id, answer, outcome);
        }
        match (answer, outcome) {
            (Some(Answer { verdict: Verdict::Success(data), request_id, status, .. }), _) => {
                job.ledger.unanswered = false;
                self.quota.refund(job.tally.taken);
                let seen = view(job.endpoint.response, data.text());
                let mut facts = Facts::of(&seen.json, request_id.as_deref());
                let page_size = job.built.as_ref().and_then(|built| built.page_size);
                facts.short_page = page_size.zip(count_items(&seen.json)).map(|(size, items)| items < size as usize);
                let (attempts, login) = (job.tally.attempts, job.endpoint.name == Login::ENDPOINT.name);
                let own = self.key.is_none() && job.endpoint.name == RegisterAccount::ENDPOINT.name;
                let of_this_account = own || job.endpoint.name == GetAccount::ENDPOINT.name;
                if !seen.differing.is_empty() {
                    self.notify(id, Happening::Differing { members: seen.differing.clone() });
                }
                if login {
                    self.logged_in(data.text());
                }
                self.charged(id, &facts);
                // A registration is of another account, unless this client has none of its own.
                if of_this_account {
                    self.backend_ready = facts.backend_ready.or(self.backend_ready);
                }
                let view = seen.written_otherwise();
                self.accepted(id, Answered { raw: data, view, http_status: Some(status), attempts, ..Answered::of(facts) });
            }
            (Some(answer), _) => self.failed(id, Some(&answer), None),
            (None, Outcome::Failed { kind: FailureKind::Late, sent: Sent::Never }) if job.tally.late < MAX_LATE && !job.cancelled => {
                job.tally.late += 1;
                job.tally.attempts = job.tally.attempts.saturating_sub(1);
                job.tally.counted = job.tally.counted.saturating_sub(1);
                job.ledger.sends = job.ledger.sends.saturating_sub(1);
                job.go(On::Again);
                let now = self.clock.monotonic();
                self.set_timer(id, now);
            }
            (None, Outcome::Failed { kind, sent }) => self.failed(id, None, Some((kind, sent))),
            (None, _) => {}
        }
    }

    /// A send that did not succeed: judge it, and send again or end.
    fn failed(&mut self, id: JobId, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) {
        let (now, unix, rules) = (self.clock.monotonic(), self.clock.unix(), self.rules);
        if answer.is_some_and(|answer| self.renews(id, answer)) {
            return;
        }
        let token_refused = answer.is_some_and(|answer| self.refuses_token(answer));
        let hidden = self.hidden_of(id);
        let Some(job) = self.jobs.get_mut(&id) else { return };
        let open_before = job.ledger.is_open();
        let heard = match (answer.map(|answer| (&answer.verdict, answer.status)), lost) {
            (Some((Verdict::Failure(failure), status)), _) => Heard::Failure { code: &failure.code, status },
            (Some((verdict, status)), _) => {
                Heard::Page { status, broke_off: matches!(verdict, Verdict::NoEnvelope { broke_off: true, .. }) }
            }
            (None, Some((_, sent))) => Heard::Lost(sent),
            (None, None) => return,
        };
        let asked = Asked { capped: job.price.cap.is_some(), ..Asked::new(job.endpoint, job.policy.retry_paid, rules) };
        let mut judgement = judge(asked, &mut job.ledger, heard, answer.and_then(|answer| answer.request_id.as_deref()));
        if token_refused && judgement.kind == Kind::Refused {
            judgement.advice = Advice::Reauthenticate;
        }
        let mut error = job.error(judgement.kind, judgement.effect, what(self.api, answer, lost), judgement.advice);
        if let Some(answer) = answer {
            fill(&mut error, answer, &hidden, unix);
        }
        if judgement.again == Again::NewKey && job.ledger.given {
            judgement.again = Again::No;
            error.what.push_str(", and the key that the caller gave is never replaced");
        }
        let perhaps_gone = matches!(error.code.as_deref(), Some("SESSION_NOT_FOUND" | "SESSION_EXPIRED"));
        if job.endpoint.name == "terminate_session" && open_before && perhaps_gone {
            return self.perhaps_gone(id, error);
        }
        if job.cause.is_none() {
            job.cause = Some(error.clone());
        }
        if job.cancelled {
            return self.stop_cancelled(id);
        }
        let asks_to_wait = answer.and_then(|answer| answer.retry_after).unwrap_or(0);
        let throttled = judgement.again == Again::Throttled;
        // Without a word of the service it would have been sent after this at the latest.
        let wait = if throttled { job.policy.ceiling(job.tally.counted.saturating_sub(1), true) } else { 0 };
        match self.delay(id, judgement.again, asks_to_wait) {
            Some(delay) => self.repeat(id, judgement, error, delay),
            None => {
                let wait = wait.max(self.hold_until.saturating_sub(now));
                if wait > 0 && error.retry_at.is_none() {
                    error.retry_at = Some(unix.saturating_add(wait));
                }
                self.conclude(id, judgement, error);
            }
        }
    }

    /// How long to wait before the next send, if there may be one.
    fn delay(&mut self, id: JobId, again: Again, asks_to_wait: Millis) -> Option<Millis> {
        let (now, random) = (self.clock.monotonic(), self.entropy.jitter());
        let job = self.jobs.get_mut(&id)?;
        let end = job.window_end(now);
        let (policy, tally) = (job.policy, &mut job.tally);
        match again {
            Again::No => None,
            Again::AwaitEarlier if policy.attempts <= 1 => None,
            Again::AwaitEarlier => {
                tally.counted = tally.counted.saturating_sub(1);
                let since = *tally.conflict_since.get_or_insert(now);
                let delay = conflict_delay(tally.conflicts).max(asks_to_wait);
                tally.conflicts = tally.conflicts.saturating_add(1);
                tally.conflict_wait = tally.conflict_wait.saturating_add(delay);
                (now.saturating_add(delay) <= since.saturating_add(policy.conflict_ms)).then_some(delay)
            }
            Again::Same | Again::NewKey | Again::Throttled => {
                let throttled = again == Again::Throttled;
                let ceiling = policy.ceiling(tally.counted.saturating_sub(1), throttled);
                let delay = jittered(ceiling, random).max(asks_to_wait);
                let over = now.saturating_add(delay) > end;
                // The answer itself may have come after a sleep: then one more send is granted, whatever the window says.
                let slept = now.saturating_sub(job.sent_at) > Millis::from(policy.timeout_ms) + SLEPT;
                let grace = slept && job.endpoint.safety == Safety::Keyed && tally.grace == Grace::Unused && delay <= policy.window_ms;
                if tally.counted >= policy.attempts || (over && !grace) {
                    return None;
                }
                let taken = self.quota.take(throttled)?;
                if over {
                    tally.grace = Grace::Granted;
                }
                tally.taken = tally.taken.saturating_add(taken);
                Some(delay)
            }
        }
    }

    fn repeat(&mut self, id: JobId, judgement: Judgement, mut error: Error, delay: Millis) {
        let at = self.clock.monotonic().saturating_add(delay);
        if judgement.again == Again::Throttled {
            self.hold_until = self.hold_until.max(at);
            // If it can't be sent then, this is when it may be resumed.
            error.retry_at.get_or_insert(self.clock.unix().saturating_add(delay));
        }
        let (spread, now) = (self.spread(id, at), self.clock.monotonic());
        let key = (judgement.again == Again::NewKey).then(|| self.entropy.key());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Some(key) = key {
            job.ledger.replace(key);
            let freed = job.price.begin_key(job.ledger.may_have_sold, self.rules);
            self.uncount([freed]);
        }
        let Some(job) = self.jobs.get_mut(&id) else { return };
        job.last = Some((judgement, error.clone()));
        job.go(On::Again);
        let (attempts, at) = (job.tally.attempts, spread.min(job.window_end(now).max(at)));
        self.notify(
            id,
            Happening::Repeating { attempts, delay_ms: delay, because: Error::from(Report { cause: None, ..error.into_report() }) },
        );
        self.set_timer(id, at);
    }
}

impl Client {
    /// Whether an answer is a failure that may be over soon, so that a read is repeated.
    pub(super) fn is_passing(&self, answer: &Answer) -> bool {
        match (&answer.verdict, self.api) {
            (Verdict::Failure(Failure { code, .. }), Api::Agent) => match code_row(code) {
                Some(row) => matches!(row.automatic, Automatic::Wait | Automatic::NewKey),
                None => is_passing(answer.status),
            },
            (Verdict::Failure(Failure { code, .. }), Api::Reseller) => is_passing(failure_status(code, answer.status)),
            (Verdict::NoEnvelope { broke_off, .. }, _) => *broke_off || is_passing(answer.status),
            (Verdict::Success(_), _) => false,
        }
    }

    /// Whether the service says that there is too much.
    pub(super) fn is_throttle(&self, answer: &Answer) -> bool {
        match (&answer.verdict, self.api) {
            (Verdict::Failure(Failure { code, .. }), Api::Agent) => code == "RATE_LIMIT_EXCEEDED",
            (Verdict::Failure(_), Api::Reseller) => answer.status == 429,
            _ => false,
        }
    }

    /// What an error of a job must not repeat, even if the service does.
    pub(super) fn hidden_of(&self, id: JobId) -> Vec<Secret> {
        let mut hidden = self.hidden();
        if let Some(job) = self.jobs.get(&id) {
            hidden.extend(job.built.iter().flat_map(|built| built.secrets.iter().cloned()));
            hidden.extend(job.headers.iter().map(|(_, value)| Secret::new(value.as_str())));
        }
        hidden
    }

    /// What no error must repeat, even if the service does.
    pub(super) fn hidden(&self) -> Vec<Secret> {
        let (username, password) = self.login.credentials.as_ref().map(|(username, password)| (username, password)).unzip();
        [self.key.as_ref(), password, username].into_iter().flatten().chain(self.login.tokens()).cloned().collect()
    }
}

/// What happened, as part of a sentence.
pub(super) fn what(api: Api, answer: Option<&Answer>, lost: Option<(FailureKind, Sent)>) -> String {
    match (answer.map(|answer| &answer.verdict), lost) {
        (Some(Verdict::Failure(failure)), _) => crate::policy::meaning(api, &failure.code).to_owned(),
        (Some(Verdict::NoEnvelope { broke_off: true, .. }), _) => "the response broke off".to_owned(),
        (Some(_), _) => "the response was not in the API's format; it may be a gateway's error page".to_owned(),
        (None, Some((kind, _))) => kind.as_str().to_owned(),
        (None, None) => "the request failed".to_owned(),
    }
}

/// Puts what the service said into an error. No secret is part of it, even if the service repeats it.
pub(super) fn fill(error: &mut Error, answer: &Answer, key: &[Secret], unix: Millis) {
    error.status = Some(answer.status);
    error.request_id = answer.request_id.as_deref().and_then(|id| without(key, id));
    match &answer.verdict {
        Verdict::Failure(failure) => {
            error.code = without(key, &failure.code);
            error.text = without(key, &failure.message);
            if let Some(words) = error.text.as_deref().and_then(|text| quoted(key, text)) {
                error.what.push_str(": ");
                error.what.push_str(&words);
            }
            error.details = failure.details.as_ref().and_then(|details| clean(key, details.text()));
        }
        Verdict::NoEnvelope { content_type, text, .. } => {
            error.content_type = content_type.as_deref().and_then(|text| without(key, text));
            // Some JSON, wherever it begins, may be part of an answer with credentials.
            let page = text.split(['{', '[']).next().unwrap_or_default();
            let begins = |text: &str| text.chars().find(|c| !c.is_whitespace() && *c != '\u{feff}');
            error.text = without(key, page).filter(|text| !matches!(begins(text), None | Some('"')));
        }
        Verdict::Success(_) => {}
    }
    if let Some(wait) = answer.retry_after {
        error.retry_at = Some(unix.saturating_add(wait));
    }
}

/// What is shorter may be part of any text.
const SHORTEST: usize = 6;
const REDACTED: &str = "[redacted]";
/// So much of the service's own words is part of the sentence, in bytes.
const KEPT_SENTENCE: usize = 240;

/// A text of the service without those secrets, in whatever case and as JSON escapes them, or nothing if it is empty.
fn without(secrets: &[Secret], text: &str) -> Option<String> {
    let escaped = |secret: &str| serde_json::to_string(secret).ok().and_then(|json| json.get(1..json.len() - 1).map(str::to_owned));
    let mut forms: Vec<String> = secrets.iter().map(Secret::reveal).filter(|secret| secret.len() >= SHORTEST).map(str::to_owned).collect();
    forms.extend(forms.iter().filter_map(|secret| escaped(secret)).collect::<Vec<_>>());
    // Of two that begin alike the longer one goes first, so that nothing of it is left.
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms.dedup();
    let mut clean = text.to_owned();
    for form in forms {
        clean = replaced(&clean, &form);
        // A text that was cut, never through a character, may end within it.
        let longest = if text.len() + 3 < KEPT_WORD { SHORTEST } else { form.len() };
        let beginnings = (SHORTEST..longest).rev().filter_map(|end| form.get(..end));
        if let Some(rest) = beginnings.filter_map(|beginning| before_end(&clean, beginning)).next() {
            clean = format!("{rest}{REDACTED}");
        }
    }
    Some(clean).filter(|text| !text.is_empty())
}

/// A text with `[redacted]` wherever that is in it, in whatever case of ASCII.
fn replaced(text: &str, secret: &str) -> String {
    let (folded, secret) = (text.to_ascii_lowercase(), secret.to_ascii_lowercase());
    let (mut clean, mut from) = (String::new(), 0);
    // Changing the case of ASCII moves nothing.
    for (at, found) in folded.match_indices(&secret) {
        clean.extend([text.get(from..at).unwrap_or_default(), REDACTED]);
        from = at + found.len();
    }
    clean + text.get(from..).unwrap_or_default()
}

/// What stands before that end of a text, in whatever case of ASCII.
fn before_end<'a>(text: &'a str, end: &str) -> Option<&'a str> {
    let (before, last) = text.split_at_checked(text.len().checked_sub(end.len())?)?;
    last.eq_ignore_ascii_case(end).then_some(before)
}

/// The beginning of a text of the service as part of a sentence: on one line, in quotes, with nothing that a terminal obeys.
fn quoted(secrets: &[Secret], text: &str) -> Option<String> {
    // What was broken into lines may be a secret again on one.
    let one_line = without(secrets, &one_line(text).replace('"', "'"))?;
    let words = cut(&one_line, KEPT_SENTENCE);
    let more = if words.len() < one_line.len() { "…" } else { "" };
    Some(format!("\"{words}{more}\""))
}

/// Some JSON of the service without those secrets, however its texts were escaped.
fn clean(secrets: &[Secret], json: &str) -> Option<Json> {
    let mut clean = String::new();
    let mut rest = json;
    while let Some((before, from)) = rest.split_once('"') {
        let mut escaped = false;
        let end = from.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        let (text, after) = (from.get(..end)?, from.get(end + 1..)?);
        let text: String = serde_json::from_str(&format!("\"{text}\"")).ok()?;
        clean.extend([before, &serde_json::to_string(&without(secrets, &text).unwrap_or_default()).ok()?]);
        rest = after;
    }
    clean.push_str(rest);
    let tells = secrets.iter().any(|secret| secret.reveal().len() >= SHORTEST && clean.contains(secret.reveal()));
    if tells { None } else { clean.parse().ok() }
}
