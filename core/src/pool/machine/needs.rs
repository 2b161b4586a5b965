//! How many sessions a pool lacks, and how many it may buy.

use super::root::{Machine, is_dynamic};
use crate::client::Client;
use crate::contract::pools::PoolReplace;
use crate::pool::buyer::{HoldTrial, May};

impl Machine {
    /// Returns true if another session is bought for one that is over.
    pub(super) fn replaces(&self) -> bool {
        let default = if is_dynamic(&self.options) { PoolReplace::Ended } else { PoolReplace::Never };
        self.options.replace.unwrap_or(default) != PoolReplace::Never
    }

    /// Returns true if the available sessions are not known yet.
    pub(super) fn is_asking(&self) -> bool {
        !self.asking.out.is_empty() || self.asking.reads_products
    }

    /// How many sessions more could be used than there are or are coming: to be taken over from whoever has let go of them.
    pub(super) fn lacking(&self) -> u32 {
        let ahead = self.keep_ready().saturating_sub(self.leases.idle_count());
        self.beyond_coming(self.for_waiting() + ahead)
    }

    /// How many are wanted that would have to be bought. Where a free session does not suit whoever waits, since it rests for their target,
    /// they wait for that: what was seen there is no reason to buy.
    pub(super) fn wanted(&self) -> u32 {
        self.beyond_coming((self.for_waiting() + self.keep_ready()).saturating_sub(self.leases.idle_count()))
    }

    /// How many sessions those need who wait and have none: several may share one.
    pub(super) fn for_waiting(&self) -> usize {
        self.leases.unbound().div_ceil(self.options.leases_per_session.unwrap_or(1).max(1) as usize)
    }

    pub(super) fn beyond_coming(&self, sessions: usize) -> u32 {
        let counts = &self.slots.counts;
        let coming = counts.coming + counts.rotating;
        let more = u32::try_from(sessions).unwrap_or(u32::MAX).saturating_sub(coming);
        more.min(self.slots.room())
    }

    /// How many purchases may be begun now.
    pub(super) fn allowed(&self, client: &Client) -> (u32, Option<HoldTrial>) {
        if self.shared.forbids_buying().is_some() {
            return (0, None);
        }
        match self.buyer.may(client.unix()) {
            May::Buy(room) => (room, None),
            // By whoever owns the pool's record.
            May::Try(trial) if self.shared.is_owned() => (1, Some(trial)),
            May::Try(_) | May::Wait => (0, None),
        }
    }

    /// Returns true if a trial is due that this client could make. Between two claims of a slot none is due: the pool's record is free for
    /// others then.
    pub(super) fn wants_trial(&self, client: &Client) -> bool {
        if self.closing.is_some() || self.shared.forbids_buying().is_some() || self.asking.next > client.monotonic() {
            return false;
        }
        let May::Try(trial) = self.buyer.may(client.unix()) else { return false };
        (trial == HoldTrial::Same && self.slots.resendable().is_some()) || self.wanted() > 0
    }

    /// Returns true if nothing is to be bought, except by the trial of a hold.
    pub(super) fn may_not_buy(&self) -> bool {
        self.shared.forbids_buying().is_some() || self.buyer.hold().is_some()
    }

    /// Returns true if a purchase would be made now, so that the pool's record is to be read before.
    pub(super) fn is_to_buy(&self, client: &Client) -> bool {
        let may_buy = || matches!(self.buyer.may(client.unix()), May::Buy(_));
        let is_asking = self.is_asking() || self.asking.next > client.monotonic();
        self.closing.is_none() && !is_asking && self.wanted() > 0 && self.shared.forbids_buying().is_none() && may_buy()
    }
}
