//! What an app's own backend refused, under an intent: nothing came of it, for all that is known. Its record stays for as long as its key may
//! be sent, marked as refused, and whoever starts the intent again sends the same key: if the backend did pass it on, that finds what
//! was bought. Nobody else goes on with it.

use super::job::Entry;
use super::keep::REMEMBERED;
use super::router::Router;
use super::waiting::{Finished, Last, Start};
use crate::policy::{KEY_WINDOW, Rule};
use crate::state::{CommandId, Data, Name, SavedCall};
use crate::time::Millis;

impl Router {
    /// What a job leaves that had no effect because an app's own backend refused its key, and for how long that may be sent.
    fn refused_call(&self, entry: &Entry) -> Option<(SavedCall, Millis)> {
        let is_refused = entry.job.write().is_some_and(|write| write.call.ledger.refused) && entry.custody.bought_as.is_some();
        let call = entry.saved_call(&self.means.clock).filter(|_| is_refused && self.means.rules.holds(Rule::RefusedKeepsKey))?;
        let left = KEY_WINDOW.saturating_sub(call.age.ms);
        (left > 0).then_some((SavedCall { refused: true, ..call }, left))
    }

    /// Keeps the key of what the backend refused. That nothing came of it is said only once the record says so. Whether there is such a key.
    pub(super) fn keep_refused(&mut self, name: &Name, entry: &Entry, finished: &mut Finished) -> bool {
        let Some((call, left)) = self.refused_call(entry) else { return false };
        if entry.custody.last_put.is_none() {
            // What is there says so already.
            self.release(name);
            return true;
        }
        finished.last = Last::Erase;
        // A slot's record tells which purchase is the next one, too.
        let keep_for = if name.is_of_a_pool() { REMEMBERED } else { left };
        let data = Data { call: Some(call), ..self.data(entry.custody.bought_as.as_deref()) };
        self.put_once(name, data, keep_for);
        true
    }

    /// A write begins where an app's own backend refused the last one: with its key and bytes, unless it is another request or the key is
    /// too old.
    pub(super) fn begin_refused(&mut self, name: &Name, command: CommandId, mut start: Start, data: &Data) {
        let is_same = data.fingerprint == start.bought_as.as_ref().map(|known| known.fingerprint);
        let young = |call: &&SavedCall| is_same && self.age_of(call).is_some_and(|age| age < KEY_WINDOW);
        let call = data.refused().filter(young).cloned();
        if name.is_of_a_pool() {
            start.take_number(data, call.is_some());
        }
        self.begin_write(Some(name.clone()), command, start);
        let job = self.commands.get(&command).and_then(|command| command.job);
        let (Some(call), Some(job)) = (call, job) else { return };
        let age = self.age_of(&call).unwrap_or_default();
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        if let (Some(key), Some(write)) = (call.key, entry.job.write_mut()) {
            entry.subject.key = Some(key.as_str().into());
            write.begin_refused(key, age, &self.means.clock);
            if !call.secret {
                let built = &mut write.call.exchange.built;
                (built.target, built.body) = (call.target, call.body);
            }
        }
    }

    /// How old its key is by this client's clock, and by the service's where that is known. It is not asked for: the backend may refuse that,
    /// too.
    fn age_of(&self, call: &SavedCall) -> Option<Millis> {
        self.means.clock.about_since(call.age.at).map(|gap| call.age.ms.saturating_add(gap))
    }
}
