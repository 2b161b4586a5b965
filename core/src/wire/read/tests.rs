//! Compares the reader with a reader of the same rules that is as plain as possible, over serde_json; and tests it rule by rule.

use serde_json::Value;
use serde_json::value::RawValue;

use super::*;
use crate::contract::agent::{ListProducts, Session};
use crate::contract::reseller::{StaticOrderAcceptance, StaticProductList, SubUserList};
use crate::contract::{Api, Decimal, Operation, Record, Shape, Shaped, Word, endpoints};

/// A sink for tests: what serde_json would make of the value under the names of the table, and no unknown member.
struct Values;

fn parsed(json: &str) -> Value {
    // A number as its text, so that no float takes part.
    match json.parse::<f64>() {
        Ok(_) => Value::from(format!("#{json}")),
        Err(_) => serde_json::from_str::<Value>(json).unwrap_or_else(|_| Value::from(format!("!{json}"))),
    }
}

impl Sink for Values {
    type Value = Value;
    type Nest = Value;

    fn null(&mut self) -> Value {
        Value::Null
    }
    fn flag(&mut self, value: bool) -> Value {
        value.into()
    }
    fn integer(&mut self, value: i64) -> Value {
        format!("#{value}").into()
    }
    fn decimal(&mut self, digits: &str) -> Value {
        format!("#{digits}").into()
    }
    fn text(&mut self, text: &str, _secret: bool) -> Value {
        text.into()
    }
    fn word(&mut self, text: &str, known: Option<&'static Word>) -> Value {
        assert!(known.is_none_or(|word| word.word == text));
        text.into()
    }
    fn json(&mut self, text: &str) -> Value {
        parsed(text)
    }
    fn object(&mut self, _record: &'static Record) -> Value {
        Value::Object(serde_json::Map::new())
    }
    fn list(&mut self) -> Value {
        Value::Array(Vec::new())
    }
    fn put(&mut self, nest: &mut Value, index: usize, value: Value) {
        match nest {
            Value::Array(items) => {
                assert_eq!(items.len(), index);
                items.push(value);
            }
            // The name is in the record, which an object does not know here; its number is known.
            nest => assert!(nest.as_object_mut().expect("is an object").insert(index.to_string(), value).is_none(), "put twice"),
        }
    }
    fn end(&mut self, nest: Value) -> Value {
        nest
    }
}

/// A whole number, computed plainly: the value of the digits that are left once the point is moved.
fn whole(number: &str) -> Option<i64> {
    let (mantissa, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let zeros = exponent.parse::<i64>().ok()? - i64::try_from(fraction.len()).ok()?;
    let shifted = match usize::try_from(zeros) {
        Ok(zeros) if zeros < 40 => digits + &"0".repeat(zeros),
        Ok(_) => return digits.trim_matches(['-', '0']).is_empty().then_some(0),
        Err(_) => {
            let cut = digits.len().checked_sub(usize::try_from(-zeros).ok()?)?;
            digits[cut..].bytes().all(|digit| digit == b'0').then(|| digits[..cut].to_owned())?
        }
    };
    if shifted.trim_matches(['-', '0']).is_empty() { Some(0) } else { shifted.parse().ok() }
}

/// A decimal number: as it is written, or rounded where it does not fit.
fn decimal(number: &str) -> Option<Value> {
    let written = number.parse::<Decimal>().ok().map(|_| number.to_owned());
    let rounded = || Decimal::rounded_up(number).map(|(rounded, _)| rounded.to_string());
    written.or_else(rounded).map(|digits| Value::from(format!("#{digits}")))
}

/// The rules of reading, written plainly: the value, and whether it fits.
fn reference(shape: &Shape, json: &str, fits: &mut bool) -> Value {
    let is_number = |json: &str| json.starts_with(|first: char| first == '-' || first.is_ascii_digit());
    let number = || is_number(json);
    let text = || serde_json::from_str::<String>(json).ok();
    let is_digits = |text: &str| text.trim_start_matches('-').bytes().all(|digit| digit.is_ascii_digit());
    let fitting = match shape {
        Shape::Json | Shape::Error => Some(parsed(json)),
        Shape::Text | Shape::Secret => text().map(Value::from),
        Shape::Label => text().or_else(|| number().then(|| json.to_owned())).map(Value::from),
        Shape::Word(words) => {
            let numbers = words.words.iter().any(|word| word.number.is_some());
            let said = text().or_else(|| (numbers && number()).then(|| json.to_owned()));
            said.map(|said| {
                let quoted = json.starts_with('"');
                let by_text = || words.words.iter().find(|word| quoted && word.word == said);
                let by_letters = || words.words.iter().find(|word| quoted && word.word.eq_ignore_ascii_case(&said));
                let number =
                    if quoted { Some(&said).filter(|said| is_digits(said)).and_then(|said| said.parse().ok()) } else { whole(&said) };
                let by_number = || words.words.iter().find(|word| number.is_some() && word.number == number);
                by_text().or_else(by_letters).or_else(by_number).map_or(Value::from(said.as_str()), |word| Value::from(word.word))
            })
        }
        Shape::Bool => json.parse::<bool>().ok().map(Value::from),
        Shape::Integer | Shape::Time | Shape::Span => {
            let said = if number() { whole(json) } else { text().filter(|text| is_digits(text)).and_then(|text| text.parse().ok()) };
            said.map(|whole| Value::from(format!("#{whole}")))
        }
        Shape::Decimal => {
            let said = if number() { Some(json.to_owned()) } else { text() };
            said.filter(|said| is_number(said) && serde_json::from_str::<&RawValue>(said).is_ok_and(|raw| raw.get() == said))
                .and_then(|said| decimal(&said))
        }
        Shape::List(item) | Shape::OneOrMany(item) if json.starts_with('[') => {
            let items: Vec<&RawValue> = serde_json::from_str(json).expect("is a list");
            Some(Value::Array(items.iter().map(|raw| reference(item, raw.get(), fits)).collect()))
        }
        Shape::OneOrMany(item) => Some(Value::Array(vec![reference(item, json, fits)])),
        Shape::List(_) => None,
        Shape::Record(record) => json.starts_with('{').then(|| object(record, json, fits)),
    };
    fitting.unwrap_or_else(|| {
        *fits = false;
        parsed(json)
    })
}

/// The members of an object in their order, also those that come twice.
struct Members(Vec<(String, String)>);

impl<'de> serde::Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut found = Vec::new();
                while let Some((name, json)) = map.next_entry::<&RawValue, &RawValue>()? {
                    // A name that can't be read is never a documented one.
                    found.push((serde_json::from_str(name.get()).unwrap_or_default(), json.get().to_owned()));
                }
                Ok(Members(found))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

fn object(record: &Record, json: &str, fits: &mut bool) -> Value {
    let Members(members) = serde_json::from_str(json).expect("is an object");
    let mut built = serde_json::Map::new();
    for (index, field) in record.fields.iter().enumerate() {
        let mut spelled = Vec::new();
        for name in std::iter::once(&field.name).chain(field.aliases) {
            let found: Vec<&String> = members.iter().filter(|(known, _)| known == name).map(|(_, json)| json).collect();
            *fits &= found.len() < 2;
            spelled.extend(found.first().copied());
        }
        let is_empty = |json: &str| json == "null" || json == "\"\"" || serde_json::from_str::<[Value; 0]>(json).is_ok();
        let filled = spelled.iter().find(|json| !is_empty(json)).or_else(|| spelled.iter().find(|json| *json != &"null"));
        let value = match filled.or(spelled.first()) {
            None => {
                *fits &= !field.required;
                continue;
            }
            Some(json) if *json == "null" && field.required && matches!(field.shape, Shape::List(_)) => Value::Array(Vec::new()),
            Some(json) if *json == "null" => {
                *fits &= !field.required || matches!(field.shape, Shape::Json);
                Value::Null
            }
            Some(json) if !field.required && matches!(field.shape, Shape::Record(_)) && is_empty(json) && json.starts_with('[') => {
                Value::Null
            }
            // An id without fraction and exponent.
            Some(json) if field.is_id() && matches!(field.shape, Shape::Text | Shape::Label) && json.parse::<f64>().is_ok() => {
                let has_digits_only = json.trim_start_matches('-').bytes().all(|digit| digit.is_ascii_digit());
                *fits &= has_digits_only;
                if has_digits_only { json.as_str().into() } else { parsed(json) }
            }
            Some(json) => reference(&field.shape, json, fits),
        };
        built.insert(index.to_string(), value);
    }
    Value::Object(built)
}

/// The built value, whether it fits, the differing members, and whether it was written in another way than the table writes it.
type Seen<V> = (Option<V>, Result<(), DecodeError>, Vec<String>, bool);

/// Reads JSON as the `data` of an agent's success.
fn data<S: Sink>(shape: &'static Shape, json: &str, sink: &mut S) -> Option<Seen<S::Value>> {
    let body = format!("{{\"success\":true,\"data\":{json}}}");
    let expected = Expected { api: Api::Agent, operation: "get_session", shape, max_body: u32::MAX };
    let (response, value) = read(expected, Received { status: 200, headers: &[], body: body.as_bytes(), truncated: false }, sink);
    match response.content {
        ContentRef::Success(data) => {
            assert_eq!(data.raw, json.trim_matches([' ', '\n', '\r', '\t']));
            // A second read of the raw value has the same result.
            assert_eq!(read_as(shape, data.raw, &mut ()).err(), data.fit.clone().err(), "{json}");
            let again = reading(shape, data.raw);
            assert_eq!((again.misfit.map(|error| *error), again.rewritten), (data.fit.clone().err(), data.rewritten), "{json}");
            assert_eq!(view(shape, data.raw).is_some(), data.rewritten, "{json}");
            Some((value, data.fit, data.differing, data.rewritten))
        }
        _ => None,
    }
}

/// Compares the calls to every sink with the reference, and returns whether the text is JSON.
fn compare(shape: &'static Shape, json: &str) -> bool {
    let reference_raw = serde_json::from_str::<&RawValue>(json).ok();
    let Some((value, fit, differing, rewritten)) = data(shape, json, &mut Values) else {
        let deep = json.bytes().filter(|byte| matches!(byte, b'[' | b'{')).count() > 99;
        assert!(reference_raw.is_none() || deep, "{json}");
        return false;
    };
    let mut fits = true;
    let expected = reference(shape, reference_raw.expect(json).get(), &mut fits);
    assert_eq!((value, fit.is_ok()), (Some(expected.clone()), fits), "{json}: {fit:?}");
    assert_eq!(data(shape, json, &mut ()), Some((Some(()), fit.clone(), differing, rewritten)), "{json}");
    // The written text reads as the same value, and is already in the table's form.
    let mut text = Text::default();
    assert!(data(shape, json, &mut text).is_some());
    let text = text.into_text();
    if fits {
        let (again, refit, differing, rewritten) = data(shape, &text, &mut Values).expect(&text);
        assert_eq!((again, refit, differing.len(), rewritten), (Some(expected), Ok(()), 0, false), "{json}: {text}");
    } else {
        assert!(crate::json::whole(&text).is_ok(), "{json}: {text}");
    }
    true
}

/// Bytes that are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap_or(1)).unwrap_or(0)
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        *among.get(self.below(among.len())).expect("is not empty")
    }

    /// A value of a shape, most often.
    fn value(&mut self, shape: &Shape, into: &mut String) {
        const ANY: [&str; 33] = [
            "1e-30",
            "9223372036854775807",
            "9223372036854775808",
            "\"4.50\"",
            "\"12\"",
            "\"ACTIVE\"",
            "null",
            "true",
            "false",
            "7",
            "-0",
            "0",
            "1.50",
            "9007199254740991",
            "9007199254740992",
            "1e2",
            "1.0",
            "\"\"",
            "\"3\"",
            "\"a\\u0041\"",
            "\"\\ud800\"",
            "[]",
            "[ ]",
            "{}",
            "[1]",
            "[[]]",
            "{\"a\":1}",
            "79228162514264337593543950335",
            "79228162514264337593543950336",
            "0.12345678901234567890123456789",
            "{\"id\":1,\"id\":2}",
            "\"month\"",
            "12345678901234567890123456789012345678901234567890",
        ];
        let space = self.pick(&["", "", "", " ", "\n\t"]);
        into.push_str(space);
        match shape {
            _ if self.below(14) == 0 => into.push_str(self.pick(&ANY)),
            Shape::Record(record) => {
                into.push('{');
                let mut first = true;
                for _ in 0..record.fields.len() + self.below(3) {
                    let field = self.pick(&record.fields.iter().collect::<Vec<_>>());
                    let names: Vec<&str> = std::iter::once(field.name).chain(field.aliases.iter().copied()).chain(["other"]).collect();
                    let name = if self.below(5) > 0 { field.name } else { self.pick(&names) };
                    let name = if self.below(20) == 0 { name.replacen('i', "\\u0069", 1) } else { name.to_owned() };
                    into.extend([if first { "" } else { "," }, "\"", &name, "\"", self.pick(&[":", ":", " : "])]);
                    self.value(&field.shape, into);
                    first = false;
                }
                into.push('}');
            }
            Shape::List(item) | Shape::OneOrMany(item) => {
                into.push('[');
                for n in 0..self.below(4) {
                    into.push_str(if n == 0 { "" } else { "," });
                    self.value(item, into);
                }
                into.push(']');
            }
            Shape::Word(words) => into.push_str(&format!("\"{}\"", self.pick(words.words).word)),
            Shape::Text | Shape::Secret | Shape::Label => into.push_str(self.pick(&["\"text\"", "\"\u{20ac} \\n\"", "\"\""])),
            Shape::Bool => into.push_str(self.pick(&["true", "false"])),
            Shape::Integer | Shape::Time | Shape::Span => into.push_str(self.pick(&["0", "-7", "12345"])),
            Shape::Decimal => into.push_str(self.pick(&["4.00", "-0.1", "7"])),
            Shape::Json | Shape::Error => into.push_str(self.pick(&ANY)),
        }
        into.push_str(space);
    }

    /// The bytes with a few changes.
    fn mutate(&mut self, json: &str) -> Vec<u8> {
        let mut bytes = json.as_bytes().to_vec();
        for _ in 0..=self.below(3) {
            let at = self.below(bytes.len() + 1);
            match self.below(3) {
                0 => bytes.insert(at, self.pick(b"{}[]\",:\\ \n0-.eEtfnu\x00\x1f\xff")),
                1 if at < bytes.len() => _ = bytes.remove(at),
                _ => bytes.truncate(if self.below(8) == 0 { at } else { bytes.len() }),
            }
        }
        bytes
    }
}

#[test]
fn random_answers_of_every_operation_are_read_as_the_rules_say() {
    let (mut random, mut fits, mut broken) = (Random(0x9e37_79b9_7f4a_7c15), 0, 0);
    for endpoint in endpoints() {
        for _ in 0..120 {
            let mut json = String::new();
            random.value(&endpoint.response, &mut json);
            assert!(compare(&endpoint.response, &json), "{json}");
            fits += u32::from(data(&endpoint.response, &json, &mut ()).is_some_and(|(_, fit, ..)| fit.is_ok()));
            if let Ok(mutated) = String::from_utf8(random.mutate(&json)) {
                broken += u32::from(!compare(&endpoint.response, &mutated));
            }
        }
    }
    assert!(fits > 500 && broken > 500, "{fits} fitted and {broken} were no JSON, so too few are of either kind");
}

fn fit(shape: &'static Shape, json: &str) -> Result<(), (String, &'static str)> {
    let (_, fit, ..) = data(shape, json, &mut ()).expect(json);
    fit.map_err(|error| (error.place, error.expected))
}

#[test]
fn the_first_value_that_does_not_fit_is_named_by_its_place() {
    let products = &ListProducts::ENDPOINT.response;
    let missing = fit(products, r#"{"items":[{"product_no":"a"}]}"#);
    assert!(missing.as_ref().is_err_and(|(place, _)| place.starts_with("data.items[0].")), "{missing:?}");
    let orders = |json| fit(&StaticOrderAcceptance::SHAPE, json);
    assert_eq!(orders("{}"), Err(("data.orderNo".to_owned(), "text or a number")));
    assert_eq!(orders(r#"{"order_no":{}}"#), Err(("data.orderNo".to_owned(), "text or a number")));
    assert_eq!(orders(r#"{"order_no":"a","order_no":"a"}"#), Err(("data.orderNo".to_owned(), "a single member")));
    assert_eq!(orders(r#"{"orderNo":"\ud800"}"#), Err(("data.orderNo".to_owned(), "text without half a surrogate pair")));
    assert_eq!(orders("[]"), Err(("data".to_owned(), "an object")));
    assert_eq!(orders("null"), Err(("data".to_owned(), "an object")));
    let users = |json| fit(&SubUserList::SHAPE, json);
    assert_eq!(users(r#"{"list":[{"id":1.0},{"id":1.5}]}"#), Err(("data.items[1].id".to_owned(), "a whole number of at most 64 bits")));
    assert_eq!(
        users(r#"{"list":[{"id":1, "balance":1e99}, 7]}"#),
        Err(("data.items[0].balance".to_owned(), "a number of at most 28 digits before its point"))
    );
    assert_eq!(users(r#"{"list":[{"id":1},null]}"#), Err(("data.items[1]".to_owned(), "an object")));
}

#[test]
fn two_spellings_with_two_values_are_told_of_and_the_first_of_the_table_counts() {
    let read = |shape: &'static Shape, json: &str| {
        let mut text = Text::default();
        let (_, _, differing, rewritten) = data(shape, json, &mut text).expect(json);
        assert!(rewritten);
        (text.into_text(), differing)
    };
    let json = r#"{"order_no":"b","orderNo":"a","x":1}"#;
    assert_eq!(read(&StaticOrderAcceptance::SHAPE, json), (r#"{"x":1,"orderNo":"a"}"#.to_owned(), vec!["orderNo".to_owned()]));
    let json = r#"{"items":[{"projectList":[],"projects":[7],"unit":"3"}]}"#;
    let (text, differing) = read(&StaticProductList::SHAPE, json);
    assert_eq!((text.as_str(), differing), (r#"{"items":[{"projectList":[7],"unit":"month"}]}"#, vec!["items[0].projectList".to_owned()]));
    let json = r#"{"list":[{"productId":7,"product_type":2,"unit":3,"price":1.50,"projects":[]},{"unit":9,"productType":"shared"}]}"#;
    let (text, differing) = read(&StaticProductList::SHAPE, json);
    let first = r#"{"productId":"7","productType":"2","projectList":[],"unit":"month","price":1.50}"#;
    assert_eq!((text, differing), (format!(r#"{{"items":[{first},{{"productType":"shared","unit":"9"}}]}}"#), vec![]));
}

#[test]
fn how_much_is_told_of_what_differs_has_a_limit() {
    let items = vec![r#"{"projectList":[1],"projects":[7]}"#; 1000].join(",");
    let (_, _, differing, _) = data(&StaticProductList::SHAPE, &format!(r#"{{"items":[{items}]}}"#), &mut ()).expect("is JSON");
    assert_eq!(differing.len(), 32);
}

#[test]
fn a_success_without_data_fits_just_what_nobody_documents() {
    let fit = |shape, body: &str| {
        let expected = Expected { api: Api::Agent, operation: "get_session", shape, max_body: 100 };
        match read(expected, Received { status: 200, headers: &[], body: body.as_bytes(), truncated: false }, &mut ()).0.content {
            ContentRef::Success(data) => (data.raw.to_owned(), data.fit.map_err(|error| error.to_string())),
            _ => panic!("{body} is a success"),
        }
    };
    let bad = Err("`data` is not an object".to_owned());
    assert_eq!(fit(&Session::SHAPE, r#"{"success":true}"#), ("null".to_owned(), bad.clone()));
    assert_eq!(fit(&Session::SHAPE, r#"{"success":true,"data":null}"#), ("null".to_owned(), bad));
    assert_eq!(fit(&Shape::Json, r#"{"success":true}"#), ("null".to_owned(), Ok(())));
}
