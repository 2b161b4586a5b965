//! The rules on keys, records, orders and logins that keep a purchase from happening twice, by name.
//!
//! The code asks [`Rules::holds`] where it relies on one. In an ordinary build the answer is always yes and costs nothing.
//! The last rule is a store's, so the proof's store asks for it.
//! The proof in `tests/world` builds with the feature `ablation`, takes one rule away at a time, and must find the
//! double purchase, the loss or the false "nothing happened" that the rule prevents.

macro_rules! rules {
    ($rules:ident: $($(#[$doc:meta])* $name:ident,)*) => {
        /// A rule that can be taken away in a build for the proof.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $rules {
            $($(#[$doc])* $name,)*
        }

        impl $rules {
            /// Every rule.
            pub const ALL: [$rules; [$($rules::$name),*].len()] = [$($rules::$name),*];
        }
    };
}

pub(crate) use rules;

rules! { Rule:
    /// A send that is not safe waits until its record is saved.
    SaveBeforeSend,
    /// A send whose answer was lost may have had its effect.
    LostIsUnanswered,
    /// A page of a gateway says nothing about the operation.
    PageIsUnanswered,
    /// A conflict means wait with the same key, never a new one.
    ConflictKeepsKey,
    /// A refusal at the door (401, 403, 429, no route) does not settle an earlier send.
    DoorSettlesNothing,
    /// After a restore the key counts as sent and unanswered.
    RestoredIsUnanswered,
    /// A key that the caller gave counts as sent and unanswered.
    GivenIsUnanswered,
    /// Two 429s with one request id say nothing of an earlier send of the key that is unanswered.
    ReplaySettlesNoEarlierSend,
    /// A key that the caller gave is sent with one request for as long as that is under way or in doubt.
    GivenKeyHasOneRequest,
    /// A paid operation that the service failed is not bought again unless the caller asked for it.
    PaidFailureStops,
    /// A key is not sent again once it is too old.
    OldKeyRests,
    /// A key's age goes on through a restore.
    AgeSurvives,
    /// A key's age is checked again after the save.
    AgeAfterSave,
    /// "Nothing happened" is said only after the record is gone.
    DeleteBeforeNone,
    /// The record of a success stays until its answer was taken.
    KeepUntilTaken,
    /// A write without a key is not sent again once its effect is open.
    OpenWriteRests,
    /// A write without a key is not sent again when it is resumed.
    HeldWriteRests,
    /// A failure of the service, 500 and above, may have come after the effect.
    FailureIsUnanswered,
    /// An answer that does not clearly refuse may have come after the effect, too.
    OnlyRefusalsUndo,
    /// A refusal of an app's own backend says nothing of an earlier send of the key.
    BackendSettlesNothing,
    /// An operation that an app's own backend refused under an intent is sent again with the same key, and only by a new start.
    RefusedKeepsKey,
    /// A write that is answered with 408, 409, 425 or 429 and an unknown code may have been done, or may be done later.
    LaterIsUnanswered,
    /// A 401 without the envelope does not say that a write was not done.
    TokenRefusalHasEnvelope,
    /// A call fetches one new token at most.
    RenewOnce,
    /// A login that was refused is not sent again by itself.
    RefusedLoginRests,
    /// One login at a time, for all calls.
    OneLogin,
    /// The refusal of an older token leaves a newer one in use.
    NewerTokenStays,
    /// An order's number is saved as soon as it is known.
    OrderIsSaved,
    /// A read that fails says nothing against the order that it is of.
    OrderOutlivesReads,
    /// Under a daily cap, another key of a purchase counts at its own price, and beside a key that may have bought.
    NewKeyCounts,
    /// A key that is sent on another UTC day counts on that day, too.
    NewDayCounts,
    /// The possible cost of a key is counted in the store before the key is sent.
    SpendBeforeSend,
    /// Two purchases with one key, as a caller may give it, count by two entries.
    EntryIsItsOwn,
    /// An operation that is started or resumed by a name may have been done before, as long as the store was not asked for that name.
    UnaskedIsUnknown,
    /// A record that can't be read counts: its operation may have been done.
    UnreadableIsSomething,
    /// A person settles the version that they read, and nothing that came later under the same name.
    VersionIsNamed,
    /// A session that its own client holds, and that is not over, is not forgotten.
    HeldIsNotForgotten,
    /// `not_happened` is accepted only an hour after the operation may have been sent.
    HourBeforeNone,
    /// A request is not sent once the claim of its name may have ended.
    LateIsNotSent,
    /// A job whose name is no longer its client's sends nothing more.
    LostNameEnds,
    /// An operation that another client has taken over is not said to have had no effect.
    LostIsNotNone,
    /// Renewals of one session claim one name, whatever names they have themselves.
    RenewalsShareAName,
    /// A setting that was accepted ends the doubts about older ones.
    NewerSettingStands,
    /// A store that does things late may still put what it failed to put.
    LateIsNotNone,
    /// A store's answer with names that were not requested does not count.
    UnfitIsNoAnswer,
    /// A record of another account is left alone.
    OthersAreLeft,
    /// An answer that names another session than the requested one does not count.
    AnothersIsNoAnswer,
    /// The number of sends at a time is limited, and a saved operation has its place by then.
    FewAreOut,
    /// While the service is overloaded, nothing is sent.
    ThrottleHoldsAll,
    /// An operation that is put off for an absurdly long time delays no other call.
    LongThrottleIsOwn,
    /// The product that was chosen for a key is sent with that key, whoever sends it again.
    ChoiceStays,
    /// Without a limit no product is chosen that is dearer than the first one.
    FirstChoiceLimits,
    /// No product is chosen that costs more than the caller's limit.
    LimitHolds,
    /// An intent buys its next session only where the one before is over for good.
    LivingIsKept,
    /// A store changes what is under a name only for the client that owns it.
    OnlyOwnersPut,
}

/// The rules that hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Rules {
    #[cfg(feature = "ablation")]
    pub(crate) without: Option<Rule>,
}

impl Rules {
    /// Returns true if a rule holds: always, except in a build for the proof.
    #[cfg(not(feature = "ablation"))]
    #[inline]
    pub(crate) const fn holds(self, _rule: Rule) -> bool {
        true
    }

    /// Returns true if a rule holds.
    #[cfg(feature = "ablation")]
    pub(crate) fn holds(self, rule: Rule) -> bool {
        self.without != Some(rule)
    }
}
