//! Reads Hopline's own types from JSON: options, and the contents of records. This is a fraction of serde's derived code in the shipped
//! size, and its errors name the place.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::pick::{items, members, text_of};
use super::scan::{NotJson, whole};

/// The reason why some JSON can't be read as a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FromJsonError {
    /// The text is not JSON.
    NotJson,
    /// The member is unknown, such as `retry.atempts`.
    Unknown(String),
    /// The value does not fit, or a required value is missing. The outermost value has no name.
    Misfit(String),
    /// The value is null, which states neither a value nor its absence: a limit that came out of a file would be lost.
    Null(String),
}

impl From<NotJson> for FromJsonError {
    fn from(NotJson: NotJson) -> Self {
        FromJsonError::NotJson
    }
}

impl FromJsonError {
    pub(crate) fn here() -> Self {
        FromJsonError::Misfit(String::new())
    }

    /// Adds the name of the member or item that the error lies within.
    fn within(self, name: &str) -> Self {
        let way = |inner: String| match inner.as_str() {
            "" => name.to_owned(),
            inner if inner.starts_with('[') => format!("{name}{inner}"),
            inner => format!("{name}.{inner}"),
        };
        match self {
            FromJsonError::NotJson => FromJsonError::NotJson,
            FromJsonError::Unknown(inner) => FromJsonError::Unknown(way(inner)),
            FromJsonError::Misfit(inner) => FromJsonError::Misfit(way(inner)),
            FromJsonError::Null(inner) => FromJsonError::Null(way(inner)),
        }
    }
}

/// A type that is read from JSON.
pub(crate) trait FromJson: Sized {
    /// True if the value is required as a member of an object.
    const REQUIRED: bool = true;

    /// Reads the value from its text, without the space around it.
    fn from_json(json: &str) -> Result<Self, FromJsonError>;

    /// Reads the value as an option.
    fn from_option(json: &str) -> Result<Self, FromJsonError> {
        Self::from_json(json)
    }
}

/// The place of a member, whatever its type: so the members of all types are read by one function.
pub(crate) trait Member {
    fn is_required(&self) -> bool;

    fn fill(&mut self, json: &str) -> Result<(), FromJsonError>;

    /// Fills in an option.
    fn fill_option(&mut self, json: &str) -> Result<(), FromJsonError>;
}

impl<T: FromJson> Member for T {
    fn is_required(&self) -> bool {
        T::REQUIRED
    }

    fn fill(&mut self, json: &str) -> Result<(), FromJsonError> {
        *self = T::from_json(json)?;
        Ok(())
    }

    fn fill_option(&mut self, json: &str) -> Result<(), FromJsonError> {
        *self = T::from_option(json)?;
        Ok(())
    }
}

/// Reads a text that is one value.
pub(crate) fn read_json<T: FromJson>(text: &str) -> Result<T, FromJsonError> {
    T::from_json(whole(text)?)
}

/// The members of an object.
pub(crate) struct Object<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Object<'a> {
    /// Reads the text of an object.
    pub(crate) fn of(json: &'a str) -> Result<Self, FromJsonError> {
        if json.starts_with('{') { Ok(Object(members(json)?)) } else { Err(FromJsonError::here()) }
    }

    /// The text of a member, if there is one. A member that comes twice is an error, since the right one can't be known.
    fn member(&self, name: &str) -> Result<Option<&'a str>, FromJsonError> {
        let mut found = self.0.iter().filter(|(known, _)| known == name).map(|(_, json)| *json);
        let first = found.next();
        if found.next().is_some() { Err(FromJsonError::here().within(name)) } else { Ok(first) }
    }

    /// Returns an error if there are other members than these.
    pub(crate) fn only(&self, names: &[&str]) -> Result<(), FromJsonError> {
        match self.0.iter().find(|(name, _)| !names.contains(&name.as_ref())) {
            Some((name, _)) => Err(FromJsonError::Unknown(name.clone().into_owned())),
            None => Ok(()),
        }
    }

    /// Reads members that are there, each into its place.
    pub(crate) fn read(&self, members: &mut [(&str, &mut dyn Member)]) -> Result<(), FromJsonError> {
        for (name, into) in members {
            if let Some(json) = self.member(name)? {
                into.fill(json).map_err(|error| error.within(name))?;
            }
        }
        Ok(())
    }

    /// Reads members that are options, each into its place.
    pub(crate) fn options(&self, members: &mut [(&str, &mut dyn Member)]) -> Result<(), FromJsonError> {
        for (name, into) in members {
            if let Some(json) = self.member(name)? {
                into.fill_option(json).map_err(|error| error.within(name))?;
            }
        }
        Ok(())
    }

    /// Reads members that are required, unless their types have a default, each into its place.
    pub(crate) fn need(&self, members: &mut [(&str, &mut dyn Member)]) -> Result<(), FromJsonError> {
        for (name, into) in members {
            match self.member(name)? {
                Some(json) => into.fill(json).map_err(|error| error.within(name))?,
                None if into.is_required() => return Err(FromJsonError::here().within(name)),
                None => {}
            }
        }
        Ok(())
    }
}

/// Reads a struct from an object: `from_json!(Type { a, b, c as "d" })`. With `from_json!(Type or default { … })`, for options, nothing is required, and
/// other members are refused.
macro_rules! from_json {
    ($type:ident { $($field:ident $(as $name:literal)?),* $(,)? }) => {
        impl $crate::json::FromJson for $type {
            fn from_json(json: &str) -> Result<Self, $crate::json::FromJsonError> {
                let object = $crate::json::Object::of(json)?;
                let mut own = $type::default();
                object.need(&mut [$(($crate::json::from_json!(@name $field $($name)?), &mut own.$field)),*])?;
                Ok(own)
            }
        }
    };
    ($type:ident or default { $($field:ident),* $(,)? }) => {
        impl $type {
            /// The names that its members have in JSON.
            #[allow(unreachable_pub, reason = "some of the types are not public")]
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field),)*];
        }
        impl $crate::json::FromJson for $type {
            fn from_json(json: &str) -> Result<Self, $crate::json::FromJsonError> {
                let object = $crate::json::Object::of(json)?;
                object.only($type::NAMES)?;
                let mut own = $type::default();
                object.options(&mut [$((stringify!($field), &mut own.$field)),*])?;
                Ok(own)
            }
        }
    };
    (@name $field:ident) => { stringify!($field) };
    (@name $field:ident $name:literal) => { $name };
}
pub(crate) use from_json;

impl FromJson for String {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        text_of(json).map(Cow::into_owned).ok_or_else(FromJsonError::here)
    }
}

impl FromJson for bool {
    const REQUIRED: bool = false;

    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        json.parse().map_err(|_| FromJsonError::here())
    }
}

/// One of a few words.
pub(crate) fn word<T: Copy>(json: &str, words: &[(&str, T)]) -> Result<T, FromJsonError> {
    let said = text_of(json).ok_or_else(FromJsonError::here)?;
    words.iter().find(|(word, _)| *word == said).map(|(_, one)| *one).ok_or_else(FromJsonError::here)
}

macro_rules! numbers {
    ($($number:ty),*) => {
        $(impl FromJson for $number {
            fn from_json(json: &str) -> Result<Self, FromJsonError> {
                json.parse().map_err(|_| FromJsonError::here())
            }
        })*
    };
}
numbers!(i64, u16);

impl FromJson for u32 {
    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        json.parse().map_err(|_| FromJsonError::here())
    }

    /// A number below 0 is read as 0, which is then refused by the name of the option.
    fn from_option(json: &str) -> Result<Self, FromJsonError> {
        u32::try_from(i64::from_json(json)?.max(0)).map_err(|_| FromJsonError::here())
    }
}

impl<T: FromJson> FromJson for Option<T> {
    const REQUIRED: bool = false;

    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        if json == "null" { Ok(None) } else { T::from_json(json).map(Some) }
    }

    fn from_option(json: &str) -> Result<Self, FromJsonError> {
        if json == "null" { Err(FromJsonError::Null(String::new())) } else { T::from_option(json).map(Some) }
    }
}

impl<T: FromJson> FromJson for Vec<T> {
    const REQUIRED: bool = false;

    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        if !json.starts_with('[') {
            return Err(FromJsonError::here());
        }
        let found = items(json)?;
        found.iter().enumerate().map(|(at, item)| T::from_json(item).map_err(|error| error.within(&format!("[{at}]")))).collect()
    }
}

impl<T: FromJson> FromJson for BTreeMap<String, T> {
    const REQUIRED: bool = false;

    fn from_json(json: &str) -> Result<Self, FromJsonError> {
        let (Object(found), mut read) = (Object::of(json)?, BTreeMap::new());
        for (name, json) in found {
            let value = T::from_json(json).map_err(|error| error.within(&name))?;
            if read.insert(name.clone().into_owned(), value).is_some() {
                return Err(FromJsonError::here().within(&name));
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Inner {
        number: i64,
        words: Vec<String>,
        count: Option<u32>,
    }
    from_json!(Inner { number, words as "texts", count });

    #[derive(Debug, Default, PartialEq)]
    struct Options {
        name: String,
        inner: Option<Inner>,
        named: BTreeMap<String, Inner>,
        on: bool,
        count: u32,
        size: u32,
    }
    from_json!(Options or default { name, inner, named, on, count, size });

    fn misfit(text: &str) -> FromJsonError {
        read_json::<Options>(text).expect_err(text)
    }

    #[test]
    fn what_is_left_out_is_as_in_the_default() {
        assert_eq!(read_json::<Options>(" {} "), Ok(Options::default()));
        let text = r#"{"name":"a\u0062","inner":{"number":-7,"texts":["x"],"more":1},"on":true,"count":3,"named":{"a":{"number":1}}}"#;
        let named = BTreeMap::from([("a".to_owned(), Inner { number: 1, ..Inner::default() })]);
        let inner = Some(Inner { number: -7, words: vec!["x".to_owned()], count: None });
        assert_eq!(read_json(text), Ok(Options { name: "ab".to_owned(), inner, named, on: true, count: 3, size: 0 }));
        assert_eq!(read_json::<Options>(r#"{"count":-1}"#), Ok(Options::default()), "what is below 0 is refused by its name");
    }

    #[test]
    fn it_says_where_a_value_does_not_fit() {
        for (text, place) in [
            ("7", ""),
            ("[]", ""),
            (r#"{"name":null}"#, "name"),
            (r#"{"name":"\ud800"}"#, "name"),
            (r#"{"name":"a","name":"a"}"#, "name"),
            (r#"{"on":"true"}"#, "on"),
            (r#"{"count":4294967296}"#, "count"),
            (r#"{"inner":{"number":1,"count":-1}}"#, "inner.count"),
            (r#"{"count":1.0}"#, "count"),
            (r#"{"count":"1"}"#, "count"),
            (r#"{"inner":{}}"#, "inner.number"),
            (r#"{"inner":{"number":1,"texts":["a",2]}}"#, "inner.texts[1]"),
            (r#"{"inner":{"number":1,"texts":{}}}"#, "inner.texts"),
            (r#"{"named":{"x":{"number":"1"}}}"#, "named.x.number"),
            (r#"{"named":[]}"#, "named"),
            (r#"{"named":{"x":{"number":1},"x":{"number":1}}}"#, "named.x"),
        ] {
            assert_eq!(misfit(text), FromJsonError::Misfit(place.to_owned()), "{text}");
        }
        assert_eq!(misfit(r#"{"inner":null}"#), FromJsonError::Null("inner".to_owned()));
        assert_eq!(misfit(r#"{"nam":"a"}"#), FromJsonError::Unknown("nam".to_owned()));
        for text in ["", "{", "{}{}", r#"{"name":}"#] {
            assert_eq!(misfit(text), FromJsonError::NotJson, "{text}");
        }
    }
}
