//! The age of a key: how long it may be sent for, and what is said once it may not.

use super::Write;
use crate::engine::gate::Wake;
use crate::engine::machine::{Action, Cx, Grant};
use crate::policy::{Advice, Effect, Error, Kind};

impl Write {
    pub(super) fn is_too_old(&self, cx: &Cx<'_>) -> bool {
        self.call.exchange.is_keyed() && self.key.is_too_old(cx)
    }

    /// Its key may not be sent any more.
    pub(super) fn too_old(&mut self, cx: &mut Cx<'_>) -> Action {
        let error = |kind, effect, what, advice| cx.subject.error(kind, effect, what, advice);
        if !self.call.ledger.is_open() {
            let what = "waited until its key was too old to be sent";
            return Action::Erase(error(Kind::Unavailable, Effect::None, what, Advice::RetryLater));
        }
        let what = "its key is too old to be sent again, or its age is not known";
        Action::Doubt(error(Kind::InDoubt, Effect::Unknown, what, Advice::CheckAccount))
    }

    /// The service's time was read, and with it the age of the key; or it is as in doubt as before.
    pub(super) fn aged(&mut self, granted: Result<Grant, Error>, cx: &mut Cx<'_>) -> Action {
        let because = match granted {
            Ok(_) if self.key.take_age(cx) => return Action::Wake(Wake::at(cx.now())),
            Ok(_) => return self.too_old(cx),
            Err(because) => because,
        };
        let (kind, what) = match cx.wanted {
            true => (Kind::InDoubt, "was not resumed, because the service's time could not be read"),
            false => (Kind::Cancelled, "was cancelled before it was resumed"),
        };
        let mut error = cx.subject.error(kind, Effect::Unknown, what, Advice::Resume);
        error.retry_at = because.retry_at;
        error.cause = Some(because).filter(|_| cx.wanted);
        Action::Doubt(error)
    }
}
