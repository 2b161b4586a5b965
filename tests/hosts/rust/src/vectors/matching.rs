//! True if a JSON value is the one that a vector expects.

use serde_json::Value;

/// Compares by the rules of the README; the error says where and what differs.
pub(super) fn matches(expected: &Value, actual: &Value, path: &str) -> Result<(), String> {
    let differ = || Err(format!("at `{path}` expected {}, came {}", short(expected), short(actual)));
    match (expected, actual) {
        (Value::Object(members), _) if members.len() == 1 && members.contains_key("contains") => {
            let part = members["contains"].as_str().ok_or("`contains` takes a text")?;
            if actual.as_str().is_some_and(|text| text.contains(part)) { Ok(()) } else { differ() }
        }
        (Value::Object(members), _) if members.len() == 2 && members.contains_key("repeated") => {
            let times = members.get("times").and_then(Value::as_u64).ok_or("`repeated` needs `times`")?;
            let whole = members["repeated"].as_str().ok_or("`repeated` takes a text")?.repeat(times as usize);
            if actual.as_str() == Some(&whole) { Ok(()) } else { differ() }
        }
        (Value::Object(members), Value::Number(number)) if members.len() == 2 => {
            let bound = |name: &str| members.get(name).and_then(Value::as_f64);
            match (bound("min"), bound("max"), number.as_f64()) {
                (Some(min), Some(max), Some(number)) if (min..=max).contains(&number) => Ok(()),
                _ => differ(),
            }
        }
        (Value::Object(members), Value::Object(found)) => members
            .iter()
            .try_for_each(|(name, expected)| matches(expected, found.get(name).unwrap_or(&Value::Null), &format!("{path}.{name}"))),
        (Value::Array(items), Value::Array(found)) if items.len() == found.len() => {
            items.iter().zip(found).enumerate().try_for_each(|(n, (item, found))| matches(item, found, &format!("{path}[{n}]")))
        }
        (Value::Number(one), Value::Number(two)) if one.as_f64() == two.as_f64() => Ok(()),
        _ if expected == actual => Ok(()),
        _ => differ(),
    }
}

/// The same, but nothing more may be there than is expected.
pub(super) fn equals(expected: &Value, actual: &Value, path: &str) -> Result<(), String> {
    matches(expected, actual, path)?;
    matches(actual, expected, path).map_err(|_| format!("at `{path}` expected {} and no more, came {}", short(expected), short(actual)))
}

/// A value for a person to read.
fn short(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(600) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
