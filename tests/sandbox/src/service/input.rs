//! Reading a request: each value is checked as it is taken, and a refusal names the field and the rule.

use std::collections::BTreeMap;

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::Refusal;

/// The query of a request.
#[derive(Debug)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn parse(query: Option<&str>) -> Result<Self, Refusal> {
        let mut fields = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            if fields.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(Refusal::invalid(&name, "must be given once"));
            }
        }
        Ok(Self(fields))
    }

    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    pub(crate) fn flag(&self, field: &str, default: bool) -> Result<bool, Refusal> {
        match self.text(field) {
            None => Ok(default),
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            Some(_) => Err(Refusal::invalid(field, "must be true or false")),
        }
    }

    pub(crate) fn word(&self, field: &str, allowed: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
        self.text(field).map(|value| one_of(field, value, allowed)).transpose()
    }

    pub(crate) fn whole(&self, field: &str, least: i64, most: i64) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.text(field) else {
            return Ok(None);
        };
        match text.parse::<i64>() {
            Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
            _ => Err(Refusal::invalid(field, &format!("must be a whole number from {least} to {most}"))),
        }
    }
}

/// The members of a JSON body, each kept as its own text so that a number is never read as a float.
#[derive(Debug)]
pub(crate) struct Body(BTreeMap<String, Box<RawValue>>);

impl Body {
    /// Reads a body; an empty one has no members, and an endpoint's required fields then refuse it.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        if bytes.is_empty() {
            return Ok(Self(BTreeMap::new()));
        }
        serde_json::from_slice(bytes).map(Self).map_err(|_| Refusal::invalid("body", "must be a json object"))
    }

    pub(crate) fn text(&self, field: &str) -> Result<Option<String>, Refusal> {
        let Some(value) = self.0.get(field) else {
            return Ok(None);
        };
        serde_json::from_str(value.get()).map(Some).map_err(|_| Refusal::invalid(field, "must be a string"))
    }

    pub(crate) fn word(&self, field: &str, allowed: &[&'static str]) -> Result<Option<&'static str>, Refusal> {
        self.text(field)?.map(|value| one_of(field, &value, allowed)).transpose()
    }

    pub(crate) fn whole(&self, field: &str, least: i64) -> Result<Option<i64>, Refusal> {
        let Some(value) = self.0.get(field) else {
            return Ok(None);
        };
        match whole(value) {
            Some(value) if value >= least => Ok(Some(value)),
            _ => Err(Refusal::invalid(field, &format!("must be a whole number of at least {least}"))),
        }
    }

    pub(crate) fn wholes(&self, field: &str, least: i64, most: i64) -> Result<Option<Vec<i64>>, Refusal> {
        let Some(value) = self.0.get(field) else {
            return Ok(None);
        };
        let read = |value: &RawValue| whole(value).filter(|value| (least..=most).contains(value));
        let values = serde_json::from_str::<Vec<&RawValue>>(value.get()).ok();
        match values.and_then(|values| values.into_iter().map(read).collect()) {
            Some(values) => Ok(Some(values)),
            None => Err(Refusal::invalid(field, &format!("must be an array of whole numbers from {least} to {most}"))),
        }
    }

    pub(crate) fn flag(&self, field: &str) -> Result<Option<bool>, Refusal> {
        match self.0.get(field).map(|value| value.get()) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(Refusal::invalid(field, "must be true or false")),
        }
    }

    /// A number, negative or not.
    pub(crate) fn any(&self, field: &str) -> Result<Option<Decimal>, Refusal> {
        self.number(field, "must be a number", |_| true)
    }

    /// An array of values of one type.
    pub(crate) fn list<'a, T: Deserialize<'a>>(&'a self, field: &str) -> Result<Option<Vec<T>>, Refusal> {
        let read = |value: &'a RawValue| serde_json::from_str(value.get());
        let values = self.raw(field).map(read).transpose();
        values.map_err(|_| Refusal::invalid(field, "must be an array, and each member of the right type"))
    }

    pub(crate) fn positive(&self, field: &str) -> Result<Option<Decimal>, Refusal> {
        self.number(field, "must be a number greater than 0", |number| number > Decimal::ZERO)
    }

    pub(crate) fn least(&self, field: &str, least: Decimal) -> Result<Option<Decimal>, Refusal> {
        self.number(field, &format!("must be a number of at least {least}"), |number| number >= least)
    }

    /// A limit of at least 0, which null lifts.
    pub(crate) fn limit(&self, field: &str) -> Result<Change, Refusal> {
        if self.0.get(field).is_some_and(|value| value.get() == "null") {
            return Ok(Change::Lift);
        }
        Ok(self.least(field, Decimal::ZERO)?.map_or(Change::Keep, Change::Set))
    }

    pub(crate) fn raw(&self, field: &str) -> Option<&RawValue> {
        self.0.get(field).map(AsRef::as_ref)
    }

    fn number(&self, field: &str, rule: &str, holds: impl Fn(Decimal) -> bool) -> Result<Option<Decimal>, Refusal> {
        let Some(value) = self.0.get(field) else {
            return Ok(None);
        };
        decimal(value).filter(|number| holds(*number)).map(Some).ok_or_else(|| Refusal::invalid(field, rule))
    }
}

/// The change of a limit by a request: absent, null and a value are three things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Keep,
    Lift,
    Set(Decimal),
}

/// The value of a required field, or the refusal without one.
pub(crate) fn required<T>(field: &str, value: Option<T>) -> Result<T, Refusal> {
    value.ok_or_else(|| Refusal::invalid(field, "is required"))
}

fn decimal(value: &RawValue) -> Option<Decimal> {
    let text = value.get();
    Decimal::from_str_exact(text).or_else(|_| Decimal::from_scientific(text)).ok()
}

/// A whole number, which JSON may write as 13.0 too.
fn whole(value: &RawValue) -> Option<i64> {
    decimal(value).filter(|number| number.fract().is_zero()).and_then(|number| i64::try_from(number).ok())
}

fn one_of(field: &str, value: &str, allowed: &[&'static str]) -> Result<&'static str, Refusal> {
    allowed
        .iter()
        .find(|word| **word == value)
        .copied()
        .ok_or_else(|| Refusal::invalid(field, &format!("must be one of {}", allowed.join(", "))))
}
