//! A session: its state, which follows from the time alone, and its record.

use std::net::Ipv4Addr;
use std::sync::Arc;

use rust_decimal::Decimal;
use serde::Serialize;

use super::catalogue::{DYNAMIC, Product};
use super::config::Config;
use super::envelope::{Number, timestamp};
use super::ids;

/// A month of a static session, the unit of `duration`.
pub(crate) const MONTH_MS: i64 = 30 * 24 * 60 * 60 * 1000;

pub(crate) const BYTES_PER_GB: u64 = 1_000_000_000;

/// A session as the sandbox keeps it. Credentials are drawn from the seed when asked for, so that a clone stays small.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) number: u64,
    /// The place of its owner among the accounts.
    pub(crate) account: usize,
    pub(crate) id: Arc<str>,
    pub(crate) product: Arc<Product>,
    pub(crate) mode: &'static str,
    pub(crate) resource: Option<Arc<str>>,
    pub(crate) protocol: &'static str,
    pub(crate) quantity: Decimal,
    pub(crate) created_at: i64,
    pub(crate) ready_at: i64,
    /// When a static session runs out; a dynamic one has no end but its traffic.
    pub(crate) ends_at: Option<i64>,
    pub(crate) terminated: bool,
    pub(crate) rotations: u32,
    pub(crate) exit: u32,
    pub(crate) traffic_bytes: u64,
    pub(crate) telemetry: Telemetry,
}

/// After so many bad events in a row a rotation is recommended.
const TOO_MANY: u32 = 3;

/// The reports about a session.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Telemetry {
    pub(crate) total: u32,
    pub(crate) bad: u32,
    /// The bad ones since the last good one or rotation, and what the last of them was.
    pub(crate) in_a_row: u32,
    pub(crate) last: Option<&'static str>,
}

impl Telemetry {
    pub(crate) fn add(&mut self, bad: Option<&'static str>) {
        self.total += 1;
        match bad {
            Some(reason) => {
                self.bad += 1;
                self.in_a_row += 1;
                self.last = Some(reason);
            }
            None => self.forgive(),
        }
    }

    /// Starts a new row: the session has another exit, or works again.
    pub(crate) fn forgive(&mut self) {
        self.in_a_row = 0;
        self.last = None;
    }

    pub(crate) fn is_degraded(&self) -> bool {
        self.in_a_row >= TOO_MANY
    }
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Creating,
    Active,
    Expired,
    Terminated,
}

impl Status {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Creating => "creating",
            Self::Active => "active",
            Self::Expired => "expired",
            Self::Terminated => "terminated",
        }
    }
}

impl Session {
    pub(crate) fn status(&self, now_ms: i64) -> Status {
        let traffic_gb = Decimal::from(self.traffic_bytes) / Decimal::from(BYTES_PER_GB);
        let used_up = self.product.kind == DYNAMIC && traffic_gb >= self.quantity;
        if self.terminated {
            Status::Terminated
        } else if used_up || self.ends_at.is_some_and(|end| now_ms >= end) {
            Status::Expired
        } else if now_ms < self.ready_at {
            Status::Creating
        } else {
            Status::Active
        }
    }

    /// True if the session takes one of the account's places.
    pub(crate) fn is_counted(&self, now_ms: i64) -> bool {
        matches!(self.status(now_ms), Status::Creating | Status::Active)
    }

    pub(crate) fn is_active(&self, now_ms: i64) -> bool {
        self.status(now_ms) == Status::Active
    }

    /// The user name of a session stays the same for life.
    pub(crate) fn username(&self, config: &Config) -> String {
        format!("user-{}", ids::token(config.seed, ids::USERNAME, self.number))
    }

    /// The password changes with each rotation.
    pub(crate) fn password(&self, config: &Config) -> String {
        ids::token(config.seed, ids::PASSWORD, (self.number << 32) | u64::from(self.rotations))
    }

    pub(crate) fn exit_address(&self) -> Ipv4Addr {
        ids::exit_address(self.exit)
    }

    /// The record of the answer that accepts the session: it is `creating` there, however soon it will be ready.
    pub(crate) fn acceptance(&self, config: &Config, charge: Decimal) -> Record<'_> {
        self.record(config, self.ready_at.saturating_sub(1), false, Some(charge))
    }

    /// The record of a session response.
    pub(crate) fn record(&self, config: &Config, now_ms: i64, with_credentials: bool, charge: Option<Decimal>) -> Record<'_> {
        let status = self.status(now_ms);
        let port = if self.protocol == "socks5" { config.socks5_port } else { config.http_proxy_port };
        let credentials = (with_credentials && status == Status::Active).then(|| {
            // The HTTP proxy itself speaks plain HTTP, whatever its client sends through it.
            let scheme = if self.protocol == "socks5" { "socks5" } else { "http" };
            let (username, password) = (self.username(config), self.password(config));
            let full_url = format!("{scheme}://{username}:{password}@{}:{port}", config.proxy_host);
            Credentials { username, password, full_url }
        });
        Record {
            session_id: &self.id,
            session_type: self.product.kind,
            status: status.word(),
            provisioning_mode: self.mode,
            product_no: &self.product.number,
            quantity: Number(self.quantity),
            created_at: timestamp(self.created_at),
            expires_at: self.ends_at.map(timestamp),
            proxy: Proxy { host: config.proxy_host.clone(), port, protocol: self.protocol, credentials },
            health: Health { status: self.health(now_ms) },
            usage: Usage { traffic_bytes: self.traffic_bytes, rotations: self.rotations },
            estimated_charge_usd: charge.map(Number),
        }
    }
}

/// `data` of the session responses.
#[derive(Serialize)]
pub(crate) struct Record<'a> {
    session_id: &'a str,
    session_type: &'a str,
    status: &'static str,
    provisioning_mode: &'a str,
    product_no: &'a str,
    quantity: Number,
    created_at: String,
    expires_at: Option<String>,
    proxy: Proxy,
    health: Health,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimated_charge_usd: Option<Number>,
}

#[derive(Serialize)]
struct Proxy {
    host: String,
    port: u16,
    protocol: &'static str,
    #[serde(flatten)]
    credentials: Option<Credentials>,
}

#[derive(Serialize)]
struct Credentials {
    username: String,
    password: String,
    full_url: String,
}

#[derive(Serialize)]
struct Health {
    status: &'static str,
}

#[derive(Serialize)]
struct Usage {
    traffic_bytes: u64,
    rotations: u32,
}
