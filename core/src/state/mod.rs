//! What outlives a job: records on their way to the store, sessions, intents, the day's total, logins.

mod errand;
mod guard;
mod ids;
mod intents;
mod journal;
mod kept;
mod observed;
mod record;
mod sessions;

pub(crate) use self::errand::Errand;
pub(crate) use self::guard::Guard;
pub(crate) use self::ids::IdAllocator;
pub use self::ids::{CommandId, StepId};
pub(crate) use self::intents::{Accepted, Intent, KEPT_RAW};
pub(crate) use self::journal::{JobId, Owner, Store};
pub use self::kept::{Holds, Saved};
pub(crate) use self::kept::{Refused, Untaken};
pub use self::observed::{Seen, Verdict};
pub(crate) use self::record::{Account, Data, Done, SavedCall, SavedSession, intent_of};
pub use self::record::{BadRecord, Description, describe};
pub(crate) use self::sessions::{Tracked, forbidden, is_over_for_good};
