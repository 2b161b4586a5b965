//! Adds the service's own words to an error, without secrets, even if the service repeats them.

use crate::contract::{Json, Secret};
use crate::json::{self, text_of};
use crate::policy::{Error, one_line};
use crate::time::Millis;
use crate::wire::{Answer, Content, KEPT_WORD, cut, is_secret_name, names_a_secret};

/// Fills the service's own words into an error, without the `hidden` secrets.
pub(crate) fn fill(error: &mut Error, answer: &Answer, hidden: &[&Secret], unix: Millis) {
    error.status = Some(answer.status);
    error.request_id = answer.request_id.as_deref().and_then(|id| without(hidden, id));
    match &answer.content {
        Content::Failure(failure) => {
            error.code = without(hidden, &failure.code);
            error.text = shown(hidden, &failure.message);
            if let Some(words) = error.text.as_deref().and_then(|text| quoted(hidden, text)) {
                error.what.push_str(": ");
                error.what.push_str(&words);
            }
            error.details = failure.details.as_ref().and_then(|details| clean(hidden, details.text()));
        }
        Content::NoEnvelope { content_type, text, .. } => {
            error.content_type = content_type.as_deref().and_then(|text| without(hidden, text));
            // JSON anywhere in the text may be part of an answer with credentials.
            let page = text.split(['{', '[']).next().unwrap_or_default();
            let begins = |text: &str| text.chars().find(|c| !c.is_whitespace() && *c != '\u{feff}');
            error.text = without(hidden, page).filter(|text| !matches!(begins(text), None | Some('"')));
        }
        Content::Success(_) => {}
    }
    if let Some(wait) = answer.retry_after {
        error.retry_at = Some(unix.saturating_add(wait));
    }
}

/// A shorter secret may be part of any text.
const SHORTEST: usize = 6;
const REDACTED: &str = "[redacted]";
/// The part of the service's own text in the sentence, in bytes.
const KEPT_SENTENCE: usize = 240;

/// A text of the service without those secrets, ignoring case and however they are escaped; `None` if nothing is left.
fn without(secrets: &[&Secret], text: &str) -> Option<String> {
    let mut secrets: Vec<&str> = secrets.iter().map(|secret| secret.reveal()).filter(|secret| secret.len() >= SHORTEST).collect();
    // Of two with the same beginning the longer one goes first, so that nothing of it is left.
    secrets.sort_unstable_by_key(|secret| std::cmp::Reverse(secret.len()));
    // A text that was cut, never through a character, may end within a secret.
    let is_cut = text.len() + 3 >= KEPT_WORD;
    let clean = secrets.into_iter().fold(text.to_owned(), |clean, secret| replaced(&clean, secret, is_cut));
    Some(clean).filter(|text| !text.is_empty())
}

/// A text with `[redacted]` in place of a secret.
fn replaced(text: &str, secret: &str, is_cut: bool) -> String {
    let (mut clean, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let length = written_length(rest, secret, is_cut);
        clean.push_str(if length.is_some() { REDACTED } else { rest.get(..first.len_utf8()).unwrap_or_default() });
        rest = rest.get(length.unwrap_or(first.len_utf8())..).unwrap_or_default();
    }
    clean
}

/// The length of a secret at the beginning of a text, or of the part of it with which a text ends that was cut.
fn written_length(text: &str, secret: &str, is_cut: bool) -> Option<usize> {
    // A character may be written in several ways, so a secret may end at several places.
    let mut ends = vec![0];
    for (at, character) in secret.char_indices() {
        let rest_at = |end: &usize| text.get(*end..).unwrap_or_default();
        if is_cut && at >= SHORTEST && ends.iter().any(|end| rest_at(end).is_empty()) {
            return Some(text.len());
        }
        let mut next: Vec<usize> = Vec::new();
        for end in &ends {
            let lengths = [plain_length(rest_at(end), character), escaped_length(rest_at(end), character)];
            next.extend(lengths.into_iter().flatten().map(|length| end + length));
        }
        next.sort_unstable();
        next.dedup();
        ends = next;
        if ends.is_empty() {
            return None;
        }
    }
    ends.pop()
}

/// The length of a character that a text begins with as it is, ignoring ASCII case, or of the plus that stands for a space in a form.
fn plain_length(text: &str, character: char) -> Option<usize> {
    let first = text.chars().next()?;
    (first.eq_ignore_ascii_case(&character) || (first, character) == ('+', ' ')).then_some(first.len_utf8())
}

/// The length of a character that a text begins with in percent encoding, as an entity of HTML, or behind JSON's backslash.
fn escaped_length(text: &str, character: char) -> Option<usize> {
    let is_it = |number: u32| char::from_u32(number).is_some_and(|found| found.eq_ignore_ascii_case(&character));
    let hex = |digits: Option<&str>| digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    if let Some(escape) = text.strip_prefix('\\') {
        let is_number = escape.starts_with('u') && hex(escape.get(1..5)).is_some_and(is_it);
        return if is_number {
            Some(6)
        } else {
            (escape.starts_with(character) && !character.is_alphanumeric()).then_some(1 + character.len_utf8())
        };
    }
    if let Some(entity) = text.strip_prefix('&') {
        let (name, _) = entity.split_once(';').filter(|(name, _)| name.len() < 9)?;
        let named = match name.strip_prefix('#') {
            Some(number) => number.strip_prefix(['x', 'X']).map_or_else(|| number.parse().ok(), |digits| hex(Some(digits))),
            None => [("amp", '&'), ("lt", '<'), ("gt", '>'), ("quot", '"'), ("apos", '\'')]
                .into_iter()
                .find(|(known, _)| *known == name)
                .map(|(_, stands)| stands.into()),
        };
        return named.is_some_and(is_it).then_some(name.len() + 2);
    }
    let mut bytes = [0; 4];
    let encoded = character.encode_utf8(&mut bytes);
    let is_byte = |(at, byte): (usize, u8)| {
        let written = text.get(3 * at..3 * at + 3).and_then(|written| written.strip_prefix('%'));
        hex(written).is_some_and(|number| u8::try_from(number).is_ok_and(|number| number.eq_ignore_ascii_case(&byte)))
    };
    let length = 3 * encoded.len();
    encoded.bytes().enumerate().all(is_byte).then_some(length)
}

/// The beginning of a text of the service as part of a sentence: on one line, in quotes, without control characters.
fn quoted(secrets: &[&Secret], text: &str) -> Option<String> {
    // A secret that was broken into lines may be whole again on one line.
    let one_line = without(secrets, &one_line(text).replace('"', "'"))?;
    let words = cut(&one_line, KEPT_SENTENCE);
    let more = if words.len() < one_line.len() { "…" } else { "" };
    Some(format!("\"{words}{more}\""))
}

/// JSON of the service without those secrets, however its texts are escaped, and without the values of members with a secret's name.
fn clean(secrets: &[&Secret], json: &str) -> Option<Json> {
    let mut clean = String::new();
    push_clean(secrets, json, &mut clean)?;
    let tells = secrets.iter().any(|secret| secret.reveal().len() >= SHORTEST && clean.contains(secret.reveal()));
    if tells { None } else { clean.parse().ok() }
}

fn push_clean(secrets: &[&Secret], json: &str, into: &mut String) -> Option<()> {
    let push_text = |text: &str, into: &mut String| into.push_str(&json::quoted(&shown(secrets, text).unwrap_or_default()));
    match json.bytes().next()? {
        b'{' => {
            into.push('{');
            for (n, (name, value)) in json::members(json).ok()?.into_iter().enumerate() {
                into.push_str(if n > 0 { "," } else { "" });
                push_text(&name, into);
                into.push(':');
                match is_secret_name(&name) && value != "null" {
                    true => into.push_str(&json::quoted(REDACTED)),
                    false => push_clean(secrets, value, into)?,
                }
            }
            into.push('}');
        }
        b'[' => {
            into.push('[');
            for (n, item) in json::items(json).ok()?.into_iter().enumerate() {
                into.push_str(if n > 0 { "," } else { "" });
                push_clean(secrets, item, into)?;
            }
            into.push(']');
        }
        b'"' => push_text(&text_of(json)?, into),
        _ => into.push_str(json),
    }
    Some(())
}

/// A text of the service without those secrets; if it holds JSON with a member with a secret's name, only the part before that.
fn shown(secrets: &[&Secret], text: &str) -> Option<String> {
    match text.find(['{', '[']).and_then(|at| text.split_at_checked(at)) {
        Some((before, json)) if names_a_secret(json) => without(secrets, &format!("{before}{REDACTED}")),
        _ => without(secrets, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_found_however_it_is_written() {
        for (secret, written) in [
            (r#"own"secret"#, r#"own"secret"#),
            (r#"own"secret"#, r#"OWN\"secret"#),
            ("own/secret", r"own\/secret"),
            ("own/secret", r"own\u002fsecret"),
            ("own+1@x.example", "own%2B1%40x.example"),
            ("own+1@x.example", "own%2b1@x.example"),
            ("own+1@x.example", "own&#43;1&#x40;x.example"),
            ("own pw&1", "own+pw%261"),
            ("own pw&1", "own%20pw&amp;1"),
            ("own%2Bsecret", "own%2Bsecret"),
            ("own%2Bsecret", "own%252Bsecret"),
            ("schlüssel", "schl%C3%BCssel"),
            ("schlüssel", "schl&#252;ssel"),
            (r"own\\\\\\secret", r"own\\\\\\secret"),
        ] {
            assert_eq!(without(&[&Secret::new(secret)], &format!("a {written} b")), Some(format!("a {REDACTED} b")), "{written}");
        }
        assert_eq!(without(&[&Secret::new("own-secret")], "own-secre% own%2").as_deref(), Some("own-secre% own%2"));
        // Of two secrets one of which begins with the other, nothing is left.
        let both = ["own-secret", "own-secret-7"].map(Secret::new);
        assert_eq!(without(&[&both[0], &both[1]], "own-secret-7").as_deref(), Some(REDACTED));
    }

    #[test]
    fn only_a_text_that_may_have_been_cut_can_end_within_a_secret() {
        let secret = Secret::new("own-secret-7");
        // A text is cut before a character of up to four bytes that would go beyond its limit.
        for (missing, end) in [(4, "own-secret"), (3, REDACTED), (0, REDACTED)] {
            let before = "x".repeat(KEPT_WORD - missing - "own-secret".len());
            let clean = without(&[&secret], &format!("{before}own-secret"));
            assert_eq!(clean, Some(format!("{before}{end}")), "{missing}");
        }
    }

    #[test]
    fn what_is_a_secret_by_its_name_is_not_shown_at_any_depth() {
        let cleaned = |json: &str| clean(&[], json).map(|json| json.text().to_owned());
        let shown = |name: &str, json: &str| format!("{{{}:{json}}}", json::quoted(name));
        for name in ["password", "proxyPassword", "auth_password", "access_token", "secret", "pwd", "full_url"] {
            for value in [r#""x""#, "12345", r#"{"a":"x"}"#, "[1]", "true"] {
                assert_eq!(cleaned(&shown(name, value)), Some(shown(name, r#""[redacted]""#)), "{name} {value}");
                let deep = format!(r#"{{"a":[{}]}}"#, shown(name, value));
                assert_eq!(cleaned(&deep), Some(format!(r#"{{"a":[{}]}}"#, shown(name, r#""[redacted]""#))), "{name} {value}");
            }
            assert_eq!(cleaned(&shown(name, "null")), Some(shown(name, "null")));
        }
        let kept = r#"{"field":"password","min":3,"a":[1.50,{"b":null}],"c":"d \"e\""}"#;
        assert_eq!(cleaned(kept).as_deref(), Some(kept));
        let within = r#"{"upstream":"failed: {\"a\":1,\"pass_pwd\":\"x\"}"}"#;
        assert_eq!(cleaned(within).as_deref(), Some(r#"{"upstream":"failed: [redacted]"}"#));
    }
}
