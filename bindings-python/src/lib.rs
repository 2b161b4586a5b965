//! hopline-python
