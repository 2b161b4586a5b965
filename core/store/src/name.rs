//! Names: `<space>.<kind><hash>`. No other text becomes part of a path.

use crate::{Error, Spend};

/// The longest space, and the length of a hash.
const DIGITS: usize = 32;

/// A name that is well formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name<'a> {
    whole: &'a str,
    dot: usize,
}

impl<'a> Name<'a> {
    pub(crate) fn parse(whole: &'a str) -> Result<Name<'a>, Error> {
        let well_formed = |dot: &usize| {
            let (space, rest) = whole.split_at(*dot);
            let (kind, hash) = rest.split_at_checked(2).unwrap_or_default();
            is_space(space) && [".i", ".k", ".p", ".q", ".r"].contains(&kind) && hash.len() == DIGITS && is_hexadecimal(hash)
        };
        let dot = whole.find('.').filter(well_formed);
        let dot = dot.ok_or_else(|| Error::Misuse(format!("`{}` is not a name of a store", short(whole))))?;
        Ok(Name { whole, dot })
    }

    pub(crate) fn as_str(self) -> &'a str {
        self.whole
    }

    pub(crate) fn space(self) -> &'a str {
        &self.whole[..self.dot]
    }

    /// The kind and the first two digits of the hash.
    pub(crate) fn group(self) -> &'a str {
        &self.whole[self.dot + 1..self.dot + 4]
    }
}

/// Each name once, in the order given.
pub(crate) fn parse_all<'a>(names: &[&'a str]) -> Result<Vec<Name<'a>>, Error> {
    let mut seen = std::collections::HashSet::new();
    let parsed = names.iter().map(|name| Name::parse(name)).collect::<Result<Vec<_>, _>>()?;
    Ok(parsed.into_iter().filter(|name| seen.insert(*name)).collect())
}

pub(crate) fn check_space(space: &str) -> Result<(), Error> {
    if is_space(space) { Ok(()) } else { Err(Error::Misuse(format!("`{}` is not a space of a store", short(space)))) }
}

pub(crate) fn check_spend(spend: &Spend<'_>) -> Result<(), Error> {
    check_space(spend.space)?;
    if spend.entry.is_empty() || spend.entry.len() > 2 * DIGITS || !is_hexadecimal(spend.entry) {
        return Err(Error::Misuse(format!("`{}` is not an entry of a store", short(spend.entry))));
    }
    if spend.amount.is_sign_negative() && !spend.amount.is_zero() {
        return Err(Error::Misuse(format!("an entry can't count `{}`, which is below zero", spend.amount)));
    }
    Ok(())
}

fn is_space(text: &str) -> bool {
    (1..=DIGITS).contains(&text.len()) && is_hexadecimal(text)
}

fn is_hexadecimal(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The beginning of a text, short enough for an error message.
fn short(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn a_name_has_a_space_a_kind_and_a_hash() {
        let whole = format!("5e.p{HASH}");
        let name = Name::parse(&whole).expect("is a name");
        assert_eq!((name.space(), name.group(), name.as_str()), ("5e", "p01", whole.as_str()));
        assert!(Name::parse(&format!("{HASH}.r{HASH}")).is_ok());
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for wrong in [
            "",
            ".",
            "5e.",
            "5e.i",
            "5e.é",
            &format!(".i{HASH}"),
            &format!("{HASH}0.i{HASH}"),
            &format!("5E.i{HASH}"),
            &format!("5e.x{HASH}"),
            &format!("5e.i{}", &HASH[1..]),
            &format!("5e.i{HASH}0"),
            &format!("../5e.i{HASH}"),
            &format!("5e.i{}/..", &HASH[3..]),
        ] {
            assert!(matches!(Name::parse(wrong), Err(Error::Misuse(_))), "{wrong}");
        }
    }

    #[test]
    fn an_entry_is_as_long_as_a_sha_256_at_most_and_a_refusal_quotes_the_beginning_of_what_it_refuses() {
        let check = |entry: &str| check_spend(&Spend { space: "5e", day: None, entry, amount: 0.into(), cap: None });
        let longest = "a".repeat(64);
        assert_eq!([check("0"), check(&longest)], [Ok(()), Ok(())]);
        for wrong in ["", "g", "A", &format!("{longest}a"), &"x".repeat(1000)] {
            let quoted: String = wrong.chars().take(80).collect();
            assert_eq!(check(wrong), Err(Error::Misuse(format!("`{quoted}` is not an entry of a store"))));
        }
    }
}
