//! Strings of JSON: reading and writing.

/// The value of a string that was checked when it was scanned; `None` if it holds half a surrogate pair.
#[cold]
pub(super) fn unescape(written: &str) -> Option<String> {
    let mut said = String::with_capacity(written.len());
    let mut rest = written;
    while let Some((before, behind)) = rest.split_once('\\') {
        said.push_str(before);
        let mut characters = behind.chars();
        let character = match characters.next()? {
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let (character, behind) = unicode(characters.as_str())?;
                said.push(character);
                rest = behind;
                continue;
            }
            itself => itself,
        };
        said.push(character);
        rest = characters.as_str();
    }
    said.push_str(rest);
    Some(said)
}

/// The character of one `\u`, or of two that are a pair, and what stands behind it.
fn unicode(digits: &str) -> Option<(char, &str)> {
    let unit = |text: &str| text.get(..4).and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let (first, behind) = (unit(digits)?, digits.get(4..)?);
    let second = behind.strip_prefix("\\u").and_then(unit);
    let mut decoded = char::decode_utf16([Some(first), second].into_iter().flatten());
    let character = decoded.next()?.ok()?;
    let behind = if character.len_utf16() == 2 { behind.get(6..)? } else { behind };
    Some((character, behind))
}

/// Writes a text as a string, with the same escapes as serde_json.
pub(crate) fn push_quoted(into: &mut String, text: &str) {
    const HEX: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    into.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|character| matches!(character, '"' | '\\' | '\0'..='\x1f')) {
        let (before, behind) = rest.split_at(at);
        into.push_str(before);
        let mut characters = behind.chars();
        match characters.next().unwrap_or_default() {
            '\u{8}' => into.push_str("\\b"),
            '\u{c}' => into.push_str("\\f"),
            '\n' => into.push_str("\\n"),
            '\r' => into.push_str("\\r"),
            '\t' => into.push_str("\\t"),
            quoted @ ('"' | '\\') => into.extend(['\\', quoted]),
            control => {
                into.push_str("\\u00");
                let code = control as usize;
                into.extend([code >> 4, code].into_iter().filter_map(|digit| HEX.get(digit & 15)));
            }
        }
        rest = characters.as_str();
    }
    into.push_str(rest);
    into.push('"');
}

/// A text as a string.
pub(crate) fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    push_quoted(&mut quoted, text);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_written_as_serde_json_writes_it() {
        let all: String = (0..0x250).filter_map(char::from_u32).chain(['\u{20ac}', '\u{1f600}', '\u{2028}']).collect();
        for text in ["", "plain", "\"", "a\u{1f}", &all] {
            let written = quoted(text);
            assert_eq!(written, serde_json::to_string(text).expect("is JSON"));
        }
    }
}
