//! Pools of sessions: the requests to open a pool and to acquire a lease, and the records that hosts get. Pools are Hopline's own; the
//! contract knows sessions only.

use super::agent::{CreateSession, Protocol, ProvisioningMode, Proxy, SessionType};
use std::fmt;

use serde::Deserialize;

use super::{Cheapest, Decimal, Json, Shape, Shaped};
use crate::json::from_json;

closed_enum! {
    /// The sessions for which a pool buys a replacement.
    pub enum PoolReplace {
        /// A session that is over; the default for dynamic sessions.
        Ended = "ended",
        /// Also a session that stays blocked after its rotations: it is terminated, and another one is bought.
        Failing = "failing",
        /// None: the slot stays empty; the default for static sessions.
        Never = "never",
    }
}

closed_enum! {
    /// The behaviour of opening a pool that was opened with another request before.
    pub enum PoolOnChange {
        /// Opening fails, and the error names the fields that differ; the default.
        Refuse = "refuse",
        /// This request becomes the pool's. Sessions of the old one are lent no more by any client: dynamic ones are terminated, static ones
        /// are left. For 10 min after that the pool is not replaced again, so that two versions of a program that restart in turn do not
        /// terminate each other's sessions each time: opening it with another request fails as with `refuse`.
        Replace = "replace",
    }
}

/// An enum of reasons that has those of holds, too.
macro_rules! reasons {
    (#[doc = $doc:literal] pub enum $name:ident { $($own:tt)* }) => {
        closed_enum! {
            #[doc = $doc]
            pub enum $name {
                $($own)*
                /// The product is out of stock.
                OutOfStock = "out_of_stock",
                /// The price is above the pool's limit.
                Price = "price",
                /// The account has as many sessions as it may.
                SessionLimit = "session_limit",
                /// The account's balance is too low.
                Balance = "balance",
                /// The account's budget is used up.
                Budget = "budget",
                /// The day's cap is reached, the pool's or its client's.
                Cap = "cap",
                /// The service did not answer, or asked for a longer wait than a purchase allows.
                NoAnswer = "no_answer",
                /// The service failed, and may have bought.
                Backend = "backend",
                /// The store fails.
                Store = "store",
                /// Sessions end within a minute of being ready.
                ShortLived = "short_lived",
                /// Bought sessions do not become ready in time, or can't be read.
                NotReady = "not_ready",
                /// Sessions are replaced one after the other since they fail.
                Failing = "failing",
                /// The service refuses the pool's request.
                Request = "request",
                /// The account or the key may not buy.
                Account = "account",
                /// Another client has opened the pool with another request, which is now the pool's.
                Replaced = "replaced",
                /// A person or program has paused the pool.
                Paused = "paused",
                /// A client drains the pool for all clients.
                Draining = "draining",
            }
        }
    };
}

reasons! {
    /// The reason why a pool does not buy.
    pub enum PoolHoldReason {}
}

reasons! {
    /// The reason why a pool has no session for a caller.
    pub enum PoolReason {
        /// Other clients have the sessions.
        WithOthers = "with_others",
        /// The sessions rest for the target, which has blocked them.
        Resting = "resting",
        /// The sessions are lent.
        Leased = "leased",
        /// The sessions are being bought or taken over.
        Creating = "creating",
        /// The sessions are being read, rotated, renewed or ended, or can't be used yet.
        Changing = "changing",
        /// The sessions are left over from another request.
        Left = "left",
        /// The purchases are in doubt.
        InDoubt = "in_doubt",
        /// The sessions are over, and the pool's `replace` is `never`.
        Over = "over",
        /// The store was asked for sessions, and had none in time.
        Asking = "asking",
        /// As many callers wait as the pool's `max_waiters` allows.
        Waiters = "waiters",
    }
}

#[allow(clippy::derivable_impls, reason = "the macro writes the enum")]
impl Default for PoolHoldReason {
    fn default() -> Self {
        PoolHoldReason::NoAnswer
    }
}

closed_enum! {
    /// The party that can end a pool's pause in buying.
    pub enum PoolNeeds {
        /// The pool itself, with time.
        Nobody = "nobody",
        /// The program: it has to change its request, or resume the pool.
        Caller = "caller",
        /// A person: they have to check the account, or settle a doubt.
        Person = "person",
    }
}

closed_enum! {
    /// The state of a pool's slot.
    pub enum PoolSlotState {
        /// The session can be lent.
        Ready = "ready",
        /// The session is lent.
        Leased = "leased",
        /// The session is being bought or taken over.
        Creating = "creating",
        /// The session is being read, rotated or renewed.
        Changing = "changing",
        /// The session can't be lent for now.
        Resting = "resting",
        /// The purchase is in doubt.
        InDoubt = "in_doubt",
    }
}

closed_enum! {
    /// The reason why the session of a slot can't be lent.
    pub enum PoolSlotReason {
        /// The session is being bought.
        Buying = "buying",
        /// The slot's session is being taken over.
        TakingOver = "taking_over",
        /// The session is being read.
        Reading = "reading",
        /// The exit is being changed.
        Rotating = "rotating",
        /// The proxy has failed three times within a minute. The session rests for 1 min, doubling to 1 h, until the proxy works.
        ProxyFails = "proxy_fails",
        /// The session is being renewed.
        Renewing = "renewing",
        /// The session is being terminated, or is to be.
        Ending = "ending",
        /// The session can't be used yet, or could not be read. The pool reads it again every minute.
        NotReady = "not_ready",
        /// The purchase may have been made.
        InDoubt = "in_doubt",
        /// The session is left alone: it is of another request, a caller has discarded it, or its record needs a person.
        Left = "left",
    }
}

closed_enum! {
    /// The next step with a lease after an observation through it.
    pub enum LeaseAdvice {
        /// Keep using the lease.
        Keep = "keep",
        /// Give the lease back, and acquire again: its session rests for this target, or gets another exit.
        GiveBack = "give_back",
        /// Give the lease back, and come later: the target blocks every exit.
        Wait = "wait",
    }
}

record! {
    /// The sessions that a pool buys, their number, and the terms on which it lends them.
    OpenPool {
        /// The pool's name, 1 to 128 bytes without `/` and `#`: pools of one name in one store and account share their slots.
        name: String => Body, Length(1, 128);
        /// The most sessions at a time, over all clients of the store.
        size: u32 => Body, Between(1, 1_000_000);
        /// `dynamic` or `static`.
        session_type: SessionType => Body;
        /// The product, from a product list.
        product_no: String => Body;
        /// The choice of the product, in place of `session_type` and `product_no`: each purchase takes the cheapest one of the account's list
        /// that fits then. One that the service does not sell is left out, and the next one bought.
        product: Option<Cheapest> => Body;
        /// GB (dynamic, fractions allowed) or addresses (static, whole); the server's default is 1.
        quantity: Option<Decimal> => Body, Positive, WholeWhen("session_type", "static");
        /// The duration, at least 1; the service does not document the unit.
        duration: Option<i64> => Body, AtLeast(1);
        /// The protocol of the proxies; the server's default is `socks5`.
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
        /// The highest price, in USD for one unit, at which the pool buys.
        max_unit_price: Option<Decimal> => Body, AtLeast(0);
        /// The cost of a purchase, in USD, where no price can tell it.
        expected_charge_usd: Option<Decimal> => Body, AtLeast(0);
        /// Buy again with a new key after a failure of the service. The service may have sold all the same, and then charges twice.
        /// Default: false.
        retry_paid: Option<bool> => Body;
        /// The number of free sessions to keep ready ahead of demand in this client, at most `size`. Default: 0, and a session is bought
        /// when a caller waits for one.
        keep_ready: Option<u32> => Body, AtLeast(0);
        /// The most callers that wait for a lease at a time in this client: a further one fails at once. Default: no limit.
        max_waiters: Option<u32> => Body, AtLeast(0);
        /// The sessions for which a replacement is bought. Default: `ended` for dynamic sessions, `never` for static ones.
        replace: Option<PoolReplace> => Body;
        /// The duration by which an expired static session is renewed instead of replaced, so that it keeps its address; the service does
        /// not document the unit.
        renew_duration: Option<i64> => Body, AtLeast(1);
        /// The most leases of one session at a time. Default: 1.
        leases_per_session: Option<u32> => Body, AtLeast(1);
        /// The number of leases after which a dynamic session gets another exit. Default: no limit.
        rotate_after_uses: Option<u32> => Body, AtLeast(1);
        /// The age of an exit, within a tenth, at which a dynamic session gets another one. Default: no limit.
        rotate_after_ms: Option<i64> => Body, AtLeast(1000);
        /// The time for which a session that is not in use is kept for a next caller of this client. After it, other clients may have the
        /// session. Default: 5 s.
        idle_release_ms: Option<i64> => Body, AtLeast(0);
        /// The age at which a lease that was not given back is taken back. Default: no limit. In any case, an event reports a lease that
        /// has been out for 10 min.
        max_lease_ms: Option<i64> => Body, AtLeast(1);
        /// The behaviour if the pool was opened with another request before. Default: `refuse`.
        on_change: Option<PoolOnChange> => Body;
    }
}
from_json!(OpenPool {
    name,
    size,
    session_type,
    product_no,
    product,
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
    keep_ready,
    max_waiters,
    replace,
    renew_duration,
    leases_per_session,
    rotate_after_uses,
    rotate_after_ms,
    idle_release_ms,
    max_lease_ms,
    on_change,
});

impl OpenPool {
    /// The request for each session of the pool.
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
    /// The pool to join: one that other programs of this store have opened, to read its status, pause, resume or drain it. A joined pool
    /// neither lends nor buys.
    JoinPool {
        /// The pool's name.
        name: String => Body, Length(1, 128);
    }
}
from_json!(JoinPool { name });

host_record! {
    /// A pool that was opened.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct OpenedPool {
        /// The number of the pool in this client.
        pub pool: u32,
    }
}

record! {
    /// The request for a lease.
    AcquireLease {
        /// The pool.
        pool: u32 => Body;
        /// The target of the requests, such as a host: blocks that are observed for it count for this target alone.
        target: Option<String> => Body;
        /// A key for a sticky session: the same key gets the same session as long as this client has it and its exit has not changed. Keys
        /// share a session where there are too few, and part once there is another.
        key: Option<String> => Body;
        /// A session that is not wanted, such as that of the attempt before: another one is lent, and bought if there is none. A pool whose
        /// `size` is 1 has no other, so this caller then waits in vain.
        avoid: Option<String> => Body;
        /// The longest wait for a session. Default: 30 s.
        timeout_ms: Option<i64> => Body, AtLeast(0);
    }
}
from_json!(AcquireLease { pool, target, key, avoid, timeout_ms });

host_record! {
    /// A session that was lent.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolLease {
        /// The pool.
        pub pool: u32,
        /// The number of the lease in its pool.
        pub lease: i64,
        /// The slot of the session.
        pub slot: u32,
        /// The generation, which grows whenever the session gets another exit or other credentials.
        pub generation: u32,
        /// The session.
        pub session_id: String,
        /// The proxy of the session.
        pub proxy: Proxy,
        /// The data of callers that had this exit before, an object.
        pub data: Json,
    }
}

record! {
    /// The lease to observe or give back.
    LeaseRef {
        /// The pool.
        pool: u32 => Body;
        /// The number of the lease in its pool.
        lease: i64 => Body;
    }
}
from_json!(LeaseRef { pool, lease });

record! {
    /// The pool to pause or resume.
    PoolRef {
        /// The pool.
        pool: u32 => Body;
    }
}
from_json!(PoolRef { pool });

record! {
    /// The pool whose status is read.
    PoolStatusOf {
        /// The pool.
        pool: u32 => Body;
        /// Read the slots of other clients from the store first. Default: false, and they count as this client saw them last, or as
        /// `unknown`.
        everywhere: Option<bool> => Body;
    }
}
from_json!(PoolStatusOf { pool, everywhere });

record! {
    /// The wait for free sessions, ahead of demand.
    WaitReady {
        /// The pool.
        pool: u32 => Body;
        /// The number of sessions to wait for, at most the pool's `keep_ready`; sessions that are lent do not count. Default: 1.
        count: Option<u32> => Body, AtLeast(1);
        /// The longest wait. Default: 5 min.
        timeout_ms: Option<i64> => Body, AtLeast(0);
    }
}
from_json!(WaitReady { pool, count, timeout_ms });

record! {
    /// The pool to close, and how.
    ClosePool {
        /// The pool.
        pool: u32 => Body;
        /// The longest wait for leases. Default: 10 s.
        grace_ms: Option<i64> => Body, AtLeast(0);
    }
}
from_json!(ClosePool { pool, grace_ms });

record! {
    /// The pool to drain: it is closed, its dynamic sessions are terminated and lose their prepaid traffic, and it is paused: nothing is
    /// bought for it, by any client, before it is resumed. A pool that is closed already can't be drained.
    DrainPool {
        /// The pool.
        pool: u32 => Body;
        /// The longest wait, of which the last 5 s, or half of it, are kept for terminating sessions; those that still live then are named by an
        /// error. At least 5 s. Default: 10 s.
        grace_ms: Option<i64> => Body, AtLeast(0);
        /// Make all clients of the store drain the pool, and also terminate the sessions that none of them has. Default: false.
        everywhere: Option<bool> => Body;
        /// Terminate static sessions, too; they are not refunded. Default: false.
        include_static: Option<bool> => Body;
    }
}
from_json!(DrainPool { pool, grace_ms, everywhere, include_static });

host_record! {
    /// The reason why a pool does not buy, and the time of the next attempt.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolHold {
        /// The reason.
        pub reason: PoolHoldReason,
        /// The reason as the end of a sentence.
        pub why: String,
        /// The party that can end it.
        pub needs: PoolNeeds,
        /// The time since when.
        pub since: i64 => Time,
        /// The time of the next attempt, with one purchase; absent if a person or the program has to act first.
        pub retry_at: Option<i64> => Time,
    }
}

host_record! {
    /// A slot of a pool that this client knows.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolSlot {
        /// The number of the slot.
        pub slot: u32,
        /// The state of the slot.
        pub state: PoolSlotState,
        /// The reason why its session can't be lent, if it can't.
        pub reason: Option<PoolSlotReason>,
        /// The number of the slot's purchase, counted from 1, where it is known.
        pub purchase: Option<i64>,
        /// The session of the slot.
        pub session_id: Option<String>,
        /// The generation of the session, which grows whenever it gets another exit or other credentials.
        pub generation: Option<u32>,
        /// The time for which the session has been ready.
        pub age_ms: Option<i64> => Span,
    }
}

host_record! {
    /// The status of a pool, as far as this client knows. The counts from `ready` to `unknown` add up to `size`.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct PoolStatus {
        /// The largest size that the pool was opened with, by any client.
        pub size: u32,
        /// This client's sessions that are free. A session that rests for some targets only is one of them.
        pub ready: u32,
        /// This client's sessions that are lent.
        pub leased: u32,
        /// Sessions that this client buys or takes over.
        pub creating: u32,
        /// This client's sessions that are being read, rotated or renewed.
        pub changing: u32,
        /// This client's sessions that can't be lent for any target now: `slots` has the reason of each.
        pub resting: u32,
        /// Purchases in doubt.
        pub in_doubt: u32,
        /// Slots without a session.
        pub empty: u32,
        /// Slots of other clients.
        pub with_others: u32,
        /// Sessions that no client has; the next client that needs a session takes one of them.
        pub free_in_store: u32,
        /// Slots that this client has not looked at.
        pub unknown: u32,
        /// Callers that wait for a lease.
        pub waiting: u32,
        /// The reason why nothing is bought, if so.
        pub hold: Option<PoolHold>,
        /// The targets that blocked three exits in a row, each after fewer than three good answers.
        pub blocked_everywhere: Vec<String>,
        /// USD that this client has spent for the pool today (UTC).
        pub spent_today_usd: Decimal,
        /// The slots that this client knows.
        pub slots: Vec<PoolSlot>,
    }
}

host_record! {
    /// A pool in the store, opened by any client.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct KnownPool {
        /// The name of the pool.
        pub name: String,
        /// The largest size that it was opened with.
        pub size: u32,
        /// Slots of this client, with a session or a purchase.
        pub mine: u32,
        /// Slots of other clients.
        pub with_others: u32,
        /// Sessions that no client has.
        pub free_in_store: u32,
        /// Purchases in doubt that no client has.
        pub in_doubt: u32,
        /// The reason why nothing is bought, if so.
        pub hold: Option<PoolHold>,
    }
}

host_record! {
    /// The pools that the store keeps.
    #[derive(Debug, Clone, PartialEq, Deserialize)]
    pub struct KnownPools {
        /// The pools, by name.
        pub pools: Vec<KnownPool>,
    }
}

/// The requests about pools, for tools that print the table.
pub const POOL_REQUESTS: [Shape; 7] =
    [OpenPool::SHAPE, AcquireLease::SHAPE, PoolRef::SHAPE, PoolStatusOf::SHAPE, WaitReady::SHAPE, ClosePool::SHAPE, DrainPool::SHAPE];

/// The displayed name of a purchase for a slot of a pool: `pool/<name>/<slot>#<number>`. Intents that begin like this are reserved for
/// pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SlotPurchase<'a> {
    /// `<name>/<slot>`.
    pub(crate) slot: &'a str,
    /// The number of the slot's purchase, counted from 1.
    pub(crate) number: u64,
}

impl<'a> SlotPurchase<'a> {
    const PREFIX: &'static str = "pool/";

    pub(crate) fn of(intent: &'a str) -> Option<Self> {
        let (slot, number) = intent.strip_prefix(Self::PREFIX)?.rsplit_once('#')?;
        Some(SlotPurchase { slot, number: number.parse().ok()? })
    }

    /// Returns true if an intent is reserved and can't be a caller's.
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
