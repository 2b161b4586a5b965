//! The service that a client speaks to, and what comes from it.

use crate::contract::{Api, Secret};
use crate::policy::{Automatic, Codes, FailureKind, RetryPolicy, Sent, code as code_row, is_passing, is_passing_read};
use crate::wire::{self, Answer, BaseUrl, Content, Failure};

/// The service that a client speaks to, and how.
#[derive(Clone, Hash)]
pub(crate) struct Service {
    pub(crate) api: Api,
    pub(crate) base: BaseUrl,
    pub(crate) key: Option<Secret>,
    /// What the caller knows of the reseller API's codes.
    pub(crate) codes: Codes,
    /// Whether it is an app's own backend that answers, and refuses in its own words what it does not pass on.
    pub(crate) backend_refuses: bool,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_body: u32,
}

impl Service {
    /// Whether the service says that there is too much.
    pub(crate) fn is_throttle(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            _ if self.is_backends(answer) => answer.status == 429,
            (Content::Failure(Failure { code, .. }), Api::Agent) => code == "RATE_LIMIT_EXCEEDED",
            (Content::Failure(_), Api::Reseller) => answer.status == 429,
            _ => false,
        }
    }

    /// Whether an answer is a failure that may be over soon, so that a read is repeated.
    pub(crate) fn is_passing(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            _ if self.is_backends(answer) => answer.status == 429,
            (Content::Failure(Failure { code, .. }), Api::Agent) => match code_row(code) {
                Some(row) => matches!(row.automatic, Automatic::Wait | Automatic::NewKey),
                None => is_passing(answer.status),
            },
            (Content::Failure(_), Api::Reseller) => !self.undoes(answer),
            (Content::NoEnvelope { flaw, .. }, _) => flaw.may_pass() || is_passing_read(answer.status),
            (Content::Success(_), _) => false,
        }
    }

    /// Whether an answer with the envelope says that the token is no good.
    pub(crate) fn refuses_token(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.refuse_token(code, answer.status)
    }

    /// Whether an answer is the refusal of an app's own backend: without the envelope, or with a code that the contract does not name.
    pub(crate) fn is_backends(&self, answer: &Answer) -> bool {
        let is_own = match (&answer.content, self.api) {
            (Content::Success(_), _) => false,
            (Content::NoEnvelope { .. }, _) => true,
            (Content::Failure(Failure { code, .. }), Api::Agent) => code_row(code).is_none(),
            (Content::Failure(Failure { code, has_data, .. }), Api::Reseller) => !self.codes.may_be_done(code, *has_data),
        };
        is_own && self.backend_refuses && matches!(answer.status, 401 | 403 | 404 | 413 | 422 | 429)
    }

    /// Of the reseller API: whether an answer with the envelope says that nothing was done.
    pub(crate) fn undoes(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, has_data, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.undo(code, answer.status, *has_data)
    }
}

/// What came over HTTP.
pub(crate) enum Received<'a> {
    /// A response, to be read.
    Response(wire::Received<'a>),
    /// A response that was read.
    Read(wire::Response<'a>),
    /// None.
    Failed(FailureKind, Sent),
    /// It was not sent, since a header of the caller's own can't be sent with it: why, as the end of a sentence.
    Unfit(&'a str),
}
