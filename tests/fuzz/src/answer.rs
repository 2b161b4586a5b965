//! The reading of any bytes as the answer of any operation.

use hopline::contract::Text;
use hopline::contract::{Api, endpoints};
use hopline::wire::{Expected, Received, read};
use serde_json::value::RawValue;

use crate::Choices;

/// Whatever a sink builds, an answer says the same; its `data` is what serde_json finds there, and what is written of it under the
/// names of the table is JSON that fits if the answer does.
pub fn answer(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let all: Vec<_> = endpoints().collect();
    let endpoint = all[choices.number(all.len() as u32) as usize];
    let (before, after) = match (choices.number(4), endpoint.api) {
        (0, _) => ("", ""),
        (_, Api::Agent) => ("{\"success\":true,\"data\":", "}"),
        (_, Api::Reseller) => ("{\"code\":0,\"data\":", "}"),
    };
    let wrapped = |data: &[u8]| [before.as_bytes(), data, after.as_bytes()].concat();
    let body = wrapped(choices.rest());
    let expected = Expected::of(endpoint, u32::MAX);
    let received = |body| Received { status: 200, headers: &[], body, truncated: false };
    let mut text = Text::default();
    let ((checked, _), (written, value)) = (read(expected, received(&body), &mut ()), read(expected, received(&body), &mut text));
    assert_eq!((checked.raw(), checked.fit()), (written.raw(), written.fit()));
    let Some(raw) = checked.raw() else { return };
    let found: &RawValue = serde_json::from_str(raw).expect("`data` is JSON");
    assert_eq!(found.get(), raw);
    if !before.is_empty() && value.is_some() {
        let again = wrapped(text.into_text().as_bytes());
        let (again, _) = read(expected, received(&again), &mut ());
        assert!(again.raw().is_some() && (checked.fit().is_err() || again.fit().is_ok()));
    }
}
