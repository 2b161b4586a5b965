//! The scopes of the proof: their jobs, and the number of faults.

use hopline::client::Millis;
use hopline::contract::Api;

use crate::job::{Job, Manner, SESSIONS, Task};
use crate::time::{HOUR, HOURS, NIGHT, OVERNIGHT};

/// The next act of a program or a person, by a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Plan {
    /// Nothing by itself.
    Nothing,
    /// The program starts its jobs again, by their intents.
    Again,
    /// The same, by somebody who does not wait.
    Hurry,
    /// The program resumes all records of the store.
    ResumeAll,
    /// A person looks at the service and ends every doubt by what it shows, an hour after the last message was sent.
    Look,
    /// A person looks at the service at once, and says of every doubt what it shows.
    Glance,
    /// A person looks at the service an hour after the last message was sent, and notes what it shows.
    Note,
    /// The person who noted that settles it.
    SettleNoted,
    /// A person uses the key of a purchase in doubt for another one.
    Misuse,
    /// A person deletes the first record.
    Forget,
    /// A client of another account comes to the same store, and would forget, settle and resume all that is there.
    Intrude,
    /// The program sets another budget.
    Reset,
    /// The program reads a balance, three hours later.
    Read,
}

/// A world to begin with, and how much may happen in it.
#[derive(Debug)]
pub struct Scope {
    /// Its name.
    pub name: &'static str,
    /// The API of its jobs.
    pub api: Api,
    /// The jobs that were done before, without faults.
    pub before: &'static [Job],
    /// True if the records of those are gone.
    pub forgets: bool,
    /// The jobs that are started, all at once.
    pub jobs: &'static [Job],
    /// How many programs besides start them, too, on the same store, whose claims may end while they live.
    pub others: u8,
    /// How they are started.
    pub manner: Manner,
    /// How many messages may go wrong.
    pub faults: u8,
    /// How often a program may die, a store fail, a machine sleep, a clock jump.
    pub troubles: u8,
    /// How often a program or a person may do something besides.
    pub acts: u8,
    /// The same three where there is more time than in every run.
    pub deep: (u8, u8, u8),
    /// The plans that programs and people may follow.
    pub plans: &'static [Plan],
    /// True if reads may fail, too.
    pub reads: bool,
    /// True if waiting steps are answered in any order.
    pub any_order: bool,
    /// True if commands may be cancelled.
    pub cancels: bool,
    /// By how much wall clocks may jump.
    pub clocks: &'static [Millis],
    /// How long a machine sleeps: over a night in which keys grow too old, or only into another day.
    pub night: Millis,
    /// The daily cap, in thousandths of a dollar.
    pub cap: Option<i64>,
    /// True if callers allow another key for a purchase that the service failed.
    pub retry_paid: bool,
    /// True if messages meet the rare deliveries in place of the common ones.
    pub seldom: bool,
    /// True if an app's own backend, which has the key and may refuse, stands between the programs and the service.
    pub relayed: bool,
    /// True if the store may execute a call that makes a name after it has reported a failure, and says so.
    pub late_calls: bool,
    /// True if the store may answer a claim with a name that was not requested.
    pub answers_oddly: bool,
    /// True if the network answers with earlier answers.
    pub mixes_up: bool,
    /// How many sends of a client may be out at once.
    pub places: Option<u32>,
    /// True if a client of the reseller API starts with a token.
    pub has_token: bool,
}

impl Scope {
    /// True if its jobs change sessions.
    pub(crate) fn changes(&self) -> bool {
        self.jobs.iter().any(|job| matches!(job.task, Task::Rotate | Task::Renew | Task::Terminate))
    }

    /// True if the network may mix up its answers.
    pub(crate) fn may_mix_up(&self) -> bool {
        self.mixes_up || self.is_life()
    }

    /// True if the jobs are drawn with the acts.
    pub(crate) fn is_life(&self) -> bool {
        self.jobs.is_empty()
    }
}

/// The values that most scopes share.
const AGENT: Scope = Scope {
    name: "",
    api: Api::Agent,
    before: &[],
    forgets: false,
    jobs: &[],
    others: 0,
    manner: Manner::Usual,
    faults: 2,
    troubles: 1,
    acts: 1,
    deep: (3, 0, 1),
    plans: &[Plan::Again, Plan::ResumeAll],
    reads: false,
    any_order: false,
    cancels: false,
    clocks: &[],
    night: NIGHT,
    cap: None,
    retry_paid: false,
    seldom: false,
    relayed: false,
    late_calls: false,
    answers_oddly: false,
    mixes_up: false,
    places: None,
    has_token: true,
};
const RESELLER: Scope = Scope { api: Api::Reseller, deep: (3, 1, 1), plans: &[Plan::Nothing, Plan::ResumeAll, Plan::Again], ..AGENT };

/// A purchase under a cap that allows two of its kind a day.
const CAPPED: Scope =
    Scope { cap: Some(8_020), deep: (2, 1, 1), retry_paid: true, night: OVERNIGHT, plans: &[Plan::Again, Plan::ResumeAll], ..AGENT };

/// The scopes that are walked in every run.
pub static SCOPES: &[Scope] = &[
    Scope { name: "a session is opened", jobs: &[Job::named(Task::Open, 0)], reads: true, ..AGENT },
    Scope {
        name: "a session of the cheapest product is opened, while prices rise and products run out",
        jobs: &[Job::named(Task::Choose, 50)],
        reads: true,
        faults: 1,
        deep: (2, 1, 1),
        ..AGENT
    },
    Scope {
        name: "a session of the cheapest product is opened under a limit",
        jobs: &[Job::named(Task::Choose, 51)],
        acts: 0,
        deep: (3, 1, 0),
        ..AGENT
    },
    Scope {
        name: "the next session is opened where the one before is over, under a cap",
        before: &[Job::named(Task::Next, 0), Job::unnamed(Task::Terminate, 0)],
        jobs: &[Job::named(Task::Next, 0)],
        reads: true,
        faults: 1,
        cap: Some(12_020),
        ..CAPPED
    },
    Scope {
        name: "a session is opened by two who wait for it, and either may leave",
        jobs: &[Job::named(Task::Open, 0), Job::named(Task::Open, 0)],
        cancels: true,
        faults: 1,
        ..AGENT
    },
    Scope {
        name: "a session is bought without a name",
        jobs: &[Job::unnamed(Task::Create, 0)],
        plans: &[Plan::ResumeAll, Plan::Look],
        ..AGENT
    },
    Scope {
        name: "a session is bought without a name, on a store that does things late",
        jobs: &[Job::unnamed(Task::Create, 0)],
        plans: &[Plan::ResumeAll, Plan::Look],
        faults: 1,
        troubles: 2,
        late_calls: true,
        deep: (1, 2, 1),
        ..AGENT
    },
    Scope {
        name: "a session is bought with a key that was used before",
        before: &[Job::given(Task::Create, 0)],
        forgets: true,
        jobs: &[Job::given(Task::Create, 0)],
        plans: &[Plan::ResumeAll, Plan::Misuse],
        ..AGENT
    },
    Scope {
        name: "somebody drops the record of a session that they may have",
        jobs: &[Job::named(Task::Open, 0)],
        plans: &[Plan::Forget, Plan::Again, Plan::Intrude],
        faults: 1,
        acts: 2,
        ..AGENT
    },
    Scope {
        name: "a session is opened, on a store that answers what nobody asked it",
        jobs: &[Job::named(Task::Open, 0)],
        faults: 0,
        troubles: 2,
        answers_oddly: true,
        deep: (1, 2, 1),
        ..AGENT
    },
    Scope {
        name: "two sessions are bought while the network mixes up its answers",
        jobs: &[Job::named(Task::Open, 0), Job::named(Task::Open, 1)],
        mixes_up: true,
        deep: (2, 1, 1),
        ..AGENT
    },
    Scope {
        name: "two sessions are bought where one may be bought at a time",
        jobs: &[Job::named(Task::Create, 0), Job::unnamed(Task::Create, 1)],
        places: Some(2),
        faults: 1,
        deep: (2, 1, 1),
        ..AGENT
    },
    Scope { name: "a session is bought through an app's own backend", jobs: &[Job::named(Task::Create, 0)], relayed: true, ..AGENT },
    Scope {
        name: "a session is renewed twice, once without a name",
        before: &[Job::named(Task::Rent, 0)],
        jobs: &[Job::named(Task::Renew, 0), Job::unnamed(Task::Renew, SESSIONS)],
        faults: 1,
        plans: &[Plan::ResumeAll, Plan::Again],
        deep: (1, 1, 1),
        ..AGENT
    },
    Scope {
        name: "two programs renew one session, once with a name and once without",
        before: &[Job::named(Task::Rent, 0)],
        jobs: &[Job::named(Task::Renew, 0), Job::unnamed(Task::Renew, SESSIONS)],
        others: 1,
        faults: 1,
        troubles: 0,
        acts: 0,
        plans: &[Plan::Nothing],
        deep: (1, 1, 0),
        ..AGENT
    },
    Scope {
        name: "two budgets are set, one after the other",
        jobs: &[Job::unnamed(Task::Budget, 1)],
        manner: Manner::Hasty,
        faults: 1,
        acts: 2,
        plans: &[Plan::Reset, Plan::ResumeAll],
        ..AGENT
    },
    Scope { name: "a session is rotated", before: &[Job::named(Task::Open, 0)], jobs: &[Job::named(Task::Rotate, 0)], ..AGENT },
    Scope {
        name: "a session is renewed",
        before: &[Job::named(Task::Rent, 0)],
        jobs: &[Job::named(Task::Renew, 0)],
        faults: 1,
        troubles: 2,
        ..AGENT
    },
    Scope {
        name: "a session is ended",
        before: &[Job::named(Task::Open, 0)],
        jobs: &[Job::unnamed(Task::Terminate, 0)],
        reads: true,
        ..AGENT
    },
    Scope {
        name: "money is paid in",
        jobs: &[Job::named(Task::Recharge, 0)],
        clocks: HOURS,
        plans: &[Plan::Again, Plan::Look, Plan::Glance],
        ..AGENT
    },
    Scope {
        name: "somebody looks at a doubt, and settles it when it may have changed",
        jobs: &[Job::named(Task::Recharge, 0)],
        plans: &[Plan::Again, Plan::Note, Plan::SettleNoted],
        faults: 1,
        acts: 2,
        ..AGENT
    },
    Scope { name: "a budget is set", jobs: &[Job::named(Task::Budget, 0)], clocks: HOURS, ..AGENT },
    Scope {
        name: "three sessions are bought under a cap for two",
        jobs: &[Job::named(Task::Create, 0), Job::named(Task::Create, 1), Job::named(Task::Create, 2)],
        faults: 1,
        ..CAPPED
    },
    Scope {
        name: "two sessions are bought under a cap, and the clock is set back into the day before",
        jobs: &[Job::named(Task::Create, 0), Job::named(Task::Create, 1)],
        faults: 1,
        troubles: 2,
        plans: &[Plan::ResumeAll],
        clocks: &[-9 * HOUR],
        ..CAPPED
    },
    Scope {
        name: "two programs buy a session with one key of their caller's, under a cap",
        jobs: &[Job::given(Task::Create, 0)],
        others: 1,
        faults: 1,
        acts: 0,
        plans: &[Plan::Nothing],
        deep: (2, 1, 0),
        ..CAPPED
    },
    Scope {
        name: "a session is bought, and again after a failure, as its buyer allows",
        jobs: &[Job::named(Task::Create, 0)],
        retry_paid: true,
        troubles: 0,
        deep: (2, 1, 1),
        ..AGENT
    },
    Scope {
        name: "answers come late, cut, or with a time to wait",
        jobs: &[Job::named(Task::Open, 0)],
        reads: true,
        seldom: true,
        plans: &[Plan::Hurry],
        ..AGENT
    },
    Scope {
        name: "two programs open one session",
        jobs: &[Job::named(Task::Open, 0)],
        others: 1,
        faults: 1,
        acts: 0,
        plans: &[Plan::Again],
        deep: (0, 2, 0),
        ..AGENT
    },
    Scope {
        name: "each of two programs waits while the other opens one session",
        jobs: &[Job::named(Task::Open, 0)],
        others: 1,
        manner: Manner::Patient,
        faults: 0,
        acts: 0,
        plans: &[Plan::Nothing],
        deep: (1, 1, 0),
        ..AGENT
    },
    Scope {
        name: "two programs pay in the same money, and somebody settles what they saw of it",
        jobs: &[Job::named(Task::Recharge, 0)],
        others: 1,
        faults: 1,
        acts: 2,
        troubles: 0,
        plans: &[Plan::Again, Plan::Note, Plan::SettleNoted],
        deep: (1, 1, 1),
        ..AGENT
    },
    Scope {
        name: "two programs place one static order",
        jobs: &[Job::named(Task::Order, 0)],
        others: 1,
        faults: 1,
        acts: 0,
        plans: &[Plan::Nothing],
        deep: (2, 1, 0),
        ..RESELLER
    },
    Scope {
        name: "three programs open one session",
        jobs: &[Job::named(Task::Open, 0)],
        others: 2,
        faults: 0,
        acts: 0,
        plans: &[Plan::Nothing],
        deep: (1, 1, 0),
        ..AGENT
    },
    Scope { name: "a static order is placed", jobs: &[Job::named(Task::Order, 0)], ..RESELLER },
    Scope {
        name: "a static order is placed without a name",
        jobs: &[Job::unnamed(Task::Order, 0)],
        plans: &[Plan::Nothing, Plan::ResumeAll],
        ..RESELLER
    },
    Scope { name: "a balance is adjusted", jobs: &[Job::named(Task::Adjust, 0)], faults: 3, plans: &[Plan::Again, Plan::Look], ..RESELLER },
    Scope {
        name: "a read and a write share a token",
        jobs: &[Job::unnamed(Task::Balance, 0), Job::unnamed(Task::Adjust, 0)],
        any_order: true,
        plans: &[Plan::Nothing, Plan::Read],
        faults: 3,
        troubles: 0,
        ..RESELLER
    },
    Scope {
        name: "a read and a write share a login",
        jobs: &[Job::unnamed(Task::Balance, 0), Job::unnamed(Task::Adjust, 0)],
        any_order: true,
        plans: &[Plan::Nothing, Plan::Read],
        faults: 3,
        troubles: 0,
        has_token: false,
        ..RESELLER
    },
];

/// The subject of a long life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Many jobs of the agent API.
    Agent,
    /// Many purchases under a cap.
    Capped,
    /// Many jobs of the reseller API.
    Reseller,
    /// The same three, of up to three programs on one store.
    Shared,
    /// Under one cap.
    SharedCap,
    /// At the reseller API.
    SharedReseller,
}

impl Kind {
    /// Every one.
    pub const ALL: [Kind; 6] = [Kind::Agent, Kind::Capped, Kind::Reseller, Kind::Shared, Kind::SharedCap, Kind::SharedReseller];

    /// The world of such a life, in which whatever draws the acts says how much happens.
    pub(crate) fn scope(self) -> &'static Scope {
        const AGENT_LIFE: Scope =
            Scope { name: "a life at the agent API", reads: true, any_order: true, cancels: true, clocks: HOURS, ..AGENT };
        const CAPPED_LIFE: Scope = Scope {
            name: "a life under a cap",
            reads: true,
            any_order: true,
            cancels: true,
            clocks: HOURS,
            cap: Some(30_000),
            places: Some(4),
            ..CAPPED
        };
        const RESELLER_LIFE: Scope =
            Scope { name: "a life at the reseller API", reads: true, any_order: true, cancels: true, clocks: HOURS, ..RESELLER };
        const fn shared(life: Scope) -> Scope {
            Scope { others: 2, ..life }
        }
        const fn late(life: Scope) -> Scope {
            Scope { late_calls: true, ..life }
        }
        const fn crowded(life: Scope) -> Scope {
            Scope { places: Some(2), ..life }
        }
        const fn relayed(life: Scope) -> Scope {
            Scope { relayed: true, ..life }
        }
        static LIVES: [Scope; 6] = [
            late(AGENT_LIFE),
            CAPPED_LIFE,
            late(RESELLER_LIFE),
            relayed(shared(AGENT_LIFE)),
            shared(CAPPED_LIFE),
            crowded(shared(RESELLER_LIFE)),
        ];
        &LIVES[self as usize]
    }
}
