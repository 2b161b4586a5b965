//! A client of the reseller API in a world that the bytes make up.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{CallOptions, Client, CommandId, FailureKind, Holds, Now, Outcome, Record, RecordId, Sent, Settlement, Step, StepId};
use hopline::contract::Method;
use hopline::wire::Request;
use hopline::{Effect, Kind};

use crate::reseller::{BASE, fresh};
use crate::{NOW, Tape, tells};

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
    /// How often each write was done, by the name that its body has.
    done: BTreeMap<String, u32>,
    /// The tokens that are good begin with this number.
    generation: u32,
    /// The service refused the login of this client.
    refused: bool,
}

/// Whatever happens: no write is done twice, nothing that was done is called "not done", no secret is saved or told, there is one
/// login at a time and none after a refusal, and every command ends.
pub fn orders(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let mut world = World {
        client: fresh(10, None),
        now: NOW,
        entropy: 10,
        store: BTreeMap::new(),
        out: Vec::new(),
        open: BTreeSet::new(),
        ended: Vec::new(),
        done: BTreeMap::new(),
        generation: 0,
        refused: false,
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
                let name = format!("order-{}", tape.number(3));
                let params = format!(
                    r#"{{"poolId":"{name}","userId":7,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}}"#
                );
                self.open.insert(client.start_json("place_order", &params, CallOptions::intent(name)));
            }
            2 => {
                let name = format!("money-{}", tape.number(3));
                let params = format!(r#"{{"user_id":7,"amount":1,"remark":"{name}"}}"#);
                self.open.insert(client.start_json("adjust_sub_user_balance", &params, CallOptions::intent(name)));
            }
            3 => {
                let (operation, params) =
                    [("get_current_balance", "{}"), ("wait_order", r#"{"order_no":"n-order-0"}"#)][tape.number(2) as usize];
                self.open.insert(client.start_json(operation, params, CallOptions::default()));
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
                let doubt = client.saved().into_iter().find(|saved| saved.holds == Holds::InDoubtForGood);
                if let Some(one) = doubt {
                    let params = serde_json::json!({ "record": one.record.to_string() }).to_string();
                    match tape.number(2) {
                        0 => _ = self.open.insert(client.start_json("reconcile", &params, CallOptions::default())),
                        _ => _ = client.settle(&one.record, Settlement::Happened),
                    }
                }
            }
            8 => self.generation += 1,
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
        (self.client, self.open, self.ended, self.refused) = (fresh(self.entropy, None), BTreeSet::new(), Vec::new(), false);
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
        let fate = tape.number(9);
        let done = (fate < 5).then(|| self.serve_well(request, tape.number(4)));
        let page = if tape.number(2) == 0 { 502 } else { 401 };
        let answer = |status, body| Outcome::Response { status, headers: &[], body, truncated: false };
        match (fate, &done) {
            (0 | 1, Some((status, body))) => self.resolve(id, answer(*status, body.as_bytes())),
            (2, _) => self.resolve(id, answer(page, b"<html>")),
            (3 | 5, _) => self.resolve(id, Outcome::Failed { kind: FailureKind::Closed, sent: Sent::Maybe }),
            // It was done, and the service fails all the same. It repeats what it was asked with, however old that is by now.
            (4, _) => {
                let token = request.header("authorization").unwrap_or_default();
                self.resolve(id, answer(500, format!(r#"{{"code":500,"message":"{token}"}}"#).as_bytes()));
            }
            (6, _) => self.resolve(id, Outcome::Failed { kind: FailureKind::Connect, sent: Sent::Never }),
            _ => {
                let status = [400, 401, 403, 429, 503, 409][tape.number(6) as usize];
                self.refused |= is_login(request) && matches!(status, 400..=428);
                let body = format!(r#"{{"code":{status},"message":"canary-password"}}"#);
                self.resolve(id, answer(status, body.as_bytes()));
            }
        }
    }

    /// What the service does when all is well.
    fn serve_well(&mut self, request: &Request, status: u32) -> (u16, String) {
        let body: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
        if is_login(request) {
            return (200, format!(r#"{{"code":0,"data":{{"token":"canary-token-{}"}}}}"#, self.generation));
        }
        if request.header("authorization") != Some(&format!("Bearer canary-token-{}", self.generation)) {
            return (401, r#"{"code":401,"msg":"expired"}"#.to_owned());
        }
        let name = body["remark"].as_str().or(body["poolId"].as_str());
        if let Some(name) = name {
            let times = self.done.entry(name.to_owned()).or_default();
            *times += 1;
            assert_eq!(*times, 1, "{name} was done again");
            return (200, format!(r#"{{"code":0,"data":{{"orderNo":"n-{name}","status":"processing"}}}}"#));
        }
        let order = request.url.split("search=").nth(1).unwrap_or_default().split('&').next().unwrap_or_default();
        let status = ["active", "processing", "failed", "odd"][status as usize];
        (200, format!(r#"{{"code":"0","data":{{"list":[{{"order_no":"{order}","status":"{status}","password":"canary-password"}}]}}}}"#))
    }

    fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) {
        self.client.resolve(id, outcome, self.now).expect("the step waits for an answer");
    }

    fn drain(&mut self) {
        loop {
            match crate::next(&mut self.client, self.now) {
                Step::Save { id, record, data } => self.out.push(Out::Save(id, record, data)),
                Step::Send { id, request, .. } => {
                    assert!(request.url.starts_with(BASE));
                    if is_login(&request) {
                        let other = self.out.iter().any(|out| matches!(out, Out::Send(_, other) if is_login(other)));
                        assert!(!other, "two logins are under way");
                        assert!(!self.refused, "a login was sent again after it was refused");
                    }
                    assert!(request.method == Method::Get || is_login(&request) || !self.store.is_empty(), "nothing was saved before");
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
            let done = error.intent.as_ref().is_some_and(|name| self.done.contains_key(name));
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

fn is_login(request: &Request) -> bool {
    request.url.ends_with("/auth/login")
}
