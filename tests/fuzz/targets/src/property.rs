//! The property that HOPLINE_PROPERTY names, for libFuzzer.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;

static PROPERTY: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("HOPLINE_PROPERTY").unwrap_or_default();
    let found = hopline_fuzz::PROPERTIES.iter().find(|(known, _)| *known == name);
    found.expect("HOPLINE_PROPERTY names one of the properties").1
});

fuzz_target!(|bytes: &[u8]| PROPERTY(bytes));
