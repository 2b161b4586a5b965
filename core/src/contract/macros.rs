//! The three macros that read the table. Each yields typed Rust and a constant descriptor of the same entry.

/// The prose of an entry, line by line. What is shipped goes without it.
macro_rules! doc {
    ($($line:literal)*) => { if cfg!(feature = "docs") { concat!($($line, "\n",)*) } else { "" } };
}

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
            /// No word at all, which no request is sent with: a choice is never made by default.
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
                doc: doc!($($doc)*),
                words: &[$($crate::contract::Word {
                    name: stringify!($variant), word: $word, number: [$($number,)?].first().copied(), doc: doc!($($word_doc)*),
                },)*],
            });
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
                    doc: doc!($($field_doc)*),
                    shape: <$ty as $crate::contract::Shaped>::SHAPE,
                    required: <$ty as $crate::contract::Shaped>::REQUIRED,
                    nullable: <$ty as $crate::contract::Shaped>::NULLABLE,
                    place: record!(@place $($place $(($header))?)?),
                    rules: { #[allow(unused_imports)] use $crate::contract::FieldRule::*; &[$($($rule),*)?] },
                },)*];
                const RECORD: &$crate::contract::Record = &$crate::contract::Record::new(stringify!($name), doc!($($doc)*), FIELDS);
                $crate::contract::Shape::Record(RECORD)
            };
        }
    };
    (@name $field:ident) => { $crate::contract::wire_name(stringify!($field)) };
    (@name $field:ident $wire:literal) => { $wire };
    (@place) => { $crate::contract::Place::Body };
    (@place $place:ident $(($header:literal))?) => { $crate::contract::Place::$place $(($header))? };
}

/// The endpoints of one API: `name: Method "path", Auth, Safety, Paid or Free, Request -> Answer;`.
macro_rules! endpoints {
    ($api:ident; $($(#[doc = $doc:literal])* $name:ident: $method:ident $path:literal, $auth:ident, $safety:ident, $paid:ident, $request:ty => $response:ty;)*) => {
        $(impl $crate::contract::Operation for $request {
            const ENDPOINT: &'static $crate::contract::Endpoint = &$crate::contract::Endpoint {
                api: $crate::contract::Api::$api,
                name: stringify!($name),
                doc: doc!($($doc)*),
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
