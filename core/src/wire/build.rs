//! From parameters to a request: every field is checked against the table, and whatever breaks a rule is refused by name
//! before anything is sent.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::contract::{Decimal, Endpoint, Field, Place, Record, Rule, Shape};

/// Everything but the unreserved characters of RFC 3986 is encoded, in paths and queries alike.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The largest whole number that a double holds exactly.
const MAX_INTEGER: i64 = (1 << 53) - 1;

/// More than any request of the contract needs; a record of it must stay small enough to be read back.
const MAX_PARAMS: usize = 64 << 10;

/// A request whose parameters are checked: the part that is the same in every send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    /// Path and query, below the base URL.
    pub(crate) target: String,
    /// The JSON body, where the request has one.
    pub(crate) body: Option<String>,
    /// Whether the body or the target holds a secret, so that it can't be saved.
    pub(crate) secret: bool,
    /// The session that the request names in its path.
    pub(crate) session_id: Option<String>,
    /// Whether it asks for a session's credentials.
    pub(crate) credentials: bool,
}

/// A parameter that was refused: the field and the rule it broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) field: String,
    pub(crate) rule: String,
}

impl Refusal {
    fn new(field: &str, rule: impl Into<String>) -> Self {
        Refusal { field: field.to_owned(), rule: rule.into() }
    }
}

/// Checks parameters, a JSON object, and lays them out as the table says.
pub(crate) fn build(endpoint: &Endpoint, params: &str) -> Result<Built, Refusal> {
    if params.len() > MAX_PARAMS {
        return Err(Refusal::new("parameters", "must be at most 64 KiB of JSON"));
    }
    let given = members(params).map_err(|_| Refusal::new("parameters", "must be a JSON object without repeated members"))?;
    no_strangers(endpoint.request, &given, "")?;
    let mut built = Built { target: endpoint.path.to_owned(), body: None, secret: false, session_id: None, credentials: false };
    let mut query = String::new();
    let mut body = String::new();
    for field in endpoint.request.fields {
        let Some(raw) = value_of(field, &given)? else { continue };
        let text = check(field, field.name, field.shape, raw, &given)?;
        built.secret |= holds_secret(field.shape);
        match field.place {
            Place::Path => {
                let plain = plain(&text);
                if plain.is_empty() || plain == "." || plain == ".." {
                    return Err(Refusal::new(field.name, "must be a name, since it is a segment of the path: not empty, `.` or `..`"));
                }
                if field.name == "session_id" {
                    built.session_id = Some(plain.to_string());
                }
                let encoded = utf8_percent_encode(&plain, ENCODED).to_string();
                built.target = built.target.replace(&format!("{{{}}}", field.name), &encoded);
            }
            Place::Query => {
                built.credentials |= field.name == "include_credentials" && text == "true";
                let separator = if query.is_empty() { '?' } else { '&' };
                query.push_str(&format!("{separator}{}={}", field.name, utf8_percent_encode(&plain(&text), ENCODED)));
            }
            Place::Body => {
                body.push(if body.is_empty() { '{' } else { ',' });
                body.push_str(&format!("\"{}\":{text}", field.name));
            }
        }
    }
    if !body.is_empty() {
        body.push('}');
        built.body = Some(body);
    }
    built.target.push_str(&query);
    Ok(built)
}

/// Whether a text can be an `Idempotency-Key`.
pub(crate) fn is_key(key: &str) -> bool {
    (1..=64).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic())
}

type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

fn no_strangers(record: &Record, given: &Members<'_>, path: &str) -> Result<(), Refusal> {
    match given.iter().find(|(name, _)| record.field(name).is_none()) {
        Some((name, _)) => Err(Refusal::new(&format!("{path}{}", shorten(name)), format!("is no field of `{}`", record.name))),
        None => Ok(()),
    }
}

fn value_of<'a>(field: &Field, given: &Members<'a>) -> Result<Option<&'a RawValue>, Refusal> {
    match given.iter().find(|(name, _)| name == field.name) {
        Some((_, raw)) if raw.get() == "null" => Err(Refusal::new(field.name, "must not be null; leave it out instead")),
        Some((_, raw)) => Ok(Some(raw)),
        None if field.required => Err(Refusal::new(field.name, "is required")),
        None => Ok(None),
    }
}

/// Checks one value and writes it again in a form of its own, so that the same request is always the same bytes.
fn check(field: &Field, path: &str, shape: Shape, raw: &RawValue, given: &Members<'_>) -> Result<String, Refusal> {
    let refuse = |rule: &str| Err(Refusal::new(path, rule));
    match shape {
        Shape::Text | Shape::Secret => match serde_json::from_str::<String>(raw.get()) {
            Ok(text) if text.is_empty() && field.required => refuse("must not be empty"),
            Ok(text) => Ok(quote(&text)),
            Err(_) => refuse("must be a string"),
        },
        Shape::Bool => match raw.get() {
            "true" | "false" => Ok(raw.get().to_owned()),
            _ => refuse("must be true or false"),
        },
        Shape::Integer => match raw.get().parse::<i64>() {
            Ok(number) if number.abs() <= MAX_INTEGER => {
                bounds(field, path, number.into(), given)?;
                Ok(number.to_string())
            }
            _ => refuse("must be a whole number of at most 53 bits"),
        },
        // A host whose JSON has no decimals of its own gives the number as text.
        Shape::Decimal => match plain(raw.get()).parse::<Decimal>() {
            Ok(number) => {
                bounds(field, path, number, given)?;
                Ok(number.to_string())
            }
            Err(_) => refuse("must be a decimal number of at most 28 digits"),
        },
        Shape::Word(words) => match serde_json::from_str::<Cow<'_, str>>(raw.get()) {
            Ok(text) if words.words.iter().any(|word| word.word == text) => Ok(quote(&text)),
            _ => {
                let known: Vec<&str> = words.words.iter().map(|word| word.word).collect();
                refuse(&format!("must be one of {}", known.join(", ")))
            }
        },
        Shape::Json => Ok(raw.get().to_owned()),
        Shape::List(item) => match serde_json::from_str::<Vec<&RawValue>>(raw.get()) {
            Ok(items) => {
                let each = items.iter().enumerate().map(|(n, raw)| check(field, &format!("{path}[{n}]"), *item, raw, given));
                Ok(format!("[{}]", each.collect::<Result<Vec<_>, _>>()?.join(",")))
            }
            Err(_) => refuse("must be a list"),
        },
        Shape::Record(record) => {
            let inner = members(raw.get()).map_err(|_| Refusal::new(path, "must be an object without repeated members"))?;
            no_strangers(record, &inner, &format!("{path}."))?;
            let mut parts = Vec::new();
            for field in record.fields {
                let name = format!("{path}.{}", field.name);
                if let Some(raw) = value_of(field, &inner).map_err(|refusal| Refusal { field: name.clone(), ..refusal })? {
                    parts.push(format!("\"{}\":{}", field.name, check(field, &name, field.shape, raw, &inner)?));
                }
            }
            Ok(format!("{{{}}}", parts.join(",")))
        }
    }
}

fn bounds(field: &Field, path: &str, number: Decimal, given: &Members<'_>) -> Result<(), Refusal> {
    for rule in field.rules {
        let broken = match *rule {
            Rule::Positive => (number <= Decimal::from(0)).then(|| "must be above 0".to_owned()),
            Rule::AtLeast(least) => (number < Decimal::from(least)).then(|| format!("must be at least {least}")),
            Rule::Between(least, most) => {
                (number < Decimal::from(least) || number > Decimal::from(most)).then(|| format!("must be {least} to {most}"))
            }
            Rule::WholeWhen(other, word) => {
                let holds = given
                    .iter()
                    .any(|(name, raw)| name == other && serde_json::from_str::<Cow<'_, str>>(raw.get()).is_ok_and(|text| text == word));
                (holds && !number.0.is_integer()).then(|| format!("must be a whole number when `{other}` is `{word}`"))
            }
        };
        if let Some(rule) = broken {
            return Err(Refusal::new(path, rule));
        }
    }
    Ok(())
}

fn holds_secret(shape: Shape) -> bool {
    match shape {
        Shape::Secret => true,
        Shape::List(item) => holds_secret(*item),
        Shape::Record(record) => record.fields.iter().any(|field| holds_secret(field.shape)),
        _ => false,
    }
}

/// A checked value as plain text, for a path or a query.
fn plain(text: &str) -> Cow<'_, str> {
    serde_json::from_str::<String>(text).map_or(Cow::Borrowed(text), Cow::Owned)
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A stranger's name for an error: short, and without what would break a line.
fn shorten(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(40).collect()
}

/// The members of a JSON object in their order, refusing one that is repeated.
fn members(text: &str) -> Result<Members<'_>, serde_json::Error> {
    struct Reader;
    impl<'de> Visitor<'de> for Reader {
        type Value = Members<'de>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found: Members<'de> = Vec::new();
            while let Some((name, raw)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
                if found.iter().any(|(known, _)| *known == name.0) {
                    return Err(serde::de::Error::custom("repeated member"));
                }
                found.push((name.0, raw));
            }
            Ok(found)
        }
    }
    // A `Cow` in a tuple or a map would always be owned; through this it borrows where it can.
    #[derive(serde::Deserialize)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
    let mut reader = serde_json::Deserializer::from_str(text);
    let found = reader.deserialize_map(Reader)?;
    reader.end().map(|()| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::endpoint;

    fn built(name: &str, params: &str) -> Result<Built, Refusal> {
        build(endpoint(name).expect(name), params)
    }

    fn refusal(name: &str, params: &str) -> (String, String) {
        let refusal = built(name, params).expect_err(params);
        (refusal.field, refusal.rule)
    }

    #[test]
    fn the_same_purchase_is_the_same_bytes_however_it_was_written() {
        let one = built("create_session", r#"{"product_no":"p-1","session_type":"dynamic","quantity":0.50}"#);
        let two = built("create_session", r#"{ "session_type" : "dyn\u0061mic", "quantity":"0.50","product_no":"p-1"}"#);
        assert_eq!(one, two);
        assert_eq!(one.as_ref().map(|b| b.body.as_deref()), Ok(Some(r#"{"session_type":"dynamic","product_no":"p-1","quantity":0.50}"#)));
    }

    #[test]
    fn a_path_parameter_stays_one_segment() {
        let target = |id: &str| built("get_session", &format!("{{\"session_id\":{}}}", quote(id))).map(|built| built.target);
        assert_eq!(target("a/../b?c#d%2e").as_deref(), Ok("/sessions/a%2F..%2Fb%3Fc%23d%252e"));
        assert_eq!(target("s 1\u{e9}\n").as_deref(), Ok("/sessions/s%201%C3%A9%0A"));
        for bad in ["", ".", ".."] {
            assert!(target(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_query_holds_what_was_given_and_no_default() {
        assert_eq!(built("list_products", "{}").map(|b| b.target).as_deref(), Ok("/products"));
        let all = r#"{"type":"static","country":"a&b","in_stock":false,"limit":100,"cursor":"x="}"#;
        assert_eq!(
            built("list_products", all).map(|b| b.target).as_deref(),
            Ok("/products?type=static&country=a%26b&in_stock=false&limit=100&cursor=x%3D")
        );
    }

    #[test]
    fn a_refusal_names_the_field_and_the_rule() {
        let rule = |params| refusal("create_session", params);
        let pair = |field: &str, rule: &str| (field.to_owned(), rule.to_owned());
        assert_eq!(rule(r#"{"product_no":"p"}"#), pair("session_type", "is required"));
        assert_eq!(rule(r#"{"session_type":"rented","product_no":"p"}"#), pair("session_type", "must be one of dynamic, static"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":""}"#), pair("product_no", "must not be empty"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":null}"#), pair("product_no", "must not be null; leave it out instead"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":"p","quantity":0}"#), pair("quantity", "must be above 0"));
        assert_eq!(
            rule(r#"{"session_type":"static","product_no":"p","quantity":1.5}"#),
            pair("quantity", "must be a whole number when `session_type` is `static`")
        );
        assert_eq!(rule(r#"{"session_type":"static","product_no":"p","duration":0}"#), pair("duration", "must be at least 1"));
        assert_eq!(rule(r#"{"session_type":"static","product_no":"p","colour":1}"#), pair("colour", "is no field of `CreateSession`"));
        assert_eq!(rule("[]").0, "parameters");
        assert_eq!(rule(r#"{"product_no":"p","product_no":"q"}"#).0, "parameters");
        assert_eq!(refusal("list_products", r#"{"limit":101}"#), pair("limit", "must be 1 to 100"));
        assert_eq!(refusal("list_products", r#"{"limit":"5"}"#).0, "limit");
        assert_eq!(refusal("get_session", r#"{"session_id":"s","include_credentials":1}"#).0, "include_credentials");
    }

    #[test]
    fn an_idempotency_key_is_1_to_64_visible_characters() {
        assert!(is_key("a") && is_key(&"k".repeat(64)));
        assert!(!is_key("") && !is_key(&"k".repeat(65)) && !is_key("a b") && !is_key("a\n") && !is_key("é"));
    }
}
