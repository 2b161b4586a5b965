//! State that outlives a job: names and their data, sessions, logins.

mod fingerprint;
mod ids;
mod journal;
mod names;
mod observed;
mod record;
mod saved;
mod sessions;
mod shared_request;
mod slot;
mod store;
mod tracked;

pub(crate) use self::fingerprint::{Fingerprint, MemberDigests};
pub(crate) use self::ids::PoolNo;
pub use self::ids::{CommandId, StepId};
pub(crate) use self::journal::Journal;
pub(crate) use self::names::Version;
pub use self::names::{Name, Space};
pub(crate) use self::observed::UNKNOWN;
pub use self::observed::{Seen, Verdict, VerdictName};
pub(crate) use self::record::{Account, Data, Done, LaterPurchase, SavedCall, SavedSession, intent_of};
pub use self::record::{BadRecord, Description, describe};
pub use self::saved::{RecordKind, Saved, SavedPage};
pub(crate) use self::sessions::{KeptSession, Sessions};
pub(crate) use self::shared_request::{SharedFailure, SharedKind, SharedRequest};
pub(crate) use self::slot::{JobId, User, WriteResult};
pub(crate) use self::store::STORE_AGAIN;
pub use self::store::{Listed, Memory, StoreAnswer, StoreCall, Whose};
pub(crate) use self::tracked::RequestIdentity;
