//! The sink that notices whether there may be something secret in an answer.

use crate::contract::{Record, Sink, Word};
use crate::json::text_of;

/// The members of answers that are secrets, in any spelling: without underscores, in small letters. What has such a name and is not
/// documented is one, too.
pub(crate) const SECRET_NAMES: [&str; 7] = ["apikey", "apisecret", "email", "fullurl", "password", "token", "username"];

/// Builds nothing. What nobody documents may hold anything, unless it is a plain value whose name says otherwise.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    pub(crate) may_hide: bool,
}

impl Guard {
    fn open(&mut self, json: &str) {
        self.may_hide |= json.starts_with(['{', '[']);
    }
}

impl Sink for Guard {
    type Value = ();
    type Nest = ();

    fn null(&mut self) {}
    fn flag(&mut self, _value: bool) {}
    fn integer(&mut self, _value: i64) {}
    fn decimal(&mut self, _digits: &str) {}

    fn text(&mut self, _text: &str, secret: bool) {
        self.may_hide |= secret;
    }

    fn word(&mut self, _text: &str, _known: Option<&'static Word>) {}

    fn json(&mut self, text: &str) {
        self.open(text);
    }

    fn object(&mut self, _record: &'static Record) {}
    fn list(&mut self) {}
    fn put(&mut self, _nest: &mut (), _index: usize, _value: ()) {}

    fn unknown(&mut self, _nest: &mut (), name: &str, json: &str) {
        self.open(json);
        self.may_hide |= text_of(&format!("\"{name}\"")).is_none_or(|name| {
            let plain = name.replace('_', "").to_ascii_lowercase();
            SECRET_NAMES.contains(&plain.as_str())
        });
    }

    fn end(&mut self, _nest: ()) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::agent::Session;
    use crate::contract::{Field, Shape, Shaped, endpoints};
    use crate::wire::read_as;

    fn may_hide(shape: &'static Shape, json: &str) -> bool {
        let mut guard = Guard::default();
        assert_eq!(read_as(shape, json, &mut guard), Ok(()));
        guard.may_hide
    }

    #[test]
    fn what_may_be_secret_is_noticed_and_nothing_else() {
        let session = |more: &str| may_hide(&Session::SHAPE, &format!(r#"{{"session_id":"s","status":"active"{more}}}"#));
        for plain in ["", r#","proxy":{"host":"h","port":1}"#, r#","later":"x","more":null"#] {
            assert!(!session(plain), "{plain}");
        }
        for secret in
            [r#","proxy":{"password":"p"}"#, r#","API_Key":"k""#, r#","to\u006ben":7"#, r#","later":{"password":"p"}"#, r#","later":["p"]"#]
        {
            assert!(session(secret), "{secret}");
        }
        assert!(!may_hide(&Shape::Json, "7") && may_hide(&Shape::Json, r#"[{"token":"t"}]"#));
    }

    #[test]
    fn the_names_are_those_of_the_table() {
        fn secrets(shape: Shape) -> Vec<String> {
            let of = |field: &Field| match field.shape {
                Shape::Secret => vec![field.name.replace('_', "").to_ascii_lowercase()],
                shape => secrets(shape),
            };
            match shape {
                Shape::Record(record) => record.fields.iter().flat_map(of).collect(),
                Shape::List(item) | Shape::OneOrMany(item) => secrets(*item),
                _ => Vec::new(),
            }
        }
        let found: std::collections::BTreeSet<String> = endpoints().flat_map(|endpoint| secrets(endpoint.response)).collect();
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), SECRET_NAMES);
    }
}
