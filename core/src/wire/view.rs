//! The typed view of an answer: its members under the names of the table, whichever of their spellings the service used.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::check::{Members, quote};
use super::text::is_number;
use crate::contract::{Field, Json, Record, Shape};

/// What an answer says in the names and words of the table.
pub(crate) struct View<'a> {
    /// The JSON; borrowed where nothing had to be changed.
    pub(crate) json: Cow<'a, str>,
    /// The members that came in two spellings with two values. The first spelling of the table counts.
    pub(crate) differing: Vec<String>,
}

impl View<'_> {
    /// The JSON, where the service wrote it in another way.
    pub(crate) fn written_otherwise(self) -> Option<Json> {
        match self.json {
            Cow::Owned(json) => json.parse().ok(),
            Cow::Borrowed(_) => None,
        }
    }
}

/// Reads an answer as its shape says. What the service wrote as the table does is borrowed.
pub(crate) fn view<'a>(shape: Shape, json: &'a str) -> View<'a> {
    let mut differing = Vec::new();
    let json = if may_differ(shape) { seen(shape, json, "", &mut differing) } else { Cow::Borrowed(json) };
    View { json, differing }
}

/// Whether the service may write a value in another way than the table does.
fn may_differ(shape: Shape) -> bool {
    match shape {
        Shape::Label => true,
        Shape::Word(words) => words.words.iter().any(|word| word.number.is_some()),
        Shape::List(item) | Shape::OneOrMany(item) => may_differ(*item),
        Shape::Record(record) => record.fields.iter().any(|field| !field.aliases.is_empty() || may_differ(field.shape)),
        _ => false,
    }
}

fn seen<'a>(shape: Shape, json: &'a str, path: &str, differing: &mut Vec<String>) -> Cow<'a, str> {
    match shape {
        Shape::Label if is_number(json) => Cow::Owned(quote(json)),
        Shape::Word(words) if words.words.iter().any(|word| word.number.is_some()) => {
            // Its number may be a text.
            match words.words.iter().find(|word| word.is(json) || word.is(json.trim_matches('"'))) {
                Some(word) if json == quote(word.word) => Cow::Borrowed(json),
                Some(word) => Cow::Owned(quote(word.word)),
                None if is_number(json) => Cow::Owned(quote(json)),
                None => Cow::Borrowed(json),
            }
        }
        Shape::List(item) if may_differ(*item) => match serde_json::from_str::<Vec<&'a RawValue>>(json) {
            Ok(items) => {
                let each = items.iter().enumerate().map(|(n, raw)| seen(*item, raw.get(), &format!("{path}[{n}]"), differing));
                let each: Vec<Cow<'_, str>> = each.collect();
                if is_as_written(&each) { Cow::Borrowed(json) } else { Cow::Owned(format!("[{}]", each.join(","))) }
            }
            Err(_) => Cow::Borrowed(json),
        },
        Shape::Record(record) => match super::check::members(json) {
            Ok(members) => object(record, &members, path, differing).map_or(Cow::Borrowed(json), Cow::Owned),
            Err(_) => Cow::Borrowed(json),
        },
        _ => Cow::Borrowed(json),
    }
}

fn is_as_written(values: &[Cow<'_, str>]) -> bool {
    values.iter().all(|value| matches!(value, Cow::Borrowed(_)))
}

/// An object in the names and words of the table; none where it is in them already.
fn object(record: &Record, members: &Members<'_>, path: &str, differing: &mut Vec<String>) -> Option<String> {
    let (mut names, mut seen_values) = (Vec::new(), Vec::new());
    let is_alias = |name: &str| record.fields.iter().flat_map(|field| field.aliases).any(|alias| *alias == name);
    for field in record.fields {
        let name = if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
        let mut values =
            spellings(field).filter_map(|spelling| members.iter().find(|(name, _)| name == spelling)).map(|(_, raw)| raw.get());
        // A spelling that is null or empty says nothing beside one that is not.
        let filled = values.clone().find(|value| !is_empty(value)).or_else(|| values.clone().find(|value| *value != "null"));
        let Some(first) = filled.or_else(|| values.clone().next()) else { continue };
        let value = seen(field.shape, first, &name, differing);
        if values.any(|other| other != "null" && seen(field.shape, other, &name, &mut Vec::new()) != value) {
            differing.push(name);
        }
        names.push(field.name);
        seen_values.push(value);
    }
    if is_as_written(&seen_values) && !members.iter().any(|(name, _)| is_alias(name)) {
        return None;
    }
    let mut parts: Vec<String> = names.iter().zip(&seen_values).map(|(name, value)| format!("\"{name}\":{value}")).collect();
    let known = |name: &str| record.fields.iter().any(|field| spellings(field).any(|spelling| spelling == name));
    parts.extend(members.iter().filter(|(name, _)| !known(name)).map(|(name, raw)| format!("{}:{}", quote(name), raw.get())));
    Some(format!("{{{}}}", parts.join(",")))
}

fn spellings(field: &Field) -> impl Iterator<Item = &'static str> + Clone {
    std::iter::once(field.name).chain(field.aliases.iter().copied())
}

fn is_empty(json: &str) -> bool {
    json == "null" || json == "\"\"" || json.strip_prefix('[').is_some_and(|items| items.trim_start() == "]")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::reseller::{StaticOrderAcceptance, StaticProductList, SubUserList};
    use crate::contract::{Shaped, Word, Words};

    fn read<T: Shaped>(json: &str) -> (String, Vec<String>) {
        let view = view(T::SHAPE, json);
        (view.json.into_owned(), view.differing)
    }

    #[test]
    fn every_spelling_of_a_member_is_read_alike() {
        for json in [r#"{"orderNo":"o"}"#, r#"{"order_no":"o"}"#, r#"{"orderNo":"o","order_no":"o"}"#, r#"{"orderNo":null,"order_no":"o"}"#]
        {
            assert_eq!(read::<StaticOrderAcceptance>(json), (r#"{"orderNo":"o"}"#.to_owned(), vec![]), "{json}");
        }
    }

    #[test]
    fn two_spellings_with_two_values_are_reported_and_the_first_of_the_table_counts() {
        let json = r#"{"order_no":"b","orderNo":"a","x":1}"#;
        assert_eq!(read::<StaticOrderAcceptance>(json), (r#"{"orderNo":"a","x":1}"#.to_owned(), vec!["orderNo".to_owned()]));
        let (json, differing) = read::<SubUserList>(r#"{"items":[{"id":1}],"list":[{"id":2}],"total":1}"#);
        assert_eq!((json.as_str(), differing), (r#"{"items":[{"id":1}],"total":1}"#, vec!["items".to_owned()]));
    }

    #[test]
    fn numbers_that_stand_for_words_and_labels_are_read_as_text() {
        let json = r#"{"list":[{"productId":7,"product_type":2,"unit":3,"price":1.50,"projects":[]},{"unit":9,"productType":"shared"}]}"#;
        let (json, differing) = read::<StaticProductList>(json);
        let first = r#"{"productId":"7","productType":"2","projectList":[],"unit":"month","price":1.50}"#;
        assert_eq!(json, format!(r#"{{"items":[{first},{{"productType":"shared","unit":"9"}}]}}"#));
        assert!(differing.is_empty());
        assert!(serde_json::from_str::<StaticProductList>(&json).is_ok());
    }

    #[test]
    fn a_spelling_that_is_empty_gives_way_and_a_number_may_be_a_text() {
        let (json, differing) = read::<StaticProductList>(r#"{"items":[{"projectList":[],"projects":[7],"unit":"3"}]}"#);
        assert_eq!(
            (json.as_str(), differing),
            (r#"{"items":[{"projectList":[7],"unit":"month"}]}"#, vec!["items[0].projectList".to_owned()])
        );
        let (json, _) = read::<StaticOrderAcceptance>(r#"{"orderNo":"","order_no":"o"}"#);
        assert_eq!(json, r#"{"orderNo":"o"}"#);
        assert_eq!(read::<StaticOrderAcceptance>(r#"{"orderNo":null,"order_no":""}"#).0, r#"{"orderNo":""}"#);
    }

    #[test]
    fn a_shape_may_be_written_otherwise_just_where_it_holds_a_label_or_a_word_with_a_number() {
        const WORD: Word = Word { name: "Month", word: "month", number: Some(3), doc: "" };
        const NUMBERED: Shape = Shape::Word(&Words { name: "Unit", doc: "", words: &[WORD] });
        const PLAIN: Shape = Shape::Word(&Words { name: "Unit", doc: "", words: &[Word { number: None, ..WORD }] });
        let read = |shape, json: &'static str| view(shape, json).json.into_owned();
        assert_eq!([read(Shape::Label, "7"), read(Shape::List(&Shape::Label), "[7]")], [r#""7""#, r#"["7"]"#]);
        assert_eq!(["3", "9", r#""day""#].map(|json| read(NUMBERED, json)), [r#""month""#, r#""9""#, r#""day""#]);
        assert_eq!(seen(PLAIN, "7", "", &mut Vec::new()), "7");
    }

    #[test]
    fn what_was_written_otherwise_is_given_as_the_table_names_it() {
        let written = |json| view(StaticOrderAcceptance::SHAPE, json).written_otherwise().map(|json| json.text().to_owned());
        assert_eq!(written(r#"{"order_no":"o"}"#).as_deref(), Some(r#"{"orderNo":"o"}"#));
        assert_eq!(written(r#"{"orderNo":"o"}"#), None);
    }

    #[test]
    fn what_is_written_as_the_table_does_is_borrowed() {
        let borrowed = |json| matches!(view(SubUserList::SHAPE, json).json, Cow::Borrowed(_));
        assert!(borrowed(r#"{"total":1,"items":[{"id":1,"username":"u"}],"more":[]}"#));
        assert!(!borrowed(r#"{"list":[{"id":1}]}"#) && !borrowed(r#"{"items":[],"list":[]}"#));
        assert!(matches!(view(StaticProductList::SHAPE, r#"{"items":[{"unit":"month"}]}"#).json, Cow::Borrowed(_)));
        assert!(matches!(view(StaticProductList::SHAPE, r#"{"items":[{"unit":3}]}"#).json, Cow::Owned(_)));
    }

    #[test]
    fn what_is_of_another_shape_stays_as_it_is() {
        for json in ["[]", "null", "7", r#"{"a":1,"a":2}"#] {
            assert_eq!(read::<StaticOrderAcceptance>(json).0, json);
        }
    }
}
