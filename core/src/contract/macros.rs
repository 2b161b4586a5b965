//! The macros of the table. `string_enum!`, `record!` and `endpoints!` (for the wire), and `closed_enum!` and `host_record!` (for Hopline's own
//! types), each make a Rust type and a constant descriptor of it. `written!` and `stored!` make an existing type writable as JSON;
//! `stored!` also makes it readable.

/// The prose of an entry, line by line. A shipped build leaves it out.
macro_rules! prose {
    ($($line:literal)*) => { if cfg!(feature = "docs") { concat!($($line, "\n",)*) } else { "" } };
}
pub(crate) use prose;

/// A list of words: an enum with one variant a word, and `Other` for a word that the contract does not name. A word that
/// goes over the wire as a number is `Variant = "word" (number);`.
macro_rules! string_enum {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $word_doc:literal])* $variant:ident = $word:literal $(($number:literal))?;)* }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[doc = $word_doc])* $variant,)*
            /// A word that the contract does not name; never refused in an answer, never sent.
            Other(String),
        }
        impl $name {
            /// The word on the wire.
            pub fn as_str(&self) -> &str {
                match self { $($name::$variant => $word,)* $name::Other(word) => word }
            }
        }
        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word { $($word => $name::$variant,)* other => $name::Other(other.to_owned()) }
            }
        }
        impl Default for $name {
            /// Returns a missing word, which no request can be sent with: a choice is never made by default.
            fn default() -> Self { $name::Other(String::new()) }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(self.as_str()) }
        }
        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> { s.serialize_str(self.as_str()) }
        }
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str> as serde::Deserialize>::deserialize(d)?;
                Ok($name::from(word.as_ref()))
            }
        }
        impl $crate::contract::Shaped for $name {
            const SHAPE: $crate::contract::Shape = $crate::contract::Shape::Word(&$crate::contract::Words {
                name: stringify!($name),
                doc: prose!($($doc)*),
                words: &[$($crate::contract::Word {
                    name: stringify!($variant), word: $word, number: [$($number,)?].first().copied(), doc: prose!($($word_doc)*),
                },)*],
                closed: false,
            });
        }
        impl $crate::json::FromJson for $name {
            fn from_json(json: &str) -> Result<Self, $crate::json::FromJsonError> {
                $crate::json::text_of(json).map(|word| $name::from(word.as_ref())).ok_or_else($crate::json::FromJsonError::here)
            }
        }
        impl $crate::contract::Encode for $name {
            fn encode<S: $crate::contract::Sink>(&self, sink: &mut S) -> S::Value {
                let $crate::contract::Shape::Word(list) = <$name as $crate::contract::Shaped>::SHAPE else { return sink.null() };
                sink.word(self.as_str(), list.words.iter().find(|word| word.word == self.as_str()))
            }
        }
    };
}

/// A type with named members. `field: Type => Place, rules…;` in a request, `field: Type;` in an answer. A header is
/// `=> Header("X-Name")`. A name that is another on the wire is `field: Type as "wireName"`, and further spellings that an
/// answer may use follow it: `as "wireName" | "wire_name"`.
macro_rules! record {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $field_doc:literal])* $field:ident: $ty:ty $(as $wire:literal $(| $alias:literal)*)? $(=> $place:ident $(($header:literal))? $(, $rule:expr)*)?;)* }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Default, PartialEq, Hash, serde::Serialize, serde::Deserialize)]
        pub struct $name {
            $($(#[doc = $field_doc])* #[serde($(rename = $wire,)? skip_serializing_if = "crate::contract::is_absent")] pub $field: $ty,)*
        }
        $($(const _: () = assert!(
            $crate::contract::all_fit(
                { #[allow(unused_imports)] use $crate::contract::FieldRule::*; &[$($rule),*] },
                <$ty as $crate::contract::Shaped>::SHAPE,
            ),
            concat!("a rule of `", stringify!($name), ".", stringify!($field), "` has no meaning for its type"),
        );)?)*
        impl $crate::contract::Shaped for $name {
            const SHAPE: $crate::contract::Shape = {
                const FIELDS: &[$crate::contract::Field] = &[$($crate::contract::Field {
                    name: record!(@name $field $($wire)?),
                    aliases: &[$($($alias,)*)?],
                    doc: prose!($($field_doc)*),
                    shape: <$ty as $crate::contract::Shaped>::SHAPE,
                    required: <$ty as $crate::contract::Shaped>::REQUIRED,
                    nullable: <$ty as $crate::contract::Shaped>::NULLABLE,
                    place: record!(@place $($place $(($header))?)?),
                    rules: { #[allow(unused_imports)] use $crate::contract::FieldRule::*; &[$($($rule),*)?] },
                },)*];
                const RECORD: &$crate::contract::Record = &$crate::contract::Record::new(stringify!($name), prose!($($doc)*), FIELDS);
                $crate::contract::Shape::Record(RECORD)
            };
        }
        impl $crate::contract::Encode for $name {
            fn encode<S: $crate::contract::Sink>(&self, sink: &mut S) -> S::Value {
                const RECORD: &$crate::contract::Record = <$name as $crate::contract::Shaped>::SHAPE.record();
                #[allow(unused_mut, reason = "a request may have no members")]
                let mut members = $crate::contract::MemberWriter::of(RECORD, sink);
                $(members.member($crate::contract::Encode::is_absent(&self.$field), &self.$field);)*
                members.end()
            }
        }
    };
    (@name $field:ident) => { $crate::contract::wire_name(stringify!($field)) };
    (@name $field:ident $wire:literal) => { $wire };
    (@place) => { $crate::contract::FieldPlace::Body };
    (@place $place:ident $(($header:literal))?) => { $crate::contract::FieldPlace::$place $(($header))? };
}

/// The endpoints of one API: `name: Method "path", Auth, Safety, Paid or Free, Request -> Answer;`.
macro_rules! endpoints {
    ($api:ident; $($(#[doc = $doc:literal])* $name:ident: $method:ident $path:literal, $auth:ident, $safety:ident, $paid:ident, $request:ty => $response:ty;)*) => {
        $(impl $crate::contract::Operation for $request {
            const ENDPOINT: &'static $crate::contract::Endpoint = &$crate::contract::Endpoint {
                api: $crate::contract::Api::$api,
                name: stringify!($name),
                doc: prose!($($doc)*),
                method: $crate::contract::Method::$method,
                path: $path,
                auth: $crate::contract::Auth::$auth,
                safety: $crate::contract::Safety::$safety,
                paid: endpoints!(@ $paid),
                request: <$request as $crate::contract::Shaped>::SHAPE.record(),
                response: <$response as $crate::contract::Shaped>::SHAPE,
            };
            type Output = $response;
        })*
        /// The endpoints of this file.
        pub(super) const ENDPOINTS: &[&$crate::contract::Endpoint] =
            &[$(<$request as $crate::contract::Operation>::ENDPOINT,)*];
    };
    (@ Paid) => { true };
    (@ Free) => { false };
}

/// A list of words of Hopline's own, which is complete: `Variant = "word",`.
macro_rules! closed_enum {
    ($(#[doc = $doc:literal])* $vis:vis enum $name:ident {
        $($(#[doc = $word_doc:literal])* $variant:ident = $word:literal,)*
    }) => {
        $(#[doc = $doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
        $vis enum $name {
            $($(#[doc = $word_doc])* #[serde(rename = $word)] $variant,)*
        }
        impl $name {
            const LIST: &'static $crate::contract::Words = &$crate::contract::Words {
                name: stringify!($name),
                doc: $crate::contract::prose!($($doc)*),
                words: &[$($crate::contract::Word {
                    name: stringify!($variant), word: $word, number: None, doc: $crate::contract::prose!($($word_doc)*),
                },)*],
                closed: true,
            };
            pub(crate) const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// Returns the word, which is the same in every host.
            $vis const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)* }
            }

            /// Returns the variant of a word.
            #[allow(dead_code, reason = "some lists are never read")]
            pub(crate) fn of(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|known| known.as_str() == word)
            }
        }
        impl $crate::contract::Shaped for $name {
            const SHAPE: $crate::contract::Shape = $crate::contract::Shape::Word($name::LIST);
        }
        impl $crate::contract::Encode for $name {
            fn encode<S: $crate::contract::Sink>(&self, sink: &mut S) -> S::Value {
                sink.word(self.as_str(), $name::LIST.words.get(*self as usize))
            }
        }
        impl $crate::json::FromJson for $name {
            fn from_json(json: &str) -> Result<Self, $crate::json::FromJsonError> {
                $crate::json::text_of(json).and_then(|word| $name::of(&word)).ok_or_else($crate::json::FromJsonError::here)
            }
        }
    };
}
pub(crate) use closed_enum;

/// A record that hosts get. A member that is `=> Time`, for one, has that shape rather than its type's.
macro_rules! host_record {
    ($(#[doc = $doc:literal])* $(#[derive($($derive:ident),*)])? $vis:vis struct $name:ident $(as $host_name:literal)? {
        $($(#[doc = $field_doc:literal])* $field_vis:vis $field:ident: $ty:ty $(=> $shape:ident)?,)*
    }) => {
        $(#[doc = $doc])*
        $(#[derive($($derive),*)])?
        $vis struct $name {
            $($(#[doc = $field_doc])* $field_vis $field: $ty,)*
        }
        impl $name {
            /// The members, as hosts get them.
            pub(crate) const FIELDS: &'static [$crate::contract::Field] = &[$($crate::contract::Field::host(
                $crate::contract::wire_name(stringify!($field)),
                $crate::contract::prose!($($field_doc)*),
                $crate::contract::host_record!(@shape $ty $(=> $shape)?),
                <$ty as $crate::contract::Shaped>::REQUIRED,
            ),)*];

            /// Writes the members. Absent and false members are left out where they may be.
            pub(crate) fn encode_members<S: $crate::contract::Sink>(&self, members: &mut $crate::contract::MemberWriter<'_, S>) {
                $(members.put(&self.$field);)*
            }
        }
        impl $crate::contract::Shaped for $name {
            const SHAPE: $crate::contract::Shape = {
                const RECORD: &$crate::contract::Record = &$crate::contract::Record::new(
                    $crate::contract::host_record!(@name $name $($host_name)?), $crate::contract::prose!($($doc)*), $name::FIELDS,
                );
                $crate::contract::Shape::Record(RECORD)
            };
        }
        impl $crate::contract::Encode for $name {
            fn encode<S: $crate::contract::Sink>(&self, sink: &mut S) -> S::Value {
                const RECORD: &$crate::contract::Record = <$name as $crate::contract::Shaped>::SHAPE.record();
                let mut members = $crate::contract::MemberWriter::of(RECORD, sink);
                self.encode_members(&mut members);
                members.end()
            }
        }
    };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $host_name:literal) => { $host_name };
    (@shape $ty:ty) => { <$ty as $crate::contract::Shaped>::SHAPE };
    (@shape $ty:ty => $shape:ident) => { $crate::contract::Shape::$shape };
}
pub(crate) use host_record;

/// A struct that is written as an object, without its empty members: `written!(Type { a, b as "c" })`.
macro_rules! written {
    ($type:ident { $($field:ident $(as $name:literal)?),* $(,)? }) => {
        impl $crate::contract::Encode for $type {
            fn encode<S: $crate::contract::Sink>(&self, sink: &mut S) -> S::Value {
                const RECORD: &$crate::contract::Record = &$crate::contract::Record::new(
                    stringify!($type),
                    "",
                    &[$($crate::contract::Field::written($crate::contract::written!(@name $field $($name)?)),)*],
                );
                let mut members = $crate::contract::MemberWriter::of(RECORD, sink);
                $(members.member($crate::contract::Encode::is_default(&self.$field), &self.$field);)*
                members.end()
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}
pub(crate) use written;

/// A struct that a record of the store holds: it is written, and read again.
macro_rules! stored {
    ($type:ident { $($fields:tt)* }) => {
        $crate::contract::written!($type { $($fields)* });
        $crate::json::from_json!($type { $($fields)* });
    };
}
pub(crate) use stored;
