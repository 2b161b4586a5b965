//! Records that were refused: each keeps the intent that can be read in it from being bought a second time, until somebody
//! forgets it.

use super::root::Client;
use crate::engine::RecordId;
use crate::policy::{Error, Report};
use crate::state::{BadRecord, Holds, Refused, Saved};

impl Client {
    /// Remembers a record that was refused; `blocks` says whether what it stands for may be this account's.
    pub(super) fn refuse_record(&mut self, record: RecordId, bad: BadRecord, intent: Option<String>, blocks: bool) {
        self.unrefuse_record(&record);
        if let (true, Some(intent)) = (blocks, &intent) {
            self.refused_intents.insert((intent.clone(), record.clone()));
        }
        self.refused.insert(record, Refused { bad, intent });
    }

    /// The record is held now, or gone. Returns whether it had been refused.
    pub(super) fn unrefuse_record(&mut self, record: &RecordId) -> bool {
        let Some(refused) = self.refused.remove(record) else { return false };
        if let Some(intent) = refused.intent {
            self.refused_intents.remove(&(intent, record.clone()));
        }
        true
    }

    /// Why nothing is started under an intent: a record that was refused may stand for it, and nothing else does.
    pub(super) fn refused_intent(&self, intent: &str, operation: &'static str) -> Option<Error> {
        if self.intents.contains_key(intent) {
            return None;
        }
        let first = (intent.to_owned(), RecordId(String::new()));
        let (_, record) = self.refused_intents.range(first..).next().filter(|(name, _)| name == intent)?;
        let rule = match &self.refused.get(record)?.bad {
            BadRecord::OtherApi(_) | BadRecord::OtherAccount => {
                "has a record of another API key or base URL: say `same_account` where only those have changed; where it is another \
                 account, name each with `account` or use another store"
            }
            _ => "has a record that can't be read, so it may have been bought: look at the account, then forget that record",
        };
        Some(Error::from(Report { record: Some(record.0.clone()), ..Error::invalid(operation, "intent", rule).into_report() }))
    }

    /// The records that were refused, for people.
    pub(super) fn refused_records(&self) -> impl Iterator<Item = Saved> {
        self.refused.iter().map(|(record, refused)| Saved {
            record: record.clone(),
            operation: "restore".to_owned(),
            intent: refused.intent.clone(),
            session_id: None,
            order_no: None,
            status: None,
            holds: Holds::Refused,
            reason: Some(refused.bad.as_str()),
            in_doubt_since: None,
        })
    }
}
