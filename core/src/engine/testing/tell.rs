//! The inputs of tests.

use super::TODAY;
use crate::contract::Api;
use crate::engine::machine::{Grant, Stored};
use crate::policy::{Advice, Effect, Error, FailureKind, Kind, Sent};
use crate::time::Millis;

/// An input for a machine.
#[derive(Clone)]
pub(crate) struct Tell {
    pub(super) what: What,
    pub(super) after: Millis,
    pub(super) retry_after: Option<u32>,
    request_id: Option<&'static str>,
}

#[derive(Clone)]
pub(super) enum What {
    Due,
    Stored(Stored),
    Granted(Result<Grant, Error>),
    Success(&'static str),
    Failure(&'static str, u16),
    Body(u16, &'static str),
    Failed(FailureKind, Sent),
    Unfit,
}

fn tell(what: What) -> Tell {
    Tell { what, after: 0, retry_after: None, request_id: None }
}

/// The time has come that the machine waits for.
pub(crate) fn due() -> Tell {
    tell(What::Due)
}

pub(crate) fn stored() -> Tell {
    tell(What::Stored(Stored::Done))
}

pub(crate) fn not_stored() -> Tell {
    tell(What::Stored(Stored::Failed))
}

/// The resource is there.
pub(crate) fn granted() -> Tell {
    tell(What::Granted(Ok(Grant::Token)))
}

/// The purchase counts under today's cap.
pub(crate) fn counted() -> Tell {
    tell(What::Granted(Ok(Grant::Counted { day: TODAY })))
}

/// The resource is not there.
pub(crate) fn denied(kind: Kind, what: &str) -> Tell {
    tell(What::Granted(Err(Error::new(kind, Effect::None, "create_session", what, Advice::Stop))))
}

/// A success with this `data`.
pub(crate) fn success(data: &'static str) -> Tell {
    tell(What::Success(data))
}

/// A failure in the envelope.
pub(crate) fn failure(code: &'static str, status: u16) -> Tell {
    tell(What::Failure(code, status))
}

/// A response without the envelope.
pub(crate) fn page(status: u16) -> Tell {
    tell(What::Body(status, "<html>"))
}

/// A response with this body.
pub(crate) fn response(status: u16, body: &'static str) -> Tell {
    tell(What::Body(status, body))
}

/// A success whose rest was lost.
pub(crate) fn broken_off() -> Tell {
    tell(What::Body(200, "{\"success\":true,"))
}

/// No answer: the request may have been sent.
pub(crate) fn lost() -> Tell {
    tell(What::Failed(FailureKind::Timeout, Sent::Maybe))
}

/// No connection: the request was not sent.
pub(crate) fn unreachable() -> Tell {
    tell(What::Failed(FailureKind::Connect, Sent::Never))
}

/// The host got to the request too late.
pub(crate) fn late() -> Tell {
    tell(What::Failed(FailureKind::Late, Sent::Never))
}

/// A header of the caller's own can't be sent.
pub(crate) fn unsendable() -> Tell {
    tell(What::Unfit)
}

impl Tell {
    /// The input comes that much later.
    pub(crate) fn after(self, after: Millis) -> Tell {
        Tell { after, ..self }
    }

    /// The service asks for a wait of that many seconds.
    pub(crate) fn retry_after(self, seconds: u32) -> Tell {
        Tell { retry_after: Some(seconds), ..self }
    }

    pub(crate) fn request_id(self, id: &'static str) -> Tell {
        Tell { request_id: Some(id), ..self }
    }

    pub(super) fn body(&self, api: Api) -> String {
        let meta = self.request_id.map(|id| format!(r#","meta":{{"request_id":"{id}"}}"#)).unwrap_or_default();
        match (&self.what, api) {
            (What::Success(data), Api::Agent) => format!(r#"{{"success":true,"data":{data}{meta}}}"#),
            (What::Success(data), Api::Reseller) => format!(r#"{{"code":0,"data":{data}}}"#),
            (What::Failure(code, _), Api::Agent) => {
                format!(r#"{{"success":false,"error":{{"code":"{code}","message":"no"}}{meta}}}"#)
            }
            (What::Failure(code, _), Api::Reseller) => format!(r#"{{"code":"{code}","message":"no"}}"#),
            (What::Body(_, body), _) => (*body).to_owned(),
            _ => String::new(),
        }
    }
}
