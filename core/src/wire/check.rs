//! Checks the values of a request against the table: a value that breaks a rule is refused by name.

use std::borrow::Cow;

use super::near::meant;
use super::read::whole_of;
use super::time;
use crate::collections::Map;
use crate::contract::{Decimal, Field, FieldRule, Record, Shape, fits_double};
use crate::json::{self, NotJson, pick, plain, quoted, text_of};

/// A parameter that was refused: the field and the rule it broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) field: String,
    pub(crate) rule: String,
}

impl Refusal {
    pub(super) fn new(field: &str, rule: impl Into<String>) -> Self {
        Refusal { field: field.to_owned(), rule: rule.into() }
    }

    /// Says what chooses a product, of a purchase that names nothing of one.
    pub(crate) fn naming_product(mut self, params: &str) -> Self {
        let names_none = pick(params, ["session_type", "product_no"]).is_some_and(|found| found.iter().all(Option::is_none));
        if names_none && self.field == "session_type" {
            self.rule.push_str(": give `product`, which chooses one, or `session_type` and `product_no`");
        }
        self
    }
}
/// The members of an object that was given, each with its JSON.
pub(crate) type RawMembers<'a> = Vec<(Cow<'a, str>, &'a str)>;

pub(super) fn no_strangers(record: &Record, given: &RawMembers<'_>, path: &str) -> Result<(), Refusal> {
    match given.iter().find(|(name, _)| record.field(name).is_none()) {
        Some((name, _)) => {
            let likely = meant(name, record.fields.iter().map(|field| field.name));
            Err(Refusal::new(&format!("{path}{}", shorten(name)), format!("is not a field of `{}`{likely}", record.name)))
        }
        None => Ok(()),
    }
}

pub(super) fn value_of<'a>(field: &Field, given: &RawMembers<'a>) -> Result<Option<&'a str>, Refusal> {
    match given.iter().find(|(name, _)| name == field.name) {
        Some((_, raw)) if *raw == "null" && !field.nullable => Err(Refusal::new(field.name, "must not be null; leave it out instead")),
        Some((_, raw)) => Ok(Some(raw)),
        None if field.required => Err(Refusal::new(field.name, "is required")),
        None => match field.rules.iter().find_map(|rule| if let FieldRule::Unless(other) = rule { Some(other) } else { None }) {
            Some(other) if !given.iter().any(|(name, _)| name == other) => {
                Err(Refusal::new(field.name, format!("is required unless `{other}` is given")))
            }
            _ => Ok(None),
        },
    }
}

/// A whole number. As text only where no double holds it: JavaScript has no other way to say it.
fn integer(raw: &str) -> Option<i64> {
    raw.parse().ok().or_else(|| whole_of(raw).filter(|number| raw.starts_with('"') && !fits_double(*number)))
}

/// Checks one value and writes it again in a form of its own, so that the same request is always the same bytes.
pub(super) fn check(field: &Field, path: &str, shape: Shape, raw: &str, given: &RawMembers<'_>) -> Result<String, Refusal> {
    let refuse = |rule: &str| Err(Refusal::new(path, rule));
    if raw == "null" && field.nullable {
        return Ok(raw.to_owned());
    }
    match shape {
        Shape::Text | Shape::Secret | Shape::Label => match text_of(raw) {
            Some(text) if text.is_empty() && field.required => refuse("must not be empty"),
            Some(text) => match field.rules.iter().find_map(|rule| broken_by(*rule, &text)) {
                Some(rule) => refuse(&rule),
                None => Ok(quoted(&text)),
            },
            None => refuse("must be a string"),
        },
        Shape::Bool => match raw {
            "true" | "false" => Ok(raw.to_owned()),
            _ => refuse("must be true or false"),
        },
        Shape::Integer | Shape::Time | Shape::Span => match integer(raw) {
            Some(number) => {
                bounds(field, path, number.into(), given)?;
                Ok(number.to_string())
            }
            None => refuse("must be a whole number of at most 64 bits"),
        },
        // A host whose JSON has no decimals of its own gives the number as text.
        Shape::Decimal => match plain(raw).parse::<Decimal>() {
            Ok(number) => {
                bounds(field, path, number, given)?;
                Ok(number.in_one_form())
            }
            Err(_) => refuse("must be a decimal number of at most 28 digits"),
        },
        Shape::Word(words) => match words.words.iter().find(|word| word.is(raw)) {
            Some(word) => Ok(word.number.map_or_else(|| quoted(word.word), |number| number.to_string())),
            None if field.takes_any_number()
                && let Ok(number) = plain(raw).parse::<Decimal>() =>
            {
                Ok(number.in_one_form())
            }
            None => {
                let known: Vec<&str> = words.words.iter().map(|word| word.word).collect();
                refuse(&format!("must be one of {}{}", known.join(", "), meant(&plain(raw), known.iter().copied())))
            }
        },
        Shape::Json | Shape::Error => Ok(raw.to_owned()),
        Shape::OneOrMany(item) if !raw.starts_with('[') => check(field, path, *item, raw, given),
        Shape::List(item) | Shape::OneOrMany(item) => match json::items(raw) {
            Ok(items) => {
                let each = items.iter().enumerate().map(|(n, raw)| check(field, &format!("{path}[{n}]"), *item, raw, given));
                Ok(format!("[{}]", each.collect::<Result<Vec<_>, _>>()?.join(",")))
            }
            Err(_) => refuse("must be a list"),
        },
        Shape::Record(record) => {
            let inner = members(raw).map_err(|_| Refusal::new(path, "must be an object without repeated members"))?;
            object(record, &inner, &format!("{path}."))
        }
    }
}

/// Checks the members of an object, whose path each name is to begin with, and writes it again.
pub(super) fn object(record: &Record, given: &RawMembers<'_>, path: &str) -> Result<String, Refusal> {
    no_strangers(record, given, path)?;
    let mut parts = Vec::new();
    for field in record.fields {
        let name = format!("{path}{}", field.name);
        if let Some(raw) = value_of(field, given).map_err(|refusal| Refusal { field: name.clone(), ..refusal })? {
            parts.push(format!("\"{}\":{}", field.name, check(field, &name, field.shape, raw, given)?));
        }
    }
    Ok(format!("{{{}}}", parts.join(",")))
}

fn bounds(field: &Field, path: &str, number: Decimal, given: &RawMembers<'_>) -> Result<(), Refusal> {
    for rule in field.rules {
        let broken = match *rule {
            FieldRule::Positive => (number <= Decimal::from(0)).then(|| "must be above 0".to_owned()),
            FieldRule::AtLeast(least) => (number < Decimal::from(least)).then(|| format!("must be at least {least}")),
            FieldRule::Between(least, most) => {
                (number < Decimal::from(least) || number > Decimal::from(most)).then(|| format!("must be {least} to {most}"))
            }
            FieldRule::WholeWhen(other, word) => {
                let holds = given.iter().any(|(name, raw)| name == other && text_of(raw).is_some_and(|text| text == word));
                (holds && !number.0.is_integer()).then(|| format!("must be a whole number when `{other}` is `{word}`"))
            }
            _ => None,
        };
        if let Some(rule) = broken {
            return Err(Refusal::new(path, rule));
        }
    }
    Ok(())
}

/// The rule that a text breaks, if it does.
fn broken_by(rule: FieldRule, text: &str) -> Option<String> {
    let (holds, said) = match rule {
        FieldRule::Email => (is_email(text), "must be an email address".to_owned()),
        FieldRule::Uuid => (is_uuid(text), "must be a UUID, such as 123e4567-e89b-12d3-a456-426614174000".to_owned()),
        FieldRule::Length(least, most) => {
            ((least..=most).contains(&text.chars().count()), format!("must be {least} to {most} characters long"))
        }
        FieldRule::Name => {
            let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
            (plain, "must be made of letters, digits, underscores and hyphens".to_owned())
        }
        FieldRule::Phone => {
            (text.len() == 11 && text.bytes().all(|byte| byte.is_ascii_digit()), "must be a mobile number of 11 digits".to_owned())
        }
        FieldRule::Date => (time::is_day(text), "must be a day, such as 2026-01-31".to_owned()),
        FieldRule::Country => (
            text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_alphabetic()),
            "must be two letters of ISO 3166, such as US".to_owned(),
        ),
        _ => return None,
    };
    (!holds).then_some(said)
}

/// Returns true if a text has the format of an email address: a name, an `@`, and a host, without spaces.
fn is_email(text: &str) -> bool {
    let plain = text.len() <= 254 && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    let host = text.rsplit_once('@').filter(|(name, _)| (1..=64).contains(&name.len()) && !name.contains('@')).map(|(_, host)| host);
    plain && host.is_some_and(|host| host.split('.').all(|label| !label.is_empty()))
}

/// Returns true if a text has the format of a UUID: 32 hexadecimal digits in five groups.
fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

/// An unknown name, for an error message: short, and without characters that break a line.
fn shorten(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// The members of a JSON object in their order, refusing one that is repeated.
pub(crate) fn members(text: &str) -> Result<RawMembers<'_>, NotJson> {
    let found = json::members(text)?;
    let mut names = Map::default();
    let is_repeated = found.iter().any(|(name, _)| names.insert(name.as_ref(), ()).is_some());
    if is_repeated { Err(NotJson) } else { Ok(found) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::endpoint;

    #[test]
    fn a_secret_is_found_wherever_a_shape_holds_one() {
        let login = Shape::Record(endpoint("login").expect("login").request);
        let read = Shape::Record(endpoint("get_session").expect("get_session").request);
        assert!(login.has_secrets() && !read.has_secrets() && !Shape::Text.has_secrets());
        assert!(Shape::List(&Shape::Secret).has_secrets() && Shape::OneOrMany(&Shape::Secret).has_secrets());
        assert!(!Shape::List(&Shape::Text).has_secrets());
    }

    #[test]
    fn what_is_wrong_within_an_object_is_named_by_its_path() {
        let record = endpoint("create_session").expect("create_session").request;
        let refusal = |json: &str| object(record, &members(json).expect(json), "order.").map_err(|refusal| refusal.field);
        assert_eq!(refusal(r#"{"session_type":null}"#), Err("order.session_type".to_owned()));
        assert_eq!(refusal(r#"{"session_type":"rented"}"#), Err("order.session_type".to_owned()));
        assert_eq!(refusal(r#"{"colour":1}"#), Err("order.colour".to_owned()));
    }
}
