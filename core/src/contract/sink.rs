//! The sink: what builds values of a host from an answer that is read, or from a value of this library.

use super::{Record, Word};

/// Builds values. It never refuses: what does not fit its type is for the reader to notice.
///
/// Whoever feeds it (a reader, or a [`Tell`](super::Tell)) asks for an object or a list, says with [`next`](Sink::next) which of its members or items comes, lets that be
/// built, hands it back with [`put`](Sink::put), and ends the object or the list. Each member of the table is put once at most.
pub trait Sink {
    /// A value that is built.
    type Value;
    /// An object or a list that is being built.
    type Nest;

    /// Nothing: a member that is null.
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
    /// JSON as it was written: what nobody documents, or what does not fit its type.
    fn json(&mut self, text: &str) -> Self::Value;
    /// Begins an object.
    fn object(&mut self, record: &'static Record) -> Self::Nest;
    /// Begins a list.
    fn list(&mut self) -> Self::Nest;
    /// The value of this member of the record, or of this item, follows.
    fn next(&mut self, _nest: &mut Self::Nest, _index: usize) {}
    /// The value of that member or item.
    fn put(&mut self, nest: &mut Self::Nest, index: usize, value: Self::Value);
    /// A member that the table does not have: what stands between the quotes of its name, and its value, both as written.
    fn unknown(&mut self, _nest: &mut Self::Nest, _name: &str, _json: &str) {}
    /// Ends an object or a list.
    fn end(&mut self, nest: Self::Nest) -> Self::Value;
}

/// Builds nothing, for whoever only wants to know whether a value fits.
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
