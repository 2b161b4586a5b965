//! The results of commands. A result is held back until the store has answered every step of its command, so a program that ends when its
//! call returns leaves nothing to do. Then the result is set, and taken, or abandoned because its caller is gone: what was done, or may have
//! been, stays to be seen.

use crate::client::deferred::Deferred;
use crate::client::end::commands::{Asker, FinalWrite, Finished, PendingWrite, RecordsToDelete, TakenResult};
use crate::client::end::taken_over::{after, taken_over};
use crate::client::news::{PoolEvent, PoolEventKind};
use crate::client::router::Router;
use crate::client::types::busy;
use crate::contract::Endpoint;
use crate::engine::{Answered, Counted};
use crate::json::read_json;
use crate::policy::{Advice, Effect, Error, INVALID_KEY, Kind, Rule};
use crate::state::{CommandId, Data, Done, Name, User, WriteResult};
use crate::wire::Facts;

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
            // Records of the session that is over, which nobody takes a result for.
            left.names().for_each(|name| self.delete_result(name));
            return self.deferred.push(Deferred::BuyNext(command, start));
        }
        let Some(asker) = self.commands.asker(command) else { return };
        for name in left.names() {
            if self.journal.user(name).is_none() {
                self.journal.give(name, Some(User::Result));
            }
        }
        let unix = self.unix();
        self.commands.end(command, result.map_err(|error| self.explained(error).said_at(unix)), left);
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

impl Router {
    /// The error, which says so if the client has no key that the service could know.
    fn explained(&self, error: Error) -> Error {
        let lacks_key = if error.code.as_deref() == Some(INVALID_KEY) { self.lacks_key() } else { "" };
        error.with(|new| new.what.push_str(lacks_key))
    }

    /// Gives commands their result once the store has answered all that they wait for.
    pub(crate) fn finish_after(&mut self, finished: Finished) {
        let command = finished.commands.first().copied();
        for after in &finished.after {
            if let PendingWrite::Spend(number) = after {
                self.spending.serve(*number, command);
            }
        }
        let is_pending = |after: &PendingWrite| match after {
            PendingWrite::Name(name) => self.journal.is_busy(name),
            PendingWrite::Spend(number) => self.spending.is_awaited(*number),
            PendingWrite::Listing(number) => self.listings.get(number).is_some(),
        };
        let Some(Finished { commands, result, mut left, .. }) = self.commands.finish(finished, is_pending) else { return };
        for command in commands {
            self.complete_with(command, result.clone(), std::mem::take(&mut left));
        }
    }

    /// Ends a command with what was found under its name, a result or a refusal, once the name was let go of.
    pub(crate) fn finish_request(&mut self, command: CommandId, result: Result<Answered, Error>, intent: Option<String>, name: &Name) {
        let result = result.map_err(|error| match error.intent {
            Some(_) => error,
            None => error.with(|new| new.intent = intent),
        });
        let after = PendingWrite::Name(name.clone());
        let finished = Finished { after: vec![after.clone()], ..Finished::new(vec![command], result) };
        match self.journal.user(name) {
            // The name is let go of as soon as all who wait have been let in.
            None => self.commands.wait(after, finished),
            Some(_) => self.finish_after(finished),
        }
    }

    /// The store has answered a step of this.
    pub(crate) fn answered(&mut self, after: &PendingWrite, written: Option<WriteResult>) {
        if let PendingWrite::Name(name) = after
            && self.journal.is_busy(name)
        {
            return;
        }
        for mut finished in self.commands.answered(after) {
            if let (Some(written), PendingWrite::Name(name)) = (written, after)
                && finished.own.as_ref() == Some(name)
            {
                self.change(&mut finished, name, written);
            }
            self.finish_after(finished);
        }
    }

    fn operation_of(&self, finished: &Finished) -> &'static str {
        finished.commands.first().and_then(|command| self.commands.operation(*command)).unwrap_or("store")
    }

    /// Stops counting their entries, and deletes the marker of a renewal; they wait for that.
    pub(crate) fn let_go_for(&mut self, finished: &mut Finished) {
        let counted = std::mem::take(&mut finished.counted);
        let spends = self.spend(|spending, actions| spending.uncount(counted, actions));
        finished.after.extend(spends.into_iter().map(PendingWrite::Spend));
        self.end_marker(finished);
    }

    /// Changes the result after the outcome of the last step.
    fn change(&mut self, finished: &mut Finished, name: &Name, written: WriteResult) {
        match (written, finished.last) {
            (WriteResult::Done, FinalWrite::EraseLate) => {
                let what = "was not sent, but the store may still write its record later, and resuming that record would send it: check the \
                            saved entries, and settle it as not happened";
                if let Err(error) = &finished.result {
                    finished.result = Err(after(error, Kind::Store, Effect::Unknown, what, Advice::MendStore));
                }
                // The client that ends the record finds its entries there.
                finished.counted.clear();
                self.keep_marker(finished);
            }
            (WriteResult::Done, _) => self.let_go_for(finished),
            // The put is tried again. Until it is done, a client that takes the record over finds the entries that still count.
            (WriteResult::Failed, FinalWrite::Put) if !finished.counted.is_empty() || finished.marker.is_some() => {
                let (counted, marker) = (std::mem::take(&mut finished.counted), finished.marker.take());
                let later = Finished {
                    commands: Vec::new(),
                    counted,
                    marker,
                    left: RecordsToDelete::default(),
                    after: Vec::new(),
                    ..finished.clone()
                };
                self.commands.wait(PendingWrite::Name(name.clone()), later);
            }
            (WriteResult::Failed | WriteResult::Never, FinalWrite::Put) => {}
            (WriteResult::Failed | WriteResult::Never, FinalWrite::Erase | FinalWrite::EraseLate) => {
                let what = "its record could not be deleted from the store, so it stays in doubt: once the store works, resume it or settle it as not happened";
                let record = self.journal.record_of(name).map(|record| record.0);
                let error = match &finished.result {
                    Err(error) => after(error, Kind::Store, Effect::Unknown, what, Advice::MendStore),
                    Ok(_) => {
                        let what = "may not have been done, since the store could not delete the record: check again";
                        Error::new(Kind::Store, Effect::Unknown, self.operation_of(finished), what, Advice::MendStore)
                    }
                };
                finished.last = FinalWrite::Put;
                finished.result = Err(error.with(|new| new.record = record));
                // A client that finds the record may buy with its key, and the client that ends it finds its entries there.
                finished.counted.clear();
                self.keep_marker(finished);
                // The record may be there: whoever comes next finds it.
                self.release(name);
            }
            (WriteResult::Lost, _) if self.holds(Rule::LostIsNotNone) => {
                self.keep_marker(finished);
                let operation = self.operation_of(finished);
                finished.left = RecordsToDelete::default();
                finished.result = Err(match finished.is_act {
                    true => busy(operation, "another client has taken the record over"),
                    false => taken_over(operation, name.is_findable(), &finished.result),
                });
            }
            (WriteResult::Lost, _) => {}
        }
    }

    /// A record goes, or is written, and its name is let go of: then that is said. Once it is gone, what it counted counts no more.
    pub(crate) fn acted(&mut self, name: &Name, command: CommandId, last: FinalWrite, counted: Vec<Counted>) {
        self.journal.give(name, None);
        let own = Some(name.clone());
        let after = vec![PendingWrite::Name(name.clone())];
        self.finish_after(Finished { own, last, counted, is_act: true, after, ..Finished::new(vec![command], Ok(said(true))) });
    }
}

/// The answer to an act: true if there was something to do.
pub(crate) fn said(there: bool) -> Answered {
    Answered { raw: there.to_string().parse().unwrap_or_default(), ..Answered::of(Facts::default()) }
}

impl Router {
    /// The untyped result of a command that completed, once.
    pub(crate) fn take_answer(&mut self, command: CommandId) -> Option<Result<Answered, Error>> {
        let taken = self.commands.take(command)?;
        taken.session.iter().for_each(|session| self.give_session(session, command, true));
        taken.left.names().for_each(|name| self.delete_result(name));
        Some(taken.result)
    }

    /// Drops the result of a command that completed, because its caller is gone.
    pub(crate) fn abandon(&mut self, command: CommandId) {
        let Some(TakenResult { operation, session, result, mut left }) = self.commands.take(command) else { return };
        session.iter().for_each(|session| self.give_session(session, command, false));
        if let (Ok(answered), "resume_all") = (&result, operation) {
            // The results of its parts were only accessible by its answer.
            let parts: Vec<u32> = read_json(answered.raw.text()).unwrap_or_default();
            parts.into_iter().for_each(|part| self.deferred.push(Deferred::Abandon(CommandId(part))));
        }
        if let Some(name) = left.own.take().filter(|name| self.journal.user(name) == Some(&User::Result)) {
            self.journal.give(&name, None);
            match result {
                Ok(Answered { facts, raw, .. }) => self.put_done(&name, None, Done::of(operation, facts, Some(&raw))),
                // A resume of it sends its key again.
                Err(_) => self.release(&name),
            }
        }
        left.names().for_each(|name| self.delete_result(name));
    }

    /// The data that tells of a result which was not taken yet, if that was a success. The store still has its call, which is in doubt for
    /// other programs.
    pub(crate) fn untaken(&self, name: &Name) -> Option<Data> {
        let (operation, answered) = self.commands.success_under(name)?;
        Some(Data { done: Some(Done::of(operation, answered.facts.clone(), Some(&answered.raw))), ..self.data(None) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, NOW, agent, drain, go_on, result, saved};
    use crate::client::{CallOptions, Client, ClientOptions, Now, Outcome, RecordKind, Saved, Settlement, Step};
    use crate::contract::Secret;
    use crate::policy::Effect;
    use crate::state::{Memory, StoreCall};
    use crate::wire::Request;

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
    fn a_client_without_a_key_is_told_that_it_has_none() {
        const REFUSED: &str = r#"{"success":false,"error":{"code":"AUTH_INVALID_KEY","message":"X-API-Key is missing"}}"#;
        const TOLD: &str = "and this client has no API key: give `api_key`, or set `HOPLINE_API_KEY`";
        let client = |key: Option<&str>, entropy| {
            let (base_url, api_key) = ("https://api.example/v1".into(), key.map(Secret::new));
            let options = ClientOptions { base_url, api_key, store: true, ..ClientOptions::default() };
            Client::new(options, [entropy; 16]).expect("the options are sound")
        };
        let mut disk = Memory::default();
        let mut fails = |client: &mut Client, operation, params, options, status, body: &str| {
            let command = client.start_json(operation, params, options);
            go_on(client, &mut disk, NOW, |_| (status, body.to_owned()));
            client.take_answer(command).expect("has completed").map(drop).map_err(|error| error.to_string())
        };
        let job = || CallOptions::intent("job");
        let accepted = r#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#;
        assert_eq!(fails(&mut client(Some("key"), 1), "create_session", BUY, job(), 202, accepted), Ok(()));
        for (key, is_told) in [(None, true), (Some("other"), false)] {
            let mut other = client(key, 2);
            let read = fails(&mut other, "get_balance", "{}", CallOptions::default(), 401, REFUSED).expect_err("is refused");
            let found = fails(&mut other, "create_session", BUY, job(), 401, REFUSED).expect_err("is another account's");
            assert!(found.contains("another API key or base URL"), "{found}");
            assert_eq!([read.contains(TOLD), found.contains(TOLD)], [is_told; 2], "{read}, {found}");
        }
    }

    #[test]
    fn a_purchase_that_names_no_product_is_told_how_to_name_one() {
        let mut client = agent(7, false);
        let purchase = client.start_json("open_session", r#"{"quantity":1}"#, CallOptions::default());
        let error = result(&mut client, purchase).expect_err("names none");
        let told = "`session_type` is required: give `product`, which chooses one, or `session_type` and `product_no`";
        assert_eq!((error.what.as_str(), error.field.as_deref()), (told, Some("session_type")));
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

    /// The client of the program that comes after one that died.
    fn crashed(disk: &mut Memory, entropy: u8) -> Client {
        disk.call(StoreCall::Release { names: None }, NOW.unix, NOW.monotonic);
        agent(entropy, true)
    }

    /// A program dies while the next renewal of a session puts its record where that of the one before is: the next program finds the first
    /// one's result, or sends its key again.
    #[test]
    fn the_result_of_a_renewal_stays_in_the_store_while_the_next_one_takes_its_place() {
        const RENEW: &str = r#"{"session_id":"s-1","duration":1}"#;
        let said = r#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#;
        let key_of = |request: &Request| request.header("idempotency-key").map(str::to_owned);
        for first in ["is abandoned", "is abandoned as the next one begins", "is not taken", "is of a program that died"] {
            for (steps, options) in (0..10).flat_map(|steps| [(steps, CallOptions::default()), (steps, CallOptions::intent("b"))]) {
                let (mut client, mut disk, mut keys) = (agent(7, true), Memory::default(), Vec::new());
                let command = client.start_json("renew_session", RENEW, CallOptions::default());
                go_on(&mut client, &mut disk, NOW, |request| {
                    keys.push(key_of(request));
                    (200, said.to_owned())
                });
                match first {
                    "is abandoned" => {
                        assert!(client.abandon(command));
                        go_on(&mut client, &mut disk, NOW, |request| panic!("{} is sent", request.url));
                    }
                    "is abandoned as the next one begins" => assert!(client.abandon(command)),
                    "is not taken" => assert!(client.result(command).is_some()),
                    _ => client = crashed(&mut disk, 8),
                }
                client.start_json("renew_session", RENEW, options);
                for _ in 0..steps {
                    let Step::Store { id, call, .. } = client.poll(NOW) else { break };
                    client.resolve(id, Outcome::Store(disk.call(call, NOW.unix, NOW.monotonic)), NOW).expect("is out");
                }
                let mut next = crashed(&mut disk, 9);
                let ticket = next.saved(None);
                go_on(&mut next, &mut disk, NOW, |request| panic!("{} is sent", request.url));
                let kept = next.take(ticket).expect("has completed").expect("is read").entries;
                let mut found = kept.iter().filter(|kept| kept.holds == RecordKind::Accepted).count();
                for doubt in kept.iter().filter(|kept| kept.holds == RecordKind::InDoubt) {
                    next.resume(&doubt.record, CallOptions::default());
                    go_on(&mut next, &mut disk, NOW, |request| {
                        found += usize::from(key_of(request).is_some() && keys.contains(&key_of(request)));
                        (200, said.to_owned())
                    });
                }
                assert!(found >= 1, "{first}, {steps} steps of the next one: {kept:?}");
            }
        }
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
