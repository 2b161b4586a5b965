//! The configuration of a sandbox.

use std::ops::RangeInclusive;

use rust_decimal::Decimal;

use super::ids;

/// How a [`Service`](super::Service) is set up. Equal settings and equal requests give equal answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The seed of every id, credential and provisioning time.
    pub seed: u64,
    /// The API key of the account that is there from the beginning.
    pub api_key: String,
    /// The balance in USD to begin with.
    pub balance: Decimal,
    /// How long a session stays `creating`, in milliseconds; drawn from this range for each session.
    pub provisioning_ms: RangeInclusive<i64>,
    /// How many authenticated requests a minute are let through.
    pub requests_per_minute: u32,
    /// How many sessions may be `creating` or `active` at once.
    pub session_limit: usize,
    /// The host that session records name as their proxy.
    pub proxy_host: String,
    /// The port that SOCKS5 sessions name.
    pub socks5_port: u16,
    /// The port that HTTP and HTTPS sessions name.
    pub http_proxy_port: u16,
}

impl Config {
    /// The usual settings under a seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            api_key: format!("sandbox-{}", ids::token(seed, ids::API_KEY, 0)),
            balance: Decimal::from(100),
            provisioning_ms: 1_200..=2_500,
            requests_per_minute: 600,
            session_limit: 50,
            proxy_host: "127.0.0.1".to_owned(),
            socks5_port: 1080,
            http_proxy_port: 8080,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(0)
    }
}
