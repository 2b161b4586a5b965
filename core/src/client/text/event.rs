//! Progress of a command, and how hosts are told of it: as one object, whose members are those of what happened.

use crate::contract::{Encode, Field, MemberWriter, Record, Shape, Shaped, Sink, host_record, joined};
use crate::engine::{EventKind, EventName};
use crate::state::CommandId;

/// Progress of a command.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Event {
    /// The command, if there is one.
    pub command: Option<CommandId>,
    /// The operation.
    pub operation: &'static str,
    /// The caller's own name for it.
    pub intent: Option<String>,
    /// The kind of the event.
    pub what: EventKind,
}

host_record! {
    /// Progress of a command, for people and metrics. Nothing depends on it.
    struct Head as "Event" {
        /// The command, if there is one.
        command: Option<CommandId>,
        /// The operation.
        operation: &'static str,
        /// Your own name for it.
        intent: Option<String>,
        /// The name of the event.
        event: EventName,
    }
}

/// The members of every event, and those that only some have.
const MEMBERS: &[Field] = &joined::<{ Head::FIELDS.len() + EventKind::MEMBERS.len() }>(Head::FIELDS, EventKind::MEMBERS);
const RECORD: &Record = &Record::new(Head::SHAPE.record().name, Head::SHAPE.record().doc, MEMBERS);

impl Shaped for Event {
    const SHAPE: Shape = Shape::Record(RECORD);
}

impl Encode for Event {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        let head = Head { command: self.command, operation: self.operation, intent: self.intent.clone(), event: self.what.name() };
        let mut members = MemberWriter::of(RECORD, sink);
        head.encode_members(&mut members);
        self.what.put(&mut members, Head::FIELDS.len());
        members.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::json_of;
    use crate::engine::{EVENTS, RecordId};

    #[test]
    fn an_event_is_told_with_the_members_that_it_has() {
        let told = |what| json_of(&Event { command: Some(CommandId(3)), operation: "renew_session", intent: None, what });
        let doubt = EventKind::RenewalInDoubt { record: RecordId("00ab".to_owned()), session_id: "s-1".to_owned() };
        let expected = r#"{"command":3,"operation":"renew_session","event":"renewal_in_doubt","record":"00ab","session_id":"s-1"}"#;
        assert_eq!(told(doubt), expected);
        assert_eq!(told(EventKind::PoolFreed), r#"{"command":3,"operation":"renew_session","event":"pool_freed"}"#);
    }

    #[test]
    fn no_member_of_an_event_has_a_name_that_every_event_has() {
        let own = EVENTS.iter().flat_map(|event| event.fields).map(|field| field.name);
        assert_eq!(own.filter(|name| Head::FIELDS.iter().any(|head| head.name == *name)).collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
