//! The values of the table, beyond those of the language.

use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use arcstr::ArcStr;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::{Shape, Shaped};
use crate::json::{FromJson, FromJsonError, NotJson, whole};

/// An amount of money or of traffic, taken from the number's own text, never through a float.
///
/// An amount has at most 28 significant digits. A request with a longer number is refused rather than rounded; a longer number from a
/// service is rounded up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Decimal(pub rust_decimal::Decimal);

impl FromStr for Decimal {
    type Err = NotDecimal;

    fn from_str(text: &str) -> Result<Self, NotDecimal> {
        Decimal::read(text).ok_or(NotDecimal)
    }
}

impl Decimal {
    /// Reads a number as it is written. `rust_decimal` reads digits, too, by code that is ten times as long in what is shipped.
    fn read(text: &str) -> Option<Decimal> {
        // A body may hold a number of a million digits; 64 are more than any valid one has.
        if text.len() > 64 {
            return None;
        }
        let (is_negative, number) = text.strip_prefix('-').map_or((false, text.strip_prefix('+').unwrap_or(text)), |number| (true, number));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let (mut digits, behind) = (0_i128, i64::try_from(fraction.len()).ok()?);
        for byte in whole.bytes().chain(fraction.bytes()) {
            let digit = byte.is_ascii_digit().then(|| i128::from(byte - b'0'))?;
            digits = digits.checked_mul(10)?.checked_add(digit)?;
        }
        let exact = |digits: i128, behind: i64| {
            let signed = if is_negative { -digits } else { digits };
            rust_decimal::Decimal::try_from_i128_with_scale(signed, u32::try_from(behind).ok()?).ok()
        };
        // The digits fit by themselves, whatever the exponent makes of them.
        let plain = exact(digits, behind)?;
        let exponent = exponent.parse().ok().filter(|exponent: &i64| exponent.unsigned_abs() <= 28)?;
        let scale = behind.checked_sub(exponent)?;
        match scale {
            _ if scale == behind => Some(Decimal(plain)),
            0.. => exact(digits, scale).map(Decimal),
            _ => exact(digits.checked_mul(10_i128.checked_pow(u32::try_from(-scale).ok()?)?)?, 0).map(Decimal),
        }
    }

    /// A number from a service, and true if it was rounded up to 28 digits. `None` if more digits stand before the point.
    pub(crate) fn rounded_up(number: &str) -> Option<(Decimal, bool)> {
        const MOST: i64 = 28;
        let (is_negative, number) = number.strip_prefix('-').map_or((false, number), |number| (true, number));
        let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // An exponent beyond 64 bits counts as the largest one.
        let exponent = exponent.parse::<i64>().unwrap_or(if exponent.starts_with('-') { i64::MIN } else { i64::MAX });
        let mut digits = whole.bytes().chain(fraction.bytes()).map(|digit| i128::from(digit.wrapping_sub(b'0') % 10)).peekable();
        let mut before = exponent.saturating_add(whole.len() as i64);
        while digits.next_if_eq(&0).is_some() {
            before = before.saturating_sub(1);
        }
        if digits.peek().is_none() {
            return Some((Decimal::from(0), false));
        }
        let scale = MOST.saturating_sub(before.max(0));
        let kept = before.saturating_add(scale).max(0);
        let digits_kept = (0..kept).fold(0_i128, |sum, _| sum.saturating_mul(10).saturating_add(digits.next().unwrap_or_default()));
        let is_cut = digits.any(|digit| digit > 0);
        let signed = if is_negative { -digits_kept } else { digits_kept.saturating_add(i128::from(is_cut)) };
        let rounded = rust_decimal::Decimal::try_from_i128_with_scale(signed, u32::try_from(scale).ok()?).ok()?;
        Some((Decimal(rounded.normalize()), is_cut))
    }

    /// The number in its canonical form, without trailing zeros, so that equal numbers are equal texts.
    pub(crate) fn in_one_form(self) -> String {
        self.0.normalize().to_string()
    }
}

/// The text is not a decimal number of at most 28 digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a decimal number of at most 28 digits")]
pub struct NotDecimal;

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i64> for Decimal {
    fn from(whole: i64) -> Self {
        Decimal(whole.into())
    }
}

impl Serialize for Decimal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawValue::from_string(self.to_string()).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Decimal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // A text is accepted, too: nothing is lost, and hosts whose JSON has only floats send one.
        let written = <&RawValue>::deserialize(deserializer)?.get();
        let text = written.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(written);
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl FromJson for Decimal {
    /// A text is accepted, too, as everywhere.
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let text = json.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(json);
        text.parse().map_err(|NotDecimal| FromJsonError::here())
    }
}

/// A text that never prints: its `Debug` is `[redacted]`, it has no `Display`, and serde writes `[redacted]`. So serde can't write and read
/// back a value that holds a secret; [`reveal`](Secret::reveal) returns the text.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Secret(String);

impl Secret {
    /// Wraps the text.
    pub fn new(text: impl Into<String>) -> Self {
        Secret(text.into())
    }

    /// Returns the text. The caller is responsible for where it goes.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Writes `[redacted]`, so that an answer can be logged. Requests are written by [`Encode`](super::Encode), not by serde.
impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(deserializer).map(|text| Secret(text.into_owned()))
    }
}

impl FromJson for Secret {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        String::from_json(json).map(Secret)
    }
}

/// Any JSON, as its own text: undocumented values, and the whole of every answer.
///
/// The JSON may hold secrets, so its `Debug` states only its length. Serde writes the whole of it.
#[derive(Clone, PartialEq, Hash)]
pub struct Json(ArcStr);

impl Json {
    /// The text.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// JSON that was checked before.
    pub(crate) fn checked(text: impl Into<ArcStr>) -> Self {
        Json(text.into())
    }

    /// Reads the JSON as a type of the caller's own.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }
}

impl FromStr for Json {
    type Err = NotJson;

    fn from_str(text: &str) -> Result<Self, NotJson> {
        whole(text).map(Json::checked)
    }
}

impl Default for Json {
    fn default() -> Self {
        Json::checked("null")
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.text().len())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::from_str::<&RawValue>(&self.0).map_err(serde::ser::Error::custom)?.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Json::checked(raw.get()))
    }
}

impl FromJson for Json {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        Ok(Json::checked(json))
    }
}

/// A value that a change may leave as it is, take away, or set: absent, null and a value are three things.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Patch<T> {
    /// Left unchanged: not sent.
    #[default]
    Absent,
    /// Sent as null. The service does not document the effect.
    Null,
    /// Set to this.
    Set(T),
}

impl<T: Serialize> Serialize for Patch<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Patch::Absent | Patch::Null => serializer.serialize_unit(),
            Patch::Set(value) => value.serialize(serializer),
        }
    }
}

/// Reads null and a value. A member that is missing is an error rather than null, since null may do something.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match <&RawValue>::deserialize(deserializer)?.get() {
            "null" => Ok(Patch::Null),
            text => serde_json::from_str(text).map(Patch::Set).map_err(serde::de::Error::custom),
        }
    }
}

/// A text that the service may write as a number: an id, a kind, a time whose form its contract does not document.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Label(pub String);

impl std::ops::Deref for Label {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One value or several, each sent as it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany<T> {
    /// One.
    One(T),
    /// Any number of them.
    Many(Vec<T>),
}

macro_rules! shapes {
    ($($ty:ty => $shape:ident),* $(,)?) => { $(impl Shaped for $ty { const SHAPE: Shape = Shape::$shape; })* };
}
shapes! { String => Text, Secret => Secret, bool => Bool, i64 => Integer, Decimal => Decimal, Json => Json, Label => Label }
shapes! { u32 => Integer, u16 => Integer, &'static str => Text, IpAddr => Text }

impl<T: Shaped> Shaped for Option<T> {
    const SHAPE: Shape = T::SHAPE;
    const REQUIRED: bool = false;

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Shaped> Shaped for Patch<T> {
    const SHAPE: Shape = T::SHAPE;
    const REQUIRED: bool = false;
    const NULLABLE: bool = true;

    fn is_absent(&self) -> bool {
        matches!(self, Patch::Absent)
    }
}

impl<T: Shaped> Shaped for Vec<T> {
    const SHAPE: Shape = Shape::List(&T::SHAPE);
}

impl<T: Shaped> Shaped for OneOrMany<T> {
    const SHAPE: Shape = Shape::OneOrMany(&T::SHAPE);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_would_be_rounded_is_refused_in_every_notation() {
        let digits = ["9.9999999999999999999999999999", "12345678901234567890123456789.9", "0.12345678901234567890123456789"];
        for digits in digits {
            for text in [digits.to_owned(), format!("{digits}e0"), format!("{digits}E+1"), format!("-{digits}e-1")] {
                assert!(text.parse::<Decimal>().is_err(), "{text}");
            }
        }
        let fits = "7.9228162514264337593543950335e+28".parse::<Decimal>().map(|number| number.to_string());
        assert_eq!(fits.as_deref(), Ok("79228162514264337593543950335"));
    }

    /// The same number, or none, by the crate's own code.
    fn by_the_crate(text: &str) -> Option<rust_decimal::Decimal> {
        let digits = text.split(['e', 'E']).next()?;
        let exact = rust_decimal::Decimal::from_str_exact(digits).ok().filter(|_| text.len() <= 64 && !text.contains('_'))?;
        if digits.len() == text.len() { Some(exact) } else { rust_decimal::Decimal::from_scientific(text).ok() }
    }

    #[test]
    fn a_number_is_read_as_by_the_crate() {
        let signs = ["", "-", "+", "--", " "];
        let wholes = ["", "0", "7", "00", "10", "012", "1_0", "x", "79228162514264337593543950335", "79228162514264337593543950336"];
        let fractions = ["", ".", ".0", ".50", ".05", "..5", ".1234567890123456789012345678", ".12345678901234567890123456789"];
        let exponents = ["", "e0", "E1", "e+2", "e-3", "e28", "e-28", "e29", "e-29", "e", "e1.5", "e99999999999999999999", "e--1"];
        for (sign, whole) in signs.iter().flat_map(|sign| wholes.iter().map(move |whole| (sign, whole))) {
            for (fraction, exponent) in fractions.iter().flat_map(|fraction| exponents.iter().map(move |exponent| (fraction, exponent))) {
                let text = format!("{sign}{whole}{fraction}{exponent}");
                let (read, crates) = (text.parse::<Decimal>().ok(), by_the_crate(&text));
                assert_eq!(read.map(|read| read.to_string()), crates.map(|crates| crates.to_string()), "{text}");
            }
        }
    }

    #[test]
    fn money_keeps_every_digit_that_was_written() {
        for text in ["0.1", "4.00", "-7.25", "79228162514264337593543950335", "1e2"] {
            let read: Decimal = serde_json::from_str(text).expect(text);
            let again: Decimal = serde_json::from_str(&serde_json::to_string(&read).expect(text)).expect(text);
            assert_eq!(read, again);
        }
        assert_eq!("4.00".parse::<Decimal>().expect("4.00").to_string(), "4.00");
    }

    #[test]
    fn a_number_that_does_not_fit_is_refused_rather_than_rounded() {
        for text in
            ["1e400", "0.12345678901234567890123456789", "\"\"", "\"four\"", "null", "NaN", "", "\"1_0.0\"", "\"1_0e1\"", &"1".repeat(1000)]
        {
            assert!(serde_json::from_str::<Decimal>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_a_service_writes_with_more_digits_is_rounded_up() {
        let read = |text: &str| Decimal::rounded_up(text).map(|(number, cut)| (number.to_string(), cut));
        for (text, number, cut) in [
            ("67.2000000000000028421709430404007434844970703125", "67.20000000000000284217094305", true),
            ("0.460000000000000019984014443252817727625370025634765625", "0.4600000000000000199840144433", true),
            ("-0.12345678901234567890123456789", "-0.1234567890123456789012345678", true),
            ("1e-29", "0.0000000000000000000000000001", true),
            ("1E-99999999999999999999", "0.0000000000000000000000000001", true),
            ("-1e-29", "0", true),
            ("0.99999999999999999999999999991", "1", true),
            ("9999999999999999999999999999.1", "10000000000000000000000000000", true),
            ("4.50", "4.5", false),
            ("45e-1", "4.5", false),
            ("0.00045e4", "4.5", false),
            ("1e+27", "1000000000000000000000000000", false),
            ("0e99999999999999999999", "0", false),
            ("-0.0", "0", false),
        ] {
            assert_eq!(read(text), Some((number.to_owned(), cut)), "{text}");
        }
        assert_eq!(read(&format!("0.5{}", "0".repeat(100_000))), Some(("0.5".to_owned(), false)));
        for beyond in ["1e28", "12345678901234567890123456789", "1e99999999999999999999", "-1e400", &"9".repeat(100_000)] {
            assert_eq!(read(beyond), None, "{beyond}");
        }
    }

    #[test]
    fn equal_numbers_are_sent_as_equal_texts() {
        for (one, texts) in [
            ("0.5", &["0.5", "0.50", "5e-1", "0.500000"][..]),
            ("10", &["10", "1E+1", "10.00"]),
            ("0", &["0", "0.00", "-0", "0e5", "-0.0"]),
            ("-7.25", &["-7.250"]),
        ] {
            for text in texts {
                assert_eq!(text.parse::<Decimal>().map(Decimal::in_one_form).as_deref(), Ok(one), "{text}");
            }
        }
    }

    #[test]
    fn absent_null_and_a_value_are_three_things() {
        use crate::contract::agent::UpdateBudget;

        let four = Patch::Set(Decimal::from(4));
        let change = UpdateBudget { key_limit_usd: Patch::Null, daily_limit_usd: four, ..UpdateBudget::default() };
        let written = serde_json::to_string(&change).expect("is JSON");
        assert_eq!(written, r#"{"key_limit_usd":null,"daily_limit_usd":4}"#);
        assert_eq!(serde_json::from_str::<UpdateBudget>(&written).expect("is its own"), change);
        assert!(serde_json::from_str::<UpdateBudget>("{}").is_err(), "absent is never read as null");
    }

    #[test]
    fn a_secret_never_prints() {
        assert_eq!(format!("{:?}", Secret::new("canary")), "[redacted]");
        assert_eq!(serde_json::to_string(&Secret::new("canary")).expect("is JSON"), r#""[redacted]""#);
        assert_eq!(format!("{:?}", "{\"password\":\"canary\"}".parse::<Json>().expect("json")), "Json(21 bytes)");
    }
}
