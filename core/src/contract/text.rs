//! The sink that writes JSON under the names and with the words of the table.

use super::{Encode, Record, Sink, Word};
use crate::json::push_quoted;

/// A value as JSON.
pub fn json_of(value: &(impl Encode + ?Sized)) -> String {
    let mut text = Text::default();
    value.encode(&mut text);
    text.into_text()
}

/// The largest whole number up to which a double holds every whole number.
const SAFE: u64 = (1 << 53) - 1;

/// Returns true if a double, JavaScript's only number type in JSON, holds a whole number exactly.
pub(crate) fn fits_double(number: i64) -> bool {
    number.unsigned_abs() <= SAFE
}

/// Writes JSON. Unknown members are written as they came.
#[derive(Debug, Default)]
pub struct Text {
    text: String,
    /// True if a whole number that no double holds is written as text.
    for_doubles: bool,
}

/// An object, by its record, or a list; true while it is empty.
#[derive(Debug)]
pub struct Nest(Option<&'static Record>, bool);

impl Text {
    /// A sink for JavaScript: a whole number that no double holds is written as text.
    pub(crate) fn for_doubles() -> Self {
        Text { for_doubles: true, ..Text::default() }
    }

    /// Returns the written text.
    pub fn into_text(self) -> String {
        self.text
    }

    fn separate(&mut self, nest: &mut Nest) {
        if !std::mem::replace(&mut nest.1, false) {
            self.text.push(',');
        }
    }
}

impl Sink for Text {
    type Value = ();
    type Nest = Nest;

    fn null(&mut self) {
        self.text.push_str("null");
    }

    fn flag(&mut self, value: bool) {
        self.text.push_str(if value { "true" } else { "false" });
    }

    fn integer(&mut self, value: i64) {
        match self.for_doubles && !fits_double(value) {
            true => push_quoted(&mut self.text, &value.to_string()),
            false => self.text.push_str(&value.to_string()),
        }
    }

    fn decimal(&mut self, digits: &str) {
        self.text.push_str(digits);
    }

    fn text(&mut self, text: &str, _secret: bool) {
        push_quoted(&mut self.text, text);
    }

    fn word(&mut self, text: &str, _known: Option<&'static Word>) {
        push_quoted(&mut self.text, text);
    }

    fn json(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn object(&mut self, record: &'static Record) -> Nest {
        self.text.push('{');
        Nest(Some(record), true)
    }

    fn list(&mut self) -> Nest {
        self.text.push('[');
        Nest(None, true)
    }

    fn next(&mut self, nest: &mut Nest, index: usize) {
        self.separate(nest);
        if let Some(field) = nest.0.and_then(|record| record.fields.get(index)) {
            push_quoted(&mut self.text, field.name);
            self.text.push(':');
        }
    }

    fn put(&mut self, _nest: &mut Nest, _index: usize, _value: ()) {}

    fn unknown(&mut self, nest: &mut Nest, name: &str, json: &str) {
        self.separate(nest);
        self.text.extend(["\"", name, "\":", json]);
    }

    fn end(&mut self, nest: Nest) {
        self.text.push(if nest.0.is_some() { '}' } else { ']' });
    }
}
