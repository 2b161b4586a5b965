//! The values for JavaScript: steps, errors, verdicts and results. One type holds all of them, and is written in one place, since each type
//! that writes itself would cost as much again.

use hopline::client::{Name, StoreCall, TakenText};
use hopline::contract::{Encode, Json, Record, Sink, Word};
use hopline::wire::Request;
use hopline::{Error, Step};
use serde::ser::{Serialize, SerializeMap, Serializer};
use wasm_bindgen::JsValue;

/// A value of JavaScript. A member that is `None` where its object is made is absent from it.
#[derive(Debug)]
pub(crate) enum Value {
    Undefined,
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    Bytes(Vec<u8>),
    Word(&'static str),
    /// A service's JSON, in the form of `JSON.parse`.
    Json(Json),
    List(Vec<Value>),
    Object(Vec<(&'static str, Value)>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Undefined => serde_wasm_bindgen::preserve::serialize(&JsValue::UNDEFINED, serializer),
            Value::Null => serializer.serialize_unit(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serde_wasm_bindgen::preserve::serialize(&js_sys::Uint8Array::from(&bytes[..]), serializer),
            Value::Word(word) => serializer.serialize_str(word),
            Value::Json(json) => serde_wasm_bindgen::preserve::serialize(&parsed(json), serializer),
            Value::List(items) => serializer.collect_seq(items),
            Value::Object(members) => {
                let mut map = serializer.serialize_map(Some(members.len()))?;
                members.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
                map.end()
            }
        }
    }
}

fn parsed(json: &Json) -> JsValue {
    // The text was read as JSON before. A number beyond a float is read as JavaScript reads it.
    js_sys::JSON::parse(json.text()).unwrap_or(JsValue::NULL)
}

impl From<Value> for JsValue {
    fn from(value: Value) -> JsValue {
        // None of these values can fail to be written.
        value.serialize(&serde_wasm_bindgen::Serializer::json_compatible()).unwrap_or(JsValue::NULL)
    }
}

/// The members of an object that are there.
fn object<const N: usize>(members: [(&'static str, Option<Value>); N]) -> Value {
    Value::Object(members.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
}

fn number(number: impl Into<i64>) -> Value {
    Value::Number(number.into() as f64)
}

impl Value {
    /// A record for hosts: an error, an event, a verdict.
    pub(crate) fn encoded(value: &impl Encode) -> Value {
        value.encode(&mut Objects)
    }
}

/// Builds values.
struct Objects;

/// An object or a list that is being built.
enum Nest {
    Object(&'static Record, Vec<(&'static str, Value)>),
    List(Vec<Value>),
}

impl Sink for Objects {
    type Value = Value;
    type Nest = Nest;

    fn null(&mut self) -> Value {
        Value::Null
    }

    fn flag(&mut self, value: bool) -> Value {
        Value::Flag(value)
    }

    fn integer(&mut self, value: i64) -> Value {
        number(value)
    }

    fn decimal(&mut self, digits: &str) -> Value {
        Value::Json(digits.parse().unwrap_or_default())
    }

    fn text(&mut self, text: &str, _secret: bool) -> Value {
        Value::Text(text.to_owned())
    }

    fn word(&mut self, text: &str, known: Option<&'static Word>) -> Value {
        known.map_or_else(|| Value::Text(text.to_owned()), |known| Value::Word(known.word))
    }

    fn json(&mut self, text: &str) -> Value {
        Value::Json(text.parse().unwrap_or_default())
    }

    fn object(&mut self, record: &'static Record) -> Nest {
        Nest::Object(record, Vec::new())
    }

    fn list(&mut self) -> Nest {
        Nest::List(Vec::new())
    }

    fn put(&mut self, nest: &mut Nest, index: usize, value: Value) {
        match nest {
            Nest::Object(record, members) => members.extend(record.fields.get(index).map(|field| (field.name, value))),
            Nest::List(items) => items.push(value),
        }
    }

    fn end(&mut self, nest: Nest) -> Value {
        match nest {
            Nest::Object(_, members) => Value::Object(members),
            Nest::List(items) => Value::List(items),
        }
    }
}

/// The next step, as `poll` returns it.
impl From<Step> for Value {
    fn from(step: Step) -> Value {
        let or_null = |found: Option<Value>| found.unwrap_or(Value::Null);
        Value::List(match step {
            Step::Wait { until } => return until.map_or(Value::Undefined, number),
            Step::Store { id, command, call } => {
                vec![Value::Word("store"), number(id.0), or_null(command.map(|command| number(command.0))), Value::from(&call)]
            }
            Step::Send { id, command, request } => {
                let Request { method, url, headers, body, timeout_ms, send_before, max_body, expects } = request;
                let mut head = [expects.operation(), method.as_str(), &url].join("\n");
                headers.iter().for_each(|(name, value)| head.extend(["\n", name, "\n", value]));
                let body = or_null(Some(body).filter(|body| !body.is_empty()).map(Value::Bytes));
                let bounds = [number(timeout_ms), number(max_body), number(send_before)];
                [Value::Word("send"), number(id.0), number(command.0), Value::Text(head), body].into_iter().chain(bounds).collect()
            }
            Step::Completed { command } => vec![Value::Word("completed"), number(command.0)],
            Step::Notify(event) => vec![Value::Word("notify"), Value::encoded(&event)],
        })
    }
}

impl From<&StoreCall> for Value {
    fn from(call: &StoreCall) -> Value {
        let name = |name: &Name| Value::Text(name.to_string());
        let names = |names: &[Name]| Value::List(names.iter().map(name).collect());
        let usd = |usd: &hopline::contract::Decimal| Value::Text(usd.to_string());
        let (method, given) = match call {
            StoreCall::Claim { names: wanted, most } => ("claim", vec![names(wanted), number(*most)]),
            StoreCall::Put { name: of, data, new, keep_for, release } => {
                let how = [("new", Some(Value::Flag(*new))), ("keepFor", keep_for.map(number)), ("release", Some(Value::Flag(*release)))];
                ("put", vec![name(of), Value::Bytes(data.clone()), object(how)])
            }
            StoreCall::Delete { name: of } => ("delete", vec![name(of)]),
            StoreCall::Release { names: of } => ("release", of.as_deref().map(names).into_iter().collect()),
            StoreCall::List { space, after, open } => {
                let options = [("after", after.as_ref().map(name)), ("open", Some(Value::Flag(*open)))];
                ("list", vec![Value::Text(space.0.clone()), object(options)])
            }
            StoreCall::Spend { space, day, entry, amount, cap } => {
                let (entry, amount) = (Some(Value::Text(entry.clone())), Some(usd(amount)));
                let what = [("day", day.map(number)), ("entry", entry), ("amount", amount), ("cap", cap.as_ref().map(usd))];
                ("spend", vec![Value::Text(space.0.clone()), object(what)])
            }
        };
        Value::List(std::iter::once(Value::Word(method)).chain(given).collect())
    }
}

/// A result that was taken, as `take` returns it.
impl From<Result<TakenText, Error>> for Value {
    fn from(taken: Result<TakenText, Error>) -> Value {
        Value::List(match taken {
            Ok(TakenText { facts, raw, view, phase, type_name, undocumented_secrets }) => {
                let word = |word: Option<&'static str>| word.map_or(Value::Null, Value::Word);
                let secrets = if undocumented_secrets { Value::Flag(true) } else { Value::Null };
                let more = [word(phase), view.map_or(Value::Null, Value::Text), word(type_name), secrets];
                let said = more.iter().rposition(|value| !matches!(value, Value::Null)).map_or(0, |last| last + 1);
                [Value::Word("answered"), Value::Text(facts), Value::Text(raw)].into_iter().chain(more.into_iter().take(said)).collect()
            }
            Err(error) => vec![Value::Word("failed"), Value::encoded(&error)],
        })
    }
}
