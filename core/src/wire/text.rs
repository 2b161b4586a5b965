//! Short texts of the service, and how much of each is kept.

use crate::json::text_of;

/// The longest code, request id or message that is kept, in bytes; a server does not decide how much memory a client needs.
pub(crate) const KEPT_WORD: usize = 1024;

/// The longest cursor that is passed on, in bytes; a cut cursor would be another one. NOT DOCUMENTED: how long it may be.
pub(crate) const LONGEST_CURSOR: usize = 8 << 10;

/// At most `most` bytes of a text, never through a character.
pub(crate) fn cut(text: &str, most: usize) -> String {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default().to_owned()
}

/// A text, as far as it is kept.
pub(super) fn word(json: &str) -> Option<String> {
    text_of(json).map(|text| cut(&text, KEPT_WORD))
}

/// Returns true if some JSON is a number.
pub(super) fn is_number(json: &str) -> bool {
    json.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_before_a_character_that_does_not_fit() {
        assert_eq!([cut("aé€", 2), cut("aé€", 3), cut("aé€", 5), cut("aé€", 9)], ["a", "aé", "aé", "aé€"]);
    }
}
