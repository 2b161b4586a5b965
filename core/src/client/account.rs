//! The account of a client, and its own records.

use arcstr::ArcStr;

use crate::contract::{Api, Secret};
use crate::entropy::digest;
use crate::policy::{Rule, Rules};
use crate::state::{Account, BadRecord, Data, RequestIdentity, Space};
use crate::time::At;

/// The account of a client.
#[derive(Debug)]
#[cfg_attr(feature = "ablation", derive(Clone, Hash))]
pub(super) struct Owner {
    name: Secret,
    /// The mark of its records.
    mark: Account,
    api: Api,
    base_url: String,
    /// True if the caller states that records of another key or base URL are this account's.
    is_same: bool,
    /// The place of its names.
    space: Space,
    /// True if the account can buy, as far as is known.
    backend_ready: Option<bool>,
}

impl Owner {
    /// The account of that name, or of the key that stands for it.
    pub(super) fn new(
        name: Secret,
        salt: String,
        space: Space,
        (api, base_url): (Api, &str),
        is_same: bool,
        backend_ready: Option<bool>,
    ) -> Self {
        let mark = Account { digest: digest(&salt, &[name.reveal()]), salt };
        Owner { name, mark, api, base_url: base_url.to_owned(), is_same, space, backend_ready }
    }

    /// The place of its names.
    pub(super) fn space(&self) -> &Space {
        &self.space
    }

    /// The service says whether the account can buy.
    pub(super) fn set_backend_ready(&mut self, ready: bool) {
        self.backend_ready = Some(ready);
    }

    /// Returns true if the account can't buy, as far as is known.
    pub(super) fn is_not_ready(&self) -> bool {
        self.backend_ready == Some(false)
    }

    /// Reads a record, if it is of this account.
    pub(super) fn read(&self, bytes: &[u8], rules: Rules) -> Result<Data, BadRecord> {
        let data = Data::read(bytes, self.api)?;
        if self.is_same || !rules.holds(Rule::OthersAreLeft) {
            return Ok(data);
        }
        if data.base_url != self.base_url {
            return Err(BadRecord::OtherApi(data.base_url));
        }
        if is_of(&data, &self.name) { Ok(data) } else { Err(BadRecord::OtherAccount) }
    }

    /// An empty record of this account.
    pub(super) fn record(&self, at: At, bought_as: Option<&RequestIdentity>) -> Data {
        Data {
            hopline: Data::version(),
            base_url: self.base_url.clone(),
            account: self.mark.clone(),
            at,
            intent: bought_as.and_then(|known| known.intent.as_ref().map(ArcStr::to_string)),
            key: bought_as.and_then(|known| known.key.as_ref().map(ArcStr::to_string)),
            fingerprint: bought_as.map(|known| known.fingerprint),
            members: bought_as.map(|known| known.members.clone()),
            later: bought_as.and_then(|known| known.later.as_deref().cloned()),
            ..Data::default()
        }
    }
}

/// Returns true if a record is of an account by that name, or of the key that stands for it.
pub(super) fn is_of(data: &Data, name: &Secret) -> bool {
    digest(&data.account.salt, &[name.reveal()]) == data.account.digest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::Done;

    fn owner(name: &str, base_url: &str, is_same: bool) -> Owner {
        Owner::new(Secret::new(name), "salt".into(), Space("5e".into()), (Api::Agent, base_url), is_same, None)
    }

    #[test]
    fn a_record_is_read_by_its_own_account_alone() {
        let done = Some(Done { operation: "create_session".into(), ..Done::default() });
        let bytes = Data { done, ..owner("a", "https://api.example", false).record(At::default(), None) }.bytes();
        for (name, base_url, is_same, expected) in [
            ("a", "https://api.example", false, "read"),
            ("a", "https://other.example", false, "another API"),
            ("b", "https://api.example", false, "another account"),
            ("b", "https://other.example", true, "read"),
        ] {
            let found = match owner(name, base_url, is_same).read(&bytes, Rules::default()) {
                Ok(_) => "read",
                Err(BadRecord::OtherApi(_)) => "another API",
                Err(BadRecord::OtherAccount) => "another account",
                Err(_) => "nothing",
            };
            assert_eq!(found, expected, "{name} {base_url} {is_same}");
        }
        assert!(owner("a", "", true).read(b"{", Rules::default()).is_err());
    }
}
