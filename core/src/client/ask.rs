//! The service's time, which tells how old a restored key is. One read serves all that wait for it.

use super::job::Parked;
use super::store::JobId;
use super::types::{CommandId, EventKind, Millis, StepId};
use super::{Client, Pending};
use crate::contract::{Api, endpoint};
use crate::engine::{Exchange, Heard, Input, Received};
use crate::policy::{Advice, Effect, Kind};
use crate::wire::Built;

impl Client {
    /// Asks for the service's time for a job, unless somebody has. Each job that has to wait wakes by itself, so that giving up
    /// one of them leaves nobody behind.
    pub(super) fn ask_due(&mut self, id: JobId) {
        if self.asking.is_out() {
            return;
        }
        if let Some(not_before) = self.asking.not_before(self.gate, self.clock.monotonic()) {
            return self.wait_to_ask(id, not_before);
        }
        let Some(command) = self.jobs.get(&id).map(|entry| entry.waiting.first().copied()) else { return };
        // Any authenticated read would do; this one takes no parameters.
        let Some(balance) = endpoint(match self.service.api {
            Api::Agent => "get_balance",
            Api::Reseller => "get_current_balance",
        }) else {
            return;
        };
        self.notify(id, EventKind::AskingTime);
        let exchange = Exchange::new(balance, Built::at(balance.path), Vec::new(), self.service.retry.timeout_ms);
        self.send_errand(Pending::Ask, exchange, command.unwrap_or(CommandId(0)));
    }

    /// The time may not be asked for before that. Longer than a call may take is not waited for.
    fn wait_to_ask(&mut self, id: JobId, not_before: Millis) {
        let wait = not_before.saturating_sub(self.clock.monotonic());
        if wait <= self.service.retry.window_ms {
            return self.set_timer(id, not_before);
        }
        let Some(entry) = self.jobs.get(&id) else { return };
        let what = "must wait longer than it may take, since the service asked for it";
        let mut error = entry.subject.error(Kind::Unavailable, Effect::Unknown, what, Advice::Wait);
        error.retry_at = Some(self.clock.unix().saturating_add(wait));
        self.tell(id, Input::Granted(Err(error)));
    }

    /// What came of it, for all that wait for it.
    pub(super) fn on_server_time(&mut self, step: StepId, received: Received<'_>) {
        let Some((exchange, heard)) = self.hear_errand(Pending::Ask, step, received) else { return };
        let now = self.clock.monotonic();
        let waiting: Vec<JobId> =
            self.jobs.iter().filter(|(_, entry)| matches!(entry.parked, Parked::Asking)).map(|(id, _)| *id).collect();
        let failing = match heard {
            Heard::Late => return waiting.into_iter().for_each(|id| self.set_timer(id, now)),
            Heard::Failure(failing) if failing.is_page() || failing.is_throttle(&self.service) => failing,
            // Whatever the service says, it says what time it is.
            Heard::Success(_) | Heard::Failure(_) | Heard::Unfit(_) => {
                self.asking.done(None);
                return waiting.into_iter().for_each(|id| self.tell(id, Input::Granted(Ok(None))));
            }
        };
        if let Some(at) = self.repeat_errand(Pending::Ask, true, failing.asks_to_wait()) {
            if failing.is_throttle(&self.service) {
                self.gate.close(at);
            }
            return waiting.into_iter().for_each(|id| self.set_timer(id, at));
        }
        self.asking.done(Some(now.saturating_add(failing.asks_to_wait())));
        let Some(first) = waiting.first().and_then(|id| self.jobs.get(id)) else { return };
        let what = failing.what(self.service.api);
        let mut error = first.subject.error(Kind::Unavailable, Effect::Unknown, what, Advice::RetryLater);
        self.describe_errand(&exchange, &mut error, &failing);
        waiting.into_iter().for_each(|id| self.tell(id, Input::Granted(Err(error.clone()))));
    }
}
