//! The Agent Proxy Session API: one file for each part of the contract.

mod account;
mod billing;
mod products;
mod sessions;

pub use account::*;
pub use billing::*;
pub use products::*;
pub use sessions::*;

use super::Endpoint;

/// The endpoints of this API, in the order of the contract.
pub const ENDPOINTS: &[&[&Endpoint]] = &[products::ENDPOINTS, account::ENDPOINTS, sessions::ENDPOINTS, billing::ENDPOINTS];
