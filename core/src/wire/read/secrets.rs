//! A sink that notices secrets in undocumented members. The documented secrets are known from the table.

use crate::contract::{Record, Sink, Word};
use crate::json::{Scanner, text_of};

/// The members of answers that are secrets: without underscores, in lower case. An undocumented member with such a name is a secret, too.
pub(crate) const SECRET_NAMES: [&str; 7] = ["apikey", "apisecret", "email", "fullurl", "password", "token", "username"];

/// Further names that services give to secrets.
const MORE_NAMES: [&str; 10] =
    ["accesskey", "authorization", "cookie", "credential", "passphrase", "passwd", "privatekey", "pwd", "secret", "secretkey"];

/// The endings of a secret's name: without underscores, hyphens and the `s` of a plural, in lower case.
pub fn secret_endings() -> impl Iterator<Item = &'static str> {
    SECRET_NAMES.into_iter().chain(MORE_NAMES)
}

/// Returns true if a member of that name is a secret, documented or not: the name is one of the endings or ends with one, as
/// `proxyPassword` does.
pub fn is_secret_name(name: &str) -> bool {
    let plain = name.replace(['_', '-', ' '], "").to_ascii_lowercase();
    let plain = plain.strip_suffix('s').unwrap_or(&plain);
    secret_endings().any(|ending| plain.ends_with(ending))
}

/// Returns true if some JSON, or a text that holds JSON, has a member with the name of a secret.
pub(crate) fn names_a_secret(text: &str) -> bool {
    let mut undocumented = Undocumented::default();
    undocumented.within(text);
    undocumented.secrets
}

/// Builds nothing.
#[derive(Debug, Default)]
pub(crate) struct Undocumented {
    /// True if an undocumented member has the name of a secret.
    pub(crate) secrets: bool,
}

impl Undocumented {
    /// A member's name as it is written between its quotes.
    fn name(&mut self, written: &str) {
        self.secrets |= text_of(&format!("\"{written}\"")).is_none_or(|name| is_secret_name(&name));
    }

    /// Checks the names within a value, which is valid JSON, so a string before a colon is a name.
    fn within(&mut self, json: &str) {
        let mut scan = Scanner::new(json);
        while let Some(next) = json.get(scan.at()..).and_then(|rest| rest.find('"')) {
            scan.seek(scan.at() + next);
            let Ok(string) = scan.string() else { return };
            if scan.peek() == b':' {
                self.name(string.text);
            }
        }
    }
}

impl Sink for Undocumented {
    type Value = ();
    type Nest = ();

    fn null(&mut self) {}
    fn flag(&mut self, _value: bool) {}
    fn integer(&mut self, _value: i64) {}
    fn decimal(&mut self, _digits: &str) {}
    fn text(&mut self, _text: &str, _secret: bool) {}
    fn word(&mut self, _text: &str, _known: Option<&'static Word>) {}

    fn json(&mut self, text: &str) {
        self.within(text);
    }

    fn object(&mut self, _record: &'static Record) {}
    fn list(&mut self) {}
    fn put(&mut self, _nest: &mut (), _index: usize, _value: ()) {}

    fn unknown(&mut self, _nest: &mut (), name: &str, json: &str) {
        self.name(name);
        self.within(json);
    }

    fn end(&mut self, _nest: ()) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::agent::Session;
    use crate::contract::{Field, Shape, Shaped, endpoints};
    use crate::wire::read_as;

    fn secrets(shape: &'static Shape, json: &str) -> bool {
        let mut undocumented = Undocumented::default();
        assert_eq!(read_as(shape, json, &mut undocumented), Ok(()));
        undocumented.secrets
    }

    #[test]
    fn a_secret_that_nobody_documents_is_noticed_and_nothing_else() {
        let session = |more: &str| secrets(&Session::SHAPE, &format!(r#"{{"session_id":"s","status":"active"{more}}}"#));
        for none in [
            "",
            r#","proxy":{"host":"h","port":1,"password":"p"}"#,
            r#","later":"password","more":null"#,
            r#","later":["password",{"a":"token"}]"#,
            r#","later":"\"password\":1""#,
        ] {
            assert!(!session(none), "{none}");
        }
        for secret in [
            r#","API_Key":"k""#,
            r#","to\u006ben":7"#,
            r#","proxy":{"Password":"p"}"#,
            r#","later":{"password" : "p"}"#,
            r#","later":[{"a":"x\"y","pass\u0077ord":{}}]"#,
            r#","\ud800":1"#,
        ] {
            assert!(session(secret), "{secret}");
        }
        assert!(!secrets(&Shape::Json, "7") && secrets(&Shape::Json, r#"[{"token":"t"}]"#));
    }

    #[test]
    fn a_name_is_a_secret_by_its_end_in_any_spelling() {
        for secret in
            ["password", "proxyPassword", "auth_password", "access_token", "X-Api-Key", "secret", "client_secrets", "pwd", "SMTP_PASSWD"]
        {
            assert!(is_secret_name(secret), "{secret}");
        }
        for plain in ["password_length", "tokenizer", "status", "key", "idempotency_key", "user", "url"] {
            assert!(!is_secret_name(plain), "{plain}");
        }
        assert!(names_a_secret(r#"upstream said {"a":1,"userPassword":"x"#) && !names_a_secret(r#"the "password" is short"#));
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
