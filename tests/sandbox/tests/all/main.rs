//! The sandbox keeps its word: the rules of the service, and the server over real sockets with a real curl.

mod contract;
mod control;
mod desk;
mod faults;
mod idempotency;
mod lists;
mod live;
mod program;
mod proxies;
mod sessions;
mod tunnels;
