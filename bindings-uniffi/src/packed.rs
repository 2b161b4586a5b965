//! Packs everything that leaves the core and has members as one byte array, which the printed constructors of Kotlin and Swift read: an
//! answer, which is packed while it is read, and the other records for hosts.
//!
//! An answer begins with the name of its type, which is empty for an undocumented answer; then nothing follows. A value is:
//!
//! | Shape | Bytes |
//! |---|---|
//! | a text, a label, a secret, undocumented JSON, a decimal | its length, and its UTF-8 |
//! | a flag | 1 or 0 |
//! | a whole number, a time, a duration | 8, the lowest first |
//! | a word | its place in its list, counted from 1; or 0 and a text |
//! | a list | the number of items in 4 bytes, the lowest first, and each of them |
//! | a record, an error | a bit for each member that is there, the first lowest, in whole bytes; then those members in the table's order |
//!
//! A length and a place are numbers of 7 bits a byte, the lowest first, each but the last with the highest bit set.
//!
//! The texts of an error are in the spelling of Kotlin and Swift (`spelling.rs`).

use hopline::Error;
use hopline::client::{Answered, SavedPage, Taken};
use hopline::contract::{Encode, Record, Shape, Shaped, Sink, Word, Words};
use hopline::policy::ERROR;
use hopline::wire::{self, Expected, Received, Response, read_as};

use crate::spelling::{message, spelled, spelled_field};

/// The packed answer of a response, made while it was read.
pub(crate) struct Read {
    shape: &'static Shape,
    raw: String,
    bytes: Vec<u8>,
}

/// Reads a response, and packs the answer of a success that fits its type.
pub(crate) fn read(expected: Expected, received: Received<'_>) -> (Response<'_>, Option<Read>) {
    let Shape::Record(record) = expected.shape() else { return (wire::read(expected, received, &mut ()).0, None) };
    let mut packer = Packer::with_room(received.body.len());
    packer.utf8(record.name);
    let response = wire::read(expected, received, &mut packer).0;
    let raw = response.raw().filter(|_| response.fit().is_ok()).map(str::to_owned);
    let made = raw.map(|raw| Read { shape: expected.shape(), raw, bytes: packer.bytes });
    (response, made)
}

/// Packs the answer of a command, unless it is already packed in `made`. Fails if the answer does not fit its type.
pub(crate) fn pack(taken: Taken, made: Option<&Read>) -> Result<(Vec<u8>, Answered), Error> {
    if let Some(made) = made.filter(|made| std::ptr::eq(made.shape, taken.shape()) && made.raw == taken.raw()) {
        return Ok((made.bytes.clone(), taken.answered()));
    }
    let Shape::Record(record) = taken.shape() else {
        // An empty name: the answer is undocumented.
        return taken.read(&mut ()).map(|((), answered)| (vec![0], answered));
    };
    let mut packer = Packer::with_room(taken.raw().len());
    packer.utf8(record.name);
    taken.read(&mut packer).map(|(_, answered)| (packer.bytes, answered))
}

/// Packs a record for a host: an error, an event, a quote. Its type has no name in front.
pub(crate) fn packed(told: &impl Encode) -> Vec<u8> {
    let mut packer = Packer::default();
    told.encode(&mut packer);
    packer.bytes
}

/// Packs the error of a command, whose message begins with the method that its caller called.
pub(crate) fn packed_of(called: Option<&str>, error: &Error) -> Vec<u8> {
    let mut packer = Packer { called: called.map(str::to_owned), ..Packer::default() };
    error.encode(&mut packer);
    packer.bytes
}

/// Packs a page of a store's entries, from its text.
pub(crate) fn pack_page(text: &str) -> Vec<u8> {
    let mut packer = Packer::default();
    // The core wrote the page, so it fits.
    _ = read_as(&SavedPage::SHAPE, text, &mut packer);
    packer.bytes
}

#[derive(Default)]
struct Packer {
    bytes: Vec<u8>,
    /// The members so far of the records that are open, and the place of each.
    members: Vec<(usize, usize)>,
    /// The list of the next word.
    words: Option<&'static Words>,
    /// The member of an error that comes next.
    told: Option<&'static str>,
    /// The method that was called, until a message has begun with it.
    called: Option<String>,
}

/// A record or a list that is open.
enum Nest {
    Record {
        record: &'static Record,
        /// The place where it begins, and where its members begin among those that are open.
        at: usize,
        first: usize,
    },
    List {
        /// The place of the count, and the count.
        at: usize,
        count: u32,
        words: Option<&'static Words>,
    },
}

impl Packer {
    /// A buffer with room for a text of that length, most often.
    fn with_room(length: usize) -> Self {
        Packer { bytes: Vec::with_capacity(length), ..Packer::default() }
    }

    fn number(&mut self, mut number: usize) {
        while number > 0x7f {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    fn utf8(&mut self, text: &str) {
        self.number(text.len());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Puts the members of a record in the table's order; most often they are in it already.
    fn sort(&mut self, first: usize) {
        let Some(members) = self.members.get_mut(first..).filter(|members| !members.is_sorted()) else { return };
        let Some((_, begin)) = members.first().copied() else { return };
        let ends = members.iter().skip(1).map(|(_, at)| *at).chain([self.bytes.len()]);
        let mut ranges: Vec<(usize, &[u8])> =
            members.iter().zip(ends).filter_map(|((index, at), end)| Some((*index, self.bytes.get(*at..end)?))).collect();
        ranges.sort_by_key(|(index, _)| *index);
        let sorted: Vec<u8> = ranges.into_iter().flat_map(|(_, bytes)| bytes).copied().collect();
        self.bytes.truncate(begin);
        self.bytes.extend(sorted);
    }
}

/// The list of words of this shape, or of its items.
fn words_of(shape: Shape) -> Option<&'static Words> {
    match shape {
        Shape::Word(words) => Some(words),
        Shape::List(item) | Shape::OneOrMany(item) => words_of(*item),
        _ => None,
    }
}

/// A value is true if there is one.
impl Sink for Packer {
    type Value = bool;
    type Nest = Nest;

    fn null(&mut self) -> bool {
        false
    }

    fn flag(&mut self, value: bool) -> bool {
        self.bytes.push(value.into());
        true
    }

    fn integer(&mut self, value: i64) -> bool {
        self.bytes.extend(value.to_le_bytes());
        true
    }

    fn decimal(&mut self, digits: &str) -> bool {
        self.utf8(digits);
        true
    }

    fn text(&mut self, text: &str, _secret: bool) -> bool {
        match self.told.take() {
            Some("message") => {
                let called = self.called.take();
                self.utf8(&message(text, called.as_deref()));
            }
            Some("what") => self.utf8(&spelled(text)),
            Some("field") => self.utf8(&spelled_field(text)),
            _ => self.utf8(text),
        }
        true
    }

    fn word(&mut self, text: &str, known: Option<&'static Word>) -> bool {
        let place = |words: &Words| words.words.iter().position(|word| Some(word.word) == known.map(|known| known.word));
        match self.words.and_then(place) {
            Some(place) => self.number(place + 1),
            None => {
                self.number(0);
                self.utf8(text);
            }
        }
        true
    }

    fn json(&mut self, text: &str) -> bool {
        self.utf8(text);
        true
    }

    fn object(&mut self, record: &'static Record) -> Nest {
        let at = self.bytes.len();
        self.bytes.resize(at + record.fields.len().div_ceil(8), 0);
        Nest::Record { record, at, first: self.members.len() }
    }

    fn list(&mut self) -> Nest {
        let at = self.bytes.len();
        self.bytes.extend([0; 4]);
        Nest::List { at, count: 0, words: self.words }
    }

    fn next(&mut self, nest: &mut Nest, index: usize) {
        match nest {
            Nest::Record { record, .. } => {
                let field = record.fields.get(index);
                self.words = field.and_then(|field| words_of(field.shape));
                self.told = field.map(|field| field.name).filter(|_| std::ptr::eq(*record, &ERROR));
                self.members.push((index, self.bytes.len()));
            }
            Nest::List { words, .. } => self.words = *words,
        }
    }

    fn put(&mut self, nest: &mut Nest, index: usize, there: bool) {
        match nest {
            Nest::Record { at, .. } if there => {
                if let Some(byte) = self.bytes.get_mut(*at + index / 8) {
                    *byte |= 1 << (index % 8);
                }
            }
            Nest::Record { .. } => _ = self.members.pop(),
            Nest::List { count, .. } => *count += 1,
        }
    }

    fn end(&mut self, nest: Nest) -> bool {
        match nest {
            Nest::Record { first, .. } => {
                self.sort(first);
                self.members.truncate(first);
            }
            Nest::List { at, count, .. } => {
                if let Some(place) = self.bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&count.to_le_bytes());
                }
            }
        }
        true
    }
}

#[cfg(test)]
pub(crate) mod tests;
