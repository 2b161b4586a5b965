//! Numbers of an answer, exact and in every usual notation.

use crate::contract::Decimal;
use crate::json::{Scanner, text_of};

/// A whole number of 64 bits, which may be written as `1080.0` or `1e3`.
pub(crate) fn whole(number: &str) -> Option<i64> {
    number.parse().ok().or_else(|| whole_in_other_form(number))
}

#[cold]
fn whole_in_other_form(number: &str) -> Option<i64> {
    // 28 digits hold 64 bits.
    let (Decimal(number), false) = Decimal::rounded_up(number)? else { return None };
    number.is_integer().then(|| i64::try_from(number).ok()).flatten()
}

/// A whole number that some JSON is, or that its text of digits says.
pub(crate) fn whole_of(json: &str) -> Option<i64> {
    match text_of(json) {
        Some(text) => digits(&text),
        None => number_of(json).and_then(whole),
    }
}

/// The value of a text of digits.
pub(super) fn digits(text: &str) -> Option<i64> {
    text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}

/// A text that is a number as JSON writes one.
pub(super) fn number_of(text: &str) -> Option<&str> {
    let mut scan = Scanner::new(text);
    let (number, _) = scan.number().ok()?;
    (number.len() == text.len()).then_some(number)
}

/// Returns true if a number is kept as it is written.
pub(super) fn is_kept(digits: &str, whole: bool) -> bool {
    // Up to 28 characters without an exponent always fit.
    (digits.len() <= 28 && (whole || !digits.bytes().any(|byte| matches!(byte, b'e' | b'E')))) || digits.parse::<Decimal>().is_ok()
}

/// A decimal number that some JSON is, or that its text says; and whether it was rounded.
pub(crate) fn decimal_of(json: &str) -> Option<(String, bool)> {
    let text = text_of(json);
    let number = number_of(text.as_deref().unwrap_or(json))?;
    if is_kept(number, false) {
        return Some((number.to_owned(), false));
    }
    Decimal::rounded_up(number).map(|(number, cut)| (number.to_string(), cut))
}

/// An id or a number of an order: a text, or a number without fraction and exponent, whose digits are kept as they are written.
pub(crate) fn is_id(number: &str) -> bool {
    number.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_is_exact_in_every_form() {
        for (json, number) in [
            ("1080", Some(1080)),
            ("1080.0", Some(1080)),
            ("1e3", Some(1000)),
            ("10800E-1", Some(1080)),
            ("-0", Some(0)),
            ("0e99", Some(0)),
            ("\"1080\"", Some(1080)),
            ("\"-7\"", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775807.000", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("9223372036854775807.5", None),
            ("0.5", None),
            ("1e-1", None),
            ("1e400", None),
            ("\"1080.0\"", None),
            ("\" 7\"", None),
            ("\"+7\"", None),
            ("\"\"", None),
            ("\"-\"", None),
            ("true", None),
            ("[7]", None),
        ] {
            assert_eq!(whole_of(json), number, "{json}");
        }
    }

    #[test]
    fn a_decimal_keeps_its_digits_unless_there_are_too_many() {
        for (json, read) in [
            ("4.50", Some(("4.50", false))),
            ("\"4.50\"", Some(("4.50", false))),
            ("1e2", Some(("1e2", false))),
            ("0.12345678901234567890123456781", Some(("0.1234567890123456789012345679", true))),
            ("\"+4\"", None),
            ("\".5\"", None),
            ("\"1,5\"", None),
            ("null", None),
        ] {
            assert_eq!(decimal_of(json), read.map(|(digits, cut)| (digits.to_owned(), cut)), "{json}");
        }
    }
}
