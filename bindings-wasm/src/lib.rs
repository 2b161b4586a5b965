//! hopline-wasm
