//! One request and its outcome: the only way to send anything.

use super::answer::Answered;
use super::context::{Cx, Service};
use super::event::EventKind;
use super::machine::{Action, Note, SendResult};
use super::redact::fill;
use super::tokens::LOGIN;
use crate::contract::agent::{CreateSession, GetAccount, GetSession, RegisterAccount, RotateSession, TerminateSession};
use crate::contract::{Api, Auth, Endpoint, Operation, Safety, Secret, Shape};
use crate::policy::{Error, FailureKind, Rule, Sent};
use crate::time::Millis;
use crate::wire::{
    Answer, Built, Content, Expected, Facts, Flaw, Request, Success, classify, classify_read, is_same_id, items, lacks_list,
    names_another_order, page_mark,
};

/// The number of late sends after which the host's clock can't be right; a further one counts as a failure.
const MAX_LATE: u32 = 8;

/// A request that may be sent more than once.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Exchange {
    pub(crate) endpoint: &'static Endpoint,
    pub(crate) built: Built,
    /// The caller's own headers.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) timeout_ms: u32,
    sent_at: Millis,
    /// The number of times that the host got to it too late.
    pub(crate) late: u32,
    /// The token of the last send, and true if another was fetched since.
    token: u32,
    renewed: bool,
    /// True if the last send was the first one of its key, so that its answer is not a replay.
    pub(crate) is_first: bool,
    /// True if a decision depends on the list that is read, so that an answer without a list does not count.
    pub(crate) needs_list: bool,
    /// True if the last answer had no such list.
    pub(crate) lacked_list: bool,
    /// An answer that accepted the request without the id of the result.
    pub(crate) without_id: Option<Box<Answered>>,
}

/// The outcome of a send.
pub(crate) enum ExchangeResult {
    /// The request succeeded.
    Success(Box<Answered>),
    /// The request was not sent, because the host got to it too late: it may be sent now.
    Late,
    /// The request failed.
    Failure(Box<FailedSend>),
    /// The request can't be sent at all; holds the reason, as the end of a sentence.
    Unfit(String),
}

/// The failure of a send.
pub(crate) struct FailedSend {
    pub(crate) answer: Option<Answer>,
    pub(crate) lost: Option<(FailureKind, Sent)>,
    /// True if the failure may be over soon, so that a read is repeated.
    pub(crate) passing: bool,
    /// True if the token was refused.
    pub(crate) token_refused: bool,
    /// Of the reseller API: true if the answer says that nothing was done.
    pub(crate) undone: bool,
    /// True if an app's own backend refused the request.
    pub(crate) by_backend: bool,
}

impl Exchange {
    pub(crate) fn new(endpoint: &'static Endpoint, built: Built, headers: Vec<(String, String)>, timeout_ms: u32) -> Self {
        Exchange {
            endpoint,
            built,
            headers,
            timeout_ms,
            sent_at: 0,
            late: 0,
            token: 0,
            renewed: false,
            is_first: false,
            needs_list: false,
            lacked_list: false,
            without_id: None,
        }
    }

    pub(crate) fn is_safe(&self) -> bool {
        self.endpoint.safety == Safety::Safe
    }

    pub(crate) fn is_keyed(&self) -> bool {
        self.endpoint.safety == Safety::Keyed
    }

    /// The time of the last send, monotonic.
    pub(crate) fn sent_at(&self) -> Millis {
        self.sent_at
    }

    /// Returns true if the request needs a token first.
    pub(crate) fn needs_token(&self, cx: &mut Cx<'_>) -> bool {
        self.endpoint.auth == Auth::Bearer && cx.shared.tokens.must_log_in(cx.shared.clock.unix())
    }

    /// Returns true if the token was refused to another call meanwhile.
    pub(crate) fn lost_token(&self, cx: &Cx<'_>) -> bool {
        self.endpoint.auth == Auth::Bearer && cx.shared.tokens.is_missing()
    }

    /// Allows a new token to be fetched for the request.
    pub(crate) fn begin_anew(&mut self) {
        (self.late, self.renewed, self.without_id) = (0, false, None);
    }

    /// Sends the request. The host may hold it back for at most `late` milliseconds.
    pub(crate) fn send(&mut self, key: Option<&str>, late: Millis, cx: &Cx<'_>) -> Action {
        let now = cx.now();
        let late = if cx.shared.rules.holds(Rule::LateIsNotSent) { Millis::from(self.timeout_ms).min(late) } else { Millis::MAX };
        (self.token, self.sent_at) = (cx.shared.tokens.generation(), now);
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        match (self.endpoint.auth, &cx.service.key, cx.shared.tokens.token()) {
            (Auth::Key, Some(key), _) => headers.push(("x-api-key".to_owned(), key.reveal().to_owned())),
            (Auth::Bearer, _, Some(token)) => headers.push(("authorization".to_owned(), format!("Bearer {}", token.reveal()))),
            _ => {}
        }
        if self.built.body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        headers.extend(self.built.headers.iter().chain(&self.headers).cloned());
        headers.extend(key.map(|key| ("idempotency-key".to_owned(), key.to_owned())));
        Action::Send(Request {
            method: self.endpoint.method,
            url: format!("{}{}", cx.service.base, self.built.target),
            headers,
            body: self.built.body.clone().unwrap_or_default().into_bytes(),
            timeout_ms: self.timeout_ms,
            // A termination does no harm, whenever it is sent and whichever client owns its name.
            send_before: if self.endpoint.name == TerminateSession::ENDPOINT.name { Millis::MAX } else { now.saturating_add(late) },
            max_body: cx.service.max_body,
            expects: Expected::of(self.endpoint, cx.service.max_body),
        })
    }

    /// Takes the outcome of the send.
    pub(crate) fn take_in(&mut self, received: SendResult<'_>, cx: &mut Cx<'_>) -> ExchangeResult {
        let expected = Expected::of(self.endpoint, cx.service.max_body);
        let answer = match received {
            SendResult::Unfit(rule) => return ExchangeResult::Unfit(rule.to_owned()),
            SendResult::Failed(FailureKind::Late, Sent::Never) if self.late < MAX_LATE && cx.wanted => {
                self.late += 1;
                return ExchangeResult::Late;
            }
            SendResult::Failed(kind, sent) => {
                let lost = Some((kind, sent));
                let failing = FailedSend { answer: None, lost, passing: true, token_refused: false, undone: false, by_backend: false };
                return ExchangeResult::Failure(Box::new(failing));
            }
            SendResult::Response(received) => classify(expected, received, cx.shared.clock.unix()),
            SendResult::Read(response) => classify_read(expected, response, cx.shared.clock.unix()),
        };
        let answer = self.believed(answer, cx);
        self.lacked_list = matches!(answer.content, Content::NoEnvelope { flaw: Flaw::NoList, .. });
        if let (true, Some(time), false) = (self.is_safe(), answer.server_time, matches!(answer.content, Content::NoEnvelope { .. })) {
            cx.shared.clock.observe_server_time(time);
        }
        if cx.service.is_throttle(&answer) {
            cx.shared.hold_back(answer.retry_after.unwrap_or(0));
        }
        match answer {
            Answer { content: Content::Success(success), status, .. } => {
                let Success { raw, mut facts, differing, rounded, reading } = *success;
                if let Some((size, items)) = self.built.page_size.zip(items(raw.text())) {
                    facts.short_page = Some(items.len() < size as usize);
                    facts.page_items = Some(page_mark(&items));
                }
                if !differing.is_empty() {
                    cx.note(EventKind::Differing { members: differing });
                }
                if !rounded.is_empty() {
                    cx.note(EventKind::Rounded { members: rounded });
                }
                self.learn(raw.text(), &facts, cx);
                let attempts = cx.subject.attempts;
                let shape = &self.endpoint.response;
                let http_status = Some(status);
                ExchangeResult::Success(Box::new(Answered { raw, shape, reading, http_status, attempts, ..Answered::of(facts) }))
            }
            answer => {
                let (passing, token_refused) = (cx.service.is_passing(&answer), cx.service.refuses_token(&answer));
                let (undone, by_backend) = (cx.service.undoes(&answer), cx.service.is_backends(&answer));
                let answer = Some(answer);
                ExchangeResult::Failure(Box::new(FailedSend { answer, lost: None, passing, token_refused, undone, by_backend }))
            }
        }
    }

    /// Replaces an answer that can't belong to this request.
    fn believed(&mut self, answer: Answer, cx: &Cx<'_>) -> Answer {
        let Content::Success(success) = &answer.content else { return answer };
        let is_anothers = |flaw: &Flaw| matches!(flaw, Flaw::Another | Flaw::HadBefore);
        let is_believed = |flaw: &Flaw| is_anothers(flaw) && !cx.shared.rules.holds(Rule::AnothersIsNoAnswer);
        let Some(flaw) = self.flaw(success, cx).filter(|flaw| !is_believed(flaw)) else { return answer };
        if flaw == Flaw::NoId {
            let (raw, shape, attempts) = (success.raw.clone(), &self.endpoint.response, cx.subject.attempts);
            let facts = success.facts.clone();
            self.without_id = Some(Box::new(Answered { raw, shape, http_status: Some(answer.status), attempts, ..Answered::of(facts) }));
        }
        // The answer may be for another request, so nothing of it is shown.
        Answer { content: Content::NoEnvelope { content_type: None, text: String::new(), flaw }, retry_after: None, ..answer }
    }

    /// Returns the reason why a success can't be the answer to this request.
    fn flaw(&self, success: &Success, cx: &Cx<'_>) -> Option<Flaw> {
        let (facts, data) = (&success.facts, success.raw.text());
        let says_session = [GetSession::ENDPOINT.name, RotateSession::ENDPOINT.name].contains(&self.endpoint.name);
        let named = facts.session_id.as_deref().filter(|id| !matches!(*id, "." | ".."));
        if let (true, Some(asked), Some(said)) = (says_session, self.built.session_id.as_deref(), named)
            && !is_same_id(asked, said)
        {
            return Some(Flaw::Another);
        }
        if self.endpoint.safety == Safety::Safe && self.built.order_no.as_deref().is_some_and(|asked| names_another_order(data, asked)) {
            return Some(Flaw::Another);
        }
        if self.needs_list && lacks_list(data) {
            return Some(Flaw::NoList);
        }
        if !self.is_keyed() {
            return None;
        }
        let has_none = match self.endpoint.response {
            Shape::Record(record) if record.field("session_id").is_some() => named.is_none(),
            Shape::Record(record) if record.field("order_id").is_some() => facts.order_id.is_none(),
            _ => false,
        };
        let buys = self.endpoint.name == CreateSession::ENDPOINT.name;
        match named {
            // The id is requested once more only if a caller still waits. An answer that names another session never counts.
            _ if has_none && self.without_id.is_none() && cx.wanted => Some(Flaw::NoId),
            Some(said) if buys && self.is_first && (cx.has_session)(said) => Some(Flaw::HadBefore),
            _ => None,
        }
    }

    /// Notes facts about the account from an answer.
    fn learn(&self, data: &str, facts: &Facts, cx: &mut Cx<'_>) {
        if self.endpoint.name == LOGIN {
            cx.shared.tokens.take_from(data, cx.shared.clock.unix());
        }
        // A registration is of another account, unless this client has none of its own.
        let own = cx.service.key.is_none() && self.endpoint.name == RegisterAccount::ENDPOINT.name;
        if own || self.endpoint.name == GetAccount::ENDPOINT.name {
            cx.notes.extend(facts.backend_ready.map(Note::BackendReady));
        }
    }

    /// Returns true if an answer refuses the token and a newer one may help; then the request may be sent again with it.
    pub(crate) fn renews(&mut self, failing: &FailedSend, may_repeat: bool, cx: &mut Cx<'_>) -> bool {
        let Some(answer) = &failing.answer else { return false };
        let refused = match &answer.content {
            _ if failing.by_backend => answer.status == 401,
            // Without a clear statement the request may have gone further: no code makes a write go out again.
            Content::Failure(_) => failing.token_refused && (failing.undone || self.is_safe()),
            // Without the envelope the sender is unknown: only a request that changes nothing is sent again.
            _ => answer.status == 401 && (self.is_safe() || !cx.shared.rules.holds(Rule::TokenRefusalHasEnvelope)),
        };
        if !refused || self.endpoint.auth != Auth::Bearer {
            return false;
        }
        let newest = self.token == cx.shared.tokens.generation() || !cx.shared.rules.holds(Rule::NewerTokenStays);
        if newest && cx.shared.tokens.credentials.is_some() {
            cx.shared.tokens.drop();
        }
        let renewed = self.renewed && cx.shared.rules.holds(Rule::RenewOnce);
        if cx.shared.tokens.credentials.is_none() || renewed || !cx.wanted || !may_repeat {
            return false;
        }
        self.renewed = true;
        true
    }

    /// Adds the service's own words to an error, without secrets.
    pub(crate) fn describe(&self, error: &mut Error, failing: &FailedSend, cx: &Cx<'_>) {
        let Some(answer) = &failing.answer else { return };
        let headers: Vec<Secret> = self.headers.iter().map(|(_, value)| Secret::new(value.as_str())).collect();
        let hidden = cx.service.key.iter().chain(cx.shared.tokens.secrets()).chain(&self.built.secrets).chain(&headers);
        fill(error, answer, &hidden.collect::<Vec<_>>(), cx.shared.clock.unix());
    }
}

impl FailedSend {
    /// The failure, as part of a sentence.
    pub(crate) fn what(&self, api: Api) -> String {
        match (self.answer.as_ref().map(|answer| &answer.content), self.lost) {
            _ if self.by_backend => "the app's own backend refused the request".to_owned(),
            (Some(Content::Failure(_)), _) if api == Api::Reseller && !self.undone => {
                let said = match self.answer.as_ref().map(|answer| answer.status) {
                    Some(429) => "too many requests",
                    Some(500..) => "the service failed",
                    _ => "the service's answer is neither a success nor a refusal",
                };
                said.to_owned()
            }
            (Some(Content::Failure(failure)), _) => crate::policy::meaning(api, &failure.code).to_owned(),
            (Some(Content::NoEnvelope { flaw: Flaw::BrokeOff, .. }), _) => "the response broke off".to_owned(),
            (Some(Content::NoEnvelope { flaw: Flaw::LongCursor, .. }), _) => "the cursor of the next page is longer than 8 KiB".to_owned(),
            (Some(Content::NoEnvelope { flaw: Flaw::Another, .. }), _) => "the response was about another session or order".to_owned(),
            (Some(Content::NoEnvelope { flaw: Flaw::HadBefore, .. }), _) => "the response named an older session of this client".to_owned(),
            (Some(Content::NoEnvelope { flaw: Flaw::NoId, .. }), _) => "the response did not contain the id of the result".to_owned(),
            (Some(Content::NoEnvelope { flaw: Flaw::NoList, .. }), _) => "the response had no list".to_owned(),
            (Some(_), _) => "the response was not in the API's format; it may be a gateway's error page".to_owned(),
            (None, Some((kind, _))) => kind.in_words().to_owned(),
            (None, None) => "the request failed".to_owned(),
        }
    }

    pub(crate) fn code(&self) -> Option<&str> {
        match &self.answer.as_ref()?.content {
            Content::Failure(failure) => Some(&failure.code),
            _ => None,
        }
    }

    /// Returns true if the sender of the answer is unknown, or there is no answer.
    pub(crate) fn is_page(&self) -> bool {
        self.answer.as_ref().is_none_or(|answer| matches!(answer.content, Content::NoEnvelope { .. }))
    }

    /// Returns true if the service refuses the request as one too many.
    pub(crate) fn is_throttle(&self, service: &Service) -> bool {
        self.answer.as_ref().is_some_and(|answer| service.is_throttle(answer))
    }

    /// Of a login: returns true if the service refused the credentials, rather than failed. A 401 without the envelope counts as a refusal:
    /// a repeat might lock the account.
    pub(crate) fn is_refusal(&self) -> bool {
        self.undone || (self.is_page() && self.answer.as_ref().is_some_and(|answer| answer.status == 401))
    }

    /// The wait that the service asks for.
    pub(crate) fn asks_to_wait(&self) -> Millis {
        self.answer.as_ref().and_then(|answer| answer.retry_after).unwrap_or(0)
    }

    /// Returns true if a success came without the envelope: most likely a page of a gateway.
    pub(crate) fn is_page_of_success(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| matches!(answer.content, Content::NoEnvelope { .. }) && answer.status < 300)
    }
}

#[cfg(test)]
mod tests;
