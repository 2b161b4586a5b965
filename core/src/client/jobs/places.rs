//! The places of the sends that may be out at once, and who waits for one: so no request waits in the queue of an HTTP client, where its
//! time runs and nobody knows whether it was sent.

use crate::collections::Map;
use crate::engine::Place;
use crate::state::JobId;
use crate::time::Millis;

/// The order of waiting jobs: those that may have been sent before, then those that have waited for longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct QueueTurn {
    pub(crate) is_new: bool,
    /// Since when it waits, monotonic.
    pub(crate) since: Millis,
    pub(crate) id: JobId,
}

/// The places of a client.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(crate) struct Places {
    most: u32,
    reads: PlaceQueue,
    writes: PlaceQueue,
}

/// Those who read, or those who write.
#[derive(Debug, Default)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
struct PlaceQueue {
    out: u32,
    queue: Map<QueueTurn, ()>,
}

impl Places {
    pub(crate) fn new(most: u32) -> Self {
        Places { most, reads: PlaceQueue::default(), writes: PlaceQueue::default() }
    }

    /// The most places of writes: seven of eight, which leaves one to reads: a write keeps its place while the store is called, and a store
    /// that hangs stops no read. Reads may have all places, since their time runs out.
    fn most_writes(&self) -> u32 {
        let share = u64::from(self.most) * 7 / 8;
        u32::try_from(share).unwrap_or(self.most).max(1)
    }

    /// Adds a job that waits for a place.
    pub(crate) fn wait(&mut self, place: Place, turn: QueueTurn) {
        self.kind(place).queue.insert(turn, ());
    }

    /// Removes a job that waits for a place.
    pub(crate) fn leave(&mut self, place: Place, turn: &QueueTurn) {
        self.kind(place).queue.remove(turn);
    }

    /// A place is free again.
    pub(crate) fn free(&mut self, place: Place) {
        let kind = self.kind(place);
        kind.out = kind.out.saturating_sub(1);
    }

    fn kind(&mut self, place: Place) -> &mut PlaceQueue {
        match place {
            Place::Read => &mut self.reads,
            Place::Write => &mut self.writes,
        }
    }

    /// Returns true if so many are out that a further one has to wait.
    fn is_full(&self, place: Place) -> bool {
        let all = self.reads.out.saturating_add(self.writes.out) >= self.most;
        all || (place == Place::Write && self.writes.out >= self.most_writes())
    }

    /// The next job, if a place is free for it.
    fn first(&self) -> Option<(Place, QueueTurn)> {
        let first = |place: Place, kind: &PlaceQueue| Some((place, *kind.queue.first()?.0)).filter(|_| !self.is_full(place));
        let (write, read) = (first(Place::Write, &self.writes), first(Place::Read, &self.reads));
        write.into_iter().chain(read).min_by_key(|(_, turn)| *turn)
    }

    /// Takes a place at once, if one is free that nobody waits for.
    pub(crate) fn take(&mut self, place: Place) -> bool {
        let takes = !self.is_full(place) && self.first().is_none();
        self.kind(place).out += u32::from(takes);
        takes
    }

    /// Gives a place that is free to whose turn it is.
    pub(crate) fn give(&mut self) -> Option<(Place, QueueTurn)> {
        let (place, turn) = self.first()?;
        self.leave(place, &turn);
        self.kind(place).out += 1;
        Some((place, turn))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::client::testing::BUY;
    use crate::client::{CallOptions, Client, ClientOptions, CommandId, Now, Outcome, Step, StoreAnswer, StoreCall};
    use crate::contract::{Api, Secret};
    use crate::policy::{Effect, Error, FailureKind, Kind, Sent};
    use crate::state::{Memory, StepId};
    use crate::wire::Request;

    /// A host that answers nothing by itself.
    struct Host {
        client: Client,
        now: Now,
        /// The steps that are out, in the order in which they came.
        sends: VecDeque<(StepId, Request)>,
        calls: VecDeque<(StepId, StoreCall)>,
        disk: Memory,
        until: Option<Millis>,
        most: usize,
    }

    const BOUGHT: &str = r#"{"success":true,"data":{"session_id":"s-1","status":"active","estimated_charge_usd":1}}"#;
    const DONE: &str = r#"{"success":true,"data":{}}"#;

    fn host(options: ClientOptions) -> Host {
        let client = Client::new(ClientOptions { store: true, ..options }, [1; 16]).expect("the options are sound");
        let now = Now { unix: 1_750_000_000_000, monotonic: 0 };
        Host { client, now, sends: VecDeque::new(), calls: VecDeque::new(), disk: Memory::default(), until: None, most: 0 }
    }

    fn agent(max_in_flight: u32) -> Host {
        host(ClientOptions { base_url: "https://api.example/v1".into(), max_in_flight, ..ClientOptions::default() })
    }

    impl Host {
        fn start(&mut self, operation: &str, params: &str) -> CommandId {
            self.start_with(operation, params, CallOptions::default())
        }

        fn start_with(&mut self, operation: &str, params: &str, options: CallOptions) -> CommandId {
            self.client.start_json(operation, params, options)
        }

        /// Takes what the client asks for; the store answers, or hangs.
        fn poll(&mut self, store_works: bool) {
            loop {
                match self.client.poll(self.now) {
                    Step::Send { id, request, .. } => self.sends.push_back((id, request)),
                    Step::Store { id, call, .. } if store_works => {
                        let answer = self.disk.call(call, self.now.unix, self.now.monotonic);
                        self.client.resolve(id, Outcome::Store(answer), self.now).expect("is answered once");
                    }
                    Step::Store { id, call, .. } => self.calls.push_back((id, call)),
                    Step::Wait { until } => {
                        self.until = until;
                        break;
                    }
                    Step::Notify(_) | Step::Completed { .. } => {}
                }
            }
            self.most = self.most.max(self.sends.len());
        }

        /// Answers what has been out for longest.
        fn answer(&mut self, status: u16, body: &str) -> Request {
            let (id, request) = self.sends.pop_front().expect("something is out");
            let outcome = Outcome::Response { status, headers: &[], body: body.as_bytes(), truncated: false };
            self.client.resolve(id, outcome, self.now).expect("is answered once");
            self.poll(true);
            request
        }

        fn lose(&mut self) {
            let (id, _) = self.sends.pop_front().expect("something is out");
            let outcome = Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe };
            self.client.resolve(id, outcome, self.now).expect("is answered once");
            self.poll(true);
        }

        fn pass(&mut self, ms: Millis) {
            self.now = Now { unix: self.now.unix + ms, monotonic: self.now.monotonic + ms };
            self.poll(true);
        }

        fn out(&self) -> Vec<String> {
            let target =
                |request: &Request| request.url.rsplit_once("/v1").or(request.url.rsplit_once("/api")).map(|(_, path)| path.to_owned());
            self.sends.iter().map(|(_, request)| format!("{} {}", request.method.as_str(), target(request).unwrap_or_default())).collect()
        }

        fn error(&mut self, command: CommandId) -> Error {
            self.client.take_answer(command).expect("has completed").expect_err("has failed")
        }
    }

    #[test]
    fn a_thousand_purchases_at_once_are_all_made_however_slowly_they_are_answered_and_a_termination_passes_them() {
        let mut host = agent(64);
        let commands: Vec<CommandId> = (0..1000).map(|_| host.start("create_session", BUY)).collect();
        host.poll(true);
        assert_eq!(host.sends.len(), 56);
        let end = host.start("terminate_session", r#"{"session_id":"s-9"}"#);
        let reads: Vec<CommandId> = (0..20).map(|_| host.start("get_balance", "{}")).collect();
        host.poll(true);
        assert_eq!((host.sends.len(), host.out()[56].as_str()), (65, "DELETE /sessions/s-9"));
        // Almost the time that an attempt may take.
        while !host.sends.is_empty() {
            host.pass(15_000);
            for _ in 0..host.sends.len() {
                let (_, request) = host.sends.front().expect("is out");
                let timely = request.send_before >= host.now.monotonic - 15_000;
                assert!(timely, "it was sent as soon as it was given out");
                let body = if request.method.as_str() == "POST" { BOUGHT } else { DONE };
                host.answer(200, body);
            }
        }
        assert!(host.most <= 65, "{} were out", host.most);
        for command in commands.into_iter().chain([end]).chain(reads) {
            host.client.take_answer(command).expect("has completed").expect("was done");
        }
    }

    #[test]
    fn a_store_that_hangs_stops_writes_and_no_read_and_a_termination_asks_it() {
        let mut host = agent(8);
        (0..20).for_each(|_| _ = host.start("create_session", BUY));
        host.poll(false);
        assert_eq!((host.calls.len(), host.sends.len()), (7, 0));
        let read = host.start("get_balance", "{}");
        host.start("terminate_session", r#"{"session_id":"s-9"}"#);
        host.poll(false);
        assert_eq!((host.calls.len(), host.out()), (8, vec!["GET /billing/balance".to_owned()]));
        host.answer(200, DONE);
        host.client.take_answer(read).expect("has completed").expect("was read");
    }

    #[test]
    fn what_waits_for_a_place_is_cancelled_without_effect_and_gives_its_turn_away() {
        let mut host = agent(2);
        let commands = [(); 3].map(|()| host.start("create_session", BUY));
        host.poll(true);
        assert_eq!(host.sends.len(), 1);
        assert_eq!(host.client.cancel(commands[1], host.now), None);
        host.poll(true);
        let error = host.error(commands[1]);
        assert_eq!((error.kind, error.effect, error.attempts), (Kind::Cancelled, Effect::None, 0), "{error}");
        host.answer(202, BOUGHT);
        assert_eq!(host.sends.len(), 1);
        host.answer(202, BOUGHT);
        host.client.take_answer(commands[2]).expect("has completed").expect("was bought");
    }

    #[test]
    fn every_way_out_frees_the_place() {
        let cancelled = Outcome::Failed { kind: FailureKind::Aborted, sent: Sent::Maybe };
        let refused = Outcome::Response {
            status: 402,
            headers: &[],
            body: br#"{"success":false,"error":{"code":"INSUFFICIENT_BALANCE","message":"no"}}"#,
            truncated: false,
        };
        let conflict = Outcome::Response {
            status: 409,
            headers: &[],
            body: br#"{"success":false,"error":{"code":"IDEMPOTENCY_CONFLICT","message":"no"}}"#,
            truncated: false,
        };
        let page = Outcome::Response { status: 502, headers: &[], body: b"<html>", truncated: false };
        for (outcome, cancels) in [(cancelled, true), (refused, false), (conflict, false), (page, false)] {
            let mut host = agent(1);
            let first = host.start("create_session", BUY);
            let second = host.start("create_session", BUY);
            host.poll(true);
            assert_eq!(host.sends.len(), 1);
            if cancels {
                assert!(host.client.cancel(first, host.now).is_some());
            }
            let (id, _) = host.sends.pop_front().expect("is out");
            host.client.resolve(id, outcome, host.now).expect("is out");
            host.poll(true);
            assert_eq!(host.sends.len(), 1, "the second one has its turn");
            host.answer(202, BOUGHT);
            host.client.take_answer(second).expect("has completed").expect("was bought");
        }
    }

    #[test]
    fn a_name_that_is_lost_in_the_queue_is_said_at_once() {
        let mut host = agent(1);
        let named = host.start_with("create_session", BUY, CallOptions::intent("job"));
        host.poll(true);
        assert_eq!(host.sends.len(), 1);
        let other = host.start_with("create_session", BUY, CallOptions::intent("other"));
        host.poll(true);
        host.client.lost(None, host.now);
        host.poll(true);
        assert_eq!(host.error(other).kind, Kind::Busy);
        host.answer(202, BOUGHT);
        let error = host.error(named);
        assert_eq!((error.kind, error.effect), (Kind::Busy, Effect::Done), "{error}");
    }

    #[test]
    fn what_may_have_been_sent_comes_before_what_was_never_sent() {
        let mut host = agent(1);
        host.start("create_session", BUY);
        let (balance, account) = (host.start("get_balance", "{}"), host.start("get_account", "{}"));
        host.poll(true);
        host.lose();
        // The repeat comes while the balance is read.
        host.pass(10_000);
        assert_eq!(host.out(), ["GET /billing/balance"]);
        host.answer(200, DONE);
        assert_eq!(host.out(), ["POST /sessions"]);
        host.answer(202, BOUGHT);
        assert_eq!(host.sends.len(), 1);
        host.answer(200, DONE);
        for command in [balance, account] {
            host.client.take_answer(command).expect("has completed").expect("was read");
        }
    }

    #[test]
    fn the_time_in_the_queue_counts_for_nothing() {
        let mut host = agent(1);
        let options = CallOptions { deadline_ms: Some(5000), credentials: Some(false), ..CallOptions::default() };
        let first = host.start("get_balance", "{}");
        let wait = host.start_with("wait_session", r#"{"session_id":"s-1"}"#, options);
        let repeated = host.start("get_account", "{}");
        host.poll(true);
        host.pass(100_000);
        host.answer(200, DONE);
        host.client.take_answer(first).expect("has completed").expect("was read");
        assert_eq!(host.out(), ["GET /sessions/s-1"]);
        host.answer(200, r#"{"success":true,"data":{"session_id":"s-1","status":"creating"}}"#);
        assert!(host.client.is_pending(wait), "its deadline has not come");
        // The next one fails, and its repeat waits for longer than its window.
        host.lose();
        let slow = host.start("get_balance", "{}");
        host.poll(true);
        host.pass(1200);
        while host.out()[0] != "GET /billing/balance" {
            host.answer(200, r#"{"success":true,"data":{"session_id":"s-1","status":"active"}}"#);
        }
        host.pass(300_000);
        host.answer(200, DONE);
        host.client.take_answer(slow).expect("has completed").expect("was read");
        while !host.sends.is_empty() {
            host.answer(200, DONE);
        }
        host.client.take_answer(repeated).expect("has completed").expect("its window had not run out");
    }

    #[test]
    fn a_login_needs_no_place_and_who_waits_for_it_has_none() {
        let mut host = host(ClientOptions {
            api: Api::Reseller,
            base_url: "https://api.example/api".into(),
            username: Some(Secret::new("reseller")),
            password: Some(Secret::new("word")),
            max_in_flight: 1,
            ..ClientOptions::default()
        });
        let commands = [(); 5].map(|()| host.start("get_dashboard", "{}"));
        host.poll(true);
        assert_eq!(host.out(), ["POST /auth/login"]);
        host.answer(200, r#"{"code":0,"message":"ok","data":{"token":"t"}}"#);
        for command in commands {
            assert_eq!(host.sends.len(), 1);
            host.answer(200, r#"{"code":0,"message":"ok","data":{}}"#);
            host.client.take_answer(command).expect("has completed").expect("was read");
        }
    }

    #[test]
    fn each_kind_has_a_place_of_its_own_where_there_are_two() {
        for (most, writes) in [(1, 1), (2, 1), (3, 2), (6, 5), (8, 7), (64, 56), (u32::MAX, u32::MAX / 8 * 7 + 6)] {
            assert_eq!(Places::new(most).most_writes(), writes, "of {most}");
        }
        assert!(Client::new(ClientOptions { max_in_flight: 0, ..ClientOptions::default() }, [0; 16]).is_err());
    }

    #[test]
    fn a_store_answer_that_never_was_is_no_place() {
        let mut host = agent(1);
        let first = host.start("create_session", BUY);
        host.poll(false);
        let (id, _) = host.calls.pop_front().expect("is asked");
        host.client.resolve(id, Outcome::Store(StoreAnswer::Failed), host.now).expect("is answered once");
        host.start("get_balance", "{}");
        host.poll(true);
        assert_eq!((host.error(first).kind, host.out()), (Kind::Store, vec!["GET /billing/balance".to_owned()]));
    }
}
