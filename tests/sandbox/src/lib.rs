//! The services that Hopline talks to, on loopback: for building, testing and showing without an account or money.
//!
//! [`Service`] is the whole contract as one function, `(request, now) -> response`. It does no I/O, reads no clock and
//! draws no entropy, so the proof may clone it and walk every branch. It shares no code with the client core: when
//! the two disagree, one of them has misread the contract. Only the OpenAPI document that the server shows is printed
//! from the client's table, so that a tool can hold the two against each other.
//!
//! Where the contract is silent the sandbox chooses plainly; the choices are listed in its README.

#[cfg(feature = "server")]
mod server;
mod service;

#[cfg(feature = "server")]
pub use server::{Authority, ConnectionFault, Options, Ready, Running, Tls, nginx, serve};
pub use service::{
    BACKEND_OPERATIONS, BACKEND_PATH, BASE_PATH, BackendView, CODES, Charge, Code, Config, DynamicOrderView, EntryView, ErrorFault, Exit,
    Fault, FaultRule, InProgress, List, Login, Mail, Message, OPERATIONS, OrderView, ProductType, RefusalStatus, RetryAfter, Service,
    SessionView, Spelling, StaticOrderView, UsdtOrderView, UserView,
};
