//! The outcome of a step, on its way to the waiting jobs.

use crate::client::outbox::Pending;
use crate::client::router::Router;
use crate::client::types::{Misuse, Outcome};
use crate::engine::Input;
use crate::policy::{FailureKind, Sent};
use crate::state::{SharedKind, StepId};
use crate::time::Now;
use crate::{engine, wire};

impl Router {
    /// Takes in what came of a step.
    pub(super) fn resolve(&mut self, id: StepId, outcome: Outcome<'_>, now: Now) -> Result<(), Misuse> {
        self.outbox.check(id, &outcome)?;
        self.tick(now);
        match outcome {
            Outcome::Store(answer) => self.on_store(id, answer),
            Outcome::Response { status, headers, body, truncated } => {
                self.received(id, engine::SendResult::Response(wire::Received { status, headers, body, truncated }));
            }
            Outcome::Read(response) => self.received(id, engine::SendResult::Read(response)),
            Outcome::Failed { kind, sent } => self.received(id, engine::SendResult::Failed(kind, sent)),
        }
        Ok(())
    }

    /// Resolves a Send that was not sent, since a header of the caller's own can't be sent with it; `rule` says which one and why, as the end of a sentence.
    pub(super) fn refuse_headers(&mut self, id: StepId, rule: &str, now: Now) -> Result<(), Misuse> {
        match self.outbox.purpose(id) {
            Some(Pending::Send(_) | Pending::Shared(SharedKind::Login)) => {
                self.tick(now);
                self.received(id, engine::SendResult::Unfit(rule));
                Ok(())
            }
            _ => self.resolve(id, Outcome::Failed { kind: FailureKind::Other, sent: Sent::Never }, now),
        }
    }

    /// Passes an HTTP outcome to the job that waits for it.
    fn received(&mut self, step: StepId, received: engine::SendResult<'_>) {
        match self.outbox.take_purpose(step) {
            Some(Pending::Send(job)) => self.tell(job, Input::Response(received)),
            Some(Pending::Shared(kind)) => self.on_shared_response(kind, step, received),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CallOptions, Client, CommandId, Step, StoreCall};
    use super::*;
    use crate::client::testing::{BUY, NOW, agent, go_on, reseller, saved};
    use crate::contract::Text;
    use crate::contract::{Endpoint, Operation};
    use crate::engine::Answered;
    use crate::policy::{Effect, Error, Kind};
    use crate::state::Memory;
    use crate::wire::{Expected, Received, read};

    const RULE: &str = "has a value of `x` that is not visible ASCII";

    /// Refuses the headers of each Send but the first `answered`, which get these bodies; how many there were.
    fn run(client: &mut Client, command: CommandId, answered: &[Option<&str>]) -> (usize, Error) {
        let (mut now, mut sends) = (NOW, 0);
        loop {
            match client.poll(now) {
                Step::Send { id, .. } => {
                    match answered.get(sends) {
                        Some(Some(body)) => {
                            let response = Outcome::Response { status: 202, headers: &[], body: body.as_bytes(), truncated: false };
                            client.resolve(id, response, now)
                        }
                        Some(None) => client.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }, now),
                        None => client.refuse_headers(id, RULE, now),
                    }
                    .expect("is answered once");
                    sends += 1;
                }
                Step::Wait { until: Some(until) } => now.monotonic = until,
                Step::Wait { until: None } => {
                    let result = client.take_answer(command).expect("has completed");
                    return (sends, result.expect_err("is refused"));
                }
                _ => {}
            }
        }
    }

    /// Returns the result of a purchase after a response that is read in this way.
    fn bought(body: &str, outcome: impl Fn(Expected, Received<'_>, &mut dyn FnMut(Outcome<'_>))) -> String {
        let mut client = agent(7, false);
        let command = client.start_json("create_session", BUY, CallOptions::default());
        loop {
            match client.poll(NOW) {
                Step::Send { id, request, .. } => {
                    let received = Received { status: 202, headers: &[], body: body.as_bytes(), truncated: false };
                    outcome(request.expects, received, &mut |outcome| client.resolve(id, outcome, NOW).expect("is answered once"));
                }
                Step::Wait { until: None } => {
                    // The answer is read once more for the findings of core itself.
                    let whole = |mut answered: Answered| Answered { reading: Some(answered.reading()), ..answered };
                    return format!("{:?}", client.take_answer(command).expect("has completed").map(whole));
                }
                Step::Wait { until: Some(_) } => return "is sent again".to_owned(),
                _ => {}
            }
        }
    }

    #[test]
    fn a_response_that_the_host_has_read_says_the_same() {
        const LOGIN: &Endpoint = crate::contract::reseller::Login::ENDPOINT;
        for body in [
            r#"{"success":true,"data":{"session_id":"s-1","status":"creating","estimated_charge_usd":4.50}}"#,
            r#"{"success":true,"data":{"session_id":7}}"#,
            r#"{"success":false,"error":{"code":"INSUFFICIENT_BALANCE","message":"no"}}"#,
            r#"{"code":0,"data":{"session_id":"s-1","status":"creating"}}"#,
            "<html>",
            r#"{"success":true,"data":{"#,
        ] {
            let here = bought(body, |_, Received { status, headers, body, truncated }, resolve| {
                resolve(Outcome::Response { status, headers, body, truncated });
            });
            let there = bought(body, |expects, received, resolve| resolve(Outcome::Read(read(expects, received, &mut Text::default()).0)));
            let as_another = bought(body, |_, received, resolve| resolve(Outcome::Read(read(Expected::of(LOGIN, 9), received, &mut ()).0)));
            assert_eq!((&there, &as_another), (&here, &here), "{body}");
        }
    }

    #[test]
    fn nothing_is_repeated_and_the_headers_are_named() {
        for operation in ["create_session", "open_session"] {
            for more in [CallOptions::default(), CallOptions { max_unit_price: "1".parse().ok(), ..CallOptions::intent("job") }] {
                let mut client = agent(7, false);
                let command = client.start_json(operation, BUY, more);
                let (sends, error) = run(&mut client, command, &[]);
                let said = (error.kind, error.effect, error.field.as_deref(), error.attempts, sends);
                assert_eq!(said, (Kind::Invalid, Effect::None, Some("headers"), 0, 1), "{error}");
                assert!(error.to_string().contains(RULE) && saved(&mut client).is_empty(), "{error}");
            }
        }
    }

    #[test]
    fn what_may_have_been_bought_stays_in_doubt_and_what_was_is_done() {
        let mut client = agent(7, false);
        let command = client.start_json("create_session", BUY, CallOptions::intent("job"));
        let (sends, error) = run(&mut client, command, &[None]);
        assert_eq!((error.kind, error.effect, error.record.is_some(), sends), (Kind::InDoubt, Effect::Unknown, true, 2), "{error}");
        let mut client = agent(7, false);
        let command = client.start_json("open_session", BUY, CallOptions::default());
        let bought = r#"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#;
        let (sends, error) = run(&mut client, command, &[Some(bought)]);
        assert_eq!(
            (error.kind, error.effect, error.session_id.as_deref(), sends),
            (Kind::Invalid, Effect::Done, Some("s-1"), 2),
            "{error}"
        );
    }

    #[test]
    fn a_login_is_not_repeated_either() {
        let mut client = reseller(7, None, false);
        let command = client.start_json("get_dashboard", "{}", CallOptions::default());
        let (sends, error) = run(&mut client, command, &[]);
        assert_eq!((error.kind, error.effect, error.field.as_deref(), sends), (Kind::Invalid, Effect::None, Some("headers"), 1), "{error}");
    }

    #[test]
    fn a_restored_write_without_a_key_needs_a_login_and_no_age() {
        let (mut first, mut disk) = (reseller(1, Some("a-token"), true), Memory::default());
        let params = r#"{"method":"PUT","path":"/x","safety":"idempotent"}"#;
        first.start_json("request", params, CallOptions::default());
        let record = loop {
            if let Step::Store { call, .. } = first.poll(NOW) {
                let StoreCall::Put { name, .. } = &call else { panic!("a name of its own is not claimed") };
                let record = name.at(crate::state::Version::default());
                disk.call(call, NOW.unix, 0);
                break record;
            }
        };
        let mut second = reseller(2, None, true);
        let command = second.resume(&record, CallOptions::default());
        go_on(&mut second, &mut disk, NOW, |request| {
            let body = if request.url.ends_with("/auth/login") { r#"{"token":"another"}"# } else { "{}" };
            (200, format!(r#"{{"code":0,"message":"ok","data":{body}}}"#))
        });
        assert_eq!(second.take_answer(command).expect("has completed").map(|_| ()).map_err(|error| error.to_string()), Ok(()));
    }
}
