//! Pools of sessions: machines above the client's own commands that lend sessions, and buy, rotate and replace them as needed.
//!
//! [`targets`] says what follows from what was seen through a session, [`leases`] who gets which session, [`buyer`] when another one may be
//! bought. None of them knows a command, a record or a step. They are not part of the client yet, so only tests are built with them.

mod buyer;
mod leases;
mod targets;
