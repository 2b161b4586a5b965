//! The results that a message, and a step of the store, may have.

/// The fate of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Delivery {
    /// Executed and answered.
    Answered,
    /// The request is lost.
    LostBefore,
    /// The answer is lost.
    LostAfter,
    /// The request is as good as lost, and arrives later.
    Delayed,
    /// Executed and answered; a copy of the request arrives later.
    CopyLater,
    /// Executed twice; the second answer comes.
    Twice,
    /// A gateway answers in the service's place.
    PageBefore,
    /// A gateway loses the service's answer.
    PageAfter,
    /// A gateway asks for a login in the service's place.
    DoorBefore,
    /// A gateway loses the service's answer, and asks for a login.
    DoorAfter,
    /// Executed; the answer is cut short.
    Cut,
    /// Executed; the answer goes on beyond what was read.
    Truncated,
    /// Executed; the answer comes after every deadline.
    Late,
    /// Refused for a second, with one request id for all.
    Throttled,
    /// Refused for an hour.
    ThrottledLong,
    /// Refused, with a date until which to wait.
    ThrottledUntil,
    /// A gateway says when to come again.
    Unavailable,
    /// Executed; a duplicate of the request is answered while the original is still in progress.
    Conflict,
    /// The work takes half a minute; meanwhile the connection breaks.
    Slow,
    /// The same, and the work fails in the end.
    SlowFails,
    /// The service fails, and keeps that answer.
    StoredFailure,
    /// The service fails and keeps that answer, but the supplier has sold.
    StoredSale,
    /// There is no connection.
    Unreached,
    /// The service refuses, and keeps that answer.
    Refused,
    /// The service refuses at its door: it takes the key of nobody.
    Locked,
    /// The service answers, and keeps, a code that the contract does not have.
    Unknown,
    /// The service finds the product at another price, and keeps that answer.
    Mismatch,
    /// Executed after the price has risen.
    Dearer,
    /// Answered with a code that does not say what came of it; not executed.
    OddBefore,
    /// The same, and executed.
    OddAfter,
    /// Refused with a code that only its words or its number say to be a refusal.
    OddRefusal,
    /// Executed; the network answers with what it answered before, about another session that the client has.
    Shifted,
    /// An app's own backend refuses it in its own words, and does not pass it on.
    NotPassedOn,
    /// The service takes none of the tokens that it gave.
    Expired,
    /// The request is lost, and the price rises.
    DearerBefore,
    /// The service has nothing left of the product, and keeps that answer.
    SoldOut,
}

impl Delivery {
    /// The only delivery without faults.
    pub(crate) const HONEST: &[Delivery] = &[Delivery::Answered];
    /// The deliveries of a write with a key that may cost money.
    pub(crate) const PAID: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::Delayed,
        Delivery::PageBefore,
        Delivery::PageAfter,
        Delivery::Throttled,
        Delivery::Conflict,
        Delivery::StoredFailure,
        Delivery::Unreached,
        Delivery::Cut,
        Delivery::Refused,
        Delivery::Locked,
        // A free write does not meet the deliveries from here on.
        Delivery::StoredSale,
        Delivery::CopyLater,
        Delivery::Twice,
        Delivery::Slow,
        Delivery::SlowFails,
        Delivery::DoorBefore,
        Delivery::DoorAfter,
        Delivery::Unknown,
        Delivery::Mismatch,
    ];
    /// The deliveries of such a write through an app's own backend: a request that the backend refuses was not passed on.
    pub(crate) const RELAYED: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::Delayed,
        Delivery::PageBefore,
        Delivery::PageAfter,
        Delivery::Throttled,
        Delivery::Conflict,
        Delivery::StoredFailure,
        Delivery::Unreached,
        Delivery::Cut,
        Delivery::Refused,
        Delivery::StoredSale,
        Delivery::CopyLater,
        Delivery::NotPassedOn,
    ];
    /// The deliveries of a write that is repeated after a stored failure: the service may have done it all the same, since it costs
    /// nothing.
    pub(crate) const FREE: &[Delivery] = Delivery::PAID.split_at(13).0;
    /// The deliveries that are rare, for any kind of message.
    pub(crate) const SELDOM: &[Delivery] =
        &[Delivery::Answered, Delivery::Truncated, Delivery::Late, Delivery::Unavailable, Delivery::ThrottledUntil, Delivery::LostAfter];
    /// The deliveries of a network that mixes up its answers.
    pub(crate) const MIXED_UP: &[Delivery] = &[Delivery::Answered, Delivery::Shifted];
    /// The deliveries of a purchase under a cap.
    pub(crate) const CAPPED: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::Delayed,
        Delivery::StoredSale,
        Delivery::StoredFailure,
        Delivery::Dearer,
        Delivery::Refused,
        Delivery::Mismatch,
    ];
    /// The deliveries of a purchase whose product is chosen.
    pub(crate) const CHOSEN: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::SoldOut,
        Delivery::Dearer,
        Delivery::DearerBefore,
        Delivery::Mismatch,
        Delivery::Refused,
        Delivery::StoredSale,
        Delivery::Delayed,
    ];
    /// The deliveries of a read.
    pub(crate) const READ: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::PageBefore,
        Delivery::Throttled,
        Delivery::ThrottledLong,
        Delivery::Cut,
        Delivery::Locked,
    ];
    /// The deliveries of a termination.
    pub(crate) const END: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::Delayed,
        Delivery::PageBefore,
        Delivery::PageAfter,
        Delivery::Throttled,
        Delivery::ThrottledLong,
        Delivery::Cut,
        Delivery::Locked,
    ];
    /// The deliveries of a write of the reseller API, which has no keys. A network that delivers a write twice is left out, since no client
    /// can prevent that.
    pub(crate) const KEYLESS: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::Delayed,
        Delivery::PageBefore,
        Delivery::PageAfter,
        Delivery::DoorBefore,
        Delivery::DoorAfter,
        Delivery::Cut,
        Delivery::StoredFailure,
        Delivery::StoredSale,
        Delivery::Expired,
        Delivery::Refused,
        Delivery::Throttled,
        Delivery::Unreached,
        Delivery::OddBefore,
        Delivery::OddAfter,
        Delivery::OddRefusal,
    ];
    /// The deliveries of a read of the reseller API.
    pub(crate) const TOKEN_READ: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::Expired,
        Delivery::DoorBefore,
        Delivery::PageBefore,
        Delivery::Refused,
        Delivery::Throttled,
        Delivery::ThrottledLong,
        Delivery::Cut,
    ];
    /// The deliveries of a login.
    pub(crate) const LOGIN: &[Delivery] = &[
        Delivery::Answered,
        Delivery::LostBefore,
        Delivery::LostAfter,
        Delivery::PageBefore,
        Delivery::Throttled,
        Delivery::ThrottledLong,
        Delivery::StoredFailure,
        Delivery::Refused,
    ];
}

/// The result of a step of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StoreResult {
    /// Done.
    Done,
    /// Said to have failed, and not done.
    Failed,
    /// Said to have failed, and done all the same.
    FailedButDone,
    /// Surely not done: the store can't be opened. Nothing else was answered before.
    Never,
    /// Said to have failed, and done later, when others were done: of a store that says so of itself, and of what makes a name.
    FailedThenDone,
    /// Done, and answered with a name that nobody asked for: of a claim.
    Unfit,
    /// Done, after a night in which the machine slept.
    DoneAfterSleep,
    /// Done, and by the time that this is heard the claims of the program have ended.
    DoneAfterEnd,
}

impl StoreResult {
    /// Every one.
    pub(crate) const ALL: [StoreResult; 4] =
        [StoreResult::Done, StoreResult::Failed, StoreResult::FailedButDone, StoreResult::DoneAfterSleep];
    /// The additional results of a call in a life.
    pub(crate) const OF_LIVES: [StoreResult; 3] = [StoreResult::Never, StoreResult::FailedThenDone, StoreResult::Unfit];
    /// The results of a call where claims may end, and the machine sleeps for one program alone.
    pub(crate) const SHARED: [StoreResult; 4] =
        [StoreResult::Done, StoreResult::Failed, StoreResult::FailedButDone, StoreResult::DoneAfterEnd];
}
