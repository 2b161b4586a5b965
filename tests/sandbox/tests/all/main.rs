//! The sandbox keeps its word: the rules of the service, and the server over real sockets with a real curl.

mod accounts;
mod billing;
mod budget;
mod codes;
mod contract;
mod control;
mod desk;
mod existing;
mod faults;
mod health;
mod idempotency;
mod lists;
mod live;
mod operator;
mod program;
mod proxies;
mod sessions;
mod stock;
mod tunnels;
