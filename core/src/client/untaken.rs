//! Results that nobody takes: the result is dropped, and what was done, or may have been, stays to be seen.

use super::root::{Client, Command, Ended};
use crate::contract::endpoint;
use crate::engine::Answered;
use crate::policy::Error;
use crate::state::{CommandId, Done};
use crate::wire::kept_answer;

impl Client {
    /// The result of a command that completed, left where it is until it is [taken](Self::take_answer) or
    /// [abandoned](Self::abandon).
    pub fn result(&self, command: CommandId) -> Option<&Result<Answered, Error>> {
        Some(&self.commands.get(&command)?.ended.as_deref()?.result)
    }

    /// Drops the result of a command that completed, because its caller is gone. A write without a name of its caller's that was done,
    /// or may have been, keeps its record: [`saved`](Self::saved) shows it, [`resume`](Self::resume) gives what it was answered with, and
    /// [`forget`](Self::forget) drops it. Returns whether there was a result.
    pub fn abandon(&mut self, command: CommandId) -> bool {
        if self.result(command).is_none() {
            return false;
        }
        let Some(Command { operation, ended: Some(ended), .. }) = self.commands.remove(&command) else { return false };
        let Ended { result, mut left } = *ended;
        if let Some(name) = left.own.take() {
            self.journal.give(&name, None);
            match result {
                Ok(Answered { facts, raw, .. }) => {
                    let answer = endpoint(operation).and_then(|endpoint| kept_answer(endpoint.response, raw.text()));
                    let done = Done { operation: operation.to_owned(), facts, opened: false, answer };
                    self.put_done(&name, None, done);
                }
                // Whoever resumes it asks again with its key.
                Err(_) => self.release(&name),
            }
        }
        left.names().for_each(|name| self.delete(name, true));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ClientOptions, Holds, Now, Outcome, Step};
    use super::*;
    use crate::policy::Effect;

    const NOW: Now = Now { unix: 1_700_000_000_000, monotonic: 0 };
    const BUY: &str = r#"{"session_type":"dynamic","product_no":"p"}"#;

    fn client() -> Client {
        let options = ClientOptions { base_url: "https://api.example/v1".into(), ..ClientOptions::default() };
        Client::new(options, [7; 16]).expect("the options are sound")
    }

    /// Answers every Send like this until nothing is left to do, and counts the Saves that delete.
    fn drain(client: &mut Client, status: u16, body: &str) -> usize {
        drain_at(client, NOW, status, body)
    }

    fn drain_at(client: &mut Client, now: Now, status: u16, body: &str) -> usize {
        let mut deleted = 0;
        loop {
            match client.poll(now) {
                Step::Save { id, data, .. } => {
                    deleted += usize::from(data.is_none());
                    client.resolve(id, Outcome::Saved, now).expect("is answered once");
                }
                Step::Send { id, .. } => {
                    let answer = Outcome::Response { status, headers: &[], body: body.as_bytes(), truncated: false };
                    client.resolve(id, answer, now).expect("is answered once");
                }
                Step::Wait { .. } => return deleted,
                _ => {}
            }
        }
    }

    fn bought(body: &str, status: u16) -> (Client, CommandId) {
        let mut client = client();
        let command = client.start_json("create_session", BUY, CallOptions::default());
        assert_eq!((drain(&mut client, status, body), client.saved().len()), (0, 0));
        (client, command)
    }

    const DONE: &str = r#"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#;
    const BROKEN: &str = r#"{"success":false,"error":{"code":"INTERNAL_ERROR","message":"no"}}"#;

    #[test]
    fn an_answer_that_is_abandoned_is_shown_given_to_who_resumes_it_and_then_deleted() {
        let (mut client, command) = bought(DONE, 202);
        assert!(client.abandon(command) && !client.abandon(command) && client.take_answer(command).is_none());
        let shown = client.saved();
        assert_eq!((shown[0].holds, shown[0].session_id.as_deref()), (Holds::Accepted, Some("s-1")));
        let command = client.resume(&shown[0].record, CallOptions::default());
        assert!(client.saved().is_empty());
        assert!(client.abandon(command), "its caller may go as well");
        assert_eq!(client.saved(), shown);
        let command = client.resume(&shown[0].record, CallOptions::default());
        let answered = client.take_answer(command).expect("has completed").expect("was done");
        assert!(answered.raw.text().contains("creating"));
        assert_eq!((drain(&mut client, 500, ""), client.saved().len()), (1, 0));
    }

    #[test]
    fn a_failure_that_nobody_took_and_that_may_have_been_done_stays_until_it_is_settled() {
        let (mut client, command) = bought(BROKEN, 500);
        let effect = client.result(command).and_then(|result| result.as_ref().err()).map(|error| error.effect);
        assert_eq!(effect, Some(Effect::Unknown));
        assert!(client.abandon(command));
        let shown = client.saved();
        assert_eq!(shown[0].holds, Holds::InDoubtForGood);
        assert!(!client.forget(&shown[0].record), "what is in doubt is not forgotten");
        assert!(client.settle(&shown[0].record, super::super::Settlement::NotHappened));
        assert_eq!((drain(&mut client, 500, ""), client.saved().len()), (1, 0));
    }

    #[test]
    fn a_failure_that_nobody_took_can_be_settled_as_what_it_became() {
        let (mut client, command) = bought(BROKEN, 500);
        assert!(client.abandon(command));
        let record = client.saved()[0].record.clone();
        assert!(client.settle_as(&record, "..").is_err(), "no session has such an id");
        assert_eq!(client.settle_as(&record, "s-1").map_err(|error| error.to_string()), Ok(true));
        assert_eq!((drain(&mut client, 500, ""), client.saved().len()), (1, 0));
    }

    #[test]
    fn an_answer_that_was_abandoned_can_be_forgotten_and_a_read_leaves_nothing() {
        let (mut client, command) = bought(DONE, 202);
        assert!(client.abandon(command));
        let record = client.saved()[0].record.clone();
        assert!(client.forget(&record) && !client.forget(&record));
        assert_eq!(drain(&mut client, 500, ""), 1);
        let read = client.start_json("get_balance", "{}", CallOptions::default());
        assert!(!client.abandon(read), "it has not completed");
        drain(&mut client, 200, r#"{"success":true,"data":{"balance":1}}"#);
        assert!(client.abandon(read) && client.saved().is_empty());
    }

    /// Opens a session that is usable at once.
    fn opened(client: &mut Client) {
        let command = client.start_json("open_session", BUY, CallOptions::default());
        drain(client, 202, r#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#);
        client.take_answer(command).expect("has completed").expect("was bought");
        assert_eq!(client.saved().iter().map(|saved| saved.holds).collect::<Vec<_>>(), [Holds::Session]);
    }

    #[test]
    fn what_was_abandoned_under_an_intent_is_remembered_by_it_alone() {
        let mut client = client();
        opened(&mut client);
        let command = client.start_json("terminate_session", r#"{"session_id":"s-1"}"#, CallOptions::intent("end"));
        drain(&mut client, 200, r#"{"success":true,"data":{}}"#);
        assert!(client.abandon(command));
        assert_eq!(drain(&mut client, 500, ""), 1, "the session's record goes");
        let shown = client.saved();
        assert_eq!((shown.len(), shown[0].operation.as_str(), shown[0].intent.as_deref()), (1, "terminate_session", Some("end")));
    }

    #[test]
    fn of_a_change_that_was_abandoned_its_own_record_stays_and_not_that_of_the_session_that_it_ended() {
        let mut client = client();
        opened(&mut client);
        let session = client.saved()[0].record.clone();
        let command = client.start_json("terminate_session", r#"{"session_id":"s-1"}"#, CallOptions::default());
        drain(&mut client, 200, r#"{"success":true,"data":{}}"#);
        assert!(client.abandon(command));
        assert_eq!(drain(&mut client, 500, ""), 1);
        let shown = client.saved();
        assert_eq!((shown.len(), shown[0].operation.as_str()), (1, "terminate_session"));
        assert_ne!(shown[0].record, session);
    }

    #[test]
    fn a_purchase_whose_session_was_over_before_anybody_heard_of_it_is_shown() {
        let mut client = client();
        let command = client.start_json("open_session", BUY, CallOptions::default());
        drain(&mut client, 202, DONE);
        let later = Now { unix: NOW.unix + 5000, monotonic: 5000 };
        drain_at(&mut client, later, 200, r#"{"success":true,"data":{"session_id":"s-1","status":"expired"}}"#);
        assert!(client.abandon(command));
        assert_eq!(drain(&mut client, 500, ""), 0);
        let shown = client.saved();
        assert_eq!((shown.len(), shown[0].session_id.as_deref(), shown[0].holds), (1, Some("s-1"), Holds::Accepted));
    }

    #[test]
    fn an_intent_is_held_for_as_long_as_a_record_is_kept_under_it() {
        let mut client = client();
        assert!(!client.holds_intent("job"));
        let command = client.start_json("create_session", BUY, CallOptions::intent("job"));
        drain(&mut client, 202, DONE);
        assert!(client.holds_intent("job"));
        client.take_answer(command);
        assert!(client.holds_intent("job"), "it is remembered");
        let record = client.saved()[0].record.clone();
        assert!(client.forget(&record) && !client.holds_intent("job"));
    }
}
