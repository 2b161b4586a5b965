//! A client with its turns: each call moves both, and leaves the next turn behind.

use std::collections::BTreeMap;

use crate::client::{Event, FailureKind, Millis, Name, Now, Outcome, Sent, Step, StoreAnswer, Taken};
use crate::policy::Error;
use crate::pool::PoolClient;
use crate::state::{CommandId, StepId};
use crate::turns::{NextTurn, Nudge, OwnerKind, OwnerNo, Place, Turns};

/// A command, and its result.
pub type Ended = (CommandId, Result<Taken, Error>);

/// A client, and who takes which of its steps.
pub struct Driver {
    client: PoolClient,
    turns: Turns,
    /// The results of owners' commands, each with those that a resumption of all has begun behind it.
    results: BTreeMap<OwnerNo, Vec<Ended>>,
    /// The events that were not taken yet; `None` where nobody listens.
    events: Option<Vec<Event>>,
}

impl Driver {
    /// `needs_vouching` is true if the claims of the store can end.
    pub fn new(client: PoolClient, needs_vouching: bool) -> Self {
        Driver { client, turns: Turns::new(needs_vouching), results: BTreeMap::new(), events: None }
    }

    /// The client, for what needs no waiting. Where it leaves work behind, [`Driver::look`] follows.
    pub fn client(&mut self) -> &mut PoolClient {
        &mut self.client
    }

    /// The turns, for questions and for what the host alone knows.
    pub fn turns(&mut self) -> &mut Turns {
        &mut self.turns
    }

    /// Turns on events from now on.
    pub fn listen(&mut self) {
        self.events.get_or_insert_default();
    }

    /// Takes what the host is to do at once, and the events.
    pub fn take_news(&mut self) -> (Vec<Nudge>, Vec<Event>) {
        let events = self.events.as_mut().map(std::mem::take).unwrap_or_default();
        (self.turns.take_nudges(), events)
    }

    /// An owner comes and starts its command; with `None` it does the remaining work. Returns `None` if the client is closed.
    pub fn enter(
        &mut self,
        owner: OwnerNo,
        kind: OwnerKind,
        place: Place,
        start: impl FnOnce(&mut PoolClient) -> Option<CommandId>,
    ) -> Option<Option<CommandId>> {
        if self.turns.is_closed() {
            return None;
        }
        let command = start(&mut self.client);
        self.turns.enter(owner, kind, place, command);
        Some(command)
    }

    /// The owner's next work, once it has done that of its last turn or handed it on.
    pub fn turn(&mut self, owner: OwnerNo, now: Now) -> NextTurn {
        self.turns.go_on(owner);
        loop {
            self.expire(now);
            self.drain(owner, now);
            if let Some(command) = self.turns.begin_reading(owner) {
                self.read(owner, command);
            }
            if self.turns.has_given_up(owner) {
                self.abandon(owner, now);
                self.drain(owner, now);
            }
            let turn = self.turns.next(owner, now.monotonic);
            if !self.was_late(&turn, now) {
                return turn;
            }
        }
    }

    /// The next work while no caller does it: a store that failed is called again when its time has come, the answers of requests that are
    /// still out are stored, and pools go on. Other threads make its calls of the store. `runner` is the number of its thread; `Done`: that one
    /// is to end.
    pub fn tend(&mut self, runner: u64, now: Now) -> NextTurn {
        if !self.turns.go_on_in_background(runner) {
            return NextTurn::Done;
        }
        for step in self.turns.unwanted() {
            self.break_off(step, FailureKind::Aborted, now);
        }
        loop {
            self.expire(now);
            self.drain(OwnerNo::BACKGROUND, now);
            let turn = self.turns.next_of_background(now.monotonic);
            if !self.was_late(&turn, now) {
                return turn;
            }
        }
    }

    /// The results of an owner's command are surely its caller's. Returns its next work: its record may be deleted.
    pub fn heard(&mut self, owner: OwnerNo, now: Now) -> NextTurn {
        self.take(owner);
        self.turn(owner, now)
    }

    /// The results of an owner's command, once its turn was [`NextTurn::Ended`] or [`NextTurn::Done`]; they stay until it leaves.
    pub fn results(&self, owner: OwnerNo) -> &[Ended] {
        self.results.get(&owner).map(Vec::as_slice).unwrap_or_default()
    }

    /// Begins a send for which the store was to vouch first. Returns false if it is not to be made: it was broken off, it is late, or the
    /// store was not sure of its claims; then the client decides anew. `here` sends it, and does nothing else meanwhile.
    pub fn begin(&mut self, step: StepId, is_sure: bool, here: Option<OwnerNo>, now: Now) -> bool {
        let Some((command, false)) = self.turns.send_of(step) else { return false };
        if is_sure && !self.turns.is_late(step, now.monotonic) {
            self.turns.begin(step, here, now.monotonic);
            return true;
        }
        self.break_off(step, FailureKind::Late, now);
        self.turns.wake_one(Some(command));
        false
    }

    /// Takes the outcome of a send. Returns whether it had begun, and `None` if the client does not want it any more.
    pub fn answered(&mut self, step: StepId, outcome: Outcome<'_>, now: Now) -> Option<bool> {
        self.turns.send_of(step)?;
        if self.client.resolve(step, outcome, now).is_err() {
            self.fail(step, FailureKind::Other, now);
        }
        self.turns.answered(step)
    }

    /// Takes the failure of a send, as [`Driver::answered`] does: the words of [`FailureKind`] and [`Sent`], or none where it may have been sent
    /// if it had begun.
    pub fn failed(&mut self, step: StepId, kind: &str, sent: Option<&str>, now: Now) -> Result<Option<bool>, Error> {
        let refuse = |field| Error::invalid("fail", field, "is not one of the words for it");
        let kind = FailureKind::of(kind).ok_or_else(|| refuse("kind"))?;
        let sent = sent.map(|sent| Sent::of(sent).ok_or_else(|| refuse("sent"))).transpose()?;
        let Some((_, is_begun)) = self.turns.send_of(step) else { return Ok(None) };
        let sent = sent.unwrap_or(if is_begun { Sent::Maybe } else { Sent::Never });
        Ok(self.answered(step, Outcome::Failed { kind, sent }, now))
    }

    /// Takes the answer of the store. Returns false if it does not fit the call, which then counts as failed.
    pub fn stored(&mut self, step: StepId, answer: StoreAnswer, now: Now) -> bool {
        let fits = self.client.resolve(step, Outcome::Store(answer), now).is_ok() || self.turns.has_ended();
        if !fits {
            _ = self.client.resolve(step, Outcome::Store(StoreAnswer::Failed), now);
        }
        self.turns.stored(step);
        fits
    }

    /// An owner, or the background, was interrupted: it takes back what its last turn gave it. A request that may have been sent is broken off; `is_sent` is false if the
    /// owner surely did not begin to send.
    pub fn take_back(&mut self, owner: OwnerNo, is_sent: bool, now: Now) {
        if let Some(step) = self.turns.take_back(owner, is_sent) {
            self.break_off(step, FailureKind::Aborted, now);
        }
    }

    /// Cancels an owner's command: nothing more is sent for it, a request that may have been sent stays in doubt, and its record is kept. The
    /// owner works on until it is done.
    pub fn give_up(&mut self, owner: OwnerNo, now: Now) {
        let sent_here = self.turns.give_up(owner);
        if let Some(command) = self.turns.command_of(owner) {
            self.cancel(command, now);
        }
        if let Some(step) = sent_here {
            self.break_off(step, FailureKind::Aborted, now);
        }
    }

    /// An owner goes. The results that it read are surely its caller's if it `has_heard` them; otherwise its command is given up, and a write
    /// that was done, or may have been, keeps its record. Others delete or put what is left. Returns true if the client is to be finished,
    /// since it was the last one of a closed client.
    pub fn leave(&mut self, owner: OwnerNo, has_heard: bool, now: Now) -> bool {
        let untaken = self.turns.untaken(owner);
        if has_heard {
            self.take(owner);
        }
        match self.turns.untaken(owner) {
            Some((_, true)) => self.abandon(owner, now),
            Some((command, false)) => self.cancel(command, now),
            None => {}
        }
        if untaken.is_some_and(|(_, has_ended)| has_ended) {
            self.drain(owner, now);
        }
        self.results.remove(&owner);
        let is_to_finish = self.turns.leave(owner);
        if untaken.is_some() && !is_to_finish {
            self.turns.rouse();
        }
        is_to_finish
    }

    /// An owner is gone that can do nothing more: the event loop of its task is closed.
    pub fn desert(&mut self, owner: OwnerNo, now: Now) {
        self.give_up(owner, now);
        self.leave(owner, false, now);
    }

    /// Closes the client: every command is cancelled but those that end sessions, nothing else is sent any more, and every owner ends. At that
    /// time, where there is one, those are cancelled too, and no answer is waited for any more. Returns true if the client is to be finished,
    /// since nobody is in it.
    pub fn close(&mut self, ends_at: Option<Millis>, now: Now) -> bool {
        if let Some(ends_at) = ends_at {
            self.turns.end_at(ends_at);
        }
        if self.turns.is_closed() {
            return false;
        }
        for command in self.turns.commands() {
            if !self.client.ends_sessions(command) {
                self.cancel(command, now);
            }
        }
        for step in self.turns.unsure() {
            self.break_off(step, FailureKind::Aborted, now);
        }
        self.turns.close();
        self.turns.is_empty()
    }

    /// Claims of the store have ended: of these names, or of all.
    pub fn lost(&mut self, names: Option<&[Name]>, now: Now) {
        if self.turns.is_closed() {
            return;
        }
        self.client.lost(names, now);
        for step in self.turns.unsure() {
            self.break_off(step, FailureKind::Late, now);
        }
        for (step, answer) in self.turns.without_names() {
            _ = self.client.resolve(step, Outcome::Store(answer), now);
        }
        self.turns.rouse();
    }

    /// A pause begins: nothing is sent and no store is called before [`Driver::resume`]. The host waits until [`Turns::is_store_idle`], releases
    /// all names, and says [`Driver::lost`]. The answers of requests that are out are taken meanwhile.
    pub fn pause(&mut self, now: Now) {
        self.turns.pause();
        self.lost(None, now);
    }

    /// The pause is over.
    pub fn resume(&mut self) {
        self.turns.go_on_after_pause();
    }

    fn drain(&mut self, whose_turn: OwnerNo, now: Now) {
        loop {
            match self.client.poll(now) {
                Step::Wait { until } => return self.turns.set_due(until),
                Step::Store { id, .. } if self.turns.has_ended() => {
                    _ = self.client.resolve(id, Outcome::Store(StoreAnswer::Failed), now);
                }
                Step::Store { id, command, call } => self.turns.give_ask(id, command, call, whose_turn),
                Step::Send { id, request, .. } if self.turns.has_ended() || self.turns.is_closed() && !request.ends_session() => {
                    _ = self.client.resolve(id, Outcome::Failed { kind: FailureKind::Aborted, sent: Sent::Never }, now);
                }
                Step::Send { id, command, request } => self.turns.give_send(id, command, request, whose_turn),
                Step::Completed { command } => {
                    if self.turns.complete(command, whose_turn) {
                        // Its record stays, and its name is free.
                        self.client.abandon(command, now);
                    }
                }
                Step::Notify(event) => {
                    if let Some(events) = &mut self.events {
                        events.push(event);
                    }
                }
            }
        }
    }

    /// Reads the result of an owner's command, and takes it where nothing depends on who does.
    fn read(&mut self, owner: OwnerNo, command: CommandId) {
        if self.client.is_free_to_take(command) {
            let result = self.client.take_to_read(command);
            self.results.insert(owner, result.map(|result| (command, result)).into_iter().collect());
            return self.turns.taken(owner);
        }
        let resumes_all = self.client.command_operation(command) == Some("resume_all");
        let result = self.client.result_to_read(command);
        let parts: Vec<u32> = match &result {
            Some(Ok(taken)) if resumes_all => serde_json::from_str(taken.raw()).unwrap_or_default(),
            _ => Vec::new(),
        };
        let mut results: Vec<Ended> = result.map(|result| (command, result)).into_iter().collect();
        results.extend(parts.into_iter().filter_map(|part| {
            let part = CommandId(part);
            Some((part, self.client.result_to_read(part)?))
        }));
        self.results.insert(owner, results);
    }

    /// The results that an owner has read are its caller's.
    fn take(&mut self, owner: OwnerNo) {
        if !self.results.contains_key(&owner) {
            return;
        }
        for command in self.begin_settling(owner) {
            _ = self.client.take_to_read(command);
        }
    }

    /// No caller gets the results of an owner's command, so its record is to stay.
    fn abandon(&mut self, owner: OwnerNo, now: Now) {
        for command in self.begin_settling(owner) {
            self.client.abandon(command, now);
        }
    }

    /// The commands of an owner that have ended, if they are neither taken nor abandoned yet.
    fn begin_settling(&mut self, owner: OwnerNo) -> Vec<CommandId> {
        let Some((command, true)) = self.turns.untaken(owner) else { return Vec::new() };
        self.turns.taken(owner);
        let parts = self.results(owner).iter().map(|(command, _)| *command).filter(|part| *part != command);
        [command].into_iter().chain(parts).collect()
    }

    fn cancel(&mut self, command: CommandId, now: Now) {
        if let Some(step) = self.client.cancel(command, now) {
            self.break_off(step, FailureKind::Aborted, now);
        }
    }

    /// Ends the sends that took too long, and all that a closed client still does once its time is up.
    fn expire(&mut self, now: Now) {
        if self.turns.begin_ending(now.monotonic) {
            self.end(now);
        }
        for step in self.turns.expired(now.monotonic) {
            self.break_off(step, FailureKind::Timeout, now);
        }
    }

    /// A call of the store without an answer may or may not have been done, and the commands that are cancelled say their effect.
    fn end(&mut self, now: Now) {
        let (asks, sends) = self.turns.end();
        for step in asks {
            _ = self.client.resolve(step, Outcome::Store(StoreAnswer::Failed), now);
        }
        for command in self.turns.commands() {
            self.cancel(command, now);
        }
        for step in sends {
            self.break_off(step, FailureKind::Aborted, now);
        }
    }

    /// Returns true if a turn was a send that is late: the client has decided anew.
    fn was_late(&mut self, turn: &NextTurn, now: Now) -> bool {
        let NextTurn::Send { step, .. } = turn else { return false };
        let is_late = self.turns.is_late(*step, now.monotonic);
        if is_late {
            self.break_off(*step, FailureKind::Late, now);
        }
        is_late
    }

    fn break_off(&mut self, step: StepId, kind: FailureKind, now: Now) {
        self.fail(step, kind, now);
        self.turns.break_off(step, kind);
    }

    fn fail(&mut self, step: StepId, kind: FailureKind, now: Now) {
        if let Some((_, is_begun)) = self.turns.send_of(step) {
            let sent = if is_begun { Sent::Maybe } else { Sent::Never };
            _ = self.client.resolve(step, Outcome::Failed { kind, sent }, now);
        }
    }

    /// Wakes the background, which may have work that a call of [`Driver::client`] has left.
    pub fn look(&mut self) {
        self.turns.look();
    }
}

#[cfg(test)]
mod tests;
