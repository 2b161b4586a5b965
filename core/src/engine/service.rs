//! The service that a client speaks to, and what comes from it.

use crate::contract::{Api, Secret};
use crate::policy::{Automatic, Codes, FailureKind, RetryPolicy, Sent, code as code_row, is_passing, is_passing_read};
use crate::wire::{self, Answer, BaseUrl, Content, Failure, Flaw};

/// The service that a client speaks to, and how.
#[derive(Clone, Hash)]
pub(crate) struct Service {
    pub(crate) api: Api,
    pub(crate) base: BaseUrl,
    pub(crate) key: Option<Secret>,
    /// What the caller knows of the reseller API's codes.
    pub(crate) codes: Codes,
    pub(crate) retry: RetryPolicy,
    pub(crate) max_body: u32,
}

impl Service {
    /// Whether the service says that there is too much.
    pub(crate) fn is_throttle(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            (Content::Failure(Failure { code, .. }), Api::Agent) => code == "RATE_LIMIT_EXCEEDED",
            (Content::Failure(_), Api::Reseller) => answer.status == 429,
            _ => false,
        }
    }

    /// Whether an answer is a failure that may be over soon, so that a read is repeated.
    pub(crate) fn is_passing(&self, answer: &Answer) -> bool {
        match (&answer.content, self.api) {
            (Content::Failure(Failure { code, .. }), Api::Agent) => match code_row(code) {
                Some(row) => matches!(row.automatic, Automatic::Wait | Automatic::NewKey),
                None => is_passing(answer.status),
            },
            (Content::Failure(_), Api::Reseller) => !self.undoes(answer),
            (Content::NoEnvelope { flaw, .. }, _) => *flaw == Flaw::BrokeOff || is_passing_read(answer.status),
            (Content::Success(_), _) => false,
        }
    }

    /// Whether an answer with the envelope says that the token is no good.
    pub(crate) fn refuses_token(&self, answer: &Answer) -> bool {
        let Content::Failure(Failure { code, .. }) = &answer.content else { return false };
        self.api == Api::Reseller && self.codes.refuse_token(code, answer.status)
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
