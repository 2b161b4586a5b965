//! Whose client it is, and which records are its own.

use crate::contract::Secret;
use crate::entropy::digest;
use crate::policy::{Rule, Rules};
use crate::state::{Account, BadRecord, Data, Space};
use crate::wire::BaseUrl;

/// Whose client it is.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Owner {
    pub(super) name: Secret,
    /// What its records are marked with.
    pub(super) digest: Account,
    /// Whether the caller says that records of another key or base URL are this account's.
    pub(super) same: bool,
    /// Where its names are.
    pub(super) space: Space,
    /// Whether the account can buy, as far as is known.
    pub(super) backend_ready: Option<bool>,
}

impl Owner {
    /// What a record says, if it is of this account.
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
