//! Hopline.
pub mod contract;
