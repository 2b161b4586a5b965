//! A static order: its state, which follows from the time, its proxy instances, and its record.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;

use super::call::Owner;
use super::terms::Terms;
use crate::service::catalogue::Product;
use crate::service::session::Session;
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
    /// True if the order fails when it should become active.
    pub(super) fails: bool,
    /// True if its cost was refunded after it failed.
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

    pub(crate) fn addresses(&self) -> usize {
        self.instances.len()
    }

    /// An expired order keeps its addresses, since it may be renewed.
    pub(super) fn holds_addresses(&self, now_ms: i64) -> bool {
        !matches!(self.status(now_ms), Status::Cancelled | Status::Failed)
    }

    pub(super) fn ends_at(&self) -> Option<i64> {
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
}

/// The number of the order that a session is here.
pub(super) fn session_order_id(session: &Session) -> u32 {
    const FIRST: u32 = 1_000_001;
    FIRST.saturating_add(u32::try_from(session.number).unwrap_or(u32::MAX))
}
