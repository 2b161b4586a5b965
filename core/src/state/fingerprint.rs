//! What tells the request of an intent, or of a caller's own key, from another one under the same name.

use std::fmt;

use crate::contract::{Sink, Tell};
use crate::entropy::digest_128;
use crate::json::{NotOwn, Own, text_of};

/// A digest of a request. In a record it is 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 16]);

impl Fingerprint {
    pub(crate) fn of(texts: &[&str]) -> Self {
        Fingerprint(digest_128("request", texts))
    }

    fn read(text: &str) -> Option<Self> {
        let is_hex = text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        u128::from_str_radix(text, 16).ok().filter(|_| is_hex).map(|number| Fingerprint(number.to_be_bytes()))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", u128::from_be_bytes(self.0))
    }
}

impl Tell for Fingerprint {
    fn tell<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.to_string(), false)
    }
}

impl Own for Fingerprint {
    fn from_json(json: &str) -> Result<Self, NotOwn> {
        text_of(json).and_then(|text| Fingerprint::read(&text)).ok_or_else(NotOwn::here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entropy::digest;

    #[test]
    fn it_is_written_as_it_is_read() {
        let one = Fingerprint::of(&["a", "b"]);
        assert_eq!((Fingerprint::read(&one.to_string()), one.to_string()), (Some(one), digest("request", &["a", "b"])));
        for text in ["", "0", &"g".repeat(32), &"A".repeat(32), &format!("+{}", "0".repeat(31)), &"0".repeat(33)] {
            assert_eq!(Fingerprint::read(text), None, "{text}");
        }
    }
}
