//! hopline-uniffi
