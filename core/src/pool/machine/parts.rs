//! Parts of the machine's state: how the store is asked for slots, how it is closed, what was bought today.

use std::collections::BTreeMap;

use crate::contract::Decimal;
use crate::pool::leases::SlotNo;
use crate::pool::targets::TargetId;
use crate::state::{CommandId, Name};
use crate::time::{DAY, Millis};

/// A pool that is closed waits so long, after the grace of its leases, for sessions that are being ended and for the store.
pub(super) const PATIENCE: Millis = 60_000;

/// How the store is asked for slots.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Asking {
    /// The names that were asked for, while the store is.
    pub(super) out: BTreeMap<Name, SlotNo>,
    /// Since when a session more is wanted.
    pub(super) wanted_since: Option<Millis>,
    /// The slots whose session was found to have expired, and until when that is news enough to buy another one.
    pub(super) checked: BTreeMap<SlotNo, Millis>,
    /// The slots that were empty of late, and until when they are not asked for where nothing may be bought.
    pub(super) empty: BTreeMap<SlotNo, Millis>,
    /// The slots that were let go of since their session rests for those who ask: until when they are not asked for, where it is for these
    /// targets alone.
    pub(super) vain: BTreeMap<SlotNo, (Millis, Vec<TargetId>)>,
    /// The most that were asked for.
    pub(super) most: u32,
    /// True if a session that is found there is the trial of a hold.
    pub(super) tries: bool,
    /// The slot from which sessions are searched for to end them, if they are.
    pub(super) ends_from: Option<SlotNo>,
    /// Not before this.
    pub(super) next: Millis,
    /// True if all slots that may have a session to take over were checked, so that only slots to buy for are claimed.
    pub(super) is_all: bool,
    /// When that was so first.
    pub(super) all_at: Millis,
    /// True if the store gave as many slots as were asked for last, and some with nothing under them.
    pub(super) has_free: bool,
    /// How many slots were looked at for that.
    pub(super) looked: u32,
    /// How many slots were found instead whose session is over, so that the store may have kept back one that has a session.
    pub(super) ended: u32,
    /// The slot at which that goes on.
    pub(super) from: Option<SlotNo>,
    /// The claimed slots that wait for the pool's record.
    pub(super) kept: Vec<ClaimedSlot>,
    /// True if a trial waits for the products.
    pub(super) reads_products: bool,
}

impl Asking {
    /// There may be something to take over again.
    pub(super) fn look_anew(&mut self) {
        (self.is_all, self.looked, self.ended, self.from) = (false, 0, 0, None);
    }
}

/// A claimed slot that waits.
#[derive(Debug, Clone, Hash)]
pub(super) struct ClaimedSlot {
    pub(super) name: Name,
    pub(super) slot: SlotNo,
    pub(super) since: Millis,
    /// True if a purchase is in doubt there, which is sent again.
    pub(super) is_doubt: bool,
    pub(super) is_trial: bool,
    pub(super) mark: Mark,
}

/// The record says that a trial goes on, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    None,
    /// The change is being put.
    Out,
    Put,
}

/// A service that does not answer, as far as is known.
#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Away {
    /// The slot whose session could not be read, or changed; and whether that is so of another one, too.
    pub(super) slot: SlotNo,
    pub(super) is_many: bool,
    /// Until when that counts.
    pub(super) until: Millis,
}

#[derive(Debug, Clone, Hash)]
pub(super) struct Closing {
    /// The commands that wait for it, and their operations.
    pub(super) commands: Vec<(CommandId, &'static str)>,
    /// True if they have their results.
    pub(super) is_told: bool,
    /// Until when leases are waited for.
    pub(super) until: Millis,
    /// When those who drain the pool are told what still lives.
    pub(super) told_by: Millis,
    /// The sessions to end, static ones too, if any.
    pub(super) ends: Option<Ends>,
    pub(super) look: Look,
}

/// The progress of the last read of its record by a client that closes the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Look {
    /// Once all is let go of.
    Due,
    Asked,
    Done,
}

#[derive(Debug, Clone, Copy, Hash)]
pub(super) struct Ends {
    pub(super) include_static: bool,
    /// True if sessions that no client has are ended, too.
    pub(super) everywhere: bool,
}

impl Ends {
    /// Both, where one is said after the other.
    pub(super) fn join(self, other: Ends) -> Ends {
        Ends { include_static: self.include_static || other.include_static, everywhere: self.everywhere || other.everywhere }
    }
}

impl Closing {
    pub(super) fn next(&self, now: Millis) -> Option<Millis> {
        let last = self.until.saturating_add(PATIENCE);
        let told_by = Some(self.told_by).filter(|_| !self.is_told);
        [Some(self.until), told_by, Some(last)].into_iter().flatten().filter(|at| *at > now).min()
    }
}

/// The spending of this client on a UTC day.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct SpentToday {
    day: i64,
    usd: Decimal,
    /// The commands that ask for the slots of other clients.
    pub(super) asks: Vec<CommandId>,
    /// True while the store is read for them.
    pub(super) is_reading: bool,
    /// The names of the slots that the store has not listed yet.
    pub(super) names: BTreeMap<Name, SlotNo>,
}

impl SpentToday {
    pub(super) fn add(&mut self, unix: Millis, usd: Decimal) {
        let day = unix.div_euclid(DAY);
        if day != self.day {
            (self.day, self.usd) = (day, Decimal::from(0));
        }
        self.usd = crate::engine::sum(self.usd, usd);
    }

    pub(super) fn on(&self, unix: Millis) -> Decimal {
        if unix.div_euclid(DAY) == self.day { self.usd } else { Decimal::from(0) }
    }
}
