//! The sink that writes JSON under the names and with the words of the table.

use super::{Record, Sink, Tell, Word};
use crate::json::push_quoted;

/// A value as JSON.
pub fn json_of(value: &(impl Tell + ?Sized)) -> String {
    let mut text = Text::default();
    value.tell(&mut text);
    text.into_text()
}

/// Writes JSON. Unknown members are written as they came.
#[derive(Debug, Default)]
pub struct Text(String);

/// An object, by its record, or a list; and whether it is still empty.
#[derive(Debug)]
pub struct Nest(Option<&'static Record>, bool);

impl Text {
    /// What was written.
    pub fn into_text(self) -> String {
        self.0
    }

    fn separate(&mut self, nest: &mut Nest) {
        if !std::mem::replace(&mut nest.1, false) {
            self.0.push(',');
        }
    }
}

impl Sink for Text {
    type Value = ();
    type Nest = Nest;

    fn null(&mut self) {
        self.0.push_str("null");
    }

    fn flag(&mut self, value: bool) {
        self.0.push_str(if value { "true" } else { "false" });
    }

    fn integer(&mut self, value: i64) {
        self.0.push_str(&value.to_string());
    }

    fn decimal(&mut self, digits: &str) {
        self.0.push_str(digits);
    }

    fn text(&mut self, text: &str, _secret: bool) {
        push_quoted(&mut self.0, text);
    }

    fn word(&mut self, text: &str, _known: Option<&'static Word>) {
        push_quoted(&mut self.0, text);
    }

    fn json(&mut self, text: &str) {
        self.0.push_str(text);
    }

    fn object(&mut self, record: &'static Record) -> Nest {
        self.0.push('{');
        Nest(Some(record), true)
    }

    fn list(&mut self) -> Nest {
        self.0.push('[');
        Nest(None, true)
    }

    fn next(&mut self, nest: &mut Nest, index: usize) {
        self.separate(nest);
        if let Some(field) = nest.0.and_then(|record| record.fields.get(index)) {
            push_quoted(&mut self.0, field.name);
            self.0.push(':');
        }
    }

    fn put(&mut self, _nest: &mut Nest, _index: usize, _value: ()) {}

    fn unknown(&mut self, nest: &mut Nest, name: &str, json: &str) {
        self.separate(nest);
        self.0.extend(["\"", name, "\":", json]);
    }

    fn end(&mut self, nest: Nest) {
        self.0.push(if nest.0.is_some() { '}' } else { ']' });
    }
}
