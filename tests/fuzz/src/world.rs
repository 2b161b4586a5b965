//! A client in a world that the bytes make up: commands, answers in any order, lost saves, crashes. What is asked of it and how it
//! is served is for each API to say.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{CallOptions, Client, CommandId, FailureKind, Now, Outcome, Record, RecordId, Sent, Step, StepId};
use hopline::policy::Error;
use hopline::wire::Request;
use hopline::{Effect, Kind};

use crate::{NOW, Tape, tells};

/// The other side of a client, and what a caller wants of it.
pub(crate) trait Service: Default {
    /// A client of it.
    fn client(entropy: u8) -> Client;
    /// What a caller does, by a number below 12; 4, 5, 6 and 9 are the world's own.
    fn act(world: &mut World<Self>, choice: u32, tape: &mut Tape<'_>);
    /// Answers a request, well or not.
    fn serve(world: &mut World<Self>, id: StepId, request: &Request, tape: &mut Tape<'_>);
    /// What it answers when all is well.
    fn serve_well(&mut self, request: &Request, choice: u32) -> (u16, String);
    /// Looks at a request that goes out beside those that are out.
    fn sees(world: &mut World<Self>, request: &Request);
    /// Whether it did what an error is about.
    fn has_done(&self, error: &Error) -> bool;
    /// Hears of an error that a caller was told.
    fn learns(&mut self, _error: &Error) {}
    /// The client is gone, and another one takes its place.
    fn forgets(&mut self) {}
}

pub(crate) enum Out {
    Save(StepId, RecordId, Option<Vec<u8>>),
    Send(StepId, Request),
}

/// A client and everything around it.
pub(crate) struct World<S> {
    pub(crate) client: Client,
    pub(crate) service: S,
    pub(crate) now: Now,
    pub(crate) open: BTreeSet<CommandId>,
    pub(crate) out: Vec<Out>,
    pub(crate) store: BTreeMap<RecordId, Vec<u8>>,
    entropy: u8,
    ended: Vec<CommandId>,
}

/// Whatever happens: nothing that was done is called "not done", no secret is saved or told, saves of one record never overlap, and
/// every command ends. The service looks for what else must never be.
pub(crate) fn run<S: Service>(bytes: &[u8]) {
    let mut tape = Tape::new(bytes);
    let mut world = World {
        client: S::client(10),
        service: S::default(),
        now: NOW,
        open: BTreeSet::new(),
        out: Vec::new(),
        store: BTreeMap::new(),
        entropy: 10,
        ended: Vec::new(),
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

impl<S: Service> World<S> {
    fn act(&mut self, tape: &mut Tape<'_>) {
        match tape.number(12) {
            4 => {
                let chosen = self.open.iter().nth(tape.number(8) as usize).copied();
                if let Some(command) = chosen {
                    self.client.cancel(command, self.now);
                }
            }
            5 => self.crash(tape),
            6 => {
                let saved = self.client.saved();
                for one in saved.iter().filter(|_| tape.number(2) == 0) {
                    self.open.insert(self.client.resume(&one.record, CallOptions::default()));
                }
            }
            9 => self.pass([100, 5_000, 70_000, 3_600_000, 80_000_000][tape.number(5) as usize]),
            choice => S::act(self, choice, tape),
        }
    }

    fn crash(&mut self, tape: &mut Tape<'_>) {
        for out in std::mem::take(&mut self.out) {
            if let (Out::Save(_, record, data), 0) = (out, tape.number(2)) {
                self.keep(record, data);
            }
        }
        self.entropy += 1;
        (self.client, self.open, self.ended) = (S::client(self.entropy), BTreeSet::new(), Vec::new());
        self.service.forgets();
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
            Out::Send(id, request) => S::serve(self, id, &request, tape),
        }
    }

    pub(crate) fn resolve(&mut self, id: StepId, outcome: Outcome<'_>) {
        self.client.resolve(id, outcome, self.now).expect("the step waits for an answer");
    }

    /// Resolves a request with a body.
    pub(crate) fn reply(&mut self, id: StepId, status: u16, body: &str) {
        self.resolve(id, Outcome::Response { status, headers: &[], body: body.as_bytes(), truncated: false });
    }

    /// Resolves a request as lost.
    pub(crate) fn lose(&mut self, id: StepId, kind: FailureKind, sent: Sent) {
        self.resolve(id, Outcome::Failed { kind, sent });
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
                    S::sees(self, &request);
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
            let denied = error.effect == Effect::None && self.service.has_done(&error) && !refused_here;
            assert!(!denied, "what was done is called not done: {told}");
            self.service.learns(&error);
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
                        let (status, body) = self.service.serve_well(&request, 0);
                        self.reply(id, status, &body);
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
