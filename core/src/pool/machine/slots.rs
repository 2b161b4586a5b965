//! The slots of which this client knows something: what it does with each, and when each is looked at again.

use std::collections::{BTreeMap, BTreeSet};

use arcstr::ArcStr;

use crate::client::WorkNo;
use crate::collections::FreeRanges;
use crate::contract::Json;
use crate::contract::agent::{GetSession, RotateReason};
use crate::contract::pools::PoolSlotState;
use crate::pool::leases::SlotNo;
use crate::pool::notes::SessionNotes;
use crate::pool::others::OtherSlots;
use crate::pool::rules::{PoolRule, holds};
use crate::pool::targets::SessionFailures;
use crate::state::Seen;
use crate::time::Millis;

/// A session that was not read for so long is read before it is lent.
const CHECK: Millis = 600_000;

/// The work of this client on a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Doing {
    /// Takes over the slot's session. `ends`: to end it.
    Takes { ends: bool },
    /// Buys a session, or tries to, during a hold.
    Buys { is_trial: bool },
    /// Reads the session.
    Reads,
    /// Changes the exit.
    Rotates,
    /// Lengthens the session, a static one.
    Renews,
    /// Ends the session.
    Ends,
    /// Lends the session.
    Lends,
    /// Waits to read the session.
    Waits,
    /// The purchase is in doubt, and the slot anybody's. `resends`: its key may be sent again.
    Doubts { resends: bool },
    /// Rests: the slot can't be used for now, and is looked at again.
    Rests,
    /// The session is of another request than the pool's, and left alone.
    Left,
    /// Its session is over, and nothing is bought in its place.
    Empty,
}

impl Doing {
    /// Returns true if a command of the pool's works on the slot.
    pub(super) fn is_at_work(self) -> bool {
        self.is_coming() || self == Doing::Ends
    }

    /// Returns true if a session is on its way.
    pub(super) fn is_coming(self) -> bool {
        matches!(self, Doing::Takes { ends: false } | Doing::Buys { .. } | Doing::Reads | Doing::Rotates | Doing::Renews)
    }

    pub(super) fn state(self, is_lent: bool) -> Option<PoolSlotState> {
        Some(match self {
            Doing::Lends if is_lent => PoolSlotState::Leased,
            Doing::Lends => PoolSlotState::Ready,
            Doing::Doubts { .. } => PoolSlotState::InDoubt,
            Doing::Empty => return None,
            Doing::Reads | Doing::Rotates | Doing::Renews => PoolSlotState::Changing,
            doing if doing.is_coming() => PoolSlotState::Creating,
            _ => PoolSlotState::Resting,
        })
    }
}

/// A slot of which this client knows something.
#[derive(Debug, Clone, Hash)]
pub(super) struct HeldSlot {
    pub(super) doing: Doing,
    pub(super) session: Option<Box<PoolSession>>,
    /// When it is looked at again.
    wakes: Option<Millis>,
    /// The number of the last work on it.
    work: WorkNo,
}

#[derive(Debug, Clone, Hash)]
pub(super) struct PoolSession {
    pub(super) id: ArcStr,
    pub(super) proxy: Json,
    pub(super) generation: u32,
    pub(super) ready_at: Millis,
    pub(super) read_at: Millis,
    /// When its exit is old.
    pub(super) old_at: Option<Millis>,
    /// When it is read again, as a read has failed.
    pub(super) read_again_at: Option<Millis>,
    /// For what its exit is to change; where nothing was seen, it is time.
    pub(super) seen: Option<Seen>,
    /// The blocks that count against the session, and not only against its exit.
    pub(super) failures: SessionFailures,
    /// True if the session is to be ended once its leases are back.
    pub(super) ends_after_leases: bool,
    /// True if a caller has discarded the session and it is not to be ended: it is not lent any more.
    pub(super) is_discarded: bool,
    /// The notes of its exit in its record, until it is lent.
    pub(super) recalled: Option<Box<SessionNotes>>,
    /// The callers' data.
    pub(super) data: Option<Json>,
    /// True if they are to be written.
    pub(super) is_data_new: bool,
    /// True if the session's record has notes of its exit.
    pub(super) is_noted: bool,
    /// True if this client has bought the session, so that it has watched all of its life.
    pub(super) is_bought: bool,
    /// Since when it is to be renewed.
    pub(super) renewal_wanted_at: Option<Millis>,
    /// True if the session may have been renewed, and nothing can be sent to find out: it is not renewed again.
    pub(super) is_unsure: bool,
    /// True if a renewal of the session is to be continued before it is read again.
    pub(super) renews_again: bool,
}

impl PoolSession {
    pub(super) fn new(id: ArcStr, proxy: Json, now: Millis) -> Self {
        let (ready_at, read_at) = (now, now);
        PoolSession {
            id,
            proxy,
            generation: 1,
            ready_at,
            read_at,
            old_at: None,
            read_again_at: None,
            seen: None,
            failures: SessionFailures::default(),
            ends_after_leases: false,
            is_discarded: false,
            recalled: None,
            data: None,
            is_data_new: false,
            is_noted: false,
            is_bought: false,
            renewal_wanted_at: None,
            is_unsure: false,
            renews_again: false,
        }
    }

    /// The session has another exit, or other credentials.
    pub(super) fn next_generation(&mut self) {
        self.generation = self.generation.saturating_add(1);
        (self.recalled, self.is_data_new) = (None, false);
        self.data = self.data.take().filter(|_| !holds(PoolRule::DataEndsWithExit));
    }

    /// Takes what the session's record noted of its exit.
    pub(super) fn recall(self, notes: Option<SessionNotes>) -> Self {
        let Some(notes) = notes else { return self };
        let data = notes.data.clone().filter(|_| holds(PoolRule::DataIsTakenOver));
        PoolSession { generation: notes.generation.max(1), data, is_noted: !notes.is_empty(), recalled: Some(Box::new(notes)), ..self }
    }

    pub(super) fn has_proxy(&self) -> bool {
        self.proxy.text().starts_with('{')
    }

    /// Returns true if it is lent without another read: it was read not long ago, or that has failed and is tried again beside its leases.
    pub(super) fn is_fresh(&self, now: Millis) -> bool {
        now.saturating_sub(self.read_at) < CHECK || self.read_again_at.is_some()
    }

    /// The request to read it.
    pub(super) fn to_read(&self) -> GetSession {
        GetSession { session_id: self.id.to_string(), include_credentials: Some(true) }
    }

    /// Why its exit changes.
    pub(super) fn rotates_for(&self) -> RotateReason {
        match self.seen {
            None => RotateReason::Scheduled,
            Some(Seen::Status(403)) => RotateReason::Http403,
            Some(Seen::Status(429)) => RotateReason::Http429,
            Some(Seen::Captcha) => RotateReason::Captcha,
            Some(Seen::Timeout) => RotateReason::Timeout,
            Some(_) => RotateReason::Block,
        }
    }
}

/// How many slots are in which state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Counts {
    pub(super) lends: u32,
    pub(super) coming: u32,
    /// Of those that are coming, the ones that are bought, that are renewed, and that are read.
    pub(super) buying: u32,
    pub(super) renewing: u32,
    pub(super) reading: u32,
    pub(super) rotating: u32,
    pub(super) waiting: u32,
    pub(super) in_doubt: u32,
    pub(super) resting: u32,
    pub(super) left: u32,
    pub(super) empty: u32,
}

impl Counts {
    fn of(&mut self, doing: Doing) -> &mut u32 {
        match doing {
            Doing::Lends => &mut self.lends,
            Doing::Rotates => &mut self.rotating,
            Doing::Waits => &mut self.waiting,
            Doing::Doubts { .. } => &mut self.in_doubt,
            Doing::Empty => &mut self.empty,
            Doing::Left => &mut self.left,
            Doing::Rests | Doing::Ends | Doing::Takes { ends: true } => &mut self.resting,
            Doing::Takes { ends: false } | Doing::Buys { .. } | Doing::Reads | Doing::Renews => &mut self.coming,
        }
    }
}

#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Slots {
    held: BTreeMap<SlotNo, HeldSlot>,
    /// The slots of which nothing is known.
    unknown: FreeRanges,
    /// The size of the pool here, and how many of the slots below it are known.
    size: SlotNo,
    within: u32,
    pub(super) counts: Counts,
    /// Those that this client does not have.
    pub(super) others: OtherSlots,
    /// The slots by when they are looked at again.
    wakes: BTreeSet<(Millis, SlotNo)>,
    /// Those in doubt whose key may be sent again.
    resendable: BTreeSet<SlotNo>,
}

impl Slots {
    pub(super) fn new(size: SlotNo) -> Self {
        Slots { size, ..Slots::default() }
    }

    /// How many slots are not known of those that may be bought for.
    pub(super) fn room(&self) -> u32 {
        self.size - self.within
    }

    pub(super) fn set(&mut self, slot: SlotNo, doing: Doing, wakes: Option<Millis>) {
        let held = self.held.entry(slot).or_insert_with(|| {
            self.counts.resting += 1;
            self.unknown.take(slot);
            self.others.forget(slot);
            self.within += u32::from(slot < self.size);
            HeldSlot { doing: Doing::Rests, session: None, wakes: None, work: 0 }
        });
        *self.counts.of(held.doing) -= 1;
        *self.counts.of(doing) += 1;
        self.counts.buying -= u32::from(matches!(held.doing, Doing::Buys { .. }));
        self.counts.buying += u32::from(matches!(doing, Doing::Buys { .. }));
        self.counts.renewing -= u32::from(held.doing == Doing::Renews);
        self.counts.renewing += u32::from(doing == Doing::Renews);
        self.counts.reading -= u32::from(held.doing == Doing::Reads);
        self.counts.reading += u32::from(doing == Doing::Reads);
        held.doing = doing;
        match doing {
            Doing::Doubts { resends: true } => self.resendable.insert(slot),
            _ => self.resendable.remove(&slot),
        };
        if let Some(at) = std::mem::replace(&mut held.wakes, wakes) {
            self.wakes.remove(&(at, slot));
        }
        wakes.into_iter().for_each(|at| _ = self.wakes.insert((at, slot)));
    }

    /// Schedules the next look at a slot, whatever its work.
    pub(super) fn wake_at(&mut self, slot: SlotNo, at: Millis) {
        if let Some(doing) = self.doing(slot) {
            self.set(slot, doing, Some(at));
        }
    }

    pub(super) fn remove(&mut self, slot: SlotNo) {
        self.set(slot, Doing::Rests, None);
        self.counts.resting -= 1;
        if self.held.remove(&slot).is_some() {
            self.within -= u32::from(slot < self.size);
        }
        self.unknown.free(slot);
    }

    /// Slots below that one of which nothing is known, from `first` on and then from 0.
    pub(super) fn unknown(&self, first: SlotNo, below: SlotNo) -> impl Iterator<Item = SlotNo> {
        self.unknown.from(first, below)
    }

    /// This is the last work on a slot.
    pub(super) fn works(&mut self, slot: SlotNo, work: WorkNo) {
        self.held.get_mut(&slot).into_iter().for_each(|held| held.work = work);
    }

    /// Returns true if that work is the last one on the slot, without a change since.
    pub(super) fn is_at(&self, slot: SlotNo, work: WorkNo) -> bool {
        self.held.get(&slot).is_some_and(|held| held.work == work)
    }

    /// One in doubt whose key may be sent again.
    pub(super) fn resendable(&self) -> Option<SlotNo> {
        self.resendable.first().copied()
    }

    /// Returns true if there is a session without work.
    pub(super) fn has_idle_sessions(&self) -> bool {
        self.counts.lends + self.counts.waiting > 0
    }

    pub(super) fn doing(&self, slot: SlotNo) -> Option<Doing> {
        self.held.get(&slot).map(|held| held.doing)
    }

    pub(super) fn session(&self, slot: SlotNo) -> Option<&PoolSession> {
        self.held.get(&slot)?.session.as_deref()
    }

    pub(super) fn session_mut(&mut self, slot: SlotNo) -> Option<&mut PoolSession> {
        self.held.get_mut(&slot)?.session.as_deref_mut()
    }

    pub(super) fn set_session(&mut self, slot: SlotNo, session: PoolSession) {
        if let Some(held) = self.held.get_mut(&slot) {
            held.session = Some(Box::new(session));
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (SlotNo, &HeldSlot)> {
        self.held.iter().map(|(slot, held)| (*slot, held))
    }

    /// Those of which something holds.
    pub(super) fn which(&self, holds: impl Fn(&HeldSlot) -> bool) -> Vec<SlotNo> {
        self.iter().filter(|(_, held)| holds(held)).map(|(slot, _)| slot).collect()
    }

    /// How many slots this client knows something of.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.held.len()).unwrap_or(u32::MAX)
    }

    pub(super) fn is_known(&self, slot: SlotNo) -> bool {
        self.held.contains_key(&slot)
    }

    /// A slot whose time has come.
    pub(super) fn pop_due(&mut self, now: Millis) -> Option<(SlotNo, Doing)> {
        let (at, slot) = self.wakes.first().copied().filter(|(at, _)| *at <= now)?;
        self.wakes.remove(&(at, slot));
        let held = self.held.get_mut(&slot)?;
        held.wakes = None;
        Some((slot, held.doing))
    }

    pub(super) fn next_wake(&self) -> Option<Millis> {
        self.wakes.first().map(|(at, _)| *at)
    }

    /// The slots in doubt without a scheduled look.
    pub(super) fn forgotten_doubts(&self) -> Vec<SlotNo> {
        self.which(|held| matches!(held.doing, Doing::Doubts { .. }) && held.wakes.is_none())
    }
}
