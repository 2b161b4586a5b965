//! Requests whose work takes a while: it is done when that is over, whether or not anybody still waits for the answer.

use std::sync::Arc;

use http::{Request, Response};

use super::Service;
use super::envelope::{Answer, InProgress};
use super::faults::ErrorFault;
use super::reseller::Owner;

/// How long an answer is kept for whoever waits for it.
const KEPT_MS: i64 = 60 * 60 * 1000;

/// Work to be done, or that was done and whose answer nobody has collected.
#[derive(Clone, Debug)]
pub(crate) struct Work {
    pub(crate) number: u64,
    pub(crate) ends_at: i64,
    pub(crate) caller: Owner,
    pub(crate) request: Arc<Request<Vec<u8>>>,
    pub(crate) error: Option<ErrorFault>,
    answer: Option<Answer>,
}

impl Service {
    /// Puts a request's work off. Its number is that of the request that is being handled.
    pub(crate) fn put_off(&mut self, request: &Request<Vec<u8>>, caller: Owner, ends_at: i64, error: Option<ErrorFault>) -> Answer {
        let number = self.requests;
        self.works.push(Work { number, ends_at, caller, request: Arc::new(request.clone()), error, answer: None });
        Answer::pending(InProgress { ends_at, request: number })
    }

    /// Does the work whose time has come, each at its own moment.
    pub(crate) fn catch_up(&mut self, now_ms: i64) {
        self.works.retain(|work| work.answer.is_none() || now_ms < work.ends_at.saturating_add(KEPT_MS));
        let due = |(_, work): &(usize, &Work)| work.answer.is_none() && work.ends_at <= now_ms;
        while let Some((place, work)) = self.works.iter().enumerate().filter(due).min_by_key(|(_, work)| work.ends_at) {
            let work = work.clone();
            self.settle(work.ends_at);
            let answer = self.work(&work);
            self.works[place].answer = Some(answer);
        }
        self.settle(now_ms);
    }

    /// How many requests are in progress.
    pub fn in_progress(&mut self, now_ms: i64) -> usize {
        self.catch_up(now_ms);
        self.works.iter().filter(|work| work.answer.is_none()).count()
    }

    /// The answer of work that is done; none before its time, and none twice.
    pub fn finish(&mut self, in_progress: InProgress, now_ms: i64) -> Option<Response<Vec<u8>>> {
        self.catch_up(now_ms);
        let place = self.works.iter().position(|work| work.number == in_progress.request && work.answer.is_some())?;
        let answer = self.works.swap_remove(place).answer?;
        Some(answer.into_response(now_ms))
    }
}
