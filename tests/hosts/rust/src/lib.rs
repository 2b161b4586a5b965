//! How the Rust host is tested: the runner of the vectors that every host shares.

pub mod vectors;
