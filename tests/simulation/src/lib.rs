//! hopline-simulation
