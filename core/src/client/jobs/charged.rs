//! The keys whose charge was reported. A key is sent again where its answer came and its record could not be put, and is then reported no
//! second time.

use std::hash::{Hash, Hasher};
use std::mem;

use crate::collections::Map;
use crate::time::{DAY, Millis};

/// The keys of the last day at least: no key is sent again that is older than [`KEY_WINDOW`](crate::policy::KEY_WINDOW).
#[derive(Debug, Clone, Default)]
pub(crate) struct ChargedKeys {
    recent: Map<String, ()>,
    /// Those of the day before `since`.
    older: Map<String, ()>,
    /// Monotonic.
    since: Millis,
}

impl ChargedKeys {
    /// Returns true the first time that a key is charged. A write without a key is charged anew each time.
    pub(crate) fn is_first(&mut self, key: Option<&str>, monotonic: Millis) -> bool {
        let Some(key) = key else { return true };
        if monotonic.saturating_sub(self.since) >= DAY {
            self.since = monotonic;
            self.older = mem::take(&mut self.recent);
        }
        !self.older.contains_key(key) && self.recent.insert(key.to_owned(), ()).is_none()
    }
}

/// Nothing: what is reported decides nothing of what is sent, so clients that differ only by it do the same.
impl Hash for ChargedKeys {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::testing::{BUY, DATE, NOW, agent};
    use crate::client::{CallOptions, Client, Now, Outcome, Step, StoreCall};
    use crate::engine::EventKind;
    use crate::policy::KEY_WINDOW;
    use crate::state::{Memory, StoreAnswer};

    #[test]
    fn a_key_is_charged_once_for_as_long_as_it_may_be_sent() {
        let mut keys = ChargedKeys::default();
        for at in [0, DAY - 1, DAY, 5 * DAY] {
            assert!(keys.is_first(Some(&format!("k-{at}")), at), "{at}");
            assert!(!keys.is_first(Some(&format!("k-{at}")), at + KEY_WINDOW), "{at}");
            assert!(keys.is_first(None, at) && keys.is_first(None, at));
        }
        assert!(keys.recent.len() + keys.older.len() <= 2, "{keys:?}");
    }

    /// Answers everything until the client waits, and loses each claim of a name whose session is to be put while `loses`. Returns the
    /// number of purchases that were sent, and of those that were reported as charged.
    fn drain(client: &mut Client, disk: &mut Memory, now: Now, loses: bool) -> (u32, u32) {
        let (mut sent, mut charged) = (0, 0);
        loop {
            match client.poll(now) {
                Step::Wait { .. } => return (sent, charged),
                Step::Completed { .. } => {}
                Step::Notify(event) => charged += u32::from(matches!(event.what, EventKind::Charged { .. })),
                Step::Store { id, call, .. } => {
                    let is_session =
                        matches!(&call, StoreCall::Put { data, .. } if String::from_utf8_lossy(data).contains("\"session\":{"));
                    let answer = if loses && is_session { StoreAnswer::Lost } else { disk.call(call, now.unix, now.monotonic) };
                    client.resolve(id, Outcome::Store(answer), now).expect("is out");
                }
                Step::Send { id, request, .. } => {
                    sent += u32::from(request.url.ends_with("/sessions"));
                    let body = r#"{"success":true,"data":{"session_id":"s-1","session_type":"dynamic","status":"active","estimated_charge_usd":4}}"#;
                    let answer = Outcome::Response { status: 200, headers: &[("date", DATE)], body: body.as_bytes(), truncated: false };
                    client.resolve(id, answer, now).expect("is out");
                }
            }
        }
    }

    #[test]
    fn a_purchase_whose_claim_ends_between_its_answer_and_its_put_is_reported_as_charged_once() {
        let (mut client, mut disk) = (agent(7, true), Memory::default());
        let options = || CallOptions { credentials: Some(false), ..CallOptions::intent("job") };
        let first = client.start_json("open_session", BUY, options());
        assert_eq!(drain(&mut client, &mut disk, NOW, true), (1, 1));
        client.take_answer(first).expect("has completed").expect_err("has lost its name");
        client.start_json("open_session", BUY, options());
        assert_eq!(drain(&mut client, &mut disk, NOW, false), (1, 0));
    }
}
