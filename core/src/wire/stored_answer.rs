//! The part of an answer that the record of a finished operation keeps: the documented members, without secrets.

use std::borrow::Cow;

use super::check::members;
use super::read::view;
use crate::contract::{Json, Shape};
use crate::json::{items, quoted};

/// The longest answer that is kept, in bytes.
const LONGEST: usize = 4096;

/// Returns the documented members of an answer that are not secret, if they are short enough. Undocumented members are dropped, since they
/// may hold anything.
pub(crate) fn stored_answer(shape: &'static Shape, json: &str) -> Option<Json> {
    let kept = stored(*shape, &view(shape, json).map_or(Cow::Borrowed(json), Cow::Owned))?;
    (kept.len() <= LONGEST).then(|| Json::checked(kept))
}

fn stored(shape: Shape, json: &str) -> Option<String> {
    match shape {
        Shape::Secret | Shape::Json => None,
        Shape::Record(record) => {
            let members = members(json).ok()?;
            let known = record.fields.iter().filter_map(|field| {
                let (_, raw) = members.iter().find(|(name, _)| *name == field.name)?;
                Some(format!("{}:{}", quoted(field.name), stored(field.shape, raw)?))
            });
            Some(format!("{{{}}}", known.collect::<Vec<_>>().join(",")))
        }
        Shape::List(item) | Shape::OneOrMany(item) if json.starts_with('[') => {
            let items: Option<Vec<String>> = items(json).ok()?.into_iter().map(|raw| stored(*item, raw)).collect();
            Some(format!("[{}]", items?.join(",")))
        }
        Shape::OneOrMany(item) => stored(*item, json),
        // An object or a list where the type has neither may hold anything, too.
        _ => (!json.starts_with(['{', '['])).then(|| json.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::Shaped;
    use crate::contract::agent::Session;
    use crate::contract::reseller::SubUserList;

    fn session(json: &str) -> Option<String> {
        stored_answer(&Session::SHAPE, json).map(|json| json.text().to_owned())
    }

    #[test]
    fn an_answer_is_kept_without_its_secrets_and_without_what_nobody_documents() {
        let json = r#"{"session_id":"s-1","status":"active","other":"x","connection":{"host":"h","username":"u","password":"p"}}"#;
        let kept = session(json).expect("is short");
        assert!(kept.contains("s-1") && !kept.contains("other") && !kept.contains("\"u\"") && !kept.contains("\"p\""), "{kept}");
    }

    #[test]
    fn what_is_no_value_of_its_type_is_not_kept() {
        let json = r#"{"session_id":{"password":"p"},"status":["p"],"session_type":"static"}"#;
        assert_eq!(session(json).as_deref(), Some(r#"{"session_type":"static"}"#));
        let list = |json: &str| stored_answer(&SubUserList::SHAPE, json).map(|json| json.text().to_owned());
        assert_eq!(list(r#"{"items":{"email":"a@b.example"}}"#).as_deref(), Some("{}"));
    }

    #[test]
    fn what_is_too_long_or_no_object_is_not_kept() {
        assert_eq!(session(&format!(r#"{{"session_id":"{}"}}"#, "x".repeat(LONGEST))), None);
        assert_eq!(session("[]"), None);
        assert_eq!(stored_answer(&Shape::Json, r#"{"a":1}"#).map(|json| json.text().to_owned()), None);
    }
}
