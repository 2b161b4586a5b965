//! The service's time, which tells how old a restored key is. One read serves all that wait for it.

use crate::client::deferred::Deferred;
use crate::client::jobs::job::Parked;
use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::contract::agent::GetBalance;
use crate::contract::{Api, Operation, endpoint};
use crate::engine::{EventKind, Exchange, ExchangeResult, Grant, Input, SendResult, TOO_LONG};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::{CommandId, JobId, StepId};
use crate::time::Millis;
use crate::wire::Built;

impl Router {
    /// Asks for the service's time for a job, unless somebody has. Each job that has to wait wakes by itself, so that giving up
    /// one of them leaves nobody behind.
    pub(crate) fn read_server_time(&mut self, id: JobId) {
        if self.shared_requests.time.is_out() {
            return;
        }
        if let Some(not_before) = self.shared_requests.time.not_before(self.shared.gate, self.now()) {
            return self.wait_for_server_time(id, not_before);
        }
        let Some(command) = self.jobs.get(id).map(|entry| entry.waiting.first()) else { return };
        // Any authenticated read would do; this one takes no parameters.
        let Some(balance) = endpoint(match self.service.api {
            Api::Agent => "get_balance",
            Api::Reseller => "get_current_balance",
        }) else {
            return;
        };
        self.notify(id, EventKind::AskingTime);
        let exchange = Exchange::new(balance, Built::at(balance.path), Vec::new(), self.service.retry.timeout_ms);
        self.send_shared_request(Pending::ServerTime, exchange, command.unwrap_or(CommandId(0)));
    }

    /// The time may not be asked for before that. Longer than a call may take is not waited for.
    fn wait_for_server_time(&mut self, id: JobId, not_before: Millis) {
        let wait = not_before.saturating_sub(self.now());
        if wait <= self.service.retry.window_ms {
            return self.set_timer(id, not_before);
        }
        let mut error = Error::new(Kind::Unavailable, Effect::None, GetBalance::ENDPOINT.name, TOO_LONG, Advice::Wait);
        error.retry_at = Some(self.unix().saturating_add(wait));
        self.deferred.push(Deferred::Tell(id, Input::Granted(Err(error))));
    }

    /// Takes the outcome of the read, for all jobs that wait for it.
    pub(crate) fn on_server_time(&mut self, step: StepId, received: SendResult<'_>) {
        let Some((exchange, heard)) = self.on_shared_response(Pending::ServerTime, step, received) else { return };
        let now = self.now();
        let waiting = self.jobs.parked(|parked| matches!(parked, Parked::ReadingTime));
        let failing = match heard {
            ExchangeResult::Late => return waiting.into_iter().for_each(|id| self.set_timer(id, now)),
            ExchangeResult::Failure(failing) if failing.is_page() || failing.is_throttle(&self.service) => failing,
            // Every answer of the service has its time.
            ExchangeResult::Success(_) | ExchangeResult::Failure(_) | ExchangeResult::Unfit(_) => {
                self.shared_request_succeeded(Pending::ServerTime);
                return waiting.into_iter().for_each(|id| self.deferred.push(Deferred::Tell(id, Input::Granted(Ok(Grant::ServerTime)))));
            }
        };
        if let Some(at) = self.repeat_shared_request(Pending::ServerTime, &exchange, true, failing.asks_to_wait()) {
            if failing.is_throttle(&self.service) {
                self.shared.hold_back(at.saturating_sub(now));
            }
            if waiting.is_empty() {
                self.shared_requests.time.begin_anew();
            }
            return waiting.into_iter().for_each(|id| self.set_timer(id, at));
        }
        self.shared_requests.time.done(failing.asks_to_wait(), now);
        let what = failing.what(self.service.api);
        let mut error = Error::new(Kind::Unavailable, Effect::None, exchange.endpoint.name, what, Advice::RetryLater);
        self.describe_shared_request(&exchange, &mut error, &failing);
        waiting.into_iter().for_each(|id| self.deferred.push(Deferred::Tell(id, Input::Granted(Err(error.clone())))));
    }
}

#[cfg(test)]
mod tests {
    use crate::client::testing::{BUY, NOW, agent, go_on};
    use crate::client::{CallOptions, Client, ClientOptions, FailureKind, Outcome, Sent, Step, StoreCall};

    use crate::state::{Memory, Version};

    #[test]
    fn the_work_of_records_that_wait_for_the_services_time_grows_with_their_number_and_not_faster() {
        // None of its puts is answered, and each of them has a place.
        let many =
            ClientOptions { base_url: "https://api.example/v1".into(), store: true, max_in_flight: 1000, ..ClientOptions::default() };
        let mut first = Client::new(many, [1; 16]).expect("the options are sound");
        let (mut disk, mut records) = (Memory::default(), Vec::new());
        for _ in 0..500 {
            first.start_json("create_session", BUY, CallOptions::default());
            loop {
                match first.poll(NOW) {
                    Step::Store { call, .. } => {
                        if let StoreCall::Put { name, .. } = &call {
                            records.push(name.at(Version::default()));
                        }
                        disk.call(call, NOW.unix, 0);
                    }
                    Step::Wait { .. } => break,
                    _ => {}
                }
            }
        }
        let mut second = agent(2, true);
        for (n, record) in records.iter().enumerate() {
            second.resume(record, CallOptions::default());
            loop {
                match second.poll(NOW) {
                    Step::Store { id, call, .. } => {
                        let answer = disk.call(call, NOW.unix, 0);
                        second.resolve(id, Outcome::Store(answer), NOW).expect("is out");
                    }
                    Step::Send { id, request, .. } => {
                        assert!(n == 0 && request.url.ends_with("/billing/balance"), "the backoff is waited for");
                        second.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }, NOW).expect("is out");
                    }
                    Step::Wait { .. } => break,
                    _ => {}
                }
            }
        }
        let set = second.router.timers.set;
        assert!(records.len() == 500 && set <= 4 * 500, "{set} timers were set for {} records", records.len());
        go_on(&mut second, &mut disk, NOW, |_| panic!("nothing is due"));
    }
}
