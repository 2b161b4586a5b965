//! The client over real sockets, with the transports that the examples show, against a sandbox in this process.
//!
//! These tests show what a scripted transport can't: that ureq and reqwest tell truly what came of a request,
//! and do nothing of their own about it.

mod cancel;
mod faults;
mod gateway;
mod life;
mod many;
mod peers;
mod probe;
mod raw;
mod reseller;
mod tls;

#[path = "../../../../../core/examples/reqwest.rs"]
#[allow(dead_code, reason = "the example is a program of its own; only its transport is used here")]
mod reqwest_example;
#[path = "../../../../../core/examples/ureq.rs"]
#[allow(dead_code, reason = "the example is a program of its own; only its transport and its store are used here")]
mod ureq_example;
