//! What is done on a path, and how often the service did it.

use hopline::client::{CallOptions, Client, CommandId};
use hopline::contract::Api;

use crate::world::World;

/// What is done on each path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Story {
    /// `open_session` under an intent.
    Open,
    /// A plain `create_session`, without an intent.
    Create,
    /// A plain `create_session` with a key that another process may have used before.
    CreateWithGivenKey,
    /// `rotate_session` under an intent.
    Rotate,
    /// `renew_session` under an intent.
    Renew,
    /// `create_recharge` under an intent.
    Recharge,
    /// `update_budget` under an intent.
    Budget,
    /// `place_order` under an intent.
    Order,
    /// `place_order` without an intent.
    OrderUnnamed,
    /// `adjust_sub_user_balance` under an intent.
    Adjust,
    /// `adjust_sub_user_balance` without an intent.
    AdjustUnnamed,
}

const BUY: &str = r#"{"session_type":"dynamic","product_no":"dynamic-world","quantity":1}"#;
const RENT: &str = r#"{"session_type":"static","product_no":"static-us","quantity":1}"#;
/// What an adjustment is known by.
pub(crate) const REMARK: &str = "pocket money";
const ADJUST: &str = r#"{"user_id":200001,"amount":5,"remark":"pocket money"}"#;
/// A static order for the only sub-user.
pub(crate) const ORDER: &str =
    r#"{"poolId":"static-us","userId":200001,"unitPrice":0,"totalAmount":0,"ipCount":1,"cycleTimes":1,"duration":1,"unit":"month"}"#;

impl Story {
    /// The stories of the agent API.
    pub const AGENT: [Story; 7] =
        [Story::Open, Story::Create, Story::CreateWithGivenKey, Story::Rotate, Story::Renew, Story::Recharge, Story::Budget];
    /// The stories of the reseller API.
    pub const RESELLER: [Story; 4] = [Story::Order, Story::OrderUnnamed, Story::Adjust, Story::AdjustUnnamed];

    pub(crate) fn api(self) -> Api {
        if Story::RESELLER.contains(&self) { Api::Reseller } else { Api::Agent }
    }

    /// Whether it buys a session.
    pub(crate) fn buys(self) -> bool {
        matches!(self, Story::Open | Story::Create | Story::CreateWithGivenKey)
    }

    /// Whether it places an order.
    pub(crate) fn orders(self) -> bool {
        matches!(self, Story::Order | Story::OrderUnnamed)
    }

    /// Whether it costs nothing, so that it may be tried again with a new key.
    pub(crate) fn is_free(self) -> bool {
        matches!(self, Story::Rotate | Story::Budget)
    }

    /// The caller's own name for it.
    pub(crate) fn intent(self) -> Option<&'static str> {
        match self {
            Story::Open => Some("job-1"),
            Story::Rotate => Some("turn-1"),
            Story::Renew => Some("longer-1"),
            Story::Recharge => Some("pay-1"),
            Story::Budget => Some("limit-1"),
            Story::Order => Some("order-1"),
            Story::Adjust => Some("money-1"),
            Story::Create | Story::CreateWithGivenKey | Story::OrderUnnamed | Story::AdjustUnnamed => None,
        }
    }

    /// What a session is bought with, before the story of its change.
    pub(crate) fn needs(self) -> Option<&'static str> {
        match self {
            Story::Rotate => Some(BUY),
            Story::Renew => Some(RENT),
            _ => None,
        }
    }

    /// Starts it; `session` is what it is about.
    pub(crate) fn start(self, client: &mut Client, session: &str) -> CommandId {
        let mut options = self.intent().map_or_else(CallOptions::default, CallOptions::intent);
        if self == Story::CreateWithGivenKey {
            options.idempotency_key = Some("mine-1".into());
        }
        let (operation, params) = match self {
            Story::Open => ("open_session", BUY.to_owned()),
            Story::Create | Story::CreateWithGivenKey => ("create_session", BUY.to_owned()),
            Story::Rotate => ("rotate_session", format!("{{\"session_id\":\"{session}\"}}")),
            Story::Renew => ("renew_session", format!("{{\"session_id\":\"{session}\",\"duration\":1}}")),
            Story::Recharge => ("create_recharge", r#"{"amount_usd":10}"#.to_owned()),
            Story::Budget => ("update_budget", r#"{"daily_limit_usd":50}"#.to_owned()),
            Story::Order | Story::OrderUnnamed => ("place_order", ORDER.to_owned()),
            Story::Adjust | Story::AdjustUnnamed => ("adjust_sub_user_balance", ADJUST.to_owned()),
        };
        client.start_json(operation, &params, options)
    }

    /// Starts another purchase with the key that was given to `CreateWithGivenKey`.
    pub(crate) fn misuse_key(client: &mut Client) -> CommandId {
        client.start_json("create_session", RENT, CallOptions { idempotency_key: Some("mine-1".into()), ..CallOptions::default() })
    }

    /// How often the service did what it asks for.
    pub(crate) fn effects(self, world: &mut World) -> usize {
        let now = world.now.unix;
        match self {
            Story::Rotate => world.service.sessions(now).iter().map(|session| session.rotations as usize).sum(),
            Story::Recharge => world.service.orders().len(),
            Story::Budget => world.service.executions().get("update_budget").map_or(0, |done| *done as usize),
            Story::Open | Story::Create | Story::CreateWithGivenKey | Story::Renew => world.service.charges().len(),
            Story::Order | Story::OrderUnnamed => world.service.backend(now).static_orders.len(),
            Story::Adjust | Story::AdjustUnnamed => adjustments(world),
        }
    }
}

/// How often the balance was adjusted.
pub(crate) fn adjustments(world: &mut World) -> usize {
    let entries = world.service.backend(world.now.unix).entries;
    entries.iter().filter(|entry| entry.r#type == "adjustment" && entry.remark.as_deref() == Some(REMARK)).count()
}
