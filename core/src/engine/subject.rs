//! What the errors of a job are about.

use arcstr::ArcStr;

use crate::policy::{Advice, Effect, Error, ErrorFields, Kind};

/// What an error of a job is about, and what it says of the sends so far.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Subject {
    pub(crate) operation: &'static str,
    pub(crate) intent: Option<ArcStr>,
    /// Whether its caller can come to it by a name of their own: an intent, or a key.
    pub(crate) named: bool,
    pub(crate) session_id: Option<ArcStr>,
    pub(crate) order_no: Option<ArcStr>,
    pub(crate) key: Option<ArcStr>,
    pub(crate) attempts: u32,
    /// The first failure.
    pub(crate) cause: Option<Error>,
}

impl Subject {
    pub(crate) fn error(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        Error::from(ErrorFields {
            idempotency_key: self.key.as_ref().map(ArcStr::to_string),
            intent: self.intent.as_ref().map(ArcStr::to_string),
            session_id: self.session_id.as_ref().map(ArcStr::to_string),
            order_no: self.order_no.as_ref().map(ArcStr::to_string),
            attempts: self.attempts,
            cause: self.cause.clone(),
            ..Error::new(kind, effect, self.operation, what, advice).into_fields()
        })
    }

    /// The same of a read that says nothing of the sends before it.
    pub(crate) fn error_of_read(&self, kind: Kind, effect: Effect, what: impl Into<String>, advice: Advice) -> Error {
        let mut error = self.error(kind, effect, what, advice);
        error.cause = None;
        error
    }

    /// A call begins anew: what came of its sends before says nothing any more.
    pub(crate) fn begin_anew(&mut self) {
        (self.attempts, self.cause) = (0, None);
    }
}
