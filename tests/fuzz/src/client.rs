//! A client in a world that the bytes make up: commands, answers in any order, lost saves, crashes.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{CallOptions, Client, CommandId, FailureKind, Holds, Now, Outcome, Record, RecordId, Sent, Settlement, Step, StepId};
use hopline::wire::Request;
use hopline::{Effect, Kind};

use crate::{BASE, NOW, Tape, fresh, tells};

/// Codes that a purchase may be refused with.
const CODES: [(&str, u16); 10] = [
    ("AUTH_INVALID_KEY", 401),
    ("INVALID_REQUEST", 400),
    ("PRODUCT_OUT_OF_STOCK", 409),
    ("SESSION_NOT_FOUND", 404),
    ("SESSION_EXPIRED", 410),
    ("INSUFFICIENT_BALANCE", 402),
    ("BACKEND_ERROR", 502),
    ("INTERNAL_ERROR", 500),
    ("WHATEVER", 422),
    ("ELSE", 503),
];

enum Out {
    Save(StepId, RecordId, Option<Vec<u8>>),
    Send(StepId, Request),
}

/// Everything but the client.
struct World {
    client: Client,
    now: Now,
    entropy: u8,
    store: BTreeMap<RecordId, Vec<u8>>,
    out: Vec<Out>,
    open: BTreeSet<CommandId>,
    ended: Vec<CommandId>,
    /// What each key was sent with.
    bytes: BTreeMap<String, String>,
    /// The session that the service made for a key.
    made: BTreeMap<String, usize>,
}

/// Whatever happens: a key is never sent with other bytes, nothing that was done is called "not done", no secret is saved or told,
/// saves of one record never overlap, and every command ends.
pub fn client(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let mut world = World {
        client: fresh(10),
        now: NOW,
        entropy: 10,
        store: BTreeMap::new(),
        out: Vec::new(),
        open: BTreeSet::new(),
        ended: Vec::new(),
        bytes: BTreeMap::new(),
        made: BTreeMap::new(),
    };
    for _ in 0..400 {
        if tape.is_over() {
            break;
        }
        world.act(&mut tape);
        world.answer(&mut tape);
        world.drain();
        world.take();
        if tape.number(2) == 0 {
            world.wait();
        }
    }
    world.calm();
}

impl World {
    fn act(&mut self, tape: &mut Tape<'_>) {
        let client = &mut self.client;
        match tape.number(12) {
            0 | 1 => {
                let intent = CallOptions::intent(format!("job-{}", tape.number(3)));
                let params = r#"{"session_type":"dynamic","product_no":"p"}"#;
                let options = CallOptions { credentials: tape.number(3) == 0, ..intent };
                self.open.insert(client.start_json("open_session", params, options));
            }
            2 => {
                let operation = ["rotate_session", "terminate_session", "wait_session", "get_session_health"][tape.number(4) as usize];
                let params = format!(r#"{{"session_id":"s{}"}}"#, tape.number(3));
                self.open.insert(client.start_json(operation, &params, CallOptions::default()));
            }
            3 => {
                let options = CallOptions::intent(format!("pay-{}", tape.number(2)));
                self.open.insert(client.start_json("create_recharge", r#"{"amount":10}"#, options));
            }
            4 => {
                let chosen = self.open.iter().nth(tape.number(8) as usize).copied();
                if let Some(command) = chosen {
                    client.cancel(command, self.now);
                }
            }
            5 => self.crash(tape),
            6 => {
                let saved = client.saved();
                for one in saved.iter().filter(|_| tape.number(2) == 0) {
                    self.open.insert(client.resume(&one.record));
                }
            }
            7 => {
                let given_up = client.saved().into_iter().find(|saved| saved.holds == Holds::InDoubtForGood);
                if let Some(one) = given_up {
                    client.settle(&one.record, Settlement::Happened);
                }
            }
            8 => self.now.unix += i64::from(tape.number(60_000)) * 100 - 3_000_000,
            9 => self.pass([100, 5_000, 70_000, 3_600_000, 80_000_000][tape.number(5) as usize]),
            _ => {}
        }
    }

    fn crash(&mut self, tape: &mut Tape<'_>) {
        for out in std::mem::take(&mut self.out) {
            if let (Out::Save(_, record, data), 0) = (out, tape.number(2)) {
                self.keep(record, data);
            }
        }
        self.entropy += 1;
        (self.client, self.open, self.ended) = (fresh(self.entropy), BTreeSet::new(), Vec::new());
        let records = self.store.iter().map(|(id, data)| Record { id: id.clone(), data: data.clone() });
        let restored = self.client.restore(records);
        assert!(restored.refused.is_empty(), "a record of our own was refused: {:?}", restored.refused);
    }

    fn keep(&mut self, record: RecordId, data: Option<Vec<u8>>) {
        match data {
            Some(data) => {
                assert!(!tells(&String::from_utf8_lossy(&data)), "a record holds a secret");
                self.store.insert(record, data);
            }
            None => _ = self.store.remove(&record),
        }
    }

    fn answer(&mut self, tape: &mut Tape<'_>) {
        if self.out.is_empty() {
            return;
        }
        let chosen = tape.number(self.out.len() as u32) as usize;
        match self.out.swap_remove(chosen) {
            Out::Save(id, record, data) => {
                let fate = tape.number(8);
                if fate != 1 {
                    self.keep(record, data);
                }
                let failed = Outcome::Failed { kind: FailureKind::Store, sent: Sent::Never };
                self.resolve(id, if fate < 6 && fate != 1 { Outcome::Saved } else { failed });
            }
            Out::Send(id, request) => self.serve(id, &request, tape),
        }
    }

    fn serve(&mut self, id: StepId, request: &Request, tape: &mut Tape<'_>) {
        let fate = tape.number(8);
        let done = (fate < 4).then(|| self.serve_well(request, tape.number(4)));
        match (fate, &done) {
            (0 | 1, Some((status, body))) => {
                self.resolve(id, Outcome::Response { status: *status, headers: &[], body: body.as_bytes(), truncated: false });
            }
            (2, _) => self.resolve(
                id,
                Outcome::Response { status: 502, headers: &[("content-type", "text/html")], body: b"<html>", truncated: false },
            ),
            (3 | 4, _) => self.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }),
            (5, _) => self.resolve(id, Outcome::Failed { kind: FailureKind::Connect, sent: Sent::Never }),
            _ => {
                // A service that did it answers a key with what it stored, so only what stands before that is left.
                let known = request.header("idempotency-key").is_some_and(|key| self.made.contains_key(key));
                let (code, status) = if known { CODES[0] } else { CODES[tape.number(10) as usize] };
                let body = format!(r#"{{"success":false,"data":null,"error":{{"code":"{code}","message":"canary-key"}}}}"#);
                self.resolve(id, Outcome::Response { status, headers: &[], body: body.as_bytes(), truncated: false });
            }
        }
    }

    /// What the service does when all is well.
    fn serve_well(&mut self, request: &Request, status: u32) -> (u16, String) {
        let key = request.header("idempotency-key").map(str::to_owned);
        let count = self.made.len();
        let made = key.map(|key| *self.made.entry(key).or_insert(count));
        let path = request.url.strip_prefix(BASE).unwrap_or_default();
        let data = match path.split(['/', '?']).collect::<Vec<_>>().as_slice() {
            ["", "sessions"] => format!(r#"{{"session_id":"n{}","session_type":"dynamic","status":"creating"}}"#, made.unwrap_or(0)),
            ["", "sessions", id, ..] => {
                let status = ["active", "creating", "expired", "odd"][status as usize];
                format!(r#"{{"session_id":"{id}","session_type":"dynamic","status":"{status}","proxy":{{"password":"canary-password"}}}}"#)
            }
            _ => r#"{"order_id":"o-1"}"#.to_owned(),
        };
        let time = "2025-06-15T15:06:41Z";
        (
            if made.is_some() { 202 } else { 200 },
            format!(r#"{{"success":true,"data":{data},"meta":{{"request_id":"q","timestamp":"{time}"}}}}"#),
        )
    }

    fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) {
        self.client.resolve(id, outcome, self.now).expect("the step waits for an answer");
    }

    fn drain(&mut self) {
        loop {
            match crate::next(&mut self.client, self.now) {
                Step::Save { id, record, data } => {
                    let overlaps = self.out.iter().any(|out| matches!(out, Out::Save(_, other, _) if *other == record));
                    assert!(!overlaps, "two saves of one record are out");
                    self.out.push(Out::Save(id, record, data));
                }
                Step::Send { id, request, .. } => {
                    let whole = format!("{} {} {:?}", request.method.as_str(), request.url, request.body);
                    if let Some(key) = request.header("idempotency-key") {
                        let first = self.bytes.entry(key.to_owned()).or_insert_with(|| whole.clone());
                        assert_eq!(*first, whole, "a key was sent with other bytes");
                    }
                    self.out.push(Out::Send(id, request));
                }
                Step::Completed { command } => {
                    assert!(self.open.remove(&command), "a command ended twice, or was never started");
                    self.ended.push(command);
                }
                Step::Wait { .. } | Step::Notify(_) => return,
            }
        }
    }

    fn take(&mut self) {
        for command in std::mem::take(&mut self.ended) {
            let Some(Err(error)) = self.client.take_answer(command) else { continue };
            let told = hopline::client::error_text(&error);
            assert!(!tells(&told), "an error tells a secret: {told}");
            let refused_here = matches!(error.kind, Kind::Invalid | Kind::Busy | Kind::Misuse);
            let done = error.idempotency_key.as_ref().is_some_and(|key| self.made.contains_key(key));
            assert!(!(error.effect == Effect::None && done && !refused_here), "what was done is called not done: {told}");
        }
    }

    fn pass(&mut self, ms: i64) {
        (self.now.unix, self.now.monotonic) = (self.now.unix + ms, self.now.monotonic + ms);
    }

    fn wait(&mut self) {
        if let Step::Wait { until: Some(until) } = crate::next(&mut self.client, self.now) {
            self.pass((until - self.now.monotonic).max(0));
            self.drain();
        }
    }

    /// All is well from here on: every command must end.
    fn calm(&mut self) {
        for _ in 0..3000 {
            self.drain();
            self.take();
            for out in std::mem::take(&mut self.out) {
                match out {
                    Out::Save(id, record, data) => {
                        self.keep(record, data);
                        self.resolve(id, Outcome::Saved);
                    }
                    Out::Send(id, request) => {
                        let (status, body) = self.serve_well(&request, 0);
                        self.resolve(id, Outcome::Response { status, headers: &[], body: body.as_bytes(), truncated: false });
                    }
                }
            }
            self.drain();
            if self.open.is_empty() && self.out.is_empty() {
                return;
            }
            if self.out.is_empty() {
                self.wait();
            }
        }
        panic!("{} commands never ended", self.open.len());
    }
}
