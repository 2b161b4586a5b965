//! What goes out to JavaScript as an object: errors, events, verdicts. One type holds all of them, and is
//! written in one place, since each type that writes itself would cost as much again.

use hopline::client::{Event, EventKind, Name, Phase, StoreCall, TakenText, Verdict};
use hopline::contract::Json;
use hopline::policy::{Advice, Effect, Error, ErrorFields, Kind};
use serde::ser::{Serialize, SerializeMap, Serializer};
use wasm_bindgen::JsValue;

/// A value of JavaScript. A member that is `None` where its object is made is absent from it.
#[derive(Debug)]
pub(crate) enum Value {
    Null,
    Flag(bool),
    Number(f64),
    Text(String),
    Bytes(Vec<u8>),
    Word(&'static str),
    Kind(Kind),
    Effect(Effect),
    Advice(Advice),
    Phase(Phase),
    /// What a service wrote: as `JSON.parse` reads it.
    Json(Json),
    List(Vec<Value>),
    Object(Vec<(&'static str, Value)>),
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Null => serializer.serialize_unit(),
            Value::Flag(flag) => serializer.serialize_bool(*flag),
            Value::Number(number) => serializer.serialize_f64(*number),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Bytes(bytes) => serde_wasm_bindgen::preserve::serialize(&js_sys::Uint8Array::from(&bytes[..]), serializer),
            Value::Word(word) => serializer.serialize_str(word),
            Value::Kind(kind) => kind.serialize(serializer),
            Value::Effect(effect) => effect.serialize(serializer),
            Value::Advice(advice) => advice.serialize(serializer),
            Value::Phase(phase) => phase.serialize(serializer),
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
    // It was read as JSON before. A number beyond a float is read as JavaScript reads it.
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

fn text(text: &Option<String>) -> Option<Value> {
    text.clone().map(Value::Text)
}

fn number(number: impl Into<i64>) -> Value {
    Value::Number(number.into() as f64)
}

impl From<&Error> for Value {
    fn from(error: &Error) -> Value {
        // All of it by name, so that nothing new is forgotten here.
        let ErrorFields {
            kind,
            effect,
            operation,
            what,
            advice,
            field,
            code,
            status,
            text: told,
            content_type,
            details,
            request_id,
            idempotency_key,
            intent,
            session_id,
            order_no,
            record,
            retry_at,
            attempts,
            raw,
            cause,
        } = &**error;
        object([
            ("message", Some(Value::Text(error.to_string()))),
            ("refused_by_us", error.is_refused_by_us().then_some(Value::Flag(true))),
            ("kind", Some(Value::Kind(*kind))),
            ("effect", Some(Value::Effect(*effect))),
            ("operation", Some(Value::Word(operation))),
            ("what", Some(Value::Text(what.clone()))),
            ("advice", Some(Value::Advice(*advice))),
            ("field", text(field)),
            ("code", text(code)),
            ("status", status.map(number)),
            ("text", text(told)),
            ("content_type", text(content_type)),
            ("details", details.clone().map(Value::Json)),
            ("request_id", text(request_id)),
            ("idempotency_key", text(idempotency_key)),
            ("intent", text(intent)),
            ("session_id", text(session_id)),
            ("order_no", text(order_no)),
            ("record", text(record)),
            ("retry_at", retry_at.map(number)),
            ("attempts", Some(number(*attempts))),
            ("raw", raw.clone().map(Value::Json)),
            ("cause", cause.as_ref().map(Value::from)),
        ])
    }
}

impl From<&Event> for Value {
    fn from(event: &Event) -> Value {
        let Event { command, operation, intent, what } = event;
        let some = |name, value: &str| (name, Value::Text(value.to_owned()));
        let (word, more) = match what {
            EventKind::Repeating { attempts, delay_ms, because } => {
                ("repeating", vec![("attempts", number(*attempts)), ("delay_ms", number(*delay_ms)), ("because", because.into())])
            }
            EventKind::AskingTime => ("asking_time", Vec::new()),
            EventKind::Accepted { session_id, estimated_charge_usd } => {
                let charge = estimated_charge_usd.as_deref().map(|charge| some("estimated_charge_usd", charge));
                ("accepted", [some("session_id", session_id)].into_iter().chain(charge).collect())
            }
            EventKind::Status { session_id, status, phase } => {
                ("status", vec![some("session_id", session_id), some("status", status), ("phase", Value::Phase(*phase))])
            }
            EventKind::Ordered { order_no } => ("ordered", vec![some("order_no", order_no)]),
            EventKind::OrderStatus { order_no, status, phase } => {
                ("order_status", vec![some("order_no", order_no), some("status", status), ("phase", Value::Phase(*phase))])
            }
            EventKind::Differing { members } => {
                ("differing", vec![("members", Value::List(members.iter().cloned().map(Value::Text).collect()))])
            }
            EventKind::Priced { unit_price } => ("priced", vec![some("unit_price", unit_price)]),
            EventKind::Watched { value } => ("watched", value.iter().map(|value| some("value", value)).collect()),
            EventKind::InDoubt { record } => {
                ("in_doubt", vec![("record", record.as_ref().map_or(Value::Null, |record| Value::Text(record.0.clone())))])
            }
            EventKind::StoreFailed { record } => ("store_failed", vec![some("record", &record.0)]),
        };
        let about = object([
            ("command", command.map(|command| number(command.0))),
            ("operation", Some(Value::Word(operation))),
            ("intent", text(intent)),
            ("event", Some(Value::Word(word))),
        ]);
        let Value::Object(mut members) = about else { return about };
        members.extend(more);
        Value::Object(members)
    }
}

impl From<&Verdict> for Value {
    fn from(verdict: &Verdict) -> Value {
        let reason = |reason: &hopline::contract::agent::RotateReason| Some(Value::Text(reason.as_str().to_owned()));
        let (word, reason, command, why) = match verdict {
            Verdict::Keep => ("keep", None, None, None),
            Verdict::Rotate(found) => ("rotate", reason(found), None, None),
            Verdict::Rotating(found, command) => ("rotating", reason(found), Some(number(command.0)), None),
            Verdict::Unsure(why) => ("unsure", None, None, Some(Value::Word(why))),
        };
        object([("verdict", Some(Value::Word(word))), ("reason", reason), ("command", command), ("why", why)])
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

/// A result that was taken, as `take` says.
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
            Err(error) => vec![Value::Word("failed"), Value::from(&error)],
        })
    }
}
