//! The rules of pools, by name: the brakes that keep money and sessions, and the rules by which clients share what there is.
//!
//! The code asks [`holds`] where it relies on one, as the client's code does for the rules of `policy/rules.rs`: in an ordinary build the
//! answer is always yes and costs nothing. The pure parts of a pool know no client, so the proof takes a rule away from all that its thread
//! does ([`without`]), and a plan, a law or a check must find the harm.

use crate::policy::rules;

rules! { PoolRule:
    // Buying.
    /// Until one session of the pool was ready, no second one is bought.
    FirstIsATrial,
    /// One client at a time makes a trial.
    OneTries,
    /// A trial is in the record before it begins.
    TrialsAreMarked,
    /// A hold lasts for a time.
    HoldsWait,
    /// Each trial that fails doubles that time.
    HoldsDouble,
    /// A refusal that only a person can end is not tried by itself.
    RefusalsStop,
    /// A client's own limit holds back no other client.
    OwnLimitsAreOwn,
    /// The trial of a purchase without an answer is that purchase, with its key.
    TrialKeepsKey,
    /// After a failure of the service no trial is made before the products were read.
    ProductsAreReadFirst,
    /// Where a session can't be read, no other one is bought before it can.
    UnreadIsTriedThere,
    /// A few purchases at a time.
    FewAtOnce,
    /// Sessions that end one after the other as soon as they are ready hold purchases back.
    ShortLivedHolds,
    /// Sessions that are ended one after the other since they fail hold purchases back.
    FailingHolds,
    /// A claimed slot waits for a read of the pool's record before it is bought for.
    RecordIsReadFirst,
    /// It is bought for only if somebody still waits then.
    NeedIsAskedAgain,
    /// A purchase of which nothing was put is withdrawn where it is not allowed any more.
    PurchasesAreWithdrawn,
    /// To take a slot's session over buys nothing, whatever became of the session.
    TakeOverBuysNothing,
    /// The spare sessions of others are asked for before one is bought.
    SpareComesFirst,
    /// A free session that rests is no reason to buy one.
    RestIsNoReason,
    /// A pool that is paused buys nothing.
    PauseForbids,
    /// A pool that was drained is paused.
    DrainPauses,
    // Replacing.
    /// A session is ended for its proxy only if another session's proxy has worked.
    AnotherHasWorked,
    /// Where no exit helps against a target's blocks, no session is ended for them.
    NoExitHelps,
    /// A pool's request is not replaced twice within a short time.
    ReplacedIsNotReplaced,
    /// Sessions of another request than the pool's are not lent.
    OldIsNotLent,
    /// A session that was discarded is not lent again.
    DiscardedIsNotLent,
    // Exits.
    /// An exit does not change under a lease.
    ExitsStay,
    /// The exit of a session changes no more often than every few seconds.
    ChangesAreApart,
    /// At most half of the exits change at a time.
    FewChangeAtOnce,
    /// Where a target blocks every exit, one exit a minute is changed for it.
    ChangesAreRare,
    /// The exit of a session that was blocked is changed.
    BlockedIsChanged,
    /// A session whose exit is to be changed is lent meanwhile.
    DueIsLent,
    /// The session is lent after the others.
    DueIsLast,
    /// An exit that was blocked rests for that target.
    ExitsRest,
    /// Each further block doubles that time.
    RestsDouble,
    /// An exit that is asked to wait rests for as long.
    WaitIsKept,
    /// The second time in a row that an exit is asked to wait is a block.
    SecondThrottleBlocks,
    /// Blocks that leases see which were granted before the first one count once.
    BlocksCountOnce,
    /// An exit whose proxy refuses again and again rests for everybody.
    RefusedRests,
    // Leases.
    /// The session that has rested longest is lent first.
    LongestRestedFirst,
    /// A caller does not get the session that it avoids.
    AvoidIsAvoided,
    /// The same key gets the same session.
    KeysStay,
    /// A key leaves a session that rests for longer than its caller waits.
    KeysLeaveResting,
    /// A new key gets a session that no other key has.
    FewestKeysFirst,
    /// A key with several waiters needs one session.
    KeysCountOnce,
    /// Keys share sessions where there are too few.
    KeysShare,
    /// Whoever waits for what can't come is told at once.
    VainIsTold,
    // The notes of a session's record.
    /// What was held against a session's exit is known to whoever takes it over.
    NotesAreTakenOver,
    /// The callers' data, too.
    DataIsTakenOver,
    /// They are put as soon as their lease is back.
    DataIsPutOnReturn,
    /// They end with the exit.
    DataEndsWithExit,
    // Sharing.
    /// A client needs what it had in use within the last seconds.
    NeedsLast,
    /// It also needs what it keeps ready.
    ReadyIsNeeded,
    /// What is not needed goes back.
    UnneededGoesBack,
    /// What others could not read is not let go of.
    UnreadIsKept,
    /// What rests for the targets in demand goes back first.
    RestingGoesFirst,
    /// Who has let go of it takes it over again only after a time.
    RestingIsLeftAlone,
    /// A client with somebody who waits and less than its share tells the others.
    ShortIsTold,
    /// A client for which the store has nothing tells the others.
    DryIsTold,
    /// A client with more than it needs tells the others.
    SpareIsTold,
    /// A client that holds a session tells of itself while another one lacks some.
    HoldersTell,
    /// A short break in the waiting is none.
    BreaksAreShort,
    /// The share is the level at which all needs come to what there is.
    ShareIsALevel,
    /// What there is counts, where the store has no more.
    WhatIsThereIsShared,
    /// Nobody asks for more than its share while another client is short.
    ShareIsTheMost,
    /// What others need more goes back before it is lent here.
    OthersComeFirst,
    /// Where there are more clients than sessions, each session goes back after a time.
    TurnsAreTaken,
    /// Its client then asks for none until it is its turn.
    TurnsRest,
    /// An entry is believed for as long as it was seen to change.
    ChangesAreBelieved,
    /// An entry is put again and again.
    EntriesArePutAgain,
    /// The record is read every few seconds.
    RecordIsReadOften,
    /// Whoever has something to put tries again soon where another client has the record.
    BusyIsAskedSoon,
    /// Slots that may have a session are asked for before those that were seen to be empty.
    SessionsComeFirst,
    /// Slots are asked for in random order.
    OrderIsRandom,
    /// Empty slots are left alone where nothing may be bought.
    EmptyIsLeftAlone,
}

/// Returns true if a rule holds: always, except in a build for the proof.
#[cfg(not(feature = "ablation"))]
#[inline]
pub(crate) const fn holds(_rule: PoolRule) -> bool {
    true
}

#[cfg(feature = "ablation")]
std::thread_local! {
    static WITHOUT: std::cell::Cell<Option<PoolRule>> = const { std::cell::Cell::new(None) };
}

/// Returns true if a rule holds in this thread.
#[cfg(feature = "ablation")]
pub(crate) fn holds(rule: PoolRule) -> bool {
    WITHOUT.get() != Some(rule)
}

/// Does something without a rule, if one is named.
#[cfg(feature = "ablation")]
pub fn without<T>(rule: Option<PoolRule>, does: impl FnOnce() -> T) -> T {
    WITHOUT.set(rule);
    let came = does();
    WITHOUT.set(None);
    came
}
