//! The service's time, which tells how old a restored key is. One read serves all that wait for it.

use super::job::{Age, On, State};
use super::outcome::{fill, what};
use super::store::JobId;
use super::types::{Happening, Millis, Outcome, Step};
use super::{Client, CommandId, Pending};
use crate::contract::{Api, endpoint};
use crate::policy::{Advice, Effect, Error, Kind, Report, Rule, jittered};
use crate::wire::{Built, Verdict};

impl Client {
    /// Asks for the service's time for a job, unless somebody has. Each job that has to wait wakes by itself, so that giving up
    /// one of them leaves nobody behind.
    pub(super) fn ask_due(&mut self, id: JobId) {
        if self.asking.is_some() {
            return;
        }
        let now = self.clock.monotonic();
        let Some(command) = self.jobs.get(&id).map(|job| job.waiting.first().copied()) else { return };
        let not_before = self.hold_until.max(self.ask_not_before);
        if not_before > now {
            return self.wait_to_ask(id, not_before);
        }
        // Any authenticated read would do; this one takes no parameters.
        let Some(balance) = endpoint(match self.api {
            Api::Agent => "get_balance",
            Api::Reseller => "get_current_balance",
        }) else {
            return;
        };
        let built = Built::at(balance.path);
        let request = self.lay_out(balance.method, balance.auth, &built, Vec::new(), self.retry.timeout_ms, Millis::MAX);
        self.asked = self.asked.saturating_add(1);
        self.notify(id, Happening::AskingTime);
        let step = self.step_id();
        self.asking = Some(step);
        self.pending.insert(step, Pending::Ask);
        self.steps.push_back(Step::Send { id: step, command: command.unwrap_or(CommandId(0)), request });
    }

    /// The time may not be asked for before that. Longer than a call may take is not waited for.
    fn wait_to_ask(&mut self, id: JobId, not_before: Millis) {
        let wait = not_before.saturating_sub(self.clock.monotonic());
        if wait <= self.retry.window_ms {
            return self.set_timer(id, not_before);
        }
        let retry_at = Some(self.clock.unix().saturating_add(wait));
        self.stay_in_doubt(id, None, retry_at);
    }

    /// What came of it, for all that wait for it.
    pub(super) fn told_time(&mut self, outcome: Outcome<'_>) {
        self.asking = None;
        let answer = self.classified(&outcome);
        let waiting: Vec<JobId> = self.jobs.values().filter(|job| job.state == State::Asking).map(|job| job.id).collect();
        let envelope = answer.as_ref().filter(|answer| !matches!(answer.verdict, Verdict::NoEnvelope { .. }) && !self.is_throttle(answer));
        if let Some(answer) = envelope {
            if let Some(time) = answer.server_time {
                self.clock.hear(time);
            }
            self.asked = 0;
            waiting.into_iter().for_each(|id| self.take_age(id));
            return;
        }
        let random = self.entropy.jitter();
        let asked = answer.as_ref().and_then(|answer| answer.retry_after).unwrap_or(0);
        let lost = match outcome {
            Outcome::Failed { kind, sent } => Some((kind, sent)),
            _ => None,
        };
        let now = self.clock.monotonic();
        let delay = jittered(self.retry.ceiling(self.asked.saturating_sub(1), false), random).max(asked);
        if answer.as_ref().is_some_and(|answer| self.is_throttle(answer)) {
            self.hold_until = self.hold_until.max(now.saturating_add(delay));
        }
        self.ask_not_before = now.saturating_add(delay);
        if self.asked < self.retry.attempts && asked <= self.retry.window_ms {
            let at = self.ask_not_before;
            return waiting.into_iter().for_each(|id| self.set_timer(id, at));
        }
        // Whoever resumes it later is to wait only for as long as the service said.
        self.ask_not_before = now.saturating_add(asked);
        self.asked = 0;
        let Some(first) = waiting.first().and_then(|id| self.jobs.get(id)) else { return };
        let unix = self.clock.unix();
        let mut error = first.error(Kind::Unavailable, Effect::Unknown, what(self.api, answer.as_ref(), lost), Advice::RetryLater);
        if let Some(answer) = &answer {
            fill(&mut error, answer, &self.hidden(), unix);
        }
        for id in waiting {
            self.stay_in_doubt(id, Some(error.clone()), error.retry_at);
        }
    }

    /// A restored job that could not go on: as in doubt as before.
    pub(super) fn stay_in_doubt(&mut self, id: JobId, cause: Option<Error>, retry_at: Option<Millis>) {
        let Some(job) = self.jobs.get(&id) else { return };
        let kind = if job.cancelled { Kind::Cancelled } else { Kind::InDoubt };
        let what = match kind {
            Kind::Cancelled => "was given up before it was resumed",
            _ => "was not resumed, because the service's time could not be read",
        };
        let error = Error::from(Report { cause, retry_at, ..job.error(kind, Effect::Unknown, what, Advice::Resume).into_report() });
        self.doubt(id, error);
    }

    /// The age of a restored key, now that the service's time was asked for.
    pub(super) fn take_age(&mut self, id: JobId) {
        let (clock, rules, now) = (self.clock, self.rules, self.clock.monotonic());
        let Some(job) = self.jobs.get_mut(&id) else { return };
        if let Age::Saved { age, unix } = job.age {
            let Some(gap) = clock.since(unix) else { return self.too_old(id) };
            let carried = if rules.holds(Rule::AgeSurvives) { age.saturating_add(gap) } else { 0 };
            job.age = Age::Since(clock.elapsed().saturating_sub(carried));
        }
        job.go(On::Again);
        self.set_timer(id, now);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallOptions, ClientOptions, FailureKind, Now, Record, Sent};
    use super::*;

    const BUY: &str = r#"{"session_type":"dynamic","product_no":"p"}"#;
    const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };

    fn client(entropy: u8) -> Client {
        let options = ClientOptions { base_url: "https://api.example/v1".into(), ..ClientOptions::default() };
        Client::new(options, [entropy; 16]).expect("the options are sound")
    }

    #[test]
    fn the_work_of_records_that_wait_for_the_services_time_grows_with_their_number_and_not_faster() {
        let (mut first, mut records) = (client(1), Vec::new());
        for _ in 0..500 {
            first.start_json("create_session", BUY, CallOptions::default());
            loop {
                match first.poll(NOW) {
                    Step::Save { record, data, .. } => records.push(Record { id: record, data: data.expect("is saved") }),
                    Step::Wait { .. } => break,
                    _ => {}
                }
            }
        }
        let mut second = client(2);
        second.poll(NOW);
        let held = second.restore(records).held;
        for (n, record) in held.iter().enumerate() {
            second.resume(record, CallOptions::default());
            loop {
                match second.poll(NOW) {
                    Step::Send { id, request, .. } => {
                        assert!(n == 0 && request.url.ends_with("/billing/balance"), "the backoff is waited for");
                        second.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }, NOW).expect("is out");
                    }
                    Step::Wait { .. } => break,
                    _ => {}
                }
            }
        }
        assert!(held.len() == 500 && second.timers_set <= 3 * 500, "{} timers were set for {} records", second.timers_set, held.len());
    }
}
