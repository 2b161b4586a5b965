//! hopline-host-rust
