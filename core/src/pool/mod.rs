//! Pools of sessions: machines above the client's own commands that lend sessions, and buy, rotate and replace them as needed.
//!
//! `targets` says what follows from what was seen through a session, `leases` who gets which session, `buyer` when another one may be
//! bought; none of them knows a command, a record or a step. `machine` carries it out by the client's commands, and [`PoolClient`] is the
//! client with its pools.

mod buyer;
mod client;
mod keys;
mod leases;
mod machine;
mod notes;
mod others;
mod record;
mod rules;
mod share;
mod survey;
mod targets;
mod unavailable;

pub use self::client::PoolClient;
pub use self::rules::PoolRule;
#[cfg(feature = "ablation")]
pub use self::rules::without;
