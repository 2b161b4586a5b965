//! What can come of a message.

/// What comes of a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Executed and answered.
    Answered,
    /// The request is lost.
    LostBefore,
    /// The answer is lost.
    LostAfter,
    /// The request is as good as lost, and arrives later.
    Delayed,
    /// A gateway answers in the service's place.
    PageBefore,
    /// A gateway loses the service's answer.
    PageAfter,
    /// Refused for now.
    Throttled,
    /// Executed; a duplicate of the request is answered while the original is still in progress.
    Conflict,
    /// The service fails, and keeps that answer.
    StoredFailure,
    /// There is no connection.
    Unreached,
    /// The service fails and keeps that answer, but the supplier has sold.
    StoredSale,
    /// A gateway asks for a login in the service's place.
    DoorBefore,
    /// A gateway loses the service's answer, and asks for a login.
    DoorAfter,
    /// Executed; the answer is cut short.
    Cut,
    /// The service takes none of the tokens that it gave.
    Expired,
    /// The service refuses.
    Refused,
    /// Executed after the price has risen.
    Dearer,
    /// Refused for an hour.
    ThrottledLong,
}

impl Fate {
    /// What can come of a purchase.
    pub(crate) const ALL: &[Fate] = &[
        Fate::Answered,
        Fate::LostBefore,
        Fate::LostAfter,
        Fate::Delayed,
        Fate::PageBefore,
        Fate::PageAfter,
        Fate::Throttled,
        Fate::Conflict,
        Fate::StoredFailure,
        Fate::Unreached,
        Fate::StoredSale,
    ];
    /// What can come of a change that is repeated after a stored failure: that it was done all the same is allowed, since
    /// it costs nothing, and tells nothing.
    pub(crate) const REPEATABLE: &[Fate] = Fate::ALL.split_at(10).0;
    /// What can come of a write to the reseller API, which has no keys. That the network brings a write twice is none of it:
    /// no client can help that.
    pub(crate) const WRITE: &[Fate] = &[
        Fate::Answered,
        Fate::LostBefore,
        Fate::LostAfter,
        Fate::Delayed,
        Fate::PageBefore,
        Fate::PageAfter,
        Fate::DoorBefore,
        Fate::DoorAfter,
        Fate::Cut,
        Fate::StoredFailure,
        Fate::StoredSale,
        Fate::Expired,
        Fate::Refused,
        Fate::Throttled,
        Fate::Unreached,
    ];
    /// What can come of a read of the reseller API.
    pub(crate) const READ: &[Fate] = &[
        Fate::Answered,
        Fate::LostBefore,
        Fate::Expired,
        Fate::DoorBefore,
        Fate::PageBefore,
        Fate::Refused,
        Fate::Throttled,
        Fate::ThrottledLong,
    ];
    /// What can come of a login.
    pub(crate) const LOGIN: &[Fate] = &[
        Fate::Answered,
        Fate::LostBefore,
        Fate::LostAfter,
        Fate::PageBefore,
        Fate::Throttled,
        Fate::ThrottledLong,
        Fate::StoredFailure,
        Fate::Refused,
    ];
    /// What a message can come to that nobody else has a say in.
    pub(crate) const HONEST: &[Fate] = &[Fate::Answered];
}
