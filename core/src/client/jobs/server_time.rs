//! The service's time, which tells how old a restored key is. One read serves all that wait for it.

use crate::contract::{Api, endpoint};
use crate::engine::{Exchange, ExchangeResult, Service};
use crate::policy::{Advice, Effect, Error, Kind};
use crate::state::SharedFailure;
use crate::wire::Built;

/// A read that says the service's time. Any authenticated read would do; this one takes no parameters.
pub(crate) fn server_time_request(service: &Service) -> Option<Exchange> {
    let balance = endpoint(match service.api {
        Api::Agent => "get_balance",
        Api::Reseller => "get_current_balance",
    })?;
    Some(Exchange::new(balance, Built::at(balance.path), Vec::new(), service.retry.timeout_ms))
}

/// The failure of that read; `None` if the service answered, since each of its answers has its time.
pub(crate) fn judge_server_time(operation: &'static str, heard: ExchangeResult, service: &Service) -> Option<SharedFailure> {
    let ExchangeResult::Failure(failing) = heard else { return None };
    let throttles = failing.is_throttle(service);
    let error = Error::new(Kind::Unavailable, Effect::None, operation, failing.what(service.api), Advice::RetryLater);
    let has_failed = throttles || failing.is_page();
    has_failed.then(|| SharedFailure { passing: true, throttles, failing: Some(failing), ..SharedFailure::new(error) })
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
