//! Pools of sessions: what one is opened with, what a lease is asked for with, and what hosts are told of both. They are Hopline's own; the
//! contract knows sessions only.

use super::agent::{CreateSession, Protocol, ProvisioningMode, Proxy, SessionType};
use std::fmt;

use serde::Deserialize;

use super::{Decimal, Shape, Shaped};
use crate::json::from_json;

closed_enum! {
    /// What a pool buys for a session that it can't lend any more.
    pub enum PoolReplace {
        /// A session that is over; the default for dynamic sessions.
        Ended = "ended",
        /// Also one that stays blocked after its rotations: it is terminated, and another one is bought.
        Failing = "failing",
        /// Nothing: its slot stays empty; the default for static sessions.
        Never = "never",
    }
}

closed_enum! {
    /// What opening a pool does if it was opened with another request before.
    pub enum PoolOnChange {
        /// Opening fails, and the error names what differs; the default.
        Refuse = "refuse",
        /// This request becomes the pool's. Sessions of the old one are not lent again: dynamic ones are terminated, static ones are left.
        Replace = "replace",
    }
}

closed_enum! {
    /// Why a pool does not buy.
    pub enum PoolHoldReason {
        /// The product is out of stock.
        OutOfStock = "out_of_stock",
        /// The price is above the highest that is paid.
        Price = "price",
        /// The account has as many sessions as it may.
        SessionLimit = "session_limit",
        /// The account's balance is too low.
        Balance = "balance",
        /// The account's budget is used up.
        Budget = "budget",
        /// The day's cap is reached, the pool's or its client's.
        Cap = "cap",
        /// The service did not answer, or asked to wait for longer than a purchase does.
        NoAnswer = "no_answer",
        /// The service failed, and may have bought.
        Backend = "backend",
        /// The store fails.
        Store = "store",
        /// Sessions end within a minute of being ready.
        ShortLived = "short_lived",
        /// The service refuses what the pool asks for.
        Request = "request",
        /// The account or the key may not buy.
        Account = "account",
        /// Another client has opened the pool with another request, which is the pool's from then on.
        Replaced = "replaced",
        /// Too many purchases are in doubt: settle one.
        InDoubt = "in_doubt",
        /// Somebody has paused the pool.
        Paused = "paused",
        /// Somebody drains the pool everywhere.
        Draining = "draining",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes the enum")]
impl Default for PoolHoldReason {
    fn default() -> Self {
        PoolHoldReason::NoAnswer
    }
}

closed_enum! {
    /// Who can end it that a pool does not buy.
    pub enum PoolNeeds {
        /// It ends by itself.
        Nobody = "nobody",
        /// The program has to ask for something else, or resume the pool.
        Caller = "caller",
        /// A person has to look at the account, or settle a doubt.
        Person = "person",
    }
}

closed_enum! {
    /// What a slot of a pool is doing.
    pub enum PoolSlotState {
        /// Its session can be lent.
        Ready = "ready",
        /// Its session is lent.
        Leased = "leased",
        /// Its session is bought, taken over, read or rotated.
        Creating = "creating",
        /// Its session can't be lent for now.
        Resting = "resting",
        /// Its purchase is in doubt.
        InDoubt = "in_doubt",
    }
}

closed_enum! {
    /// Why the session of a slot can't be lent.
    pub enum PoolSlotReason {
        /// It is being bought.
        Buying = "buying",
        /// What the slot holds is being taken over.
        TakingOver = "taking_over",
        /// It is being read.
        Reading = "reading",
        /// Its exit is being changed.
        Rotating = "rotating",
        /// Its exit is to be changed, which may not be done yet.
        ToRotate = "to_rotate",
        /// It is being renewed.
        Renewing = "renewing",
        /// It is being terminated, or is to be.
        Ending = "ending",
        /// It can't be used yet, or could not be read. It is read again every minute.
        NotReady = "not_ready",
        /// Its purchase may have been made, and nobody knows.
        InDoubt = "in_doubt",
        /// It is left as it is: of another request, or its record needs a person.
        Left = "left",
    }
}

closed_enum! {
    /// What to do with a lease after something was seen through it.
    pub enum LeaseAdvice {
        /// Go on with it.
        Keep = "keep",
        /// Give it back, and acquire again: its session rests for this target, or gets another exit.
        GiveBack = "give_back",
        /// Give it back, and come later: the target blocks every exit.
        Wait = "wait",
    }
}

record! {
    /// What a pool buys, how much of it, and how it lends.
    OpenPool {
        /// The pool's name, 1 to 128 bytes: pools of one name in one store and account share their slots.
        name: String => Body, Length(1, 128);
        /// How many sessions there may be at a time, over all clients of the store.
        size: u32 => Body, Between(1, 1_000_000);
        /// `dynamic` or `static`.
        session_type: SessionType => Body;
        /// From a product list.
        product_no: String => Body;
        /// GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
        quantity: Option<Decimal> => Body, Positive, WholeWhen("session_type", "static");
        /// For how long, at least 1; the service does not document the unit.
        duration: Option<i64> => Body, AtLeast(1);
        /// What the proxies are to speak; the server's default is `socks5`.
        protocol: Option<Protocol> => Body;
        /// Country of the exits.
        country_code: Option<String> => Body;
        /// City of the exits.
        city_code: Option<String> => Body;
        /// `purchase` is the server's default; `existing` uses resources of the account and charges nothing.
        provisioning_mode: Option<ProvisioningMode> => Body;
        /// Project code, which some shared static products need.
        project_id: Option<String> => Body;
        /// The most, in USD, that this pool buys in a UTC day, over all clients of the store. Required unless the client has a daily cap.
        daily_cap_usd: Option<Decimal> => Body, AtLeast(0);
        /// The highest price, in USD for one unit, that is paid.
        max_unit_price: Option<Decimal> => Body, AtLeast(0);
        /// What a purchase is to cost, in USD, where no price can tell it.
        expected_charge_usd: Option<Decimal> => Body, AtLeast(0);
        /// Whether to buy again with a new key when the service failed. It may have sold all the same, and then charges twice. Default: false.
        retry_paid: Option<bool> => Body;
        /// How many free sessions to keep at hand ahead of demand in this client, at most `size`. Default: 0, and a session is bought when
        /// somebody waits for one.
        ready: Option<u32> => Body, AtLeast(0);
        /// How many purchases may be under way at a time. Default: 8.
        max_creating: Option<u32> => Body, AtLeast(1);
        /// With so many slots in doubt nothing more is bought. Default: a quarter of `size`, at least 2.
        max_in_doubt: Option<u32> => Body, AtLeast(1);
        /// What is bought for a session that can't be lent any more. Default: `ended` for dynamic sessions, `never` for static ones.
        replace: Option<PoolReplace> => Body;
        /// An expired static session is renewed for so long instead, and keeps its address; the service does not document the unit.
        renew_duration: Option<i64> => Body, AtLeast(1);
        /// Further statuses that end a session, at most 16, each of 1 to 64 bytes.
        ends: Option<Vec<String>> => Body;
        /// How many leases one session may have at a time. Default: 1.
        leases_per_session: Option<u32> => Body, AtLeast(1);
        /// A dynamic session gets another exit after so many leases. Default: it does not.
        rotate_after_uses: Option<u32> => Body, AtLeast(1);
        /// A dynamic session gets another exit at this age of its exit. Default: it does not.
        rotate_after_ms: Option<i64> => Body, AtLeast(1000);
        /// A session that was idle for so long is released, for other clients. Default: 60 s.
        idle_release_ms: Option<i64> => Body, AtLeast(0);
        /// A session that was not read for so long is read before it is lent. Default: 10 min.
        check_after_ms: Option<i64> => Body, AtLeast(0);
        /// A lease that is not back after so long is reported by an event. Default: 10 min.
        leak_after_ms: Option<i64> => Body, AtLeast(0);
        /// A lease that is not back after so long is taken back. Default: it is not.
        max_lease_ms: Option<i64> => Body, AtLeast(1);
        /// What to do if the pool was opened with another request before. Default: `refuse`.
        on_change: Option<PoolOnChange> => Body;
    }
}
from_json!(OpenPool {
    name,
    size,
    session_type,
    product_no,
    quantity,
    duration,
    protocol,
    country_code,
    city_code,
    provisioning_mode,
    project_id,
    daily_cap_usd,
    max_unit_price,
    expected_charge_usd,
    retry_paid,
    ready,
    max_creating,
    max_in_doubt,
    replace,
    renew_duration,
    ends,
    leases_per_session,
    rotate_after_uses,
    rotate_after_ms,
    idle_release_ms,
    check_after_ms,
    leak_after_ms,
    max_lease_ms,
    on_change,
});

impl OpenPool {
    /// What each session of the pool is.
    pub(crate) fn session(&self) -> CreateSession {
        CreateSession {
            session_type: self.session_type.clone(),
            product_no: self.product_no.clone(),
            provisioning_mode: self.provisioning_mode.clone(),
            quantity: self.quantity,
            duration: self.duration,
            protocol: self.protocol.clone(),
            country_code: self.country_code.clone(),
            city_code: self.city_code.clone(),
            project_id: self.project_id.clone(),
            ..CreateSession::default()
        }
    }
}

record! {
    /// A pool that is joined: opened as it was opened before, by other programs of this store, to look at it, pause, resume or drain it.
    /// It lends and buys nothing.
    JoinPool {
        /// The pool's name.
        name: String => Body, Length(1, 128);
    }
}
from_json!(JoinPool { name });

told! {
    /// A pool that was opened.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct OpenedPool {
        /// What it is called from now on in this client.
        pub pool: u32,
    }
}

record! {
    /// A lease that is asked for.
    AcquireLease {
        /// The pool.
        pool: u32 => Body;
        /// What is to be reached, such as a host: what is seen there counts for it alone.
        target: Option<String> => Body;
        /// The same key gets the same session as long as this client has it and its exit has not changed.
        key: Option<String> => Body;
        /// How long to wait for a session. Default: 30 s.
        timeout_ms: Option<i64> => Body, AtLeast(0);
    }
}
from_json!(AcquireLease { pool, target, key, timeout_ms });

told! {
    /// A session that was lent.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolLease {
        /// The pool.
        pub pool: u32,
        /// What the lease is called in its pool.
        pub lease: i64,
        /// The slot that the session is of.
        pub slot: u32,
        /// Grows whenever the session gets another exit or other credentials.
        pub generation: u32,
        /// The session.
        pub session_id: String,
        /// How to reach it.
        pub proxy: Proxy,
    }
}

record! {
    /// A lease that is observed or given back.
    LeaseRef {
        /// The pool.
        pool: u32 => Body;
        /// What the lease is called in its pool.
        lease: i64 => Body;
    }
}
from_json!(LeaseRef { pool, lease });

record! {
    /// A pool that is paused or resumed.
    PoolRef {
        /// The pool.
        pool: u32 => Body;
    }
}
from_json!(PoolRef { pool });

record! {
    /// A pool that is looked at.
    PoolStatusOf {
        /// The pool.
        pool: u32 => Body;
        /// Whether to ask the store what other clients have. Default: false, and the rest is `elsewhere`.
        everywhere: Option<bool> => Body;
    }
}
from_json!(PoolStatusOf { pool, everywhere });

record! {
    /// How long to wait for sessions that are kept ready.
    WaitReady {
        /// The pool.
        pool: u32 => Body;
        /// How many are waited for, at most the pool's `ready`. Default: 1.
        count: Option<u32> => Body, AtLeast(1);
        /// For how long. Default: 5 min.
        timeout_ms: Option<i64> => Body, AtLeast(0);
    }
}
from_json!(WaitReady { pool, count, timeout_ms });

record! {
    /// How a pool is closed.
    ClosePool {
        /// The pool.
        pool: u32 => Body;
        /// How long leases are waited for. Default: 10 s.
        grace_ms: Option<i64> => Body, AtLeast(0);
    }
}
from_json!(ClosePool { pool, grace_ms });

record! {
    /// How a pool is drained: closed, and its dynamic sessions terminated.
    DrainPool {
        /// The pool.
        pool: u32 => Body;
        /// How long leases are waited for. Default: 10 s.
        grace_ms: Option<i64> => Body, AtLeast(0);
        /// Whether all clients of the store drain it, and what none of them has is terminated, too. Default: false.
        everywhere: Option<bool> => Body;
        /// Whether static sessions are terminated, too; they are not refunded. Default: false.
        include_static: Option<bool> => Body;
    }
}
from_json!(DrainPool { pool, grace_ms, everywhere, include_static });

told! {
    /// Why a pool does not buy, and until when.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolHold {
        /// Why.
        pub reason: PoolHoldReason,
        /// The same as the end of a sentence.
        pub why: String,
        /// Who can end it.
        pub needs: PoolNeeds,
        /// Since when.
        pub since: i64 => Time,
        /// When one purchase is tried; absent where somebody has to do something first.
        pub retry_at: Option<i64> => Time,
    }
}

told! {
    /// A slot of a pool that this client knows something of.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolSlot {
        /// Its number.
        pub slot: u32,
        /// What it is doing.
        pub state: PoolSlotState,
        /// Why its session can't be lent, where that is so.
        pub reason: Option<PoolSlotReason>,
        /// Which purchase of the slot it is, counted from 1, where that is known.
        pub purchase: Option<i64>,
        /// Its session.
        pub session_id: Option<String>,
        /// Of its session: grows whenever it gets another exit or other credentials.
        pub generation: Option<u32>,
        /// How long its session has been ready.
        pub age_ms: Option<i64> => Span,
    }
}

told! {
    /// How a pool is, as far as this client knows. The first seven add up to the pool's `size`; to more while this client has slots of a
    /// pool that others have opened with a larger one.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolStatus {
        /// Sessions that can be lent at once.
        pub ready: u32,
        /// Sessions that are lent.
        pub leased: u32,
        /// Sessions that are bought, taken over, read or rotated.
        pub creating: u32,
        /// Sessions that can't be lent for now.
        pub resting: u32,
        /// Purchases in doubt.
        pub in_doubt: u32,
        /// Slots that hold nothing, as far as is known.
        pub empty: u32,
        /// Slots that other clients have, or that this client has not looked at.
        pub elsewhere: u32,
        /// How many wait for a lease.
        pub waiting: u32,
        /// Why nothing is bought, if that is so.
        pub hold: Option<PoolHold>,
        /// The targets that blocked three exits in a row at their first use.
        pub blocked_everywhere: Vec<String>,
        /// What this client has bought for the pool today (UTC), in USD.
        pub spent_today_usd: Decimal,
        /// The slots that this client knows something of.
        pub slots: Vec<PoolSlot>,
    }
}

told! {
    /// A pool that the store keeps, whoever has opened it.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct KnownPool {
        /// Its name.
        pub name: String,
        /// The largest size that it was opened with.
        pub size: u32,
        /// Slots with a session.
        pub sessions: u32,
        /// Slots whose purchase is in doubt.
        pub in_doubt: u32,
        /// Why nothing is bought, if that is so.
        pub hold: Option<PoolHold>,
    }
}

told! {
    /// The pools that the store keeps.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct KnownPools {
        /// They, by name.
        pub pools: Vec<KnownPool>,
    }
}

/// What pools are asked with, for whoever prints the table.
pub const POOL_REQUESTS: [Shape; 7] =
    [OpenPool::SHAPE, AcquireLease::SHAPE, PoolRef::SHAPE, PoolStatusOf::SHAPE, WaitReady::SHAPE, ClosePool::SHAPE, DrainPool::SHAPE];

/// A purchase for a slot of a pool, as people are shown it: `pool/<name>/<slot>#<number>`. Intents that begin like this are a pool's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotPurchase<'a> {
    /// `<name>/<slot>`.
    pub(crate) slot: &'a str,
    /// Which purchase of the slot it is, counted from 1.
    pub(crate) number: u64,
}

impl<'a> SlotPurchase<'a> {
    const PREFIX: &'static str = "pool/";

    pub(crate) fn of(intent: &'a str) -> Option<Self> {
        let (slot, number) = intent.strip_prefix(Self::PREFIX)?.rsplit_once('#')?;
        Some(SlotPurchase { slot, number: number.parse().ok()? })
    }

    /// Whether an intent may not be a caller's.
    pub(crate) fn is_reserved(intent: &str) -> bool {
        intent.starts_with(Self::PREFIX)
    }

    /// The name of the pool.
    pub(crate) fn pool(self) -> &'a str {
        self.slot.rsplit_once('/').map_or(self.slot, |(pool, _)| pool)
    }

    pub(crate) fn next(self) -> Self {
        SlotPurchase { number: self.number.saturating_add(1), ..self }
    }
}

impl fmt::Display for SlotPurchase<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}#{}", Self::PREFIX, self.slot, self.number)
    }
}
