//! The account of a client, and its own records.

use crate::contract::Secret;
use crate::entropy::digest;
use crate::policy::{Rule, Rules};
use crate::state::{Account, BadRecord, Data, Space};
use crate::wire::BaseUrl;

/// The account of a client.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Owner {
    pub(super) name: Secret,
    /// The mark of its records.
    pub(super) digest: Account,
    /// True if the caller states that records of another key or base URL are this account's.
    pub(super) same: bool,
    /// Where its names are.
    pub(super) space: Space,
    /// True if the account can buy, as far as is known.
    pub(super) backend_ready: Option<bool>,
}

impl Owner {
    /// Returns a record's data, if it is of this account.
    pub(super) fn ours(&self, data: Data, base: &BaseUrl, rules: Rules) -> Result<Data, BadRecord> {
        if self.same || !rules.holds(Rule::OthersAreLeft) {
            return Ok(data);
        }
        if data.base_url != base.as_str() {
            return Err(BadRecord::OtherApi(data.base_url));
        }
        let ours = digest(&data.account.salt, &[self.name.reveal()]) == data.account.digest;
        if ours { Ok(data) } else { Err(BadRecord::OtherAccount) }
    }
}
