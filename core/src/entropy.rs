//! All values that must not be guessed or repeated, derived from the 16 bytes that the host gave once.

use sha2::{Digest, Sha256};

/// Keys, record names and jitter. The same bytes give the same sequence.
#[derive(Debug, Clone, Hash)]
pub(crate) struct Entropy {
    prefix: String,
    keys: u64,
    records: u64,
    entries: u64,
    dice: Dice,
}

/// Uniform numbers (SplitMix64): for waits and orders, which need spread, not secrecy.
#[derive(Debug, Clone, Default, Hash)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below this.
    pub(crate) fn below(&mut self, most: u32) -> u32 {
        u32::try_from(self.roll() % u64::from(most.max(1))).unwrap_or_default()
    }

    /// Puts these into any order.
    pub(crate) fn shuffle<T>(&mut self, all: &mut [T]) {
        for at in (1..all.len()).rev() {
            all.swap(at, self.below(u32::try_from(at + 1).unwrap_or(u32::MAX)) as usize);
        }
    }
}

impl Entropy {
    pub(crate) fn new(bytes: [u8; 16]) -> Self {
        let (a, b) = (u128::from_le_bytes(bytes) as u64, (u128::from_le_bytes(bytes) >> 64) as u64);
        Entropy { prefix: hex(&bytes), keys: 0, records: 0, entries: 0, dice: Dice(a ^ b.rotate_left(32)) }
    }

    /// Returns true if these bytes may have given that key or record before: a cloned host, or one whose generator is not seeded, repeats
    /// them.
    pub(crate) fn may_have_named(&self, name: &str) -> bool {
        name.starts_with(&self.prefix)
    }

    /// Returns true if a key has the form of the keys of this library; a key of another form was given by a caller.
    pub(crate) fn is_like_a_key(key: &str) -> bool {
        let is_hex = |text: &str| text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        key.split_once('-').is_some_and(|(prefix, number)| is_hex(prefix) && number.bytes().all(|byte| byte.is_ascii_digit()))
    }

    /// Changes all further names, as if the host had given other bytes.
    pub(crate) fn turn(&mut self) {
        self.prefix = digest("again", &[&self.prefix]);
    }

    /// Returns a new idempotency key. The caller's intent is part of it: a client with the same bytes as an earlier one never repeats the
    /// key of another write.
    pub(crate) fn key(&mut self, intent: Option<&str>) -> String {
        self.keys += 1;
        let prefix = intent.map(|intent| digest(&self.prefix, &[intent]));
        format!("{}-{}", prefix.as_deref().unwrap_or(&self.prefix), self.keys)
    }

    /// Returns the name of a new record.
    pub(crate) fn record(&mut self) -> String {
        self.records += 1;
        format!("{}-r{}", self.prefix, self.records)
    }

    /// Returns an id that distinguishes the entries of two purchases with the same key under a day's cap: 16 hexadecimal digits.
    pub(crate) fn any_mark(&mut self) -> String {
        self.entries += 1;
        let digits = digest(&self.prefix, &["entry", &self.entries.to_string()]);
        digits.chars().take(16).collect()
    }

    /// A number for this client, by which it recognizes the moments that it wrote itself.
    pub(crate) fn client(&self) -> u32 {
        let number = digest("client", &[&self.prefix]);
        number.get(..8).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or_default()
    }

    /// A uniform number.
    pub(crate) fn jitter(&mut self) -> u64 {
        self.dice.roll()
    }

    /// Dice of their own for a part of the client.
    pub(crate) fn dice(&mut self) -> Dice {
        Dice(self.dice.roll())
    }

    /// A salt for the digests of this client's records.
    pub(crate) fn salt(&self) -> String {
        digest("salt", &[&self.prefix])
    }
}

/// A digest of texts, 128 bits as hexadecimal. The digest distinguishes texts without revealing them.
pub(crate) fn digest(salt: &str, texts: &[&str]) -> String {
    hex(&digest_128(salt, texts))
}

/// A digest of texts as bytes.
pub(crate) fn digest_128(salt: &str, texts: &[&str]) -> [u8; 16] {
    let mut hash = Sha256::new();
    for text in std::iter::once(&salt).chain(texts) {
        // The length keeps `ab`, `c` apart from `a`, `bc`.
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let whole: [u8; 32] = hash.finalize().into();
    whole.first_chunk().copied().unwrap_or_default()
}

/// A digest of any bytes.
pub(crate) fn digest_bytes(salt: &str, bytes: &[u8]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(salt.as_bytes());
    hash.update(bytes);
    hash.finalize().into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_fits_the_header_and_never_comes_twice() {
        let mut entropy = Entropy::new([0xab; 16]);
        let (one, two) = (entropy.key(None), entropy.key(None));
        let (named, other) = (entropy.key(Some("job-17")), Entropy::new([0xab; 16]).key(Some("job-18")));
        assert_eq!(one, format!("{}-1", "ab".repeat(16)));
        assert!(one != two && one.len() <= 64 && named.len() <= 64 && named != other);
        entropy.turn();
        assert!([one, two, named, other, entropy.key(None)].iter().all(|key| Entropy::is_like_a_key(key)));
        assert!(
            ["", "my-own-key", "0d9f5a34-3c1e-4bd4-8f5e-2f0c6f1f0a11", &"ab".repeat(16)].iter().all(|key| !Entropy::is_like_a_key(key))
        );
    }

    #[test]
    fn a_digest_tells_texts_apart() {
        assert_ne!(digest("s", &["ab", "c"]), digest("s", &["a", "bc"]));
        assert_ne!(digest("s", &["key"]), digest("t", &["key"]));
        assert_eq!(digest("s", &["key"]).len(), 32);
    }
}
