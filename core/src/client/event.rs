//! Progress of a command, and how hosts are told of it: as one object, whose members are those of what happened.

use crate::contract::pools::PoolHoldReason;
use crate::contract::{Shape, Shaped, Sink, Tell, told};
use crate::engine::{EventKind, EventName, Phase};
use crate::policy::Error;
use crate::state::CommandId;
use crate::time::Millis;

/// Progress of a command.
#[derive(Debug, Clone, PartialEq, Hash)]
pub struct Event {
    /// Which command, where it belongs to one.
    pub command: Option<CommandId>,
    /// Which operation.
    pub operation: &'static str,
    /// The caller's own name for it.
    pub intent: Option<String>,
    /// What happened.
    pub what: EventKind,
}

told! {
    /// Progress of a command, for people and metrics. Nothing depends on it.
    struct Told as "Event" {
        /// Which command, where it belongs to one.
        command: Option<CommandId>,
        /// Which operation.
        operation: &'static str,
        /// Your own name for it.
        intent: Option<String>,
        /// What happened.
        event: EventName,
        /// Of `repeating`: sends so far.
        attempts: Option<u32>,
        /// Of `repeating`: the time until the next send.
        delay_ms: Option<Millis> => Span,
        /// Of `repeating`: what came of the last send.
        because: Option<Error>,
        /// Of `accepted`, `charged`, `status`, `renewal_in_doubt`, `pool_rotated` and `lease_leaked`: the session.
        session_id: Option<String>,
        /// Of `accepted`: USD.
        estimated_charge_usd: Option<String> => Decimal,
        /// Of `charged`: what it cost, in USD, where the answer says so.
        charged_usd: Option<String> => Decimal,
        /// Of `charged`: its key.
        idempotency_key: Option<String>,
        /// Of `ordered`, `charged` and `order_status`: the order's number.
        order_no: Option<String>,
        /// Of `status` and `order_status`: as it came.
        status: Option<String>,
        /// Of `status` and `order_status`: what it means for waiting.
        phase: Option<Phase>,
        /// Of `differing` and `rounded`: where, in the spelling that counts.
        members: Option<Vec<String>>,
        /// Of `priced`: USD for one unit.
        unit_price: Option<String> => Decimal,
        /// Of `watched`: what is there now, where it is a word or a number.
        value: Option<String>,
        /// Of `in_doubt`, `renewal_in_doubt` and `store_failed`: the record.
        record: Option<String>,
        /// Of `pool_held`: why nothing is bought.
        reason: Option<PoolHoldReason>,
        /// Of `pool_held`: when one purchase is tried; absent where somebody has to act first.
        retry_at: Option<Millis> => Time,
        /// Of `lease_leaked`: the lease.
        lease: Option<i64>,
        /// Of `pool_rotated`: why, a reason of `rotate_session`, such as `captcha` or `scheduled`.
        cause: Option<String>,
    }
}

impl Told {
    /// What every event has.
    fn new(event: &Event) -> Told {
        Told {
            command: event.command,
            operation: event.operation,
            intent: event.intent.clone(),
            event: event.what.name(),
            attempts: None,
            delay_ms: None,
            because: None,
            session_id: None,
            estimated_charge_usd: None,
            charged_usd: None,
            idempotency_key: None,
            order_no: None,
            status: None,
            phase: None,
            members: None,
            unit_price: None,
            value: None,
            record: None,
            reason: None,
            retry_at: None,
            lease: None,
            cause: None,
        }
    }
}

impl From<&Event> for Told {
    fn from(event: &Event) -> Told {
        let told = Told::new(event);
        let some = |text: &String| Some(text.clone());
        match &event.what {
            EventKind::Repeating { attempts, delay_ms, because } => {
                Told { attempts: Some(*attempts), delay_ms: Some(*delay_ms), because: Some(because.clone()), ..told }
            }
            EventKind::AskingTime => told,
            EventKind::Accepted { session_id, estimated_charge_usd } => {
                Told { session_id: some(session_id), estimated_charge_usd: estimated_charge_usd.clone(), ..told }
            }
            EventKind::Charged { idempotency_key, session_id, order_no, charged_usd } => Told {
                idempotency_key: idempotency_key.clone(),
                session_id: session_id.clone(),
                order_no: order_no.clone(),
                charged_usd: charged_usd.clone(),
                ..told
            },
            EventKind::Status { session_id, status, phase } => {
                Told { session_id: some(session_id), status: some(status), phase: Some(*phase), ..told }
            }
            EventKind::Ordered { order_no } => Told { order_no: some(order_no), ..told },
            EventKind::OrderStatus { order_no, status, phase } => {
                Told { order_no: some(order_no), status: some(status), phase: Some(*phase), ..told }
            }
            EventKind::Differing { members } | EventKind::Rounded { members } => Told { members: Some(members.clone()), ..told },
            EventKind::Priced { unit_price } => Told { unit_price: some(unit_price), ..told },
            EventKind::Watched { value } => Told { value: value.clone(), ..told },
            EventKind::InDoubt { record } => Told { record: record.as_ref().map(|record| record.0.clone()), ..told },
            EventKind::RenewalInDoubt { record, session_id } => Told { record: some(&record.0), session_id: some(session_id), ..told },
            EventKind::StoreFailed { record } => Told { record: some(&record.0), ..told },
            EventKind::PoolHeld { reason, retry_at } => Told { reason: Some(*reason), retry_at: *retry_at, ..told },
            EventKind::PoolFreed => told,
            EventKind::PoolRotated { session_id, cause } => Told { session_id: some(session_id), cause: some(cause), ..told },
            EventKind::LeaseLeaked { lease, session_id } => Told { lease: Some(*lease), session_id: some(session_id), ..told },
        }
    }
}

impl Shaped for Event {
    const SHAPE: Shape = Told::SHAPE;
}

impl Tell for Event {
    fn tell<S: Sink>(&self, sink: &mut S) -> S::Value {
        Told::from(self).tell(sink)
    }
}
