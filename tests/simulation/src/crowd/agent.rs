//! What the callers of the agent API do, and what must be true in the end.

use std::collections::BTreeSet;

use hopline::client::{Answered, CallOptions, CommandId, Holds};
use hopline::{Effect, Error, Kind};

use super::Crowd;

const BUY: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":0.01}"#;

impl Crowd {
    pub(super) fn start_at_agent(&mut self) -> CommandId {
        let sessions = self.world.service.sessions(self.world.now.unix);
        let any = if sessions.is_empty() { None } else { Some(sessions[self.below(sessions.len() as u64) as usize].session_id.clone()) };
        match (self.below(9), any) {
            (7, _) => {
                // Two intents may be given one key: then they are one purchase.
                let operation = if self.below(2) == 0 { "open_session" } else { "create_session" };
                let name = format!("{operation}-{}", self.below(4));
                let key = Some(format!("mine-{}", self.below(2)));
                self.names.entry(name.clone()).or_default();
                let options = CallOptions { idempotency_key: key, attempts: Some(2), ..CallOptions::intent(name) };
                self.client.start_json(operation, BUY, options)
            }
            (8, Some(id)) => {
                let options = CallOptions::intent(format!("turn-{}", self.below(3)));
                self.client.start_json("rotate_session", &format!("{{\"session_id\":\"{id}\"}}"), options)
            }
            (0..=2, _) | (_, None) => {
                let name = format!("job-{}", self.below(6));
                self.names.entry(name.clone()).or_default();
                self.client.start_json("open_session", BUY, CallOptions::intent(name))
            }
            (3, Some(id)) => self.client.start_json("rotate_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (5, Some(id)) => self.client.start_json("terminate_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (4, Some(id)) => self.client.start_json("get_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
            (_, Some(id)) => self.client.start_json("wait_session", &format!("{{\"session_id\":\"{id}\"}}"), CallOptions::default()),
        }
    }

    /// Notes which names are free again.
    pub(super) fn learn_at_agent(&mut self, result: &Result<Answered, Error>) {
        let Err(error) = result else { return };
        let mine = error.kind != Kind::Busy && error.kind != Kind::Invalid && error.operation == "create_session";
        if let (true, Effect::None, Some(name)) = (mine, error.effect, error.intent.as_ref()) {
            *self.names.entry(name.clone()).or_default() += 1;
        }
    }

    /// No intent was bought more often than it was free to be, and nothing that was sold is unknown.
    pub(super) fn count_at_agent(&mut self) -> Result<(), String> {
        let charges = self.world.service.charges().len() as u32;
        let free: u32 = self.names.values().map(|refused| 1 + refused).sum();
        if charges > free {
            return Err(format!("{charges} charges for {} intents", self.names.len()));
        }
        let held = self.client.saved();
        let known: BTreeSet<&str> = held.iter().filter_map(|saved| saved.session_id.as_deref()).collect();
        let doubtful = held.iter().any(|saved| matches!(saved.holds, Holds::InDoubt | Holds::InDoubtForGood));
        let lost: Vec<String> = self.world.service.sessions(self.world.now.unix).into_iter().map(|session| session.session_id).collect();
        let lost: Vec<&String> = lost.iter().filter(|id| !known.contains(id.as_str())).collect();
        if !lost.is_empty() && !doubtful {
            return Err(format!("sold and forgotten: {lost:?}"));
        }
        Ok(())
    }
}
