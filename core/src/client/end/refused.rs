//! Operations that an app's own backend refused, under an intent: as far as is known they had no effect. The record stays for as long as
//! its key may be sent, marked as refused, and a new start of the intent sends the same key: if the backend did pass the request on, that
//! finds the purchase. No other call resumes it.

use crate::client::end::commands::{FinalWrite, Finished};
use crate::client::jobs::job::Entry;
use crate::client::names::deletion::refused_kept_for;
use crate::client::router::Router;
use crate::policy::{KEY_WINDOW, Rule};
use crate::state::{Data, Name, SavedCall};
use crate::time::Millis;

impl Router {
    /// The call of a job without an effect whose key an app's own backend refused, and the time for which that key may be sent.
    fn refused_call(&self, entry: &Entry) -> Option<(SavedCall, Millis)> {
        let is_refused = entry.job.write().is_some_and(|write| write.call.ledger.refused) && entry.record.bought_as.is_some();
        let call = entry.saved_call(&self.clock()).filter(|_| is_refused && self.holds(Rule::RefusedKeepsKey))?;
        let left = KEY_WINDOW.saturating_sub(call.age.ms);
        (left > 0).then_some((SavedCall { refused: true, ..call }, left))
    }

    /// Keeps the key of a refused call. The error is reported only once the record has it. Returns true if there is such a key.
    pub(crate) fn keep_refused(&mut self, name: &Name, entry: &Entry, finished: &mut Finished) -> bool {
        let Some((call, left)) = self.refused_call(entry) else { return false };
        if entry.record.last_put.is_none() {
            // The record has it already.
            self.release(name);
            return true;
        }
        finished.last = FinalWrite::Erase;
        let is_later = entry.record.bought_as.as_ref().is_some_and(|known| known.later.is_some());
        let data = Data { call: Some(call), ..self.data(entry.record.bought_as.as_deref()) };
        self.put_once(name, data, refused_kept_for(name, is_later, left));
        true
    }
}
