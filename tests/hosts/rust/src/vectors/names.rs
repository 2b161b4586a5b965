//! Names that a script gives to what the client makes up: record ids and idempotency keys.

use std::collections::BTreeMap;

use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Names {
    values: BTreeMap<String, String>,
    order: Vec<String>,
}

impl Names {
    /// Binds a name at its first mention; later it must stand for the same value, and no other name may.
    pub(super) fn bind(&mut self, name: &str, value: &str) -> Result<(), String> {
        if let Some(bound) = self.values.get(name) {
            return if bound == value { Ok(()) } else { Err(format!("expected `{name}` ({bound}), came {}", self.show(value))) };
        }
        if let Some((other, _)) = self.values.iter().find(|(_, bound)| *bound == value) {
            return Err(format!("expected a new value for `{name}`, came that of `{other}`"));
        }
        self.values.insert(name.to_owned(), value.to_owned());
        self.order.push(name.to_owned());
        Ok(())
    }

    /// Where a name comes in the order of their first mentions; what has none comes last.
    pub(super) fn place(&self, name: &str) -> usize {
        self.order.iter().position(|known| known == name).unwrap_or(usize::MAX)
    }

    pub(super) fn value(&self, name: &str) -> Result<&str, String> {
        self.values.get(name).map(String::as_str).ok_or_else(|| format!("nothing is named `{name}` yet"))
    }

    fn show(&self, value: &str) -> String {
        match self.values.iter().find(|(_, bound)| *bound == value) {
            Some((name, _)) => format!("`{name}`"),
            None => value.to_owned(),
        }
    }

    /// Replaces every text of a JSON value that has a name by the name.
    pub(super) fn put_into(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                // The text of a record for people is its name and its version.
                let without = text.rsplit_once('.').map_or(text.as_str(), |(name, _)| name);
                if let Some((name, _)) = self.values.iter().find(|(_, bound)| *bound == text || *bound == without) {
                    text.clone_from(name);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.put_into(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.put_into(member)),
            _ => {}
        }
    }
}
