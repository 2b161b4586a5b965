//! The results of commands: set, and then taken, or left by a caller who is gone. Then the result is dropped, and what was done, or may
//! have been, stays to be seen.

use crate::client::deferred::Deferred;
use crate::client::end::commands::{Asker, RecordsToDelete};
use crate::client::news::{PoolEvent, PoolEventKind};
use crate::client::router::Router;
use crate::contract::Endpoint;
use crate::engine::Answered;
use crate::policy::Error;
use crate::state::{CommandId, User};

impl Router {
    /// Gives a command its result.
    pub(crate) fn complete(&mut self, command: CommandId, result: Result<Answered, Error>) {
        self.complete_with(command, result, RecordsToDelete::default());
    }

    /// Completes a command that leaves records to delete once its result was taken.
    pub(crate) fn complete_with(&mut self, command: CommandId, result: Result<Answered, Error>, left: RecordsToDelete) {
        if let Some(after) = self.commands.take_after_retry(command) {
            return self.deferred.push(Deferred::AfterRetry(command, after));
        }
        if let Some(start) = self.commands.take_next_purchase(command) {
            return self.deferred.push(Deferred::BuyNext(command, start));
        }
        let Some(asker) = self.commands.asker(command) else { return };
        for name in left.names() {
            if self.journal.user(name).is_none() {
                self.journal.give(name, Some(User::Result));
            }
        }
        let unix = self.unix();
        self.commands.end(command, result.map_err(|error| error.said_at(unix)), left);
        match asker {
            Asker::Caller => self.outbox.complete(command),
            Asker::List(number) => self.deferred.push(Deferred::PartEnded(number, command)),
            Asker::Pool(pool, work) => self.news.push_back(PoolEvent { pool, what: PoolEventKind::Ended(work, command) }),
        }
    }

    pub(crate) fn command(&mut self, endpoint: &'static Endpoint) -> CommandId {
        self.command_for(endpoint.name)
    }

    pub(crate) fn command_for(&mut self, operation: &'static str) -> CommandId {
        self.commands.insert(operation, Asker::Caller)
    }

    /// A command that ended before it began.
    pub(crate) fn reject(&mut self, error: Error, intent: Option<String>) -> CommandId {
        let command = self.command_for(error.operation);
        let error = error.with(|new| new.intent = intent.clone());
        self.complete(command, Err(error));
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, NOW, agent, drain, go_on, result, saved};
    use crate::client::{CallOptions, Client, Now, RecordKind, Saved, Settlement};
    use crate::policy::Effect;
    use crate::state::Memory;

    fn bought(body: &str, status: u16) -> (Client, CommandId) {
        let mut client = agent(7, false);
        let command = client.start_json("create_session", BUY, CallOptions::default());
        drain(&mut client, status, body);
        assert_eq!(saved(&mut client), []);
        (client, command)
    }

    fn shown(client: &mut Client) -> Saved {
        let shown = saved(client);
        assert_eq!(shown.len(), 1, "{shown:?}");
        shown.into_iter().next().expect("is one")
    }

    const DONE: &str = r#"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#;
    const BROKEN: &str = r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"no"}}"#;

    #[test]
    fn an_answer_that_is_abandoned_is_shown_given_to_who_resumes_it_and_forgotten() {
        let (mut client, command) = bought(DONE, 202);
        assert!(client.abandon(command) && !client.abandon(command) && client.take_answer(command).is_none());
        let kept = shown(&mut client);
        assert_eq!((kept.holds, kept.session_id.as_deref()), (RecordKind::Accepted, Some("s-1")));
        let command = client.resume(&kept.record, CallOptions::default());
        let answered = result(&mut client, command).expect("was done");
        assert!(answered.raw.text().contains("creating"));
        let forget = client.forget(&kept.record).command;
        assert_eq!(result(&mut client, forget).map(|answered| answered.raw.text().to_owned()).ok().as_deref(), Some("true"));
        assert_eq!(saved(&mut client), []);
    }

    #[test]
    fn a_failure_that_nobody_took_and_that_may_have_been_done_stays_until_it_is_settled() {
        for settlement in [Settlement::NotHappened { early: true }, Settlement::Became("s-1".to_owned())] {
            let (mut client, command) = bought(BROKEN, 500);
            let effect = client.result(command).and_then(|result| result.as_ref().err()).map(|error| error.effect);
            assert_eq!(effect, Some(Effect::Unknown));
            assert!(client.abandon(command));
            let kept = shown(&mut client);
            assert_eq!(kept.holds, RecordKind::InDoubt);
            let forget = client.forget(&kept.record).command;
            assert_eq!(result(&mut client, forget).expect("is no error").raw.text(), "false", "what is in doubt is not forgotten");
            let settle = client.settle(&kept.record, settlement).command;
            assert_eq!(result(&mut client, settle).expect("is no error").raw.text(), "true");
            assert_eq!(saved(&mut client), []);
        }
    }

    #[test]
    fn what_changed_since_it_was_looked_at_is_not_settled() {
        let (mut client, command) = bought(BROKEN, 500);
        assert!(client.abandon(command));
        let before = shown(&mut client).record;
        let again = client.resume(&before, CallOptions::default());
        drain(&mut client, 500, BROKEN);
        assert!(client.abandon(again));
        assert_ne!(shown(&mut client).record, before);
        let settle = client.settle(&before, Settlement::NotHappened { early: true }).command;
        let error = result(&mut client, settle).expect_err("has changed");
        assert!(error.to_string().contains("has changed since you read it"), "{error}");
    }

    #[test]
    fn a_read_that_nobody_takes_leaves_nothing() {
        let mut client = agent(7, false);
        let read = client.start_json("get_balance", "{}", CallOptions::default());
        assert!(!client.abandon(read), "it has not completed");
        drain(&mut client, 200, r#"{"success":true,"data":{"balance":1}}"#);
        assert!(client.abandon(read));
        assert_eq!(saved(&mut client), []);
    }

    /// Opens a session that is usable at once.
    fn opened(client: &mut Client) {
        let command = client.start_json("open_session", BUY, CallOptions::default());
        drain(client, 202, r#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#);
        client.take_answer(command).expect("has completed").expect("was bought");
        assert_eq!(shown(client).holds, RecordKind::Session);
    }

    #[test]
    fn what_was_abandoned_under_an_intent_is_remembered_by_it_alone() {
        let mut client = agent(7, false);
        opened(&mut client);
        let command = client.start_json("terminate_session", r#"{"session_id":"s-1"}"#, CallOptions::intent("end"));
        drain(&mut client, 200, r#"{"success":true,"data":{}}"#);
        assert!(client.abandon(command));
        drain(&mut client, 500, "");
        let kept = shown(&mut client);
        assert_eq!((kept.operation.as_str(), kept.intent.as_deref()), ("terminate_session", Some("end")));
    }

    #[test]
    fn of_a_termination_that_was_abandoned_nothing_stays() {
        let mut client = agent(7, false);
        opened(&mut client);
        let command = client.start_json("terminate_session", r#"{"session_id":"s-1"}"#, CallOptions::default());
        drain(&mut client, 200, r#"{"success":true,"data":{}}"#);
        assert!(client.abandon(command));
        drain(&mut client, 500, "");
        assert_eq!(saved(&mut client), []);
    }

    #[test]
    fn a_renewal_that_was_abandoned_is_shown_after_the_next_one_too() {
        const RENEW: &str = r#"{"session_id":"s-1","duration":1}"#;
        let mut client = agent(7, false);
        for options in [CallOptions::default(), CallOptions::intent("month")] {
            let command = client.start_json("renew_session", RENEW, options);
            drain(&mut client, 200, r#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#);
            client.result(command).expect("has completed").as_ref().expect("was paid");
            assert!(client.abandon(command));
            drain(&mut client, 500, "");
        }
        let kept = saved(&mut client);
        assert!(kept.iter().all(|kept| kept.operation == "renew_session"));
        let mut intents: Vec<Option<&str>> = kept.iter().map(|kept| kept.intent.as_deref()).collect();
        intents.sort_unstable();
        assert_eq!(intents, [None, Some("month")]);
    }

    #[test]
    fn a_purchase_whose_session_was_over_before_anybody_heard_of_it_is_shown() {
        let mut client = agent(7, false);
        let command = client.start_json("open_session", BUY, CallOptions::default());
        drain(&mut client, 202, DONE);
        let later = Now { unix: NOW.unix + 5000, monotonic: 5000 };
        let over = r#"{"success":true,"data":{"session_id":"s-1","status":"expired"}}"#;
        go_on(&mut client, &mut Memory::default(), later, |_| (200, over.to_owned()));
        assert!(client.abandon(command));
        let kept = shown(&mut client);
        assert_eq!((kept.session_id.as_deref(), kept.holds), (Some("s-1"), RecordKind::Accepted));
    }
}
