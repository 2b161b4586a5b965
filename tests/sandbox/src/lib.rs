//! The services that Hopline talks to, on loopback: for building, testing and showing without an account or money.
//!
//! [`Service`] is the whole contract as one function, `(request, now) -> response`. It does no I/O, reads no clock and
//! draws no entropy, so a simulation may clone it and walk every branch. It shares no code with the client core: when
//! the two disagree, one of them has misread the contract.
//!
//! Where the contract is silent the sandbox chooses plainly; the choices are listed in its README.

mod server;
mod service;

pub use server::{ConnectionFault, Options, Ready, Running, serve};
pub use service::{
    BASE_PATH, CODES, Charge, CompletesAt, Config, ErrorFault, Exit, Fault, FaultRule, Mail, OPERATIONS, OrderView, Service, SessionView,
};
