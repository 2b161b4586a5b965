//! The client with its turns: one call moves it, and brings everything that the host is to do until the next one. Who takes which step,
//! the deadlines of sends, closing and pauses are decided by [`Driver`]; here the turns of all owners are taken, since a host whose callers
//! are coroutines makes each call of the store and each send beside them.

use std::collections::{BTreeMap, BTreeSet};

use hopline::client::{CommandId, Event, FailureKind, Millis, Name, StepId, Verdict};
use hopline::pool::PoolClient;
use hopline::turns::{Driver, Ended, NextTurn, Nudge, OwnerKind, OwnerNo, Place};
use hopline::wire::Received;
use hopline::{Now, Outcome};

use crate::moves::{Expecting, called_by, carry_out};
use crate::packed::{Read, packed, read};
use crate::{Client, ClientError, Move, MoveAnswer, Request, StoreCall, Taken};

/// All callers: they keep no time by themselves.
const CALLERS: Place = Place(1);

/// The number of the background's thread, of which there is one.
const RUNNER: u64 = 1;

/// How much longer than its timeout a send may take: an HTTP client on a phone that is busy ends late.
const GRACE: Millis = 500;

/// The work of a host. An `owner` is the caller that it is done for; null for none.
#[derive(Clone, PartialEq, Eq, uniffi::Enum)]
pub enum Work {
    /// Call the store, and answer by `Stored`.
    Ask {
        /// The id for the answer.
        step: u32,
        /// The owner.
        owner: Option<u64>,
        /// The call.
        call: StoreCall,
    },
    /// Send the request, and answer by `Respond`, `Fail` or `RefuseHeaders`.
    Send {
        /// The id for the answer.
        step: u32,
        /// The owner.
        owner: Option<u64>,
        /// The request.
        request: Request,
        /// Of a Send that is to be begun by `Begin`: how long what comes before may take, in milliseconds. Null: it has begun.
        patience: Option<i64>,
    },
    /// Abort a Send, which is over: what is reported of it later is ignored.
    BreakOff {
        /// The Send.
        step: u32,
    },
    /// The owner's work is done: the results of its command, and behind it of those that a resumption of all has begun.
    Ended {
        /// The owner.
        owner: u64,
        /// The results; empty if it had no command.
        results: Vec<Taken>,
        /// True if it has left, since nothing depends on who takes the results. Otherwise the host says `Leave`.
        is_over: bool,
    },
    /// Progress, for people and metrics; nothing depends on it.
    Notify {
        /// The event, packed.
        event: Vec<u8>,
    },
    /// The client is closed and nobody is in it: release the store. Nothing is to be said to it any more.
    Finish,
}

/// The result of `drive`.
#[derive(uniffi::Record)]
pub struct Driven {
    /// The answer.
    pub answer: MoveAnswer,
    /// The work, to be begun in this order.
    pub work: Vec<Work>,
    /// The monotonic time at which to say `Go`, unless there is another one before; null for none.
    pub until: Option<i64>,
}

/// Work, before its answers are read.
enum Todo {
    Work(Work),
    Ended { owner: OwnerNo, called: Option<String>, results: Vec<Ended>, is_over: bool },
}

/// A client with its turns, and what the host has been told of them.
pub(crate) struct Core {
    driver: Driver,
    /// The owners that want to go on at a time.
    waits: BTreeMap<OwnerNo, Millis>,
    /// The owners whose Ended was told and that have not left.
    told: BTreeSet<OwnerNo>,
    /// The methods that they called, where they are no operation of the table.
    called: BTreeMap<OwnerNo, String>,
    is_finished: bool,
}

#[uniffi::export]
impl Client {
    /// Carries out a move, and takes all turns that follow. With an `owner`, a number above 0 that is never used again, an owner comes for what
    /// the move starts, or for the changes that the store has to have: its Ended comes in this work or a later one. With 0 nobody waits.
    /// `body` is that of a response, and empty otherwise.
    pub fn drive(&self, owner: u64, what: Move, body: &[u8], unix_ms: i64, monotonic_ms: i64) -> Driven {
        let now = Now { unix: unix_ms, monotonic: monotonic_ms };
        let mut made = None;
        let (answer, (events, todo, until)) = match what {
            Move::Respond { step, status, headers, truncated } => {
                let headers: Vec<(&str, &str)> = headers.iter().map(|header| (header.name.as_str(), header.value.as_str())).collect();
                let expected = self.expecting().remove(&step);
                // The client is not locked while a response is read. One that is not expected is over.
                let response = expected.map(|expected| read(expected, Received { status, headers: &headers, body, truncated }));
                let mut core = self.lock();
                if let Some((response, packed)) = response {
                    core.driver.answered(StepId(step), Outcome::Read(response), now);
                    made = packed;
                }
                (MoveAnswer::Nothing, core.pump(None, now, &mut self.expecting()))
            }
            what => {
                let mut core = self.lock();
                let (owner, mut broken_off) = (OwnerNo(owner), None);
                let answer = core.told(owner, what, now, &mut broken_off);
                let mut pumped = core.pump(Some(owner), now, &mut self.expecting());
                pumped.1.extend(broken_off.map(|StepId(step)| Todo::Work(Work::BreakOff { step })));
                (answer, pumped)
            }
        };
        let events = events.iter().map(|event| Work::Notify { event: packed(event) });
        let work = events.chain(todo.into_iter().map(|todo| work(todo, made.as_ref()))).collect();
        Driven { answer, work, until }
    }

    /// Turns on events, which come as Notify from now on.
    pub fn listen(&self) {
        self.lock().driver.listen();
    }
}

fn work(todo: Todo, made: Option<&Read>) -> Work {
    match todo {
        Todo::Work(work) => work,
        Todo::Ended { owner, called, results, is_over } => {
            let results = results.into_iter().map(|(_, result)| Taken::of(called.as_deref(), result, made)).collect();
            Work::Ended { owner: owner.0, results, is_over }
        }
    }
}

impl Core {
    /// For a host that drives the client by hand.
    pub(crate) fn by_hand(driver: Driver) -> Self {
        Core { driver, waits: BTreeMap::new(), told: BTreeSet::new(), called: BTreeMap::new(), is_finished: false }
    }

    pub(crate) fn driven(mut driver: Driver) -> Self {
        driver.turns().set_grace(GRACE);
        // What no caller does is done for all the same: a host of coroutines needs no thread for it.
        driver.turns().carry(true);
        Core::by_hand(driver)
    }

    pub(crate) fn client(&mut self) -> &mut PoolClient {
        self.driver.client()
    }

    /// Carries out a move. Returns a Send that is broken off in `broken_off`.
    fn told(&mut self, owner: OwnerNo, what: Move, now: Now, broken_off: &mut Option<StepId>) -> MoveAnswer {
        let driver = &mut self.driver;
        match what {
            Move::Go => {}
            Move::Begin { step, is_sure } => return MoveAnswer::Was { so: driver.begin(StepId(step), is_sure, None, now) },
            Move::Stored { step, answer } => return MoveAnswer::Was { so: driver.stored(StepId(step), answer.into(), now) },
            Move::Fail { step, kind, sent } => _ = driver.answered(StepId(step), Outcome::Failed { kind, sent }, now),
            Move::RefuseHeaders { step, rule } => {
                if driver.turns().is_out(StepId(step)) {
                    _ = driver.client().refuse_headers_text(step, &rule, now);
                    driver.turns().answered(StepId(step));
                }
            }
            Move::Lost { names } => {
                let names: Option<Vec<Name>> = names.map(|names| names.into_iter().map(Name::from).collect());
                driver.lost(names.as_deref(), now);
            }
            Move::Cancel { command } => {
                *broken_off = driver.client().cancel(CommandId(command), now);
                if let Some(step) = *broken_off {
                    _ = driver.failed(step, FailureKind::Aborted.as_str(), None, now);
                }
            }
            Move::GiveUp => driver.give_up(owner, now),
            Move::Leave { has_heard } => {
                driver.leave(owner, has_heard, now);
                self.told.remove(&owner);
                self.waits.remove(&owner);
                self.called.remove(&owner);
            }
            Move::Close { ends_at } => _ = driver.close(ends_at, now),
            Move::Pause => driver.pause(now),
            Move::GoOn => driver.resume(),
            what if owner == OwnerNo::BACKGROUND => {
                let answer = carry_out(driver.client(), what, now).unwrap_or_else(refusal);
                driver.look();
                return answer;
            }
            what => return self.enter(owner, what, now),
        }
        MoveAnswer::Nothing
    }

    fn enter(&mut self, owner: OwnerNo, what: Move, now: Now) -> MoveAnswer {
        let mut answer = Err(MoveAnswer::Closed);
        self.called.extend(called_by(&what).map(|called| (owner, called)));
        self.driver.enter(owner, OwnerKind::Delegating, CALLERS, |client| {
            let begun = begin(client, what, now);
            let command = begun.as_ref().map_or(None, |(_, command)| *command);
            answer = begun.map(|(answer, _)| answer).map_err(refusal);
            command
        });
        if answer.is_err() {
            self.driver.leave(owner, false, now);
            self.called.remove(&owner);
        }
        answer.unwrap_or_else(|refused| refused)
    }

    /// Takes the turns of all owners that can go on. Returns the events, the work, and the time of the next turn.
    fn pump(&mut self, first: Option<OwnerNo>, now: Now, expecting: &mut Expecting) -> (Vec<Event>, Vec<Todo>, Option<Millis>) {
        let (mut events, mut todo) = (Vec::new(), Vec::new());
        let waited = self.waits.iter().filter(|(_, until)| **until <= now.monotonic).map(|(owner, _)| *owner);
        let mut due: BTreeSet<OwnerNo> = waited.chain(first).chain([OwnerNo::BACKGROUND]).collect();
        // The background is number 0, and last.
        while let Some(owner) = due.pop_last() {
            self.take_turns(owner, now, expecting, &mut todo);
            let (nudges, told) = self.driver.take_news();
            events.extend(told);
            for nudge in nudges {
                match nudge {
                    Nudge::Wake(owner) => _ = due.insert(owner),
                    Nudge::Look(_) => _ = due.insert(OwnerNo::BACKGROUND),
                    Nudge::Over(StepId(step), ..) => {
                        expecting.remove(&step);
                        todo.push(Todo::Work(Work::BreakOff { step }));
                    }
                }
            }
        }
        let turns = self.driver.turns();
        if turns.is_closed() && turns.is_empty() && !std::mem::replace(&mut self.is_finished, true) {
            todo.push(Todo::Work(Work::Finish));
        }
        (events, todo, self.waits.values().min().copied())
    }

    /// Takes the turns of an owner, or of the background, until it waits or is done.
    fn take_turns(&mut self, owner: OwnerNo, now: Now, expecting: &mut Expecting, todo: &mut Vec<Todo>) {
        self.waits.remove(&owner);
        let is_background = owner == OwnerNo::BACKGROUND;
        let driver = &mut self.driver;
        if !is_background && !driver.turns().is_present(owner) {
            return;
        }
        loop {
            let turn = if is_background { driver.tend(RUNNER, now) } else { driver.turn(owner, now) };
            match turn {
                NextTurn::Ask { step, call } => {
                    let owner = Some(owner.0).filter(|_| !is_background);
                    todo.push(Todo::Work(Work::Ask { step: step.0, owner, call: call.into() }));
                }
                // Nothing is taken back here, so each Send is given out once.
                NextTurn::Send { request: None, .. } => {}
                NextTurn::Send { step, request: Some(request), patience, .. } => {
                    let command = driver.turns().send_of(step).map(|(command, _)| command);
                    let owner = command.and_then(|command| driver.turns().owner_of(command)).map(|owner| owner.0);
                    expecting.insert(step.0, request.expects);
                    todo.push(Todo::Work(Work::Send { step: step.0, owner, request: request.into(), patience }));
                }
                NextTurn::Wait(until) => {
                    self.waits.extend(until.map(|until| (owner, until)));
                    return;
                }
                NextTurn::Done if is_background => return,
                turn @ (NextTurn::Ended | NextTurn::Done) => {
                    let is_over = turn == NextTurn::Done;
                    if self.told.insert(owner) {
                        let (called, results) = (self.called.remove(&owner), driver.results(owner).to_vec());
                        todo.push(Todo::Ended { owner, called, results, is_over });
                    }
                    if is_over {
                        driver.leave(owner, true, now);
                        self.told.remove(&owner);
                    }
                    return;
                }
            }
        }
    }
}

/// Carries out a caller's move. Returns the command that it waits for, too.
fn begin(client: &mut PoolClient, what: Move, now: Now) -> Result<(MoveAnswer, Option<CommandId>), ClientError> {
    if let Move::Observe { session_id, seen } = &what {
        let verdict = client.observe_text(session_id, seen, now)?;
        let command = if let Some(Verdict::Rotating(_, command)) = &verdict { Some(*command) } else { None };
        return Ok((MoveAnswer::Advice { verdict: verdict.as_ref().map(packed) }, command));
    }
    let answer = carry_out(client, what, now)?;
    let command = if let MoveAnswer::Command { command } = answer { Some(CommandId(command)) } else { None };
    Ok((answer, command))
}

fn refusal(ClientError::Refused { error }: ClientError) -> MoveAnswer {
    MoveAnswer::Refused { error }
}

#[cfg(test)]
mod tests;
