//! The shapes of the table's types: their members, the words of a list, and the rules for a value.

use std::hash::{Hash, Hasher};

/// A type with named members: the parameters of a request, or an object of an answer.
#[derive(Debug, Clone, Copy)]
pub struct Record {
    /// The type's name, in upper camel case.
    pub name: &'static str,
    /// The description, in Markdown.
    pub doc: &'static str,
    /// The members, in the order of the contract.
    pub fields: &'static [Field],
    /// The members that must be present, one bit each.
    pub(crate) required: u64,
    /// True if an answer may spell a member in another way.
    pub(crate) aliased: bool,
}

impl Record {
    /// A record of at most 64 members, which a reader counts in one word.
    #[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, and the loop ends in time")]
    pub(crate) const fn new(name: &'static str, doc: &'static str, fields: &'static [Field]) -> Self {
        assert!(fields.len() <= 64, "a record has at most 64 members");
        let (mut required, mut aliased, mut n) = (0, false, 0);
        while n < fields.len() {
            required |= (fields[n].required as u64) << n;
            aliased |= !fields[n].aliases.is_empty();
            n += 1;
        }
        Record { name, doc, fields, required, aliased }
    }

    /// The member of that name on the wire.
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// Records are compared by name.
impl PartialEq for Record {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Record {}

impl Hash for Record {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// A member of a [`Record`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name on the wire.
    pub name: &'static str,
    /// Other spellings that an answer may use, alone or beside the name.
    pub aliases: &'static [&'static str],
    /// The meaning, the unit and the default, in Markdown.
    pub doc: &'static str,
    /// The type.
    pub shape: Shape,
    /// True if the member must be present.
    pub required: bool,
    /// True if null is a value of its own, distinct from absence.
    pub nullable: bool,
    /// The place in a request; members of an answer are in its body.
    pub place: FieldPlace,
    /// The rules for a value before it is sent.
    pub rules: &'static [FieldRule],
}

impl Field {
    /// Returns true if the member is an id or a number by its name, so that an answer may write it as a number where the type is a text.
    pub fn is_id(&self) -> bool {
        self.name == "id" || ["_id", "Id", "_no", "No"].iter().any(|end| self.name.ends_with(end))
    }

    /// Returns true if a number may be sent that no word of the list stands for.
    pub fn takes_any_number(&self) -> bool {
        self.rules.contains(&FieldRule::AnyNumber)
    }

    /// A member of a record that hosts get. A false one is absent.
    pub(crate) const fn host(name: &'static str, doc: &'static str, shape: Shape, required: bool) -> Self {
        let required = required && !matches!(shape, Shape::Bool);
        Field { name, aliases: &[], doc, shape, required, nullable: false, place: FieldPlace::Body, rules: &[] }
    }

    /// A member of an object that is only written.
    pub(crate) const fn written(name: &'static str) -> Self {
        Field::host(name, "", Shape::Json, false)
    }
}

/// The place of a field in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldPlace {
    /// One segment of the path, percent-encoded.
    Path,
    /// A query parameter, percent-encoded.
    Query,
    /// A member of the JSON body.
    Body,
    /// The whole JSON body, which is an object of the caller's own.
    Whole,
    /// The whole query, an object of the caller's own whose values are texts, numbers, `true` or `false`.
    WholeQuery,
    /// The header of that name.
    Header(&'static str),
}

/// The shape of a value on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// A string.
    Text,
    /// A string that an answer may write as a number.
    Label,
    /// A string that never prints.
    Secret,
    /// `true` or `false`.
    Bool,
    /// A whole number of 64 bits.
    Integer,
    /// A time of Hopline's own: Unix milliseconds.
    Time,
    /// A duration of Hopline's own: milliseconds.
    Span,
    /// An error of Hopline's own.
    Error,
    /// A decimal number, kept as it was written.
    Decimal,
    /// Any JSON: the contract does not document its content.
    Json,
    /// One of the words of a list; an answer may hold another.
    Word(&'static Words),
    /// An object.
    Record(&'static Record),
    /// An array.
    List(&'static Shape),
    /// One value, or an array of them.
    OneOrMany(&'static Shape),
}

impl Shape {
    /// The record of a shape that is a record; the macros call this while compiling.
    #[allow(clippy::panic, reason = "evaluated by the compiler: it is a compile error")]
    pub(crate) const fn record(self) -> &'static Record {
        match self {
            Shape::Record(record) => record,
            _ => panic!("the shape must be a record"),
        }
    }

    /// The name of the records that the shape consists of.
    pub(crate) const fn type_name(&self) -> Option<&'static str> {
        match self {
            Shape::Record(record) => Some(record.name),
            Shape::List(item) | Shape::OneOrMany(item) => item.type_name(),
            _ => None,
        }
    }

    /// Returns true if the shape contains a secret.
    pub(crate) fn has_secrets(&self) -> bool {
        match self {
            Shape::Secret => true,
            Shape::Record(record) => record.fields.iter().any(|field| field.shape.has_secrets()),
            Shape::List(item) | Shape::OneOrMany(item) => item.has_secrets(),
            _ => false,
        }
    }
}

/// A list of words that the contract names.
#[derive(Debug, Clone, Copy)]
pub struct Words {
    /// The type's name, in upper camel case.
    pub name: &'static str,
    /// The description, in Markdown.
    pub doc: &'static str,
    /// The words, in the order of the contract.
    pub words: &'static [Word],
    /// True if there is no other word: the list is Hopline's own.
    pub closed: bool,
}

/// Lists of words are compared by name, too.
impl PartialEq for Words {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Words {}

impl Hash for Words {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// A word of a list.
#[derive(Debug, Clone, Copy)]
pub struct Word {
    /// The variant's name, in upper camel case.
    pub name: &'static str,
    /// The word, which goes over the wire unless there is a number.
    pub word: &'static str,
    /// The number that stands for it on the wire.
    pub number: Option<i64>,
    /// The meaning, in Markdown.
    pub doc: &'static str,
}

impl Word {
    /// Returns true if some JSON is this word: its text, or the number that stands for it.
    pub(crate) fn is(&self, json: &str) -> bool {
        match self.number {
            Some(number) if json.parse() == Ok(number) => true,
            _ => crate::json::text_of(json).is_some_and(|text| text == self.word),
        }
    }
}

/// A rule for a value before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldRule {
    /// A number above zero.
    Positive,
    /// A number of at least this.
    AtLeast(i64),
    /// A number of at least the first and at most the second.
    Between(i64, i64),
    /// A whole number when another field holds that word.
    WholeWhen(&'static str, &'static str),
    /// Required unless that other field is given.
    Unless(&'static str),
    /// The format of an email address.
    Email,
    /// The format of a UUID.
    Uuid,
    /// A text of at least the first and at most the second number of characters.
    Length(usize, usize),
    /// Letters, digits, underscores and hyphens.
    Name,
    /// Eleven digits.
    Phone,
    /// A day, `YYYY-MM-DD`.
    Date,
    /// The two letters of a country, ISO 3166.
    Country,
    /// Any number, beside the words of the list.
    AnyNumber,
    /// Always sent, with this word, even if left out: the contract allows no other.
    Always(&'static str),
}

impl FieldRule {
    /// Returns true if the rule has a meaning for the shape; a table with a meaningless rule does not compile.
    const fn fits(self, shape: Shape) -> bool {
        match self {
            FieldRule::Positive | FieldRule::AtLeast(_) | FieldRule::Between(..) => match shape {
                Shape::List(item) | Shape::OneOrMany(item) => matches!(item, Shape::Integer | Shape::Decimal),
                _ => matches!(shape, Shape::Integer | Shape::Decimal),
            },
            FieldRule::WholeWhen(..) => matches!(shape, Shape::Decimal),
            FieldRule::Unless(_) => true,
            FieldRule::AnyNumber | FieldRule::Always(_) => matches!(shape, Shape::Word(_)),
            FieldRule::Email
            | FieldRule::Uuid
            | FieldRule::Length(..)
            | FieldRule::Name
            | FieldRule::Phone
            | FieldRule::Date
            | FieldRule::Country => {
                matches!(shape, Shape::Text | Shape::Secret)
            }
        }
    }
}

/// Returns true if every rule fits; `record!` calls this while compiling.
pub(crate) const fn all_fit(rules: &[FieldRule], shape: Shape) -> bool {
    let mut rest = rules;
    while let [rule, tail @ ..] = rest {
        if !rule.fits(shape) {
            return false;
        }
        rest = tail;
    }
    true
}

/// The members of two objects as those of one.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would say so")]
pub(crate) const fn joined<const N: usize>(first: &[Field], second: &[Field]) -> [Field; N] {
    assert!(first.len() + second.len() == N, "all of them");
    let (mut all, mut n) = ([first[0]; N], 0);
    while n < N {
        all[n] = if n < first.len() { first[n] } else { second[n - first.len()] };
        n += 1;
    }
    all
}
