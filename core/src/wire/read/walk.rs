//! The walk over a value along its shape: it checks the value while a sink builds the host's.

use super::found::FactSearch;
use super::number;
use crate::contract::{Decimal, Field, Record, Shape, Sink, Word, Words, fits_double};
use crate::json::{NotJson, QuotedText, Scanner};

/// The most members that are reported for two spellings with two values, and the most for rounding.
pub(super) const MOST_REPORTED: usize = 32;

/// The first value that does not fit its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstMisfit {
    /// The place where the value begins.
    pub(super) at: usize,
    /// Of an object, the member that is missing in it.
    pub(super) missing: Option<&'static str>,
    /// The expected type.
    pub(super) expected: &'static str,
}

/// The findings of a walk through a value, beside the value itself.
pub(super) struct Walk<'a> {
    pub(super) scan: Scanner<'a>,
    pub(super) misfit: Option<FirstMisfit>,
    /// Where members begin that came in two spellings with two values.
    pub(super) differing: Vec<usize>,
    /// Where decimals begin that were rounded.
    pub(super) rounded: Vec<usize>,
    /// True if a value was written in another way than the table writes it.
    pub(super) rewritten: bool,
    /// True if there is a whole number that no double holds.
    pub(super) beyond_doubles: bool,
    /// The members of the outermost object that the engine looks at.
    pub(super) found: FactSearch<'a>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Walk {
            scan: Scanner::new(text),
            misfit: None,
            differing: Vec::new(),
            rounded: Vec::new(),
            rewritten: false,
            beyond_doubles: false,
            found: FactSearch::default(),
        }
    }

    /// One value, the outermost one.
    pub(super) fn outermost<S: Sink>(&mut self, shape: &'static Shape, sink: &mut S) -> Result<S::Value, NotJson> {
        const NOTHING: &Record = &Record::new("", "", &[]);
        if self.scan.peek() != b'{' {
            return self.value(shape, sink);
        }
        let from = self.scan.at();
        match shape {
            Shape::Record(record) => self.object(record, sink, true),
            // An undocumented object has members, too.
            Shape::Json => self.object(NOTHING, &mut (), true).map(|()| sink.json(self.scan.since(from))),
            _ => {
                self.object(NOTHING, &mut (), true)?;
                self.scan.seek(from);
                self.value(shape, sink)
            }
        }
    }

    /// One value.
    pub(super) fn value<S: Sink>(&mut self, shape: &'static Shape, sink: &mut S) -> Result<S::Value, NotJson> {
        let first = self.scan.peek();
        match (shape, first) {
            (Shape::Text | Shape::Label, b'"') => self.text(sink, false),
            (Shape::Secret, b'"') => self.text(sink, true),
            (Shape::Label, b'-' | b'0'..=b'9') => {
                self.rewritten = true;
                self.scan.number().map(|(digits, _)| sink.text(digits, false))
            }
            (Shape::Word(words), b'"' | b'-' | b'0'..=b'9') => self.word(words, first == b'"', sink),
            (Shape::Bool, b't') => self.scan.literal("true").map(|()| sink.flag(true)),
            (Shape::Bool, b'f') => self.scan.literal("false").map(|()| sink.flag(false)),
            (Shape::Integer | Shape::Time | Shape::Span, b'-' | b'0'..=b'9') => {
                let from = self.scan.at();
                let (digits, plain) = self.scan.number()?;
                self.rewritten |= !plain;
                self.integer(number::whole(digits), from, sink)
            }
            (Shape::Integer | Shape::Time | Shape::Span, b'"') => {
                let from = self.scan.at();
                let text = self.scan.string()?.plain();
                self.rewritten = true;
                self.integer(text.as_deref().and_then(number::digits), from, sink)
            }
            (Shape::Decimal, b'-' | b'0'..=b'9') => {
                let from = self.scan.at();
                let (digits, whole) = self.scan.number()?;
                if number::is_kept(digits, whole) { Ok(sink.decimal(digits)) } else { self.rounded(digits, from, sink) }
            }
            (Shape::Decimal, b'"') => {
                let from = self.scan.at();
                let text = self.scan.string()?.plain();
                self.rewritten = true;
                match text.as_deref().and_then(number::number_of) {
                    Some(digits) if number::is_kept(digits, false) => Ok(sink.decimal(digits)),
                    Some(digits) => self.rounded(digits, from, sink),
                    None => self.unfit(from, shape.expected(), sink),
                }
            }
            (Shape::Json | Shape::Error, _) => self.scan.skip().map(|json| sink.json(json)),
            (Shape::Record(record), b'{') => self.object(record, sink, false),
            (Shape::List(item) | Shape::OneOrMany(item), b'[') => self.list(item, sink),
            (Shape::OneOrMany(item), _) => {
                let mut nest = sink.list();
                sink.next(&mut nest, 0);
                let value = self.value(item, sink)?;
                sink.put(&mut nest, 0, value);
                Ok(sink.end(nest))
            }
            _ => self.unfit(self.scan.at(), shape.expected(), sink),
        }
    }

    fn text<S: Sink>(&mut self, sink: &mut S, secret: bool) -> Result<S::Value, NotJson> {
        let from = self.scan.at();
        match self.scan.string()?.plain() {
            Some(text) => Ok(sink.text(&text, secret)),
            None => self.unfit(from, HALF, sink),
        }
    }

    fn integer<S: Sink>(&mut self, number: Option<i64>, from: usize, sink: &mut S) -> Result<S::Value, NotJson> {
        let Some(number) = number else { return self.unfit(from, Shape::Integer.expected(), sink) };
        self.beyond_doubles |= !fits_double(number);
        Ok(sink.integer(number))
    }

    /// A decimal of more digits than are kept.
    #[cold]
    fn rounded<S: Sink>(&mut self, digits: &str, from: usize, sink: &mut S) -> Result<S::Value, NotJson> {
        let Some((number, is_cut)) = Decimal::rounded_up(digits) else { return self.unfit(from, Shape::Decimal.expected(), sink) };
        self.rewritten = true;
        if is_cut && self.rounded.len() < MOST_REPORTED {
            self.rounded.push(from);
        }
        Ok(sink.decimal(&number.to_string()))
    }

    /// A word in any case, which may be its number, or its number as text.
    fn word<S: Sink>(&mut self, words: &'static Words, quoted: bool, sink: &mut S) -> Result<S::Value, NotJson> {
        let from = self.scan.at();
        let numbered = |number: Option<i64>| words.words.iter().find(|word| number.is_some() && word.number == number);
        if !quoted {
            if words.words.iter().all(|word| word.number.is_none()) {
                return self.unfit(from, Shape::Word(words).expected(), sink);
            }
            self.rewritten = true;
            let (digits, _) = self.scan.number()?;
            let known: Option<&'static Word> = numbered(number::whole(digits));
            return Ok(sink.word(known.map_or(digits, |word| word.word), known));
        }
        let Some(text) = self.scan.string()?.plain() else { return self.unfit(from, HALF, sink) };
        if let Some(word) = words.words.iter().find(|word| word.word == text) {
            return Ok(sink.word(word.word, Some(word)));
        }
        let known = words.words.iter().find(|word| word.word.eq_ignore_ascii_case(&text)).or_else(|| numbered(number::digits(&text)));
        self.rewritten |= known.is_some();
        Ok(sink.word(known.map_or(&text, |word| word.word), known))
    }

    fn list<S: Sink>(&mut self, item: &'static Shape, sink: &mut S) -> Result<S::Value, NotJson> {
        let (mut nest, mut index) = (sink.list(), 0);
        let mut more = self.scan.open(b']')?;
        while more {
            sink.next(&mut nest, index);
            let value = self.value(item, sink)?;
            sink.put(&mut nest, index, value);
            index += 1;
            more = self.scan.more(b']')?;
        }
        Ok(sink.end(nest))
    }

    fn object<S: Sink>(&mut self, record: &'static Record, sink: &mut S, outermost: bool) -> Result<S::Value, NotJson> {
        if record.aliased {
            return self.aliased(record, sink, outermost);
        }
        let from = self.scan.at();
        let (mut nest, mut seen, mut likely) = (sink.object(record), 0_u64, 0);
        let mut more = self.scan.open(b'}')?;
        while more {
            self.scan.peek();
            match self.member(record, likely)? {
                Ok((index, field)) => {
                    likely = index + 1;
                    self.scan.peek();
                    let begin = self.scan.at();
                    if seen >> index & 1 == 1 {
                        self.note(begin, None, ONCE);
                        self.scan.skip()?;
                    } else {
                        seen |= 1 << index;
                        self.field(field, index, &mut nest, sink)?;
                    }
                    if outermost {
                        self.found.note(field.name, self.scan.since(begin));
                    }
                }
                Err(name) => {
                    let json = self.scan.skip()?;
                    if outermost && let Some(name) = name.plain() {
                        self.found.note(&name, json);
                    }
                    sink.unknown(&mut nest, name.text, json);
                }
            }
            more = self.scan.more(b'}')?;
        }
        if record.required & !seen != 0 {
            self.miss(record, seen, from);
        }
        Ok(sink.end(nest))
    }

    /// The value of a member. Null counts as absent.
    #[inline]
    pub(super) fn field<S: Sink>(&mut self, field: &'static Field, index: usize, nest: &mut S::Nest, sink: &mut S) -> Result<(), NotJson> {
        sink.next(nest, index);
        let value = match (field.shape, self.scan.peek()) {
            (Shape::List(_), b'n') if field.required => {
                // A service that writes an empty list for a missing value means null.
                self.rewritten = true;
                self.scan.literal("null")?;
                let none = sink.list();
                sink.end(none)
            }
            (shape, b'n') => {
                if field.required && !matches!(shape, Shape::Json) {
                    self.note(self.scan.at(), None, field.shape.expected());
                }
                self.scan.literal("null")?;
                sink.null()
            }
            (Shape::Text | Shape::Label, b'-' | b'0'..=b'9') if field.is_id() => self.id(field, sink)?,
            (Shape::Record(_), b'[') if !field.required && self.is_past_empty_list() => {
                self.rewritten = true;
                sink.null()
            }
            _ => self.value(&field.shape, sink)?,
        };
        sink.put(nest, index, value);
        Ok(())
    }

    /// An id that is a number: its digits as they are written.
    fn id<S: Sink>(&mut self, field: &'static Field, sink: &mut S) -> Result<S::Value, NotJson> {
        let from = self.scan.at();
        let (digits, whole) = self.scan.number()?;
        if !whole {
            return self.unfit(from, field.shape.expected(), sink);
        }
        self.rewritten = true;
        Ok(sink.text(digits, false))
    }

    /// Goes past a list, if it is an empty one.
    fn is_past_empty_list(&mut self) -> bool {
        let mut ahead = self.scan.clone();
        let is_empty = ahead.open(b']') == Ok(false);
        if is_empty {
            self.scan = ahead;
        }
        is_empty
    }

    /// Finds the member of a name, most often the next one in the table; returns the name if there is none.
    #[inline]
    fn member(&mut self, record: &'static Record, likely: usize) -> Result<Result<(usize, &'static Field), QuotedText<'a>>, NotJson> {
        match record.fields.get(likely) {
            Some(field) if self.scan.is_name(field.name) => Ok(Ok((likely, field))),
            _ => self.other_member(record, likely),
        }
    }

    #[inline(never)]
    fn other_member(&mut self, record: &'static Record, likely: usize) -> Result<Result<(usize, &'static Field), QuotedText<'a>>, NotJson> {
        let name = self.scan.name()?;
        let Some(plain) = name.plain() else { return Ok(Err(name)) };
        let (before, after) = record.fields.split_at_checked(likely).unwrap_or((record.fields, &[]));
        let later = after.iter().position(|field| field.name == plain).map(|n| before.len() + n);
        let index = later.or_else(|| before.iter().position(|field| field.name == plain));
        Ok(index.and_then(|index| Some((index, record.fields.get(index)?))).ok_or(name))
    }

    /// Notes the members that are missing in an object.
    #[cold]
    pub(super) fn miss(&mut self, record: &'static Record, seen: u64, at: usize) {
        let missing = record.fields.iter().enumerate().find(|(n, field)| field.required && seen >> n & 1 == 0);
        if let Some((_, field)) = missing {
            self.note(at, Some(field.name), field.shape.expected());
        }
    }

    /// Notes a value that does not fit. Only the first one counts.
    #[cold]
    pub(super) fn note(&mut self, at: usize, missing: Option<&'static str>, expected: &'static str) {
        self.misfit = self.misfit.or(Some(FirstMisfit { at, missing, expected }));
    }

    /// Skips a value that does not fit, and passes it on as it is written.
    #[cold]
    fn unfit<S: Sink>(&mut self, at: usize, expected: &'static str, sink: &mut S) -> Result<S::Value, NotJson> {
        self.note(at, None, expected);
        self.scan.seek(at);
        self.scan.skip().map(|json| sink.json(json))
    }
}

pub(super) const ONCE: &str = "a single member";
const HALF: &str = "text without half a surrogate pair";

impl Shape {
    /// The name of the shape's type, as part of a sentence.
    pub(super) fn expected(&self) -> &'static str {
        match self {
            Shape::Text | Shape::Secret => "text",
            Shape::Label => "text or a number",
            Shape::Word(words) if words.words.iter().any(|word| word.number.is_some()) => "a word or its number",
            Shape::Word(_) => "a word",
            Shape::Bool => "`true` or `false`",
            Shape::Integer | Shape::Time | Shape::Span => "a whole number of at most 64 bits",
            Shape::Decimal => "a number of at most 28 digits before its point",
            Shape::Json => "JSON",
            Shape::Record(_) | Shape::Error => "an object",
            Shape::List(_) | Shape::OneOrMany(_) => "a list",
        }
    }
}
