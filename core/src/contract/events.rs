//! How events are declared: `events!` makes of one list the enum of what happened, its names with their levels, and the members under which
//! hosts are told it. Hosts are told one object for all events, in which members of one name are one member.

use super::{Field, Shape};

closed_enum! {
    /// The readers of an event.
    pub enum Level {
        /// Developers who look for a fault.
        Debug = "debug",
        /// Operators who watch purchases, and why nothing is bought.
        Info = "info",
        /// Operators, who should look at it.
        Warning = "warning",
    }
}

/// An event as hosts know it.
#[derive(Debug, Clone, Copy)]
pub struct EventEntry {
    /// The event's name.
    pub name: &'static str,
    /// The event's readers.
    pub level: Level,
    /// The members that it has, beside those of every event. One that is a word of the service is told as text.
    pub fields: &'static [Field],
}

/// The events: `Variant = "name", Level { field: Type, … },`. A field that is `=> Time`, for one, has that shape rather than its type's.
/// One that is `=> Word(List)` is a text, told as it came, that should be of that list.
macro_rules! events {
    ($($(#[doc = $doc:literal])* $variant:ident = $name:literal, $level:ident $({
        $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty $(=> $shape:ident $(($list:ident))?)?,)*
    })?,)*) => {
        /// The kind of an event, with its details.
        #[derive(Debug, Clone, PartialEq, Hash)]
        pub enum EventKind {
            $($(#[doc = $doc])* $variant $({ $($(#[doc = $field_doc])* $field: $ty,)* })?,)*
        }

        $crate::contract::closed_enum! {
            /// The kind of an event, by its name.
            pub enum EventName { $($(#[doc = $doc])* $variant = $name,)* }
        }

        /// All events.
        pub const EVENTS: &[$crate::contract::EventEntry] = &[$($crate::contract::EventEntry {
            name: $name,
            level: $crate::contract::Level::$level,
            fields: &[$($($crate::contract::Field::host(
                stringify!($field),
                $crate::contract::prose!($($field_doc)*),
                $crate::contract::events!(@shape $ty $(=> $shape $(($list))?)?),
                <$ty as $crate::contract::Shaped>::REQUIRED,
            ),)*)?],
        },)*];

        impl EventKind {
            /// The members of all events.
            pub(crate) const MEMBERS: &[$crate::contract::Field; $crate::contract::count_members(EVENTS)] =
                &$crate::contract::members_of_all(EVENTS);

            /// The name of the event.
            pub const fn name(&self) -> EventName {
                match self { $(EventKind::$variant { .. } => EventName::$variant,)* }
            }

            /// The readers of the event.
            pub const fn level(&self) -> $crate::contract::Level {
                match self { $(EventKind::$variant { .. } => $crate::contract::Level::$level,)* }
            }

            /// Puts the members of the event into an object, in which those of all events begin at `first`.
            pub(crate) fn put<S: $crate::contract::Sink>(&self, members: &mut $crate::contract::MemberWriter<'_, S>, first: usize) {
                match self {
                    $(EventKind::$variant $({ $($field,)* })? => {
                        $($(members.put_at(first + const { $crate::contract::position(EventKind::MEMBERS, stringify!($field)) }, $field);)*)?
                    })*
                }
            }
        }
    };
    (@shape $ty:ty) => { <$ty as $crate::contract::Shaped>::SHAPE };
    (@shape $ty:ty => Word($list:ident)) => { <$list as $crate::contract::Shaped>::SHAPE };
    (@shape $ty:ty => $shape:ident) => { $crate::contract::Shape::$shape };
}
pub(crate) use events;

/// How many names the members of all events have.
pub(crate) const fn count_members(events: &[EventEntry]) -> usize {
    collect(events, &mut [])
}

/// The members of all events, each once. All may be absent, since each belongs to some events only.
pub(crate) const fn members_of_all<const N: usize>(events: &[EventEntry]) -> [Field; N] {
    let mut members = [Field::written(""); N];
    collect(events, &mut members);
    members
}

/// Collects the members of all events as far as there is room, and counts them.
#[allow(clippy::indexing_slicing, reason = "evaluated by the compiler, which would say so")]
const fn collect(events: &[EventEntry], members: &mut [Field]) -> usize {
    let (mut count, mut event) = (0, 0);
    while event < events.len() {
        let fields = events[event].fields;
        let mut n = 0;
        while n < fields.len() {
            if !is_earlier(events.split_at(event).0, fields[n].name) {
                if count < members.len() {
                    members[count] = fields[n].of_some();
                }
                count += 1;
            }
            n += 1;
        }
        event += 1;
    }
    count
}

/// Returns true if one of these events has a member of that name.
const fn is_earlier(events: &[EventEntry], name: &str) -> bool {
    let mut rest = events;
    while let [event, tail @ ..] = rest {
        if find(event.fields, name).is_some() {
            return true;
        }
        rest = tail;
    }
    false
}

/// The place of the member of that name, which is there.
#[allow(clippy::panic, reason = "evaluated by the compiler: it is a compile error")]
pub(crate) const fn position(fields: &[Field], name: &str) -> usize {
    match find(fields, name) {
        Some(index) => index,
        None => panic!("no event has such a member"),
    }
}

const fn find(fields: &[Field], name: &str) -> Option<usize> {
    let (mut rest, mut index) = (fields, 0);
    while let [field, tail @ ..] = rest {
        if is_same(field.name.as_bytes(), name.as_bytes()) {
            return Some(index);
        }
        (rest, index) = (tail, index + 1);
    }
    None
}

const fn is_same(mut one: &[u8], mut other: &[u8]) -> bool {
    while let ([a, one_rest @ ..], [b, other_rest @ ..]) = (one, other) {
        if *a != *b {
            return false;
        }
        (one, other) = (one_rest, other_rest);
    }
    one.is_empty() && other.is_empty()
}

impl Field {
    /// The member in the object of all events.
    const fn of_some(self) -> Self {
        let shape = match self.shape {
            Shape::Word(words) if !words.closed => Shape::Text,
            shape => shape,
        };
        Field { shape, required: false, ..self }
    }
}
