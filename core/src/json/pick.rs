//! Texts, members and items of JSON, without a type.

use std::borrow::Cow;

use super::scan::{NotJson, Scanner};

/// The value of some JSON that is a string.
pub(crate) fn text_of(json: &str) -> Option<Cow<'_, str>> {
    let mut scan = Scanner::new(json);
    let text = scan.string().ok()?;
    scan.end().ok()?;
    text.plain()
}

/// A value as plain text: the value of a string, and any other JSON as it is written.
pub(crate) fn plain(json: &str) -> Cow<'_, str> {
    text_of(json).unwrap_or(Cow::Borrowed(json))
}

/// The members of an object with those names, as they are written; a null member counts as absent. Returns `None` if the text is not an
/// object, or has one of the members twice.
pub(crate) fn pick<'a, const N: usize>(json: &'a str, names: [&str; N]) -> Option<[Option<&'a str>; N]> {
    let (mut found, mut seen) = ([None; N], [false; N]);
    let mut scan = Scanner::new(json);
    if scan.peek() != b'{' {
        return None;
    }
    let mut more = scan.open(b'}').ok()?;
    while more {
        let name = scan.name().ok()?;
        let value = scan.skip().ok()?;
        let at = name.plain().and_then(|name| names.iter().position(|known| *known == name));
        if let Some((slot, seen)) = at.and_then(|at| found.get_mut(at).zip(seen.get_mut(at))) {
            if std::mem::replace(seen, true) {
                return None;
            }
            *slot = Some(value).filter(|value| *value != "null");
        }
        more = scan.more(b'}').ok()?;
    }
    scan.end().ok().map(|()| found)
}

/// The members of an object in their order, each with its name and as it is written.
pub(crate) fn members(json: &str) -> Result<Vec<(Cow<'_, str>, &str)>, NotJson> {
    let mut scan = Scanner::new(json);
    if scan.peek() != b'{' {
        return Err(NotJson);
    }
    let (mut more, mut found) = (scan.open(b'}')?, Vec::new());
    while more {
        let name = scan.name()?.plain().ok_or(NotJson)?;
        found.push((name, scan.skip()?));
        more = scan.more(b'}')?;
    }
    scan.end().map(|()| found)
}

/// The items of a list, as they are written.
pub(crate) fn items(json: &str) -> Result<Vec<&str>, NotJson> {
    let mut scan = Scanner::new(json);
    if scan.peek() != b'[' {
        return Err(NotJson);
    }
    let (mut more, mut found) = (scan.open(b']')?, Vec::new());
    while more {
        found.push(scan.skip()?);
        more = scan.more(b']')?;
    }
    scan.end().map(|()| found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::quoted;

    #[test]
    fn a_string_says_what_serde_json_reads() {
        for text in [
            r#""""#,
            r#""plain""#,
            r#""a\nb\t\"\\\/\b\f\r""#,
            r#""\u0041\u00e9\u20ac""#,
            r#""\ud83d\ude00!""#,
            r#""\ud83d""#,
            r#""\ude00""#,
            r#""\ud83d\ud83d""#,
            r#""\ud83dx""#,
            r#""\ud83d\n""#,
            r#""\uD83D\uDE00\u0000""#,
            "7",
            "null",
            "\"a\"b",
            "\"\u{20ac}\\u0041\u{20ac}\"",
        ] {
            assert_eq!(text_of(text).map(Cow::into_owned), serde_json::from_str::<String>(text).ok(), "{text}");
        }
        let all: String = (0..0x250).filter_map(char::from_u32).chain(['\u{20ac}', '\u{1f600}']).collect();
        assert_eq!(text_of(&quoted(&all)), Some(Cow::Borrowed(all.as_str())));
    }

    #[test]
    fn members_are_picked_by_their_names() {
        assert_eq!(pick(r#" { "a" : [1, 2] , "\u0062":null,"c":{}}"#, ["a", "b", "x"]), Some([Some("[1, 2]"), None, None]));
        assert_eq!(pick(r#"{"x":1,"x":2,"a":3}"#, ["a"]), Some([Some("3")]), "what nobody asks for may come twice");
        assert_eq!([pick(r#"{"a":1,"a":null}"#, ["a"]), pick("[]", ["a"]), pick("{", ["a"]), pick("", ["a"])], [None; 4]);
        assert_eq!(pick("{}", ["a"]), Some([None]));
    }

    #[test]
    fn items_are_given_as_they_are_written() {
        assert_eq!(items(r#" [ 1, {"a":[ ]} ,"x"]"#), Ok(vec!["1", r#"{"a":[ ]}"#, "\"x\""]));
        assert_eq!((items("[]"), items("{}"), items("[1")), (Ok(vec![]), Err(NotJson), Err(NotJson)));
    }
}
