//! A static order: its state, which follows from the time, its proxy instances, and its record.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::people::Owner;
use super::places;
use super::terms::Terms;
use crate::service::catalogue::Product;
use crate::service::envelope::{Number, timestamp};
use crate::service::session::{self, Session};
use crate::service::{Service, ids};

/// A static order as the sandbox keeps it.
#[derive(Clone, Debug)]
pub(crate) struct StaticOrder {
    pub(super) id: u32,
    pub(crate) order_no: Arc<str>,
    pub(super) app_order_no: Arc<str>,
    pub(crate) owner: Owner,
    pub(crate) product: Arc<Product>,
    pub(super) project: Option<Arc<str>>,
    pub(super) terms: Terms,
    pub(super) price: Decimal,
    pub(super) total: Decimal,
    pub(super) created_at: i64,
    pub(super) ready_at: i64,
    /// Whether it fails when it should become active.
    pub(super) fails: bool,
    /// Whether what it cost was given back after it failed.
    pub(super) is_settled: bool,
    pub(super) is_cancelled: bool,
    pub(super) instances: Vec<Instance>,
}

/// One address of an order, with credentials of its own.
#[derive(Clone, Debug)]
pub(crate) struct Instance {
    /// Its number among all proxies, which its credentials are drawn from.
    pub(super) number: u32,
    pub(super) exit: Ipv4Addr,
    /// When it runs out; those that an operator gave do not.
    pub(super) ends_at: Option<i64>,
    pub(super) traffic_bytes: u64,
}

/// Where a static order stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Processing,
    Active,
    Failed,
    Expired,
    Cancelled,
}

/// Every status, in the order of a life.
pub(super) const STATUSES: [Status; 5] = [Status::Processing, Status::Active, Status::Failed, Status::Expired, Status::Cancelled];

/// An order as the lists show it.
#[derive(Serialize)]
pub(super) struct Record {
    pub(super) id: u32,
    pub(super) order_no: String,
    #[serde(rename = "orderNo")]
    camel_order_no: String,
    pub(super) app_order_no: String,
    #[serde(rename = "appOrderNo")]
    camel_app_order_no: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    supplier_order_no: Option<String>,
    pub(super) user_id: u32,
    username: String,
    product_no: String,
    product_name: String,
    pub(super) status: &'static str,
    ip_count: usize,
    country_code: Option<&'static str>,
    city_code: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    project_id: Option<String>,
    #[serde(flatten)]
    length: Option<Length>,
    unit_price: Number,
    total_amount: Number,
    created_at: String,
    expires_at: Option<String>,
    pub(super) instances: Vec<InstanceRecord>,
    #[serde(skip)]
    pub(super) owner: Owner,
    #[serde(skip)]
    pub(super) created_ms: i64,
    #[serde(skip)]
    pub(super) expires_ms: Option<i64>,
    #[serde(skip)]
    pub(super) place: Option<&'static places::Place>,
}

#[derive(Serialize)]
struct Length {
    duration: i64,
    unit: i64,
    cycle_times: i64,
}

/// A proxy to connect to, and the address that it leaves from.
#[derive(Serialize)]
pub(super) struct InstanceRecord {
    pub(super) instance_id: String,
    pub(super) ip: String,
    pub(super) port: u16,
    pub(super) http_port: u16,
    protocol: &'static str,
    pub(super) exit_ip: Ipv4Addr,
    pub(super) username: String,
    pub(super) password: String,
    status: &'static str,
    expires_at: Option<String>,
}

impl Status {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Processing => "processing",
            Self::Active => "active",
            Self::Failed => "failed",
            Self::Expired => "expired",
            Self::Cancelled => "cancelled",
        }
    }
}

impl StaticOrder {
    pub(crate) fn status(&self, now_ms: i64) -> Status {
        if self.is_cancelled {
            Status::Cancelled
        } else if now_ms < self.ready_at {
            Status::Processing
        } else if self.fails {
            Status::Failed
        } else if self.instances.iter().all(|instance| instance.is_over(now_ms)) {
            Status::Expired
        } else {
            Status::Active
        }
    }

    pub(crate) fn is_active(&self, now_ms: i64) -> bool {
        self.status(now_ms) == Status::Active
    }

    /// An expired order keeps its addresses, since it may be renewed.
    pub(super) fn holds_addresses(&self, now_ms: i64) -> bool {
        !matches!(self.status(now_ms), Status::Cancelled | Status::Failed)
    }

    fn ends_at(&self) -> Option<i64> {
        self.instances.iter().filter_map(|instance| instance.ends_at).max()
    }
}

impl Instance {
    pub(super) fn id(&self) -> String {
        format!("INS-{}", self.number)
    }

    pub(super) fn is_over(&self, now_ms: i64) -> bool {
        self.ends_at.is_some_and(|end| now_ms >= end)
    }
}

impl Service {
    pub(super) fn proxy_username(&self, number: u32) -> String {
        format!("ip-{}", ids::token(self.config.seed, ids::PROXY_USERNAME, number.into()))
    }

    pub(super) fn proxy_password(&self, number: u32) -> String {
        ids::token(self.config.seed, ids::PROXY_PASSWORD, number.into())
    }

    pub(super) fn next_proxy(&mut self) -> u32 {
        self.backend.proxies += 1;
        self.backend.proxies
    }

    /// Every static order in the caller's scope, sessions among them; the newest first.
    pub(super) fn static_records(&self, caller: Owner, now_ms: i64) -> Vec<Record> {
        let orders = self.backend.static_orders.iter().map(|order| self.order_record(order, now_ms));
        let sessions = self.sessions.iter().filter(|session| session.product.stock.is_some() && session.resource.is_none());
        let sessions = sessions.map(|session| self.session_record(session, now_ms));
        let mut records: Vec<Record> = orders.chain(sessions).filter(|record| caller.sees(record.owner)).collect();
        records.sort_by_key(|record| std::cmp::Reverse((record.created_ms, record.id)));
        records
    }

    pub(super) fn order_record(&self, order: &StaticOrder, now_ms: i64) -> Record {
        let status = order.status(now_ms);
        let is_there = matches!(status, Status::Active | Status::Expired);
        let instance = |instance: &Instance| InstanceRecord {
            instance_id: instance.id(),
            exit_ip: instance.exit,
            username: self.proxy_username(instance.number),
            password: self.proxy_password(instance.number),
            status: if instance.is_over(now_ms) { Status::Expired } else { Status::Active }.word(),
            expires_at: instance.ends_at.map(timestamp),
            ..self.door()
        };
        let Terms { duration, unit, cycles, .. } = order.terms;
        Record {
            app_order_no: order.app_order_no.to_string(),
            camel_app_order_no: order.app_order_no.to_string(),
            supplier_order_no: is_there.then(|| format!("SUP-{}", order.id)),
            ip_count: order.instances.len(),
            project_id: order.project.as_deref().map(str::to_owned),
            length: Some(Length { duration, unit, cycle_times: cycles }),
            unit_price: Number(order.price),
            total_amount: Number(order.total),
            instances: if is_there { order.instances.iter().map(instance).collect() } else { Vec::new() },
            ..self.blank(order.id, &order.order_no, order.owner, &order.product, status, order.created_at, order.ends_at())
        }
    }

    /// A session as the order that it is here, under its own id.
    fn session_record(&self, session: &Session, now_ms: i64) -> Record {
        let status = match session.status(now_ms) {
            session::Status::Creating => Status::Processing,
            session::Status::Active => Status::Active,
            session::Status::Expired => Status::Expired,
            session::Status::Terminated => Status::Cancelled,
        };
        let instance = InstanceRecord {
            instance_id: session.id.to_string(),
            protocol: session.protocol,
            exit_ip: session.exit_address(),
            username: session.username(&self.config),
            password: session.password(&self.config),
            status: status.word(),
            expires_at: session.ends_at.map(timestamp),
            ..self.door()
        };
        let is_there = matches!(status, Status::Active | Status::Expired);
        let charged = self.charges.iter().filter(|charge| charge.session_id == session.id).map(|charge| charge.amount);
        let owner = Owner { agent: session.account, user: None };
        Record {
            total_amount: Number(charged.sum()),
            instances: is_there.then_some(instance).into_iter().collect(),
            ..self.blank(session_order_id(session), &session.id, owner, &session.product, status, session.created_at, session.ends_at)
        }
    }

    #[allow(clippy::too_many_arguments, reason = "each is one member of the record")]
    fn blank(
        &self,
        id: u32,
        number: &Arc<str>,
        owner: Owner,
        product: &Product,
        status: Status,
        created: i64,
        ends: Option<i64>,
    ) -> Record {
        let place = places::of(product);
        Record {
            id,
            order_no: number.to_string(),
            camel_order_no: number.to_string(),
            app_order_no: number.to_string(),
            camel_app_order_no: number.to_string(),
            supplier_order_no: None,
            user_id: self.id_of(owner),
            username: self.name_of(owner).to_string(),
            product_no: product.number.clone(),
            product_name: product.name.clone(),
            status: status.word(),
            ip_count: 1,
            country_code: place.map(|place| place.country_code),
            city_code: place.map(|place| place.city_code),
            project_id: None,
            length: None,
            unit_price: Number(self.price(product)),
            total_amount: Number(Decimal::ZERO),
            created_at: timestamp(created),
            expires_at: ends.map(timestamp),
            instances: Vec::new(),
            owner,
            created_ms: created,
            expires_ms: ends,
            place,
        }
    }

    /// Where every instance is reached.
    fn door(&self) -> InstanceRecord {
        InstanceRecord {
            instance_id: String::new(),
            ip: self.config.proxy_host.clone(),
            port: self.config.socks5_port,
            http_port: self.config.http_proxy_port,
            protocol: "socks5",
            exit_ip: Ipv4Addr::LOCALHOST,
            username: String::new(),
            password: String::new(),
            status: "",
            expires_at: None,
        }
    }
}

/// The number of the order that a session is here.
pub(super) fn session_order_id(session: &Session) -> u32 {
    const FIRST: u32 = 1_000_001;
    FIRST.saturating_add(u32::try_from(session.number).unwrap_or(u32::MAX))
}
