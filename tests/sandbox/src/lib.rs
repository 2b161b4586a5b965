//! hopline-sandbox
