//! An odd server and a recording proxy, for tests of what lies between Hopline and other people's HTTP clients.
//!
//! The odd server relays requests to a service, most often the sandbox, and answers in one of the ways of
//! [`BEHAVIOURS`], which the first folder of a base URL chooses. The proxies record the logins and targets that they are
//! given, and fail in the ways of [`PROXIES`].

mod behaviour;
mod connection;
mod control;
mod encoding;
mod hole;
mod odd;
mod proxy;
mod proxy_http;
mod proxy_socks5;
mod relay;
mod server;
mod site;

pub use behaviour::{BEHAVIOURS, Behaviour, Reading};
pub use control::{Login, Relayed};
pub use proxy::{Manner, PROXIES};
pub use server::{Options, Ready, Running, serve};
