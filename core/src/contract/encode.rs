//! Writes values of this library to a sink: the parameters of a request, the contents of a record, and the records that hosts get.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::{Decimal, Json, Label, OneOrMany, Patch, Record, Secret, Shape, Shaped, Sink};
use crate::json::push_quoted;

/// A value that a sink can build.
pub trait Encode {
    /// Builds the value with a sink.
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value;

    /// Returns true if the object that holds the value leaves it out.
    fn is_absent(&self) -> bool {
        false
    }

    /// Returns true if a record of the store leaves the value out and reads it as the default.
    fn is_default(&self) -> bool {
        self.is_absent()
    }
}

/// Puts the members of one object, each at its place in the record.
#[derive(Debug)]
pub(crate) struct MemberWriter<'s, S: Sink> {
    sink: &'s mut S,
    nest: S::Nest,
    index: usize,
}

impl<'s, S: Sink> MemberWriter<'s, S> {
    pub(crate) fn of(record: &'static Record, sink: &'s mut S) -> Self {
        MemberWriter { nest: sink.object(record), sink, index: 0 }
    }

    /// Puts the next member, unless it is left out.
    pub(crate) fn member<T: Encode + ?Sized>(&mut self, is_absent: bool, value: &T) {
        if !is_absent {
            self.sink.next(&mut self.nest, self.index);
            let value = value.encode(self.sink);
            self.sink.put(&mut self.nest, self.index, value);
        }
        self.index += 1;
    }

    /// Puts the next member of a record that hosts get.
    pub(crate) fn put<T: Encode + Shaped>(&mut self, value: &T) {
        let may_be_absent = !T::REQUIRED || matches!(T::SHAPE, Shape::Bool);
        self.member(may_be_absent && value.is_default(), value);
    }

    /// The member at that place.
    pub(crate) fn put_at<T: Encode + Shaped>(&mut self, index: usize, value: &T) {
        self.index = index;
        self.put(value);
    }

    pub(crate) fn end(self) -> S::Value {
        self.sink.end(self.nest)
    }
}

impl Encode for str {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(self, false)
    }
}

impl Encode for String {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(self, false)
    }
}

impl Encode for Label {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.0, false)
    }
}

impl Encode for Secret {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(self.reveal(), true)
    }
}

impl Encode for Json {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.json(self.text())
    }
}

impl Encode for Decimal {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.decimal(&self.to_string())
    }
}

impl Encode for IpAddr {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.text(&self.to_string(), false)
    }
}

/// A false value may be left out of Hopline's own objects.
impl Encode for bool {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        sink.flag(*self)
    }

    fn is_default(&self) -> bool {
        !self
    }
}

macro_rules! integers {
    ($($integer:ty),*) => {
        $(impl Encode for $integer {
            fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
                sink.integer(i64::from(*self))
            }
        })*
    };
}
integers!(i64, u32, u16);

impl<T: Encode + ?Sized> Encode for &T {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        (*self).encode(sink)
    }
}

impl<T: Encode> Encode for Option<T> {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        match self {
            Some(value) => value.encode(sink),
            None => sink.null(),
        }
    }

    fn is_absent(&self) -> bool {
        self.is_none()
    }
}

impl<T: Encode> Encode for Patch<T> {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        match self {
            Patch::Set(value) => value.encode(sink),
            Patch::Absent | Patch::Null => sink.null(),
        }
    }

    fn is_absent(&self) -> bool {
        matches!(self, Patch::Absent)
    }
}

impl<T: Encode> Encode for Vec<T> {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        let mut list = sink.list();
        for (index, item) in self.iter().enumerate() {
            sink.next(&mut list, index);
            let item = item.encode(sink);
            sink.put(&mut list, index, item);
        }
        sink.end(list)
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}

impl<T: Encode> Encode for OneOrMany<T> {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        match self {
            OneOrMany::One(value) => value.encode(sink),
            OneOrMany::Many(values) => values.encode(sink),
        }
    }
}

/// An object whose members are named by the caller.
impl Encode for BTreeMap<String, String> {
    fn encode<S: Sink>(&self, sink: &mut S) -> S::Value {
        let mut written = String::from("{");
        for (name, value) in self {
            if written.len() > 1 {
                written.push(',');
            }
            push_quoted(&mut written, name);
            written.push(':');
            push_quoted(&mut written, value);
        }
        written.push('}');
        sink.json(&written)
    }

    fn is_default(&self) -> bool {
        self.is_empty()
    }
}
