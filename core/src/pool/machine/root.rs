//! The machine itself: its parts, and the names and requests that all of them use. The order of its work is in `turn`.

use std::collections::BTreeMap;

use arcstr::ArcStr;

use super::action::PoolAction;
use super::callers::Callers;
use super::parts::{Asking, Away, Closing, Ends, Look, SpentToday};
use super::shared::SharedRecord;
use super::slots::Slots;
use crate::client::{CallOptions, PoolNo, WorkNo};
use crate::collections::Map;
use crate::contract::pools::{OpenPool, PoolHold, PoolHoldReason};
use crate::contract::{Encode, Json, Shape, Shaped, json_of};
use crate::engine::{Answered, EventKind};
use crate::entropy::Dice;
use crate::policy::{Advice, Effect, Error, Kind};
use crate::pool::buyer::{Buyer, BuyingChange};
use crate::pool::leases::{LeaseTerms, Leases, SlotNo, WaiterId};
use crate::pool::record::RecordChange;
use crate::pool::share::Sharing;
use crate::pool::targets::{BlockTracker, ProxyTracker, TargetId};
use crate::pool::unavailable::shown;
use crate::state::{CommandId, Name, Space};
use crate::time::{Millis, Now};

/// How long a lease is waited for.
pub(super) const TIMEOUT: Millis = 30_000;
/// Sessions beyond the most that were in use at the same time within this are let go of.
const IDLE: Millis = 5000;
/// So many blocks without a good answer, and a session is no use any more.
pub(super) const BLOCKS: u32 = 3;
/// So many names of targets are remembered.
const LABELS: usize = 512;

/// The purpose of work.
#[derive(Debug, Clone, Copy)]
pub(super) enum For {
    Slot(SlotNo),
    /// The products are read, before a trial.
    Products,
}

#[derive(Debug)]
pub(in crate::pool) struct Machine {
    pub(super) number: PoolNo,
    /// The time of what it was told last.
    pub(in crate::pool) now: Now,
    pub(super) dice: Dice,
    /// The space in which its record and its slots have their names.
    pub(super) space: Space,
    /// The requests to the client since it was told something.
    actions: Vec<PoolAction>,
    pub(super) options: OpenPool,
    /// True if the pool was joined as others had opened it, to read its status and to change how it buys: it neither lends nor buys.
    pub(super) joins: bool,
    /// The request for its sessions, as JSON.
    pub(super) params: String,
    pub(super) leases: Leases,
    pub(super) buyer: Buyer,
    pub(super) blocking: BlockTracker,
    pub(super) proxies: ProxyTracker,
    /// The names of targets, for people.
    pub(super) labels: Map<TargetId, ArcStr>,
    pub(super) slots: Slots,
    pub(super) callers: Callers,
    /// The things that the client does for the pool.
    pub(super) works: BTreeMap<WorkNo, For>,
    last_work: WorkNo,
    pub(super) asking: Asking,
    pub(super) shared: SharedRecord,
    pub(super) sharing: Sharing,
    pub(super) closing: Option<Closing>,
    pub(super) spent: SpentToday,
    /// A service that does not answer, as far as is known.
    pub(super) away: Option<Away>,
    /// The error of the last purchase that failed, or may have bought.
    pub(super) refused: Option<Box<Error>>,
    /// When there is something to do again.
    pub(in crate::pool) next: Option<Millis>,
}

impl Machine {
    /// `mark`: a text that no other client of the pool has.
    pub(in crate::pool) fn new(number: PoolNo, options: OpenPool, space: Space, mark: String, dice: Dice) -> Self {
        let terms = LeaseTerms {
            per_session: options.leases_per_session.unwrap_or(1),
            rotate_after_uses: options.rotate_after_uses.filter(|_| is_dynamic(&options)),
            size: options.size,
        };
        Machine {
            number,
            now: Now::default(),
            dice,
            space,
            actions: Vec::new(),
            params: json_of(&options.session()),
            leases: Leases::new(terms),
            buyer: Buyer::default(),
            blocking: BlockTracker::default(),
            proxies: ProxyTracker::default(),
            labels: Map::default(),
            slots: Slots::new(options.size),
            callers: Callers::default(),
            works: BTreeMap::new(),
            last_work: 0,
            asking: Asking::default(),
            shared: SharedRecord::new(&options),
            sharing: Sharing::new(mark, options.idle_release_ms.unwrap_or(IDLE), options.keep_ready.unwrap_or_default()),
            closing: None,
            spent: SpentToday::default(),
            away: None,
            refused: None,
            next: None,
            joins: false,
            options,
        }
    }

    /// A pool that others have opened.
    pub(in crate::pool) fn joining(number: PoolNo, name: String, space: Space, dice: Dice) -> Self {
        let machine = Machine::new(number, OpenPool { name, size: 1, ..OpenPool::default() }, space, String::new(), dice);
        Machine { joins: true, shared: SharedRecord::default(), ..machine }
    }

    pub(super) fn label(&mut self, target: TargetId, label: &str) {
        if self.labels.len() >= LABELS {
            self.labels.retain(|known, _| self.blocking.knows(*known));
        }
        if self.labels.len() < LABELS {
            self.labels.get_or_insert_with(target, || shown(label).into());
        }
    }

    pub(super) fn end_wait(&mut self, waiter: WaiterId, error: Error) {
        self.leases.leave(waiter);
        if let Some(command) = self.callers.remove(waiter) {
            self.complete(command, Err(error));
        }
    }

    /// Asks the client for something.
    pub(super) fn act(&mut self, action: PoolAction) {
        self.actions.push(action);
    }

    pub(super) fn complete(&mut self, command: CommandId, result: Result<Answered, Error>) {
        self.act(PoolAction::Complete(command, Box::new(result)));
    }

    pub(super) fn notify(&mut self, what: EventKind) {
        self.act(PoolAction::Notify(what));
    }

    /// The requests to the client since the last call.
    pub(in crate::pool) fn take_actions(&mut self) -> Vec<PoolAction> {
        std::mem::take(&mut self.actions)
    }

    /// For how long sessions stay that are not needed any more.
    pub(super) fn idle_release(&self) -> Millis {
        self.options.idle_release_ms.unwrap_or(IDLE)
    }

    pub(super) fn keep_ready(&self) -> usize {
        self.options.keep_ready.unwrap_or_default() as usize
    }

    pub(in crate::pool) fn name(&self) -> &str {
        &self.options.name
    }

    /// The request for its sessions, as JSON.
    pub(in crate::pool) fn request(&self) -> &str {
        &self.params
    }

    /// Returns true if the pool is open under this name: one that is being closed blocks no other.
    pub(in crate::pool) fn is_named(&self, name: &str) -> bool {
        self.options.name == name && self.closing.is_none()
    }

    /// The hold as people see it.
    pub(super) fn hold(&self, unix: Millis) -> Option<PoolHold> {
        let (reason, since, retry_at) = self.held_by()?;
        Some(reason.told(since.unwrap_or(unix), retry_at))
    }

    /// Why nothing is bought, since when where that is known, and when one purchase is tried.
    pub(super) fn held_by(&self) -> Option<(PoolHoldReason, Option<Millis>, Option<Millis>)> {
        let forbidden = self.shared.forbids_buying().filter(|_| self.shared.is_open).map(|reason| (reason, None, None));
        let hold = || self.buyer.hold().map(|hold| (hold.reason, Some(hold.since), hold.retry_at));
        forbidden.or_else(hold).or_else(|| self.shared.away_since().map(|since| (PoolHoldReason::Store, Some(since), None)))
    }

    /// Something of purchases that all clients are to know.
    pub(super) fn tell_all(&mut self, changes: impl IntoIterator<Item = BuyingChange>) {
        changes.into_iter().for_each(|change| self.change(RecordChange::Buying(change)));
    }

    /// A session of a slot can be used: where that was in question, all clients are to know.
    pub(super) fn tell_usable(&mut self, slot: SlotNo) {
        let change = self.buyer.usable(slot, self.now.unix);
        self.tell_all(change);
    }

    pub(super) fn change(&mut self, change: RecordChange) {
        self.shared.known.apply(&change, &self.options, &self.shared.request);
        self.shared.changes.push(change);
        self.buyer.changes(self.shared.known.buying, self.now.unix, self.now.monotonic);
    }

    /// The number of work that begins.
    pub(super) fn begin_work(&mut self, purpose: For) -> WorkNo {
        self.last_work = self.last_work.wrapping_add(1);
        if let For::Slot(slot) = purpose {
            self.slots.works(slot, self.last_work);
        }
        self.works.insert(self.last_work, purpose);
        self.last_work
    }

    pub(super) fn slot_name(&self, slot: SlotNo) -> Name {
        self.space.slot(&self.slot_text(slot))
    }

    pub(super) fn slot_text(&self, slot: SlotNo) -> String {
        format!("{}/{slot}", self.options.name)
    }

    /// Returns true if sessions found in slots are to be ended.
    pub(super) fn ends_what_it_finds(&self) -> bool {
        self.ends().is_some_and(|ends| ends.everywhere)
    }

    /// Returns true if slots are claimed, to end their sessions, once the pool's record allows it: a client that releases one then knows of
    /// it.
    pub(super) fn is_to_find(&self) -> bool {
        self.asking.ends_from.is_some() && self.ends_what_it_finds()
    }

    /// When they are asked for again, where that waits.
    pub(super) fn finds_at(&self, now: Millis) -> Option<Millis> {
        Some(self.asking.next).filter(|at| self.is_to_find() && *at > now)
    }

    pub(super) fn ends(&self) -> Option<Ends> {
        let ends = self.closing.as_ref()?.ends?;
        (is_dynamic(&self.options) || ends.include_static).then_some(ends)
    }

    /// Returns true if the read is waited for.
    pub(super) fn looks(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.look == Look::Asked)
    }

    /// The record was read, or can't be.
    pub(super) fn looked(&mut self) {
        self.closing.iter_mut().filter(|closing| closing.look == Look::Asked).for_each(|closing| closing.look = Look::Done);
    }

    /// Returns true if nothing of the pool is left to do.
    pub(super) fn is_gone(&self) -> bool {
        self.closing.as_ref().is_some_and(|closing| closing.is_told && closing.look == Look::Done)
            && self.spent.asks.is_empty()
            && self.works.is_empty()
            && self.asking.out.is_empty()
            && self.asking.kept.is_empty()
            && !self.is_to_find()
            && !self.slots.has_idle_sessions()
            && !self.shared.is_behind()
            && !self.shared.may_be_left
    }

    /// Returns true if the pool is closed, and nothing of it is under way.
    pub(in crate::pool) fn is_closed(&self) -> bool {
        self.is_gone() && self.shared.is_idle()
    }
}

/// How a slot of the pool is bought for.
pub(in crate::pool) fn call_options(open: &OpenPool) -> CallOptions {
    CallOptions {
        credentials: Some(true),
        max_unit_price: open.max_unit_price,
        expected_charge_usd: open.expected_charge_usd,
        retry_paid: Some(open.retry_paid.unwrap_or_default()),
        product: open.product.clone(),
        ..CallOptions::default()
    }
}

/// The error for a request to a closed pool.
pub(in crate::pool) fn is_closed(operation: &'static str) -> Error {
    let what = "the pool is closed or drained; open it again";
    Error::new(Kind::Misuse, Effect::None, operation, what, Advice::ChangeRequest)
}

/// The answer of a pool.
pub(super) fn told<T: Encode + Shaped>(value: &T) -> Answered {
    answered(Json::checked(json_of(value)), const { &T::SHAPE })
}

pub(super) fn answered(raw: Json, shape: &'static Shape) -> Answered {
    Answered { raw, shape, ..Answered::of(Default::default()) }
}

pub(super) fn is_dynamic(options: &OpenPool) -> bool {
    options.session_type.as_str() == "dynamic"
}

pub(super) fn hash(of: &str, text: &str) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = crate::entropy::digest_bytes(of, text.as_bytes());
    u64::from_be_bytes([a, b, c, d, e, f, g, h])
}
