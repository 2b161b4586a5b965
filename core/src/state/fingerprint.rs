//! Digests that distinguish the request of an intent, or of a caller's own key, from another one under the same name, and say where they
//! differ.

use std::fmt;

use crate::contract::{Encode, Sink};
use crate::entropy::digest_128;
use crate::json::{FromJson, FromJsonError, text_of};

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

impl Encode for Fingerprint {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.to_string(), false)
    }
}

impl FromJson for Fingerprint {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        text_of(json).and_then(|text| Fingerprint::read(&text)).ok_or_else(FromJsonError::here)
    }
}

/// A few bits of each part of a request: enough to say where another one differs, and too few to reveal a secret. In a record they are
/// hexadecimal digits, four for each part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub(crate) struct MemberDigests(Box<[u16]>);

impl MemberDigests {
    pub(crate) fn of<'a>(parts: impl Iterator<Item = &'a str>) -> Self {
        let digest = |part: &str| {
            let [a, b, ..] = digest_128("part", &[part]);
            u16::from_be_bytes([a, b])
        };
        MemberDigests(parts.map(digest).collect())
    }

    /// The parts in which two requests differ. If one has more parts, the kind of request differs.
    pub(crate) fn differs_at(&self, other: &MemberDigests) -> Vec<usize> {
        if self.0.len() != other.0.len() {
            return vec![0];
        }
        let parts = self.0.iter().zip(&other.0).enumerate();
        parts.filter(|(_, (one, other))| one != other).map(|(at, _)| at).collect()
    }
}

impl Encode for MemberDigests {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.0.iter().map(|part| format!("{part:04x}")).collect::<String>(), false)
    }
}

impl FromJson for MemberDigests {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let text = text_of(json).ok_or_else(FromJsonError::here)?;
        let part = |digits: &[u8]| u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let parts: Option<Box<[u16]>> = text.as_bytes().chunks(4).map(part).collect();
        parts.map(MemberDigests).ok_or_else(FromJsonError::here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::json_of;
    use crate::entropy::digest;

    #[test]
    fn it_is_said_which_parts_differ() {
        let one = MemberDigests::of(["a", "b", "c"].into_iter());
        let written = json_of(&one);
        assert_eq!((MemberDigests::from_json(&written), written.len()), (Ok(one.clone()), 14));
        assert_eq!(one.differs_at(&MemberDigests::of(["a", "x", "y"].into_iter())), [1, 2]);
        assert_eq!(one.differs_at(&MemberDigests::of(["a"].into_iter())), [0]);
        assert!(one.differs_at(&one).is_empty() && MemberDigests::from_json(r#""12g4""#).is_err());
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        let one = Fingerprint::of(&["a", "b"]);
        assert_eq!((Fingerprint::read(&one.to_string()), one.to_string()), (Some(one), digest("request", &["a", "b"])));
        for text in ["", "0", &"g".repeat(32), &"A".repeat(32), &format!("+{}", "0".repeat(31)), &"0".repeat(33)] {
            assert_eq!(Fingerprint::read(text), None, "{text}");
        }
    }
}
