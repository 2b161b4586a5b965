//! The view that a test has: the real state, without credentials.

use rust_decimal::Decimal;
use serde::Serialize;

use crate::service::Service;
use crate::service::envelope::Number;

/// The backend as an onlooker sees it.
#[derive(Clone, Debug, Serialize)]
pub struct BackendView {
    /// Every sub-user, deleted ones among them.
    pub users: Vec<UserView>,
    /// Every static order that was accepted here, in order.
    pub static_orders: Vec<StaticOrderView>,
    /// Every dynamic order that was accepted here, in order.
    pub dynamic_orders: Vec<DynamicOrderView>,
    /// How many proxies were extracted.
    pub extracted: usize,
    /// Every charge, refund, top-up and adjustment, in order.
    pub entries: Vec<EntryView>,
    /// Every USDT order, in order.
    pub usdt_orders: Vec<UsdtOrderView>,
}

/// A sub-user as an onlooker sees it.
#[derive(Clone, Debug, Serialize)]
pub struct UserView {
    /// Its number.
    pub id: u32,
    /// The number of its reseller.
    pub agent_id: u32,
    /// Its user name.
    pub username: String,
    /// `active`, `disabled` or `deleted`.
    pub status: &'static str,
    /// Its balance.
    #[serde(serialize_with = "number")]
    pub balance: Decimal,
}

/// A static order as an onlooker sees it.
#[derive(Clone, Debug, Serialize)]
pub struct StaticOrderView {
    /// Its number.
    pub order_no: String,
    /// The id of its owner.
    pub user_id: u32,
    /// Its product.
    pub product_no: String,
    /// `processing`, `active`, `failed`, `expired` or `cancelled`.
    pub status: &'static str,
    /// How many addresses it has.
    pub ip_count: usize,
    /// Its cost when it was placed.
    #[serde(serialize_with = "number")]
    pub total_amount: Decimal,
    /// The bytes through its proxies, both ways.
    pub traffic_bytes: u64,
}

/// A dynamic order as an onlooker sees it.
#[derive(Clone, Debug, Serialize)]
pub struct DynamicOrderView {
    /// Its number.
    pub order_no: String,
    /// The id of its owner.
    pub user_id: u32,
    /// Its product.
    pub product_no: String,
    /// The traffic that was bought, in GB.
    #[serde(serialize_with = "number")]
    pub traffic_gb: Decimal,
    /// Its cost.
    #[serde(serialize_with = "number")]
    pub total_amount: Decimal,
    /// The bytes through its proxies, both ways.
    pub traffic_bytes: u64,
}

/// One change of a balance as an onlooker sees it.
#[derive(Clone, Debug, Serialize)]
pub struct EntryView {
    /// The owner of the balance; for an adjustment, the sub-user.
    pub user_id: u32,
    /// `purchase`, `renewal`, `refund`, `recharge` or `adjustment`.
    pub r#type: &'static str,
    /// The order it was for.
    pub order_no: Option<String>,
    /// Below zero when it was taken.
    #[serde(serialize_with = "number")]
    pub amount: Decimal,
    /// The remark.
    pub remark: Option<String>,
    /// When, in Unix milliseconds.
    pub at_ms: i64,
}

/// A USDT order as an onlooker sees it.
#[derive(Clone, Debug, Serialize)]
pub struct UsdtOrderView {
    /// Its number.
    pub order_no: String,
    /// The id of its owner.
    pub user_id: u32,
    /// `pending`, `paid` or `cancelled`.
    pub status: &'static str,
    /// Its amount.
    #[serde(serialize_with = "number")]
    pub amount: Decimal,
}

fn number<S: serde::Serializer>(amount: &Decimal, serializer: S) -> Result<S::Ok, S::Error> {
    Number(*amount).serialize(serializer)
}

impl Service {
    /// Everything that the backend keeps, at a moment.
    pub fn backend(&mut self, now_ms: i64) -> BackendView {
        self.settle(now_ms);
        let users = self.backend.users.iter().enumerate().map(|(place, user)| UserView {
            id: super::people::user_id(place),
            agent_id: self.accounts[user.agent].agent_id,
            username: user.username.to_string(),
            status: user.status(),
            balance: user.balance,
        });
        let static_orders = self.backend.static_orders.iter().map(|order| StaticOrderView {
            order_no: order.order_no.to_string(),
            user_id: self.id_of(order.owner),
            product_no: order.product.number.clone(),
            status: order.status(now_ms).word(),
            ip_count: order.instances.len(),
            total_amount: order.total,
            traffic_bytes: order.instances.iter().map(|instance| instance.traffic_bytes).sum(),
        });
        let dynamic_orders = self.backend.dynamic_orders.iter().map(|order| DynamicOrderView {
            order_no: order.order_no.to_string(),
            user_id: self.id_of(order.owner),
            product_no: order.product.number.clone(),
            traffic_gb: order.traffic,
            total_amount: order.total,
            traffic_bytes: order.used_bytes,
        });
        let entries = self.backend.entries.iter().map(|entry| EntryView {
            user_id: self.id_of(entry.owner),
            r#type: entry.kind.word(),
            order_no: entry.order_no.as_deref().map(str::to_owned),
            amount: entry.amount,
            remark: entry.remark.as_deref().map(str::to_owned),
            at_ms: entry.at_ms,
        });
        let usdt_orders = self.backend.usdt_orders.iter().map(|order| UsdtOrderView {
            order_no: order.order_no.to_string(),
            user_id: self.id_of(order.owner),
            status: order.status.word(),
            amount: order.amount,
        });
        BackendView {
            users: users.collect(),
            static_orders: static_orders.collect(),
            dynamic_orders: dynamic_orders.collect(),
            extracted: self.backend.extracts.len(),
            entries: entries.collect(),
            usdt_orders: usdt_orders.collect(),
        }
    }
}
