//! Ids, credentials and exits: all drawn from the seed and a counter, so that a run can be repeated exactly.

use std::net::Ipv4Addr;

/// The use of a token; keeps the streams of one seed apart.
pub(crate) type Purpose = u64;

pub(crate) const API_KEY: Purpose = 1;
pub(crate) const REQUEST: Purpose = 2;
pub(crate) const SESSION: Purpose = 3;
pub(crate) const USERNAME: Purpose = 4;
pub(crate) const PASSWORD: Purpose = 5;
pub(crate) const PROVISIONING: Purpose = 6;
pub(crate) const BACKEND_LOGIN: Purpose = 7;
pub(crate) const API_SECRET: Purpose = 8;
pub(crate) const ORDER: Purpose = 9;
pub(crate) const ACTIVATION: Purpose = 10;
pub(crate) const BACKEND_ORDER: Purpose = 11;
pub(crate) const APP_ORDER: Purpose = 12;
pub(crate) const USDT_ORDER: Purpose = 13;
pub(crate) const WALLET: Purpose = 14;
pub(crate) const PROXY_USERNAME: Purpose = 15;
pub(crate) const PROXY_PASSWORD: Purpose = 16;
/// The first of four.
pub(crate) const BEARER: Purpose = 17;

/// A number that depends on nothing but its arguments, spread by the finalizer of SplitMix64.
pub(crate) fn number(seed: u64, purpose: Purpose, counter: u64) -> u64 {
    let mut mixed = seed;
    for part in [purpose, counter] {
        mixed = (mixed ^ part).wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    mixed
}

/// Sixteen hexadecimal digits of [`number`].
pub(crate) fn token(seed: u64, purpose: Purpose, counter: u64) -> String {
    format!("{:016x}", number(seed, purpose, counter))
}

/// The loopback address of an exit; the first four million differ, and none is 127.0.0.1.
pub(crate) fn exit_address(exit: u32) -> Ipv4Addr {
    let [_, high, middle, low] = exit.to_be_bytes();
    Ipv4Addr::new(127, 64 | (high & 0x3f), middle, low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_differ_from_each_other() {
        let seen: std::collections::BTreeSet<_> = (1..100_000).map(exit_address).collect();
        assert_eq!(seen.len(), 99_999);
        assert!(!seen.contains(&Ipv4Addr::LOCALHOST));
    }

    #[test]
    fn a_token_depends_on_seed_purpose_and_counter() {
        assert_eq!(token(7, SESSION, 1), token(7, SESSION, 1));
        assert_ne!(token(7, SESSION, 1), token(7, SESSION, 2));
        assert_ne!(token(7, SESSION, 1), token(8, SESSION, 1));
        assert_ne!(token(7, SESSION, 1), token(7, USERNAME, 1));
    }
}
