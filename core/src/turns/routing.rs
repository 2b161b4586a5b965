//! The owners of a client, and the distribution of its work among them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::client::{FailureKind, Millis};
use crate::state::{CommandId, StepId, StoreAnswer, StoreCall};
use crate::turns::sends::Sends;
use crate::turns::{NextTurn, Nudge};
use crate::wire::Request;

/// The number of an owner, which the host chooses; none is used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerNo(pub u64);

impl OwnerNo {
    /// The host's background work: it does what no caller does.
    pub const BACKGROUND: OwnerNo = OwnerNo(0);
}

/// The place of an owner: an event loop, or all threads together. Each place has an owner that keeps the time and hears of common work, as if the others
/// were not there: an event loop may stand still or be closed, and then nobody in it hears anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place(pub u64);

impl Place {
    /// The threads. Each makes its calls of the store by itself, and does nothing else meanwhile.
    pub const THREADS: Place = Place(0);
}

/// The kind of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerKind {
    /// A caller that sends the requests of its own command by itself.
    Sending,
    /// A caller that lets others send.
    Delegating,
}

/// A call of the store that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AskOut {
    step: StepId,
    call: StoreCall,
}

/// A thread or task that waits for a command, or does the remaining work of one that needs no waiting.
#[derive(Debug)]
struct OwnerState {
    place: Place,
    command: Option<CommandId>,
    sends_itself: bool,
    /// The calls of the store that it is to make.
    asks: VecDeque<AskOut>,
    /// Those that it has begun.
    asking: Vec<AskOut>,
    /// The requests that it is to send.
    sends: VecDeque<StepId>,
    /// The request that its last turn gave it.
    in_hand: Option<StepId>,
    /// The request that it sends by itself, so that it does nothing else meanwhile.
    exchange: Option<StepId>,
    /// True while it makes a call of the store and does nothing else.
    is_asking: bool,
    is_completed: bool,
    /// True once its result was read.
    is_read: bool,
    /// True once its result is surely the caller's, or nobody's.
    is_taken: bool,
    is_waiting: bool,
    gave_up: bool,
}

impl OwnerState {
    /// Returns true if it does the common work, now or once it is woken.
    fn attends(&self) -> bool {
        self.exchange.is_none() && !self.is_asking
    }

    fn makes_no_call(&self) -> bool {
        self.asks.is_empty() && self.asking.is_empty()
    }
}

/// The owners of a place.
#[derive(Debug, Default)]
struct PlaceState {
    owners: usize,
    /// Those that wait.
    waiting: usize,
    /// The one of them that wakes for all when the client wants to continue, and when that is.
    keeper: Option<(OwnerNo, Option<Millis>)>,
}

/// The background work, of which there is at most one thread.
#[derive(Debug, Default)]
struct BackgroundState {
    is_running: bool,
    /// The thread that does the work, once it has begun. A host that was interrupted may have started two.
    runner: Option<u64>,
    /// The time of its next look; `None`: at once.
    until: Option<Millis>,
    /// True if it works for pools even while callers are present.
    has_carrier: bool,
    asks: VecDeque<AskOut>,
    /// The calls of the store that other threads make for it. Until they are answered it is in the client as an owner is.
    asking: Vec<AskOut>,
    /// The request that its last turn gave it.
    in_hand: Option<StepId>,
}

/// The owners that are in a client, the sends that are out, and the work that those that have left did not do.
#[derive(Debug, Default)]
pub struct Turns {
    owners: BTreeMap<OwnerNo, OwnerState>,
    by_command: BTreeMap<CommandId, OwnerNo>,
    places: BTreeMap<Place, PlaceState>,
    /// The commands whose owner has left before they ended.
    orphans: BTreeSet<CommandId>,
    sends: Sends,
    left_asks: VecDeque<AskOut>,
    left_sends: VecDeque<StepId>,
    background: BackgroundState,
    /// The time at which the client wants to continue, at the last look.
    due: Option<Millis>,
    /// True if the store must vouch for its claims before a send that needs them.
    needs_vouching: bool,
    is_closed: bool,
    /// The time at which all that a closed client still does is given up, until it was.
    ends_at: Option<Millis>,
    /// True once that time has come.
    has_ended: bool,
    /// True while nothing is sent, and no store called.
    is_paused: bool,
    nudges: Vec<Nudge>,
}

impl Turns {
    /// Begins without owners. `needs_vouching` is true if the claims of the store can end.
    pub fn new(needs_vouching: bool) -> Self {
        Turns { needs_vouching, ..Turns::default() }
    }

    /// Takes what the host is to do at once.
    pub fn take_nudges(&mut self) -> Vec<Nudge> {
        std::mem::take(&mut self.nudges)
    }

    /// Returns true if there is something that the host is to do at once.
    pub fn has_nudges(&self) -> bool {
        !self.nudges.is_empty()
    }

    // The life of an owner.

    /// An owner comes, with the command that it waits for, or to do the remaining work.
    pub fn enter(&mut self, owner: OwnerNo, kind: OwnerKind, place: Place, command: Option<CommandId>) {
        let state = OwnerState {
            place,
            command,
            sends_itself: kind == OwnerKind::Sending,
            asks: VecDeque::new(),
            asking: Vec::new(),
            sends: VecDeque::new(),
            in_hand: None,
            exchange: None,
            is_asking: false,
            is_completed: false,
            is_read: false,
            is_taken: false,
            is_waiting: false,
            gave_up: false,
        };
        self.owners.insert(owner, state);
        self.places.entry(place).or_default().owners += 1;
        if let Some(command) = command {
            self.by_command.insert(command, owner);
        }
    }

    /// Returns true if an owner is there.
    pub fn is_present(&self, owner: OwnerNo) -> bool {
        self.owners.contains_key(&owner)
    }

    /// The command of an owner.
    pub fn command_of(&self, owner: OwnerNo) -> Option<CommandId> {
        self.owners.get(&owner)?.command
    }

    /// The owner that waits for a command.
    pub fn owner_of(&self, command: CommandId) -> Option<OwnerNo> {
        self.by_command.get(&command).copied()
    }

    /// All commands that an owner waits for.
    pub fn commands(&self) -> Vec<CommandId> {
        self.by_command.keys().copied().collect()
    }

    /// Returns true if nobody is in the client, and no call of the store is to be made.
    pub fn is_empty(&self) -> bool {
        self.owners.is_empty() && self.background.asking.is_empty() && self.background.asks.is_empty() && self.left_asks.is_empty()
    }

    /// Returns true if nothing is kept: no owner, no send that is out, and no work that was left.
    pub fn is_at_rest(&self) -> bool {
        let is_nothing_left = self.sends.is_empty() && self.left_sends.is_empty();
        self.is_empty() && self.by_command.is_empty() && self.orphans.is_empty() && is_nothing_left
    }

    /// Returns true if an owner sends by itself at present.
    pub fn is_exchanging(&self) -> bool {
        self.owners.values().any(|owner| owner.exchange.is_some())
    }

    /// Returns true if the background works, or is to begin.
    pub fn has_background(&self) -> bool {
        self.background.is_running
    }

    /// An owner takes its interrupted work back: a call of the store is made once more, which does no harm, and a request that had not begun
    /// was not sent. Returns the request that may have been sent, which is to be broken off; `is_sent` is false if the owner surely did not
    /// begin to send.
    #[must_use]
    pub fn take_back(&mut self, owner: OwnerNo, is_sent: bool) -> Option<StepId> {
        if owner == OwnerNo::BACKGROUND {
            return self.take_back_in_background(is_sent);
        }
        let state = self.owners.get_mut(&owner)?;
        state.is_asking = false;
        state.asks.extend(state.asking.drain(..));
        let step = state.in_hand.take()?;
        let (_, is_begun) = self.sends.get(step)?;
        if is_begun && is_sent {
            return Some(step);
        }
        state.exchange.take_if(|exchange| *exchange == step);
        state.sends.push_front(step);
        self.sends.undo(step);
        None
    }

    fn take_back_in_background(&mut self, is_sent: bool) -> Option<StepId> {
        self.left_asks.extend(self.background.asking.drain(..).chain(self.background.asks.drain(..)));
        let step = self.background.in_hand.take()?;
        let (_, is_begun) = self.sends.get(step)?;
        if is_begun && is_sent {
            return Some(step);
        }
        self.left_sends.push_front(step);
        self.sends.undo(step);
        None
    }

    /// An owner gives its command up. Returns the request that it sent by itself, which breaks off with its owner, even if others wait for it.
    #[must_use]
    pub fn give_up(&mut self, owner: OwnerNo) -> Option<StepId> {
        let state = self.owners.get_mut(&owner)?;
        state.gave_up = true;
        let exchange = state.exchange.take();
        if exchange.is_some() {
            self.wake_one(None);
        }
        exchange
    }

    /// Returns true if an owner has given up its command.
    pub fn has_given_up(&self, owner: OwnerNo) -> bool {
        self.owners.get(&owner).is_some_and(|owner| owner.gave_up)
    }

    /// The command of an owner whose result it has not taken, and whether that command has ended.
    pub fn untaken(&self, owner: OwnerNo) -> Option<(CommandId, bool)> {
        let state = self.owners.get(&owner).filter(|state| !state.is_taken)?;
        state.command.map(|command| (command, state.is_completed))
    }

    /// An owner goes. Remaining work of its is left to others, and nobody takes the result of a command that has not ended. Returns true if the
    /// client is to be finished, since it was the last owner of a closed one.
    pub fn leave(&mut self, owner: OwnerNo) -> bool {
        self.orphans.extend(self.untaken(owner).filter(|(_, is_completed)| !is_completed).map(|(command, _)| command));
        self.rest(owner);
        if let Some(mut state) = self.owners.remove(&owner) {
            if let Some(command) = state.command {
                self.by_command.remove(&command);
            }
            if let Some(place) = self.places.get_mut(&state.place) {
                place.owners = place.owners.saturating_sub(1);
                if place.owners == 0 {
                    self.places.remove(&state.place);
                }
            }
            // The owner may have kept the time of its place.
            if let Some(until) = self.soonest() {
                self.keep_time(until);
            }
            // A call that was interrupted twice may or may not have been made.
            self.left_asks.extend(state.asking.drain(..).chain(state.asks.drain(..)));
            self.left_sends.extend(state.sends.drain(..));
            if !self.left_asks.is_empty() || !self.left_sends.is_empty() {
                self.wake_one(None);
            }
        }
        if !self.is_attended() {
            self.attend();
        }
        let is_over = self.is_closed && self.is_empty();
        if is_over {
            self.orphans.clear();
            // The thread of the background ends.
            self.look();
        }
        is_over
    }

    /// The client is closed: every owner ends.
    pub fn close(&mut self) {
        self.is_closed = true;
        self.is_paused = false;
        self.look();
        if !self.is_attended() {
            self.attend();
        }
        for owner in self.owners.keys().copied().collect::<Vec<_>>() {
            self.wake(owner);
            // One that sends, too: its event loop may be closed.
            if self.owners.get(&owner).is_some_and(|state| state.exchange.is_some()) {
                self.nudges.push(Nudge::Wake(owner));
            }
        }
    }

    /// Returns true once the client is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// At that time, or at an earlier one that was said before, a closed client gives up all that it still does.
    pub fn end_at(&mut self, at: Millis) {
        if self.ends_at.is_none_or(|known| at < known) && !self.has_ended {
            self.ends_at = Some(at);
            self.keep_time(at);
            if !self.is_attended() {
                self.attend();
            }
        }
    }

    /// Returns true, once, if the time of a closed client is up.
    #[must_use]
    pub fn begin_ending(&mut self, now: Millis) -> bool {
        let is_now = self.ends_at.take_if(|at| *at <= now).is_some();
        self.has_ended |= is_now;
        is_now
    }

    /// Returns true once the time of a closed client is up.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Gives up the calls of the store that were not answered, begun or not, and the sends that are out.
    #[must_use]
    pub fn end(&mut self) -> (Vec<StepId>, Vec<StepId>) {
        let owned = self.owners.values_mut().flat_map(|owner| owner.asks.drain(..).chain(owner.asking.drain(..)));
        let mut asks: Vec<StepId> = owned.map(|ask| ask.step).collect();
        let BackgroundState { asks: queued, asking, .. } = &mut self.background;
        asks.extend(queued.drain(..).chain(asking.drain(..)).chain(self.left_asks.drain(..)).map(|ask| ask.step));
        (asks, self.sends.steps())
    }

    // A pause, in which the store is let go of.

    /// Gives out no send and no call of the store from now on.
    pub fn pause(&mut self) {
        self.is_paused = !self.is_closed;
    }

    /// Gives them out again.
    pub fn go_on_after_pause(&mut self) {
        if std::mem::take(&mut self.is_paused) {
            self.owners.keys().copied().collect::<Vec<_>>().into_iter().for_each(|owner| self.wake(owner));
            self.start_background();
        }
    }

    /// Returns true if no call of the store is being made.
    pub fn is_store_idle(&self) -> bool {
        self.background.asking.is_empty() && self.owners.values().all(|owner| owner.asking.is_empty())
    }

    /// During a pause: takes the calls of the store that were not begun and that need no store, since the client owns no name.
    #[must_use]
    pub fn without_names(&mut self) -> Vec<(StepId, StoreAnswer)> {
        let mut answers = Vec::new();
        if self.is_paused {
            let queues = self.owners.values_mut().map(|owner| &mut owner.asks);
            for queue in queues.chain([&mut self.background.asks, &mut self.left_asks]) {
                queue.retain(|ask| match answer_without_names(&ask.call) {
                    Some(answer) => {
                        answers.push((ask.step, answer));
                        false
                    }
                    None => true,
                });
            }
        }
        answers
    }

    // The work of the client.

    /// A call of the store is to be made, by the owner of its command, or else by the one whose turn it is.
    pub fn give_ask(&mut self, step: StepId, command: Option<CommandId>, call: StoreCall, whose_turn: OwnerNo) {
        let owner = command.and_then(|command| self.owner_of(command)).filter(|owner| !self.exchanges(*owner)).unwrap_or(whose_turn);
        let ask = AskOut { step, call };
        match self.owners.get_mut(&owner) {
            Some(state) => state.asks.push_back(ask),
            None => self.background.asks.push_back(ask),
        }
        if owner != whose_turn {
            self.wake(owner);
        }
    }

    /// A request is to be sent, by the owner of its command, or else by the one whose turn it is. If that one has given up, or sends by
    /// itself, the request is left to others.
    pub fn give_send(&mut self, step: StepId, command: CommandId, request: Request, whose_turn: OwnerNo) {
        self.sends.add(step, command, request);
        let owner = self.owner_of(command).unwrap_or(whose_turn);
        match self.owners.get_mut(&owner) {
            Some(state) if !state.gave_up && state.exchange.is_none() => {
                state.sends.push_back(step);
                if owner != whose_turn {
                    self.wake(owner);
                }
            }
            _ => {
                self.left_sends.push_back(step);
                self.wake_one(None);
            }
        }
    }

    /// A command has ended. Returns true if its owner has left: nobody takes its result.
    #[must_use]
    pub fn complete(&mut self, command: CommandId, whose_turn: OwnerNo) -> bool {
        if let Some(owner) = self.owner_of(command) {
            if let Some(state) = self.owners.get_mut(&owner) {
                state.is_completed = true;
            }
            if owner != whose_turn {
                self.wake(owner);
            }
        }
        self.orphans.remove(&command)
    }

    /// The client wants to continue at that time.
    pub fn set_due(&mut self, due: Option<Millis>) {
        self.due = due;
    }

    /// The owner goes on: it has done what its last turn gave it or handed it on, and waits no more.
    pub fn go_on(&mut self, owner: OwnerNo) {
        self.rest(owner);
        if let Some(state) = self.owners.get_mut(&owner) {
            state.in_hand = None;
            state.exchange = None;
            state.is_asking = false;
        }
    }

    /// The owner waits no more, and keeps no time.
    fn rest(&mut self, owner: OwnerNo) {
        let Some(state) = self.owners.get_mut(&owner) else { return };
        let Some(place) = self.places.get_mut(&state.place) else { return };
        if std::mem::take(&mut state.is_waiting) {
            place.waiting = place.waiting.saturating_sub(1);
        }
        place.keeper.take_if(|(keeper, _)| *keeper == owner);
    }

    /// Returns the command of an owner if it has ended and its result was not read yet; from now on it counts as read.
    pub fn begin_reading(&mut self, owner: OwnerNo) -> Option<CommandId> {
        let state = self.owners.get_mut(&owner)?;
        if !state.is_completed || std::mem::replace(&mut state.is_read, true) {
            return None;
        }
        state.command
    }

    /// The result of an owner's command is surely its caller's, or nobody's.
    pub fn taken(&mut self, owner: OwnerNo) {
        if let Some(state) = self.owners.get_mut(&owner) {
            state.is_taken = true;
        }
    }

    /// The owner's next work: the store first, since a purchase may wait for it. A send is begun only if it is not late: see [`Turns::is_late`].
    pub fn next(&mut self, owner: OwnerNo, now: Millis) -> NextTurn {
        let until = self.soonest();
        let turn = match self.next_ask(owner) {
            Some(AskOut { step, call }) => NextTurn::Ask { step, call },
            None => match self.next_send(owner) {
                Some(step) => self.hand_out(owner, step, now),
                None if self.has_result(owner) => NextTurn::Ended,
                None if self.is_done(owner) => NextTurn::Done,
                None => NextTurn::Wait(self.wait(owner, until)),
            },
        };
        if let Some(until) = until {
            self.keep_time(until);
        }
        turn
    }

    /// The owner waits: the first one of a place until that time, and the others until they are woken.
    fn wait(&mut self, owner: OwnerNo, until: Option<Millis>) -> Option<Millis> {
        let state = self.owners.get_mut(&owner)?;
        let place = self.places.entry(state.place).or_default();
        if !std::mem::replace(&mut state.is_waiting, true) {
            place.waiting += 1;
        }
        if place.keeper.is_some() {
            return None;
        }
        place.keeper = Some((owner, until));
        until
    }

    /// The next work of the background. `Done`: its thread is to end.
    pub fn next_of_background(&mut self, now: Millis) -> NextTurn {
        let until = self.soonest();
        if !self.is_paused
            && let Some(ask) = self.background.asks.pop_front().or_else(|| self.left_asks.pop_front())
        {
            self.background.asking.push(ask.clone());
            return NextTurn::Ask { step: ask.step, call: ask.call };
        }
        if self.background.has_carrier
            && !self.is_paused
            && let Some(step) = self.next_left_send()
        {
            return self.hand_out(OwnerNo::BACKGROUND, step, now);
        }
        if until.is_none() && !self.background.has_carrier && self.background.asking.is_empty() && !self.is_paused {
            self.end_background();
            return NextTurn::Done;
        }
        self.background.until = Some(until.unwrap_or(Millis::MAX));
        NextTurn::Wait(until)
    }

    /// The background goes on, in the thread with that number. Returns false if the thread is to end, since another one does the work, or callers
    /// do, or there is none any more.
    pub fn go_on_in_background(&mut self, runner: u64) -> bool {
        if !self.background.is_running || *self.background.runner.get_or_insert(runner) != runner {
            return false;
        }
        self.background.in_hand = None;
        let is_attended = self.is_attended();
        let goes_on = if self.is_closed { !self.is_empty() && !is_attended } else { self.background.has_carrier || !is_attended };
        if !goes_on {
            let asks = self.background.asks.drain(..).collect::<Vec<_>>();
            self.left_asks.extend(asks);
            self.wake_one(None);
            self.end_background();
        }
        goes_on
    }

    fn end_background(&mut self) {
        self.background.is_running = false;
        self.background.runner = None;
    }

    /// The requests that were left, if nobody is there to send them or to wait for their answers: they are to be broken off.
    #[must_use]
    pub fn unwanted(&mut self) -> Vec<StepId> {
        if self.background.has_carrier || !self.owners.is_empty() { Vec::new() } else { self.left_sends.drain(..).collect() }
    }

    /// The host could not let the background begin; the next caller does the work. A closed client has none.
    pub fn background_failed(&mut self) {
        self.end_background();
        if self.is_closed {
            self.left_asks.clear();
            self.background.asks.clear();
        }
    }

    /// The background works for pools from now on, or not any more.
    pub fn carry(&mut self, has_carrier: bool) {
        self.background.has_carrier = has_carrier;
        if !self.is_closed {
            self.start_background();
        }
    }

    // The sends that are out.

    /// Returns true if a send was not answered yet.
    pub fn is_out(&self, step: StepId) -> bool {
        self.sends.is_out(step)
    }

    /// The command of a send that is out, and whether the send has begun.
    pub fn send_of(&self, step: StepId) -> Option<(CommandId, bool)> {
        self.sends.get(step)
    }

    /// Returns true if it is too late to begin a send, so that the client is to decide anew.
    pub fn is_late(&self, step: StepId, now: Millis) -> bool {
        self.sends.get(step).is_some_and(|(_, is_begun)| !is_begun) && self.sends.is_late(step, now)
    }

    /// A send begins, and `here` does nothing else before it is answered.
    pub fn begin(&mut self, step: StepId, here: Option<OwnerNo>, now: Millis) {
        self.sends.begin(step, now);
        if let Some(state) = here.and_then(|owner| self.owners.get_mut(&owner)) {
            state.exchange = Some(step);
        }
        if !self.is_attended() {
            self.attend();
        } else if let Some(until) = self.soonest() {
            self.keep_time(until);
        }
    }

    /// A send was answered, or failed. The owner goes on, or another one does. Returns whether it had begun, if it was still out.
    pub fn answered(&mut self, step: StepId) -> Option<bool> {
        let (command, is_begun) = self.sends.remove(step)?;
        let exchanging = self.owners.values_mut().find(|owner| owner.exchange == Some(step));
        match exchanging {
            Some(owner) => owner.exchange = None,
            None => self.wake_one(Some(command)),
        }
        Some(is_begun)
    }

    /// A send is broken off; a later outcome is ignored. Returns whether it had begun, if it was out.
    pub fn break_off(&mut self, step: StepId, kind: FailureKind) -> Option<bool> {
        let (_, is_begun) = self.sends.remove(step)?;
        self.nudges.push(Nudge::Over(step, kind, is_begun));
        Some(is_begun)
    }

    /// The sends that took too long.
    pub fn expired(&self, now: Millis) -> Vec<StepId> {
        self.sends.expired(now)
    }

    /// The sends that have not begun and need claims of the store, which have ended.
    pub fn unsure(&self) -> Vec<StepId> {
        self.sends.unsure()
    }

    /// How much longer than its timeout a send may take, in milliseconds.
    pub fn set_grace(&mut self, grace: Millis) {
        self.sends.set_grace(grace);
    }

    /// A call of the store was answered. The owner goes on, or the background.
    pub fn stored(&mut self, step: StepId) {
        if let Some(place) = self.background.asking.iter().position(|ask| ask.step == step) {
            self.background.asking.remove(place);
            if self.is_closed && self.is_empty() {
                // The client is to be finished.
                self.start_background();
            } else {
                self.rouse();
            }
            return;
        }
        let asked = self.owners.iter_mut().find_map(|(owner, state)| {
            let place = state.asking.iter().position(|ask| ask.step == step)?;
            state.asking.remove(place);
            Some(*owner)
        });
        if let Some(owner) = asked {
            self.wake(owner);
        }
    }

    // Waking.

    /// Wakes one owner of each place for new work: the one that waits for the command, or else any waiting one, first those that still send.
    pub fn wake_one(&mut self, command: Option<CommandId>) {
        if !self.is_attended() {
            self.nudges.push(Nudge::Wake(OwnerNo::BACKGROUND));
        }
        let own = command.and_then(|command| self.owner_of(command)).and_then(|owner| Some((owner, self.owners.get(&owner)?)));
        let own = own.filter(|(_, state)| state.is_waiting).map(|(owner, state)| (owner, state.place));
        let here = own.map(|(_, place)| place);
        let elsewhere = self.places.iter().filter(|(place, state)| state.waiting > 0 && Some(**place) != here);
        let woken: Vec<OwnerNo> =
            own.map(|(owner, _)| owner).into_iter().chain(elsewhere.filter_map(|(place, _)| self.waiting_in(*place))).collect();
        woken.into_iter().for_each(|owner| self.wake(owner));
    }

    /// An owner of a place that waits, first those that still send.
    fn waiting_in(&self, place: Place) -> Option<OwnerNo> {
        let waiting = self.owners.iter().filter(|(_, owner)| owner.is_waiting && owner.place == place);
        waiting.min_by_key(|(_, owner)| owner.gave_up).map(|(no, _)| *no)
    }

    /// Wakes the background; once the client is closed, whoever is in it.
    pub fn look(&mut self) {
        self.nudges.push(Nudge::Wake(OwnerNo::BACKGROUND));
        if self.is_closed {
            self.wake_one(None);
        }
    }

    /// There is common work: an owner looks, or the background does.
    pub fn rouse(&mut self) {
        self.wake_one(None);
        if !self.is_attended() {
            self.start_background();
        }
    }

    fn wake(&mut self, owner: OwnerNo) {
        if let Some(state) = self.owners.get_mut(&owner)
            && std::mem::take(&mut state.is_waiting)
        {
            if let Some(place) = self.places.get_mut(&state.place) {
                place.waiting = place.waiting.saturating_sub(1);
            }
            self.nudges.push(Nudge::Wake(owner));
        }
    }

    /// An owner of each place must wake when the client wants to continue.
    fn keep_time(&mut self, until: Millis) {
        let woken = self.places.iter().filter_map(|(place, state)| match state.keeper {
            Some((keeper, known)) => Some(keeper).filter(|_| known.is_none_or(|known| until < known)),
            None if state.waiting > 0 => self.waiting_in(*place),
            None => None,
        });
        woken.collect::<Vec<_>>().into_iter().for_each(|owner| self.wake(owner));
    }

    /// Returns true if an owner is present that does the common work, now or once it is woken: one that neither sends by itself nor stands still
    /// in a call of the store.
    fn is_attended(&self) -> bool {
        self.owners.values().any(OwnerState::attends)
    }

    /// The background does the remaining work, if no owner does.
    fn attend(&mut self) {
        if self.is_closed && self.is_empty() {
            return;
        }
        if !self.left_asks.is_empty() || !self.left_sends.is_empty() {
            self.start_background();
        } else if let Some(until) = self.soonest() {
            self.look_at(until);
        }
    }

    fn start_background(&mut self) {
        if self.background.is_running {
            self.background.until = None;
            self.nudges.push(Nudge::Wake(OwnerNo::BACKGROUND));
        } else {
            self.look_at(0);
        }
    }

    fn look_at(&mut self, until: Millis) {
        if self.background.is_running && self.background.until.is_none_or(|known| known <= until) {
            return;
        }
        self.background.until = Some(until);
        if self.background.is_running {
            self.nudges.push(Nudge::Wake(OwnerNo::BACKGROUND));
        } else {
            self.background.is_running = true;
            self.nudges.push(Nudge::Look(until));
        }
    }

    /// The time of the next look: when the client wants to continue, the next send has taken too long, or the time is up.
    fn soonest(&self) -> Option<Millis> {
        self.due.into_iter().chain(self.sends.soonest()).chain(self.ends_at).min()
    }

    fn exchanges(&self, owner: OwnerNo) -> bool {
        self.owners.get(&owner).is_some_and(|owner| owner.exchange.is_some())
    }

    fn is_done(&self, owner: OwnerNo) -> bool {
        self.owners.get(&owner).is_none_or(|owner| (owner.command.is_none() || owner.is_taken) && owner.makes_no_call())
    }

    /// Returns true if the result of an owner's command is there, and not taken.
    fn has_result(&self, owner: OwnerNo) -> bool {
        self.owners.get(&owner).is_some_and(|owner| owner.is_read && !owner.is_taken && owner.makes_no_call())
    }

    /// Begins a call of the store: the owner's, or one whose owner is gone.
    fn next_ask(&mut self, owner: OwnerNo) -> Option<AskOut> {
        let state = self.owners.get_mut(&owner).filter(|_| !self.is_paused)?;
        let ask = state.asks.pop_front().or_else(|| self.left_asks.pop_front())?;
        state.asking.push(ask.clone());
        state.is_asking = state.place == Place::THREADS;
        // The deadlines of the sends that are out may be kept by no other owner.
        if !self.is_attended()
            && let Some(until) = self.sends.soonest()
        {
            self.look_at(until);
        }
        Some(ask)
    }

    /// The next send that was not given up meanwhile: the owner's, or one whose owner is gone.
    fn next_send(&mut self, owner: OwnerNo) -> Option<StepId> {
        let state = self.owners.get_mut(&owner)?;
        if state.gave_up {
            let before = self.left_sends.len();
            self.left_sends.extend(state.sends.drain(..).filter(|step| self.sends.is_out(*step)));
            if self.left_sends.len() > before {
                self.wake_one(None);
            }
            return None;
        }
        if self.is_paused {
            return None;
        }
        while let Some(step) = state.sends.pop_front() {
            if self.sends.is_out(step) {
                return Some(step);
            }
        }
        self.next_left_send()
    }

    fn next_left_send(&mut self) -> Option<StepId> {
        while let Some(step) = self.left_sends.pop_front() {
            if self.sends.is_out(step) {
                return Some(step);
            }
        }
        None
    }

    /// Hands a send out. Unless the store must vouch for its claims first, the send begins.
    fn hand_out(&mut self, owner: OwnerNo, step: StepId, now: Millis) -> NextTurn {
        let patience = if self.needs_vouching { self.sends.patience(step, now) } else { None };
        let request = self.sends.take_request(step);
        let command = self.sends.get(step).map(|(command, _)| command);
        let mut is_here = false;
        if owner == OwnerNo::BACKGROUND {
            self.background.in_hand = Some(step);
        }
        if let Some(state) = self.owners.get_mut(&owner) {
            state.in_hand = Some(step);
            is_here = state.sends_itself && state.command == command;
        }
        if patience.is_none() && !self.sends.is_late(step, now) {
            self.begin(step, Some(owner).filter(|_| is_here), now);
        }
        NextTurn::Send { step, request, is_here, patience }
    }
}

/// The answer for a client that owns nothing; `None` if only the store can answer.
fn answer_without_names(call: &StoreCall) -> Option<StoreAnswer> {
    match call {
        StoreCall::Put { .. } | StoreCall::Delete { .. } => Some(StoreAnswer::Lost),
        StoreCall::Release { .. } => Some(StoreAnswer::Done),
        StoreCall::Claim { .. } | StoreCall::List { .. } | StoreCall::Spend { .. } => None,
    }
}

#[cfg(test)]
mod tests;
