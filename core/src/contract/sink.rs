//! The sink, which builds values of a host from an answer or from a value of this library.

use super::{Record, Word};

/// Builds values. A sink never refuses: checking the type is the reader's part.
///
/// The caller (a reader, or a [`Encode`](super::Encode)) opens an object or a list, announces each member or item with [`next`](Sink::next),
/// lets its value be built, hands the value back with [`put`](Sink::put), and ends the object or the list. Each member of the table is put
/// at most once.
pub trait Sink {
    /// A value that is built.
    type Value;
    /// An object or a list that is being built.
    type Nest;

    /// Null: a member without a value.
    fn null(&mut self) -> Self::Value;
    /// `true` or `false`.
    fn flag(&mut self, value: bool) -> Self::Value;
    /// A whole number of 64 bits.
    fn integer(&mut self, value: i64) -> Self::Value;
    /// A decimal number as it was written, of at most 28 digits.
    fn decimal(&mut self, digits: &str) -> Self::Value;
    /// A text.
    fn text(&mut self, text: &str, secret: bool) -> Self::Value;
    /// A word of a list: as the table spells it, where it is one of the table.
    fn word(&mut self, text: &str, known: Option<&'static Word>) -> Self::Value;
    /// JSON as it was written: an undocumented value, or one that does not fit its type.
    fn json(&mut self, text: &str) -> Self::Value;
    /// Begins an object.
    fn object(&mut self, record: &'static Record) -> Self::Nest;
    /// Begins a list.
    fn list(&mut self) -> Self::Nest;
    /// The value of this member of the record, or of this item, follows.
    fn next(&mut self, _nest: &mut Self::Nest, _index: usize) {}
    /// The value of that member or item.
    fn put(&mut self, nest: &mut Self::Nest, index: usize, value: Self::Value);
    /// A member that the table does not have: its name between the quotes, and its value, both as written.
    fn unknown(&mut self, _nest: &mut Self::Nest, _name: &str, _json: &str) {}
    /// Ends an object or a list.
    fn end(&mut self, nest: Self::Nest) -> Self::Value;
}

/// Builds nothing, for a caller that only checks whether a value fits.
impl Sink for () {
    type Value = ();
    type Nest = ();

    fn null(&mut self) {}
    fn flag(&mut self, _value: bool) {}
    fn integer(&mut self, _value: i64) {}
    fn decimal(&mut self, _digits: &str) {}
    fn text(&mut self, _text: &str, _secret: bool) {}
    fn word(&mut self, _text: &str, _known: Option<&'static Word>) {}
    fn json(&mut self, _text: &str) {}
    fn object(&mut self, _record: &'static Record) {}
    fn list(&mut self) {}
    fn put(&mut self, _nest: &mut (), _index: usize, _value: ()) {}
    fn end(&mut self, _nest: ()) {}
}
